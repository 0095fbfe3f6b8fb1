/* test_top_rope_window.c: top_k, block_sums, rope, im2col and conv_2d on every device as on the reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backends/every_device_support.h"
#include "backends/scene_support.h"
#include "tensor/tensor_impl.h"

static void finish(scene *s, sotto_tensor *y)
{
    s->node = s->y = y;
}

/* n: k */
static void build_top_k(scene *s, const variant *v)
{
    finish(s, sotto_top_k(s->g, scene_floats(s, v->how, v->dim), (int)v->n));
}

static void build_block_sums(scene *s, const variant *v)
{
    finish(s, sotto_block_sums(s->g, scene_floats(s, v->how, v->dim)));
}

/* dim: d, heads, rows, batch; n: rotated elements; extra: bit 0 halves, 1 factors, 2 positions for each batch, 3 scaled, 4 longer */
static void build_rope(scene *s, const variant *v)
{
    const int64_t place[2] = {v->dim[2], v->extra & 4 ? v->dim[3] : 1}, pairs = v->n / 2;
    int32_t *positions = malloc((size_t)(place[0] * place[1]) * sizeof *positions + 1);
    for (int64_t i = 0; i < place[0] * place[1]; i++)
        positions[i] = i % 5 == 3 ? 0 : (int32_t)(scene_random(s) % 3000) - 100;
    float *factors = malloc((size_t)pairs * sizeof *factors + 1);
    for (int64_t i = 0; i < pairs; i++)
        factors[i] = 1.0f + (float)(scene_random(s) % 64) / 8;
    sotto_tensor *x = scene_floats(s, v->how, v->dim), *p = scene_given(s, SOTTO_I32, 2, place, positions);
    sotto_tensor *f = v->extra & 2 ? scene_given(s, SOTTO_F32, 1, &pairs, factors) : NULL;
    free(positions), free(factors);
    finish(s, sotto_rope(s->g, x, p, f, (sotto_rope_pairs)(v->extra & 1), (int)v->n, v->extra & 1 ? 500000 : 10000,
                         v->extra & 8 ? 0.25f : 1, v->extra & 16 ? 1.25f : 1));
}

static const sotto_window windows[] = {
    {{1, 1}, {1, 1}, {0, 0}, {1, 1}}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {{2, 3}, {3, 1}, {0, 2}, {1, 2}}, {{3, 1}, {1, 1}, {2, 0}, {2, 1}}, {{5, 4}, {2, 3}, {3, 1}, {1, 1}},
};
enum { N_WINDOWS = sizeof windows / sizeof *windows };

/* extra: which window */
static void build_im2col(scene *s, const variant *v)
{
    finish(s, sotto_im2col(s->g, scene_floats(s, v->how, v->dim), &windows[v->extra]));
}

/* extra: which window; n: channels of the result */
static void build_conv_2d(scene *s, const variant *v)
{
    const sotto_window *window = &windows[v->extra];
    const int64_t k = v->dim[0] * window->kernel[0] * window->kernel[1];
    sotto_tensor *x = scene_floats(s, v->how, v->dim), *w = scene_weights(s, v->dtype, k, v->n, v->matrix);
    sotto_tensor *b = v->bias ? scene_weights(s, SOTTO_F32, v->n, 1, false) : NULL;
    finish(s, sotto_conv_2d(s->g, x, w, b, window, (sotto_activation)v->act));
}

static void tops_on(sotto_backend *b, sotto_backend *ref)
{
    static const int64_t dims[][4] = {{1, 1, 1, 1},   {7, 3, 1, 1},    {64, 2, 3, 1},  {255, 1, 1, 1},
                                      {257, 2, 2, 1}, {2100, 3, 1, 1}, {513, 0, 2, 1}, {40, 5, 2, 1}};
    static const int64_t ks[] = {1, 5, 40, 100};
    for (int i = 0; i < COUNT(dims); i++)
        for (int j = 0; j < COUNT(ks); j++)
            for (int how = 0; how < TRANSPOSED; how++) {
                const variant v = {.how = (layout)how,
                                   .dim = {dims[i][0], dims[i][1], dims[i][2], dims[i][3]},
                                   .n = ks[j] < dims[i][0] ? ks[j] : dims[i][0],
                                   .coarse = true}; /* many are equal */
                scene_compare(b, ref, "top_k", build_top_k, &v);
            }
}

static void sums_on(sotto_backend *b, sotto_backend *ref)
{
    static const int64_t dims[][4] = {{1, 1, 1, 1},   {63, 3, 1, 1},  {64, 2, 3, 1},   {65, 1, 1, 1},   {257, 2, 2, 1},
                                      {319, 3, 1, 1}, {513, 0, 2, 1}, {8192, 1, 1, 1}, {17001, 2, 1, 1}};
    for (int i = 0; i < COUNT(dims); i++)
        for (int how = 0; how < TRANSPOSED; how++) {
            const variant v = {.how = (layout)how, .dim = {dims[i][0], dims[i][1], dims[i][2], dims[i][3]}};
            scene_compare(b, ref, "block_sums", build_block_sums, &v);
        }
}

static void ropes_on(sotto_backend *b, sotto_backend *ref)
{
    static const int64_t widths[] = {64, 128, 2, 80, 96, 33}, rotated[] = {64, 128, 2, 32, 0, 32};
    static const int64_t dims[][3] = {{1, 1, 1}, {4, 7, 1}, {3, 5, 2}, {32, 1, 1}, {2, 0, 1}, {2, 40, 3}};
    for (int w = 0; w < COUNT(widths); w++)
        for (int i = 0; i < COUNT(dims); i++)
            for (int extra = 0; extra < 32; extra++) {
                const variant v = {.how = (layout)(extra % 3 == i % 3 ? PLAIN : 1 + i % 2),
                                   .dim = {widths[w], dims[i][0], dims[i][1], dims[i][2]},
                                   .n = rotated[w],
                                   .extra = extra};
                scene_compare(b, ref, "rope", build_rope, &v);
            }
}

static void windows_on(sotto_backend *b, sotto_backend *ref)
{
    static const int64_t dims[][4] = {{1, 7, 9, 1},   {3, 12, 6, 2}, {32, 9, 5, 1},
                                      {8, 31, 17, 1}, {64, 5, 6, 2}, {5, 6, 6, 0}};
    static const int64_t columns[] = {1, 33, 64, 7, 70};
    for (int i = 0; i < COUNT(dims); i++)
        for (int e = 0; e < N_WINDOWS; e++) {
            variant v = {.how = (layout)((i + e) % TRANSPOSED),
                         .dim = {dims[i][0], dims[i][1], dims[i][2], dims[i][3]},
                         .n = columns[(i * 2 + e) % COUNT(columns)],
                         .bias = e % 2,
                         .matrix = e % 3 > 0,
                         .act = (i + e) % 4,
                         .extra = e};
            scene_compare(b, ref, "im2col", build_im2col, &v);
            scene_compare(b, ref, "conv_2d", build_conv_2d, &v);
            for (int t = 1; t < N_WEIGHT_TYPES; t++) {
                v.dtype = weight_types[t];
                v.compute = t % 2 ? SOTTO_COMPUTE_F32 : SOTTO_COMPUTE_BF16;
                if (v.dim[0] * windows[e].kernel[0] * windows[e].kernel[1] % sotto_dtype_block(v.dtype) == 0)
                    scene_compare(b, ref, "conv_2d", build_conv_2d, &v);
            }
        }
}

static void test_tops(void **state)
{
    (void)state;
    on_every_device(tops_on);
}

static void test_sums(void **state)
{
    (void)state;
    on_every_device(sums_on);
}

static void test_ropes(void **state)
{
    (void)state;
    on_every_device(ropes_on);
}

static void test_windows(void **state)
{
    (void)state;
    on_every_device(windows_on);
}

int main(int argc, char **argv)
{
    if (argc > 1) /* a pattern of test names */
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tops),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_ropes),
        cmocka_unit_test(test_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
