/* test_beams.c: attention of beams over a cache. Their lists begin alike, so that they meet the cells of their past together;
 * against double sums, and the same bits whichever other windows are in the step. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/half.h"
#include "kernels/guard_support.h"
#include "kernels/level_support.h"
#include "sotto/backend.h"

enum { D = 64, H = 3, CELLS = 400, MAX_KV = 160, MAX_WINDOWS = 14, MAX_ROWS = MAX_WINDOWS * 16 };

/* What the beams of some windows see: [row][place]. */
typedef struct beams {
    int windows, each, rows;
    int32_t list[MAX_ROWS][MAX_KV], base[MAX_ROWS], n_kv[MAX_ROWS];
    float q[MAX_ROWS * H * D];
    float k[CELLS * H * D], v[CELLS * H * D];
    uint16_t k16[CELLS * H * D], v16[CELLS * H * D]; /* the same numbers */
    bool narrow;                                     /* bf16 for the caches and for products */
} beams;

static void ok(sotto_status status, const sotto_error *err)
{
    if (status != SOTTO_OK)
        fail_msg("%s: %s", sotto_status_name(status), err->text);
}

static sotto_tensor *input(sotto_graph *g, const char *name, sotto_dtype t, int64_t d0, int64_t d1, int64_t d2)
{
    const int64_t dim[3] = {d0, d1, d2};
    return sotto_graph_input(g, name, t, 3, dim);
}

/* Rows [first, first + n) in one step: [n, H, D], to be freed. */
static float *attend(sotto_backend *b, const beams *x, int first, int n)
{
    sotto_error err;
    sotto_arena *arena;
    sotto_graph *g;
    sotto_plan *plan;
    ok(sotto_arena_create(b, &arena, &err), &err);
    ok(sotto_graph_create("beams", &g, &err), &err);
    const sotto_dtype type = x->narrow ? SOTTO_BF16 : SOTTO_F32;
    sotto_graph_set_compute(g, x->narrow ? SOTTO_COMPUTE_BF16 : SOTTO_COMPUTE_F32);
    sotto_tensor *q = input(g, "q", SOTTO_F32, D, H, n), *k = input(g, "k", type, D, H, CELLS),
                 *v = input(g, "v", type, D, H, CELLS), *list = input(g, "list", SOTTO_I32, MAX_KV, x->rows, 1),
                 *base = input(g, "base", SOTTO_I32, n, 1, 1), *n_kv = input(g, "n_kv", SOTTO_I32, n, 1, 1);
    sotto_tensor *y = sotto_cache_attention(g, q, k, v, list, base, n_kv, 0.25f, 0);
    sotto_graph_output(g, y, "y");
    ok(sotto_graph_finish(g, &err), &err);
    ok(sotto_plan_create_take(b, arena, g, &plan, &err), &err);
    const struct {
        sotto_tensor *t;
        const void *data;
    } in[] = {{q, x->q + first * H * D},
              {k, x->narrow ? (const void *)x->k16 : x->k},
              {v, x->narrow ? (const void *)x->v16 : x->v},
              {list, x->list},
              {base, x->base + first},
              {n_kv, x->n_kv + first}};
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        ok(sotto_plan_set(plan, in[i].t, 0, in[i].data, sotto_tensor_bytes(in[i].t), &err), &err);
    float *out = malloc((size_t)n * H * D * sizeof *out);
    ok(sotto_plan_run(plan, NULL, &err), &err);
    ok(sotto_plan_get(plan, y, 0, out, (size_t)n * H * D * sizeof *out, &err), &err);
    sotto_plan_free(plan);
    sotto_arena_free(arena);
    return out;
}

/* Each window's lists have `common` places in common, and up to 6 of their own, some of which two neighbours share. */
static void fill(beams *x, int windows, int each, int common)
{
    x->windows = windows;
    x->each = each;
    x->rows = windows * each;
    for (int i = 0; i < CELLS * H * D; i++) {
        x->k16[i] = st_f32_to_bf16(test_random());
        x->v16[i] = st_f32_to_bf16(test_random());
        x->k[i] = st_bf16_to_f32(x->k16[i]);
        x->v[i] = st_bf16_to_f32(x->v16[i]);
    }
    for (int i = 0; i < x->rows * H * D; i++)
        x->q[i] = test_random();
    for (int r = 0; r < x->rows; r++) {
        for (int j = 0; j < MAX_KV; j++)
            x->list[r][j] =
                r % each > 0 && j < common + r % 3 ? x->list[r - 1][j] : (int32_t)(test_random_bits() % CELLS);
        if (common > 0)
            x->list[r][0] = r / each; /* neighbouring windows have no cell in common */
        x->base[r] = r;
        x->n_kv[r] = common + (int)(test_random_bits() % 7);
    }
}

static void check_sums(const beams *x, const float *out)
{
    for (int r = 0; r < x->rows; r++) {
        for (int h = 0; h < H; h++) {
            double p[MAX_KV], sum = 0;
            for (int j = 0; j < x->n_kv[r]; j++) {
                double s = 0;
                for (int e = 0; e < D; e++)
                    s += (double)x->q[(r * H + h) * D + e] * x->k[(x->list[r][j] * H + h) * D + e];
                sum += p[j] = exp(0.25 * s);
            }
            for (int e = 0; e < D; e++) {
                double want = 0;
                for (int j = 0; j < x->n_kv[r]; j++)
                    want += p[j] / sum * x->v[(x->list[r][j] * H + h) * D + e];
                const double got = out[(r * H + h) * D + e];
                if (!(fabs(got - want) <= (x->narrow ? 2e-3 : 2e-5)))
                    fail_msg("row %d of %d windows of %d, head %d, %d: %.9g, expected %.9g", r, x->windows, x->each, h,
                             e, got, want);
            }
        }
    }
}

static void check_level(const char *level, bool narrow)
{
    static beams x;
    x.narrow = narrow;
    static const int shapes[][3] = {{1, 1, 40},  {1, 2, 40},  {1, 5, 150}, {1, 5, 33},  {1, 5, 31}, {2, 5, 90},
                                    {14, 5, 64}, {13, 5, 70}, {5, 16, 50}, {3, 9, 100}, {4, 5, 0},  {2, 8, 1}};
    for (int threads = 1; threads <= 2; threads++) {
        sotto_error err;
        sotto_backend *b;
        const sotto_backend_options o = {.device = "cpu", .n_threads = threads, .cpu_level = level};
        ok(sotto_backend_open(&o, &b, &err), &err);
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            fill(&x, shapes[i][0], shapes[i][1], shapes[i][2]);
            float *all = attend(b, &x, 0, x.rows);
            check_sums(&x, all);
            for (int w = 0; w < x.windows; w++) {
                float *alone = attend(b, &x, w * x.each, x.each);
                if (memcmp(alone, all + w * x.each * H * D, (size_t)(x.each * H * D) * sizeof *alone) != 0)
                    fail_msg("%s: window %d of %d: other numbers than alone", level, w, x.windows);
                free(alone);
            }
            free(all);
        }
        sotto_backend_free(b);
    }
}

static void test_beams(void **state)
{
    (void)state;
    test_seed();
    for (int level = 0; level < ST_CPU_LEVEL_COUNT; level++)
        if (level_tested((st_cpu_level)level))
            for (int narrow = 0; narrow <= 1; narrow++)
                check_level(st_cpu_level_name((st_cpu_level)level), narrow != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_beams)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
