/* gpu_products.c: milliseconds of products on a GPU, through the same graphs as models. The products of a run read different
 * matrices, as the layers of a model do.
 *   bench_gpu_products [--device cuda:0]   shapes of large-v3, f16 weights and f16 between the nodes; a line a shape: rows, columns,
 *                                          depth, ms. gpu_cublas.py measures the same for comparison.
 *   --blocks                               few rows of a LLaMA of 8 10^9 weights, in blocks; a line a shape: type, rows, columns,
 *                                          depth, ms with whole rows (f16), ms with rows as bytes (int8)
 *   --small                                a small part of each, to see that it runs */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "probe_support.h"
#include "sotto/backend.h"
#include "sotto/quant.h"

typedef struct shape {
    int64_t rows, columns, depth;
} shape;

static const shape shapes[] = {
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
static const shape block_shapes[] = {
    {1, 4096, 4096}, {1, 14336, 4096}, {1, 4096, 14336}, {4, 14336, 4096}, {8, 14336, 4096}};
static const sotto_dtype block_types[] = {SOTTO_Q8_0, SOTTO_Q4_0, SOTTO_Q4_1, SOTTO_Q5_1, SOTTO_Q4_K, SOTTO_Q6_K};
#define COUNT(array) (int)(sizeof(array) / sizeof *(array))
enum { LAYERS = 8, SAMPLES = 9, RUNS = 5, DISTINCT = 16, SMALL = 128, SHALLOW = 8 };

/* Rows repeat after DISTINCT of them. */
static sotto_status upload(sotto_store *store, sotto_tensor *w, sotto_dtype dtype, shape size, sotto_error *err)
{
    const size_t row_bytes = sotto_dtype_row_bytes(dtype, size.depth);
    float *numbers = malloc((size_t)size.depth * sizeof *numbers);
    char *rows = malloc(DISTINCT * row_bytes);
    uint32_t seed = 1;
    sotto_status status = numbers && rows ? SOTTO_OK : SOTTO_E_MEMORY;
    for (int64_t i = 0; status == SOTTO_OK && i < size.columns; i += DISTINCT) {
        for (int r = 0; i == 0 && r < DISTINCT; r++) {
            for (int64_t j = 0; j < size.depth; j++) {
                seed = seed * 1664525u + 1013904223u;
                numbers[j] = ((float)(seed >> 8) * 0x1p-24f - 0.5f) * 0.0625f;
            }
            if (!sotto_row_from_f32(dtype, numbers, rows + (size_t)r * row_bytes, size.depth))
                status = SOTTO_E_UNSUPPORTED;
        }
        const int64_t n = size.columns - i < DISTINCT ? size.columns - i : DISTINCT;
        if (status == SOTTO_OK)
            status = sotto_store_upload(store, w, i, n, dtype, rows, err);
    }
    free(numbers);
    free(rows);
    return status;
}

static sotto_status make_plan(sotto_backend *backend, sotto_arena *arena, sotto_tensor *const *w, int layers,
                              shape size, sotto_compute compute, sotto_plan **plan, sotto_error *err)
{
    const int64_t rows = size.rows, depth = size.depth;
    sotto_graph *g = NULL;
    sotto_status status = sotto_graph_create("products", &g, err);
    if (status != SOTTO_OK)
        return status;
    const int64_t dim[] = {depth, rows};
    sotto_graph_set_compute(g, compute);
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

static sotto_status measure(sotto_backend *backend, shape size, sotto_dtype dtype, sotto_compute compute, double *ms,
                            sotto_error *err)
{
    const int64_t dim[] = {size.depth, size.columns};
    const int layers = size.columns > 20000 ? 2 : LAYERS;
    sotto_store *store = NULL;
    sotto_tensor *w[LAYERS];
    sotto_status status = sotto_store_create(backend, SOTTO_USAGE_WEIGHTS, &store, err);
    for (int i = 0; i < layers && status == SOTTO_OK; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        w[i] = sotto_store_add(store, name, dtype, 2, dim, true);
    }
    if (status == SOTTO_OK)
        status = sotto_store_allocate(store, err);
    for (int i = 0; i < layers && status == SOTTO_OK; i++)
        status = upload(store, w[i], dtype, size, err);
    double seconds[2] = {0, 0}; /* of half the products, of all: the difference is without the start of a run */
    for (int k = 0; k < 2 && status == SOTTO_OK; k++) {
        sotto_arena *arena = NULL;
        sotto_plan *plan = NULL;
        status = sotto_arena_create(backend, &arena, err);
        if (status == SOTTO_OK)
            status = make_plan(backend, arena, w, k == 0 ? layers / 2 : layers, size, compute, &plan, err);
        if (status == SOTTO_OK)
            status = time_of(plan, &seconds[k], err);
        sotto_plan_free(plan);
        sotto_arena_free(arena);
    }
    sotto_store_free(store);
    *ms = (seconds[1] - seconds[0]) * 1e3 / (layers - layers / 2);
    return status;
}

static shape smaller(shape s, bool small)
{
    const int64_t by = small ? SMALL : 1;
    return (shape){s.rows > 8 ? (s.rows + by - 1) / by : s.rows, (s.columns + by - 1) / by,
                   small ? s.depth / SHALLOW : s.depth};
}

static sotto_status measure_halves(sotto_backend *backend, bool small, sotto_error *err)
{
    sotto_status status = SOTTO_OK;
    for (int i = 0; i < COUNT(shapes) && status == SOTTO_OK; i++) {
        const shape s = smaller(shapes[i], small);
        double ms = 0;
        status = measure(backend, s, SOTTO_F16, SOTTO_COMPUTE_F16, &ms, err);
        if (status == SOTTO_OK)
            printf("%d %d %d %.6f\n", (int)s.rows, (int)s.columns, (int)s.depth, ms);
        fflush(stdout);
    }
    return status;
}

static sotto_status measure_blocks(sotto_backend *backend, bool small, sotto_error *err)
{
    static const sotto_compute computes[] = {SOTTO_COMPUTE_F16, SOTTO_COMPUTE_INT8};
    sotto_status status = SOTTO_OK;
    for (int t = 0; t < COUNT(block_types); t++)
        for (int i = 0; i < COUNT(block_shapes) && status == SOTTO_OK; i++) {
            const shape s = smaller(block_shapes[i], small);
            double ms[2] = {0, 0};
            for (int c = 0; c < 2 && status == SOTTO_OK; c++)
                status = measure(backend, s, block_types[t], computes[c], &ms[c], err);
            if (status == SOTTO_OK)
                printf("%s %d %d %d %.6f %.6f\n", sotto_dtype_name(block_types[t]), (int)s.rows, (int)s.columns,
                       (int)s.depth, ms[0], ms[1]);
            fflush(stdout);
        }
    return status;
}

int main(int argc, char **argv)
{
    const char *device = "cuda:0";
    bool blocks = false, small = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--device") == 0 && i + 1 < argc)
            device = argv[++i];
        else if (strcmp(argv[i], "--blocks") == 0)
            blocks = true;
        else if (strcmp(argv[i], "--small") == 0)
            small = true;
        else
            return fprintf(stderr, "usage: bench_gpu_products [--device ID] [--blocks] [--small]\n"), 2;
    }
    const sotto_backend_options o = {.device = device};
    sotto_error err = {0};
    sotto_backend *backend = NULL;
    sotto_status status = sotto_backend_open(&o, &backend, &err);
    if (status == SOTTO_OK)
        status = blocks ? measure_blocks(backend, small, &err) : measure_halves(backend, small, &err);
    if (status != SOTTO_OK)
        fprintf(stderr, "%s\n", err.text);
    sotto_backend_free(backend);
    return status == SOTTO_OK ? 0 : 1;
}
