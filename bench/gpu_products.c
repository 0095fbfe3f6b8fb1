/* gpu_products.c: milliseconds of products with the shapes of large-v3 on a GPU, f16 weights and f16 between the nodes, through
 * the same graphs as models: `bench_gpu_products [--device cuda:0]`. A line a shape: rows, columns, depth, ms. The products of
 * a run read different matrices, as the layers of a model do; gpu_cublas.py measures the same for comparison. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "probe_support.h"
#include "sotto/backend.h"

static const struct {
    int64_t rows, columns, depth;
} shapes[] = {
    /* a window of the encoder: projections, the three of self-attention at once, both of the MLP; eight windows */
    {1500, 1280, 1280},
    {1500, 3840, 1280},
    {1500, 5120, 1280},
    {1500, 1280, 5120},
    {12000, 1280, 1280},
    {12000, 5120, 1280},
    /* cross-attention's keys and values of 4 layers at once */
    {1500, 10240, 1280},
    /* a step of the decoder: one row, five beams */
    {1, 1280, 1280},
    {1, 5120, 1280},
    {1, 1280, 5120},
    {1, 51866, 1280},
    {5, 5120, 1280},
    {5, 51866, 1280},
};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0], LAYERS = 8, SAMPLES = 9, RUNS = 5 };

static sotto_status upload(sotto_store *store, sotto_tensor *w, int64_t rows, int64_t depth, sotto_error *err)
{
    uint16_t *row = malloc((size_t)depth * sizeof *row);
    uint32_t seed = 1;
    sotto_status status = row ? SOTTO_OK : SOTTO_E_MEMORY;
    for (int64_t i = 0; status == SOTTO_OK && i < rows; i++) {
        for (int64_t j = 0; i < 16 && j < depth; j++) { /* halves between 2^-7 and 2^-5, of both signs */
            seed = seed * 1664525u + 1013904223u;
            row[j] = (uint16_t)(0x2000u | (seed >> 16 & 0x87ffu));
        }
        status = sotto_store_upload(store, w, i, 1, SOTTO_F16, row, err);
    }
    free(row);
    return status;
}

static sotto_status make_plan(sotto_backend *backend, sotto_arena *arena, sotto_tensor *const *w, int layers,
                              int64_t rows, int64_t depth, sotto_plan **plan, sotto_error *err)
{
    sotto_graph *g = NULL;
    sotto_status status = sotto_graph_create("products", &g, err);
    if (status != SOTTO_OK)
        return status;
    const int64_t dim[] = {depth, rows};
    sotto_graph_set_compute(g, SOTTO_COMPUTE_F16);
    sotto_tensor *input = sotto_graph_input(g, "x", SOTTO_F32, 2, dim), *x = sotto_scale(g, input, 1.0f, 0.0f),
                 *y = NULL;
    for (int i = 0; i < layers; i++) {
        sotto_graph_barrier(g);
        y = sotto_linear(g, x, sotto_graph_use(g, w[i]), NULL, SOTTO_ACT_NONE, NULL);
    }
    sotto_graph_output(g, y, "y");
    status = sotto_graph_finish(g, err);
    if (status != SOTTO_OK) {
        sotto_graph_free(g);
        return status;
    }
    status = sotto_plan_create_take(backend, arena, g, plan, err);
    float *values = malloc((size_t)(rows * depth) * sizeof *values);
    for (int64_t i = 0; values && i < rows * depth; i++)
        values[i] = (float)(i % 17 - 8) * 0.125f;
    if (status == SOTTO_OK)
        status = values ? sotto_plan_set(*plan, input, 0, values, (size_t)(rows * depth) * sizeof *values, err)
                        : SOTTO_E_MEMORY;
    free(values);
    return status;
}

/* Median of the seconds of a run. */
static sotto_status time_of(sotto_plan *plan, double *seconds, sotto_error *err)
{
    double t[SAMPLES];
    sotto_status status = sotto_plan_run(plan, NULL, err);
    for (int i = 0; i < SAMPLES && status == SOTTO_OK; i++) {
        const double start = st_time_now();
        for (int k = 0; k < RUNS && status == SOTTO_OK; k++)
            status = sotto_plan_submit(plan, NULL, err);
        if (status == SOTTO_OK)
            status = sotto_plan_wait(plan, err);
        t[i] = (st_time_now() - start) / RUNS;
    }
    *seconds = status == SOTTO_OK ? bench_median(t, SAMPLES) : 0;
    return status;
}

static sotto_status measure(sotto_backend *backend, int shape, sotto_error *err)
{
    const int64_t dim[] = {shapes[shape].depth, shapes[shape].columns};
    const int layers = shapes[shape].columns > 20000 ? 2 : LAYERS;
    sotto_store *store = NULL;
    sotto_tensor *w[LAYERS];
    sotto_status status = sotto_store_create(backend, SOTTO_USAGE_WEIGHTS, &store, err);
    for (int i = 0; i < layers && status == SOTTO_OK; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        w[i] = sotto_store_add(store, name, SOTTO_F16, 2, dim, true);
    }
    if (status == SOTTO_OK)
        status = sotto_store_allocate(store, err);
    for (int i = 0; i < layers && status == SOTTO_OK; i++)
        status = upload(store, w[i], dim[1], dim[0], err);
    double seconds[2] = {0, 0}; /* of half the products, of all: the difference is without the start of a run */
    for (int k = 0; k < 2 && status == SOTTO_OK; k++) {
        sotto_arena *arena = NULL;
        sotto_plan *plan = NULL;
        status = sotto_arena_create(backend, &arena, err);
        if (status == SOTTO_OK)
            status = make_plan(backend, arena, w, k == 0 ? layers / 2 : layers, shapes[shape].rows, dim[0], &plan, err);
        if (status == SOTTO_OK)
            status = time_of(plan, &seconds[k], err);
        sotto_plan_free(plan);
        sotto_arena_free(arena);
    }
    sotto_store_free(store);
    if (status == SOTTO_OK) {
        printf("%d %d %d %.6f\n", (int)shapes[shape].rows, (int)dim[1], (int)dim[0],
               (seconds[1] - seconds[0]) * 1e3 / (layers - layers / 2));
        fflush(stdout);
    }
    return status;
}

int main(int argc, char **argv)
{
    const char *device = argc == 3 && strcmp(argv[1], "--device") == 0 ? argv[2] : "cuda:0";
    const sotto_backend_options o = {.device = device};
    sotto_error err = {0};
    sotto_backend *backend = NULL;
    sotto_status status = sotto_backend_open(&o, &backend, &err);
    for (int i = 0; i < N_SHAPES && status == SOTTO_OK; i++)
        status = measure(backend, i, &err);
    if (status != SOTTO_OK)
        fprintf(stderr, "%s\n", err.text);
    sotto_backend_free(backend);
    return status == SOTTO_OK ? 0 : 1;
}
