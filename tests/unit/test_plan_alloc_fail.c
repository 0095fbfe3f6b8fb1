/* test_plan_alloc_fail.c: the whole way from a store to a result with memory running out at every request; and no request
 * at all once a plan has run. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "base/status.h"
#include "sotto/backend.h"

typedef struct setup {
    const char *device;
    int n_threads;
    sotto_backend *backend;
    sotto_store *weights, *cache;
    sotto_arena *arena;
    sotto_plan *plan;
    sotto_tensor *w[3], *cells; /* of the stores */
    sotto_tensor *x, *rows, *base, *n_kv, *y;
} setup;

enum { N_ROW = 5, WIDTH = 32 };

/* Packed products over one row and over several, a strided one, convolution, both kinds of attention, a cache. */
static sotto_graph *build(setup *s, sotto_status *status)
{
    sotto_graph *g;
    *status = sotto_graph_create("net", &g, NULL);
    if (*status != SOTTO_OK)
        return NULL;
    const int64_t dim[2] = {WIDTH, N_ROW}, list[1] = {N_ROW}, heads[3] = {8, 4, N_ROW}, cells[3] = {8, 4, 16};
    s->x = sotto_graph_input(g, "x", SOTTO_F32, 2, dim);
    s->rows = sotto_graph_input(g, "rows", SOTTO_I32, 1, list);
    s->base = sotto_graph_input(g, "base", SOTTO_I32, 1, list);
    s->n_kv = sotto_graph_input(g, "n_kv", SOTTO_I32, 1, list);
    sotto_tensor *w[3];
    for (int i = 0; i < 3; i++)
        w[i] = sotto_graph_use(g, s->w[i]);
    sotto_tensor *h = sotto_linear(g, s->x, w[0], NULL, SOTTO_ACT_GELU, s->x);
    h = sotto_linear(g, h, w[1], NULL, SOTTO_ACT_NONE, NULL);
    h = sotto_conv_1d(g, h, w[2], NULL, 3, 1, 1, SOTTO_ACT_RELU, h);
    sotto_tensor *q = sotto_view_reshape(g, h, 3, heads);
    h = sotto_attention(g, q, q, q, 1, true);
    sotto_tensor *kv = sotto_set_rows(g, sotto_graph_use(g, s->cells), s->rows, h);
    kv = sotto_view_reshape(g, kv, 3, cells);
    h = sotto_cache_attention(g, q, kv, kv, NULL, s->base, s->n_kv, 1, 0);
    h = sotto_add(g, h, sotto_get_rows(g, w[1], s->rows));
    h = sotto_softmax(g, sotto_matmul(g, sotto_view_slice(g, h, 0, 3, 20), sotto_view_slice(g, h, 0, 1, 20)), NULL, 1);
    h = sotto_linear(g, sotto_view_slice(g, sotto_concat(g, h, sotto_copy(g, s->x, SOTTO_F32), 0), 0, 2, WIDTH), w[1],
                     NULL, SOTTO_ACT_SILU, NULL);
    s->y = sotto_linear(g, sotto_view_slice(g, h, 1, N_ROW - 1, 1), w[0], NULL, SOTTO_ACT_NONE, NULL);
    sotto_graph_output(g, s->y, "y");
    *status = sotto_graph_finish(g, NULL);
    return g;
}

static sotto_status fill(setup *s)
{
    float x[N_ROW * WIDTH];
    for (int i = 0; i < N_ROW * WIDTH; i++)
        x[i] = (float)(i % 17) / 16 - 0.5f;
    static const int32_t rows[N_ROW] = {3, 1, 4, 1, 15}, base[N_ROW] = {0}, n_kv[N_ROW] = {0, 1, 5, 9, 16};
    ST_TRY(sotto_plan_set(s->plan, s->x, 0, x, sizeof x, NULL));
    ST_TRY(sotto_plan_set(s->plan, s->rows, 0, rows, sizeof rows, NULL));
    ST_TRY(sotto_plan_set(s->plan, s->base, 0, base, sizeof base, NULL));
    return sotto_plan_set(s->plan, s->n_kv, 0, n_kv, sizeof n_kv, NULL);
}

static sotto_status prepare(setup *s)
{
    static const sotto_dtype types[3] = {SOTTO_F16, SOTTO_Q8_0, SOTTO_F32};
    static float numbers[3 * WIDTH * WIDTH];
    static uint8_t blocks[WIDTH * 34];   /* of q8_0 */
    for (int i = 0; i < WIDTH * 34; i++) /* scale 1/64 in f16, then 32 signed numbers */
        blocks[i] = i % 34 == 0 ? 0 : i % 34 == 1 ? 0x24 : (uint8_t)(i * 29);
    for (int i = 0; i < 3 * WIDTH * WIDTH; i++)
        numbers[i] = (float)(i % 23) / 64 - 0.1f;
    const sotto_backend_options o = {.device = s->device, .n_threads = s->n_threads};
    const int64_t cells[2] = {WIDTH, 16};
    ST_TRY(sotto_backend_open(&o, &s->backend, NULL));
    ST_TRY(sotto_store_create(s->backend, SOTTO_USAGE_WEIGHTS, &s->weights, NULL));
    for (int i = 0; i < 3; i++) {
        const int64_t dim[2] = {i == 2 ? 3 * WIDTH : WIDTH, WIDTH};
        s->w[i] = sotto_store_add(s->weights, "w", types[i], 2, dim, true);
    }
    ST_TRY(sotto_store_allocate(s->weights, NULL));
    for (int i = 0; i < 3; i++)
        ST_TRY(sotto_store_upload(s->weights, s->w[i], 0, WIDTH, i == 1 ? SOTTO_Q8_0 : SOTTO_F32,
                                  i == 1 ? (const void *)blocks : numbers, NULL));
    ST_TRY(sotto_store_create(s->backend, SOTTO_USAGE_CACHE, &s->cache, NULL));
    s->cells = sotto_store_add(s->cache, "cells", SOTTO_F16, 2, cells, false);
    ST_TRY(sotto_store_allocate(s->cache, NULL));
    ST_TRY(sotto_arena_create(s->backend, &s->arena, NULL));
    sotto_status status;
    sotto_graph *g = build(s, &status);
    if (status != SOTTO_OK) {
        sotto_graph_free(g);
        return status;
    }
    ST_TRY(sotto_plan_create_take(s->backend, s->arena, g, &s->plan, NULL));
    return fill(s);
}

static void release(setup *s)
{
    sotto_plan_free(s->plan);
    sotto_arena_free(s->arena);
    sotto_store_free(s->weights);
    sotto_store_free(s->cache);
    sotto_backend_free(s->backend);
}

static sotto_status whole(void *device)
{
    setup s = {.device = device, .n_threads = 1};
    sotto_status status = prepare(&s);
    if (status == SOTTO_OK)
        status = sotto_plan_run(s.plan, NULL, NULL);
    release(&s);
    return status;
}

/* Drivers do as they like with memory; the GPU layer has a test of its own. */
static bool is_ours(const sotto_device_info *info)
{
    return strcmp(info->id, "cpu") == 0 || info->kind == SOTTO_DEVICE_REFERENCE;
}

static void every_request_may_fail(void **state)
{
    (void)state;
    for (int i = 0; i < sotto_device_count(); i++) {
        sotto_device_info info;
        assert_int_equal(sotto_device_get(i, &info, NULL), SOTTO_OK);
        if (is_ours(&info))
            assert_in_range(alloc_fail_sweep(whole, info.id), 12, 200);
    }
}

static bool never(void *user)
{
    (void)user;
    return false;
}

static void count(void *user, const sotto_trace_node *node)
{
    (void)node;
    ++*(int *)user;
}

static void a_plan_that_has_run_asks_for_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < sotto_device_count(); i++) {
        sotto_device_info info;
        assert_int_equal(sotto_device_get(i, &info, NULL), SOTTO_OK);
        if (!is_ours(&info))
            continue;
        for (int n_threads = 1; n_threads <= 3; n_threads++) {
            setup s = {.device = info.id, .n_threads = n_threads};
            assert_int_equal(prepare(&s), SOTTO_OK);
            assert_int_equal(sotto_plan_run(s.plan, NULL, NULL), SOTTO_OK);
            float y[WIDTH], again[WIDTH];
            assert_int_equal(sotto_plan_get(s.plan, s.y, 0, y, sizeof y, NULL), SOTTO_OK);
            assert_true(y[0] != y[1] && fabsf(y[0]) < 1e6f);
            int asked = 0;
            const sotto_run_options o = {.abort = never, .trace = count, .trace_user = &asked};
            alloc_fail_at(0, false);
            for (int round = 0; round < 10; round++) {
                assert_int_equal(fill(&s), SOTTO_OK);
                assert_int_equal(sotto_plan_run(s.plan, round % 2 ? &o : NULL, NULL), SOTTO_OK);
                assert_int_equal(sotto_plan_get(s.plan, s.y, 0, again, sizeof again, NULL), SOTTO_OK);
                assert_memory_equal(again, y, sizeof y); /* the same bits, too */
            }
            if (alloc_fail_count() != 0)
                fail_msg("%s, %d threads: %d requests", info.id, n_threads, (int)alloc_fail_count());
            assert_true(asked >= 5 * 13);
            release(&s);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_may_fail),
        cmocka_unit_test(a_plan_that_has_run_asks_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
