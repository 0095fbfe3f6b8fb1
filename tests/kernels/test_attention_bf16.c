/* test_attention_bf16.c: attention with bf16 products, over whole sequences and of a few queries over neighbouring cells,
 * against double sums. What is rounded to bf16 gives the bound: an operand of a score 2^-9 of itself, a probability 2^-7
 * (its mantissa, and the score's rounding to 1/128 of log 2), a value 2^-9. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cpu/cpu_attention_bf16.h"
#include "base/cpu.h"
#include "base/half.h"
#include "kernels/guard_support.h"
#include "kernels/level_support.h"

typedef struct head {
    const float *k, *v;
    ptrdiff_t stride;
    int64_t n;
    int d;
    float scale;
} head;

static void check_row(const st_cpu_kernels *k, const char *what, const head *h, const float *q, const float *got)
{
    double *p = malloc((size_t)(h->n + 1) * sizeof *p), top = -INFINITY, sum = 0, slack = 0, most = 0;
    for (int64_t j = 0; j < h->n; j++) {
        double s = 0, size = 0;
        for (int i = 0; i < h->d; i++) {
            s += (double)q[i] * h->k[j * h->stride + i];
            size += fabs((double)q[i] * h->k[j * h->stride + i]);
            most = fmax(most, fabs(h->v[j * h->stride + i]));
        }
        p[j] = s * h->scale;
        slack = fmax(slack, size * h->scale);
        top = fmax(top, p[j]);
    }
    for (int64_t j = 0; j < h->n; j++)
        sum += p[j] = exp(p[j] - top);
    /* a score is off by two roundings of its operands; all of a row's probabilities may be off one way */
    const double bound = most * (2 * (exp(2.5 * slack * 0x1p-9) - 1) + 0x1p-6 + 0x1p-8) + 1e-30;
    for (int i = 0; i < h->d; i++) {
        double want = 0;
        for (int64_t j = 0; j < h->n; j++)
            want += p[j] / sum * h->v[j * h->stride + i];
        if (!(fabs(got[i] - want) <= bound))
            fail_msg("%s %s, %lld keys of %d: column %d is %.9g, expected %.9g within %.3g",
                     st_cpu_level_name(k->level), what, (long long)h->n, h->d, i, got[i], want, bound);
    }
    free(p);
}

/* Large scores come late, so that the reference taken from the first keys is far too low. */
static float *keys_of(int64_t n, ptrdiff_t stride, int d, float late)
{
    float *x = guard_floats((size_t)((n - 1) * stride + d));
    for (int64_t j = n / 2; late != 0 && j < n; j++)
        for (int i = 0; i < d; i++)
            x[j * stride + i] *= late;
    return x;
}

static void check_sequence(const st_cpu_kernels *k, int64_t n_q, int64_t n_k, int d, float scale, float late)
{
    st_cpu_attention a = guarded_head(n_q, n_k, d, scale);
    const ptrdiff_t stride = a.k_stride;
    a.k = keys_of(n_k, stride, d, late);
    assert_true(st_cpu_attention_bf16_fits(k, &a));
    float *packed = guard_alloc(4 * st_cpu_attention_bf16_packed(&a));
    float *scratch = guard_alloc(4 * st_cpu_attention_bf16_scratch(&a));
    for (int64_t p = 0; p < st_cpu_attention_pack_units(&a); p++)
        st_cpu_attention_bf16_pack(k, &a, p, packed);
    const int tile = st_cpu_attention_bf16_tile(k, &a);
    for (int64_t q = 0; q < n_q; q += tile)
        st_cpu_attention_bf16_rows(k, &a, q, (int)(n_q - q < tile ? n_q - q : tile), packed, scratch);
    const head h = {a.k, a.v, stride, n_k, d, scale};
    for (int64_t q = 0; q < n_q; q++)
        check_row(k, "attention", &h, a.q + q * stride, a.out + q * stride);
    guard_free_all();
}

/* What row r of a window sees. */
static void check_window_row(const st_cpu_kernels *k, const st_cpu_cells *c, int r, const float *kf, const float *vf,
                             ptrdiff_t stride)
{
    const size_t bytes = sizeof(float) * (size_t)c->d;
    float *ks = malloc((size_t)c->n_kv * bytes), *vs = malloc((size_t)c->n_kv * bytes);
    head h = {ks, vs, c->d, 0, c->d, c->scale};
    for (int64_t j = 0; j < c->n_kv; j++) {
        if (c->seen != NULL && j >= c->n_common && (c->seen[j - c->n_common] >> r & 1) == 0)
            continue;
        const int64_t cell = c->index != NULL ? c->index[j] : c->base + j, at = cell < 0           ? 0
                                                                                : cell < c->n_cell ? cell
                                                                                                   : c->n_cell - 1;
        memcpy(ks + h.n * c->d, kf + at * stride, bytes);
        memcpy(vs + h.n++ * c->d, vf + at * stride, bytes);
    }
    check_row(k, c->index != NULL ? "list" : "window", &h, c->q[r], c->out[r]);
    free(ks);
    free(vs);
}

/* Neighbouring cells, then listed ones, then such that some rows do not see. */
static void check_window(const st_cpu_kernels *k, int rows, int64_t n_kv, int d, float scale, float late)
{
    const ptrdiff_t stride = d + 8; /* of cells; the last one ends at the guard */
    const int64_t base = 3, n_cell = base + n_kv;
    float *kf = keys_of(n_cell, stride, d, late), *vf = guard_floats((size_t)((n_cell - 1) * stride + d));
    const size_t n = (size_t)((n_cell - 1) * stride + d);
    uint16_t *kh = guard_alloc(2 * n), *vh = guard_alloc(2 * n);
    for (size_t i = 0; i < n; i++) {
        kh[i] = st_f32_to_bf16(kf[i]);
        vh[i] = st_f32_to_bf16(vf[i]);
        kf[i] = st_bf16_to_f32(kh[i]);
        vf[i] = st_bf16_to_f32(vh[i]);
    }
    st_cpu_cells c = {.n_row = rows,
                      .d = d,
                      .scale = scale,
                      .k = (const char *)kh,
                      .v = (const char *)vh,
                      .k_stride = (size_t)stride * 2,
                      .v_stride = (size_t)stride * 2,
                      .base = base,
                      .n_kv = n_kv,
                      .n_cell = n_cell,
                      .scratch = guard_alloc(4 * st_cpu_cells_scratch(d))};
    for (int r = 0; r < rows; r++) {
        c.q[r] = guard_floats((size_t)d);
        c.out[r] = guard_floats((size_t)d);
    }
    int32_t *index = guard_alloc(sizeof *index * (size_t)n_kv);
    uint8_t *seen = guard_alloc((size_t)n_kv);
    c.n_common = n_kv / 3;
    for (int64_t j = 0; j < n_kv; j++) {
        index[j] = (int32_t)(test_random_bits() % (uint64_t)(n_cell + 4)) - 2; /* those that are none are clamped */
        seen[j] = j == c.n_common ? 0xff : (uint8_t)test_random_bits();
    }
    for (int form = 0; form < 3; form++) {
        c.index = form > 0 ? index : NULL;
        c.seen = form > 1 ? seen + c.n_common : NULL;
        k->window_bf16(&c);
        for (int r = 0; r < rows; r++)
            check_window_row(k, &c, r, kf, vf, stride);
    }
    guard_free_all();
}

static void sequences(const st_cpu_kernels *k)
{
    static const int64_t sizes[][2] = {{1, 1}, {5, 31}, {13, 32}, {33, 33}, {70, 530}, {3, 1500}, {12, 96}};
    if (k->attend.probabilities == NULL)
        return;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int d = 32; d <= 128; d += 32) {
            check_sequence(k, sizes[i][0], sizes[i][1], d, 0.125f, 0);
            check_sequence(k, sizes[i][0], sizes[i][1], d, 1.0f, 0);
            /* hundreds of powers of two above the reference: the row is done again */
            check_sequence(k, sizes[i][0], sizes[i][1], d, 8.0f, 60.0f);
        }
}

static void windows(const st_cpu_kernels *k)
{
    static const int64_t counts[] = {1, 3, 16, 17, 31, 32, 33, 255, 256, 257, 600, 1500};
    if (k->window_bf16 == NULL)
        return;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        for (int d = 32; d <= ST_CPU_WINDOW_MAX_D; d += 32) {
            const int rows = 1 + (int)((i * 3 + (size_t)d / 32) % 8);
            check_window(k, rows, counts[i], d, 0.125f, 0);
            check_window(k, rows, counts[i], d, 1.0f, 20.0f);
        }
    /* no cells: zeros; a query that is no number gives none, and its neighbours stay */
    float q[64], out[2][64];
    uint16_t cells[40 * 64];
    for (int i = 0; i < 40 * 64; i++)
        cells[i] = st_f32_to_bf16(test_random());
    for (int i = 0; i < 64; i++)
        q[i] = test_random();
    float bad[64];
    memcpy(bad, q, sizeof q);
    bad[5] = NAN;
    st_cpu_cells c = {.n_row = 2,
                      .d = 64,
                      .scale = 1,
                      .q = {q, bad},
                      .out = {out[0], out[1]},
                      .k = (const char *)cells,
                      .v = (const char *)cells,
                      .k_stride = 128,
                      .v_stride = 128,
                      .n_cell = 40,
                      .scratch = guard_alloc(4 * st_cpu_cells_scratch(64))};
    k->window_bf16(&c);
    for (int i = 0; i < 64; i++)
        assert_true(out[0][i] == 0);
    c.n_kv = 40;
    k->window_bf16(&c);
    for (int i = 0; i < 64; i++)
        assert_true(isfinite(out[0][i]) && isnan(out[1][i]));
    guard_free_all();
}

static void test_sequences(void **state)
{
    (void)state;
    each_level(sequences);
}

static void test_windows(void **state)
{
    (void)state;
    each_level(windows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sequences), cmocka_unit_test(test_windows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
