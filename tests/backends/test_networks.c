/* test_networks.c: random graphs of many operations, in which memory is shared and taken over, give the same bits as when every
 * tensor is pinned and has memory of its own. On every device, with and without barriers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/scene_support.h"
#include "runtime/runtime_impl.h"

enum { N_ROW = 6, WIDTH = 32, CELLS = 8, MOST = 40, BYTES = N_ROW * WIDTH * 4 };

typedef struct network {
    sotto_graph *g;
    sotto_arena *arena;
    sotto_store *cache;
    sotto_plan *plan;
    sotto_tensor *x[2], *rows;
    sotto_tensor *t[MOST]; /* all [N_ROW, WIDTH] */
    int n;
    uint32_t random;
} network;

static int pick(network *w, int n)
{
    w->random = w->random * 1664525u + 1013904223u;
    return (int)(w->random >> 8) % n;
}

/* Mostly a recent one: then lives are short and memory changes hands. */
static sotto_tensor *any(network *w)
{
    return w->t[pick(w, 3) ? w->n - 1 - pick(w, w->n < 3 ? w->n : 3) : pick(w, w->n)];
}

static sotto_tensor *halves(network *w, sotto_tensor *x)
{
    sotto_tensor *left = sotto_view_slice(w->g, x, 0, 0, WIDTH / 2),
                 *right = sotto_view_slice(w->g, x, 0, WIDTH / 2, WIDTH / 2);
    return sotto_concat(w->g, right, left, 0);
}

/* Rows of a cache written, then read back. */
static sotto_tensor *through_cache(network *w, sotto_tensor *cells, sotto_tensor *x)
{
    sotto_tensor *written = sotto_set_rows(w->g, cells, w->rows, x);
    return sotto_copy(w->g, sotto_view_slice(w->g, written, 1, 1, N_ROW), SOTTO_F32);
}

/* Part of a tensor of the graph written over; later readers of either see it. */
static sotto_tensor *patched(network *w, sotto_tensor *x, sotto_tensor *y)
{
    sotto_tensor *own = sotto_scale(w->g, x, 1, 0.125f);
    sotto_tensor *part = sotto_copy_into(w->g, sotto_view_slice(w->g, own, 1, 2, 2), sotto_view_slice(w->g, y, 1, 1, 2));
    return sotto_add(w->g, own, sotto_view_slice(w->g, part, 1, 1, 1));
}

static sotto_tensor *attend(network *w, sotto_tensor *x, sotto_tensor *y)
{
    const int64_t heads[3] = {WIDTH / 4, 4, N_ROW};
    sotto_tensor *k = sotto_view_reshape(w->g, y, 3, heads);
    return sotto_attention(w->g, sotto_view_reshape(w->g, x, 3, heads), k, k, 0.3f, true);
}

static sotto_tensor *next(network *w, sotto_tensor *cells)
{
    sotto_tensor *x = any(w), *y = any(w);
    const int64_t flat[1] = {N_ROW * WIDTH}, dim[2] = {WIDTH, N_ROW};
    static const int swap[4] = {1, 0, 2, 3};
    switch (pick(w, 13)) {
    case 0:
        return sotto_add(w->g, x, y);
    case 1:
        return sotto_mul(w->g, x, sotto_sigmoid(w->g, y));
    case 2:
        return sotto_scale(w->g, x, -0.5f, 0.25f);
    case 3:
        return sotto_gelu(w->g, x);
    case 4:
        return sotto_tanh(w->g, x);
    case 5:
        return sotto_softmax(w->g, x, NULL, 2);
    case 6:
        return halves(w, x);
    case 7:
        return through_cache(w, cells, x);
    case 8:
        return patched(w, x, y);
    case 9:
        return attend(w, x, y);
    case 10: /* the whole of it seen otherwise: still in place */
        return sotto_view_reshape(w->g, sotto_relu(w->g, sotto_view_reshape(w->g, x, 1, flat)), 2, dim);
    case 11: /* and so that its elements are in another order: not in place */
        x = sotto_relu(w->g, sotto_view_permute(w->g, x, swap));
        return sotto_copy(w->g, sotto_view_permute(w->g, x, swap), SOTTO_F32);
    default: /* over a residual */
        return sotto_linear(w->g, x, sotto_copy(w->g, sotto_matmul(w->g, w->x[1], w->x[0]), SOTTO_F32), NULL,
                            SOTTO_ACT_GELU, y);
    }
}

static void ok(sotto_status status, const sotto_error *err)
{
    if (status != SOTTO_OK)
        fail_msg("%s", err->text);
}

/* The same network for the same seed; pinned: every tensor keeps memory of its own. */
static void create(network *w, sotto_backend *b, uint32_t seed, bool pinned)
{
    sotto_error err;
    const int64_t square[2] = {WIDTH, WIDTH}, cells[2] = {WIDTH, CELLS}, list[1] = {N_ROW};
    *w = (network){.random = seed};
    ok(sotto_graph_create("network", &w->g, &err), &err);
    ok(sotto_arena_create(b, &w->arena, &err), &err);
    ok(sotto_store_create(b, SOTTO_USAGE_CACHE, &w->cache, &err), &err);
    sotto_tensor *stored = sotto_store_add(w->cache, "cells", SOTTO_F32, 2, cells, false);
    ok(sotto_store_allocate(w->cache, &err), &err);
    for (int i = 0; i < 2; i++)
        w->x[i] = sotto_graph_input(w->g, "x", SOTTO_F32, 2, square);
    w->rows = sotto_graph_input(w->g, "rows", SOTTO_I32, 1, list);
    w->t[w->n++] = sotto_view_slice(w->g, w->x[0], 1, 3, N_ROW);
    w->t[w->n++] = sotto_scale(w->g, sotto_view_slice(w->g, w->x[1], 1, 9, N_ROW), 1, 0);
    sotto_tensor *cells_used = sotto_graph_use(w->g, stored);
    const int barrier = seed % 2 ? 4 : 1000;
    while (w->n < MOST) {
        w->t[w->n] = next(w, cells_used);
        w->n++;
        if (pick(w, barrier) == 0)
            sotto_graph_barrier(w->g);
    }
    if (pinned)
        for (int i = 0; i < w->g->n_node; i++)
            sotto_graph_output(w->g, w->g->node[i], "pinned");
    sotto_graph_output(w->g, w->t[MOST - 1], "y");
    sotto_graph_output(w->g, w->t[MOST / 2], "z");
    ok(sotto_graph_finish(w->g, &err), &err);
    ok(sotto_plan_create_take(b, w->arena, w->g, &w->plan, &err), &err);
}

static void run(network *w, uint32_t seed, char *out)
{
    sotto_error err;
    float x[WIDTH * WIDTH];
    static const int32_t rows[N_ROW] = {1, 0, 5, 3, 2, 6};
    ok(sotto_plan_allocate(w->plan, &err), &err);
    ok(st_arena_poison(w->arena, &err), &err);
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < WIDTH * WIDTH; k++) {
            seed = seed * 1664525u + 1013904223u;
            x[k] = (float)(seed >> 8) * 0x1p-23f - 1.0f;
        }
        ok(sotto_plan_set(w->plan, w->x[i], 0, x, sizeof x, &err), &err);
    }
    ok(sotto_plan_set(w->plan, w->rows, 0, rows, sizeof rows, &err), &err);
    ok(sotto_store_clear(w->cache, &err), &err);
    ok(sotto_plan_run(w->plan, NULL, &err), &err);
    ok(sotto_plan_get(w->plan, w->t[MOST - 1], 0, out, BYTES, &err), &err);
    ok(sotto_plan_get(w->plan, w->t[MOST / 2], 0, out + BYTES, BYTES, &err), &err);
}

static void end(network *w)
{
    sotto_plan_free(w->plan);
    sotto_arena_free(w->arena);
    sotto_store_free(w->cache);
}

static void sharing_memory_changes_nothing(void **state)
{
    (void)state;
    const uint32_t first = (uint32_t)scene_seed();
    uint64_t shared_bytes = 0, pinned_bytes = 0;
    for (int i = 0; i < sotto_device_count(); i++) {
        sotto_device_info info;
        sotto_error err;
        assert_int_equal(sotto_device_get(i, &info, NULL), SOTTO_OK);
        sotto_backend *b;
        const sotto_backend_options o = {.device = info.id, .n_threads = 2};
        ok(sotto_backend_open(&o, &b, &err), &err);
        const uint32_t rounds = info.kind == SOTTO_DEVICE_SIMULATOR ? 15 : 150; /* a played GPU takes its time */
        for (uint32_t seed = first; seed < first + rounds; seed++) {
            network shared, pinned;
            static char got[2 * BYTES], want[2 * BYTES];
            create(&shared, b, seed, false);
            create(&pinned, b, seed, true);
            run(&pinned, seed, want);
            for (int round = 0; round < 2; round++) {
                run(&shared, seed, got);
                if (memcmp(got, want, sizeof got) != 0)
                    fail_msg("%s: seed %u, run %d differs", info.id, seed, round);
            }
            shared_bytes += sotto_plan_bytes(shared.plan);
            pinned_bytes += sotto_plan_bytes(pinned.plan);
            end(&shared);
            end(&pinned);
        }
        sotto_backend_free(b);
    }
    assert_true(shared_bytes < pinned_bytes); /* or nothing was tested */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sharing_memory_changes_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
