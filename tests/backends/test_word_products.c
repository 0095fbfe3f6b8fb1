/* test_word_products.c: weights of f16 under SOTTO_COMPUTE_WORDS, on every device and every level of the CPU: those that multiply words
 * stay within what these stand for (bounds_support.c), the others within the bound of f32, which is part of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backends/every_device_support.h"
#include "backends/scene_support.h"

static void build_linear(scene *s, const variant *v)
{
    const int64_t y_dim[4] = {v->n, v->dim[1], v->dim[2], v->dim[3]};
    sotto_tensor *x = scene_floats(s, v->how, v->dim);
    sotto_tensor *w = scene_weights(s, v->dtype, v->dim[0], v->n, v->matrix);
    sotto_tensor *b = v->bias ? scene_weights(s, SOTTO_F32, v->n, 1, false) : NULL;
    sotto_tensor *r = v->residual ? scene_floats(s, PLAIN, y_dim) : NULL;
    s->node = s->y = sotto_linear(s->g, x, w, b, (sotto_activation)v->act, r);
}

/* extra: the stride; a kernel of 3 with padding of 1 */
static void build_conv(scene *s, const variant *v)
{
    sotto_tensor *x = scene_floats(s, v->how, v->dim);
    sotto_tensor *w = scene_weights(s, v->dtype, 3 * v->dim[0], v->n, v->matrix);
    sotto_tensor *b = v->bias ? scene_weights(s, SOTTO_F32, v->n, 1, false) : NULL;
    s->node = s->y = sotto_conv_1d(s->g, x, w, b, 3, v->extra, 1, (sotto_activation)v->act, NULL);
}

static void products_on(sotto_backend *b, sotto_backend *ref)
{
    static const int64_t rows[] = {1, 8, 9, 13, 31, 33, 65, 130, 7, 0}, columns[] = {1, 7, 31, 32, 33, 64, 95, 130};
    static const int64_t depths[] = {32, 256, 1, 3, 33, 255, 257, 77, 600, 1100};
    for (int i = 0; i < 80; i++) {
        const variant v = {.how = (layout)(i % 3),
                           .dtype = i % 8 == 7 ? SOTTO_F32 : SOTTO_F16,
                           .matrix = i % 9 != 4,
                           .act = i % 5,
                           .bias = i % 2,
                           .residual = i % 3 > 0,
                           .dim = {depths[i * 3 % COUNT(depths)], rows[i / 3 % COUNT(rows)], 1 + i % 2, 1 + i / 60},
                           .n = columns[i * 3 % COUNT(columns)],
                           .compute = SOTTO_COMPUTE_WORDS,
                           .spread = i % 11 == 0   ? 40
                                     : i % 11 == 5 ? 1e-4f
                                     : i % 11 == 7 ? 1e-20f
                                                   : 1};
        scene_compare(b, ref, "linear in words", build_linear, &v);
    }
    for (int i = 0; i < 24; i++) {
        const variant v = {.how = (layout)(i % 2),
                           .dtype = SOTTO_F16,
                           .matrix = true,
                           .act = i % 3,
                           .bias = i % 4 > 0,
                           .dim = {3 + i * 11 % 120, 1 + i * 7 % 60, 1 + (i % 7 == 0), 1},
                           .n = 1 + i * 3 % 70,
                           .extra = 1 + i % 2,
                           .compute = SOTTO_COMPUTE_WORDS};
        scene_compare(b, ref, "conv_1d in words", build_conv, &v);
    }
}

static void test_products(void **state)
{
    (void)state;
    on_every_device(products_on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
