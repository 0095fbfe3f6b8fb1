#include <stdint.h>

#include "base/checked.h"
#include "base/status.h"
#include "sotto/tensor.h"

static const struct {
    sotto_dtype dtype;
    const char *name;
    int64_t block;
    size_t bytes;
} dtypes[] = {
#define DTYPE(constant, name, block, bytes) {constant, name, block, bytes},
#include "tensor/dtypes.inc"
#undef DTYPE
};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

static int row_of(sotto_dtype dtype)
{
    for (int i = 0; i < N_DTYPES; i++)
        if (dtypes[i].dtype == dtype)
            return i;
    return -1;
}

const char *sotto_dtype_name(sotto_dtype dtype)
{
    const int i = row_of(dtype);
    return i < 0 ? NULL : dtypes[i].name;
}

int64_t sotto_dtype_block(sotto_dtype dtype)
{
    const int i = row_of(dtype);
    return i < 0 ? 0 : dtypes[i].block;
}

size_t sotto_dtype_bytes(sotto_dtype dtype)
{
    const int i = row_of(dtype);
    return i < 0 ? 0 : dtypes[i].bytes;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same_text(const char *a, const char *b)
{
    while (*a && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return lower(*a) == lower(*b);
}

sotto_status sotto_dtype_find(const char *name, sotto_dtype *out)
{
    for (int i = 0; name && i < N_DTYPES; i++)
        if (same_text(name, dtypes[i].name)) {
            *out = dtypes[i].dtype;
            return SOTTO_OK;
        }
    return SOTTO_E_NOT_FOUND;
}

size_t sotto_dtype_row_bytes(sotto_dtype dtype, int64_t n)
{
    const int i = row_of(dtype);
    size_t bytes;
    if (i < 0 || n < 0 || n % dtypes[i].block != 0 ||
        !st_mul_size((size_t)(n / dtypes[i].block), dtypes[i].bytes, &bytes))
        return 0;
    return bytes;
}
