/* cmd_bench_matmul.c: products as a decoder (1, 5 and 40 rows) and an encoder (1500 rows) ask for them, through the same
 * graphs as models, on as many threads as given. Few rows rotate over copies of the matrix, as a model's layers do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_bench.h"
#include "common/terminal.h"
#include "common/text.h"
#include "sotto/quant.h"

static const struct {
    const char *name;
    int64_t state;
} sizes[] = {{"tiny", 384}, {"base", 512}, {"small", 768}, {"medium", 1024}, {"large-v3", 1280}};

static const sotto_dtype types[] = {SOTTO_F32,  SOTTO_F16,  SOTTO_BF16, SOTTO_I8,  SOTTO_Q8_0,
                                    SOTTO_Q5_1, SOTTO_Q5_0, SOTTO_Q4_1, SOTTO_Q4_0};
static const int64_t row_counts[] = {1, 5, 40, 1500};
enum { N_SIZES = 5, N_TYPES = 9, N_COUNTS = 4, LAYERS = 6, MOST_SAMPLES = 15 };
#define SAMPLE_SECONDS 0.06 /* of a shape */

static void report(cli_text *t, bool json, bool first, const char *size, sotto_dtype dtype, int64_t rows, int64_t n,
                   int64_t k, double seconds, double bytes)
{
    const double gmacs = (double)rows * (double)n * (double)k / seconds * 1e-9, gb = bytes / seconds * 1e-9;
    if (json)
        cli_text_printf(t,
                        "%s\n  {\"size\": \"%s\", \"type\": \"%s\", \"rows\": %lld, \"n\": %lld, \"k\": %lld, "
                        "\"ms\": %.5f, \"gmac_s\": %.2f, \"gb_s\": %.2f}",
                        first ? "" : ",", size, sotto_dtype_name(dtype), (long long)rows, (long long)n, (long long)k,
                        seconds * 1e3, gmacs, gb);
    else
        cli_text_printf(t, "%-9s %-5s %5lld x %4lld x %4lld %10.4f ms %9.1f GMAC/s %8.2f GB/s\n", size,
                        sotto_dtype_name(dtype), (long long)rows, (long long)n, (long long)k, seconds * 1e3, gmacs, gb);
}

/* [4 state, state] of the type, from seeded noise. */
static sotto_status upload(sotto_store *store, sotto_tensor *w, sotto_dtype dtype, int64_t n, int64_t k,
                           sotto_error *err)
{
    float *row = malloc((size_t)k * sizeof *row);
    char *packed = malloc((size_t)k * sizeof *row);
    uint32_t seed = 1;
    sotto_status status = row && packed ? SOTTO_OK : SOTTO_E_MEMORY;
    const sotto_dtype source = dtype == SOTTO_I8 ? SOTTO_F32 : dtype;
    for (int64_t i = 0; status == SOTTO_OK && i < n; i++) {
        for (int64_t j = 0; i < 32 && j < k; j++) {
            seed = seed * 1664525u + 1013904223u;
            row[j] = (float)(int32_t)seed * 0x1p-31f;
        }
        if (i < 32)
            (void)sotto_row_from_f32(source, row, packed, k);
        status = sotto_store_upload(store, w, i, 1, source, packed, err);
    }
    free(row);
    free(packed);
    return status;
}

/* Layer after layer of the same product, each on its own matrix. */
static sotto_status make_plan(sotto_backend *backend, sotto_arena *arena, sotto_tensor *const *w, int64_t rows,
                              int64_t k, int layers, sotto_plan **plan, sotto_error *err)
{
    sotto_graph *g = NULL;
    sotto_status status = sotto_graph_create("matmul", &g, err);
    if (status != SOTTO_OK)
        return status;
    const int64_t dim[] = {k, rows};
    sotto_graph_set_compute(g, SOTTO_COMPUTE_BF16); /* with bf16 weights alone */
    sotto_tensor *x = sotto_graph_input(g, "x", SOTTO_F32, 2, dim), *y = NULL;
    for (int i = 0; i < layers; i++) {
        if (i > 0)
            sotto_graph_barrier(g);
        y = sotto_linear(g, x, sotto_graph_use(g, w[i]), NULL, SOTTO_ACT_NONE, NULL);
        char name[16];
        snprintf(name, sizeof name, "y%d", i);
        sotto_graph_output(g, y, name);
    }
    status = sotto_graph_finish(g, err);
    if (status != SOTTO_OK) {
        sotto_graph_free(g);
        return status;
    }
    status = sotto_plan_create_take(backend, arena, g, plan, err);
    float *zero = calloc((size_t)(rows * k), sizeof *zero);
    for (int64_t i = 0; zero && i < rows * k; i++)
        zero[i] = (float)(i % 17) - 8;
    if (status == SOTTO_OK)
        status = zero ? sotto_plan_set(*plan, x, 0, zero, (size_t)(rows * k) * sizeof *zero, err) : SOTTO_E_MEMORY;
    free(zero);
    return status;
}

/* Median seconds of one product. */
static sotto_status seconds_of(sotto_plan *plan, int layers, double *out, sotto_error *err)
{
    double t[MOST_SAMPLES];
    int n = 0;
    sotto_status status = sotto_plan_run(plan, NULL, err);
    const double begin = cli_now();
    while (status == SOTTO_OK && n < MOST_SAMPLES && (n < 3 || cli_now() - begin < SAMPLE_SECONDS)) {
        const double start = cli_now();
        int runs = 0;
        do
            status = sotto_plan_run(plan, NULL, err);
        while (++runs < 1000 && status == SOTTO_OK && cli_now() - start < SAMPLE_SECONDS / MOST_SAMPLES);
        t[n++] = (cli_now() - start) / runs / layers;
    }
    *out = n > 0 ? cli_bench_median(t, (size_t)n) : 0;
    return status;
}

static sotto_status one_matrix(sotto_backend *backend, int size, sotto_dtype dtype, bool json, bool first,
                               cli_text *out, sotto_error *err)
{
    const int64_t k = sizes[size].state, n = 4 * k, dim[] = {k, n};
    sotto_store *store = NULL;
    sotto_tensor *w[LAYERS];
    sotto_status status = sotto_store_create(backend, SOTTO_USAGE_WEIGHTS, &store, err);
    if (status != SOTTO_OK)
        return status;
    for (int i = 0; i < LAYERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        w[i] = sotto_store_add(store, name, dtype, 2, dim, true);
    }
    status = sotto_store_allocate(store, err);
    for (int i = 0; status == SOTTO_OK && i < LAYERS; i++)
        status = upload(store, w[i], dtype, n, k, err);
    const double bytes = (double)sotto_store_bytes(store) / LAYERS;
    for (int r = 0; status == SOTTO_OK && r < N_COUNTS; r++) {
        const int layers = row_counts[r] > 40 ? 1 : LAYERS;
        sotto_arena *arena = NULL;
        sotto_plan *plan = NULL;
        double seconds = 0;
        status = sotto_arena_create(backend, &arena, err);
        if (status == SOTTO_OK)
            status = make_plan(backend, arena, w, row_counts[r], k, layers, &plan, err);
        if (status == SOTTO_OK)
            status = seconds_of(plan, layers, &seconds, err);
        if (status == SOTTO_OK)
            report(out, json, first && r == 0, sizes[size].name, dtype, row_counts[r], n, k, seconds, bytes);
        sotto_plan_free(plan);
        sotto_arena_free(arena);
    }
    sotto_store_free(store);
    return status;
}

sotto_status cli_bench_matmul(const sotto_backend_options *options, bool json, sotto_error *err)
{
    sotto_backend *backend = NULL;
    sotto_status status = sotto_backend_open(options, &backend, err);
    if (status != SOTTO_OK)
        return status;
    cli_text out = {0};
    const char *what = sotto_backend_description(backend);
    if (json) {
        cli_text_puts(&out, "{\"backend\": ");
        cli_text_json(&out, what, strlen(what));
        cli_text_puts(&out, ", \"matmul\": [");
    } else {
        cli_text_printf(&out, "%s; rows x outputs x inputs\n", what);
    }
    for (int s = 0; status == SOTTO_OK && s < N_SIZES; s++) {
        for (int t = 0; status == SOTTO_OK && t < N_TYPES; t++) {
            status = one_matrix(backend, s, types[t], json, s == 0 && t == 0, &out, err);
            if (!json && out.data) { /* as it comes: all of it takes a while */
                fputs(out.data, stdout);
                fflush(stdout);
                cli_text_free(&out);
                out = (cli_text){0};
            }
        }
    }
    cli_text_puts(&out, json ? "\n]}\n" : "");
    if (status == SOTTO_OK && out.data)
        fputs(out.data, stdout);
    cli_text_free(&out);
    sotto_backend_free(backend);
    return status;
}
