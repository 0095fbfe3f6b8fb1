#include "backends/gpu/api/cuda/driver.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "base/library.h"

static const char *const libraries[] = {"libcuda.so.1", "nvcuda.dll", NULL};

static const st_library_symbol functions[] = {
#define FUNCTION(field, name, params) {#name, offsetof(st_cuda_driver, field), false},
    ST_CUDA_FUNCTIONS(FUNCTION)
#undef FUNCTION
#define FUNCTION(field, name, params) {#name, offsetof(st_cuda_driver, field), true},
        ST_CUDA_OPTIONAL(FUNCTION)
#undef FUNCTION
};

static const st_cuda_driver none;
static _Atomic(const st_cuda_driver *) cuda_driver;

/* False: there is no driver, it lacks a function, or there is no device for it. */
static bool load(st_cuda_driver *d)
{
    void *library = st_library_open(libraries);
    if (!library)
        return false;
    if (st_library_functions(library, functions, sizeof functions / sizeof functions[0], d))
        return false;
    return d->init(0) == ST_CU_OK && d->count(&d->n_devices) == ST_CU_OK && d->n_devices > 0;
}

const st_cuda_driver *st_cuda_driver_get(void)
{
    const st_cuda_driver *known = atomic_load(&cuda_driver);
    if (known)
        return known;
    st_cuda_driver *fresh = st_calloc(1, sizeof *fresh);
    if (!fresh)
        return &none; /* asked again the next time */
    if (!load(fresh)) {
        st_free(fresh);
        fresh = NULL;
    }
    const st_cuda_driver *mine = fresh ? fresh : &none;
    if (atomic_compare_exchange_strong(&cuda_driver, &known, mine))
        return mine;
    st_free(fresh); /* another thread was faster */
    return known;
}
