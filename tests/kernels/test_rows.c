/* test_rows.c: row kernels and attention of every level that this machine has, against double arithmetic. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cpu/cpu_attention.h"
#include "base/cpu.h"
#include "base/half.h"
#include "kernels/guard_support.h"
#include "kernels/level_support.h"
#include "quant/quant.h"

#define EPS 0x1p-24

static void near(const st_cpu_kernels *k, const char *what, double x, double got, double want, double bound)
{
    if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= bound) && got != want)
        fail_msg("%s %s(%.9g): %.9g, expected %.9g within %.3g, seed %llu", st_cpu_level_name(k->level), what, x, got,
                 want, bound, (unsigned long long)test_seed());
}

/* ---- maps ---- */

static double gelu(double x)
{
    return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
}
static double silu(double x)
{
    return x / (1 + exp(-x));
}
static double relu(double x)
{
    return x < 0 ? 0 : x;
}
static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double gelu_tanh(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

/* All activations, with both sides in a few lengths. */
static void check_glu(const st_cpu_kernels *k)
{
    double (*const want[])(double) = {
        [SOTTO_ACT_GELU] = gelu, [SOTTO_ACT_RELU] = relu, [SOTTO_ACT_SILU] = silu, [SOTTO_ACT_GELU_TANH] = gelu_tanh};
    for (int act = SOTTO_ACT_NONE; act <= SOTTO_ACT_GELU_TANH; act++)
        for (int64_t n = 0; n <= 67; n++) {
            float *a = guard_floats((size_t)n), *b = guard_floats((size_t)n), *y = guard_alloc((size_t)n * 4);
            for (int64_t i = 0; i < n; i++)
                a[i] *= 8;
            k->glu[act](a, b, y, n);
            for (int64_t i = 0; i < n; i++) {
                const double x = a[i], left = act == SOTTO_ACT_NONE ? x : want[act](x);
                const double error = act == SOTTO_ACT_GELU ? 2.8e-6 + 5e-7 * fabs(x) : 4e-7 * fabs(x);
                near(k, "glu", x, y[i], left * b[i],
                     (act == SOTTO_ACT_NONE ? 0 : error) * fabs(b[i]) + EPS * fabs(left * b[i]) + 1e-44);
            }
            guard_free_all();
        }
    const float x[] = {NAN, INFINITY, 1e30f, -1e30f, -30}, ones[] = {1, 1, 1, 1, 1};
    float y[5];
    k->glu[SOTTO_ACT_GELU_TANH](x, ones, y, 5);
    assert_true(isnan(y[0]) && y[1] == INFINITY && y[2] == 1e30f && y[3] == 0 && y[4] == 0);
}

/* Blocks have the bits of src/quant: halves, numbers that are none, and those whose scale a half cannot hold among them. */
static void check_blocks(const st_cpu_kernels *k)
{
    enum { N = 32 * 64 };
    static float x[N], y[N], want[N];
    static uint8_t blocks[N / 32 * 34 + 1], same[N / 32 * 34];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < N; i++) {
            const int kind = i / 32 % 16;
            x[i] = kind == 0   ? 0
                   : kind == 1 ? (float)((int)(test_random_bits() % 509) - 254) / 2 /* many halves */
                   : kind == 2 ? test_random() * 1e-39f
                   : kind == 3 ? test_random() * 3e38f
                   : kind == 4 ? test_random() * 1e-7f
                               : test_random() * (float)(1 + kind);
            if (kind == 7) /* halves and their neighbours */
                x[i] = (float)((int)(test_random_bits() % 254) - 127) + 0.5f;
            if (kind == 7 && i % 3)
                x[i] = nextafterf(x[i], i % 3 == 1 ? -1e3f : 1e3f);
            if (kind == 7 && i % 5 == 0)
                x[i] = nextafterf(0.5f, i % 2 ? 0 : 1) * (i % 3 ? 1.0f : -1.0f);
            if ((kind == 1 || kind == 7) && i % 32 == 0)
                x[i] = 127;
            if (kind == 5 && i % 7 == 0)
                x[i] = i % 2 ? NAN : -NAN;
            if (kind == 6 && i % 11 == 0)
                x[i] = i % 2 ? INFINITY : -INFINITY;
        }
        st_q8_0_pack(x, same, N);
        k->to_q8_0(x, blocks + 1, N);
        for (size_t i = 0; i < sizeof same; i++)
            if (blocks[1 + i] != same[i])
                fail_msg("%s: byte %zu of block %zu is %d, expected %d", st_cpu_level_name(k->level), i % 34, i / 34,
                         blocks[1 + i], same[i]);
        st_q8_0_unpack(same, want, N);
        k->from_q8_0(blocks + 1, y, N);
        for (int i = 0; i < N; i++)
            assert_true(y[i] == want[i] || (isnan(y[i]) && isnan(want[i])));
    }
}

static void check_turns(const st_cpu_kernels *k)
{
    enum { N = 20001 };
    float *t = guard_alloc(N * 4), *c = guard_alloc(N * 4), *s = guard_alloc(N * 4);
    for (int i = 0; i < N; i++)
        t[i] = i < 8 ? (float)(i - 4) / 8 : i % 3 ? (float)i / N - 0.5f : test_random() * 1e-4f;
    k->cos_sin(t, 1.5f, c, s, N);
    for (int i = 0; i < N; i++) {
        const double angle = 6.283185307179586 * t[i];
        near(k, "cos", t[i], c[i], 1.5 * cos(angle), 3e-7);
        near(k, "sin", t[i], s[i], 1.5 * sin(angle), fabs(t[i]) < 0.1f ? 2.4e-6 * fabs(t[i]) : 3e-7);
    }
    for (int pairs = 0; pairs <= 35; pairs++) {
        const float *x = guard_floats(2 * (size_t)pairs), *cosine = guard_floats(2 * (size_t)pairs),
                    *sine = guard_floats(2 * (size_t)pairs);
        float *y = guard_alloc(8 * (size_t)pairs);
        k->rotate_halves(x, cosine, sine, pairs, y);
        for (int i = 0; i < pairs; i++) {
            const double u = x[i], v = x[pairs + i];
            near(k, "halves", i, y[i], u * cosine[i] - v * sine[i], 4 * EPS);
            near(k, "halves", i, y[pairs + i], u * sine[i] + v * cosine[i], 4 * EPS);
        }
        k->rotate_neighbours(x, cosine, sine, 2 * pairs, y);
        for (int i = 0; i < 2 * pairs; i++)
            near(k, "neighbours", i, y[i], (double)x[i] * cosine[i] + (double)x[i ^ 1] * sine[i], 4 * EPS);
        guard_free_all();
    }
}

static void check_maps(const st_cpu_kernels *k)
{
    const struct {
        const char *name;
        st_cpu_map map;
        double (*want)(double);
        float low, high;
        double absolute, relative;
    } maps[] = {
        {"gelu", k->gelu, gelu, -20, 20, 2.8e-6, 5e-7},
        {"silu", k->silu, silu, -80, 80, 1e-37, 4e-7},
        {"relu", k->relu, relu, -5, 5, 0, 0},
        {"sigmoid", k->sigmoid, sigmoid, -80, 80, 1e-37, 4e-7},
        {"tanh", k->tanh, tanh, -12, 12, 1e-38, 3e-7},
        {"sqrt", k->sqrt, sqrt, 1e-3f, 1e3f, 0, EPS},
        {"exp", k->exp, exp, -100, 88, 1.5e-45, 2.5e-7},
        {"gelu small", k->gelu, gelu, -1e-3f, 1e-3f, 1e-9, 3e-6},
    };
    enum { N = 40001 };
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
        float *x = guard_alloc(N * 4), *y = guard_alloc(N * 4);
        for (int j = 0; j < N; j++)
            x[j] = maps[i].low + (maps[i].high - maps[i].low) * (float)j / N + 1e-4f * test_random();
        maps[i].map(x, y, N);
        for (int j = 0; j < N; j++) {
            const double want = maps[i].want(x[j]);
            near(k, maps[i].name, x[j], y[j], want, maps[i].absolute + maps[i].relative * fabs(want));
        }
        guard_free_all();
    }
    float special[] = {NAN, 0, INFINITY, -INFINITY, 1e-40f, 200, -200}, y[7];
    k->exp(special, y, 7);
    assert_true(isnan(y[0]) && y[1] == 1 && y[2] == INFINITY && y[3] == 0 && y[4] == 1 && y[5] == INFINITY && y[6] == 0);
    k->tanh(special, y, 7);
    assert_true(isnan(y[0]) && y[1] == 0 && y[2] == 1 && y[3] == -1 && y[4] == 1e-40f && y[5] == 1 && y[6] == -1);
    k->gelu(special, y, 7);
    assert_true(isnan(y[0]) && y[1] == 0 && y[2] == INFINITY && fabsf(y[5] - 200) < 2e-4f);
    k->relu(special, y, 7);
    assert_true(isnan(y[0]) && y[1] == 0 && y[2] == INFINITY && y[3] == 0 && y[6] == 0);
}

/* As many numbers of every power of two that the sum over mel filters may have, and all about 1. */
static void check_log10(const st_cpu_kernels *k)
{
    enum { N = 60000 };
    float *x = guard_alloc(N * 4), *y = guard_alloc(N * 4);
    for (int i = 0; i < N; i++)
        x[i] = i % 3 == 0 ? 1 + test_random() * 1e-3f : ldexpf(1 + 0.5f * (1 + test_random()), i % 60 - 40);
    k->log10(x, 1e-10f, y, N);
    for (int i = 0; i < N; i++) {
        const double want = log10(fmax(x[i], 1e-10f));
        near(k, "log10", x[i], y[i], want, EPS * fabs(want) + 4e-8);
    }
    const float special[] = {0, -1, -INFINITY, 1e-40f, 1};
    k->log10(special, 1e-10f, y, 5);
    for (int i = 0; i < 5; i++)
        near(k, "log10", special[i], y[i], i < 4 ? -10 : 0, 10 * EPS + 4e-8);
    guard_free_all();
}

static void check_elementwise(const st_cpu_kernels *k)
{
    for (int64_t n = 0; n <= 67; n++) {
        const float *a = guard_floats((size_t)n), *b = guard_floats((size_t)n);
        float *y = guard_alloc((size_t)n * 4);
        k->add(a, b, y, n);
        for (int64_t i = 0; i < n; i++)
            assert_true(y[i] == a[i] + b[i]);
        k->mul(a, b, y, n);
        for (int64_t i = 0; i < n; i++)
            assert_true(y[i] == a[i] * b[i]);
        k->add1(a, 0.3f, y, n);
        for (int64_t i = 0; i < n; i++)
            assert_true(y[i] == a[i] + 0.3f);
        k->scale(a, 0.7f, -0.1f, y, n);
        for (int64_t i = 0; i < n; i++)
            near(k, "scale", a[i], y[i], 0.7f * (double)a[i] + -0.1f, 3 * EPS);
        k->power(a, b, y, n);
        for (int64_t i = 0; i < n; i++) {
            const double want = (double)a[i] * a[i] + (double)b[i] * b[i];
            near(k, "power", a[i], y[i], want, 2 * EPS * want + 1e-44);
        }
        k->log10(a, 1e-10f, y, n);
        for (int64_t i = 0; i < n; i++) {
            const double want = log10(a[i] > 1e-10f ? a[i] : 1e-10f);
            near(k, "log10", a[i], y[i], want, EPS * fabs(want) + 4e-8);
        }
        uint16_t *h = guard_alloc((size_t)n * 2);
        k->to_f16(a, h, n);
        for (int64_t i = 0; i < n; i++)
            assert_int_equal(h[i], st_f32_to_f16(a[i]));
        k->from_f16(h, y, n);
        for (int64_t i = 0; i < n; i++)
            assert_true(y[i] == st_f16_to_f32(h[i]));
        k->from_bf16(h, y, n);
        for (int64_t i = 0; i < n; i++) {
            const float want = st_bf16_to_f32(h[i]);
            assert_true(isnan(want) ? isnan(y[i]) : y[i] == want);
        }
        uint32_t *bits = guard_alloc((size_t)n * 4); /* any float, with NaN, infinity and ties */
        for (int64_t i = 0; i < n; i++)
            bits[i] = test_random_bits() | (i % 3 == 0 ? 0x7f800000u : 0);
        for (int64_t i = 0; i < n; i++)
            bits[i] &= i % 5 == 0 ? 0xffff8000u : i % 7 == 0 ? 0xff80ffffu : 0xffffffffu;
        const float *any = (const float *)(const void *)bits;
        k->to_bf16(any, h, n);
        for (int64_t i = 0; i < n; i++)
            if (isnan(any[i]))
                assert_true(isnan(st_bf16_to_f32(h[i])));
            else
                assert_int_equal(h[i], st_f32_to_bf16(any[i]));
        guard_free_all();
    }
    for (uint32_t h = 0; h < 65536; h += 4) { /* every f16 */
        const uint16_t in[4] = {(uint16_t)h, (uint16_t)(h + 1), (uint16_t)(h + 2), (uint16_t)(h + 3)};
        float out[4];
        k->from_f16(in, out, 4);
        for (int i = 0; i < 4; i++) {
            const float want = st_f16_to_f32(in[i]);
            assert_true(isnan(want) ? isnan(out[i]) : out[i] == want);
        }
    }
}

/* ---- norms, softmax, argmax ---- */

static void check_norms(const st_cpu_kernels *k)
{
    for (int64_t n = 1; n <= 1300; n += n < 70 ? 1 : 397) {
        float *x = guard_floats((size_t)n);
        const float *w = guard_floats((size_t)n), *b = guard_floats((size_t)n);
        const float away = n % 3 == 0 ? 100.0f : 0.0f; /* rows far from zero must keep their digits */
        float *y = guard_alloc((size_t)n * 4);
        double mean = 0, squares = 0, variance = 0, top = 0;
        for (int64_t i = 0; i < n; i++) {
            x[i] += away;
            mean += x[i];
            squares += (double)x[i] * x[i];
            top = fmax(top, fabs((double)x[i]));
        }
        mean /= (double)n;
        for (int64_t i = 0; i < n; i++)
            variance += (x[i] - mean) * (x[i] - mean);
        const double inv = 1 / sqrt(variance / (double)n + 1e-5), rms = 1 / sqrt(squares / (double)n + 1e-5);
        /* the sums have lanes: n / 4 additions in a row at most; the mean's error acts on every element */
        const double slack = ((double)n / 4 + 8) * EPS;
        k->layer_norm(x, w, b, 1e-5f, n, y);
        for (int64_t i = 0; i < n; i++)
            near(k, "layer_norm", x[i], y[i], (x[i] - mean) * inv * w[i] + b[i],
                 slack * (top * inv * fabs(w[i]) * 2 + fabs(b[i])) + 1e-7);
        k->rms_norm(x, w, 1e-5f, n, y);
        for (int64_t i = 0; i < n; i++)
            near(k, "rms_norm", x[i], y[i], x[i] * rms * w[i], slack * fabs(x[i] * rms * w[i]) + 1e-37);
        guard_free_all();
    }
}

static void check_softmax(const st_cpu_kernels *k)
{
    for (int64_t n = 1; n <= 600; n += n < 40 ? 1 : 111) {
        float *x = guard_floats((size_t)n), *mask = guard_floats((size_t)n), *y = guard_alloc((size_t)n * 4);
        for (int64_t i = 0; i < n; i++) {
            x[i] *= 30;
            mask[i] = i % 3 == 1 ? -INFINITY : 0.0f;
        }
        for (int masked = 0; masked < 2; masked++) {
            double sum = 0, top = -INFINITY;
            for (int64_t i = 0; i < n; i++)
                top = fmax(top, x[i] * 0.5 + (masked ? mask[i] : 0));
            for (int64_t i = 0; i < n; i++)
                sum += exp(x[i] * 0.5 + (masked ? mask[i] : 0) - top);
            k->softmax(x, masked ? mask : NULL, 0.5f, n, y);
            for (int64_t i = 0; i < n; i++) {
                const double want = exp(x[i] * 0.5 + (masked ? mask[i] : 0) - top) / sum;
                near(k, "softmax", x[i], y[i], want, want * (64 + (double)n / 4) * EPS + 1e-44);
            }
        }
        for (int64_t i = 0; i < n; i++)
            mask[i] = -INFINITY;
        k->softmax(x, mask, 1.0f, n, y);
        for (int64_t i = 0; i < n; i++)
            assert_true(y[i] == 0);
        float *blocks = guard_floats(2 * ((n + 63) / 64));
        k->block_sums(x, n, blocks, blocks + (n + 63) / 64);
        for (int64_t b = 0; b * 64 < n; b++) {
            double top = -INFINITY, sum = 0;
            for (int64_t i = b * 64; i < n && i < b * 64 + 64; i++)
                top = fmax(top, x[i]);
            for (int64_t i = b * 64; i < n && i < b * 64 + 64; i++)
                sum += exp(x[i] - top);
            assert_true(blocks[b] == (float)top);
            near(k, "block_sums", x[b * 64], blocks[(n + 63) / 64 + b], sum, sum * 80 * EPS);
        }
        const int64_t at = (int64_t)(test_random_bits() % (uint32_t)n);
        x[at] = 1000;
        assert_int_equal(k->argmax(x, n), at);
        if (at + 1 < n)
            x[n - 1] = 1000; /* the first of equals */
        assert_int_equal(k->argmax(x, n), at);
        if (at > 0)
            x[0] = NAN;
        assert_int_equal(k->argmax(x, n), at);
        for (int64_t i = 0; i < n; i++)
            x[i] = NAN;
        assert_int_equal(k->argmax(x, n), 0);
        guard_free_all();
    }
}

/* ---- attention ---- */

/* One query over listed keys in double; error[..] gets a bound: scores carry d eps |q||k|, weights their exponential. */
static void reference_row(const float *q, int d, float scale, int64_t n, const float *(*row)(void *, int64_t, int),
                          void *user, double *out, double *error)
{
    double *p = malloc((size_t)n * sizeof *p), top = -INFINITY, sum = 0, size = 0;
    for (int64_t j = 0; j < n; j++) {
        const float *key = row(user, j, 0);
        double s = 0, a = 0;
        for (int i = 0; i < d; i++) {
            s += (double)q[i] * key[i];
            a += fabs((double)q[i] * key[i]);
        }
        p[j] = s * scale;
        size = fmax(size, a * fabs((double)scale));
        top = fmax(top, p[j]);
    }
    for (int64_t j = 0; j < n; j++)
        sum += p[j] = exp(p[j] - top);
    for (int i = 0; i < d; i++) {
        out[i] = error[i] = 0;
        for (int64_t j = 0; j < n; j++) {
            out[i] += p[j] / sum * row(user, j, 1)[i];
            error[i] += p[j] / sum * fabs((double)row(user, j, 1)[i]);
        }
        error[i] *= (2 * (d + 8) * size + (double)n + 32) * EPS * 2;
        error[i] += 1e-37;
    }
    free(p);
}

typedef struct keys {
    const float *k, *v;
    ptrdiff_t k_stride, v_stride;
    const int32_t *index;
    int64_t base, n_cell;
} keys;

static const float *key_row(void *user, int64_t j, int value)
{
    const keys *t = user;
    int64_t cell = t->index != NULL ? t->index[j] : t->base + j;
    cell = cell < 0 ? 0 : cell >= t->n_cell ? t->n_cell - 1 : cell;
    return value ? t->v + cell * t->v_stride : t->k + cell * t->k_stride;
}

static void check_attention(const st_cpu_kernels *k)
{
    static const int64_t sizes[][2] = {{1, 1}, {5, 31}, {13, 32}, {7, 33}, {30, 530}, {3, 1100}, {20, 12}, {40, 40}};
    static const int dims[] = {8, 24, 40, 64, 80, 128};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (size_t di = 0; di < sizeof dims / sizeof dims[0]; di++) {
            for (int causal = 0; causal < 2; causal++) {
                const int64_t n_q = sizes[i][0], n_k = sizes[i][1];
                const int d = dims[di];
                const float scale = i % 3 == 0 ? 30.0f : di % 2 ? 3.0f : 0.125f;
                st_cpu_attention a = guarded_head(n_q, n_k, d, scale);
                a.causal = causal;
                const ptrdiff_t stride = a.q_stride;
                float *packed = guard_alloc(4 * st_cpu_attention_packed(&a));
                float *scratch = guard_alloc(4 * st_cpu_attention_scratch(&a));
                for (int64_t p = 0; p < st_cpu_attention_pack_units(&a); p++)
                    st_cpu_attention_pack(k, &a, p, packed);
                const int tile = st_cpu_attention_tile(k);
                for (int64_t q = 0; q < n_q; q += tile)
                    st_cpu_attention_rows(k, &a, q, (int)(n_q - q < tile ? n_q - q : tile), packed, scratch);
                keys t = {a.k, a.v, stride, stride, NULL, 0, n_k};
                double want[128], error[128];
                for (int64_t q = 0; q < n_q; q++) {
                    int64_t visible = causal ? n_k - n_q + q + 1 : n_k;
                    visible = visible < 0 ? 0 : visible;
                    reference_row(a.q + q * stride, d, a.scale, visible, key_row, &t, want, error);
                    for (int j = 0; j < d; j++)
                        near(k, causal ? "causal attention" : "attention", d, a.out[q * stride + j], want[j], error[j]);
                }
                guard_free_all();
            }
        }
    }
}

/* Rows whose scores lie far from zero beside one whose do not, and what is no number. */
static void check_far_scores(const st_cpu_kernels *k)
{
    enum { ROWS = 4, KEYS = 1100, D = 24 };
    for (int last = 0; last < 2; last++) { /* far from the first key on, or from the last but one only */
        float *q = guard_floats(ROWS * D), *key = guard_floats(KEYS * D), *v = guard_floats(KEYS * D);
        st_cpu_attention a = {.q = q,
                              .k = key,
                              .v = v,
                              .out = guard_alloc(ROWS * D * 4),
                              .q_stride = D,
                              .k_stride = D,
                              .v_stride = D,
                              .out_stride = D,
                              .n_q = ROWS,
                              .n_k = KEYS,
                              .d = D,
                              .scale = 1.0f};
        float *packed = guard_alloc(4 * st_cpu_attention_packed(&a)),
              *scratch = guard_alloc(4 * st_cpu_attention_scratch(&a));
        for (int i = 0; i < KEYS; i++)
            key[i * D] = !last || i + 2 == KEYS ? 1 : 0;
        q[0] = 300;
        q[D] = -300;
        for (int nan = 0; nan < 2; nan++) {
            if (nan)
                q[2 * D] = NAN;
            for (int64_t p = 0; p < st_cpu_attention_pack_units(&a); p++)
                st_cpu_attention_pack(k, &a, p, packed);
            st_cpu_attention_rows(k, &a, 0, ROWS, packed, scratch);
            keys t = {key, v, D, D, NULL, 0, KEYS};
            double want[D], error[D];
            for (int r = 0; r < ROWS; r++) {
                reference_row(q + r * D, D, a.scale, KEYS, key_row, &t, want, error);
                for (int j = 0; j < D; j++)
                    near(k, "far scores", r, a.out[r * D + j], nan && r == 2 ? NAN : want[j], error[j]);
            }
        }
        guard_free_all();
    }
}

static void check_powers(const st_cpu_kernels *k)
{
    enum { ROWS = 3, CHUNKS = 4 };
    float x[CHUNKS * ROWS * 16], y[CHUNKS * ROWS * 16], sum[ROWS];
    for (int step = -1300; step < 1300; step++) {
        double want[ROWS] = {1, 1, 1};
        for (int i = 0; i < CHUNKS * ROWS * 16; i++) {
            x[i] = y[i] = (float)step * 0.1f + (float)i / (CHUNKS * ROWS * 160);
            want[i / 16 % ROWS] += exp2(x[i]);
        }
        sum[0] = sum[1] = sum[2] = 1;
        k->power_tile(y, ROWS, CHUNKS, sum);
        for (int i = 0; i < CHUNKS * ROWS * 16; i++) {
            if (x[i] >= -126 && x[i] <= 127)
                near(k, "power", x[i], y[i], exp2(x[i]), 2.5e-7 * exp2(x[i]));
            else
                assert_true(x[i] < 0 ? y[i] <= 0x1.00001p-126f : y[i] >= 0x1.fffffp126f);
        }
        for (int r = 0; r < ROWS; r++)
            if (step < 1150)
                near(k, "sum of powers", step, sum[r], want[r], 2e-6 * want[r]);
    }
    for (int i = 0; i < CHUNKS * ROWS * 16; i++)
        y[i] = i / 16 % ROWS == 1 ? NAN : -INFINITY;
    sum[0] = sum[1] = sum[2] = 0;
    k->power_tile(y, ROWS, CHUNKS, sum);
    assert_true(isnan(sum[1]) && sum[0] <= 1e-35f && sum[2] <= 1e-35f);
    for (int i = 0; i < CHUNKS * ROWS * 16; i++)
        assert_true(i / 16 % ROWS == 1 ? isnan(y[i]) : y[i] <= 0x1.00001p-126f);
}

/* n numbers of a cell in its type, and they themselves as that type has them. */
static void store_cell(sotto_dtype type, float *x, int n, char *to)
{
    if (type == SOTTO_Q8_0) {
        st_q8_0_pack(x, to, n);
        st_q8_0_unpack(to, x, n);
        return;
    }
    for (int i = 0; i < n; i++) {
        const uint16_t h = type == SOTTO_F16 ? st_f32_to_f16(x[i]) : st_f32_to_bf16(x[i]);
        if (type == SOTTO_F32) {
            memcpy(to + 4 * i, &x[i], 4);
            continue;
        }
        memcpy(to + 2 * i, &h, 2);
        x[i] = type == SOTTO_F16 ? st_f16_to_f32(h) : st_bf16_to_f32(h);
    }
}

static void check_cells_of(const st_cpu_kernels *k, sotto_dtype k_type, sotto_dtype v_type, int64_t n_kv, int d,
                           int rows)
{
    enum { HEADS = 2 }; /* this is the second */
    const int64_t n_cell = n_kv + 5;
    const ptrdiff_t stride = HEADS * d;
    const size_t k_bytes = sotto_dtype_row_bytes(k_type, d), v_bytes = sotto_dtype_row_bytes(v_type, d);
    float *kf = guard_floats((size_t)(n_cell * stride)), *vf = guard_floats((size_t)(n_cell * stride));
    char *ks = guard_alloc((size_t)n_cell * HEADS * k_bytes), *vs = guard_alloc((size_t)n_cell * HEADS * v_bytes);
    for (int i = 0; n_kv > 20 && i < d; i++) /* one cell whose scores are far from all others */
        kf[(n_kv / 2 * HEADS + 1) * d + i] *= 50;
    for (int64_t i = 0; i < n_cell * HEADS; i++) {
        store_cell(k_type, kf + i * d, d, ks + (size_t)i * k_bytes);
        store_cell(v_type, vf + i * d, d, vs + (size_t)i * v_bytes);
    }
    int32_t *index = guard_alloc((size_t)n_kv * 4);
    for (int64_t i = 0; i < n_kv; i++) /* some outside the cache */
        index[i] = (int32_t)(test_random_bits() % (uint32_t)(n_cell + 4)) - 2;
    for (int way = 0; way < 3; way++) { /* a list, cells in a row, and a row that begins or ends outside */
        st_cpu_cells c = {.n_row = rows,
                          .d = d,
                          .scale = 0.5f,
                          .k = ks + k_bytes,
                          .v = vs + v_bytes,
                          .k_stride = HEADS * k_bytes,
                          .v_stride = HEADS * v_bytes,
                          .k_type = k_type,
                          .v_type = v_type,
                          .index = way == 0 ? index : NULL,
                          .base = way == 1   ? 4
                                  : n_kv % 2 ? 7
                                             : -3,
                          .n_kv = n_kv,
                          .n_cell = n_cell,
                          .part = way == 0 && d % 16 != 0,
                          .scratch = guard_alloc(4 * st_cpu_cells_scratch(d))};
        for (int r = 0; r < rows; r++) {
            float *q = guard_floats((size_t)d);
            if (way == 1 && r == 1)
                q[d - 1] = NAN;
            c.q[r] = q;
            c.out[r] = guard_floats((size_t)d + (c.part ? 2 : 0));
        }
        k->cells(&c);
        keys t = {kf + d, vf + d, stride, stride, c.index, c.base, n_cell};
        double want[128], error[128];
        for (int r = 0; r < rows; r++) {
            reference_row(c.q[r], d, c.scale, n_kv, key_row, &t, want, error);
            for (int j = 0; j < d; j++)
                near(k, "cells", d, c.out[r][j] / (c.part && n_kv > 0 ? c.out[r][d + 1] : 1), want[j], error[j]);
        }
    }
    guard_free_all();
}

static void check_cells(const st_cpu_kernels *k)
{
    static const int64_t counts[] = {0, 1, 3, 15, 16, 17, 32, 255, 600};
    static const int dims[] = {8, 24, 64, 80, 96, 128};
    static const sotto_dtype types[][2] = {{SOTTO_F32, SOTTO_F32},   {SOTTO_F16, SOTTO_F16},  {SOTTO_BF16, SOTTO_BF16},
                                           {SOTTO_Q8_0, SOTTO_Q8_0}, {SOTTO_BF16, SOTTO_F16}, {SOTTO_Q8_0, SOTTO_BF16}};
    for (size_t type = 0; type < sizeof types / sizeof types[0]; type++)
        for (size_t ci = 0; ci < sizeof counts / sizeof counts[0]; ci++)
            for (size_t di = 0; di < sizeof dims / sizeof dims[0]; di++)
                if (types[type][0] != SOTTO_Q8_0 || dims[di] % 32 == 0)
                    check_cells_of(k, types[type][0], types[type][1], counts[ci], dims[di],
                                   1 + (int)((ci + di + 3 * type) % ST_CPU_MAX_SKINNY));
}

static void test_maps(void **state)
{
    (void)state;
    each_level(check_maps);
}
static void test_glu(void **state)
{
    (void)state;
    each_level(check_glu);
}
static void test_blocks(void **state)
{
    (void)state;
    each_level(check_blocks);
}
static void test_turns(void **state)
{
    (void)state;
    each_level(check_turns);
}
static void test_elementwise(void **state)
{
    (void)state;
    each_level(check_elementwise);
    each_level(check_log10);
}
static void test_norms(void **state)
{
    (void)state;
    each_level(check_norms);
}
static void test_softmax(void **state)
{
    (void)state;
    each_level(check_softmax);
}
static void test_attention(void **state)
{
    (void)state;
    each_level(check_attention);
    each_level(check_far_scores);
    each_level(check_powers);
}
static void test_cells(void **state)
{
    (void)state;
    each_level(check_cells);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps),    cmocka_unit_test(test_glu),         cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_turns),   cmocka_unit_test(test_elementwise), cmocka_unit_test(test_norms),
        cmocka_unit_test(test_softmax), cmocka_unit_test(test_attention),   cmocka_unit_test(test_cells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
