/* quant.c: rows by element type, through one table. */
#include "sotto/quant.h"

#include <string.h>

#include "quant/quant.h"

typedef struct row_type {
    int block; /* elements; 0 for a number that is no type */
    void (*unpack)(const void *src, float *dst, int64_t n);
    void (*pack)(const float *src, void *dst, int64_t n); /* NULL: pack_weighted does without importance too */
    void (*pack_weighted)(const float *src, const float *importance, void *dst,
                          int64_t n); /* NULL: makes no difference */
} row_type;

static void f32_unpack(const void *src, float *dst, int64_t n)
{
    memmove(dst, src, (size_t)n * sizeof *dst);
}

static void f32_pack(const float *src, void *dst, int64_t n)
{
    memmove(dst, src, (size_t)n * sizeof *src);
}

static void i8_unpack(const void *src, float *dst, int64_t n)
{
    const int8_t *const in = src;
    for (int64_t i = 0; i < n; i++)
        dst[i] = (float)in[i];
}

static void i32_unpack(const void *src, float *dst, int64_t n)
{
    const uint8_t *in = src;
    for (int64_t i = 0; i < n; i++, in += sizeof(int32_t)) {
        int32_t value;
        memcpy(&value, in, sizeof value);
        dst[i] = (float)value;
    }
}

static const row_type types[] = {
    [SOTTO_F32] = {1, f32_unpack, f32_pack, NULL},
    [SOTTO_F16] = {1, st_f16_unpack, st_f16_pack, NULL},
    [SOTTO_BF16] = {1, st_bf16_unpack, st_bf16_pack, NULL},
    [SOTTO_Q4_0] = {ST_BLOCK, st_q4_0_unpack, st_q4_0_pack, st_q4_0_pack_weighted},
    [SOTTO_Q4_1] = {ST_BLOCK, st_q4_1_unpack, st_q4_1_pack, st_q4_1_pack_weighted},
    [SOTTO_Q5_0] = {ST_BLOCK, st_q5_0_unpack, st_q5_0_pack, st_q5_0_pack_weighted},
    [SOTTO_Q5_1] = {ST_BLOCK, st_q5_1_unpack, st_q5_1_pack, st_q5_1_pack_weighted},
    [SOTTO_Q8_0] = {ST_BLOCK, st_q8_0_unpack, st_q8_0_pack, NULL},
    [SOTTO_Q2_K] = {ST_BLOCK_K, st_q2_k_unpack, NULL, st_q2_k_pack},
    [SOTTO_Q3_K] = {ST_BLOCK_K, st_q3_k_unpack, NULL, st_q3_k_pack},
    [SOTTO_Q4_K] = {ST_BLOCK_K, st_q4_k_unpack, NULL, st_q4_k_pack},
    [SOTTO_Q5_K] = {ST_BLOCK_K, st_q5_k_unpack, NULL, st_q5_k_pack},
    [SOTTO_Q6_K] = {ST_BLOCK_K, st_q6_k_unpack, NULL, st_q6_k_pack},
    [SOTTO_IQ4_NL] = {ST_BLOCK, st_iq4_nl_unpack, NULL, st_iq4_nl_pack},
    [SOTTO_I8] = {1, i8_unpack, NULL, NULL},
    [SOTTO_I32] = {1, i32_unpack, NULL, NULL},
};

/* NULL for a number that is no type. */
static const row_type *type_of(sotto_dtype dtype)
{
    const unsigned index = (unsigned)dtype;
    return index < sizeof types / sizeof types[0] && types[index].block ? &types[index] : NULL;
}

static bool whole_blocks(const row_type *type, int64_t n)
{
    return n >= 0 && n % type->block == 0;
}

bool sotto_row_to_f32(sotto_dtype dtype, const void *src, float *dst, int64_t n)
{
    const row_type *const type = type_of(dtype);
    if (!type || !whole_blocks(type, n))
        return false;
    if (n > 0)
        type->unpack(src, dst, n);
    return true;
}

bool sotto_row_from_f32(sotto_dtype dtype, const float *src, void *dst, int64_t n)
{
    return sotto_row_from_f32_weighted(dtype, src, NULL, dst, n);
}

bool sotto_row_from_f32_weighted(sotto_dtype dtype, const float *src, const float *importance, void *dst, int64_t n)
{
    const row_type *const type = type_of(dtype);
    if (!sotto_dtype_can_pack(dtype) || !whole_blocks(type, n))
        return false;
    if (n == 0)
        return true;
    if (type->pack_weighted && (importance || !type->pack))
        type->pack_weighted(src, importance, dst, n);
    else
        type->pack(src, dst, n);
    return true;
}

bool sotto_dtype_can_pack(sotto_dtype dtype)
{
    const row_type *const type = type_of(dtype);
    return type && (type->pack || type->pack_weighted);
}

bool st_repacks_exactly(sotto_dtype dtype)
{
    const row_type *const type = type_of(dtype);
    return type && type->pack;
}
