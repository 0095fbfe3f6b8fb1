#include "unit/sched_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/status.h"
#include "reference/ref_backend.h"
#include "sotto/quant.h"

uint64_t sched_seed(void)
{
    static uint64_t seed;
    if (seed == 0) {
        const char *text = getenv("SOTTO_TEST_SEED");
        seed = text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
        printf("seed %llu (SOTTO_TEST_SEED)\n", (unsigned long long)seed);
    }
    return seed;
}

uint32_t sched_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static float number(uint64_t *state)
{
    return (float)(sched_random(state) % 2048) / 1024.0f - 1.0f;
}

/* ---- machines ---- */

sotto_status sched_try_open(int n, const sotto_backend_options *options, const st_ref_device_config *config,
                            sched_machine *out)
{
    static const sotto_backend_options none = {0};
    st_device_pick picks[9];
    for (int i = 0; i < n; i++)
        picks[i] = (st_device_pick){&st_backend_ref_device, i};
    picks[n] = (st_device_pick){&st_backend_reference, 0};
    out->n = n;
    ST_TRY(st_backend_open_picks(picks, n + 1, options ? options : &none, &out->backend, NULL));
    for (int i = 0; i < n && config; i++)
        *st_ref_device_configure(out->backend->device[i].state) = config[i];
    return SOTTO_OK;
}

sched_machine sched_open(int n, const sotto_backend_options *options, const st_ref_device_config *config)
{
    sched_machine m;
    assert_int_equal(sched_try_open(n, options, config, &m), SOTTO_OK);
    return m;
}

void sched_close(sched_machine *m)
{
    for (int i = 0; i < m->n; i++)
        assert_int_equal(st_ref_device_count(m->backend->device[i].state)->buffers, 0);
    sotto_backend_free(m->backend);
}

int sched_calls(const sched_machine *m)
{
    int n = 0;
    for (int i = 0; i < m->n; i++)
        n += st_ref_device_count(m->backend->device[i].state)->calls;
    return n;
}

void sched_fail_at(const sched_machine *m, int device, int n)
{
    st_ref_device_configure(m->backend->device[device].state)->fail_at = n;
}

/* ---- worlds ---- */

static void draw_device(sotto_store *store, const sotto_backend *b, uint64_t *places)
{
    if (*places)
        sotto_store_set_device(store, (int)(sched_random(places) % (uint32_t)b->n_device));
}

static sotto_status fill(sotto_store *store, sotto_tensor *t, uint64_t *random, sotto_error *err)
{
    static float numbers[4 * SCHED_WIDTH * SCHED_WIDTH];
    static uint8_t blocks[4 * SCHED_WIDTH * SCHED_WIDTH * 4];
    const int64_t n = sotto_tensor_count(t);
    for (int64_t i = 0; i < n; i++)
        numbers[i] = number(random) / 8;
    if (sotto_tensor_dtype(t) == SOTTO_Q8_0) {
        assert_true(sotto_row_from_f32(SOTTO_Q8_0, numbers, blocks, n));
        return sotto_store_upload(store, t, 0, n / sotto_tensor_dim(t, 0), SOTTO_Q8_0, blocks, err);
    }
    return sotto_store_upload(store, t, 0, n / sotto_tensor_dim(t, 0), SOTTO_F32, numbers, err);
}

sotto_status sched_world_create(sched_world *w, sotto_backend *b, uint64_t seed, uint64_t places, sotto_error *err)
{
    static const sotto_dtype types[] = {SOTTO_F32, SOTTO_F16, SOTTO_Q8_0, SOTTO_I8, SOTTO_BF16};
    const int64_t matrix[2] = {SCHED_WIDTH, SCHED_WIDTH}, bias[1] = {SCHED_WIDTH}, cells[2] = {SCHED_WIDTH, SCHED_CELLS};
    memset(w, 0, sizeof *w);
    w->backend = b;
    ST_TRY(sotto_store_create(b, SOTTO_USAGE_WEIGHTS, &w->weights, err));
    ST_TRY(sotto_store_create(b, SOTTO_USAGE_CACHE, &w->cache, err));
    for (int i = 0; i < SCHED_WEIGHTS; i++) {
        draw_device(w->weights, b, &places);
        w->matrix[i] = sotto_store_add(w->weights, "matrix", types[i % 5], 2, matrix, true);
        if (i % 3 == 2)
            draw_device(w->weights, b, &places);
        w->bias[i] = sotto_store_add(w->weights, "bias", SOTTO_F32, 1, bias, false);
    }
    draw_device(w->weights, b, &places);
    w->table = sotto_store_add(w->weights, "table", SOTTO_F16, 2, cells, false);
    for (int i = 0; i < SCHED_CACHES; i++) {
        draw_device(w->cache, b, &places);
        w->cells[i] = sotto_store_add(w->cache, "cells", i == 1 ? SOTTO_F32 : SOTTO_F16, 2, cells, false);
    }
    ST_TRY(sotto_store_allocate(w->weights, err));
    ST_TRY(sotto_store_allocate(w->cache, err));
    for (int i = 0; i < SCHED_WEIGHTS; i++) {
        ST_TRY(fill(w->weights, w->matrix[i], &seed, err));
        ST_TRY(fill(w->weights, w->bias[i], &seed, err));
    }
    ST_TRY(fill(w->weights, w->table, &seed, err));
    return sotto_arena_create(b, &w->arena, err);
}

static sotto_tensor *heads(sotto_graph *g, sotto_tensor *x)
{
    const int64_t dim[3] = {SCHED_WIDTH / 4, 4, sotto_tensor_dim(x, 1)};
    return sotto_view_reshape(g, x, 3, dim);
}

/* One more tensor [n_rows, WIDTH] from two earlier ones. */
static sotto_tensor *step(sched_world *w, uint64_t *random, sotto_tensor *a, sotto_tensor *b)
{
    sotto_graph *g = w->graph;
    const uint32_t kind = sched_random(random) % 14, i = sched_random(random) % SCHED_WEIGHTS,
                   c = sched_random(random) % SCHED_CACHES;
    sotto_tensor *m = w->matrix[i], *bias = w->bias[i], *cache = w->cells[c];
    switch (kind) {
    case 0:
    case 1:
    case 2:
        return sotto_linear(g, a, sotto_graph_use(g, m), kind ? sotto_graph_use(g, bias) : NULL,
                            kind == 2 ? SOTTO_ACT_GELU : SOTTO_ACT_NONE, kind == 1 ? b : NULL);
    case 3:
        return sotto_layer_norm(g, a, sotto_graph_use(g, bias), sotto_graph_use(g, w->bias[0]), 1e-5f);
    case 4:
        return sotto_add(g, a, b);
    case 5:
        return sotto_softmax(g, a, NULL, 1);
    case 6: /* half of each */
        return sotto_concat(g, sotto_view_slice(g, a, 0, 0, SCHED_WIDTH / 2),
                            sotto_view_slice(g, b, 0, SCHED_WIDTH / 2, SCHED_WIDTH / 2), 0);
    case 7: /* scores of the rows among themselves, and back to the width */
        return sotto_add(g, a,
                         sotto_matmul(g, sotto_softmax(g, sotto_matmul(g, a, b), NULL, 0.1f),
                                      sotto_copy(g, sotto_view_permute(g, b, (const int[4]){1, 0, 2, 3}), SOTTO_F32)));
    case 8:
        return sotto_add(g, sotto_get_rows(g, sotto_graph_use(g, w->table), w->rows), a);
    case 9:
    case 10: { /* into a cache and attention over it */
        sotto_tensor *k = sotto_set_rows(g, sotto_graph_use(g, cache), w->rows, a);
        if (cache == w->cells[1])
            return sotto_get_rows(g, k, w->rows);
        return sotto_cache_attention(g, heads(g, b), heads(g, k), heads(g, k), NULL, w->base, w->n_kv, 0.25f, 0);
    }
    case 11: { /* columns of a tensor overwritten */
        sotto_tensor *t = sotto_scale(g, a, 1, 0.125f);
        (void)sotto_copy_into(g, sotto_view_slice(g, t, 0, 16, 32), sotto_view_slice(g, b, 0, 0, 32));
        return sotto_scale(g, t, 0.5f, 0);
    }
    case 12: /* rows turned round */
        return sotto_concat(g, sotto_view_slice(g, a, 1, w->n_rows / 2, w->n_rows - w->n_rows / 2),
                            sotto_view_slice(g, a, 1, 0, w->n_rows / 2), 1);
    default:
        return sotto_gelu(g, a);
    }
}

sotto_status sched_world_build(sched_world *w, uint64_t seed, int n_ops, sotto_error *err)
{
    enum { MOST = 64 };
    sotto_tensor *t[MOST];
    uint64_t random = seed;
    w->n_rows = 1 + (int)(sched_random(&random) % SCHED_ROWS);
    ST_TRY(sotto_graph_create("world", &w->graph, err));
    sotto_graph *g = w->graph;
    const int64_t x[2] = {SCHED_WIDTH, w->n_rows}, n[1] = {w->n_rows};
    w->x = sotto_graph_input(g, "x", SOTTO_F32, 2, x);
    w->rows = sotto_graph_input(g, "rows", SOTTO_I32, 1, n);
    w->base = sotto_graph_input(g, "base", SOTTO_I32, 1, n);
    w->n_kv = sotto_graph_input(g, "n_kv", SOTTO_I32, 1, n);
    w->unused = sotto_graph_input(g, "unused", SOTTO_F32, 1, n);
    t[0] = w->x;
    for (int i = 1; i <= n_ops && i < MOST; i++) {
        const uint32_t a = sched_random(&random), b = sched_random(&random);
        t[i] = step(w, &random, t[a % 3 == 0 ? b % (uint32_t)i : (uint32_t)i - 1], t[b % (uint32_t)i]);
    }
    for (int i = 0; i < SCHED_OUTPUTS; i++) {
        w->y[i] = sotto_scale(g, t[(i + 1) * n_ops / SCHED_OUTPUTS], 1, 0);
        sotto_graph_output(g, w->y[i], "y");
    }
    ST_TRY(sotto_graph_finish(g, err));
    return sotto_plan_create(w->backend, w->arena, g, &w->plan, err);
}

sotto_status sched_world_run(sched_world *w, uint64_t inputs, sotto_error *err)
{
    float x[SCHED_ROWS * SCHED_WIDTH];
    int32_t rows[SCHED_ROWS], base[SCHED_ROWS], n_kv[SCHED_ROWS];
    for (int i = 0; i < w->n_rows * SCHED_WIDTH; i++)
        x[i] = number(&inputs);
    for (int i = 0; i < w->n_rows; i++) {
        rows[i] = (i * 7 + 3) % SCHED_CELLS;
        base[i] = i % 3;
        n_kv[i] = 1 + i;
    }
    const size_t bytes = (size_t)w->n_rows * sizeof(int32_t), half = bytes / 8 * 4;
    ST_TRY(sotto_plan_set(w->plan, w->x, 0, x, (size_t)w->n_rows * SCHED_WIDTH * sizeof *x, err));
    ST_TRY(sotto_plan_set(w->plan, w->rows, half, rows + half / 4, bytes - half, err)); /* in two parts */
    ST_TRY(sotto_plan_set(w->plan, w->rows, 0, rows, half, err));
    ST_TRY(sotto_plan_set(w->plan, w->base, 0, base, bytes, err));
    ST_TRY(sotto_plan_set(w->plan, w->n_kv, 0, n_kv, bytes, err));
    return sotto_plan_run(w->plan, NULL, err);
}

sotto_status sched_world_read(sched_world *w, float *out, sotto_error *err)
{
    const size_t bytes = (size_t)w->n_rows * SCHED_WIDTH * sizeof *out;
    memset(out, 0, SCHED_NUMBERS * sizeof *out);
    for (int i = 0; i < SCHED_OUTPUTS; i++)
        ST_TRY(sotto_plan_get(w->plan, w->y[i], 0, out + i * SCHED_ROWS * SCHED_WIDTH, bytes, err));
    return SOTTO_OK;
}

void sched_world_free(sched_world *w)
{
    sotto_plan_free(w->plan);
    sotto_graph_free(w->graph);
    sotto_arena_free(w->arena);
    sotto_store_free(w->weights);
    sotto_store_free(w->cache);
}
