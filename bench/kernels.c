/* kernels.c: speed of the CPU's kernels on the shapes of Whisper's and small language models, one thread, as fractions of what the machine does
 * at most, measured in the same run. Products of many rows are compared with a loop of their own multiply-add instruction,
 * products of few rows with reading the same bytes. A type with *i8 is multiplied as integers. Medians; the machine should be quiet.
 *
 *   bench_kernels [--level NAME|all] [--sizes tiny,base,...] [--quick] [--json]
 *
 * Without --level: the best one, all sizes; all: each level, those below the best with the sizes of base. --json: an object a
 * line. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/cpu_gemm.h"
#include "base/alloc.h"
#include "base/cpu.h"
#include "probe_support.h"
#include "sotto/backend.h"

static const struct {
    const char *name;
    st_cpu_wtype type;
    int block, block_bytes, scales, at; /* as in files; `scales` halves at `at` of a block are f16 */
} types[] = {{"f32", ST_CPU_W_F32, 1, 4, 0, 0},         {"f16", ST_CPU_W_F16, 1, 2, 1, 0},
             {"bf16", ST_CPU_W_BF16, 1, 2, 1, 0},       {"i8", ST_CPU_W_I8, 1, 1, 0, 0},
             {"q8_0", ST_CPU_W_Q8_0, 32, 34, 1, 0},     {"q5_1", ST_CPU_W_Q5_1, 32, 24, 2, 0},
             {"q5_0", ST_CPU_W_Q5_0, 32, 22, 1, 0},     {"q4_1", ST_CPU_W_Q4_1, 32, 20, 2, 0},
             {"q4_0", ST_CPU_W_Q4_0, 32, 18, 1, 0},     {"iq4_nl", ST_CPU_W_IQ4_NL, 32, 18, 1, 0},
             {"q6_k", ST_CPU_W_Q6_K, 256, 210, 1, 208}, {"q5_k", ST_CPU_W_Q5_K, 256, 176, 2, 0},
             {"q4_k", ST_CPU_W_Q4_K, 256, 144, 2, 0},   {"q3_k", ST_CPU_W_Q3_K, 256, 110, 1, 108},
             {"q2_k", ST_CPU_W_Q2_K, 256, 84, 2, 80}};
enum { N_TYPES = sizeof types / sizeof types[0] };

static const struct {
    const char *name;
    int d; /* state */
} sizes[] = {{"tiny", 384},      {"base", 512},    {"small", 768}, {"medium", 1024},
             {"large-v3", 1280}, {"smollm2", 576}, {"gemma3", 640}};
enum { N_SIZES = sizeof sizes / sizeof sizes[0], N_POS = 1500, N_VOCAB = 51865, HEAD = 64 };

typedef struct setup {
    st_cpu_kernels k;
    st_cpu_level level;
    const char *sizes; /* of --sizes, "" for all */
    bool json, quick, base_only;
    size_t cold;     /* bytes over which products of few rows rotate: more than the caches of a core hold */
    uint8_t *memory; /* of `cold` bytes, or more when one matrix is larger */
    size_t memory_bytes;
} setup;

static bool wanted(const setup *s, const char *size)
{
    return s->base_only ? strcmp(size, "base") == 0 : bench_listed(s->sizes, size);
}

static int samples(const setup *s)
{
    return s->quick ? 1 : s->base_only ? 3 : 5;
}

static double least(const setup *s)
{
    return s->quick ? 1e-3 : 15e-3;
}

/* One line of the report. `rate` is in 10^9 of `unit` a second. */
static void say(const setup *s, const char *op, const char *type, const char *size, const char *shape, double rate,
                const char *unit, const bench_result *r, const char *ceiling)
{
    if (s->json) {
        printf("{\"level\": \"%s\", \"op\": \"%s\", \"type\": \"%s\", \"size\": \"%s\", \"shape\": \"%s\", \"rate\": "
               "%.3f, "
               "\"unit\": \"%s\", \"us\": %.3f",
               st_cpu_level_name(s->level), op, type, size, shape, rate, unit, r->seconds * 1e6);
        if (isfinite(r->fraction))
            printf(", \"ceiling\": %.3f, \"ceiling_name\": \"%s\", \"fraction\": %.4f", r->ceiling, ceiling,
                   r->fraction);
        printf("}\n");
    } else {
        printf("%-10s %-9s %-9s %-8s %-16s %8.1f %-6s %10.1f us", st_cpu_level_name(s->level), op, type, size, shape,
               rate, unit, r->seconds * 1e6);
        if (isfinite(r->fraction))
            printf("  %3.0f %% of %.1f (%s)", 100 * r->fraction, r->ceiling, ceiling);
        printf("\n");
    }
    fflush(stdout);
}

static uint32_t random_bits(uint32_t *s)
{
    return *s = *s * 1664525u + 1013904223u;
}

static float noise(uint32_t *s)
{
    return (float)(int32_t)random_bits(s) * 0x1p-31f;
}

/* Numbers that lie about zero as weights do, the largest three times as large as most. */
static float heap(uint32_t *s)
{
    return (noise(s) + noise(s) + noise(s) + noise(s)) / 4;
}

/* ---- products ---- */

typedef struct product {
    const st_cpu_kernels *k;
    st_cpu_left left;
    st_cpu_right right;
    st_cpu_epilogue e;
    int64_t m;
    float *scratch;
    const uint8_t *weights;
    size_t copy_bytes, copies, copy;
} product;

static void run_product(void *arg)
{
    product *p = arg;
    p->right.packed = p->weights + p->copy_bytes * p->copy;
    p->copy = (p->copy + 1) % p->copies;
    const int tile = st_cpu_gemm_tile(p->k, &p->right, p->m), step = ST_CPU_ROW_BLOCK / tile * tile;
    for (int64_t row = 0; row < p->m; row += step) {
        const int n = p->m - row < step ? (int)(p->m - row) : step;
        st_cpu_gemm_pack(p->k, &p->left, &p->right, p->m, row, n, p->scratch);
        st_cpu_gemm_panels(p->k, &p->right, &p->e, p->m, row, n, 0, st_cpu_panels(p->right.n), p->scratch);
    }
}

typedef struct reading {
    st_cpu_level level;
    const uint8_t *p;
    size_t copy_bytes, copies, copy;
} reading;

/* Bytes a second of reading one copy after the other, as the products do; about 5 ms. */
static double read_rate(void *arg)
{
    reading *r = arg;
    const int n = (int)(5e-3 * 20e9 / (double)r->copy_bytes) + 1;
    const double t0 = bench_cpu_now();
    for (int i = 0; i < n; i++) {
        bench_read(r->level, r->p + r->copy_bytes * r->copy, r->copy_bytes);
        r->copy = (r->copy + 1) % r->copies;
    }
    return n * (double)r->copy_bytes / (bench_cpu_now() - t0);
}

static double peak_rate(void *arg)
{
    return bench_peak(arg) * 1e9;
}

/* Ways to multiply weights of one type, and what is added to the type's name. */
typedef enum way { PLAIN, INT8, WORDS, N_WAYS } way;
static const char *const way_names[N_WAYS] = {"", "*i8", "*words"};

static bool has_way(const st_cpu_kernels *k, int t, way w)
{
    return w == PLAIN || (w == INT8 ? types[t].block > 1 : types[t].type == ST_CPU_W_F16 && k->f16_words.mr > 0);
}

/* The numbers in which a product of many rows is computed. */
static bench_number number_of(const st_cpu_kernels *k, st_cpu_wtype type, way w)
{
    if (type == ST_CPU_W_I8 || w == INT8)
        return type == ST_CPU_W_I8 && k->i8.settle != NULL ? BENCH_BYTES : BENCH_I8;
    return w == WORDS ? BENCH_WORDS : type == ST_CPU_W_BF16 && k->bf16.mr > 0 ? BENCH_BF16 : BENCH_F32;
}

/* A file's row of small finite numbers. */
static void fill_row(int t, int64_t k, uint8_t *row, uint32_t *seed)
{
    const size_t n = st_cpu_row_bytes(types[t].type, k);
    for (size_t i = 0; i < n; i++)
        row[i] = (uint8_t)(random_bits(seed) >> 24);
    if (types[t].type == ST_CPU_W_F32)
        for (int64_t i = 0; i < k; i++)
            memcpy(row + 4 * i, &(float){noise(seed)}, 4);
    if (types[t].type == ST_CPU_W_I8) {
        memcpy(row, &(float){0.01f}, 4);
        for (size_t i = 4; i < n; i++)
            row[i] = (uint8_t)(int8_t)(127 * heap(seed));
    }
    for (size_t b = (size_t)types[t].at; types[t].scales > 0 && b < n; b += (size_t)types[t].block_bytes)
        for (int i = 0; i < types[t].scales; i++)
            row[b + 2 * (size_t)i + 1] = (row[b + 2 * (size_t)i + 1] & 0x80) | 0x2c;
}

static bool ensure_memory(setup *s, size_t bytes)
{
    if (s->memory_bytes >= bytes)
        return true;
    if (s->memory != NULL)
        st_free_pages(s->memory, s->memory_bytes);
    s->memory_bytes = bytes;
    s->memory = st_alloc_pages(bytes);
    if (s->memory != NULL)
        memset(s->memory, 1, bytes); /* pages that were never written are all the same one */
    return s->memory != NULL;
}

static bool bench_product(setup *s, int t, way w, const char *size, int64_t m, int64_t n, int64_t k)
{
    const st_cpu_wtype type = types[t].type;
    if (k % types[t].block != 0)
        return true;
    const bool few = m <= 40;
    const size_t bytes = st_cpu_packed_bytes(type, n, k);
    const size_t copies = !few || bytes > s->cold ? 1 : s->cold / bytes;
    const size_t scratch_bytes = 4 * st_cpu_gemm_scratch(ST_CPU_ROW_BLOCK, k);
    float *x = st_alloc_pages((size_t)(m * k) * 4), *y = st_alloc_pages((size_t)(m * n) * 4);
    float *bias = st_calloc((size_t)n, 4), *scratch = st_alloc_pages(scratch_bytes);
    uint8_t *row = st_calloc(1, st_cpu_row_bytes(type, k));
    const bool ok = x && y && bias && scratch && row && ensure_memory(s, bytes * copies);
    if (ok) {
        uint32_t seed = 1;
        /* of a model's numbers a few of a row are far above the others, the same in all rows */
        for (int64_t j = 0; j < m * k; j++)
            x[j] = type == ST_CPU_W_I8 ? heap(&seed) + (j % k % 100 == 0 ? 4 + 2 * noise(&seed) : 0) : noise(&seed);
        memset(s->memory, 0, bytes);
        fill_row(t, k, row, &seed);
        for (int64_t r = 0; r < n; r++)
            st_cpu_pack_rows(type, k, row, r, 1, s->memory);
        for (size_t c = 1; c < copies; c++)
            memcpy(s->memory + c * bytes, s->memory, bytes);
        product p = {.k = &s->k,
                     .left = {.x = x, .n1 = m, .n2 = 1, .stride1 = (ptrdiff_t)k},
                     .right = {.type = type, .n = n, .k = k, .bf16 = true, .int8 = w == INT8, .words = w == WORDS},
                     .e = {.out = y, .out_stride = (ptrdiff_t)n, .bias = bias},
                     .m = m,
                     .scratch = scratch,
                     .weights = s->memory,
                     .copy_bytes = bytes,
                     .copies = copies};
        char shape[48], name[16];
        snprintf(shape, sizeof shape, "%dx%dx%d", (int)m, (int)n, (int)k);
        snprintf(name, sizeof name, "%s%s", types[t].name, way_names[w]);
        const double macs = (double)m * (double)n * (double)k;
        bench_probe probe = bench_probe_of(&s->k, number_of(&s->k, type, w));
        reading reads = {s->level, s->memory, bytes, copies, 0};
        if (few) {
            const bench_result r =
                bench_measure(run_product, &p, (double)bytes, read_rate, &reads, samples(s), least(s));
            const bench_result shown = {r.seconds, r.fraction, r.ceiling * 1e-9};
            say(s, "skinny", name, size, shape, (double)bytes / r.seconds * 1e-9, "GB/s", &shown, "read");
        } else {
            const bench_result r = bench_measure(run_product, &p, macs, peak_rate, &probe, samples(s), least(s));
            const bench_result shown = {r.seconds, r.fraction, r.ceiling * 1e-9};
            say(s, "gemm", name, size, shape, macs / r.seconds * 1e-9, "GMAC/s", &shown, probe.name);
        }
    }
    st_free_pages(x, (size_t)(m * k) * 4);
    st_free_pages(y, (size_t)(m * n) * 4);
    st_free_pages(scratch, scratch_bytes);
    st_free(bias);
    st_free(row);
    return ok;
}

static bool bench_type(setup *s, int t, way w, const char *size, int d)
{
    const int m = s->quick ? 130 : N_POS;
    bool ok = bench_product(s, t, w, size, m, d, d) && bench_product(s, t, w, size, m, 4 * d, d) &&
              bench_product(s, t, w, size, m, d, 4 * d);
    if (w == WORDS)
        return ok; /* few rows are not made words */
    static const int few[] = {1, 5, 40};
    for (int f = 0; ok && f < 3; f++)
        ok = bench_product(s, t, w, size, few[f], 4 * d, d);
    for (int f = 0; ok && f < 2 && !s->quick; f++)
        ok = bench_product(s, t, w, size, few[f], N_VOCAB, d);
    return ok;
}

static bool bench_products(setup *s)
{
    bool ok = true;
    for (int z = 0; z < N_SIZES; z++) {
        if (!wanted(s, sizes[z].name))
            continue;
        const int d = sizes[z].d;
        for (int t = 0; ok && t < N_TYPES; t++)
            for (int w = 0; ok && w < N_WAYS; w++)
                ok = !has_way(&s->k, t, (way)w) || bench_type(s, t, (way)w, sizes[z].name, d);
    }
    return ok;
}

/* ---- attention, through a plan ---- */

typedef struct plan_run {
    sotto_plan *plan;
    sotto_tensor *base; /* where the rows' cells begin; NULL: nothing moves */
    int n_rows, window, n_windows;
    sotto_status status;
    sotto_error err;
} plan_run;

static void run_plan(void *arg)
{
    plan_run *p = arg;
    if (p->status != SOTTO_OK)
        return;
    int32_t base[64];
    if (p->base != NULL) {
        for (int r = 0; r < p->n_rows; r++)
            base[r] = p->window * N_POS;
        p->window = (p->window + 1) % p->n_windows;
        p->status = sotto_plan_set(p->plan, p->base, 0, base, sizeof *base * (size_t)p->n_rows, &p->err);
    }
    if (p->status == SOTTO_OK)
        p->status = sotto_plan_run(p->plan, NULL, &p->err);
}

/* The built graph as a plan in an arena of its own; takes the graph. */
static sotto_status finish_plan(sotto_backend *backend, sotto_graph *g, sotto_arena **arena, sotto_plan **plan,
                                sotto_error *err)
{
    sotto_status status = sotto_graph_finish(g, err);
    if (status == SOTTO_OK)
        status = sotto_arena_create(backend, arena, err);
    if (status == SOTTO_OK)
        return sotto_plan_create_take(backend, *arena, g, plan, err);
    sotto_graph_free(g);
    return status;
}

static sotto_status fill_input(sotto_plan *plan, sotto_tensor *t, size_t n, sotto_error *err)
{
    float *x = st_alloc_pages(4 * n);
    if (x == NULL)
        return SOTTO_E_MEMORY;
    uint32_t seed = 2;
    for (size_t i = 0; i < n; i++)
        x[i] = noise(&seed);
    const sotto_status status = sotto_plan_set(plan, t, 0, x, 4 * n, err);
    st_free_pages(x, 4 * n);
    return status;
}

static sotto_status bench_attention(setup *s, sotto_backend *backend, const char *size, int d, sotto_compute compute,
                                    sotto_error *err)
{
    const int heads = d / HEAD;
    const int64_t dim[] = {3 * d, N_POS}, split[] = {HEAD, heads, N_POS, 1};
    sotto_graph *g = NULL;
    sotto_arena *arena = NULL;
    plan_run p = {0};
    sotto_status status = sotto_graph_create("attention", &g, err);
    if (status != SOTTO_OK)
        return status;
    sotto_graph_set_compute(g, compute);
    sotto_tensor *qkv = sotto_graph_input(g, "qkv", SOTTO_F32, 2, dim), *part[3];
    for (int i = 0; i < 3; i++)
        part[i] = sotto_view_reshape(g, sotto_view_slice(g, qkv, 0, i * d, d), 4, split);
    sotto_graph_output(g, sotto_attention(g, part[0], part[1], part[2], 0.125f, false), "out");
    status = finish_plan(backend, g, &arena, &p.plan, err);
    if (status == SOTTO_OK)
        status = fill_input(p.plan, qkv, (size_t)(3 * d) * N_POS, err);
    if (status == SOTTO_OK) {
        const double macs = 2.0 * N_POS * N_POS * d;
        const bool f32 = compute == SOTTO_COMPUTE_F32, bf16 = s->k.bf16.mr > 0;
        bench_probe probe = bench_probe_of(&s->k, f32 ? BENCH_F32 : bf16 ? BENCH_BF16 : BENCH_WORDS);
        const bench_result r = bench_measure(run_plan, &p, macs, peak_rate, &probe, samples(s), least(s));
        const bench_result shown = {r.seconds, r.fraction, r.ceiling * 1e-9};
        char shape[48];
        snprintf(shape, sizeof shape, "%dx%dx%dx%d", heads, N_POS, N_POS, HEAD);
        status = p.status;
        *err = p.status == SOTTO_OK ? *err : p.err;
        say(s, "attention",
            f32    ? "f32"
            : bf16 ? "bf16"
                   : "words",
            size, shape, macs / r.seconds * 1e-9, "GMAC/s", &shown, probe.name);
    }
    sotto_plan_free(p.plan);
    sotto_arena_free(arena);
    return status;
}

/* Rows of a decoder over the keys and values of a window, which change from run to run, as from layer to layer. The cells of
 * a head lie side by side, and products of bf16 cells may be those of bf16, as they are and may be in speech recognition. */
static sotto_status bench_cells(setup *s, sotto_backend *backend, const char *size, int d, sotto_dtype dtype, int rows,
                                sotto_error *err)
{
    const int heads = d / HEAD, windows = (int)(s->cold / ((size_t)d * N_POS * 4)) + 1;
    static const int heads_first[] = {0, 2, 1, 3};
    const int64_t dim_cells[] = {HEAD, (int64_t)windows * N_POS, heads}, dim_q[] = {HEAD, heads, rows}, dim_n[] = {rows};
    sotto_store *store = NULL;
    sotto_graph *g = NULL;
    sotto_arena *arena = NULL;
    plan_run p = {.n_rows = rows, .n_windows = windows};
    sotto_status status = sotto_store_create(backend, SOTTO_USAGE_CACHE, &store, err);
    if (status != SOTTO_OK)
        return status;
    sotto_tensor *k = sotto_store_add(store, "k", dtype, 3, dim_cells, false);
    sotto_tensor *v = sotto_store_add(store, "v", dtype, 3, dim_cells, false);
    status = sotto_store_allocate(store, err);
    if (status == SOTTO_OK)
        status = sotto_store_clear(store, err);
    if (status == SOTTO_OK)
        status = sotto_graph_create("cells", &g, err);
    sotto_tensor *q = NULL, *n_kv = NULL;
    if (status == SOTTO_OK) {
        q = sotto_graph_input(g, "q", SOTTO_F32, 3, dim_q);
        p.base = sotto_graph_input(g, "base", SOTTO_I32, 1, dim_n);
        n_kv = sotto_graph_input(g, "n_kv", SOTTO_I32, 1, dim_n);
        sotto_graph_set_compute(g, dtype == SOTTO_BF16 ? SOTTO_COMPUTE_BF16 : SOTTO_COMPUTE_F32);
        sotto_tensor *keys = sotto_view_permute(g, sotto_graph_use(g, k), heads_first),
                     *values = sotto_view_permute(g, sotto_graph_use(g, v), heads_first);
        sotto_graph_output(g, sotto_cache_attention(g, q, keys, values, NULL, p.base, n_kv, 0.125f, 0), "out");
        status = finish_plan(backend, g, &arena, &p.plan, err);
    }
    if (status == SOTTO_OK)
        status = fill_input(p.plan, q, (size_t)(rows * d), err);
    int32_t visible[64];
    for (int r = 0; r < rows; r++)
        visible[r] = N_POS;
    if (status == SOTTO_OK)
        status = sotto_plan_set(p.plan, n_kv, 0, visible, sizeof *visible * (size_t)rows, err);
    const size_t bytes = 2 * sizeof(uint16_t) * (size_t)d * N_POS;
    if (status == SOTTO_OK && ensure_memory(s, bytes * (size_t)windows)) {
        reading reads = {s->level, s->memory, bytes, (size_t)windows, 0};
        const bench_result r = bench_measure(run_plan, &p, (double)bytes, read_rate, &reads, samples(s), least(s));
        const bench_result shown = {r.seconds, r.fraction, r.ceiling * 1e-9};
        char shape[48];
        snprintf(shape, sizeof shape, "%dx%dx%dx%d", rows, heads, N_POS, HEAD);
        status = p.status;
        *err = p.status == SOTTO_OK ? *err : p.err;
        say(s, "cells", dtype == SOTTO_BF16 ? "bf16" : "f16", size, shape, (double)bytes / r.seconds * 1e-9, "GB/s",
            &shown, "read");
    }
    sotto_plan_free(p.plan);
    sotto_arena_free(arena);
    sotto_store_free(store);
    return status;
}

static sotto_status bench_attentions(setup *s, sotto_error *err)
{
    const sotto_backend_options options = {.device = "cpu", .n_threads = 1, .cpu_level = st_cpu_level_name(s->level)};
    sotto_backend *backend = NULL;
    sotto_status status = sotto_backend_open(&options, &backend, err);
    for (int z = 0; status == SOTTO_OK && z < N_SIZES; z++) {
        if (!wanted(s, sizes[z].name))
            continue;
        const char *name = sizes[z].name;
        const int d = sizes[z].d;
        status = bench_attention(s, backend, name, d, SOTTO_COMPUTE_F32, err);
        if (status == SOTTO_OK && (s->k.bf16.mr > 0 || s->k.words.rows > 0))
            status = bench_attention(s, backend, name, d, SOTTO_COMPUTE_BF16, err);
        static const int rows[] = {1, 5, 40};
        for (int i = 0; status == SOTTO_OK && i < 3; i++)
            status = bench_cells(s, backend, name, d, SOTTO_BF16, rows[i], err);
        if (status == SOTTO_OK)
            status = bench_cells(s, backend, name, d, SOTTO_F16, 1, err);
    }
    sotto_backend_free(backend);
    return status;
}

/* ---- rows ---- */

typedef struct row_work {
    const st_cpu_kernels *k;
    int op, rows;
    int64_t n;
    const float *x, *w, *b;
    float *y;
} row_work;

enum { ROW_NORM, ROW_GELU, ROW_SOFTMAX, ROW_COPY, ROW_OPS = ROW_COPY };

static void run_rows(void *arg)
{
    const row_work *r = arg;
    for (int i = 0; i < r->rows; i++) {
        const float *x = r->x + i * r->n;
        float *y = r->y + i * r->n;
        if (r->op == ROW_NORM)
            r->k->layer_norm(x, r->w, r->b, 1e-5f, r->n, y);
        else if (r->op == ROW_GELU)
            r->k->gelu(x, y, r->n);
        else if (r->op == ROW_SOFTMAX)
            r->k->softmax(x, NULL, 1.0f, r->n, y);
        else
            memcpy(y, x, sizeof *x * (size_t)r->n);
    }
}

static double copy_rate(void *arg)
{
    row_work copy = *(const row_work *)arg;
    copy.op = ROW_COPY;
    double best = 0;
    for (int i = 0; i < 3; i++) {
        const double t0 = bench_cpu_now();
        run_rows(&copy);
        const double rate = 8.0 * copy.rows * (double)copy.n / (bench_cpu_now() - t0);
        best = rate > best ? rate : best;
    }
    return best;
}

static bool bench_rows(setup *s)
{
    bool ok = true;
    for (int z = 0; ok && z < N_SIZES; z++) {
        if (!wanted(s, sizes[z].name))
            continue;
        const int64_t width[ROW_OPS] = {sizes[z].d, 4 * sizes[z].d, N_POS};
        static const char *const names[ROW_OPS] = {"norm", "gelu", "softmax"};
        for (int op = 0; ok && op < ROW_OPS; op++) {
            const size_t bytes = (size_t)width[op] * N_POS * 4;
            float *x = st_alloc_pages(bytes), *y = st_alloc_pages(bytes), *w = st_calloc((size_t)width[op], 4);
            ok = x && y && w;
            if (ok) {
                uint32_t seed = 3;
                for (size_t i = 0; i < bytes / 4; i++)
                    x[i] = 4 * noise(&seed);
                row_work r = {&s->k, op, N_POS, width[op], x, w, w, y};
                const double work = 2.0 * (double)bytes;
                const bench_result m = bench_measure(run_rows, &r, work, copy_rate, &r, samples(s), least(s));
                const bench_result shown = {m.seconds, m.fraction, m.ceiling * 1e-9};
                char shape[48];
                snprintf(shape, sizeof shape, "%dx%d", N_POS, (int)width[op]);
                say(s, names[op], "f32", sizes[z].name, shape, work / m.seconds * 1e-9, "GB/s", &shown, "copy");
            }
            st_free_pages(x, bytes);
            st_free_pages(y, bytes);
            st_free(w);
        }
    }
    return ok;
}

static int bench_level(setup *s, st_cpu_level level)
{
    s->level = level;
    st_cpu_kernels_fill(&s->k, level);
    if (s->k.enter != NULL)
        s->k.enter();
    bool ok = bench_rows(s) && bench_products(s);
    if (s->k.leave != NULL)
        s->k.leave();
    sotto_error err = {0};
    if (ok && bench_attentions(s, &err) != SOTTO_OK) {
        fprintf(stderr, "bench_kernels: %s\n", err.text);
        return 1;
    }
    if (!ok)
        fprintf(stderr, "bench_kernels: no memory\n");
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    const uint32_t features = st_cpu_features();
    const st_cpu_level best = st_cpu_level_best(features);
    st_cpu_level level = best;
    bool all = false;
    setup s = {.sizes = "", .cold = (size_t)256 << 20};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            s.json = true;
        } else if (strcmp(argv[i], "--quick") == 0) {
            s.quick = true;
            s.sizes = "tiny";
            s.cold = (size_t)16 << 20;
        } else if (strcmp(argv[i], "--sizes") == 0 && i + 1 < argc) {
            s.sizes = argv[++i];
        } else if (strcmp(argv[i], "--level") == 0 && i + 1 < argc) {
            all = strcmp(argv[++i], "all") == 0;
            if (!all && (!st_cpu_level_find(argv[i], &level) || !st_cpu_level_usable(level, features))) {
                fprintf(stderr, "bench_kernels: level %s is unknown or not usable here\n", argv[i]);
                return 2;
            }
        } else {
            fprintf(stderr, "usage: bench_kernels [--level NAME|all] [--sizes tiny,base,...] [--quick] [--json]\n");
            return 2;
        }
    }
    int code = 0;
    for (int l = 0; code == 0 && l < ST_CPU_LEVEL_COUNT; l++) {
        if (!st_cpu_level_usable((st_cpu_level)l, features) || !(all || l == (int)level))
            continue;
        s.base_only = all && l != (int)best && !s.quick;
        code = bench_level(&s, (st_cpu_level)l);
    }
    if (s.memory != NULL)
        st_free_pages(s.memory, s.memory_bytes);
    return code;
}
