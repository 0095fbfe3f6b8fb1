/* test_opencl_small.c: a few small odd shapes for each kernel, on every OpenCL device as on the reference. That is all that
 * a checker of races has time for (opencl_races.sh); test_conformance.c has the rest. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/every_device_support.h"
#include "backends/gpu/api/opencl/opencl.h"
#include "backends/scene_support.h"

static void finish(scene *s, sotto_tensor *y)
{
    s->node = s->y = y;
}

static void build_linear(scene *s, const variant *v)
{
    sotto_tensor *x = scene_floats(s, v->how, v->dim), *w = scene_weights(s, v->dtype, v->dim[0], v->n, v->matrix);
    sotto_tensor *b = v->bias ? scene_weights(s, SOTTO_F32, v->n, 1, false) : NULL;
    finish(s, sotto_linear(s->g, x, w, b, (sotto_activation)v->act, NULL));
}

static void build_matmul(scene *s, const variant *v)
{
    const int64_t dim[4] = {v->dim[0], v->n, v->dim[2], v->dim[3]};
    sotto_tensor *a = scene_floats(s, v->how, v->dim);
    finish(s, sotto_matmul(s->g, a, scene_floats(s, v->how, dim)));
}

static void build_conv_1d(scene *s, const variant *v)
{
    sotto_tensor *x = scene_floats(s, v->how, v->dim), *w = scene_weights(s, v->dtype, 3 * v->dim[0], v->n, v->matrix);
    finish(s, sotto_conv_1d(s->g, x, w, NULL, 3, 2, 1, SOTTO_ACT_GELU, NULL));
}

static void build_conv_2d(scene *s, const variant *v)
{
    static const sotto_window window = {{3, 2}, {2, 1}, {1, 1}, {1, 1}};
    sotto_tensor *x = scene_floats(s, v->how, v->dim), *w = scene_weights(s, v->dtype, 6 * v->dim[0], v->n, v->matrix);
    finish(s, sotto_conv_2d(s->g, x, w, NULL, &window, SOTTO_ACT_NONE));
}

/* n: keys; extra: heads of k and v, negative: causal */
static void build_attention(scene *s, const variant *v)
{
    const int64_t k_dim[4] = {v->dim[0], labs(v->extra), v->n, v->dim[3]};
    sotto_tensor *q = scene_floats(s, v->how, v->dim), *k = scene_floats(s, v->how, k_dim);
    finish(s, sotto_attention(s->g, q, k, scene_floats(s, SLICED, k_dim), 0.3f, v->extra < 0));
}

/* n: cells, of which row r sees the first r * 7 + 1 */
static void build_cells(scene *s, const variant *v)
{
    const int64_t n_row = v->dim[2], view[3] = {v->dim[0], v->extra, v->n};
    int32_t *base = calloc((size_t)n_row, sizeof *base), *n_kv = calloc((size_t)n_row, sizeof *n_kv);
    for (int64_t r = 0; r < n_row; r++)
        n_kv[r] = (int32_t)(r * 7 + 1 < v->n ? r * 7 + 1 : v->n);
    sotto_tensor *q = scene_floats(s, v->how, v->dim), *cache[2];
    for (int i = 0; i < 2; i++)
        cache[i] = sotto_view_reshape(s->g, scene_cache(s, v->dtype, v->dim[0] * v->extra, v->n), 3, view);
    sotto_tensor *b = scene_given(s, SOTTO_I32, 1, &n_row, base), *n = scene_given(s, SOTTO_I32, 1, &n_row, n_kv);
    finish(s, sotto_cache_attention(s->g, q, cache[0], cache[1], NULL, b, n, 0.5f, 0));
    free(base);
    free(n_kv);
}

/* extra: which */
static void build_row(scene *s, const variant *v)
{
    sotto_tensor *x = scene_floats(s, v->how, v->dim);
    sotto_tensor *w = scene_weights(s, SOTTO_F32, v->dim[0], 1, false);
    switch (v->extra) {
    case 0:
        finish(s, sotto_layer_norm(s->g, x, w, scene_weights(s, SOTTO_F32, v->dim[0], 1, false), 1e-5f));
        break;
    case 1:
        finish(s, sotto_rms_norm(s->g, x, w, 1e-5f));
        break;
    case 2:
        finish(s, sotto_softmax(s->g, x, NULL, 2.0f));
        break;
    case 3:
        finish(s, sotto_argmax(s->g, x));
        break;
    default:
        finish(s, sotto_top_k(s->g, x, 3));
    }
}

static void build_get_rows(scene *s, const variant *v)
{
    const int32_t rows[5] = {3, 0, 3, 1, 2};
    const int64_t n = 5;
    sotto_tensor *table = scene_weights(s, v->dtype, v->dim[0], v->n, v->matrix);
    finish(s, sotto_get_rows(s->g, table, scene_given(s, SOTTO_I32, 1, &n, rows)));
}

static void build_set_rows(scene *s, const variant *v)
{
    const int32_t rows[4] = {3, 0, 4, 1};
    const int64_t n = 4, dim[4] = {v->dim[0], n, 1, 1};
    sotto_tensor *table = scene_cache(s, v->dtype, v->dim[0], v->n);
    s->node = sotto_set_rows(s->g, table, scene_given(s, SOTTO_I32, 1, &n, rows), scene_floats(s, v->how, dim));
    s->y = sotto_copy(s->g, s->node, v->dtype);
}

static void build_concat(scene *s, const variant *v)
{
    sotto_tensor *a = scene_floats(s, v->how, v->dim);
    finish(s, sotto_concat(s->g, a, scene_floats(s, v->how, v->dim), v->extra));
}

/* ---- cases ---- */

static sotto_backend *ref;

static void run_all(sotto_backend *b)
{
    static const sotto_dtype types[] = {SOTTO_F32,  SOTTO_F16,  SOTTO_BF16, SOTTO_I8,  SOTTO_Q8_0,
                                        SOTTO_Q4_0, SOTTO_Q4_1, SOTTO_Q5_0, SOTTO_Q5_1};
    static const int rows[] = {1, 17, 3, 7}; /* each has a kernel of its own */
    for (int t = 0; t < COUNT(types); t++)
        for (int i = 0; i < (t == 0 ? COUNT(rows) : 1 + t % 2); i++) {
            const variant v = {.how = (layout)(i % 2),
                               .dtype = types[t],
                               .matrix = true,
                               .act = i,
                               .bias = i % 2,
                               .dim = {sotto_dtype_block(types[t]) > 1 ? 64 : 45, rows[i], 1, 1},
                               .n = 21};
            scene_compare(b, ref, "linear", build_linear, &v);
        }
    static const variant one_each[] = {{.dim = {19, 5, 2, 1}, .n = 7}, {.how = PERMUTED, .dim = {33, 18, 1, 2}, .n = 9}};
    for (int i = 0; i < COUNT(one_each); i++)
        scene_compare(b, ref, "matmul", build_matmul, &one_each[i]);
    const variant conv = {.dtype = SOTTO_F16, .matrix = true, .dim = {5, 11, 1, 1}, .n = 9};
    scene_compare(b, ref, "conv_1d", build_conv_1d, &conv);
    const variant conv2 = {.dtype = SOTTO_F32, .matrix = true, .dim = {3, 7, 6, 1}, .n = 5};
    scene_compare(b, ref, "conv_2d", build_conv_2d, &conv2);
    static const variant attentions[] = {{.dim = {16, 2, 5, 1}, .n = 9, .extra = 2},
                                         {.how = SLICED, .dim = {24, 2, 19, 1}, .n = 37, .extra = -1}};
    for (int i = 0; i < COUNT(attentions); i++)
        scene_compare(b, ref, "attention", build_attention, &attentions[i]);
    static const variant cells[] = {{.dtype = SOTTO_F16, .dim = {16, 2, 3, 1}, .n = 20, .extra = 1},
                                    {.dtype = SOTTO_F32, .dim = {40, 1, 1, 1}, .n = 600, .extra = 1}};
    for (int i = 0; i < COUNT(cells); i++)
        scene_compare(b, ref, "cache_attention", build_cells, &cells[i]);
    for (int i = 0; i < 5; i++) {
        const variant v = {.how = (layout)(i % 3), .dim = {i % 2 ? 261 : 37, 2, 2, 1}, .extra = i};
        scene_compare(b, ref, "row", build_row, &v);
    }
    for (int t = 0; t < 5; t++) {
        const variant v = {.dtype = types[t], .matrix = t % 2 || t > 2, .dim = {32, 5, 1, 1}, .n = 6, .extra = t % 2};
        scene_compare(b, ref, "get_rows", build_get_rows, &v);
        if (t < 3)
            scene_compare(b, ref, "set_rows", build_set_rows, &v);
        scene_compare(b, ref, "concat", build_concat, &v);
    }
}

static void run_device(int index)
{
    sotto_backend *b = open_or_null(st_opencl_device_at(index, NULL)->caps.id, NULL, 1);
    assert_non_null(b);
    print_message("%s, subgroups of %d\n", sotto_backend_description(b),
                  st_opencl_device_at(index, NULL)->caps.subgroup);
    run_all(b);
    sotto_backend_free(b);
}

static void test_small(void **state)
{
    (void)state;
    ref = open_or_null("reference", NULL, 1);
    for (int i = 0; i < st_opencl_count(); i++) {
        const int lanes = st_opencl_device_at(i, NULL)->caps.subgroup;
        run_device(i);
        for (int size = 8; size <= 64; size *= 2)
            if (size != lanes && st_opencl_set_subgroup(i, size, true))
                run_device(i);
    }
    sotto_backend_free(ref);
}

int main(void)
{
    if (st_opencl_count() == 0) {
        printf("no OpenCL device here\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_small)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    scene_forget();
    return failed;
}
