/* test_int8_products.c: weights of block types under SOTTO_COMPUTE_INT8, on every device and every level of the CPU: those that
 * bring the left side to bytes find the same integers as the reference, the others stay within half a step of it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/every_device_support.h"
#include "backends/scene_support.h"
#include "sotto/quant.h"

static const sotto_dtype types[] = {SOTTO_Q8_0, SOTTO_Q4_0, SOTTO_Q4_1, SOTTO_Q5_0, SOTTO_Q5_1,  SOTTO_Q2_K,
                                    SOTTO_Q3_K, SOTTO_Q4_K, SOTTO_Q5_K, SOTTO_Q6_K, SOTTO_IQ4_NL};

static sotto_tensor *product(scene *s, const variant *v, sotto_tensor *x, sotto_dtype dtype)
{
    const int64_t y_dim[4] = {v->n, v->dim[1], v->dim[2], v->dim[3]};
    sotto_tensor *w = scene_weights(s, dtype, v->dim[0], v->n, v->matrix);
    sotto_tensor *b = v->bias ? scene_weights(s, SOTTO_F32, v->n, 1, false) : NULL;
    sotto_tensor *r = v->residual ? scene_floats(s, PLAIN, y_dim) : NULL;
    return sotto_linear(s->g, x, w, b, (sotto_activation)v->act, r);
}

static void build_linear(scene *s, const variant *v)
{
    s->node = s->y = product(s, v, scene_floats(s, v->how, v->dim), v->dtype);
}

/* One left side for several products, of which the last is compared, or with bit 2 of extra the one that wants the bytes in another
 * order (bit 0). Bit 1: other rows come in between. */
static void build_shared(scene *s, const variant *v)
{
    sotto_tensor *x = scene_floats(s, v->how, v->dim), *other = NULL;
    sotto_graph_output(s->g, product(s, v, x, v->dtype), "first");
    if (v->extra & 1) {
        other = product(s, v, x, v->dtype == SOTTO_Q8_0 ? SOTTO_Q4_0 : SOTTO_Q8_0);
        sotto_graph_output(s->g, other, "other order");
    }
    if (v->extra & 2)
        sotto_graph_output(s->g, product(s, v, sotto_scale(s->g, x, 2, 0), v->dtype), "other rows");
    sotto_tensor *last = product(s, v, x, v->dtype);
    sotto_graph_output(s->g, last, "last");
    s->node = s->y = v->extra & 4 && other ? other : last;
}

static const int64_t rows[] = {1, 2, 3, 4, 5, 8, 7, 9, 16, 6, 13, 17, 40, 0};
static const int64_t columns[] = {1, 7, 31, 32, 33, 64, 95, 130};

static void products_on(sotto_backend *b, sotto_backend *ref)
{
    for (int t = 0; t < COUNT(types); t++)
        for (int i = 0; i < 2 * COUNT(rows); i++) {
            const int64_t block = sotto_dtype_block(types[t]);
            const variant v = {.how = (layout)(i % 3),
                               .dtype = types[t],
                               .matrix = i % 9 != 4,
                               .act = i % 4,
                               .bias = i % 2,
                               .residual = i % 3 > 0,
                               .dim = {block * (1 + (i * 3 + t) % (block > 32 ? 3 : 19)), rows[i % COUNT(rows)],
                                       1 + i % 2, 1 + i / 20},
                               .n = columns[(i * 3 + t) % COUNT(columns)],
                               .compute = SOTTO_COMPUTE_INT8,
                               .spread = i % 11 == 0   ? 40
                                         : i % 11 == 5 ? 1e-4f
                                         : i % 11 == 7 ? 1e-20f
                                                       : 1};
            scene_compare(b, ref, "linear in bytes", build_linear, &v);
        }
}

static void shared_on(sotto_backend *b, sotto_backend *ref)
{
    for (int i = 0; i < 24; i++) {
        const variant v = {.how = (layout)(i / 8),
                           .dtype = types[i * 3 % COUNT(types)],
                           .matrix = true,
                           .dim = {512, 1 + i % 5, 1, 1},
                           .n = 9,
                           .extra = i % 8,
                           .compute = SOTTO_COMPUTE_INT8};
        scene_compare(b, ref, "products of one left side", build_shared, &v);
    }
}

/* What is not finite makes its row's results no numbers, and no other row's. */
static void special_on(sotto_backend *b, sotto_backend *ref)
{
    static const float bad[] = {INFINITY, -INFINITY, NAN};
    (void)ref;
    for (int t = 0; t < COUNT(types); t++) {
        enum { ROWS = 5, K = 256, N = 21 };
        const int64_t dim[4] = {K, ROWS, 1, 1}, n_w[2] = {K, N};
        sotto_error err;
        sotto_graph *g;
        sotto_store *store;
        sotto_arena *arena;
        sotto_plan *plan;
        float *x = calloc(ROWS * K, sizeof *x), *y = calloc(ROWS * N, sizeof *y), *w = calloc(K * N, sizeof *w);
        for (int i = 0; i < K * N; i++)
            w[i] = (float)(i * 37 % 101 - 50) / 50;
        for (int i = 0; i < ROWS * K; i++)
            x[i] = i / K % 2 == 0 && i % K == (t * 41 + i / K * 60) % K ? bad[(t + i / K) % 3] : (float)(i % 13) - 6;
        assert_int_equal(sotto_graph_create("special", &g, &err), SOTTO_OK);
        sotto_graph_set_compute(g, SOTTO_COMPUTE_INT8);
        assert_int_equal(sotto_store_create(b, SOTTO_USAGE_WEIGHTS, &store, &err), SOTTO_OK);
        sotto_tensor *stored = sotto_store_add(store, "w", types[t], 2, n_w, true);
        assert_int_equal(sotto_store_allocate(store, &err), SOTTO_OK);
        void *blocks = malloc(sotto_tensor_bytes(stored));
        assert_true(sotto_row_from_f32(types[t], w, blocks, K * N));
        assert_int_equal(sotto_store_upload(store, stored, 0, N, types[t], blocks, &err), SOTTO_OK);
        free(blocks);
        sotto_tensor *in = sotto_graph_input(g, "x", SOTTO_F32, 4, dim);
        sotto_tensor *out = sotto_linear(g, in, sotto_graph_use(g, stored), NULL, SOTTO_ACT_NONE, NULL);
        sotto_graph_output(g, out, "y");
        assert_int_equal(sotto_graph_finish(g, &err), SOTTO_OK);
        assert_int_equal(sotto_arena_create(b, &arena, &err), SOTTO_OK);
        assert_int_equal(sotto_plan_create_take(b, arena, g, &plan, &err), SOTTO_OK);
        assert_int_equal(sotto_plan_allocate(plan, &err), SOTTO_OK);
        assert_int_equal(sotto_plan_set(plan, in, 0, x, ROWS * K * sizeof *x, &err), SOTTO_OK);
        assert_int_equal(sotto_plan_run(plan, NULL, &err), SOTTO_OK);
        assert_int_equal(sotto_plan_get(plan, out, 0, y, ROWS * N * sizeof *y, &err), SOTTO_OK);
        for (int i = 0; i < ROWS * N; i++)
            if (isfinite(y[i]) == (i / N % 2 == 0))
                fail_msg("%s, %s: row %d has %g", sotto_backend_description(b), sotto_dtype_name(types[t]), i / N, y[i]);
        sotto_plan_free(plan);
        sotto_arena_free(arena);
        sotto_store_free(store);
        free(x), free(y), free(w);
    }
}

static void test_products(void **state)
{
    (void)state;
    on_every_device(products_on);
}

static void test_shared(void **state)
{
    (void)state;
    on_every_device(shared_on);
}

static void test_special(void **state)
{
    (void)state;
    on_every_device(special_on);
}

int main(int argc, char **argv)
{
    if (argc > 1) /* a pattern of test names */
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_special),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    scene_print_coverage();
    return failed;
}
