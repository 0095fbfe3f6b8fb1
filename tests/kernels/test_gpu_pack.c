/* test_gpu_pack.c: matrices in the layout of GPUs hold exactly the file's numbers, as the host unpacks them and as the
 * functions of kernels/weights.krn read them, which are compiled here as the C that they are. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/gpu/gpu_pack.h"
#include "base/half.h"
#include "kernels/guard_support.h"
#include "quant/quant.h"
#include "sotto/quant.h"

/* ---- the words of the dialect that weights.krn uses ---- */

typedef uint8_t uchar;
typedef int8_t schar;
typedef uint16_t half_t, bf16_t;
typedef struct float4_t {
    float x, y, z, w;
} float4_t;
typedef struct uint4_t {
    uint32_t x, y, z, w;
} uint4_t;
typedef struct uint2_t {
    uint32_t x, y;
} uint2_t;

static void load(const void *p, size_t bytes, void *out)
{
    assert_int_equal((uintptr_t)p % bytes, 0); /* devices want vectors aligned */
    memcpy(out, p, bytes);
}

static float4_t load_f4(const float *p)
{
    float4_t v;
    load(p, sizeof v, &v);
    return v;
}
static uint4_t load_u4(const uint32_t *p)
{
    uint4_t v;
    load(p, sizeof v, &v);
    return v;
}
static uint2_t load_u2(const uint32_t *p)
{
    uint2_t v;
    load(p, sizeof v, &v);
    return v;
}
static uint32_t load_u1(const uint32_t *p)
{
    uint32_t v;
    load(p, sizeof v, &v);
    return v;
}

#define FN static
#define GLOBAL
#define UNROLL
#define uint uint32_t
#define ushort uint16_t
#define LDF4(p, i) load_f4((p) + (i))
#define LDU4(p, i) load_u4((p) + (i))
#define LDU2(p, i) load_u2((p) + (i))
#define LDU1(p, i) load_u1((p) + (i))
#define LDH(p, i) st_f16_to_f32((p)[i])
#define LDBF(p, i) st_bf16_to_f32((p)[i])
#define half_f(h) st_f16_to_f32(h)
#define half_lo(u) st_f16_to_f32((uint16_t)((u)&0xffffu))
#define half_hi(u) st_f16_to_f32((uint16_t)((u) >> 16))
#define as_f(u) st_bits_f32(u)
#include "backends/gpu/kernels/weights.krn"

#include "backends/gpu/kernels/blocks.krn"

static float scale_1(const uint8_t *scales, int row)
{
    (void)scales;
    (void)row;
    return 1;
}

/* Kernels of the K types get the type as a number. */
#define BY_NUMBER(name, type)                                                            \
    static struct w8 eight_##name(const uint8_t *numbers, const uint8_t *scales, int at) \
    {                                                                                    \
        return blocks8(type, numbers, scales, at);                                       \
    }                                                                                    \
    static float one_##name(const uint8_t *numbers, const uint8_t *scales, int at)       \
    {                                                                                    \
        return blocks1(type, numbers, scales, at);                                       \
    }
BY_NUMBER(q2_k, SOTTO_Q2_K)
BY_NUMBER(q3_k, SOTTO_Q3_K)
BY_NUMBER(q4_k, SOTTO_Q4_K)
BY_NUMBER(q5_k, SOTTO_Q5_K)
BY_NUMBER(q6_k, SOTTO_Q6_K)
BY_NUMBER(iq4_nl, SOTTO_IQ4_NL)

static const struct {
    sotto_dtype dtype;
    int whole; /* elements of which a row is made */
    struct w8 (*eight)(const uint8_t *numbers, const uint8_t *scales, int at);
    float (*one)(const uint8_t *numbers, const uint8_t *scales, int at);
    float (*row)(const uint8_t *scales, int row);
} types[] = {
    {SOTTO_F32, 1, weights8_f32, weights1_f32, scale_1},     {SOTTO_F16, 1, weights8_f16, weights1_f16, scale_1},
    {SOTTO_BF16, 1, weights8_bf16, weights1_bf16, scale_1},  {SOTTO_I8, 1, weights8_i8, weights1_i8, row_scale_i8},
    {SOTTO_Q8_0, 32, weights8_q8_0, weights1_q8_0, scale_1}, {SOTTO_Q4_0, 32, weights8_q4_0, weights1_q4_0, scale_1},
    {SOTTO_Q4_1, 32, weights8_q4_1, weights1_q4_1, scale_1}, {SOTTO_Q5_0, 32, weights8_q5_0, weights1_q5_0, scale_1},
    {SOTTO_Q5_1, 32, weights8_q5_1, weights1_q5_1, scale_1}, {SOTTO_IQ4_NL, 32, eight_iq4_nl, one_iq4_nl, scale_1},
    {SOTTO_Q2_K, 256, eight_q2_k, one_q2_k, scale_1},        {SOTTO_Q3_K, 256, eight_q3_k, one_q3_k, scale_1},
    {SOTTO_Q4_K, 256, eight_q4_k, one_q4_k, scale_1},        {SOTTO_Q5_K, 256, eight_q5_k, one_q5_k, scale_1},
    {SOTTO_Q6_K, 256, eight_q6_k, one_q6_k, scale_1}};

enum { N_TYPES = sizeof types / sizeof types[0] };

static void same(const char *how, sotto_dtype dtype, int64_t i, float got, float want)
{
    if (got != want && !(isnan(got) && isnan(want)))
        fail_msg("%s, %s: [%lld] is %.9g, expected %.9g", how, sotto_dtype_name(dtype), (long long)i, got, want);
}

/* Where a block's f16 numbers are: in the first four bytes, or, of three K types, in the last two or four. */
static bool is_scale(sotto_dtype dtype, size_t i, size_t block)
{
    const size_t behind = dtype == SOTTO_Q2_K ? 4 : dtype == SOTTO_Q3_K || dtype == SOTTO_Q6_K ? 2 : 0;
    return behind > 0 ? i >= block - behind : i < 4;
}

/* Rows of the file and what they mean. Block types: any bits for quants, scales that are ordinary numbers. */
static void make_rows(int t, int64_t k, int64_t n, uint8_t *rows, float *values)
{
    const size_t row_bytes = sotto_dtype_row_bytes(types[t].dtype, k);
    for (int64_t i = 0; i < k * n; i++)
        values[i] = test_random() * (i % 7 == 0 ? 1e-5f : 3);
    if (types[t].dtype == SOTTO_I8)
        return;
    assert_true(sotto_row_from_f32(types[t].dtype, values, rows, k * n));
    const size_t block = sotto_dtype_bytes(types[t].dtype);
    if (types[t].whole > 1)
        for (size_t b = 0; b < row_bytes * (size_t)n; b += block)
            for (size_t i = 0; i < block; i++)
                if (!is_scale(types[t].dtype, i, block))
                    rows[b + i] = (uint8_t)test_random_bits();
    assert_true(sotto_row_to_f32(types[t].dtype, rows, values, k * n));
}

static void check(int t, int64_t k, int64_t n)
{
    const sotto_dtype dtype = types[t].dtype, from = dtype == SOTTO_I8 ? SOTTO_F32 : dtype;
    const size_t row_bytes = sotto_dtype_row_bytes(from, k);
    uint8_t *rows = malloc(row_bytes * (size_t)n + 1);
    float *values = malloc((size_t)(k * n) * sizeof *values + 1), *out = malloc((size_t)(k * n) * sizeof *out + 1);
    make_rows(t, k, n, rows, values);
    if (dtype == SOTTO_I8)
        memcpy(rows, values, row_bytes * (size_t)n);

    st_gpu_layout l;
    assert_true(st_gpu_layout_of(dtype, k, n, &l));
    assert_int_equal(l.scale_offset % ST_GPU_PLANE_ALIGNMENT, 0);
    assert_true(l.scale_offset >= l.number_row * (size_t)n);
    assert_true(l.bytes >= l.number_row * (size_t)n &&
                (l.scale_row == 0 || l.bytes == l.scale_offset + l.scale_row * (size_t)n));
    uint8_t *device = aligned_alloc(ST_GPU_PLANE_ALIGNMENT, (l.bytes + 255) / 256 * 256 + 256);
    memset(device, 0xff, l.bytes);
    /* in three pieces, out of order */
    const int64_t cut[] = {n / 3, n / 3 + n / 2, 0, n / 3, n / 3 + n / 2, n};
    for (int i = 0; i < 6; i += 2) {
        const int64_t row = cut[i], n_rows = cut[i + 1] - row;
        sotto_error err;
        assert_int_equal(st_gpu_pack_rows(&l, "w", from, rows + (size_t)row * row_bytes, n_rows,
                                          device + (size_t)row * l.number_row,
                                          device + l.scale_offset + (size_t)row * l.scale_row, &err),
                         SOTTO_OK);
    }
    if (dtype == SOTTO_I8) /* what the scalar code makes of the rows */
        for (int64_t r = 0; r < n; r++) {
            int8_t *q = malloc((size_t)k + 1);
            const float scale = st_i8_pack(values + r * k, q, k);
            for (int64_t i = 0; i < k; i++)
                values[r * k + i] = scale * (float)q[i];
            free(q);
        }
    st_gpu_unpack_rows(&l, device, device + l.scale_offset, n, out);
    for (int64_t i = 0; i < k * n; i++)
        same("unpacked", dtype, i, out[i], values[i]);

    const uint8_t *scales = device + l.scale_offset;
    for (int64_t i = 0; i < k * n; i++)
        same("one", dtype, i, types[t].one(device, scales, (int)i) * types[t].row(scales, (int)(i / k)), values[i]);
    for (int64_t i = 0; k % 8 == 0 && i < k * n; i += 8) {
        const struct w8 w = types[t].eight(device, scales, (int)i);
        for (int e = 0; e < 8; e++)
            same("eight", dtype, i + e, w.v[e] * types[t].row(scales, (int)(i / k)), values[i + e]);
    }
    free(rows);
    free(values);
    free(out);
    free(device);
}

static void test_values(void **state)
{
    (void)state;
    test_seed();
    static const int64_t k[] = {1, 7, 8, 33, 64, 200}, n[] = {0, 1, 5, 37};
    for (int t = 0; t < N_TYPES; t++)
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < 4; j++)
                check(t, k[i] * types[t].whole, n[j]);
}

/* Element by element, by hand: a block of q5_1 whose quants are the elements' numbers. */
static void test_by_hand(void **state)
{
    (void)state;
    st_q5_1 block = {.d = st_f32_to_f16(2), .m = st_f32_to_f16(-3)};
    for (int i = 0; i < 16; i++)
        block.qs[i] = (uint8_t)(i | i << 4); /* elements i and i + 16 */
    block.qh[2] = block.qh[3] = 0xff;        /* elements 16..31 are 16 more */
    st_gpu_layout l;
    assert_true(st_gpu_layout_of(SOTTO_Q5_1, 32, 1, &l));
    assert_int_equal(l.number_row, 16);
    assert_int_equal(l.scale_row, 8);
    assert_int_equal(l.scale_offset, 256);
    assert_int_equal(l.bytes, 264);
    uint8_t numbers[16];
    uint32_t scales[2];
    sotto_error err;
    assert_int_equal(st_gpu_pack_rows(&l, "w", SOTTO_Q5_1, &block, 1, numbers, scales, &err), SOTTO_OK);
    for (int i = 0; i < 16; i++)
        assert_int_equal(numbers[i], (2 * i & 15) | (2 * i + 1) % 16 << 4);
    assert_int_equal(scales[0], 0xc2004000u); /* -3 above 2, as halves */
    assert_int_equal(scales[1], 0xffff0000u);
    float out[32];
    st_gpu_unpack_rows(&l, numbers, scales, 1, out);
    for (int i = 0; i < 32; i++)
        assert_true(out[i] == (float)(2 * i - 3));
}

/* The same of q6_k: element e has the code e % 64, and group g the step g - 8. */
static void test_k_by_hand(void **state)
{
    (void)state;
    st_q6_k block = {.d = st_f32_to_f16(0.5f)};
    for (int e = 0; e < 256; e++) {
        block.ql[e / 128 * 64 + e % 64] |= (uint8_t)((e % 64 & 15) << e % 128 / 64 * 4);
        block.qh[e / 128 * 32 + e % 32] |= (uint8_t)(e % 64 >> 4 << e % 128 / 32 * 2);
    }
    for (int g = 0; g < 16; g++)
        block.scales[g] = (int8_t)(g - 8);
    st_gpu_layout l;
    assert_true(st_gpu_layout_of(SOTTO_Q6_K, 256, 1, &l));
    assert_int_equal(l.number_row, 128);
    assert_int_equal(l.scale_row, 4 + 16 + 64);
    uint8_t numbers[128], scales[84];
    sotto_error err;
    assert_int_equal(st_gpu_pack_rows(&l, "w", SOTTO_Q6_K, &block, 1, numbers, scales, &err), SOTTO_OK);
    for (int i = 0; i < 128; i++)
        assert_int_equal(numbers[i], (2 * i & 15) | (2 * i + 1) % 16 << 4);
    for (int i = 0; i < 64; i++)
        assert_int_equal(scales[20 + i], i / 4 % 4 * 0x55); /* sixteen elements of each value */
    for (int g = 0; g < 16; g++)
        assert_int_equal((int8_t)scales[4 + g], g - 8);
    float out[256];
    st_gpu_unpack_rows(&l, numbers, scales, 1, out);
    for (int e = 0; e < 256; e++)
        assert_true(out[e] == 0.5f * (float)(e / 16 - 8) * (float)(e % 64 - 32));
}

static void test_conversions(void **state)
{
    (void)state;
    enum { K = 64, N = 3 };
    float x[N * K], want[K], got[N * K];
    for (int i = 0; i < N * K; i++)
        x[i] = test_random();
    uint16_t halves[N * K];
    assert_true(sotto_row_from_f32(SOTTO_F16, x, halves, N * K));
    st_gpu_layout l;
    assert_true(st_gpu_layout_of(SOTTO_BF16, K, N, &l));
    uint16_t numbers[N * K];
    sotto_error err;
    assert_int_equal(st_gpu_pack_rows(&l, "w", SOTTO_F16, halves, N, numbers, NULL, &err), SOTTO_OK);
    st_gpu_unpack_rows(&l, numbers, NULL, N, got);
    for (int r = 0; r < N; r++) {
        assert_true(sotto_row_to_f32(SOTTO_F16, halves + r * K, want, K));
        for (int i = 0; i < K; i++)
            same("f16 as bf16", SOTTO_BF16, i, got[r * K + i], st_bf16_to_f32(st_f32_to_bf16(want[i])));
    }
    /* numbers without a row scale make no scaled matrix */
    int8_t bytes[K] = {0};
    float scales[1];
    assert_true(st_gpu_layout_of(SOTTO_I8, K, 1, &l));
    assert_int_equal(st_gpu_pack_rows(&l, "w", SOTTO_I8, bytes, 1, numbers, scales, &err), SOTTO_E_UNSUPPORTED);
    assert_string_equal(err.text, "w: rows of i8 cannot be stored as i8");
}

static void test_sizes(void **state)
{
    (void)state;
    st_gpu_layout l;
    assert_false(st_gpu_layout_of(SOTTO_Q4_K, 128, 1, &l));
    assert_false(st_gpu_layout_of(SOTTO_I32, 256, 1, &l));
    assert_false(st_gpu_layout_of(SOTTO_Q4_0, 33, 1, &l));
    assert_false(st_gpu_layout_of(SOTTO_F32, INT64_MAX, 2, &l));
    assert_false(st_gpu_layout_of(SOTTO_I8, INT64_MAX, INT64_MAX, &l));
    assert_false(st_gpu_layout_of(SOTTO_F16, -1, 2, &l));
    assert_true(st_gpu_layout_of(SOTTO_Q8_0, 0, 0, &l));
    assert_int_equal(l.bytes, 0);
    assert_true(st_gpu_layout_of(SOTTO_I8, 5, 3, &l));
    assert_int_equal(l.number_row, 5);
    assert_int_equal(l.scale_offset, 256);
    assert_int_equal(l.bytes, 256 + 12);

    /* bits of a weight in rows of K types, times 1000 */
    static const int thousandths[][2] = {{SOTTO_Q2_K, 2625}, {SOTTO_Q3_K, 3625}, {SOTTO_Q4_K, 4625},
                                         {SOTTO_Q5_K, 5625}, {SOTTO_Q6_K, 6625}, {SOTTO_IQ4_NL, 4500}};
    for (size_t i = 0; i < sizeof thousandths / sizeof *thousandths; i++) {
        assert_true(st_gpu_layout_of((sotto_dtype)thousandths[i][0], 1024, 3, &l));
        assert_int_equal((l.number_row + l.scale_row) * 8 * 1000 / 1024, thousandths[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),      cmocka_unit_test(test_by_hand), cmocka_unit_test(test_k_by_hand),
        cmocka_unit_test(test_conversions), cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
