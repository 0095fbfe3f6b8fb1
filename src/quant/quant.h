/* quant.h: one pair of functions a block type, over whole blocks; sotto/quant.h calls them by table.
 * Rows may come from a mapped file and have any alignment: they are read and written through memcpy of whole blocks. */
#ifndef SOTTO_SRC_QUANT_QUANT_H
#define SOTTO_SRC_QUANT_QUANT_H

#include <stdbool.h>
#include <stdint.h>

#include "quant/blocks.h"
#include "sotto/tensor.h"

/* n is in elements, a multiple of the type's block. importance: one number for each element, at least 0; where a function of
 * the same name without it exists never NULL. */
void st_f16_unpack(const void *src, float *dst, int64_t n);
void st_f16_pack(const float *src, void *dst, int64_t n);
void st_bf16_unpack(const void *src, float *dst, int64_t n);
void st_bf16_pack(const float *src, void *dst, int64_t n);
void st_q4_0_unpack(const void *src, float *dst, int64_t n);
void st_q4_0_pack(const float *src, void *dst, int64_t n);
void st_q4_0_pack_weighted(const float *src, const float *importance, void *dst, int64_t n);
void st_q4_1_unpack(const void *src, float *dst, int64_t n);
void st_q4_1_pack(const float *src, void *dst, int64_t n);
void st_q4_1_pack_weighted(const float *src, const float *importance, void *dst, int64_t n);
void st_q5_0_unpack(const void *src, float *dst, int64_t n);
void st_q5_0_pack(const float *src, void *dst, int64_t n);
void st_q5_0_pack_weighted(const float *src, const float *importance, void *dst, int64_t n);
void st_q5_1_unpack(const void *src, float *dst, int64_t n);
void st_q5_1_pack(const float *src, void *dst, int64_t n);
void st_q5_1_pack_weighted(const float *src, const float *importance, void *dst, int64_t n);
void st_q8_0_unpack(const void *src, float *dst, int64_t n);
void st_q8_0_pack(const float *src, void *dst, int64_t n);
void st_iq4_nl_unpack(const void *src, float *dst, int64_t n);
void st_iq4_nl_pack(const float *src, const float *importance, void *dst, int64_t n);
void st_q2_k_unpack(const void *src, float *dst, int64_t n);
void st_q2_k_pack(const float *src, const float *importance, void *dst, int64_t n);
void st_q3_k_unpack(const void *src, float *dst, int64_t n);
void st_q3_k_pack(const float *src, const float *importance, void *dst, int64_t n);
void st_q4_k_unpack(const void *src, float *dst, int64_t n);
void st_q4_k_pack(const float *src, const float *importance, void *dst, int64_t n);
void st_q5_k_unpack(const void *src, float *dst, int64_t n);
void st_q5_k_pack(const float *src, const float *importance, void *dst, int64_t n);
void st_q6_k_unpack(const void *src, float *dst, int64_t n);
void st_q6_k_pack(const float *src, const float *importance, void *dst, int64_t n);

/* f32, f16 and bf16: numbers without blocks and scales. */
static inline bool st_is_plain_float(sotto_dtype dtype)
{
    return dtype == SOTTO_F32 || dtype == SOTTO_F16 || dtype == SOTTO_BF16;
}

/* Packing what unpacking gave gives the same numbers again: not so where it searches for steps. */
bool st_repacks_exactly(sotto_dtype dtype);

/* x cut towards zero into 0..high; NaN gives 0. */
static inline uint8_t st_quant_level(float x, int high)
{
    if (!(x > 0))
        return 0;
    return (uint8_t)(x < (float)high ? (int)x : high);
}

/* The least and the greatest of the numbers among 32 elements; both 0 when all are NaN. */
static inline void st_block_range(const float *x, float *least, float *greatest)
{
    int first = 0;
    while (first < ST_BLOCK - 1 && x[first] != x[first])
        first++;
    float low = x[first] == x[first] ? x[first] : 0, high = low;
    for (int i = first; i < ST_BLOCK; i++) {
        if (x[i] < low)
            low = x[i];
        if (x[i] > high)
            high = x[i];
    }
    *least = low;
    *greatest = high;
}

/* The element of largest magnitude among 32, with its sign; of equals the first. */
static inline float st_block_extreme(const float *x)
{
    float largest = 0, extreme = 0;
    for (int i = 0; i < ST_BLOCK; i++) {
        const float a = x[i] < 0 ? -x[i] : x[i];
        if (a > largest) {
            largest = a;
            extreme = x[i];
        }
    }
    return extreme;
}

/* 32 codes below 32: their low four bits as blocks.h lays nibbles out, and their fifth bits, which join what is in qh. */
static inline void st_block_put_nibbles(const uint8_t *codes, uint8_t qs[16])
{
    for (int j = 0; j < 16; j++)
        qs[j] = (uint8_t)((codes[j] & 15) | (codes[j + 16] & 15) << 4);
}

static inline void st_block_put_fifths(const uint8_t *codes, uint8_t qh[4])
{
    for (int j = 0; j < ST_BLOCK; j++)
        qh[j / 8] |= (uint8_t)(codes[j] >> 4 << j % 8);
}

/* A row of a channel-wise 8-bit matrix: q = round(x * 127 / max|x|), ties to even; returns the scale max|x| / 127. Rows of
 * smaller numbers than 1e-30 become zeros. Rows that came from such numbers give them again. */
float st_i8_pack(const float *src, int8_t *dst, int64_t n);

#endif
