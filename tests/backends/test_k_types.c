/* test_k_types.c: weights of the K types and of iq4_nl, on every device and every level of the CPU: products and rows are those
 * of the reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backends/every_device_support.h"
#include "backends/scene_support.h"

static void finish(scene *s, sotto_tensor *y)
{
    s->node = s->y = y;
}

static void build_linear(scene *s, const variant *v)
{
    const int64_t y_dim[4] = {v->n, v->dim[1], v->dim[2], v->dim[3]};
    sotto_tensor *x = scene_floats(s, v->how, v->dim), *w = scene_weights(s, v->dtype, v->dim[0], v->n, v->matrix);
    sotto_tensor *b = v->bias ? scene_weights(s, SOTTO_F32, v->n, 1, false) : NULL;
    sotto_tensor *r = v->residual ? scene_floats(s, PLAIN, y_dim) : NULL;
    finish(s, sotto_linear(s->g, x, w, b, (sotto_activation)v->act, r));
}

/* n: rows of the table; dim[1]: rows to get, some outside */
static void build_get_rows(scene *s, const variant *v)
{
    sotto_tensor *table = scene_weights(s, v->dtype, v->dim[0], v->n, v->matrix);
    int32_t rows[64];
    assert_true(v->dim[1] <= COUNT(rows));
    for (int64_t i = 0; i < v->dim[1]; i++)
        rows[i] = (int32_t)(scene_random(s) % (uint32_t)(v->n + 4)) - 2;
    finish(s, sotto_get_rows(s->g, table, scene_given(s, SOTTO_I32, 1, &v->dim[1], rows)));
}

static const int64_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 31, 65, 130, 0};
static const int64_t columns[] = {1, 7, 31, 32, 33, 64, 95, 130};

static void products_on(sotto_backend *b, sotto_backend *ref)
{
    for (int t = 0; t < N_K_TYPES; t++)
        for (int i = 0; i < 2 * COUNT(rows); i++) {
            const variant v = {.how = (layout)(i % 3),
                               .dtype = k_types[t],
                               .matrix = i % 7 != 3,
                               .act = i % 5,
                               .bias = i % 2,
                               .residual = i % 3 > 0,
                               .dim = {sotto_dtype_block(k_types[t]) * (1 + (i / 2 + t) % 3), rows[i % COUNT(rows)],
                                       1 + i % 2, 1 + i / 24},
                               .n = columns[(i * 3 + t) % COUNT(columns)],
                               .spread = i % 11 == 0   ? 40
                                         : i % 11 == 5 ? 1e-4f
                                                       : 1};
            scene_compare(b, ref, "linear", build_linear, &v);
        }
}

/* In halves where the device has matrix units: whole and ragged tiles, of both sizes. */
static void halves_on(sotto_backend *b, sotto_backend *ref)
{
    static const int64_t many[] = {9, 16, 31, 64, 65, 128, 130, 200}, across[] = {8, 64, 65, 127, 128, 200};
    for (int t = 0; t < N_K_TYPES; t++)
        for (int i = 0; i < 8; i++) {
            const variant v = {.how = (layout)(i % 3),
                               .dtype = k_types[t],
                               .matrix = true,
                               .act = i % 4,
                               .bias = i % 2,
                               .residual = i % 3 > 0,
                               .dim = {sotto_dtype_block(k_types[t]) * (1 + (i + t) % 3),
                                       many[(i * 3 + t) % COUNT(many)], 1 + i / 6, 1},
                               .n = across[(i + t) % COUNT(across)],
                               .compute = SOTTO_COMPUTE_F16};
            scene_compare(b, ref, "linear in halves", build_linear, &v);
        }
}

static void rows_on(sotto_backend *b, sotto_backend *ref)
{
    for (int t = 0; t < N_K_TYPES; t++)
        for (int i = 0; i < 6; i++) {
            const variant v = {.dtype = k_types[t],
                               .matrix = i % 3 > 0,
                               .dim = {sotto_dtype_block(k_types[t]) * (1 + i % 4), i == 4 ? 0 : 1 + i * 3, 1, 1},
                               .n = 1 + i * 9};
            scene_compare(b, ref, "get_rows", build_get_rows, &v);
        }
}

static void test_products(void **state)
{
    (void)state;
    on_every_device(products_on);
}

static void test_halves(void **state)
{
    (void)state;
    on_every_device(halves_on);
}

static void test_rows(void **state)
{
    (void)state;
    on_every_device(rows_on);
}

int main(int argc, char **argv)
{
    if (argc > 1) /* a pattern of test names */
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_rows),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    scene_print_coverage();
    return failed;
}
