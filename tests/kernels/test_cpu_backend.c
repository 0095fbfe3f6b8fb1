/* test_cpu_backend.c: the CPU backend through the public interface: packed and plain weights, fused views, caches, several
 * threads, abort. Values against double sums; the kernels' own bounds are in test_products.c and test_rows.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/guard_support.h"
#include "kernels/level_support.h"
#include "sotto/backend.h"
#include "sotto/quant.h"

static void ok(sotto_status status, const sotto_error *err)
{
    if (status != SOTTO_OK)
        fail_msg("%s: %s", sotto_status_name(status), err->text);
}

static sotto_backend *open_backend(const char *level, int n_threads)
{
    sotto_error err;
    sotto_backend *b;
    const sotto_backend_options o = {.device = "cpu", .n_threads = n_threads, .cpu_level = level};
    ok(sotto_backend_open(&o, &b, &err), &err);
    return b;
}

static float *random_floats(int64_t n)
{
    float *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = test_random();
    return x;
}

/* A graph with its plan. */
typedef struct run {
    sotto_backend *backend;
    sotto_arena *arena;
    sotto_graph *g;
    sotto_plan *plan;
} run;

static void begin(run *r, sotto_backend *b)
{
    sotto_error err;
    r->backend = b;
    ok(sotto_arena_create(b, &r->arena, &err), &err);
    ok(sotto_graph_create("test", &r->g, &err), &err);
}

static void plan(run *r)
{
    sotto_error err;
    ok(sotto_graph_finish(r->g, &err), &err);
    ok(sotto_plan_create_take(r->backend, r->arena, r->g, &r->plan, &err), &err);
}

static void set(run *r, sotto_tensor *t, const void *data, size_t bytes)
{
    sotto_error err;
    ok(sotto_plan_set(r->plan, t, 0, data, bytes, &err), &err);
}

static float *result(run *r, sotto_tensor *t)
{
    sotto_error err;
    float *out = malloc(sotto_tensor_bytes(t));
    ok(sotto_plan_run(r->plan, NULL, &err), &err);
    ok(sotto_plan_get(r->plan, t, 0, out, sotto_tensor_bytes(t), &err), &err);
    return out;
}

static void end(run *r)
{
    sotto_plan_free(r->plan);
    sotto_arena_free(r->arena);
}

static sotto_tensor *input(run *r, const char *name, sotto_dtype t, int64_t d0, int64_t d1, int64_t d2)
{
    const int64_t dim[3] = {d0, d1, d2};
    return sotto_graph_input(r->g, name, t, 3, dim);
}

static void close_to(const char *what, int64_t i, double got, double want, double bound)
{
    if (!(fabs(got - want) <= bound))
        fail_msg("%s [%lld]: %.9g, expected %.9g", what, (long long)i, got, want);
}

/* ---- linear over stored weights of every type, uploaded in pieces, and over plain ones ---- */

/* What a left side is in products of integers: each 32 elements as multiples of their largest magnitude / 127. */
static void round_left(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += 32) {
        float most = 0;
        for (int j = 0; j < 32; j++)
            most = fmaxf(most, fabsf(x[i + j]));
        for (int j = 0; j < 32; j++)
            x[i + j] = rintf(x[i + j] * (127.0f / most)) * (most / 127.0f);
    }
}

static void check_linear(sotto_backend *b, sotto_compute compute, sotto_dtype type, bool matrix, int64_t m, int64_t n,
                         int64_t k)
{
    sotto_error err;
    sotto_store *store;
    ok(sotto_store_create(b, SOTTO_USAGE_WEIGHTS, &store, &err), &err);
    const int64_t w_dim[2] = {k, n};
    sotto_tensor *w = sotto_store_add(store, "w", type, 2, w_dim, matrix),
                 *bias = sotto_store_add(store, "b", SOTTO_F32, 1, &n, false);
    ok(sotto_store_allocate(store, &err), &err);
    float *wf = random_floats(n * k), *bf = random_floats(n), *x = random_floats(m * k), *res = random_floats(m * n);
    const size_t row = sotto_dtype_row_bytes(type, k);
    char *file = malloc((size_t)n * row);
    for (int64_t i = 0; i < n; i++) {
        assert_true(sotto_row_from_f32(type, wf + i * k, file + (size_t)i * row, k));
        assert_true(sotto_row_to_f32(type, file + (size_t)i * row, wf + i * k, k));
    }
    const int64_t part = n / 3;
    ok(sotto_store_upload(store, w, 0, part, type, file, &err), &err);
    ok(sotto_store_upload(store, w, part, n - part, type, file + (size_t)part * row, &err), &err);
    ok(sotto_store_upload(store, bias, 0, 1, SOTTO_F32, bf, &err), &err);
    float *back = malloc((size_t)(n * k) * 4);
    ok(sotto_store_download(store, w, back, &err), &err);
    assert_memory_equal(back, wf, (size_t)(n * k) * 4);

    run r;
    begin(&r, b);
    sotto_graph_set_compute(r.g, compute);
    sotto_tensor *tx = input(&r, "x", SOTTO_F32, k, m, 1), *tr = input(&r, "r", SOTTO_F32, n, m, 1);
    const int32_t rows[] = {(int32_t)n - 1, -1, 0, (int32_t)n};
    sotto_tensor *list = input(&r, "rows", SOTTO_I32, 4, 1, 1);
    sotto_tensor *y = sotto_linear(r.g, tx, sotto_graph_use(r.g, w), sotto_graph_use(r.g, bias), SOTTO_ACT_GELU, tr);
    sotto_graph_output(r.g, y, "y");
    sotto_tensor *got = sotto_get_rows(r.g, sotto_graph_use(r.g, w), list);
    sotto_graph_output(r.g, got, "got");
    plan(&r);
    set(&r, tx, x, (size_t)(m * k) * 4);
    set(&r, tr, res, (size_t)(m * n) * 4);
    set(&r, list, rows, sizeof rows);
    float *out = result(&r, y);
    if (compute == SOTTO_COMPUTE_INT8 && matrix)
        round_left(x, m * k);
    for (int64_t i = 0; i < m * n; i++) {
        double s = bf[i % n];
        for (int64_t j = 0; j < k; j++)
            s += (double)x[i / n * k + j] * wf[i % n * k + j];
        close_to("linear", i, out[i], 0.5 * s * (1 + erf(s * 0.70710678118654752)) + res[i], 2e-4);
    }
    float *found = malloc((size_t)(4 * k) * 4);
    ok(sotto_plan_get(r.plan, got, 0, found, (size_t)(4 * k) * 4, &err), &err);
    for (int64_t j = 0; j < k; j++) {
        assert_true(found[j] == wf[(n - 1) * k + j] && found[k + j] == 0 && found[2 * k + j] == wf[j] &&
                    found[3 * k + j] == 0);
    }
    end(&r);
    sotto_store_free(store);
    free(wf), free(bf), free(x), free(res), free(file), free(back), free(out), free(found);
}

static void test_linear(void **state)
{
    (void)state;
    static const sotto_dtype types[] = {SOTTO_F32,  SOTTO_F16,  SOTTO_BF16, SOTTO_Q8_0,   SOTTO_Q5_1,
                                        SOTTO_Q5_0, SOTTO_Q4_1, SOTTO_Q4_0, SOTTO_IQ4_NL, SOTTO_Q6_K,
                                        SOTTO_Q5_K, SOTTO_Q4_K, SOTTO_Q3_K, SOTTO_Q2_K};
    static const int64_t rows[] = {1, 5, 9, 121, 300};
    for (int level = 0; level < ST_CPU_LEVEL_COUNT; level++) {
        if (!level_tested((st_cpu_level)level))
            continue;
        sotto_backend *b = open_backend(st_cpu_level_name((st_cpu_level)level), 3);
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
            const int64_t k = sotto_dtype_block(types[t]) == 256 ? 256 : 96;
            for (size_t m = 0; m < sizeof rows / sizeof rows[0] && sotto_dtype_can_pack(types[t]); m++) {
                check_linear(b, SOTTO_COMPUTE_F32, types[t], m % 2 == 0 || t % 2 == 0, rows[m], 77, k);
                if (sotto_dtype_block(types[t]) > 1)
                    check_linear(b, SOTTO_COMPUTE_INT8, types[t], true, rows[m], 77, k);
            }
        }
        sotto_backend_free(b);
    }
}

static void test_options(void **state)
{
    (void)state;
    sotto_error err;
    sotto_backend *b;
    sotto_backend_options o = {.device = "cpu", .cpu_level = "v9"};
    assert_int_equal(sotto_backend_open(&o, &b, &err), SOTTO_E_ARGUMENT);
    assert_non_null(strstr(err.text, "v9"));
    o.cpu_level = "portable";
    o.n_threads = -1;
    assert_int_equal(sotto_backend_open(&o, &b, &err), SOTTO_E_ARGUMENT);
    o.n_threads = 2000;
    assert_int_equal(sotto_backend_open(&o, &b, &err), SOTTO_E_ARGUMENT);
    o.n_threads = 2;
    ok(sotto_backend_open(&o, &b, &err), &err);
    assert_non_null(strstr(sotto_backend_description(b), "portable, 2 threads"));
    sotto_backend_free(b);
}

/* ---- attention over slices of one fused product, batches, grouped heads ---- */

static void test_attention(void **state)
{
    (void)state;
    enum { D = 16, H = 4, HK = 2, N = 50, B = 2, W = (H + 2 * HK) * D };
    sotto_backend *b = open_backend(NULL, 3);
    for (int causal = 0; causal < 2; causal++) {
        run r;
        begin(&r, b);
        sotto_tensor *x = input(&r, "qkv", SOTTO_F32, W, N, B);
        const int64_t q_dim[4] = {D, H, N, B}, k_dim[4] = {D, HK, N, B};
        (void)q_dim, (void)k_dim;
        const int64_t fused[4] = {D, H + 2 * HK, N, B};
        sotto_tensor *heads = sotto_view_reshape(r.g, x, 4, fused);
        sotto_tensor *q = sotto_view_slice(r.g, heads, 1, 0, H), *k = sotto_view_slice(r.g, heads, 1, H, HK),
                     *v = sotto_view_slice(r.g, heads, 1, H + HK, HK);
        sotto_tensor *y = sotto_attention(r.g, q, k, v, 0.7f, causal);
        sotto_graph_output(r.g, y, "y");
        plan(&r);
        float *data = random_floats((int64_t)W * N * B);
        set(&r, x, data, sizeof(float) * W * N * B);
        float *out = result(&r, y);
        for (int bi = 0; bi < B; bi++) {
            for (int h = 0; h < H; h++) {
                for (int i = 0; i < N; i++) {
                    double p[N], sum = 0;
                    const float *qr = data + (bi * N + i) * W + h * D;
                    const int n = causal ? i + 1 : N;
                    for (int j = 0; j < n; j++) {
                        const float *kr = data + (bi * N + j) * W + (H + h / 2) * D;
                        double s = 0;
                        for (int e = 0; e < D; e++)
                            s += (double)qr[e] * kr[e];
                        sum += p[j] = exp(0.7 * s);
                    }
                    for (int e = 0; e < D; e++) {
                        double want = 0;
                        for (int j = 0; j < n; j++)
                            want += p[j] / sum * data[(bi * N + j) * W + (H + HK + h / 2) * D + e];
                        close_to("attention", i, out[((bi * N + i) * H + h) * D + e], want, 1e-5);
                    }
                }
            }
        }
        free(data), free(out);
        end(&r);
    }
    sotto_backend_free(b);
}

/* ---- a cache written by set_rows and read by lists and by ranges ---- */

static void check_cache(sotto_backend *b, sotto_dtype type, bool listed)
{
    enum { D = 8, H = 3, CELLS = 40, ROWS = 11, MAX = 30, LISTS = 4 };
    sotto_error err;
    sotto_store *store;
    ok(sotto_store_create(b, SOTTO_USAGE_CACHE, &store, &err), &err);
    const int64_t dim[2] = {D * H, CELLS};
    sotto_tensor *ck = sotto_store_add(store, "k", type, 2, dim, false),
                 *cv = sotto_store_add(store, "v", type, 2, dim, false);
    ok(sotto_store_allocate(store, &err), &err);
    run r;
    begin(&r, b);
    sotto_tensor *x = input(&r, "x", SOTTO_F32, D * H, CELLS, 1), *where = input(&r, "where", SOTTO_I32, CELLS, 1, 1);
    sotto_tensor *q = input(&r, "q", SOTTO_F32, D, H, ROWS), *base = input(&r, "base", SOTTO_I32, ROWS, 1, 1),
                 *n_kv = input(&r, "n", SOTTO_I32, ROWS, 1, 1), *index = input(&r, "index", SOTTO_I32, MAX, LISTS, 1);
    const int64_t cells[3] = {D, H, CELLS};
    sotto_tensor *k = sotto_set_rows(r.g, sotto_graph_use(r.g, ck), where, x);
    sotto_tensor *v = sotto_copy_into(r.g, sotto_graph_use(r.g, cv), sotto_scale(r.g, x, -2.0f, 0.5f));
    sotto_tensor *y =
        sotto_cache_attention(r.g, q, sotto_view_reshape(r.g, k, 3, cells), sotto_view_reshape(r.g, v, 3, cells),
                              listed ? index : NULL, base, n_kv, 0.3f, 0);
    sotto_graph_output(r.g, y, "y");
    plan(&r);
    float *xf = random_floats(D * H * CELLS), *qf = random_floats(D * H * ROWS);
    int32_t whf[CELLS], bf[ROWS], nf[ROWS], idx[LISTS][MAX];
    for (int i = 0; i < CELLS; i++)
        whf[i] = (i * 7) % CELLS; /* a permutation */
    for (int i = 0; i < ROWS; i++) {
        bf[i] = listed ? i / 3 % LISTS : i / 4 * 3;
        nf[i] = i / 3 * 9;
    }
    for (int i = 0; i < LISTS * MAX; i++)
        idx[i / MAX][i % MAX] = (int32_t)(test_random_bits() % CELLS);
    set(&r, x, xf, sizeof(float) * D * H * CELLS);
    set(&r, q, qf, sizeof(float) * D * H * ROWS);
    set(&r, where, whf, sizeof whf);
    set(&r, base, bf, sizeof bf);
    set(&r, n_kv, nf, sizeof nf);
    set(&r, index, idx, sizeof idx);
    float *out = result(&r, y);
    for (int i = 0; i < ROWS; i++) {
        for (int h = 0; h < H; h++) {
            double p[MAX], sum = 0;
            int cell[MAX], from[MAX];
            for (int j = 0; j < nf[i]; j++) {
                cell[j] = listed ? idx[bf[i]][j] : bf[i] + j;
                for (int c = 0; c < CELLS; c++)
                    if (whf[c] == cell[j])
                        from[j] = c;
                double s = 0;
                for (int e = 0; e < D; e++)
                    s += (double)qf[(i * H + h) * D + e] * xf[from[j] * D * H + h * D + e];
                sum += p[j] = exp(0.3 * s);
            }
            for (int e = 0; e < D; e++) {
                double want = 0;
                for (int j = 0; j < nf[i]; j++)
                    want += p[j] / sum * (0.5 - 2.0 * xf[cell[j] * D * H + h * D + e]);
                close_to("cache", i, out[(i * H + h) * D + e], want,
                         type == SOTTO_F32   ? 1e-5
                         : type == SOTTO_F16 ? 3e-3
                                             : 3e-2);
            }
        }
    }
    /* numbers out of range are brought into it */
    for (int i = 0; i < ROWS; i++) {
        bf[i] = i % 2 ? INT32_MAX : INT32_MIN;
        nf[i] = i % 3 ? INT32_MAX : INT32_MIN;
    }
    for (int i = 0; i < LISTS * MAX; i++)
        idx[i / MAX][i % MAX] = i % 2 ? INT32_MAX : INT32_MIN;
    set(&r, base, bf, sizeof bf);
    set(&r, n_kv, nf, sizeof nf);
    set(&r, index, idx, sizeof idx);
    free(out);
    out = result(&r, y);
    for (int i = 0; i < ROWS * D * H; i++)
        assert_true(isfinite(out[i]));
    free(out), free(xf), free(qf);
    end(&r);
    sotto_store_free(store);
}

static void test_cache(void **state)
{
    (void)state;
    sotto_backend *b = open_backend(NULL, 2);
    for (int listed = 0; listed < 2; listed++) {
        check_cache(b, SOTTO_F32, listed);
        check_cache(b, SOTTO_F16, listed);
        check_cache(b, SOTTO_BF16, listed);
    }
    sotto_backend_free(b);
}

/* ---- batched products, convolution, and a chain of the rest ---- */

static void test_products(void **state)
{
    (void)state;
    enum { N = 130, M = 37, K = 20, B = 3 };
    sotto_backend *b = open_backend(NULL, 2);
    run r;
    begin(&r, b);
    sotto_tensor *a = input(&r, "a", SOTTO_F32, K, N, B), *c = input(&r, "b", SOTTO_F32, K, M, B),
                 *one = input(&r, "c", SOTTO_F32, K, M, 1);
    sotto_tensor *y = sotto_matmul(r.g, a, c), *z = sotto_matmul(r.g, a, one);
    sotto_graph_output(r.g, y, "y");
    sotto_graph_output(r.g, z, "z");
    plan(&r);
    float *af = random_floats(N * B * K), *cf = random_floats(M * B * K);
    set(&r, a, af, sizeof(float) * N * B * K);
    set(&r, c, cf, sizeof(float) * M * B * K);
    set(&r, one, cf, sizeof(float) * M * K);
    float *yf = result(&r, y), *zf = result(&r, z);
    for (int i = 0; i < B * N * M; i++) {
        double s = 0, s1 = 0;
        for (int j = 0; j < K; j++) {
            s += (double)af[i / M * K + j] * cf[(i / M / N * M + i % M) * K + j];
            s1 += (double)af[i / M * K + j] * cf[i % M * K + j];
        }
        close_to("matmul", i, yf[i], s, 1e-5);
        close_to("matmul, broadcast", i, zf[i], s1, 1e-5);
    }
    end(&r);
    free(af), free(cf), free(yf), free(zf);

    enum { T = 301, C = 10, OUT = 40, KERNEL = 3 };
    begin(&r, b);
    sotto_tensor *x = input(&r, "x", SOTTO_F32, C, T, 2), *w = input(&r, "w", SOTTO_F32, KERNEL * C, OUT, 1);
    y = sotto_conv_1d(r.g, x, w, NULL, KERNEL, 2, 1, SOTTO_ACT_RELU, NULL);
    sotto_graph_output(r.g, y, "y");
    plan(&r);
    float *xf = random_floats(C * T * 2), *wf = random_floats(KERNEL * C * OUT);
    set(&r, x, xf, sizeof(float) * C * T * 2);
    set(&r, w, wf, sizeof(float) * KERNEL * C * OUT);
    yf = result(&r, y);
    const int t_out = (T + 2 - KERNEL) / 2 + 1;
    for (int i = 0; i < 2 * t_out * OUT; i++) {
        const int o = i % OUT, t = i / OUT % t_out, n = i / OUT / t_out;
        double s = 0;
        for (int u = 0; u < KERNEL; u++)
            for (int ch = 0; ch < C; ch++)
                if (t * 2 + u - 1 >= 0 && t * 2 + u - 1 < T)
                    s += (double)xf[(n * T + t * 2 + u - 1) * C + ch] * wf[o * KERNEL * C + u * C + ch];
        close_to("conv_1d", i, yf[i], s > 0 ? s : 0, 1e-5);
    }
    end(&r);
    free(xf), free(wf), free(yf);
    sotto_backend_free(b);
}

/* ---- abort, repeatability, more threads than cores ---- */

typedef struct stopper {
    int asked, stop_after;
} stopper;

static bool stop(void *user)
{
    stopper *s = user;
    return ++s->asked > s->stop_after;
}

static void test_abort(void **state)
{
    (void)state;
    enum { N = 700, K = 256 };
    sotto_error err;
    float *first = NULL;
    for (int n_threads = 1; n_threads <= 9; n_threads += 4) {
        sotto_backend *b = open_backend(NULL, n_threads);
        run r;
        begin(&r, b);
        sotto_tensor *x = input(&r, "x", SOTTO_F32, K, N, 1), *w = input(&r, "w", SOTTO_F32, K, K, 1), *y = x;
        for (int i = 0; i < 6; i++)
            y = sotto_scale(r.g, sotto_linear(r.g, y, w, NULL, SOTTO_ACT_NONE, i % 2 ? y : NULL), 0.1f, 0.0f);
        sotto_graph_output(r.g, y, "y");
        plan(&r);
        test_seed();
        float *xf = malloc(sizeof(float) * N * K);
        for (int i = 0; i < N * K; i++)
            xf[i] = (float)((i * 7919) % 1001 - 500) / 500;
        set(&r, x, xf, sizeof(float) * N * K);
        set(&r, w, xf, sizeof(float) * K * K);
        for (int after = 0; after < 12; after += 3) {
            stopper s = {0, after};
            const sotto_run_options o = {.abort = stop, .abort_user = &s};
            const sotto_status status = sotto_plan_run(r.plan, &o, &err);
            /* other threads may do steps before the caller's own, which asks, comes to them */
            assert_int_equal(status, s.asked > after ? SOTTO_E_ABORTED : SOTTO_OK);
            assert_true(status == SOTTO_E_ABORTED || (n_threads > 1 && after > 0));
        }
        set(&r, x, xf, sizeof(float) * N * K);
        set(&r, w, xf, sizeof(float) * K * K);
        float *out = result(&r, y);
        float *again = result(&r, y);
        assert_memory_equal(out, again, sizeof(float) * N * K);
        if (first == NULL)
            first = out;
        else {
            assert_memory_equal(out, first, sizeof(float) * N * K);
            free(out);
        }
        free(again), free(xf);
        end(&r);
        sotto_backend_free(b);
    }
    free(first);
}

/* Weights that visit another device are read back by all threads: the same bits whoever reads which rows. */
static void test_download(void **state)
{
    (void)state;
    static const sotto_dtype types[] = {SOTTO_F32, SOTTO_F16, SOTTO_BF16, SOTTO_I8, SOTTO_Q4_0, SOTTO_Q5_1, SOTTO_Q4_K};
    enum { WIDTH = 256, ROWS = 331 };
    const int64_t dim[2] = {WIDTH, ROWS};
    float *x = random_floats(WIDTH * ROWS), *back = malloc(sizeof *x * WIDTH * ROWS),
          *one = malloc(sizeof *x * WIDTH * ROWS);
    char *packed = malloc(sizeof *x * WIDTH * ROWS);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (int n_threads = 1; n_threads < 6; n_threads += 2) {
            sotto_error err;
            sotto_backend *b = open_backend(NULL, n_threads);
            sotto_store *s;
            ok(sotto_store_create(b, SOTTO_USAGE_WEIGHTS, &s, &err), &err);
            sotto_tensor *t = sotto_store_add(s, "w", types[i], 2, dim, true);
            ok(sotto_store_allocate(s, &err), &err);
            const bool plain = types[i] == SOTTO_I8;
            assert_true(plain || sotto_row_from_f32(types[i], x, packed, WIDTH * ROWS));
            ok(sotto_store_upload(s, t, 0, ROWS, plain ? SOTTO_F32 : types[i], plain ? (void *)x : packed, &err), &err);
            ok(sotto_store_download(s, t, back, &err), &err);
            if (n_threads == 1)
                memcpy(one, back, sizeof *x * WIDTH * ROWS);
            assert_memory_equal(back, one, sizeof *x * WIDTH * ROWS);
            for (int64_t k = 0; k < WIDTH * ROWS; k++)
                assert_true(fabsf(back[k] - x[k]) < 0.2f);
            sotto_store_free(s);
            sotto_backend_free(b);
        }
    free(x);
    free(back);
    free(one);
    free(packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_options),   cmocka_unit_test(test_linear),
                                       cmocka_unit_test(test_attention), cmocka_unit_test(test_cache),
                                       cmocka_unit_test(test_products),  cmocka_unit_test(test_abort),
                                       cmocka_unit_test(test_download)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
