/* test_attention_words.c: attention as products of words, against double sums. What is rounded gives the bound: an element of a
 * query or a key is off by half of a word of its row (largest / 4095), a value by half of one of its column of 128 keys (their sum /
 * 65400, or twice the largest), a probability by half of one of its row (largest / 32700) and by 3e-4 of itself. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cpu/cpu_attention_words.h"
#include "backends/cpu/cpu_cells_words.h"
#include "kernels/guard_support.h"
#include "kernels/level_support.h"

static void compute(const st_cpu_kernels *k, const st_cpu_attention *a, int tile)
{
    assert_true(st_cpu_attention_words_fits(k, a));
    float *packed = guard_alloc(4 * st_cpu_attention_words_packed(a));
    float *scratch = guard_alloc(4 * st_cpu_attention_words_scratch(a));
    for (int64_t u = 0; u < st_cpu_attention_words_units(a); u++)
        st_cpu_attention_words_pack(k, a, u, packed);
    for (int64_t q = 0; q < a->n_q; q += tile)
        st_cpu_attention_words_rows(k, a, q, (int)(a->n_q - q < tile ? a->n_q - q : tile), packed, scratch);
}

/* The same over cells of a cache, which lie row by row: the same bits, as groups come in the same order for rows before the 120th. */
static void compare_with_prompt(const st_cpu_kernels *k, const st_cpu_attention *a)
{
    if (a->n_q > 120)
        return;
    st_cpu_range seen[120];
    for (int64_t r = 0; r < a->n_q; r++)
        seen[r] = (st_cpu_range){0, a->n_k};
    float *out = guard_alloc(4 * (size_t)(a->n_q * a->d));
    const st_cpu_prompt p = {.d = a->d,
                             .share = 1,
                             .n_row = (int)a->n_q,
                             .scale = a->scale,
                             .bf16 = true,
                             .q = a->q,
                             .out = out,
                             .q_row = a->q_stride,
                             .out_row = a->d,
                             .k_type = SOTTO_F32,
                             .v_type = SOTTO_F32,
                             .k = (const char *)a->k,
                             .v = (const char *)a->v,
                             .k_stride = 4 * (size_t)a->k_stride,
                             .v_stride = 4 * (size_t)a->v_stride,
                             .n_cell = a->n_k,
                             .seen = seen};
    assert_true(st_cpu_prompt_words_fits(k, &p));
    st_cpu_prompt_words_rows(k, &p, guard_alloc(4 * st_cpu_prompt_words_scratch(a->d, (int)a->n_q)));
    for (int64_t r = 0; r < a->n_q; r++)
        assert_memory_equal(out + r * a->d, a->out + r * a->out_stride, 4 * (size_t)a->d);
    seen[a->n_q - 1].end = a->n_k + (a->n_q > 1 ? 1 : -a->n_k); /* other cells than the rest, or none */
    assert_false(st_cpu_prompt_words_fits(k, &p));
}

static double largest(const float *x, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, fabs(x[i]));
    return most;
}

/* Probabilities of all keys for query q; returns how far one may be off, as a part of itself. */
static double weigh(const st_cpu_attention *a, int64_t q, double *p)
{
    const float *x = a->q + q * a->q_stride;
    double top = -INFINITY, sum = 0, slack = 0;
    for (int64_t j = 0; j < a->n_k; j++) {
        const float *key = a->k + j * a->k_stride;
        const double step_q = largest(x, a->d) / 8190, step_k = largest(key, a->d) / 8190;
        double s = 0, off = a->d * step_q * step_k;
        for (int i = 0; i < a->d; i++) {
            s += (double)x[i] * key[i];
            off += fabs(x[i]) * step_k + fabs(key[i]) * step_q + 0x1p-22 * fabs((double)x[i] * key[i]);
        }
        p[j] = s * a->scale;
        slack = fmax(slack, off * a->scale);
        top = fmax(top, p[j]);
    }
    for (int64_t j = 0; j < a->n_k; j++)
        sum += p[j] = exp(p[j] - top);
    for (int64_t j = 0; j < a->n_k; j++)
        p[j] /= sum;
    return slack < 0.5 ? exp(2 * slack) - 1 + 3e-4 : 2;
}

/* How far all probabilities of a row may be off because they are whole numbers. */
static double rounded(const st_cpu_attention *a, const double *p)
{
    double most = 0;
    for (int64_t j = 0; j < a->n_k; j++)
        most = fmax(most, p[j]);
    return (double)a->n_k * most / 65400;
}

/* How far a value of column i may be off. */
static double value_step(const st_cpu_attention *a, int i)
{
    double step = 0;
    for (int64_t from = 0; from < a->n_k; from += ST_CPU_WORDS_GROUP) {
        double sum = 0, most = 0;
        for (int64_t j = from; j < a->n_k && j < from + ST_CPU_WORDS_GROUP; j++) {
            const double value = fabs(a->v[j * a->v_stride + i]);
            sum += value;
            most = fmax(most, value);
        }
        step = fmax(step, 1.01 / 2 * fmax(sum, 2 * most) / 65400);
    }
    return step;
}

/* Returns how far all is off, as a part of its norm. */
static double check(const st_cpu_kernels *k, const st_cpu_attention *a, const char *what)
{
    double *p = malloc((size_t)a->n_k * sizeof *p), *step = malloc((size_t)a->d * sizeof *step), error = 0, norm = 0;
    for (int i = 0; i < a->d; i++)
        step[i] = value_step(a, i);
    compute(k, a, ST_CPU_WORDS_ROWS);
    compare_with_prompt(k, a);
    for (int64_t q = 0; q < a->n_q; q++) {
        const double off = weigh(a, q, p), whole = rounded(a, p);
        for (int i = 0; i < a->d; i++) {
            double want = 0, most = 0;
            for (int64_t j = 0; j < a->n_k; j++) {
                want += p[j] * a->v[j * a->v_stride + i];
                most = fmax(most, fabs(a->v[j * a->v_stride + i]));
            }
            const double bound = most * (2 * off + 2 * (1 + off) * whole) + step[i] + 1e-30;
            const float got = a->out[q * a->out_stride + i];
            error += (got - want) * (got - want);
            norm += want * want;
            if (!(fabs(got - want) <= bound))
                fail_msg("%s %s, row %lld, %lld keys of %d: column %d is %.9g, expected %.9g within %.3g",
                         st_cpu_level_name(k->level), what, (long long)q, (long long)a->n_k, a->d, i, got, want, bound);
        }
    }
    free(p);
    free(step);
    guard_free_all();
    return sqrt(error / norm);
}

static void fill(const float *x, ptrdiff_t stride, int64_t from, int64_t to, int d, float with)
{
    for (int64_t j = from; j < to; j++)
        for (int i = 0; i < d; i++)
            ((float *)(uintptr_t)x)[j * stride + i] = with;
}

static void times(const float *x, ptrdiff_t stride, int64_t from, int64_t to, int d, float factor)
{
    for (int64_t j = from; j < to; j++)
        for (int i = 0; i < d; i++)
            ((float *)(uintptr_t)x)[j * stride + i] *= factor;
}

static void sequences(const st_cpu_kernels *k)
{
    static const int64_t sizes[][2] = {{1, 1}, {5, 31}, {13, 32}, {33, 33}, {70, 530}, {3, 1500}, {24, 128}, {25, 129}};
    if (k->words.rows == 0)
        return;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int d = 32; d <= 128; d += 32) {
            const int64_t n_q = sizes[i][0], n_k = sizes[i][1];
            st_cpu_attention a = guarded_head(n_q, n_k, d, 0.125f);
            assert_true(check(k, &a, "random") <= 1e-3);
            a = guarded_head(n_q, n_k, d, 1.0f);
            check(k, &a, "sharp");
            a = guarded_head(n_q, n_k, d, 20.0f); /* most groups have no probability that is not 0 */
            check(k, &a, "one key");
            a = guarded_head(n_q, n_k, d, 1.0f); /* the largest scores come late */
            times(a.k, a.k_stride, n_k / 2, n_k, d, 60.0f);
            check(k, &a, "late");
            a = guarded_head(n_q, n_k, d, 0.125f);
            times(a.k, a.k_stride, n_k / 2, n_k / 2 + 1, d, 1e6f);
            check(k, &a, "one large key");
            a = guarded_head(n_q, n_k, d, 0.125f);
            times(a.v, a.v_stride, n_k / 3, n_k / 3 + 1, d, 1e3f);
            check(k, &a, "one large value");
        }
}

/* Sums that are as large as they can be. */
static void extremes(const st_cpu_kernels *k)
{
    if (k->words.rows == 0)
        return;
    for (int d = 32; d <= 128; d += 96)
        for (int sign = -1; sign <= 1; sign++) {
            st_cpu_attention a = guarded_head(7, 300, d, 0.125f); /* all probabilities alike, and the values too */
            fill(a.q, a.q_stride, 0, a.n_q, d, 0);
            fill(a.v, a.v_stride, 0, a.n_k, d, (float)sign * 3.0f);
            check(k, &a, "flat");
            a = guarded_head(7, 300, d, 0.01f);
            fill(a.q, a.q_stride, 0, a.n_q, d, 2.0f);
            fill(a.k, a.k_stride, 0, a.n_k, d, (float)sign * 3.0f);
            check(k, &a, "largest scores");
            a = guarded_head(7, 300, d, 0.125f);
            fill(a.k, a.k_stride, 0, a.n_k / 2, d, 0);
            fill(a.v, a.v_stride, a.n_k / 2, a.n_k, d, 0);
            check(k, &a, "nothing");
        }
}

/* A number that is none reaches the rows it meets and no others, wherever they lie in tiles. */
static void no_numbers(const st_cpu_kernels *k)
{
    static const float none[] = {NAN, INFINITY, -INFINITY};
    const int d = 64;
    if (k->words.rows == 0)
        return;
    for (int i = 0; i < 6; i++)
        for (int where = 0; where < 3; where++) {
            st_cpu_attention a = guarded_head(29, 200, d, i < 3 ? 0.125f : 20.0f);
            const float *const x = where == 0 ? a.q : where == 1 ? a.k : a.v;
            const int row = where == 0 ? 26 : 131, column = 17;
            ((float *)(uintptr_t)x)[row * a.q_stride + column] = none[i % 3];
            compute(k, &a, ST_CPU_WORDS_ROWS);
            for (int q = 0; q < a.n_q; q++)
                for (int c = 0; c < d; c++) {
                    const bool meets = where == 0 ? q == row : where == 1 || c == column;
                    if (meets != (isfinite(a.out[q * a.out_stride + c]) == 0))
                        fail_msg("%s: %g in %s, row %d, column %d is %g", st_cpu_level_name(k->level), none[i % 3],
                                 where == 0   ? "a query"
                                 : where == 1 ? "a key"
                                              : "a value",
                                 q, c, a.out[q * a.out_stride + c]);
                }
            guard_free_all();
        }
    /* scores beyond f32 */
    st_cpu_attention a = guarded_head(5, 140, d, 0.125f);
    times(a.q, a.q_stride, 0, a.n_q, d, 1e30f);
    times(a.k, a.k_stride, 0, a.n_k, d, 1e30f);
    compute(k, &a, ST_CPU_WORDS_ROWS);
    guard_free_all();
}

/* A row's result does not depend on the tile it is in. */
static void tiles(const st_cpu_kernels *k)
{
    if (k->words.rows == 0)
        return;
    st_cpu_attention a = guarded_head(31, 300, 64, 0.125f), b = a;
    b.out = guard_alloc((size_t)((a.n_q - 1) * a.out_stride + a.d) * 4);
    compute(k, &a, ST_CPU_WORDS_ROWS);
    compute(k, &b, 1);
    for (int64_t q = 0; q < a.n_q; q++)
        assert_memory_equal(a.out + q * a.out_stride, b.out + q * a.out_stride, sizeof(float) * 64);
    guard_free_all();
}

static void test_sequences(void **state)
{
    (void)state;
    each_level(sequences);
}

static void test_extremes(void **state)
{
    (void)state;
    each_level(extremes);
}

static void test_no_numbers(void **state)
{
    (void)state;
    each_level(no_numbers);
}

static void test_tiles(void **state)
{
    (void)state;
    each_level(tiles);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sequences), cmocka_unit_test(test_extremes),
                                       cmocka_unit_test(test_no_numbers), cmocka_unit_test(test_tiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
