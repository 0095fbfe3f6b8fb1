/* i8.c: rows of 8-bit integers with one scale each, as CTranslate2 keeps them. */
#include <math.h>
#include <string.h>

#include "quant/quant.h"

float st_i8_pack(const float *src, int8_t *dst, int64_t n)
{
    /* adding and taking away 1.5 * 2^23 rounds to an integer, ties to even, and compilers can do it on vectors */
    const float round = 12582912.0f;
    if (n <= 0)
        return 0;
    uint32_t top = 0; /* magnitudes are ordered as their bits are, NaN above all */
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &src[i], sizeof bits);
        bits &= 0x7fffffffu;
        top = bits > top ? bits : top;
    }
    float max;
    memcpy(&max, &top, sizeof max);
    if (!(max >= 1e-30f)) {
        memset(dst, 0, (size_t)n);
        return isnan(max) ? max : 0;
    }
    const float inverse = 127.0f / max;
    for (int64_t i = 0; i < n; i++) {
        const float x = src[i] * inverse;
        dst[i] = (int8_t)(int32_t)((x < -127.0f ? -127.0f : x > 127.0f ? 127.0f : x == x ? x : 0.0f) + round - round);
    }
    return max / 127.0f;
}
