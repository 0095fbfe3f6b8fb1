/* test_sim_failures.c: every call that a GPU backend makes fails once, for want of memory and with the device lost: the
 * request fails with a sentence, nothing crashes, no device memory is left behind, and the next run is right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/gpu/api/sim/sim.h"
#include "sotto/backend.h"

/* ---- the simulated devices of this program (sim.h) ---- */

static struct {
    int calls, fail_at; /* 0: never */
    sotto_status with;
    int64_t held; /* bytes of all devices */
    char failed[32];
    int launches;
    int asks, stop_at; /* of the abort function; 0: never */
    int work;          /* kernels made ready or launched since it said yes */
    int tried, n_bf16; /* operations of the self-test */
} sim;

static sotto_status count_call(int device, const char *name, size_t bytes)
{
    (void)device;
    sim.launches += strcmp(name, "launch") == 0;
    sim.work +=
        sim.stop_at > 0 && sim.asks >= sim.stop_at && (strcmp(name, "ready") == 0 || strcmp(name, "launch") == 0);
    if (++sim.calls == sim.fail_at) {
        snprintf(sim.failed, sizeof sim.failed, "%s", name);
        return sim.with;
    }
    sim.held += (int64_t)bytes;
    return SOTTO_OK;
}

static void count_freed(int device, size_t bytes)
{
    (void)device;
    sim.held -= (int64_t)bytes;
}

const st_sim_settings *st_sim_settings_of(int device)
{
    static const st_sim_settings all[ST_SIM_DEVICES] = {
        {.subgroup = 32,
         .has_mma = true,
         .max_buffer = 1 << 30,
         .local_bytes = 65536,
         .call = count_call,
         .freed = count_freed},
        {.subgroup = 16,
         .order = ST_SIM_REVERSE,
         .cuts = true,
         .max_buffer = 1 << 30,
         .local_bytes = 32768,
         .call = count_call,
         .freed = count_freed},
        {.subgroup = 8,
         .order = ST_SIM_SHUFFLED,
         .max_buffer = 1 << 30,
         .local_bytes = 32768,
         .call = count_call,
         .freed = count_freed},
        {.subgroup = 64, .max_buffer = 1 << 20, .local_bytes = 32768, .call = count_call, .freed = count_freed},
    };
    return &all[device];
}

/* ---- a small network: norm, product, attention over a cache, product with an activation ---- */

enum { WIDTH = 32, ROWS = 3, CELLS = 8, RUNS = 3 };

typedef struct network {
    sotto_backend *backend;
    sotto_arena *arena;
    sotto_store *weights, *cache;
    sotto_graph *graph;
    sotto_plan *plan;
    sotto_tensor *x, *rows, *base, *n_kv, *y, *w[2], *bias;
} network;

static float number(int i)
{
    return (float)((i * 29 + 7) % 64) / 32 - 1;
}

static sotto_status fill(network *n, sotto_error *err)
{
    float data[WIDTH * WIDTH];
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < WIDTH * WIDTH; i++)
            data[i] = number(i + 77 * k) / 4;
        const sotto_status s = sotto_store_upload(n->weights, n->w[k], 0, WIDTH, SOTTO_F32, data, err);
        if (s != SOTTO_OK)
            return s;
    }
    return sotto_store_upload(n->weights, n->bias, 0, 1, SOTTO_F32, data, err);
}

static sotto_status build(network *n, sotto_error *err)
{
    const int64_t square[2] = {WIDTH, WIDTH}, line[1] = {WIDTH}, cells[2] = {WIDTH, CELLS}, in[2] = {WIDTH, ROWS},
                  list[1] = {ROWS};
    const int64_t heads[3] = {WIDTH / 2, 2, ROWS}, cell_heads[3] = {WIDTH / 2, 2, CELLS};
    for (int k = 0; k < 2; k++)
        n->w[k] = sotto_store_add(n->weights, "w", SOTTO_F32, 2, square, true);
    n->bias = sotto_store_add(n->weights, "b", SOTTO_F32, 1, line, false);
    sotto_tensor *kv = sotto_store_add(n->cache, "kv", SOTTO_F32, 2, cells, false);
    sotto_status s = sotto_store_allocate(n->weights, err);
    if (s == SOTTO_OK)
        s = sotto_store_allocate(n->cache, err);
    if (s == SOTTO_OK)
        s = sotto_graph_create("small", &n->graph, err);
    if (s != SOTTO_OK)
        return s;
    sotto_graph *g = n->graph;
    n->x = sotto_graph_input(g, "x", SOTTO_F32, 2, in);
    n->rows = sotto_graph_input(g, "rows", SOTTO_I32, 1, list);
    n->base = sotto_graph_input(g, "base", SOTTO_I32, 1, list);
    n->n_kv = sotto_graph_input(g, "n_kv", SOTTO_I32, 1, list);
    sotto_tensor *bias = sotto_graph_use(g, n->bias);
    sotto_tensor *h = sotto_layer_norm(g, n->x, bias, bias, 1e-5f);
    h = sotto_linear(g, h, sotto_graph_use(g, n->w[0]), bias, SOTTO_ACT_NONE, NULL);
    sotto_tensor *written = sotto_set_rows(g, sotto_graph_use(g, kv), n->rows, h);
    sotto_tensor *keys = sotto_view_reshape(g, written, 3, cell_heads);
    h = sotto_cache_attention(g, sotto_view_reshape(g, h, 3, heads), keys, keys, NULL, n->base, n->n_kv, 0.25f, 0);
    n->y = sotto_linear(g, h, sotto_graph_use(g, n->w[1]), NULL, SOTTO_ACT_GELU, n->x);
    sotto_graph_output(g, n->y, "y");
    return sotto_graph_finish(g, err);
}

static sotto_status run(network *n, float *y, sotto_error *err)
{
    static const int32_t rows[ROWS] = {2, 0, 5}, base[ROWS] = {0}, n_kv[ROWS] = {6, 1, 3};
    float x[WIDTH * ROWS];
    for (int i = 0; i < WIDTH * ROWS; i++)
        x[i] = number(3 * i);
    sotto_status s = sotto_plan_set(n->plan, n->x, 0, x, sizeof x, err);
    if (s == SOTTO_OK)
        s = sotto_plan_set(n->plan, n->rows, 0, rows, sizeof rows, err);
    if (s == SOTTO_OK)
        s = sotto_plan_set(n->plan, n->base, 0, base, sizeof base, err);
    if (s == SOTTO_OK)
        s = sotto_plan_set(n->plan, n->n_kv, 0, n_kv, sizeof n_kv, err);
    if (s == SOTTO_OK)
        s = sotto_plan_run(n->plan, NULL, err);
    return s == SOTTO_OK ? sotto_plan_get(n->plan, n->y, 0, y, sizeof x, err) : s;
}

static sotto_status open_devices(const char *device, sotto_backend **out, sotto_error *err)
{
    const sotto_backend_options o = {.device = device, .n_threads = 1};
    return sotto_backend_open(&o, out, err);
}

/* Memory, plan and runs. When a run fails, the next one on the same plan is right. */
static sotto_status everything(sotto_backend *backend, float *y, sotto_error *err)
{
    network n = {.backend = backend};
    sotto_status s = sotto_arena_create(n.backend, &n.arena, err);
    if (s == SOTTO_OK)
        s = sotto_store_create(n.backend, SOTTO_USAGE_WEIGHTS, &n.weights, err);
    if (s == SOTTO_OK)
        s = sotto_store_create(n.backend, SOTTO_USAGE_CACHE, &n.cache, err);
    if (s == SOTTO_OK)
        s = build(&n, err);
    if (s == SOTTO_OK)
        s = fill(&n, err);
    if (s == SOTTO_OK) {
        s = sotto_plan_create_take(n.backend, n.arena, n.graph, &n.plan, err);
        n.graph = NULL;
    }
    if (s == SOTTO_OK)
        s = sotto_plan_allocate(n.plan, err);
    for (int i = 0; i < RUNS && s == SOTTO_OK; i++) {
        s = run(&n, y, err);
        if (s != SOTTO_OK) {
            float again[WIDTH * ROWS], once_more[WIDTH * ROWS];
            sotto_error other;
            if (run(&n, again, &other) != SOTTO_OK || run(&n, once_more, &other) != SOTTO_OK)
                fail_msg("after a failure of %s (call %d): %s", sim.failed, sim.fail_at, other.text);
            assert_memory_equal(again, once_more, sizeof again);
        }
    }
    sotto_plan_free(n.plan);
    sotto_graph_free(n.graph);
    sotto_store_free(n.weights);
    sotto_store_free(n.cache);
    sotto_arena_free(n.arena);
    return s;
}

/* What a failure may do to the caller: nothing, where it is of no importance, or an error with a sentence. */
static void check(const char *device, sotto_status s, const sotto_error *err, const float *got, const float *want)
{
    if (s == SOTTO_OK)
        assert_memory_equal(got, want, sizeof(float) * WIDTH * ROWS);
    else if (err->code != s || !err->text[0])
        fail_msg("%s: call %d, %s: %s without a sentence", device, sim.fail_at, sim.failed, sotto_status_name(s));
}

static void fail_everywhere(const char *device)
{
    float want[WIDTH * ROWS], got[WIDTH * ROWS];
    sotto_error err = {0};
    sotto_backend *b;
    memset(&sim, 0, sizeof sim);
    if (open_devices(device, &b, &err) != SOTTO_OK || everything(b, want, &err) != SOTTO_OK)
        fail_msg("%s: %s", device, err.text);
    const int64_t held = sim.held; /* what the backend keeps */
    sim.calls = 0;
    assert_int_equal(everything(b, want, &err), SOTTO_OK);
    const int n = sim.calls;
    int failed = 0;
    for (int with = 0; with < 2; with++)
        for (int i = 1; i <= n; i++) {
            err = (sotto_error){0};
            sim.calls = 0;
            sim.fail_at = i;
            sim.with = with ? SOTTO_E_DEVICE : SOTTO_E_MEMORY;
            const sotto_status s = everything(b, got, &err);
            check(device, s, &err, got, want);
            if (sim.held != held)
                fail_msg("%s: call %d, %s: %lld bytes are left", device, i, sim.failed, (long long)(sim.held - held));
            failed += s != SOTTO_OK;
        }
    printf("%s: %d calls, %d failures told\n", device, n, failed);
    assert_true(failed > n); /* of 2 n */
    sim.fail_at = 0;
    assert_int_equal(everything(b, got, &err), SOTTO_OK);
    assert_memory_equal(got, want, sizeof want);
    sotto_backend_free(b);
    assert_int_equal(sim.held, 0);
}

/* Opening tries every operation, which is some thousand calls: one in so many fails. */
static void fail_while_opening(const char *device, int step)
{
    sotto_error err = {0};
    sotto_backend *b;
    memset(&sim, 0, sizeof sim);
    if (open_devices(device, &b, &err) != SOTTO_OK)
        fail_msg("%s: %s", device, err.text);
    sotto_backend_free(b);
    const int n = sim.calls;
    int failed = 0, tried = 0;
    for (int i = 1; i <= n; i += i < 8 ? 1 : step) {
        err = (sotto_error){0};
        sim.calls = 0;
        sim.fail_at = i;
        sim.with = i % 2 ? SOTTO_E_DEVICE : SOTTO_E_MEMORY;
        const sotto_status s = open_devices(device, &b, &err);
        tried++;
        failed += s != SOTTO_OK;
        if (s != SOTTO_OK && (b || err.code != s || !err.text[0]))
            fail_msg("%s: call %d, %s, while opening: %s without a sentence", device, i, sim.failed,
                     sotto_status_name(s));
        sotto_backend_free(b);
        if (sim.held != 0)
            fail_msg("%s: call %d, %s, while opening: %lld bytes are left", device, i, sim.failed, (long long)sim.held);
    }
    printf("%s: %d calls to open, %d of %d failures told\n", device, n, failed, tried);
    assert_true(failed > 0);
}

static void on_one_device(void **state)
{
    (void)state;
    fail_everywhere("sim:0");
    fail_everywhere("sim:2");
}

static void while_opening(void **state)
{
    (void)state;
    fail_while_opening("sim:1", 211);
}

static bool stop(void *user)
{
    (void)user;
    return ++sim.asks >= sim.stop_at && sim.stop_at > 0;
}

static void count_tried(void *user, sotto_log_level level, const char *text)
{
    (void)user, (void)level;
    sim.tried += strstr(text, ": tried ") != NULL;
    sim.n_bf16 += strstr(text, " with bf16") != NULL;
}

static bool only_bf16_products(void *user, const char *op, sotto_dtype dtype)
{
    (void)user;
    return strcmp(op, "linear") == 0 && dtype == SOTTO_BF16;
}

static void stopped_between_kernels(void **state)
{
    (void)state;
    const sotto_backend_options o = {.device = "sim:1", .n_threads = 1, .abort = stop};
    sotto_error err = {0};
    sotto_backend *b;
    memset(&sim, 0, sizeof sim);
    assert_int_equal(sotto_backend_open(&o, &b, &err), SOTTO_OK);
    const int n = sim.asks;
    assert_true(n > 100);
    sotto_backend_free(b);
    for (int i = 1; i <= n; i += i < 8 ? 1 : 13) {
        err = (sotto_error){0};
        sim.asks = sim.work = 0;
        sim.stop_at = i;
        assert_int_equal(sotto_backend_open(&o, &b, &err), SOTTO_E_ABORTED);
        assert_null(b);
        assert_string_equal(err.text, "stopped by the caller");
        assert_int_equal(sim.work, 0);
        assert_int_equal(sim.held, 0);
    }
}

/* Kernels are also compiled when a plan is made, here on a backend that was opened like the first. */
static void stopped_while_a_plan_is_made(void **state)
{
    (void)state;
    const sotto_backend_options o = {.device = "sim:1", .n_threads = 1, .abort = stop, .needs = only_bf16_products};
    sotto_error err = {0};
    sotto_backend *first, *b;
    float y[WIDTH * ROWS];
    memset(&sim, 0, sizeof sim);
    assert_int_equal(sotto_backend_open(&o, &first, &err), SOTTO_OK);
    assert_int_equal(sotto_backend_open_like(first, 0, NULL, &b, &err), SOTTO_OK);
    assert_false(sotto_backend_aborted(b));
    sim.stop_at = sim.asks + 2;
    assert_int_equal(everything(b, y, &err), SOTTO_E_ABORTED);
    assert_int_equal(sim.work, 0);
    assert_true(sotto_backend_aborted(b));
    sim.stop_at = 0;
    assert_int_equal(everything(b, y, &err), SOTTO_OK);
    sotto_backend_free(b);
    sotto_backend_free(first);
    assert_int_equal(sim.held, 0);
}

static void tried_with_what_is_needed(void **state)
{
    (void)state;
    sotto_backend_options o = {.device = "sim:1", .n_threads = 1, .logger.write = count_tried};
    sotto_error err = {0};
    sotto_backend *b;
    memset(&sim, 0, sizeof sim);
    assert_int_equal(sotto_backend_open(&o, &b, &err), SOTTO_OK);
    sotto_backend_free(b);
    assert_true(sim.tried > 60 && sim.n_bf16 > 4); /* without needs: everything */
    sim.fail_at = sim.calls - 3;                   /* of the last operation */
    sim.with = SOTTO_E_DEVICE;
    sim.calls = 0;
    assert_int_equal(sotto_backend_open(&o, &b, &err), SOTTO_E_DEVICE);
    assert_non_null(strstr(err.text, "sim:1: self-test: im2col with f32: "));
    memset(&sim, 0, sizeof sim);
    o.needs = only_bf16_products;
    assert_int_equal(sotto_backend_open(&o, &b, &err), SOTTO_OK);
    sotto_backend_free(b);
    assert_int_equal(sim.tried, 1);
    assert_int_equal(sim.n_bf16, 1);
}

/* A product of many columns, whose launch is cut when somebody may want to stop it: the same bits, and stopped between
 * its parts. */
static void a_long_launch_is_cut(void **state)
{
    (void)state;
    enum { K = 64, COLUMNS = 800, LINES = 5 };
    static float w[K * COLUMNS], x[K * LINES], want[COLUMNS * LINES], got[COLUMNS * LINES];
    const int64_t w_dim[2] = {K, COLUMNS}, x_dim[2] = {K, LINES};
    sotto_error err = {0};
    sotto_backend *b;
    sotto_store *weights;
    sotto_arena *arena;
    sotto_graph *g;
    sotto_plan *plan;
    const sotto_backend_options o = {.device = "sim:1", .n_threads = 1, .needs = only_bf16_products};
    for (int i = 0; i < K * COLUMNS; i++)
        w[i] = number(i);
    for (int i = 0; i < K * LINES; i++)
        x[i] = number(7 * i);
    memset(&sim, 0, sizeof sim);
    assert_int_equal(sotto_backend_open(&o, &b, &err), SOTTO_OK);
    assert_int_equal(sotto_store_create(b, SOTTO_USAGE_WEIGHTS, &weights, &err), SOTTO_OK);
    sotto_tensor *tw = sotto_store_add(weights, "w", SOTTO_F32, 2, w_dim, true);
    assert_int_equal(sotto_store_allocate(weights, &err), SOTTO_OK);
    assert_int_equal(sotto_store_upload(weights, tw, 0, COLUMNS, SOTTO_F32, w, &err), SOTTO_OK);
    for (int way = 0; way < 3; way++) { /* whole, cut, stopped at every part */
        assert_int_equal(sotto_arena_create(b, &arena, &err), SOTTO_OK);
        assert_int_equal(sotto_graph_create("long", &g, &err), SOTTO_OK);
        sotto_tensor *tx = sotto_graph_input(g, "x", SOTTO_F32, 2, x_dim);
        sotto_tensor *y = sotto_linear(g, tx, sotto_graph_use(g, tw), NULL, SOTTO_ACT_NONE, NULL);
        sotto_graph_output(g, y, "y");
        assert_int_equal(sotto_graph_finish(g, &err), SOTTO_OK);
        assert_int_equal(sotto_plan_create_take(b, arena, g, &plan, &err), SOTTO_OK);
        const sotto_run_options run = {.abort = way > 0 ? stop : NULL};
        assert_int_equal(sotto_plan_set(plan, tx, 0, x, sizeof x, &err), SOTTO_OK);
        sim.launches = sim.asks = sim.stop_at = 0;
        sotto_status status = SOTTO_E_ABORTED;
        for (int at = 2; status == SOTTO_E_ABORTED && at < 100; at++) {
            sim.asks = 0;
            sim.stop_at = way == 2 ? at : 0;
            status = sotto_plan_run(plan, &run, &err);
        }
        assert_int_equal(status, SOTTO_OK);
        assert_int_equal(sotto_plan_get(plan, y, 0, way == 0 ? want : got, sizeof want, &err), SOTTO_OK);
        if (way == 0)
            assert_int_equal(sim.launches, 1);
        else {
            assert_true(sim.launches > 1 && sim.asks > 2);
            assert_memory_equal(got, want, sizeof want);
        }
        sotto_plan_free(plan);
        sotto_arena_free(arena);
    }
    sotto_store_free(weights);
    sotto_backend_free(b);
    assert_int_equal(sim.held, 0);
}

static void on_two_devices(void **state)
{
    (void)state;
    fail_everywhere("sim:1,sim:3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_one_device),
                                       cmocka_unit_test(on_two_devices),
                                       cmocka_unit_test(while_opening),
                                       cmocka_unit_test(stopped_between_kernels),
                                       cmocka_unit_test(stopped_while_a_plan_is_made),
                                       cmocka_unit_test(tried_with_what_is_needed),
                                       cmocka_unit_test(a_long_launch_is_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
