/* test_chains.c: operations that follow each other run for one block of rows after the other. When nodes are timed they run
 * one by one: both ways give the same bits. */
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

enum { MAX_OUTPUTS = 8, N_WEIGHTS = 7 };

typedef struct scene {
    sotto_backend *backend;
    sotto_store *weights, *cache;
    sotto_tensor *matrix[N_WEIGHTS], *bias, *k, *v;
    sotto_graph *g;
    sotto_tensor *x, *output[MAX_OUTPUTS];
    int n_output;
    int64_t d, wide, rows;
} scene;

static void ok(sotto_status status, const sotto_error *err)
{
    if (status != SOTTO_OK)
        fail_msg("%s: %s", sotto_status_name(status), err->text);
}

static float *random_floats(int64_t n)
{
    float *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = test_random();
    return x;
}

/* [n, k]; the types that hold blocks want k in whole ones */
static sotto_tensor *matrix(scene *s, sotto_dtype type, int64_t k, int64_t n, const char *name)
{
    const int64_t dim[2] = {k, n};
    return sotto_store_add(s->weights, name, type, 2, dim, true);
}

static void fill_matrix(scene *s, sotto_tensor *t, sotto_dtype type)
{
    sotto_error err;
    const int64_t k = sotto_tensor_dim(t, 0), n = sotto_tensor_dim(t, 1);
    const sotto_dtype from = type == SOTTO_I8 ? SOTTO_F32 : type;
    const size_t row = sotto_dtype_row_bytes(from, k);
    float *x = random_floats(k * n);
    char *packed = malloc(row * (size_t)n);
    for (int64_t i = 0; i < n; i++)
        assert_true(sotto_row_from_f32(from, x + i * k, packed + (size_t)i * row, k));
    ok(sotto_store_upload(s->weights, t, 0, n, from, packed, &err), &err);
    free(x);
    free(packed);
}

static void make_stores(scene *s, sotto_dtype type)
{
    sotto_error err;
    const int64_t d = s->d, w = s->wide, one[1] = {w > 3 * d ? w : 3 * d}, cell[3] = {d / 2, s->rows + 5, 2};
    ok(sotto_store_create(s->backend, SOTTO_USAGE_WEIGHTS, &s->weights, &err), &err);
    const int64_t shape[N_WEIGHTS][2] = {{d, d}, {d, w}, {w, d}, {d, 3 * d}, {d, 2 * d}, {d, 2 * d}, {d, d}};
    static const char *const names[N_WEIGHTS] = {"out", "up", "down", "qkv", "kv0", "kv1", "last"};
    for (int i = 0; i < N_WEIGHTS; i++)
        s->matrix[i] = matrix(s, type, shape[i][0], shape[i][1], names[i]);
    s->bias = sotto_store_add(s->weights, "bias", SOTTO_F32, 1, one, false);
    ok(sotto_store_allocate(s->weights, &err), &err);
    for (int i = 0; i < N_WEIGHTS; i++)
        fill_matrix(s, s->matrix[i], type);
    float *bias = random_floats(one[0]);
    ok(sotto_store_upload(s->weights, s->bias, 0, 1, SOTTO_F32, bias, &err), &err);
    free(bias);
    ok(sotto_store_create(s->backend, SOTTO_USAGE_CACHE, &s->cache, &err), &err);
    s->k = sotto_store_add(s->cache, "k", SOTTO_BF16, 3, cell, false);
    s->v = sotto_store_add(s->cache, "v", SOTTO_F16, 3, cell, false);
    ok(sotto_store_allocate(s->cache, &err), &err);
}

static sotto_tensor *output(scene *s, sotto_tensor *t)
{
    char name[16];
    snprintf(name, sizeof name, "y%d", s->n_output);
    sotto_graph_output(s->g, t, name);
    return s->output[s->n_output++] = t;
}

static sotto_tensor *bias_of(scene *s, int64_t n)
{
    return sotto_view_slice(s->g, sotto_graph_use(s->g, s->bias), 0, 0, n);
}

static sotto_tensor *linear(scene *s, sotto_tensor *x, int i, sotto_activation act, sotto_tensor *residual)
{
    sotto_tensor *w = sotto_graph_use(s->g, s->matrix[i]);
    return sotto_linear(s->g, x, w, bias_of(s, sotto_tensor_dim(w, 1)), act, residual);
}

static sotto_tensor *norm(scene *s, sotto_tensor *x, bool rms)
{
    return rms ? sotto_rms_norm(s->g, x, bias_of(s, s->d), 1e-5f)
               : sotto_layer_norm(s->g, x, bias_of(s, s->d), bias_of(s, s->d), 1e-5f);
}

/* The keys or values of one half of a product into a cache, heads first. */
static void store_part(scene *s, sotto_tensor *kv, int part, sotto_tensor *cache)
{
    static const int axis[4] = {0, 2, 1, 3};
    const int64_t heads[3] = {s->d / 2, 2, s->rows};
    sotto_tensor *x = sotto_view_slice(s->g, kv, 0, part * s->d, s->d);
    x = sotto_view_permute(s->g, sotto_view_reshape(s->g, x, 3, heads), axis);
    sotto_tensor *to = sotto_view_slice(s->g, sotto_graph_use(s->g, cache), 1, 3, s->rows);
    sotto_tensor *copied = sotto_copy_into(s->g, to, x);
    output(s, sotto_copy(s->g, copied, SOTTO_F32));
}

/* What lies between two attentions; `kind` says what else reads it. */
static void build(scene *s, int kind)
{
    const int64_t dim[2] = {s->d, s->rows};
    s->x = sotto_graph_input(s->g, "x", SOTTO_F32, 2, dim);
    sotto_tensor *x = sotto_gelu(s->g, s->x); /* in memory that is free again */
    sotto_tensor *h = sotto_silu(s->g, x);
    x = linear(s, h, 0, SOTTO_ACT_NONE, x);
    if (kind == 1)
        output(s, x);
    h = norm(s, x, kind == 2);
    sotto_tensor *up = linear(s, h, 1, SOTTO_ACT_GELU, NULL);
    x = linear(s, up, 2, SOTTO_ACT_NONE, x);
    h = norm(s, x, false);
    sotto_tensor *qkv = linear(s, h, 3, SOTTO_ACT_NONE, NULL);
    if (kind == 3) /* the norm is wanted later, too */
        x = sotto_add(s->g, x, h);
    sotto_tensor *part = sotto_view_slice(s->g, qkv, 0, s->d, s->d);
    x = sotto_add(s->g, x, sotto_copy(s->g, part, SOTTO_F32));
    x = norm(s, x, false);
    if (kind == 4)
        output(s, x);
    for (int i = 0; i < 2; i++) {
        sotto_tensor *kv = linear(s, x, 4 + i, SOTTO_ACT_NONE, NULL);
        store_part(s, kv, 0, i == 0 ? s->k : s->v);
        if (kind == 5)
            output(s, sotto_copy(s->g, kv, SOTTO_F32));
    }
    output(s, linear(s, x, 6, SOTTO_ACT_SILU, x));
}

/* The last product's result has room where the first one's left side lies, rows of which are read at the same time. */
static void build_over(scene *s)
{
    const int64_t dim[2] = {s->d, s->rows};
    s->x = sotto_graph_input(s->g, "x", SOTTO_F32, 2, dim);
    sotto_tensor *left = sotto_silu(s->g, linear(s, s->x, 1, SOTTO_ACT_NONE, NULL));
    sotto_tensor *h = norm(s, linear(s, left, 2, SOTTO_ACT_NONE, NULL), false);
    sotto_tensor *y = linear(s, h, 0, SOTTO_ACT_NONE, NULL);
    output(s, sotto_gelu(s->g, sotto_add(s->g, y, y)));
}

/* Into an attention, which on some levels finds its operands packed; of kind 8 something else reads them, too. */
static void build_attention(scene *s, int kind)
{
    const int64_t dim[2] = {s->d, s->rows}, heads[3] = {32, s->d / 32, s->rows};
    s->x = sotto_graph_input(s->g, "x", SOTTO_F32, 2, dim);
    sotto_tensor *qkv = linear(s, norm(s, s->x, false), 3, SOTTO_ACT_NONE, NULL), *part[3];
    for (int i = 0; i < 3; i++)
        part[i] = sotto_view_reshape(s->g, sotto_view_slice(s->g, qkv, 0, i * s->d, s->d), 3, heads);
    sotto_tensor *y = sotto_attention(s->g, part[0], part[1], part[2], 0.2f, false);
    if (kind == 8)
        output(s, sotto_gelu(s->g, qkv));
    output(s, linear(s, y, 0, SOTTO_ACT_NONE, s->x));
}

static void ignore(void *user, const sotto_trace_node *node)
{
    (void)user;
    (void)node;
}

static void check(const char *level, int threads, sotto_dtype type, sotto_compute compute, int64_t d, int64_t rows,
                  int kind)
{
    sotto_error err;
    scene s = {.d = d, .wide = 2 * d + 32, .rows = rows};
    const sotto_backend_options o = {.device = "cpu", .n_threads = threads, .cpu_level = level};
    ok(sotto_backend_open(&o, &s.backend, &err), &err);
    make_stores(&s, type);
    sotto_arena *arena;
    sotto_plan *plan;
    ok(sotto_arena_create(s.backend, &arena, &err), &err);
    ok(sotto_graph_create("chain", &s.g, &err), &err);
    sotto_graph_set_compute(s.g, compute);
    if (kind < 6)
        build(&s, kind);
    else if (kind == 6)
        build_over(&s);
    else
        build_attention(&s, kind);
    ok(sotto_graph_finish(s.g, &err), &err);
    ok(sotto_plan_create_take(s.backend, arena, s.g, &plan, &err), &err);
    float *in = random_floats(d * rows);
    void *got[2][MAX_OUTPUTS];
    for (int way = 0; way < 2; way++) {
        const sotto_run_options single = {.trace = ignore}, fused = {0};
        ok(sotto_plan_set(plan, s.x, 0, in, (size_t)(d * rows) * sizeof *in, &err), &err);
        ok(sotto_plan_run(plan, way == 0 ? &single : &fused, &err), &err);
        for (int i = 0; i < s.n_output; i++) {
            const size_t bytes = sotto_tensor_bytes(s.output[i]);
            got[way][i] = malloc(bytes);
            ok(sotto_plan_get(plan, s.output[i], 0, got[way][i], bytes, &err), &err);
        }
    }
    for (int i = 0; i < s.n_output; i++) {
        if (memcmp(got[0][i], got[1][i], sotto_tensor_bytes(s.output[i])) != 0)
            fail_msg("%s, %d threads, %s, %lld columns, %lld rows, graph %d: output %d differs", level, threads,
                     sotto_dtype_name(type), (long long)d, (long long)rows, kind, i);
        free(got[0][i]);
        free(got[1][i]);
    }
    free(in);
    sotto_plan_free(plan);
    sotto_arena_free(arena);
    sotto_store_free(s.weights);
    sotto_store_free(s.cache);
    sotto_backend_free(s.backend);
}

static void test_chains(void **state)
{
    (void)state;
    static const struct {
        sotto_dtype type;
        sotto_compute compute;
    } ways[] = {{SOTTO_F32, SOTTO_COMPUTE_F32},   {SOTTO_I8, SOTTO_COMPUTE_BF16}, {SOTTO_BF16, SOTTO_COMPUTE_BF16},
                {SOTTO_Q4_1, SOTTO_COMPUTE_INT8}, {SOTTO_I8, SOTTO_COMPUTE_FINE}, {SOTTO_F16, SOTTO_COMPUTE_F16},
                {SOTTO_F16, SOTTO_COMPUTE_WORDS}};
    static const int64_t rows[] = {128, 129, 200, 333, 140, 512};
    test_seed();
    for (int level = 0; level < ST_CPU_LEVEL_COUNT; level++) {
        if (!level_tested((st_cpu_level)level))
            continue;
        for (int i = 0; i < 28; i++) {
            const int way = i % 7;
            check(st_cpu_level_name((st_cpu_level)level), i < 24 ? 1 + i % 3 : 2 + i % 2, ways[way].type,
                  ways[way].compute, i % 4 == 3 ? 160 : 64, rows[(i + i / 7) % 6], i / 4);
        }
        for (int i = 1; i < 6; i++)
            check(st_cpu_level_name((st_cpu_level)level), 1 + i % 3, i % 2 ? SOTTO_I8 : SOTTO_BF16,
                  i < 5 ? SOTTO_COMPUTE_BF16 : SOTTO_COMPUTE_F32, i % 2 ? 160 : 64, rows[i], 7 + (i == 2));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
