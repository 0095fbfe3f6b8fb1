/* test_block_products.c: weights of block types as the CPU backend packs them, at every level that this machine has: unpacking
 * gives the file's values bit for bit, products as integers follow the definition of cpu_kernels.h, computed here one number
 * after another, and products in f32 have the bound of test_products.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cpu/cpu_gemm.h"
#include "base/half.h"
#include "kernels/guard_support.h"
#include "kernels/level_support.h"
#include "sotto/quant.h"

#define EPS 0x1p-24

typedef struct type_case {
    sotto_dtype dtype;
    st_cpu_wtype type;
    int halves[2];          /* offsets of f16 numbers in a block; -1: none */
    int quants, quants_end; /* bytes of a block that hold quants; zeros there leave the smallest weights */
} type_case;

static const type_case types[] = {
    {SOTTO_Q8_0, ST_CPU_W_Q8_0, {0, -1}, 2, 34},    {SOTTO_Q4_0, ST_CPU_W_Q4_0, {0, -1}, 2, 18},
    {SOTTO_Q4_1, ST_CPU_W_Q4_1, {0, 2}, 4, 20},     {SOTTO_Q5_0, ST_CPU_W_Q5_0, {0, -1}, 2, 22},
    {SOTTO_Q5_1, ST_CPU_W_Q5_1, {0, 2}, 4, 24},     {SOTTO_IQ4_NL, ST_CPU_W_IQ4_NL, {0, -1}, 2, 18},
    {SOTTO_Q2_K, ST_CPU_W_Q2_K, {80, 82}, 16, 80},  {SOTTO_Q3_K, ST_CPU_W_Q3_K, {108, -1}, 0, 96},
    {SOTTO_Q4_K, ST_CPU_W_Q4_K, {0, 2}, 16, 144},   {SOTTO_Q5_K, ST_CPU_W_Q5_K, {0, 2}, 16, 176},
    {SOTTO_Q6_K, ST_CPU_W_Q6_K, {208, -1}, 0, 192},
};
enum { N_TYPES = sizeof types / sizeof types[0] };

typedef struct product_case {
    int64_t m, n, blocks; /* k is so many blocks of the type */
} product_case;

static const product_case cases[] = {{1, 1, 1},  {1, 33, 3},  {2, 32, 2},  {3, 70, 1}, {4, 31, 17},
                                     {5, 40, 3}, {6, 64, 2},  {7, 33, 49}, {8, 32, 1}, {9, 40, 2},
                                     {13, 5, 4}, {16, 33, 1}, {130, 34, 3}};
enum { N_CASES = sizeof cases / sizeof cases[0] };

static size_t row_bytes(const type_case *t, int64_t k)
{
    return sotto_dtype_row_bytes(t->dtype, k);
}

/* Rows of random bytes, ones and zeros, with finite scales: some zero, some denormal, some large. */
static uint8_t *random_rows(const type_case *t, int64_t n, int64_t k)
{
    uint8_t *rows = guard_alloc((size_t)n * row_bytes(t, k));
    const size_t bytes = row_bytes(t, sotto_dtype_block(t->dtype));
    for (size_t at = 0; at < (size_t)n * row_bytes(t, k); at += bytes) {
        const uint32_t kind = test_random_bits() % 8;
        for (size_t i = 0; i < bytes; i++)
            rows[at + i] = kind == 0 ? 0xff : kind == 1 ? 0 : kind == 2 ? 0x80 : (uint8_t)(test_random_bits() >> 9);
        for (int h = 0; h < 2 && t->halves[h] >= 0; h++) {
            const uint32_t size = test_random_bits() % 16;
            const uint16_t half = st_f32_to_f16(test_random() * (size == 0   ? 0.0f
                                                                 : size == 1 ? 1e-6f
                                                                 : size == 2 ? 300.0f
                                                                             : 1.0f));
            memcpy(rows + at + t->halves[h], &half, 2);
        }
    }
    return rows;
}

static uint8_t *packed_rows(const type_case *t, const uint8_t *rows, int64_t n, int64_t k)
{
    uint8_t *packed = guard_alloc(st_cpu_packed_bytes(t->type, n, k));
    const int64_t half = n / 2;
    st_cpu_pack_rows(t->type, k, rows, 0, half, packed);
    st_cpu_pack_rows(t->type, k, rows + (size_t)half * row_bytes(t, k), half, n - half, packed);
    return packed;
}

static void test_pack(void **state)
{
    (void)state;
    test_seed();
    static const int64_t n_list[] = {1, 31, 32, 33, 70};
    for (size_t ti = 0; ti < N_TYPES; ti++) {
        const type_case *t = &types[ti];
        st_cpu_wtype found;
        assert_true(st_cpu_wtype_of(t->dtype, &found));
        assert_int_equal(found, t->type);
        for (size_t ni = 0; ni < sizeof n_list / sizeof n_list[0]; ni++) {
            for (int64_t blocks = 1; blocks <= 3; blocks++) {
                const int64_t n = n_list[ni], k = blocks * sotto_dtype_block(t->dtype);
                assert_int_equal(st_cpu_row_bytes(t->type, k), row_bytes(t, k));
                const uint8_t *rows = random_rows(t, n, k), *packed = packed_rows(t, rows, n, k);
                float *want = malloc((size_t)k * 4), *got = guard_alloc((size_t)k * 4);
                for (int64_t r = 0; r < n; r++) {
                    assert_true(sotto_row_to_f32(t->dtype, rows + (size_t)r * row_bytes(t, k), want, k));
                    st_cpu_unpack_row(t->type, k, packed, r, got);
                    assert_memory_equal(got, want, (size_t)k * 4);
                }
                free(want);
            }
        }
        guard_free_all();
    }
}

/* The definition of st_cpu_left8. */
static float to_integers(const float *x, int *q)
{
    float most = 0;
    for (int i = 0; i < 32; i++)
        most = fmaxf(most, fabsf(x[i]));
    for (int i = 0; i < 32; i++)
        q[i] = most >= 1e-30f ? (int)rintf(x[i] * (127.0f / most)) : 0;
    return most >= 1e-30f ? most / 127.0f : 0;
}

static void fill_row(float *x, int64_t k, int64_t row)
{
    for (int64_t i = 0; i < k; i++) {
        const float v = test_random();
        x[i] = row % 8 == 1   ? fabsf(v)
               : row % 8 == 2 ? (i % 64 < 32 ? v : 0.0f)
               : row % 8 == 3 ? 0.25f
               : row % 8 == 4 ? 0.0f
               : row % 8 == 5 ? v * (i / 32 % 2 == 0 ? 1e-36f : 1e-20f)
               : row % 8 == 6 ? v * 1e20f
                              : v * (i % 7 == 0 ? 30.0f : 1.0f);
    }
}

static void run_product(const st_cpu_kernels *k, const st_cpu_left *left, const st_cpu_right *right,
                        const st_cpu_epilogue *e, int64_t m)
{
    const int tile = st_cpu_gemm_tile(k, right, m), rows = ST_CPU_ROW_BLOCK / tile * tile;
    float *scratch = guard_alloc(4 * st_cpu_gemm_scratch(m < rows ? m : rows, right->k));
    for (int64_t row = 0; row < m; row += rows) {
        const int n = (int)(m - row < rows ? m - row : rows);
        st_cpu_gemm_pack(k, left, right, m, row, n, scratch);
        for (int64_t p = 0; p < st_cpu_panels(right->n); p += 2)
            st_cpu_gemm_panels(k, right, e, m, row, n, p, st_cpu_panels(right->n) - p < 2 ? 1 : 2, scratch);
    }
}

/* The smallest weights: what is left of a row without its quants. */
static void without_quants(const type_case *t, const uint8_t *row, int64_t k, uint8_t *copy, float *out)
{
    memcpy(copy, row, row_bytes(t, k));
    for (size_t at = 0; at < row_bytes(t, k); at += row_bytes(t, sotto_dtype_block(t->dtype))) {
        memset(copy + at + t->quants, t->dtype == SOTTO_Q8_0 ? 0x80 : 0, (size_t)(t->quants_end - t->quants));
    }
    assert_true(sotto_row_to_f32(t->dtype, copy, out, k));
}

/* The left side as it meets the weights. */
typedef enum left_side { WHOLE, BYTES, TWO_BYTES, N_SIDES } left_side;

/* What 32 elements stand for in so many bytes each. */
static void stand_for(const float *x, int n_bytes, double *out)
{
    float rest[32];
    memcpy(rest, x, sizeof rest);
    memset(out, 0, 32 * sizeof *out);
    for (int b = 0; b < n_bytes; b++) {
        int q[32];
        const float scale = to_integers(rest, q);
        for (int l = 0; l < 32; l++) {
            out[l] += (double)scale * q[l];
            rest[l] = rest[l] - scale * (float)q[l];
        }
    }
}

static void check_case(const st_cpu_kernels *k, const type_case *t, const product_case *c, left_side side)
{
    const bool two = side == TWO_BYTES, int8 = side == BYTES || (two && c->m <= ST_CPU_ROW_BLOCK / 2);
    const int64_t kk = c->blocks * sotto_dtype_block(t->dtype);
    const uint8_t *rows = random_rows(t, c->n, kk), *packed = packed_rows(t, rows, c->n, kk);
    float *x = guard_alloc((size_t)(c->m * kk) * 4), *y = guard_floats((size_t)(c->m * c->n));
    for (int64_t i = 0; i < c->m; i++)
        fill_row(x + i * kk, kk, i + (c->m == 1 ? c->n : 0));
    const float *bias = guard_floats((size_t)c->n), *residual = guard_floats((size_t)(c->m * c->n));
    const st_cpu_left left = {.x = x, .n1 = c->m, .n2 = 1, .stride1 = (ptrdiff_t)kk};
    const st_cpu_right right = {t->type, c->n, kk, packed, true, two, side == BYTES, false};
    const st_cpu_epilogue e = {y, (ptrdiff_t)c->n, bias, residual, (ptrdiff_t)c->n, SOTTO_ACT_NONE};
    run_product(k, &left, &right, &e, c->m);
    double *xs = malloc((size_t)(c->m * kk) * sizeof *xs);
    for (int64_t i = 0; i < c->m * kk; i += 32) {
        stand_for(x + i, two ? 2 : 1, xs + i);
        for (int l = 0; l < 32 && !int8; l++)
            xs[i + l] = (double)x[i + l];
    }
    float *w = malloc((size_t)kk * 4), *least = malloc((size_t)kk * 4);
    uint8_t *copy = malloc(row_bytes(t, kk));
    for (int64_t j = 0; j < c->n; j++) {
        const uint8_t *row = rows + (size_t)j * row_bytes(t, kk);
        assert_true(sotto_row_to_f32(t->dtype, row, w, kk));
        without_quants(t, row, kk, copy, least);
        for (int64_t i = 0; i < c->m; i++) {
            double sum = (double)bias[j] + residual[i * c->n + j], size = fabs(bias[j]) + fabs(residual[i * c->n + j]);
            for (int64_t l = 0; l < kk; l++) {
                sum += xs[i * kk + l] * w[l];
                size += fabs(xs[i * kk + l]) * (int8 ? fabsf(least[l]) + fabs((double)w[l] - least[l]) : fabsf(w[l]));
            }
            const double got = y[i * c->n + j];
            const double bound = (int8 ? (double)kk / 16 + 12 : (double)kk + 8) * EPS * size + 1e-35;
            if (!(fabs(got - sum) <= bound))
                fail_msg("%s %s%s %lldx%lldx%lld: [%lld,%lld] is %.9g, expected %.9g within %.3g",
                         st_cpu_level_name(k->level), sotto_dtype_name(t->dtype),
                         !int8 ? ""
                         : two ? " two bytes"
                               : " int8",
                         (long long)c->m, (long long)c->n, (long long)kk, (long long)i, (long long)j, got, sum, bound);
        }
    }
    free(xs);
    free(w);
    free(least);
    free(copy);
    guard_free_all();
}

static void check_products(const st_cpu_kernels *k)
{
    for (size_t t = 0; t < N_TYPES; t++) {
        for (size_t c = 0; c < N_CASES; c++) {
            for (int side = WHOLE; side < N_SIDES; side++)
                check_case(k, &types[t], &cases[c], (left_side)side);
        }
    }
}

static void test_products(void **state)
{
    (void)state;
    each_level(check_products);
}

/* One block of a type without minima: the integer itself can be seen. All sorts of quants meet the largest left sides. */
static void check_integers(const st_cpu_kernels *k)
{
    enum { N = 64 };
    static const st_cpu_wtype list[] = {ST_CPU_W_Q8_0, ST_CPU_W_Q4_0, ST_CPU_W_Q5_0, ST_CPU_W_IQ4_NL};
    for (size_t ti = 0; ti < N_TYPES; ti++) {
        const type_case *t = &types[ti];
        bool wanted = false;
        for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
            wanted |= list[i] == t->type;
        for (int m = 1; wanted && m <= 18; m++) { /* more than a tile */
            uint8_t *rows = random_rows(t, N, 32);
            for (int64_t j = 0; j < N; j++) { /* scale 1 */
                rows[(size_t)j * row_bytes(t, 32)] = 0;
                rows[(size_t)j * row_bytes(t, 32) + 1] = 0x3c;
            }
            const uint8_t *packed = packed_rows(t, rows, N, 32);
            float *x = guard_alloc((size_t)m * 128), *y = guard_alloc((size_t)m * N * 4), w[32];
            for (int64_t i = 0; i < m * 32; i++)
                x[i] = i % 32 == 0 || i / 32 % 4 == 1 ? 127 : i / 32 % 4 == 2 ? -127 : rintf(127 * test_random());
            const st_cpu_left left = {.x = x, .n1 = m, .n2 = 1, .stride1 = 32};
            const st_cpu_right right = {t->type, N, 32, packed, false, false, true, false};
            const st_cpu_epilogue e = {.out = y, .out_stride = N};
            run_product(k, &left, &right, &e, m);
            for (int64_t j = 0; j < N; j++) {
                assert_true(sotto_row_to_f32(t->dtype, rows + (size_t)j * row_bytes(t, 32), w, 32));
                for (int64_t i = 0; i < m; i++) {
                    float sum = 0; /* exact */
                    for (int l = 0; l < 32; l++)
                        sum += w[l] * x[i * 32 + l];
                    if (sum != y[i * N + j])
                        fail_msg("%s %s: row %d of %d is %.9g, expected %.9g", st_cpu_level_name(k->level),
                                 sotto_dtype_name(t->dtype), (int)i, m, y[i * N + j], sum);
                }
            }
            guard_free_all();
        }
    }
}

static void test_integers(void **state)
{
    (void)state;
    each_level(check_integers);
}

/* Infinity and NaN in one row stay in that row, whatever the weights are. */
static void check_special(const st_cpu_kernels *k)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t ti = 0; ti < N_TYPES; ti++) {
        const type_case *t = &types[ti];
        for (int m = 1; m <= 9; m += 4) {
            const int64_t n = 33, kk = 2 * sotto_dtype_block(t->dtype);
            const uint8_t *packed = packed_rows(t, random_rows(t, n, kk), n, kk);
            float *x = guard_floats((size_t)(m * kk)), *y = guard_floats((size_t)(m * n));
            for (int i = 0; i < m; i += 2)
                x[i * kk + test_random_bits() % (uint32_t)kk] = bad[test_random_bits() % 3];
            const st_cpu_left left = {.x = x, .n1 = m, .n2 = 1, .stride1 = (ptrdiff_t)kk};
            const st_cpu_right right = {t->type, n, kk, packed, false, false, true, false};
            const st_cpu_epilogue e = {.out = y, .out_stride = (ptrdiff_t)n};
            run_product(k, &left, &right, &e, m);
            for (int64_t i = 0; i < m * n; i++)
                assert_true(i / n % 2 == 0 ? !isfinite(y[i]) : isfinite(y[i]));
            guard_free_all();
        }
    }
}

static void test_special(void **state)
{
    (void)state;
    each_level(check_special);
}

/* Packed rows are the same on every level but for the fixes of 8-bit weights. */
static void check_left(const st_cpu_kernels *k)
{
    enum { K = 96 };
    float *x = guard_alloc(K * 4);
    for (int64_t row = 0; row < 16; row++) {
        fill_row(x, K, row);
        st_cpu_left8 *got = guard_alloc(3 * sizeof *got);
        k->dot.pack_row(ST_CPU_W_Q2_K, x, K, got, 1);
        for (int b = 0; b < 3; b++) {
            int q[32];
            const float scale = to_integers(x + 32 * b, q);
            assert_true(memcmp(&scale, &got[b].scale, 4) == 0);
            for (int g = 0; g < 2; g++) {
                int sum = 0;
                for (int i = 16 * g; i < 16 * g + 16; i++) {
                    assert_int_equal(got[b].q[i], q[i]);
                    sum += q[i];
                }
                float fix;
                memcpy(&fix, &got[b].fix[g], 4);
                assert_true(fix == -(scale * (float)sum));
            }
        }
    }
    guard_free_all();
}

static void test_left(void **state)
{
    (void)state;
    each_level(check_left);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pack), cmocka_unit_test(test_left),
                                       cmocka_unit_test(test_integers), cmocka_unit_test(test_products),
                                       cmocka_unit_test(test_special)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
