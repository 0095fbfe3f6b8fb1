/* test_f16_words.c: products of many rows with f16 weights in words, on every level of this machine that has them. The oracle is
 * double sums over the numbers as they are; the bound follows from what a word stands for (cpu_kernels.h), for each row, column and
 * part of 256 k. */
#include <float.h>
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

#define EPS 0x1p-24

enum { PART = 256 };

typedef struct product_case {
    int64_t m, n, k;
} product_case;

static const product_case cases[] = {{9, 32, 64},    {10, 33, 65},  {11, 1, 1},      {12, 64, 512},
                                     {13, 40, 100},  {16, 31, 33},  {17, 33, 256},   {61, 32, 200},
                                     {129, 35, 257}, {260, 64, 64}, {126, 70, 1500}, {22, 300, 1100},
                                     {9, 33, 4200},  {40, 5, 8448}, {30, 7, 0},      {127, 96, 512}};
enum { N_CASES = sizeof cases / sizeof cases[0] };

static float row_number(int64_t row, int64_t i)
{
    const float v = test_random();
    switch (row % 9) {
    case 1:
        return fabsf(v);
    case 2:
        return i % 100 == 7 ? 1000.0f : v; /* few are much larger */
    case 3:
        return 0.25f;
    case 4:
        return 0.0f;
    case 5:
        return v * 1e-36f;
    case 6:
        return v * 1e30f;
    case 7:
        return i % PART == 3 ? v : 0.0f;
    case 8:
        return i / PART % 2 == 0 ? v : v * 1e-4f;
    default:
        return v;
    }
}

static float weight(int64_t column, int64_t i)
{
    const float v = test_random();
    switch (column % 7) {
    case 1:
        return 0.0f;
    case 2:
        return v * 1e-7f; /* of few bits */
    case 3:
        return i % 100 == 11 ? 64.0f : v;
    case 4:
        return 2047.0f / 1024.0f; /* the largest words there are, of all or of one */
    case 5:
        return i % PART == 3 ? 65504.0f : 0.0f;
    case 6:
        return v * 1e-3f;
    default:
        return v;
    }
}

/* A product, each operand at a guard page. */
typedef struct problem {
    const product_case *c;
    float *x, *y, *bias;
    uint16_t *w; /* [n, k] */
    uint8_t *packed;
} problem;

static problem make_problem(const product_case *c)
{
    problem p = {.c = c,
                 .x = guard_alloc((size_t)(c->m * c->k) * 4),
                 .y = guard_floats((size_t)(c->m * c->n)),
                 .bias = guard_floats((size_t)c->n),
                 .w = guard_alloc((size_t)(c->n * c->k) * 2)};
    for (int64_t i = 0; i < c->m * c->k; i++)
        p.x[i] = row_number(i / c->k, i % c->k);
    for (int64_t i = 0; i < c->n * c->k; i++)
        p.w[i] = st_f32_to_f16(weight(i / c->k, i % c->k));
    return p;
}

/* In pieces of at most so many rows, a multiple of what a tile has, and of so many panels. */
static void run(const st_cpu_kernels *k, problem *p, int64_t most_rows, int64_t most_panels, float *y)
{
    const product_case *c = p->c;
    p->packed = guard_alloc(st_cpu_packed_bytes(ST_CPU_W_F16, c->n, c->k));
    st_cpu_pack_rows(ST_CPU_W_F16, c->k, p->w, 0, c->n, p->packed);
    const st_cpu_left left = {.x = p->x, .n1 = c->m, .n2 = 1, .stride1 = (ptrdiff_t)c->k};
    const st_cpu_right right = {ST_CPU_W_F16, c->n, c->k, p->packed, true, false, false, true};
    const st_cpu_epilogue e = {.out = y, .out_stride = (ptrdiff_t)c->n, .bias = p->bias};
    const int64_t tile = st_cpu_gemm_tile(k, &right, c->m), step = most_rows / tile * tile, panels = st_cpu_panels(c->n);
    float *scratch = guard_alloc(4 * st_cpu_gemm_scratch(c->m < step ? c->m : step, c->k));
    for (int64_t row = 0; row < c->m; row += step) {
        const int rows = (int)(c->m - row < step ? c->m - row : step);
        st_cpu_gemm_pack(k, &left, &right, c->m, row, rows, scratch);
        for (int64_t i = 0; i < panels; i += most_panels)
            st_cpu_gemm_panels(k, &right, &e, c->m, row, rows, i, panels - i < most_panels ? panels - i : most_panels,
                               scratch);
    }
}

/* n <= 256 products: adds them to *sum, and how far off words may be to *bound. */
static void add_part(const float *x, const uint16_t *w, int64_t n, double *sum, double *size, double *bound)
{
    double x_sum = 0, x_most = 0, x_squares = 0, w_sum = 0, w_squares = 0, all = 0;
    for (int64_t i = 0; i < n; i++) {
        const double a = x[i], b = st_f16_to_f32(w[i]);
        *sum += a * b;
        all += fabs(a * b);
        x_sum += fabs(a);
        w_sum += fabs(b);
        x_most = fmax(x_most, fabs(a));
        x_squares += a * a;
        w_squares += b * b;
    }
    *size += all;
    if (x_most < 1.001e-30) {
        *bound += all;
        return;
    }
    const bool usual = x_squares > 1.001e-30 && x_squares < 0.999 * FLT_MAX;
    /* half of a word, and a little where what is rounded to one was rounded before; a sum of squares beside a power of two may be
     * found on its other side */
    const double x_half = 0.505 * fmax(x_most / 32767, (usual ? sqrt(x_squares) : 16 * x_most) / 65500);
    const double w_half = 0.5 * ldexp(1, -((29 - ilogb(w_squares * 1.0001 + 1e-40)) >> 1));
    *bound += x_sum * w_half + w_sum * x_half + (double)n * x_half * w_half;
}

static void check_values(const st_cpu_kernels *k, const product_case *c)
{
    problem p = make_problem(c);
    float *other = guard_floats((size_t)(c->m * c->n));
    run(k, &p, ST_CPU_ROW_BLOCK, INT64_MAX, p.y);
    run(k, &p, 7, 2, other);
    assert_memory_equal(p.y, other, (size_t)(c->m * c->n) * 4);
    for (int64_t i = 0; i < c->m; i++) {
        for (int64_t j = 0; j < c->n; j++) {
            double sum = p.bias[j], size = fabs(p.bias[j]), bound = 0;
            for (int64_t l = 0; l < c->k; l += PART)
                add_part(p.x + i * c->k + l, p.w + j * c->k + l, c->k - l < PART ? c->k - l : PART, &sum, &size, &bound);
            bound += (double)(c->k / PART + 8) * EPS * (size + bound) + 1e-37;
            const double got = p.y[i * c->n + j];
            if (!(fabs(got - sum) <= bound))
                fail_msg("%s %lldx%lldx%lld: [%lld,%lld] is %.9g, expected %.9g within %.3g",
                         st_cpu_level_name(k->level), (long long)c->m, (long long)c->n, (long long)c->k, (long long)i,
                         (long long)j, got, sum, bound);
        }
    }
    guard_free_all();
}

/* What is no number stays in its row and in its column. */
static void check_special(const st_cpu_kernels *k, const product_case *c)
{
    problem p = make_problem(c);
    const uint16_t none = st_f32_to_f16(NAN), infinite = st_f32_to_f16(-INFINITY);
    if (c->k == 0)
        return;
    p.x[c->k - 1] = NAN;
    p.x[(c->m - 1) * c->k] = INFINITY;
    p.x[c->k] = -INFINITY;
    p.w[c->k - 1] = none;
    p.w[(c->n - 1) * c->k] = infinite;
    run(k, &p, ST_CPU_ROW_BLOCK, INT64_MAX, p.y);
    for (int64_t i = 0; i < c->m * c->n; i++) {
        const int64_t row = i / c->n, column = i % c->n;
        const bool bad = row <= 1 || row == c->m - 1 || column == 0 || column == c->n - 1;
        assert_true(bad ? isnan(p.y[i]) : isfinite(p.y[i]));
    }
    guard_free_all();
}

static void check_all(const st_cpu_kernels *k)
{
    for (size_t i = 0; i < N_CASES && k->f16_words.mr > 0; i++) {
        check_values(k, &cases[i]);
        check_special(k, &cases[i]);
    }
}

static void test_products(void **state)
{
    (void)state;
    each_level(check_all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
