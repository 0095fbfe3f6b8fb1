/* checked.h: arithmetic on numbers from outside. Each returns false on overflow and leaves *out alone. */
#ifndef SOTTO_SRC_BASE_CHECKED_H
#define SOTTO_SRC_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool st_mul_size(size_t a, size_t b, size_t *out)
{
    if (b != 0 && a > SIZE_MAX / b)
        return false;
    *out = a * b;
    return true;
}

static inline bool st_add_size(size_t a, size_t b, size_t *out)
{
    if (a > SIZE_MAX - b)
        return false;
    *out = a + b;
    return true;
}

static inline bool st_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    if (a < 0 || b < 0 || (b != 0 && a > INT64_MAX / b))
        return false;
    *out = a * b;
    return true;
}

/* Round up to a power of two; false on overflow. */
static inline bool st_align_size(size_t n, size_t alignment, size_t *out)
{
    if (n > SIZE_MAX - (alignment - 1))
        return false;
    *out = (n + alignment - 1) & ~(alignment - 1);
    return true;
}

#endif
