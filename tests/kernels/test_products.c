/* test_products.c: packing and matrix products of every level that this machine has, against double sums over exactly
 * dequantised weights. Bound of a product: (k + 8) eps sum|a b|, from the inputs. */
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

static void f32_unpack(const void *src, float *dst, int64_t n)
{
    memcpy(dst, src, (size_t)n * 4);
}

static void f32_pack(const float *src, void *dst, int64_t n)
{
    memcpy(dst, src, (size_t)n * 4);
}

typedef struct type_case {
    sotto_dtype dtype;
    st_cpu_wtype type;
    const char *name;
    int block;
    size_t bytes;
    void (*unpack)(const void *src, float *dst, int64_t n);
    void (*pack)(const float *src, void *dst, int64_t n);
} type_case;

static const type_case types[] = {
    {SOTTO_F32, ST_CPU_W_F32, "f32", 1, 4, f32_unpack, f32_pack},
    {SOTTO_F16, ST_CPU_W_F16, "f16", 1, 2, st_f16_unpack, st_f16_pack},
    {SOTTO_BF16, ST_CPU_W_BF16, "bf16", 1, 2, st_bf16_unpack, st_bf16_pack},
    {SOTTO_Q8_0, ST_CPU_W_Q8_0, "q8_0", 32, 34, st_q8_0_unpack, st_q8_0_pack},
    {SOTTO_Q4_0, ST_CPU_W_Q4_0, "q4_0", 32, 18, st_q4_0_unpack, st_q4_0_pack},
    {SOTTO_Q4_1, ST_CPU_W_Q4_1, "q4_1", 32, 20, st_q4_1_unpack, st_q4_1_pack},
    {SOTTO_Q5_0, ST_CPU_W_Q5_0, "q5_0", 32, 22, st_q5_0_unpack, st_q5_0_pack},
    {SOTTO_Q5_1, ST_CPU_W_Q5_1, "q5_1", 32, 24, st_q5_1_unpack, st_q5_1_pack},
};
enum { N_TYPES = sizeof types / sizeof types[0] };

static size_t row_bytes(const type_case *t, int64_t k)
{
    return (size_t)(k / t->block) * t->bytes;
}

/* Rows as in a file: random bits in the quants, finite scales, extreme quants in some blocks. */
static uint8_t *random_rows(const type_case *t, int64_t n, int64_t k)
{
    uint8_t *rows = guard_alloc((size_t)n * row_bytes(t, k));
    float *x = malloc((size_t)k * sizeof *x);
    for (int64_t r = 0; r < n; r++) {
        uint8_t *row = rows + (size_t)r * row_bytes(t, k);
        for (int64_t i = 0; i < k; i++)
            x[i] = test_random();
        t->pack(x, row, k);
        if (t->block == 1)
            continue;
        for (int64_t b = 0; b < k / t->block; b++) {
            uint8_t *block = row + (size_t)b * t->bytes;
            const uint32_t kind = test_random_bits() % 4;
            const size_t head = t->type == ST_CPU_W_Q4_1 || t->type == ST_CPU_W_Q5_1 ? 4 : 2;
            for (size_t i = head; i < t->bytes && kind < 3; i++)
                block[i] = kind == 0 ? 0xff : kind == 1 ? 0x80 : (uint8_t)test_random_bits();
        }
    }
    free(x);
    return rows;
}

/* Packed panels that end at a guard page, packed in two pieces that do not meet at a panel's border. */
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
    static const int64_t n_list[] = {1, 5, 31, 32, 33, 64, 70}, k_list[] = {32, 64, 96, 7, 33, 100};
    for (size_t ti = 0; ti < N_TYPES; ti++) {
        const type_case *t = &types[ti];
        st_cpu_wtype found;
        assert_true(st_cpu_wtype_of(t->dtype, &found));
        assert_int_equal(found, t->type);
        for (size_t ni = 0; ni < sizeof n_list / sizeof n_list[0]; ni++) {
            for (size_t ki = 0; ki < sizeof k_list / sizeof k_list[0]; ki++) {
                const int64_t n = n_list[ni], k = k_list[ki];
                if (k % t->block != 0)
                    continue;
                const uint8_t *rows = random_rows(t, n, k), *packed = packed_rows(t, rows, n, k);
                float *want = malloc((size_t)k * 4), *got = guard_alloc((size_t)k * 4);
                for (int64_t r = 0; r < n; r++) {
                    t->unpack(rows + (size_t)r * row_bytes(t, k), want, k);
                    st_cpu_unpack_row(t->type, k, packed, r, got);
                    assert_memory_equal(got, want, (size_t)k * 4);
                }
                free(want);
            }
        }
        guard_free_all();
    }
    st_cpu_wtype ignored;
    assert_false(st_cpu_wtype_of(SOTTO_I32, &ignored));
    assert_int_equal(st_cpu_packed_bytes(ST_CPU_W_F32, INT64_MAX, 64), 0);
    assert_int_equal(st_cpu_packed_bytes(ST_CPU_W_F32, INT64_MAX / 4096, INT64_MAX / 4096), 0);
}

static double gelu(double x)
{
    return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
}

static double activate(sotto_activation act, double x)
{
    return act == SOTTO_ACT_GELU   ? gelu(x)
           : act == SOTTO_ACT_RELU ? (x > 0 ? x : 0)
           : act == SOTTO_ACT_SILU ? x / (1 + exp(-x))
                                   : x;
}

typedef struct product_case {
    int64_t m, n, k;
    ptrdiff_t x_stride;
    sotto_activation act;
    int bias, residual; /* residual 2: the output itself */
} product_case;

/* The whole product in pieces of `rows` rows and `panels` panels, as the backend does. */
static void run_product(const st_cpu_kernels *k, const st_cpu_left *left, const st_cpu_right *right,
                        const st_cpu_epilogue *e, int64_t m, int64_t rows, int64_t panels)
{
    float *scratch = guard_alloc(4 * st_cpu_gemm_scratch(rows, right->k));
    for (int64_t row = 0; row < m; row += rows) {
        const int n = (int)(m - row < rows ? m - row : rows);
        st_cpu_gemm_pack(k, left, right, m, row, n, scratch);
        for (int64_t p = 0; p < st_cpu_panels(right->n); p += panels) {
            const int64_t left_panels = st_cpu_panels(right->n) - p;
            st_cpu_gemm_panels(k, right, e, m, row, n, p, left_panels < panels ? left_panels : panels, scratch);
        }
    }
}

static void check_product(const st_cpu_kernels *k, const type_case *t, const product_case *c)
{
    const uint8_t *rows = random_rows(t, c->n, c->k), *packed = packed_rows(t, rows, c->n, c->k);
    const float *x = guard_floats((size_t)((c->m - 1) * c->x_stride + c->k));
    const ptrdiff_t y_stride = c->n + 3;
    const size_t y_size = (size_t)((c->m - 1) * y_stride + c->n);
    float *y = guard_floats(y_size), *before = malloc(y_size * 4), *w = malloc((size_t)c->k * 4);
    memcpy(before, y, y_size * 4);
    const float *bias = c->bias ? guard_floats((size_t)c->n) : NULL;
    const float *residual = c->residual == 1 ? guard_floats(y_size) : c->residual == 2 ? y : NULL;
    const float *residual_before = c->residual == 2 ? before : residual;
    const st_cpu_left left = {.x = x, .n1 = c->m, .n2 = 1, .stride1 = c->x_stride};
    const st_cpu_right right = {t->type, c->n, c->k, packed, false, false, false, false};
    const st_cpu_epilogue e = {y, y_stride, bias, residual, y_stride, c->act};
    run_product(k, &left, &right, &e, c->m, c->m <= ST_CPU_FEW_ROWS ? c->m : ST_CPU_ROW_BLOCK, 2);
    for (int64_t j = 0; j < c->n; j++) {
        t->unpack(rows + (size_t)j * row_bytes(t, c->k), w, c->k);
        for (int64_t i = 0; i < c->m; i++) {
            double sum = 0, size = 0;
            for (int64_t l = 0; l < c->k; l++) {
                const double p = (double)x[i * c->x_stride + l] * w[l];
                sum += p;
                size += fabs(p);
            }
            if (bias != NULL) {
                sum += bias[j];
                size += fabs(bias[j]);
            }
            /* the activations' own error: gelu's is absolute, silu's relative; slope at most 1.2 */
            double want = activate(c->act, sum), bound = 1.2 * (double)(c->k + 8) * EPS * size + 1e-37;
            if (c->act == SOTTO_ACT_GELU)
                bound += 2.8e-6 + 5e-7 * fabs(sum);
            if (c->act == SOTTO_ACT_SILU)
                bound += 4e-7 * fabs(sum);
            if (residual != NULL) {
                want += residual_before[i * y_stride + j];
                bound += EPS * (fabs(want) + fabs((double)residual_before[i * y_stride + j]));
            }
            const double got = y[i * y_stride + j];
            if (!(fabs(got - want) <= bound))
                fail_msg("%s %s %lldx%lldx%lld act %d: [%lld,%lld] is %.9g, expected %.9g within %.3g",
                         st_cpu_level_name(k->level), t->name, (long long)c->m, (long long)c->n, (long long)c->k,
                         (int)c->act, (long long)i, (long long)j, got, want, bound);
        }
    }
    for (int64_t i = 0; i + 1 < c->m; i++) /* nothing between the rows was touched */
        assert_memory_equal(y + i * y_stride + c->n, before + i * y_stride + c->n, 3 * sizeof(float));
    free(before);
    free(w);
    guard_free_all();
}

static void check_products(const st_cpu_kernels *k)
{
    static const int64_t m_list[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 60, 61, 121};
    static const int64_t nk_list[][2] = {{32, 32},   {33, 64}, {1, 32},  {70, 544}, {31, 96},
                                         {64, 1056}, {33, 7},  {40, 33}, {5, 1},    {70, 2304}};
    for (size_t ti = 0; ti < N_TYPES; ti++) {
        for (size_t mi = 0; mi < sizeof m_list / sizeof m_list[0]; mi++) {
            for (size_t i = 0; i < sizeof nk_list / sizeof nk_list[0]; i++) {
                const product_case c = {m_list[mi],
                                        nk_list[i][0],
                                        nk_list[i][1],
                                        i % 2 ? nk_list[i][1] : nk_list[i][1] + 5,
                                        (sotto_activation)((mi + i) % 4),
                                        (int)(mi + i) % 3 != 0,
                                        (int)(mi + 2 * i) % 3};
                if (c.k % types[ti].block == 0 && c.m * c.n * c.k < 3000000)
                    check_product(k, &types[ti], &c);
            }
        }
    }
}

static void test_products(void **state)
{
    (void)state;
    each_level(check_products);
}

/* Rows that overlap (frames of a signal), and a convolution with padding on both sides against its definition. */
static void check_convolution(const st_cpu_kernels *k)
{
    const type_case *t = &types[0];
    for (int stride = 1; stride <= 2; stride++) {
        for (int64_t time = 1; time <= 70; time += 23) {
            const int64_t c_in = 5, kernel = 3, pad = 1, n = 34, batch = 2;
            const int64_t out = (time + 2 * pad - kernel) / stride + 1, kk = kernel * c_in;
            const float *x = guard_floats((size_t)(batch * time * c_in));
            const uint8_t *rows = random_rows(t, n, kk), *packed = packed_rows(t, rows, n, kk);
            const float *w = (const float *)(const void *)rows;
            float *y = guard_alloc((size_t)(batch * out * n) * 4);
            const st_cpu_left left = {.x = x,
                                      .n1 = out,
                                      .n2 = batch,
                                      .stride1 = (ptrdiff_t)(stride * c_in),
                                      .stride2 = (ptrdiff_t)(time * c_in),
                                      .origin = -(ptrdiff_t)(pad * c_in),
                                      .clip = time * c_in};
            const st_cpu_right right = {t->type, n, kk, packed, false, false, false, false};
            const st_cpu_epilogue e = {.out = y, .out_stride = (ptrdiff_t)n};
            const int64_t m = batch * out;
            run_product(k, &left, &right, &e, m, m <= ST_CPU_FEW_ROWS ? m : ST_CPU_ROW_BLOCK, 1);
            for (int64_t i = 0; i < m; i++) {
                for (int64_t j = 0; j < n; j++) {
                    double sum = 0, size = 0;
                    for (int64_t u = 0; u < kernel; u++) {
                        const int64_t at = i % out * stride + u - pad;
                        if (at < 0 || at >= time)
                            continue;
                        for (int64_t c = 0; c < c_in; c++) {
                            const double p = (double)x[(i / out * time + at) * c_in + c] * w[j * kk + u * c_in + c];
                            sum += p;
                            size += fabs(p);
                        }
                    }
                    assert_true(fabs(y[i * n + j] - sum) <= (double)(kk + 8) * EPS * size + 1e-37);
                }
            }
            guard_free_all();
        }
    }
    const int64_t step = 10, length = 25, n = 8, m = 30; /* frames */
    const float *x = guard_floats((size_t)((m - 1) * step + length));
    const uint8_t *rows = random_rows(t, n, length), *packed = packed_rows(t, rows, n, length);
    float *y = guard_alloc((size_t)(m * n) * 4);
    const st_cpu_left left = {.x = x, .n1 = m, .n2 = 1, .stride1 = (ptrdiff_t)step};
    const st_cpu_right right = {t->type, n, length, packed, false, false, false, false};
    const st_cpu_epilogue e = {.out = y, .out_stride = (ptrdiff_t)n};
    run_product(k, &left, &right, &e, m, ST_CPU_ROW_BLOCK, 1);
    for (int64_t i = 0; i < m * n; i++) {
        double sum = 0, size = 0;
        for (int64_t l = 0; l < length; l++) {
            const double p = (double)x[i / n * step + l] * ((const float *)(const void *)rows)[i % n * length + l];
            sum += p;
            size += fabs(p);
        }
        assert_true(fabs(y[i] - sum) <= (double)(length + 8) * EPS * size + 1e-37);
    }
    guard_free_all();
}

static void test_convolution(void **state)
{
    (void)state;
    each_level(check_convolution);
}

static void check_panel(const st_cpu_kernels *k)
{
    for (int rows = 1; rows <= 32; rows += rows < 6 ? 1 : 5) {
        for (int64_t kk = 1; kk <= 40; kk += 3) {
            const int64_t padded = (kk + 15) / 16 * 16, stride = kk + rows % 3;
            const float *x = guard_floats((size_t)((rows - 1) * stride + kk));
            float *panel = guard_floats((size_t)padded * 32);
            k->pack_panel(x, (ptrdiff_t)stride, rows, kk, padded, panel);
            for (int64_t i = 0; i < padded * 32; i++) {
                const float want = i / 32 < kk && i % 32 < rows ? x[i % 32 * stride + i / 32] : 0.0f;
                assert_memory_equal(&panel[i], &want, 4);
            }
            guard_free_all();
        }
    }
}

static void test_panel(void **state)
{
    (void)state;
    each_level(check_panel);
}

/* Infinity and NaN in one row stay in that row. */
static void check_special(const st_cpu_kernels *k)
{
    const type_case *t = &types[0];
    const int64_t n = 33, kk = 40;
    for (int64_t m = 3; m <= 15; m += 6) {
        float *x = guard_floats((size_t)(m * kk)), *y = guard_alloc((size_t)(m * n) * 4);
        x[kk + 39] = NAN;
        const uint8_t *rows = random_rows(t, n, kk), *packed = packed_rows(t, rows, n, kk);
        const st_cpu_left left = {.x = x, .n1 = m, .n2 = 1, .stride1 = (ptrdiff_t)kk};
        const st_cpu_right right = {t->type, n, kk, packed, false, false, false, false};
        const st_cpu_epilogue e = {.out = y, .out_stride = (ptrdiff_t)n, .act = SOTTO_ACT_GELU};
        run_product(k, &left, &right, &e, m, m <= ST_CPU_FEW_ROWS ? m : ST_CPU_ROW_BLOCK, 2);
        for (int64_t i = 0; i < m * n; i++)
            assert_true(i / n == 1 ? isnan(y[i]) : isfinite(y[i]));
        guard_free_all();
    }
}

static void test_special(void **state)
{
    (void)state;
    each_level(check_special);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pack),  cmocka_unit_test(test_products), cmocka_unit_test(test_convolution),
        cmocka_unit_test(test_panel), cmocka_unit_test(test_special),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
