#include "backends/gpu/api/cuda/driver.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/library.h"

#ifdef _WIN32
#define LIBRARY "nvcuda.dll"
#else
#define LIBRARY "libcuda.so.1"
#endif
static const char *const libraries[] = {LIBRARY, NULL};

static const st_library_symbol functions[] = {
#define FUNCTION(field, name, params) {#name, offsetof(st_cuda_driver, field), false},
    ST_CUDA_FUNCTIONS(FUNCTION)
#undef FUNCTION
#define FUNCTION(field, name, params) {#name, offsetof(st_cuda_driver, field), true},
        ST_CUDA_OPTIONAL(FUNCTION)
#undef FUNCTION
};

static const st_cuda_driver none = {.why_none = "there was no memory to look for the driver in"};
static _Atomic(const st_cuda_driver *) cuda_driver;

/* There may be no driver, it may lack a function, or have no device. */
static void load(st_cuda_driver *d)
{
    char *const why = d->why_none;
    const size_t size = sizeof d->why_none;
    void *const library = st_library_open(libraries);
    if (!library) {
        snprintf(why, size, "%s was not found: it comes with NVIDIA's driver, which has to be installed", LIBRARY);
        return;
    }
    const char *const missing = st_library_functions(library, functions, sizeof functions / sizeof functions[0], d);
    if (missing) {
        snprintf(why, size, "%s has no %s: a newer driver of NVIDIA is needed", LIBRARY, missing);
        return;
    }
    const int code = d->init(0);
    if (code != ST_CU_OK || d->count(&d->n_devices) != ST_CU_OK)
        d->n_devices = 0;
    if (code != ST_CU_OK) {
        const char *name = NULL;
        snprintf(why, size, "%s does not start: cuInit gave error %d, %s", LIBRARY, code,
                 d->error_name(code, &name) == ST_CU_OK && name ? name : "an unknown error");
    } else if (d->n_devices == 0)
        snprintf(why, size, "%s finds no device", LIBRARY);
}

const st_cuda_driver *st_cuda_driver_get(void)
{
    const st_cuda_driver *known = atomic_load(&cuda_driver);
    if (known)
        return known;
    st_cuda_driver *fresh = st_calloc(1, sizeof *fresh);
    if (!fresh)
        return &none; /* asked again the next time */
    load(fresh);
    if (atomic_compare_exchange_strong(&cuda_driver, &known, fresh))
        return fresh;
    st_free(fresh); /* another thread was faster */
    return known;
}
