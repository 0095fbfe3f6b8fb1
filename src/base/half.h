/* half.h: f16 and bf16 conversion of single values, round to nearest even. */
#ifndef SOTTO_SRC_BASE_HALF_H
#define SOTTO_SRC_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t st_f32_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

static inline float st_bits_f32(uint32_t u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}

static inline float st_bf16_to_f32(uint16_t h)
{
    return st_bits_f32((uint32_t)h << 16);
}

static inline uint16_t st_f32_to_bf16(float x)
{
    const uint32_t u = st_f32_bits(x), rounded = u + 0x7fffu + ((u >> 16) & 1u);
    return (uint16_t)(((u & 0x7fffffffu) > 0x7f800000u ? u | 0x400000u : rounded) >> 16); /* NaN stays NaN */
}

static inline float st_f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t rest = (uint32_t)(h & 0x7fffu) << 13;
    const uint32_t special = rest >= 0x0f800000u ? 0x7f800000u : 0; /* infinity and NaN */
    /* 2^112 moves the exponent's bias from 15 to 127 and normalises what was denormal */
    return st_bits_f32(sign | special | st_f32_bits(st_bits_f32(rest) * 0x1p112f));
}

static inline uint16_t st_f32_to_f16(float x)
{
    const uint32_t u = st_f32_bits(x), sign = (u >> 16) & 0x8000u;
    const uint32_t a = u & 0x7fffffffu;
    if (a > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | ((a >> 13) & 0x3ffu));
    if (a >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (a < 0x38800000u) { /* below 2^-14: the addition rounds at 2^-24, the step of f16's denormals */
        const uint32_t d = st_f32_bits(st_bits_f32(a) + 0.5f);
        return (uint16_t)(sign | (d - 0x3f000000u));
    }
    return (uint16_t)(sign | ((a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13));
}

#endif
