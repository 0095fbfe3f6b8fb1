/* i8.c: rows of 8-bit integers with one scale each, as CTranslate2 keeps them. */
#include <math.h>
#include <string.h>

#include "quant/quant.h"

float st_i8_pack(const float *src, int8_t *dst, int64_t n)
{
    /* adding and taking away 1.5 * 2^23 rounds to an integer, ties to even, and compilers can do it on vectors */
    const float round = 12582912.0f;
    float max = 0;
    for (int64_t i = 0; i < n; i++) {
        const float a = fabsf(src[i]);
        max = a > max ? a : max;
    }
    if (!(max >= 1e-30f)) {
        memset(dst, 0, (size_t)n);
        return 0;
    }
    const float inverse = 127.0f / max;
    for (int64_t i = 0; i < n; i++) {
        const float x = src[i] * inverse;
        dst[i] = (int8_t)(int32_t)((x < -127.0f ? -127.0f : x > 127.0f ? 127.0f : x == x ? x : 0.0f) + round - round);
    }
    return max / 127.0f;
}
