/* test_narrow.c: 8-bit and bf16 products of every level that this machine has. 8-bit: the same bits as the definition in
 * cpu_kernels.h, computed here one number after another. bf16: double sums over rounded operands, bound (k + 8) eps
 * sum|a b|. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cpu/cpu_gemm.h"
#include "base/cpu.h"
#include "base/half.h"
#include "kernels/guard_support.h"
#include "kernels/level_support.h"
#include "quant/quant.h"

#define EPS 0x1p-24

typedef struct product_case {
    int64_t m, n, k;
} product_case;

static const product_case cases[] = {{1, 32, 64},    {2, 33, 65},    {3, 1, 1},     {5, 70, 544},  {8, 31, 33},
                                     {12, 64, 512},  {13, 40, 100},  {16, 32, 128}, {17, 33, 100}, {31, 65, 63},
                                     {33, 34, 96},   {61, 32, 200},  {129, 35, 72}, {260, 64, 64}, {75, 70, 1500},
                                     {128, 40, 700}, {22, 300, 1100}};
enum { N_CASES = sizeof cases / sizeof cases[0] };

/* Rows of all sorts: mixed, positive, negative, constant, zero, tiny and large ranges. */
static void fill_row(float *x, int64_t k, int64_t row)
{
    for (int64_t i = 0; i < k; i++) {
        const float v = test_random();
        x[i] = row % 8 == 1   ? fabsf(v)
               : row % 8 == 2 ? -fabsf(v)
               : row % 8 == 3 ? 0.25f
               : row % 8 == 4 ? 0.0f
               : row % 8 == 5 ? v * 1e-36f
               : row % 8 == 6 ? v * 1e30f
                              : v;
    }
}

/* The definition, in f32 steps. */
static float to_integers(const float *x, int64_t k, float steps, int *q, int *zero)
{
    float low = 0, high = 0;
    for (int64_t i = 0; i < k; i++) {
        low = fminf(low, x[i]);
        high = fmaxf(high, x[i]);
    }
    *zero = 0;
    memset(q, 0, (size_t)k * sizeof *q);
    if (high == low || steps / (high - low) > 3e38f)
        return 0;
    const float inverse = steps / (high - low);
    *zero = (int)rintf(-low * inverse);
    for (int64_t i = 0; i < k; i++)
        q[i] = (int)rintf(fminf(fmaxf(x[i] * inverse, (float)-*zero), steps - (float)*zero)) + *zero;
    return (high - low) / steps;
}

static void run_product(const st_cpu_kernels *k, const st_cpu_left *left, const st_cpu_right *right,
                        const st_cpu_epilogue *e, int64_t m)
{
    const int tile = st_cpu_gemm_tile(k, right, m), rows = ST_CPU_ROW_BLOCK / tile * tile;
    float *scratch = guard_alloc(4 * st_cpu_gemm_scratch(m < rows ? m : rows, right->k));
    for (int64_t row = 0; row < m; row += rows) {
        const int n = (int)(m - row < rows ? m - row : rows);
        st_cpu_gemm_pack(k, left, right, m, row, n, scratch);
        st_cpu_gemm_panels(k, right, e, m, row, n, 0, st_cpu_panels(right->n), scratch);
    }
}

/* What products of the rows x with quantized ones, as st_cpu_row_bytes() has them, are by the definition. */
static void expect_i8(const st_cpu_kernels *k, const product_case *c, bool fine, const float *x, const uint8_t *rows,
                      const st_cpu_epilogue *e)
{
    const size_t row_bytes = st_cpu_row_bytes(ST_CPU_W_I8, c->k);
    int *q = malloc((size_t)c->k * sizeof *q);
    for (int64_t i = 0; i < c->m; i++) {
        int zero;
        const float scale = to_integers(x + i * c->k, c->k, fine ? 65535.0f : 255.0f, q, &zero);
        for (int64_t j = 0; j < c->n; j++) {
            const int8_t *weights = (int8_t *)rows + row_bytes * (size_t)j + 4;
            int64_t high = 0, low = 0; /* fine: of the two bytes of a number */
            for (int64_t l = 0; l < c->k; l++) {
                high += (int64_t)(fine ? (q[l] >> 8) - (zero >> 8) : q[l] - zero) * weights[l];
                low += (int64_t)((q[l] & 255) - (zero & 255)) * weights[l];
            }
            const float sum = (float)(fine ? high * 256 + low : high); /* rounded once */
            float column;
            memcpy(&column, weights - 4, 4);
            const float want = sum * (scale * column) + e->bias[j] + e->residual[i * c->n + j];
            if (memcmp(&want, &e->out[i * c->n + j], 4) != 0 && !(want == 0 && e->out[i * c->n + j] == 0))
                fail_msg("%s i8%s %lldx%lldx%lld: [%lld,%lld] is %.9g, expected %.9g", st_cpu_level_name(k->level),
                         fine ? " fine" : "", (long long)c->m, (long long)c->n, (long long)c->k, (long long)i,
                         (long long)j, e->out[i * c->n + j], want);
        }
    }
    free(q);
}

static void check_i8_row(const st_cpu_kernels *k, const product_case *c, bool fine)
{
    const size_t row_bytes = st_cpu_row_bytes(ST_CPU_W_I8, c->k);
    uint8_t *rows = guard_alloc(row_bytes * (size_t)c->n),
            *packed = guard_alloc(st_cpu_packed_bytes(ST_CPU_W_I8, c->n, c->k));
    float *w = malloc((size_t)c->k * 4), *got = malloc((size_t)c->k * 4);
    for (int64_t j = 0; j < c->n; j++) {
        for (int64_t i = 0; i < c->k; i++)
            w[i] = j % 5 == 4 ? 0.0f : j % 5 == 3 ? copysignf(1.0f, test_random()) : test_random();
        const float scale = st_i8_pack(w, (int8_t *)rows + row_bytes * (size_t)j + 4, c->k);
        memcpy(rows + row_bytes * (size_t)j, &scale, 4);
    }
    st_cpu_pack_rows(ST_CPU_W_I8, c->k, rows, 0, c->n / 2, packed);
    st_cpu_pack_rows(ST_CPU_W_I8, c->k, rows + row_bytes * (size_t)(c->n / 2), c->n / 2, c->n - c->n / 2, packed);
    float *x = guard_alloc((size_t)(c->m * c->k) * 4), *y = guard_floats((size_t)(c->m * c->n));
    for (int64_t i = 0; i < c->m; i++)
        fill_row(x + i * c->k, c->k, i);
    const float *bias = guard_floats((size_t)c->n), *residual = guard_floats((size_t)(c->m * c->n));
    const st_cpu_left left = {.x = x, .n1 = c->m, .n2 = 1, .stride1 = (ptrdiff_t)c->k};
    const st_cpu_right right = {ST_CPU_W_I8, c->n, c->k, packed, false, fine, false, false};
    const st_cpu_epilogue e = {y, (ptrdiff_t)c->n, bias, residual, (ptrdiff_t)c->n, SOTTO_ACT_NONE};
    run_product(k, &left, &right, &e, c->m);
    expect_i8(k, c, fine, x, rows, &e);
    for (int64_t j = 0; j < c->n; j++) {
        st_cpu_unpack_row(ST_CPU_W_I8, c->k, packed, j, got);
        for (int64_t l = 0; l < c->k; l++) {
            float column;
            memcpy(&column, rows + row_bytes * (size_t)j, 4);
            assert_true(got[l] == column * (float)((int8_t *)rows)[row_bytes * (size_t)j + 4 + (size_t)l]);
        }
    }
    free(w);
    free(got);
    guard_free_all();
}

static void check_i8(const st_cpu_kernels *k, const product_case *c)
{
    check_i8_row(k, c, false);
    check_i8_row(k, c, true);
}

static void check_bf16(const st_cpu_kernels *k, const product_case *c)
{
    uint16_t *rows = guard_alloc((size_t)(c->n * c->k) * 2);
    uint8_t *packed = guard_alloc(st_cpu_packed_bytes(ST_CPU_W_BF16, c->n, c->k));
    for (int64_t i = 0; i < c->n * c->k; i++)
        rows[i] = st_f32_to_bf16(test_random());
    st_cpu_pack_rows(ST_CPU_W_BF16, c->k, rows, 0, c->n, packed);
    const float *x = guard_floats((size_t)(c->m * c->k)), *bias = guard_floats((size_t)c->n);
    float *y = guard_floats((size_t)(c->m * c->n));
    const st_cpu_left left = {.x = x, .n1 = c->m, .n2 = 1, .stride1 = (ptrdiff_t)c->k};
    const st_cpu_right right = {ST_CPU_W_BF16, c->n, c->k, packed, true, false, false, false};
    const st_cpu_epilogue e = {y, (ptrdiff_t)c->n, bias, NULL, 0, SOTTO_ACT_NONE};
    run_product(k, &left, &right, &e, c->m);
    for (int64_t i = 0; i < c->m; i++) {
        for (int64_t j = 0; j < c->n; j++) {
            double sum = bias[j], size = fabs(bias[j]);
            for (int64_t l = 0; l < c->k; l++) {
                const double p = (double)st_bf16_to_f32(st_f32_to_bf16(x[i * c->k + l])) *
                                 (double)st_bf16_to_f32(rows[j * c->k + l]);
                sum += p;
                size += fabs(p);
            }
            const double got = y[i * c->n + j], bound = (double)(c->k + 8) * EPS * size + 1e-34;
            if (!(fabs(got - sum) <= bound))
                fail_msg("%s bf16 %lldx%lldx%lld: [%lld,%lld] is %.9g, expected %.9g within %.3g",
                         st_cpu_level_name(k->level), (long long)c->m, (long long)c->n, (long long)c->k, (long long)i,
                         (long long)j, got, sum, bound);
        }
    }
    guard_free_all();
}

/* Activations: of what comes out without them. */
static void check_activations(const st_cpu_kernels *k, const product_case *c)
{
    static const sotto_activation acts[] = {SOTTO_ACT_GELU, SOTTO_ACT_RELU, SOTTO_ACT_SILU};
    for (int bf16 = 0; bf16 < 2; bf16++) {
        const st_cpu_wtype type = bf16 ? ST_CPU_W_BF16 : ST_CPU_W_I8;
        const size_t row_bytes = st_cpu_row_bytes(type, c->k);
        uint8_t *packed = guard_alloc(st_cpu_packed_bytes(type, c->n, c->k)), *row = malloc(row_bytes);
        for (int64_t j = 0; j < c->n; j++) {
            for (int64_t i = 0; i < c->k; i++) {
                const float w = test_random() * 0.25f;
                if (bf16)
                    memcpy(row + 2 * i, &(uint16_t){st_f32_to_bf16(w)}, 2);
                else
                    row[4 + i] = (uint8_t)(int8_t)(w * 127);
            }
            if (!bf16)
                memcpy(row, &(float){0.01f}, 4);
            st_cpu_pack_rows(type, c->k, row, j, 1, packed);
        }
        free(row);
        const float *x = guard_floats((size_t)(c->m * c->k)), *residual = guard_floats((size_t)(c->m * c->n));
        float *plain = guard_floats((size_t)(c->m * c->n)), *y = guard_floats((size_t)(c->m * c->n));
        const st_cpu_left left = {.x = x, .n1 = c->m, .n2 = 1, .stride1 = (ptrdiff_t)c->k};
        const st_cpu_right right = {type, c->n, c->k, packed, bf16 != 0, false, false, false};
        st_cpu_epilogue e = {.out = plain, .out_stride = (ptrdiff_t)c->n};
        run_product(k, &left, &right, &e, c->m);
        for (size_t a = 0; a < sizeof acts / sizeof acts[0]; a++) {
            e = (st_cpu_epilogue){y, (ptrdiff_t)c->n, NULL, residual, (ptrdiff_t)c->n, acts[a]};
            run_product(k, &left, &right, &e, c->m);
            for (int64_t i = 0; i < c->m * c->n; i++) {
                const double v = plain[i], r = residual[i];
                const double want = r + (acts[a] == SOTTO_ACT_GELU   ? v / 2 * (1 + erf(v * sqrt(0.5)))
                                         : acts[a] == SOTTO_ACT_RELU ? fmax(v, 0)
                                                                     : v / (1 + exp(-v)));
                if (!(fabs(y[i] - want) <= 3e-6 + 1e-6 * fabs(v) + EPS * fabs(want)))
                    fail_msg("%s %s activation %d at %lld: %.9g becomes %.9g, expected %.9g",
                             st_cpu_level_name(k->level), bf16 ? "bf16" : "i8", (int)acts[a], (long long)i, v, y[i],
                             want);
            }
        }
        guard_free_all();
    }
}

/* Infinity and NaN in one row stay in that row. */
static void check_special(const st_cpu_kernels *k, const product_case *c)
{
    uint8_t *i8 = guard_alloc(st_cpu_packed_bytes(ST_CPU_W_I8, c->n, c->k));
    uint8_t *row = malloc(st_cpu_row_bytes(ST_CPU_W_I8, c->k));
    memset(row, 1, st_cpu_row_bytes(ST_CPU_W_I8, c->k));
    const float one = 1;
    memcpy(row, &one, 4);
    for (int64_t j = 0; j < c->n; j++)
        st_cpu_pack_rows(ST_CPU_W_I8, c->k, row, j, 1, i8);
    free(row);
    float *x = guard_floats((size_t)(c->m * c->k)), *y = guard_floats((size_t)(c->m * c->n));
    x[0] = NAN;
    x[c->m * c->k - 1] = INFINITY;
    const st_cpu_left left = {.x = x, .n1 = c->m, .n2 = 1, .stride1 = (ptrdiff_t)c->k};
    const st_cpu_right right = {ST_CPU_W_I8, c->n, c->k, i8, false, false, false, false};
    const st_cpu_epilogue e = {.out = y, .out_stride = (ptrdiff_t)c->n};
    run_product(k, &left, &right, &e, c->m);
    for (int64_t i = 0; i < c->m * c->n; i++) {
        const bool bad = i / c->n == 0 || i / c->n == c->m - 1;
        assert_true(bad ? !isfinite(y[i]) : isfinite(y[i]));
    }
    guard_free_all();
}

static void check_to_i8(const st_cpu_kernels *k, const product_case *c)
{
    for (int64_t row = 0; row < 12; row++) {
        float *x = guard_alloc((size_t)c->k * 4);
        int8_t *got = guard_alloc((size_t)c->k), *want = malloc((size_t)c->k);
        fill_row(x, c->k, row);
        if (row == 9)
            x[c->k / 2] = NAN;
        if (row == 10)
            x[c->k - 1] = INFINITY;
        const float a = k->to_i8(x, got, c->k), b = st_i8_pack(x, want, c->k);
        assert_true(memcmp(&a, &b, sizeof a) == 0);
        assert_memory_equal(got, want, (size_t)c->k);
        free(want);
    }
    guard_free_all();
}

#define OVER_CASES(CHECK)                              \
    static void CHECK##_cases(const st_cpu_kernels *k) \
    {                                                  \
        for (size_t i = 0; i < N_CASES; i++)           \
            CHECK(k, &cases[i]);                       \
    }
OVER_CASES(check_i8)
OVER_CASES(check_to_i8)
OVER_CASES(check_bf16)
OVER_CASES(check_activations)
OVER_CASES(check_special)

static void test_i8(void **state)
{
    (void)state;
    each_level(check_i8_cases);
}

static void test_to_i8(void **state)
{
    (void)state;
    each_level(check_to_i8_cases);
}

static void test_bf16(void **state)
{
    (void)state;
    each_level(check_bf16_cases);
}

static void test_activations(void **state)
{
    (void)state;
    each_level(check_activations_cases);
}

static void test_special(void **state)
{
    (void)state;
    each_level(check_special_cases);
}

/* The largest sums: no step may saturate. Whole tiles and rows left over, of numbers that are all at one end of their range. */
static void check_extremes_of(const st_cpu_kernels *k, int64_t kk, int x_sign, int w_sign)
{
    enum { ROWS = 35, COLUMNS = 33 };
    uint8_t *row = malloc(st_cpu_row_bytes(ST_CPU_W_I8, kk));
    float *x = malloc((size_t)kk * 4), y[ROWS * COLUMNS];
    for (int64_t i = 0; i < kk; i++)
        x[i] = (float)(255 * x_sign);
    memcpy(row, &(float){1}, 4);
    memset(row + 4, w_sign < 0 ? -127 & 255 : 127, (size_t)kk);
    uint8_t *packed = guard_alloc(st_cpu_packed_bytes(ST_CPU_W_I8, COLUMNS, kk));
    for (int i = 0; i < COLUMNS; i++)
        st_cpu_pack_rows(ST_CPU_W_I8, kk, row, i, 1, packed);
    const st_cpu_left left = {.x = x, .n1 = ROWS, .n2 = 1}; /* the same row again */
    const st_cpu_right right = {ST_CPU_W_I8, COLUMNS, kk, packed, false, false, false, false};
    const st_cpu_epilogue e = {.out = y, .out_stride = COLUMNS};
    run_product(k, &left, &right, &e, ROWS);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        assert_true(y[i] == (float)(x_sign * w_sign * 255 * 127 * (int)kk));
    free(row);
    free(x);
    guard_free_all();
}

static void check_extremes(const st_cpu_kernels *k)
{
    static const int64_t sizes[] = {5120, 32768, 33000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int signs = 0; signs < 4; signs++)
            check_extremes_of(k, sizes[i], signs & 1 ? -1 : 1, signs & 2 ? -1 : 1);
}

static void test_extremes(void **state)
{
    (void)state;
    each_level(check_extremes);
}

/* Pairs of weights that instructions for sums of two products of bytes saturate with, and pairs that just do not. */
static void fill_pairs(int8_t *w, int64_t k, int kind)
{
    for (int64_t i = 0; i < k; i++) {
        const float v = test_random();
        const int8_t most = (int8_t)(v < 0 ? -127 : 127), sign = (int8_t)(i % 4 < 2 ? 1 : -1);
        const int8_t limit[] = {(int8_t)(64 * sign), (int8_t)((i & 1 ? 65 : 64) * sign),
                                (int8_t)((i & 1 ? 1 : 127) * sign), (int8_t)((i & 1 ? 127 : 2) * sign)};
        const int8_t kinds[] = {
            127, -127, -128, most, limit[i / 8 % 4], (int8_t)(i / 2 % 59 == 7 ? 127 * sign : 30 * v) /* a few */};
        w[i] = kinds[kind];
    }
}

/* Rows with their zero at an end and between, all at an end, and with few large numbers. */
static void fill_end(float *x, int64_t k, int64_t row)
{
    for (int64_t i = 0; i < k; i++) {
        const float v = test_random();
        const float kinds[] = {1, -1, v, fabsf(v) < 0.9f ? 0.1f * v : v, v < 0 ? 0 : 1, fabsf(v), -fabsf(v)};
        x[i] = kinds[row % 7];
    }
    if (row % 3 == 0 && k > 1)
        x[k - 1] = -x[0];
}

static void check_saturation(const st_cpu_kernels *k)
{
    static const int64_t sizes[] = {64, 3, 322, 256, 130, 577, 1100};
    for (int64_t m = 1; m <= 130; m++) {
        const product_case c = {m, 32 + m % 3 * 17, sizes[m % 7]};
        const size_t row_bytes = st_cpu_row_bytes(ST_CPU_W_I8, c.k);
        uint8_t *rows = guard_alloc(row_bytes * (size_t)c.n),
                *packed = guard_alloc(st_cpu_packed_bytes(ST_CPU_W_I8, c.n, c.k));
        for (int64_t j = 0; j < c.n; j++) {
            memcpy(rows + row_bytes * (size_t)j, &(float){0.01f}, 4);
            fill_pairs((int8_t *)rows + row_bytes * (size_t)j + 4, c.k, (int)(m % 2 == 0 ? j % 6 : m / 2 % 6));
        }
        st_cpu_pack_rows(ST_CPU_W_I8, c.k, rows, 0, c.n, packed);
        float *x = guard_alloc((size_t)(c.m * c.k) * 4), *y = guard_floats((size_t)(c.m * c.n));
        for (int64_t i = 0; i < c.m; i++)
            fill_end(x + i * c.k, c.k, m % 5 == 0 ? 0 : i);
        const float *bias = guard_floats((size_t)c.n), *residual = guard_floats((size_t)(c.m * c.n));
        const st_cpu_left left = {.x = x, .n1 = c.m, .n2 = 1, .stride1 = (ptrdiff_t)c.k};
        const st_cpu_epilogue e = {y, (ptrdiff_t)c.n, bias, residual, (ptrdiff_t)c.n, SOTTO_ACT_NONE};
        for (int fine = 0; fine < 2; fine++) {
            const st_cpu_right right = {ST_CPU_W_I8, c.n, c.k, packed, false, fine != 0, false, false};
            run_product(k, &left, &right, &e, c.m);
            expect_i8(k, &c, fine != 0, x, rows, &e);
        }
        guard_free_all();
    }
}

static void test_saturation(void **state)
{
    (void)state;
    each_level(check_saturation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_i8),        cmocka_unit_test(test_to_i8),
                                       cmocka_unit_test(test_bf16),      cmocka_unit_test(test_activations),
                                       cmocka_unit_test(test_special),   cmocka_unit_test(test_extremes),
                                       cmocka_unit_test(test_saturation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
