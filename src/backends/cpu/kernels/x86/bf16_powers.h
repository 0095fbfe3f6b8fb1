/* bf16_powers.h: powers of two in bf16 from a table of mantissas. Needs AVX-512 VBMI. */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_BF16_POWERS_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_BF16_POWERS_H

#include <immintrin.h>
#include <stdint.h>

/* round(128 (2^(i/128) - 1)): the mantissa of 2^(i/128) in bf16 */
static const uint8_t st_bf16_mantissa[128] __attribute__((aligned(64))) = {
    0,   1,   1,   2,   3,   4,   4,   5,   6,   6,   7,   8,   9,   9,   10,  11,  12,  12, 13, 14,  15,  15,
    16,  17,  18,  19,  19,  20,  21,  22,  23,  23,  24,  25,  26,  27,  28,  28,  29,  30, 31, 32,  33,  34,
    34,  35,  36,  37,  38,  39,  40,  41,  42,  42,  43,  44,  45,  46,  47,  48,  49,  50, 51, 52,  53,  54,
    55,  56,  57,  58,  59,  60,  61,  62,  63,  64,  65,  66,  67,  68,  69,  70,  71,  72, 74, 75,  76,  77,
    78,  79,  80,  81,  82,  84,  85,  86,  87,  88,  89,  91,  92,  93,  94,  95,  96,  98, 99, 100, 101, 103,
    104, 105, 106, 108, 109, 110, 111, 113, 114, 115, 117, 118, 119, 121, 122, 123, 125, 126};

/* 2^(x / 128 - 127) in bf16 for 16 + 16 numbers, in the order of _mm512_packus_epi32: 0 below 2^-127 and for NaN, infinite
 * from 2^128 on. A rounded x is the bits of the result but for its mantissa. */
static inline __m512i st_bf16_powers(__m512 a, __m512 b)
{
    const __m512i low = _mm512_load_si512(st_bf16_mantissa), high = _mm512_load_si512(st_bf16_mantissa + 64);
    const __m512i packed = _mm512_packus_epi32(_mm512_cvtps_epi32(a), _mm512_cvtps_epi32(b));
    const __m512i bits = _mm512_min_epu16(packed, _mm512_set1_epi16(0x7f80));
    /* the table where the mask has ones, the exponent elsewhere */
    return _mm512_ternarylogic_epi32(_mm512_set1_epi16(0x7f), _mm512_permutex2var_epi8(low, bits, high), bits, 0xca);
}

#endif
