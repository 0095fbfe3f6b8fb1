/* test_conformance.c: every device, and every level of the CPU, computes every operation as the reference does: sources
 * strided, permuted, broadcast and empty, ragged sizes, every type of weights. Bounds come from the inputs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/every_device_support.h"
#include "backends/scene_support.h"
#include "base/thread.h"
#include "sotto/quant.h"
#include "tensor/tensor_impl.h"

static void finish(scene *s, sotto_tensor *y)
{
    s->node = s->y = y;
}

/* ---- builders: one operation each ---- */

static void build_linear(scene *s, const variant *v)
{
    const int64_t y_dim[4] = {v->n, v->dim[1], v->dim[2], v->dim[3]};
    sotto_tensor *x = scene_floats(s, v->how, v->dim), *w = scene_weights(s, v->dtype, v->dim[0], v->n, v->matrix);
    sotto_tensor *b = v->bias ? scene_weights(s, SOTTO_F32, v->n, 1, false) : NULL;
    sotto_tensor *r = v->residual ? scene_floats(s, v->extra ? SLICED : PLAIN, y_dim) : NULL;
    if (v->residual && !v->extra) /* its memory may become the result's */
        r = sotto_scale(s->g, r, 2, 0);
    finish(s, sotto_linear(s->g, x, w, b, (sotto_activation)v->act, r));
}

/* extra: step of the frames */
static void build_frames(scene *s, const variant *v)
{
    const int64_t length = v->dim[0] + (v->dim[1] - 1) * v->extra;
    const int64_t dim[4] = {length, 1, 1, 1};
    sotto_tensor *x = sotto_view_frames(s->g, scene_floats(s, PLAIN, dim), v->dim[1], v->extra, v->dim[0]);
    finish(s, sotto_linear(s->g, x, scene_weights(s, v->dtype, v->dim[0], v->n, v->matrix), NULL, SOTTO_ACT_NONE, NULL));
}

/* extra: stride; kernel 3, padding 1 */
static void build_conv(scene *s, const variant *v)
{
    sotto_tensor *x = scene_floats(s, v->how, v->dim), *w = scene_weights(s, v->dtype, 3 * v->dim[0], v->n, v->matrix);
    sotto_tensor *b = v->bias ? scene_weights(s, SOTTO_F32, v->n, 1, false) : NULL, *r = NULL;
    if (v->residual) {
        const int64_t dim[4] = {v->n, (v->dim[1] - 1) / v->extra + 1, v->dim[2], v->dim[3]};
        r = scene_floats(s, PLAIN, dim);
    }
    finish(s, sotto_conv_1d(s->g, x, w, b, 3, v->extra, 1, (sotto_activation)v->act, r));
}

/* extra: bit 0, 1: b has one matrix along dimension 2, 3 */
static void build_matmul(scene *s, const variant *v)
{
    const int64_t dim[4] = {v->dim[0], v->n, v->extra & 1 ? 1 : v->dim[2], v->extra & 2 ? 1 : v->dim[3]};
    sotto_tensor *a = scene_floats(s, v->how, v->dim);
    finish(s, sotto_matmul(s->g, a, scene_floats(s, v->how, dim)));
}

static void build_layer_norm(scene *s, const variant *v)
{
    sotto_tensor *x = scene_floats(s, v->how, v->dim);
    sotto_tensor *w = scene_weights(s, SOTTO_F32, v->dim[0], 1, false),
                 *b = scene_weights(s, SOTTO_F32, v->dim[0], 1, false);
    finish(s, sotto_layer_norm(s->g, x, w, b, 1e-5f));
}

static void build_rms_norm(scene *s, const variant *v)
{
    sotto_tensor *x = scene_floats(s, v->how, v->dim);
    finish(s, sotto_rms_norm(s->g, x, scene_weights(s, SOTTO_F32, v->dim[0], 1, false), 1e-6f));
}

/* extra: 0 no mask, 1 a whole one, 2 one that broadcasts; masks hide about half, and the first row altogether */
static void build_softmax(scene *s, const variant *v)
{
    sotto_tensor *x = scene_floats(s, v->how, v->dim), *mask = NULL;
    if (v->extra) {
        const int64_t dim[4] = {v->dim[0], v->dim[1], v->extra == 1 ? v->dim[2] : 1, v->extra == 1 ? v->dim[3] : 1};
        const int64_t n = dim[0] * dim[1] * dim[2] * dim[3];
        float *m = malloc((size_t)n * sizeof *m + 1);
        for (int64_t i = 0; i < n; i++)
            m[i] = i < dim[0] || scene_random(s) % 2 ? -INFINITY : scene_number(s);
        mask = scene_given(s, SOTTO_F32, 4, dim, m);
        free(m);
    }
    finish(s, sotto_softmax(s->g, x, mask, 3.0f));
}

/* dim: d, heads, n_q, batch; n: keys; extra: heads of k and v, negative: causal. SLICED takes all three from one fused product. */
static void build_attention(scene *s, const variant *v)
{
    const int64_t heads = abs(v->extra);
    const int64_t k_dim[4] = {v->dim[0], heads, v->n, v->dim[3]};
    sotto_tensor *q = scene_floats(s, v->how, v->dim), *k = scene_floats(s, v->how, k_dim);
    sotto_tensor *value = scene_floats(s, v->how == PERMUTED ? SLICED : v->how, k_dim);
    finish(s, sotto_attention(s->g, q, k, value, 1.0f / sqrtf((float)v->dim[0]), v->extra < 0));
}

/* dim: d, heads, rows; n: cells; extra: heads of k and v, negative: with lists. Rows see any of them,
 * or with `bias`, as those of a prompt, one more than the row before. Cells that no row may see are NaN. */
static void build_cells(scene *s, const variant *v)
{
    const int64_t heads = abs(v->extra), d = v->dim[0], n_row = v->dim[2];
    const int64_t view[3] = {d, heads, v->n}, n_list = 3, max_kv = v->n + 2;
    int32_t *base = calloc((size_t)n_row + 1, sizeof *base), *n_kv = calloc((size_t)n_row + 1, sizeof *n_kv);
    int32_t *index = calloc((size_t)(n_list * max_kv), sizeof *index);
    bool *seen = calloc((size_t)v->n + 1, sizeof *seen);
    for (int64_t i = 0; i < n_list * max_kv; i++)
        index[i] = (int32_t)(scene_random(s) % (uint32_t)(v->n + 2)) - 1; /* also just outside */
    for (int64_t r = 0; r < n_row; r++) {
        const int64_t special[] = {0, 1, v->n, 31, 32, 33, -1, v->n + 9};
        n_kv[r] = (int32_t)special[scene_random(s) % 8];
        base[r] = (int32_t)(scene_random(s) % 5) - 1;
        if (v->bias) {
            n_kv[r] = (int32_t)(r < v->n - 1 ? r + 1 : v->n - 1);
            base[r] = 1;
        }
        const int64_t first = base[r] < 0 ? 0 : base[r], list = first >= n_list ? n_list - 1 : first;
        const int64_t most = v->extra < 0 ? max_kv : v->n - first, seen_to = n_kv[r] < most ? n_kv[r] : most;
        for (int64_t j = v->window && seen_to > v->window ? seen_to - v->window : 0;
             j < n_kv[r] && j < (v->extra < 0 ? max_kv : v->n - first); j++) {
            const int64_t c = v->extra < 0 ? index[list * max_kv + j] : first + j;
            seen[c < 0 ? 0 : c >= v->n ? v->n - 1 : c] = true;
        }
    }
    sotto_tensor *q = scene_floats(s, v->how, v->dim);
    sotto_tensor *cache[2];
    for (int i = 0; i < 2; i++) {
        sotto_tensor *t = scene_cache(s, v->dtype, d * heads, v->n);
        for (int64_t c = 0; c < v->n; c++) /* all bits set is a NaN in every float type */
            if (!seen[c]) {
                const size_t row = s->set[s->n_set - 1].bytes / (size_t)v->n;
                memset((char *)s->set[s->n_set - 1].data + (size_t)c * row, 0xff, row);
            }
        cache[i] = sotto_view_reshape(s->g, t, 3, view);
    }
    const int64_t list_dim[2] = {max_kv, n_list};
    sotto_tensor *list = v->extra < 0 ? scene_given(s, SOTTO_I32, 2, list_dim, index) : NULL;
    sotto_tensor *b = scene_given(s, SOTTO_I32, 1, &n_row, base), *n = scene_given(s, SOTTO_I32, 1, &n_row, n_kv);
    finish(s, sotto_cache_attention(s->g, q, cache[0], cache[1], list, b, n, 0.5f, v->window));
    free(base), free(n_kv), free(index), free(seen);
}

/* n: rows of the table; dim[1]: rows to get, some outside */
static sotto_tensor *row_numbers(scene *s, int64_t n, int64_t rows)
{
    int32_t *list = malloc((size_t)n * sizeof *list + 1);
    for (int64_t i = 0; i < n; i++)
        list[i] = (int32_t)(scene_random(s) % (uint32_t)(rows + 4)) - 2;
    sotto_tensor *t = scene_given(s, SOTTO_I32, 1, &n, list);
    free(list);
    return t;
}

static void build_get_rows(scene *s, const variant *v)
{
    sotto_tensor *table = scene_weights(s, v->dtype, v->dim[0], v->n, v->matrix);
    finish(s, sotto_get_rows(s->g, table, row_numbers(s, v->dim[1], v->n)));
}

static sotto_tensor *all_rows(scene *s, sotto_tensor *table, int64_t n)
{
    int32_t *all = calloc((size_t)n + 1, sizeof *all);
    for (int64_t i = 0; i < n; i++)
        all[i] = (int32_t)i;
    sotto_tensor *y = sotto_get_rows(s->g, table, scene_given(s, SOTTO_I32, 1, &n, all));
    free(all);
    return y;
}

/* Compares the table, read by a copy that must come after the write. */
static void build_set_rows(scene *s, const variant *v)
{
    const int64_t dim[4] = {v->dim[0], v->dim[1], 1, 1};
    sotto_tensor *table = scene_cache(s, v->dtype, v->dim[0], v->n);
    sotto_tensor *x = scene_floats(s, v->how, dim);
    s->node = sotto_set_rows(s->g, table, row_numbers(s, v->dim[1], v->n), x);
    if (sotto_dtype_block(v->dtype) == 1) {
        s->y = sotto_copy(s->g, s->node, v->dtype);
        return;
    }
    s->y = all_rows(s, s->node, v->n);
}

/* extra: type of the result */
static void build_copy(scene *s, const variant *v)
{
    finish(s, sotto_copy(s->g, sotto_copy(s->g, scene_floats(s, v->how, v->dim), v->dtype), (sotto_dtype)v->extra));
}

static void build_copy_strided(scene *s, const variant *v)
{
    finish(s, sotto_copy(s->g, scene_floats(s, v->how, v->dim), v->dtype));
}

/* Into some columns of a cache, the rest staying as it was. */
static void build_copy_into(scene *s, const variant *v)
{
    const int64_t dim[4] = {v->dim[0], v->dim[1], 1, 1};
    sotto_tensor *cache = scene_cache(s, v->dtype, v->dim[0] + 5, v->dim[1]);
    s->node = sotto_copy_into(s->g, sotto_view_slice(s->g, cache, 0, 3, v->dim[0]), scene_floats(s, v->how, dim));
    s->y = sotto_copy(s->g, cache, v->dtype);
}

/* [2, rows, n] into the middle of a cache of heads [2, rows + 5, n]; read again as rows. */
static void build_copy_into_blocks(scene *s, const variant *v)
{
    const int64_t n = v->dim[0], rows = v->dim[1], whole[3] = {n, rows + 5, 2}, dim[4] = {n, rows, 2, 1};
    sotto_tensor *cache = scene_cache(s, v->dtype, n, 2 * (rows + 5));
    sotto_tensor *heads = sotto_view_reshape(s->g, cache, 3, whole);
    s->node = sotto_copy_into(s->g, sotto_view_slice(s->g, heads, 1, 3, rows), scene_floats(s, v->how, dim));
    s->y = all_rows(s, cache, 2 * (rows + 5));
}

/* extra: axis */
static void build_concat(scene *s, const variant *v)
{
    int64_t dim[4];
    memcpy(dim, v->dim, sizeof dim);
    dim[v->extra] = v->n;
    sotto_tensor *a = scene_floats(s, v->how, v->dim);
    finish(s, sotto_concat(s->g, a, scene_floats(s, v->how, dim), v->extra));
}

/* extra: 0 add, 1 mul, then in steps of 2 a mask of the dimensions along which b broadcasts */
static void build_pair(scene *s, const variant *v)
{
    int64_t dim[4];
    for (int a = 0; a < 4; a++)
        dim[a] = v->extra >> (a + 1) & 1 ? 1 : v->dim[a];
    sotto_tensor *x = scene_floats(s, v->how, v->dim), *y = scene_floats(s, v->how, dim);
    if (v->how == PLAIN) /* memory that the result may take over */
        x = sotto_scale(s->g, x, 0.5f, 0);
    finish(s, v->extra & 1 ? sotto_mul(s->g, x, y) : sotto_add(s->g, x, y));
}

/* extra: bit 0: both are columns of one product, bit 1: the result may take the first one's memory */
static void build_glu(scene *s, const variant *v)
{
    const int64_t both[4] = {2 * v->dim[0], v->dim[1], v->dim[2], v->dim[3]};
    sotto_tensor *x = scene_floats(s, v->how, v->extra & 1 ? both : v->dim), *y = x;
    if (v->extra & 1) {
        x = sotto_view_slice(s->g, y, 0, 0, v->dim[0]);
        y = sotto_view_slice(s->g, y, 0, v->dim[0], v->dim[0]);
    } else {
        y = scene_floats(s, v->how, v->dim);
    }
    if (v->extra & 2)
        x = sotto_scale(s->g, x, 0.5f, 0);
    finish(s, sotto_glu(s->g, x, y, (sotto_activation)v->act));
}

static sotto_tensor *scale(sotto_graph *g, sotto_tensor *x)
{
    return sotto_scale(g, x, -1.5f, 0.25f);
}

static sotto_tensor *log10_floor(sotto_graph *g, sotto_tensor *x)
{
    return sotto_log10(g, x, 1e-10f);
}

static sotto_tensor *(*const unary[])(sotto_graph *, sotto_tensor *) = {
    scale,      sotto_gelu,  sotto_silu, sotto_relu,  sotto_sigmoid,
    sotto_tanh, log10_floor, sotto_sqrt, sotto_power, sotto_argmax,
};
enum { N_UNARY = sizeof unary / sizeof *unary };

/* extra: which */
static void build_unary(scene *s, const variant *v)
{
    finish(s, unary[v->extra](s->g, scene_floats(s, v->how, v->dim)));
}

/* n: which rows of the mask hold only -infinity: bit 0 the first, 1 one in the middle, 2 the last; the others show one key,
 * whose place moves, or all but a few */
static void build_masked_rows(scene *s, const variant *v)
{
    const int64_t n = v->dim[0], rows = v->dim[1];
    float *m = malloc((size_t)(n * rows) * sizeof *m + 1);
    for (int64_t r = 0; r < rows; r++) {
        const bool none = (r == 0 && (v->n & 1)) || (r == rows / 2 && (v->n & 2)) || (r == rows - 1 && (v->n & 4));
        for (int64_t i = 0; i < n; i++)
            m[r * n + i] = !none && (r % 2 ? i == (r * 37 + n - 1) % n : i % 5 != r % 5) ? scene_number(s) : -INFINITY;
    }
    const int64_t dim[4] = {n, rows, 1, 1};
    finish(s, sotto_softmax(s->g, scene_floats(s, v->how, v->dim), scene_given(s, SOTTO_F32, 4, dim, m), 0.125f));
    free(m);
}

/* extra: which operation; on rows of one element, of which there are more than 16 bits count */
static void build_many_rows(scene *s, const variant *v)
{
    const int64_t rows = v->dim[1], one[4] = {1, 1, 1, 1};
    sotto_tensor *x = scene_floats(s, PLAIN, v->dim), *w = scene_weights(s, SOTTO_F32, 1, 1, false);
    sotto_tensor *y = NULL;
    switch (v->extra) {
    case 0:
        y = sotto_layer_norm(s->g, x, w, w, 1e-5f);
        break;
    case 1:
        y = sotto_rms_norm(s->g, x, w, 1e-5f);
        break;
    case 2:
        y = sotto_softmax(s->g, x, scene_floats(s, PLAIN, one), 1);
        break;
    case 3:
        y = sotto_argmax(s->g, x);
        break;
    case 4:
        y = sotto_get_rows(s->g, sotto_view_reshape(s->g, x, 2, v->dim), row_numbers(s, rows, rows));
        break;
    case 5:
        y = sotto_add(s->g, x, scene_floats(s, PLAIN, one));
        break;
    case 6:
        y = sotto_copy(s->g, x, SOTTO_F16);
        break;
    case 7:
        y = sotto_linear(s->g, x, w, NULL, SOTTO_ACT_NONE, NULL);
        break;
    case 8:
        y = sotto_conv_1d(s->g, x, scene_weights(s, SOTTO_F32, 3, 1, true), NULL, 3, 1, 1, SOTTO_ACT_GELU, NULL);
        break;
    case 9:
        y = sotto_im2col(s->g, x, &(sotto_window){{2, 1}, {1, 1}, {1, 0}, {1, 1}});
        break;
    case 10:
        y = sotto_conv_2d(s->g, x, scene_weights(s, SOTTO_F32, 2, 1, true), NULL,
                          &(sotto_window){{2, 1}, {1, 1}, {0, 0}, {1, 1}}, SOTTO_ACT_NONE);
        break;
    default:
        y = sotto_top_k(s->g, x, 1);
    }
    finish(s, y);
}
enum { N_MANY_ROWS = 12 };

/* ---- devices ---- */

static const sotto_dtype float_types[] = {SOTTO_F32, SOTTO_F16, SOTTO_BF16};

static void products_on(sotto_backend *b, sotto_backend *ref)
{
    static const int64_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 31, 65, 130, 0};
    static const int64_t columns[] = {1, 7, 31, 32, 33, 64, 95, 130};
    static const int64_t depths[] = {32, 64, 96, 256, 1, 3, 31, 33, 77};
    for (int t = 0; t < N_WEIGHT_TYPES; t++)
        for (int i = 0; i < 28; i++) {
            const bool blocks = sotto_dtype_block(weight_types[t]) > 1;
            const variant v = {.how = (layout)(i % 3),
                               .dtype = weight_types[t],
                               .matrix = i % 4 != 3,
                               .act = i % 5,
                               .bias = i % 2,
                               .residual = i % 3 > 0,
                               .extra = i % 5 == 0,
                               .dim = {depths[(i * 5 + t) % (blocks ? 4 : COUNT(depths))], rows[i % COUNT(rows)],
                                       1 + i % 2, 1 + i / 20},
                               .n = columns[(i * 3 + t) % COUNT(columns)]};
            scene_compare(b, ref, "linear", build_linear, &v);
        }
    for (int i = 0; i < 8; i++) {
        const variant v = {.dtype = SOTTO_F32, .matrix = i % 2, .dim = {40, rows[i], 1, 1}, .n = 33, .extra = 1 + i * 7};
        scene_compare(b, ref, "frames", build_frames, &v);
    }
    for (int i = 0; i < 24; i++) {
        const variant v = {.how = PLAIN,
                           .dim = {depths[i % COUNT(depths)], rows[i % 13], 1 + i % 3, 1 + i % 2},
                           .n = columns[i % COUNT(columns)],
                           .extra = i % 4};
        variant w = v;
        w.how = (layout)(i % 3);
        scene_compare(b, ref, "matmul", build_matmul, &v);
        scene_compare(b, ref, "matmul", build_matmul, &w);
    }
}

/* i8, whose sums are integers, and bf16, which a backend may multiply as such. */
static void narrow_products_on(sotto_backend *b, sotto_backend *ref)
{
    static const int64_t rows[] = {1, 2, 3, 4, 5, 8, 9, 13, 16, 17, 31, 33, 65, 130, 0};
    static const int64_t columns[] = {1, 7, 31, 32, 33, 64, 95, 130};
    static const int64_t depths[] = {32, 64, 96, 256, 1, 3, 31, 33, 63, 65, 77};
    for (int i = 0; i < 60; i++) {
        variant v = {.how = (layout)(i % 3),
                     .dtype = SOTTO_I8,
                     .matrix = true,
                     .act = i % 5,
                     .bias = i % 2,
                     .residual = i % 3 > 0,
                     .extra = i % 5 == 0,
                     .dim = {depths[i * 5 % COUNT(depths)], rows[i % COUNT(rows)], 1 + i % 2, 1 + i / 45},
                     .n = columns[i * 3 % COUNT(columns)],
                     .spread = i % 7 == 0 ? 40 : 1,
                     .compute = i % 2 ? SOTTO_COMPUTE_BF16 : SOTTO_COMPUTE_F32};
        scene_compare(b, ref, "linear", build_linear, &v);
        v.dtype = SOTTO_BF16;
        v.compute = SOTTO_COMPUTE_BF16;
        v.coarse = i % 4 != 3;
        v.matrix = i % 5 > 0;
        scene_compare(b, ref, "linear", build_linear, &v);
        v.dtype = weight_types[i % N_WEIGHT_TYPES]; /* others are computed in f32 all the same */
        v.dim[0] = (v.dim[0] + 31) / 32 * 32;
        scene_compare(b, ref, "linear", build_linear, &v);
    }
    for (int i = 0; i < 24; i++) {
        const variant v = {.dtype = SOTTO_BF16,
                           .matrix = true,
                           .act = i % 3,
                           .bias = i % 4 > 0,
                           .compute = SOTTO_COMPUTE_BF16,
                           .coarse = i % 4 != 3,
                           .dim = {3 + i * 11 % 80, 1 + i * 7 % 60, 1 + (i % 7 == 0), 1},
                           .n = 1 + i * 3 % 70,
                           .extra = 1 + i % 2};
        scene_compare(b, ref, "conv_1d", build_conv, &v);
    }
}

static void convolutions_on(sotto_backend *b, sotto_backend *ref)
{
    static const int64_t channels[] = {1, 3, 32, 80}, times[] = {1, 2, 3, 8, 50, 131};
    for (int i = 0; i < 48; i++) {
        variant v = {.dtype = float_types[i % 3],
                     .matrix = i % 2,
                     .act = i % 3,
                     .bias = i % 4 > 0,
                     .residual = i % 5 == 0,
                     .dim = {channels[i % 4], times[i / 4 % 6], 1 + (i % 7 == 0), 1},
                     .n = 1 + i * 3 % 70,
                     .extra = 1 + i % 2};
        scene_compare(b, ref, "conv_1d", build_conv, &v);
        v.how = (layout)(i % 3);
        v.matrix = false;
        scene_compare(b, ref, "conv_1d", build_conv, &v);
    }
}

static void rows_on(sotto_backend *b, sotto_backend *ref)
{
    static const int64_t dims[][4] = {{1, 1, 1, 1},  {2, 3, 1, 1}, {16, 5, 2, 1}, {31, 4, 1, 3},   {384, 7, 1, 1},
                                      {77, 3, 2, 2}, {2, 0, 1, 1}, {0, 3, 1, 1},  {1026, 2, 1, 1}, {2100, 2, 1, 1}};
    for (int i = 0; i < COUNT(dims); i++)
        for (int how = 0; how < 3; how++) {
            variant v = {.how = (layout)how, .dim = {dims[i][0], dims[i][1], dims[i][2], dims[i][3]}, .spread = 4};
            if (dims[i][0] > 1 || dims[i][0] == 0) { /* of one number only rounding would be left */
                scene_compare(b, ref, "layer_norm", build_layer_norm, &v);
                scene_compare(b, ref, "rms_norm", build_rms_norm, &v);
            }
            for (v.extra = 0; v.extra < 3; v.extra++)
                scene_compare(b, ref, "softmax", build_softmax, &v);
        }
}

static void elements_on(sotto_backend *b, sotto_backend *ref)
{
    static const int64_t dims[][4] = {{1, 1, 1, 1},   {7, 3, 1, 1}, {16, 5, 2, 1}, {34, 4, 2, 3},
                                      {258, 2, 1, 1}, {6, 0, 2, 1}, {0, 3, 1, 1}};
    for (int i = 0; i < COUNT(dims); i++)
        for (int how = 0; how < N_LAYOUTS; how++) {
            variant v = {.how = (layout)how, .dim = {dims[i][0], dims[i][1], dims[i][2], dims[i][3]}, .spread = 8};
            for (v.extra = 0; v.extra < 32; v.extra++)
                scene_compare(b, ref, "pair", build_pair, &v);
            for (v.extra = 0; v.extra < N_UNARY; v.extra++) {
                const bool by_rows = unary[v.extra] == sotto_power || unary[v.extra] == sotto_argmax;
                if (by_rows &&
                    (how == TRANSPOSED || v.dim[0] == 0 || (unary[v.extra] == sotto_power && v.dim[0] % 2 != 0)))
                    continue;
                scene_compare(b, ref, "unary", build_unary, &v);
            }
            for (v.act = 0; how != TRANSPOSED && v.act <= SOTTO_ACT_GELU_TANH; v.act++)
                for (v.extra = 0; v.extra < 4; v.extra++)
                    scene_compare(b, ref, "glu", build_glu, &v);
            v.n = 5;
            for (v.extra = 0; v.extra < 4; v.extra++)
                scene_compare(b, ref, "concat", build_concat, &v);
        }
}

/* Rows of which nothing may be seen, at the edges of what kernels take at once. */
static void masked_rows_on(sotto_backend *b, sotto_backend *ref)
{
    static const int64_t widths[] = {1, 2, 31, 32, 33, 63, 64, 65, 255, 256, 257, 2047, 2048, 2049, 2400};
    for (int i = 0; i < COUNT(widths); i++)
        for (int which = 7 - i % 3; which >= 0; which -= 3) {
            const variant v = {.how = widths[i] > 1000 ? PLAIN : (layout)((i + which) % 3),
                               .dim = {widths[i], 5, 1 + which % 2, 1},
                               .n = which};
            scene_compare(b, ref, "softmax, masked rows", build_masked_rows, &v);
        }
    /* causal attention whose first queries come before all keys */
    static const int64_t queries[] = {1, 31, 32, 33, 64, 65, 100};
    for (int i = 0; i < COUNT(queries); i++)
        for (int j = i % 2; j < COUNT(queries); j += 2) {
            const variant v = {.dim = {i % 2 ? 64 : 40, 2, queries[i], 1}, .n = queries[j] - 1, .extra = -2};
            scene_compare(b, ref, "attention, masked rows", build_attention, &v);
        }
}

/* More rows than a dimension of a grid may have groups on some devices. Processors have no grids, and simulated ones are
 * slow: one of them shows, on kernels of few barriers, that the numbers are counted right. */
static void many_rows_on(sotto_backend *b, sotto_backend *ref)
{
    static const int64_t rows[] = {65537, 65534, 65535, 65536, 200000};
    const char *name = sotto_backend_description(b);
    const bool simulated = strncmp(name, "sim", 3) == 0, processor = strncmp(name, "cpu", 3) == 0;
    if (strncmp(name, "reference", 9) == 0 || (simulated && strncmp(name, "sim:0", 5) != 0))
        return;
    for (int i = 0; i < (simulated || processor ? 1 : COUNT(rows)); i++)
        for (int e = 0; e < N_MANY_ROWS; e++) {
            const variant v = {.dim = {1, rows[i], 1, 1}, .extra = e};
            if (!simulated || e == 0 || (e >= 4 && e <= 10)) /* the others have a group a row as well, which takes long */
                scene_compare(b, ref, "many rows", build_many_rows, &v);
        }
}

static void moves_on(sotto_backend *b, sotto_backend *ref)
{
    static const sotto_dtype plain[] = {SOTTO_F32, SOTTO_F16, SOTTO_BF16, SOTTO_I32};
    static const int64_t dims[][4] = {{1, 1, 1, 1},   {7, 3, 1, 1}, {33, 5, 2, 1},
                                      {130, 2, 1, 3}, {0, 3, 1, 1}, {5, 0, 1, 1}};
    for (int t = 0; t < N_WEIGHT_TYPES; t++)
        for (int i = 0; i < 6; i++) {
            const bool blocks = sotto_dtype_block(weight_types[t]) > 1;
            const variant v = {.dtype = weight_types[t],
                               .matrix = i % 2,
                               .dim = {blocks ? 32 * (1 + i) : 1 + 15 * i, i == 4 ? 0 : 1 + i * 3, 1, 1},
                               .n = 1 + i * 17};
            scene_compare(b, ref, "get_rows", build_get_rows, &v);
        }
    for (int i = 0; i < 6; i++) {
        const variant v = {.dtype = SOTTO_I8, .matrix = true, .dim = {1 + 31 * i, 1 + i * 3, 1, 1}, .n = 1 + i * 17};
        scene_compare(b, ref, "get_rows", build_get_rows, &v);
    }
    for (int i = 0; i < COUNT(dims); i++)
        for (int t = 0; t < 4; t++)
            for (int how = 0; how < N_LAYOUTS; how++) {
                variant v = {.how = (layout)how,
                             .dtype = plain[t],
                             .dim = {dims[i][0], dims[i][1], dims[i][2], dims[i][3]},
                             .spread = 300};
                scene_compare(b, ref, "copy, strided", build_copy_strided, &v);
                for (int to = 0; to < 4; to++) {
                    v.extra = (int)plain[to];
                    scene_compare(b, ref, "copy", build_copy, &v);
                }
                if (plain[t] == SOTTO_I32)
                    continue;
                scene_compare(b, ref, "copy_into", build_copy_into, &v);
                v.n = 1 + i;
                if (how != TRANSPOSED)
                    scene_compare(b, ref, "set_rows", build_set_rows, &v);
            }
}

/* Rows of blocks are written as they are packed for files. */
static void block_moves_on(sotto_backend *b, sotto_backend *ref)
{
    for (int i = 0; i < 12; i++) {
        const variant v = {.how = (layout)(i % 3),
                           .dtype = SOTTO_Q8_0,
                           .dim = {32 * (1 + i % 4), i % 6, 1, 1},
                           .n = 1 + i * 2,
                           .spread = i == 7 ? 1e-6f : 3};
        scene_compare(b, ref, "set_rows of blocks", build_set_rows, &v);
        scene_compare(b, ref, "copy_into blocks", build_copy_into_blocks, &v);
    }
}

static void attention_on(sotto_backend *b, sotto_backend *ref)
{
    static const int64_t widths[] = {64, 1, 8, 33, 80}, lengths[] = {1, 2, 31, 32, 33, 65, 130, 513};
    for (int i = 0; i < 48; i++) {
        const int64_t n_k = lengths[i % 8], n_q = i % 3 == 0 && n_k < 100 ? n_k : lengths[i / 3 % 6];
        variant v = {.how = (layout)(i % 3),
                     .dim = {widths[i % 5], 4, n_q, 1 + (i % 6 == 0)},
                     .n = n_k,
                     .extra = (i % 4 == 0   ? 4
                               : i % 4 == 1 ? 1
                                            : 2) *
                              (i % 2 ? -1 : 1)};
        scene_compare(b, ref, "attention", build_attention, &v);
        v.spread = 6; /* nearly all weight on one key */
        scene_compare(b, ref, "attention, sharp", build_attention, &v);
    }
    /* causal with more queries than keys: the first rows see nothing; no keys at all; large values */
    const variant edges[] = {{.dim = {16, 2, 40, 1}, .n = 7, .extra = -2},
                             {.dim = {16, 2, 3, 1}, .n = 0, .extra = 2},
                             {.dim = {16, 2, 0, 1}, .n = 5, .extra = 2},
                             {.dim = {8, 2, 33, 1}, .n = 1, .extra = 1},
                             {.dim = {8, 2, 5, 1}, .n = 33, .extra = 1, .spread = 240}};
    for (int i = 0; i < COUNT(edges); i++)
        scene_compare(b, ref, "attention, edge", build_attention, &edges[i]);
}

/* Heads that the kernels for bf16 take, and others. */
static void narrow_attention_on(sotto_backend *b, sotto_backend *ref)
{
    static const int64_t widths[] = {64, 32, 96, 80, 64}, lengths[] = {1, 2, 31, 32, 33, 65, 130, 513};
    for (int i = 0; i < 24; i++) {
        const int64_t n_q = lengths[i / 3 % 8];
        variant v = {.how = (layout)(i % 3),
                     .compute = i % 4 == 3 ? SOTTO_COMPUTE_WORDS : SOTTO_COMPUTE_BF16,
                     .dim = {widths[i % 5], 4, n_q > 65 ? 35 : n_q, 1 + (i % 6 == 0)},
                     .n = lengths[i % 8],
                     .extra = (i % 2 ? 4 : 2) * (i % 7 == 0 ? -1 : 1)};
        scene_compare(b, ref, "attention", build_attention, &v);
        v.spread = 6;
        scene_compare(b, ref, "attention, sharp", build_attention, &v);
    }
    for (int i = 0; i < 48; i++) {
        const variant v = {.how = (layout)(i % 3),
                           .dtype = i % 4 ? SOTTO_BF16 : float_types[i % 3],
                           .compute = SOTTO_COMPUTE_BF16,
                           .dim = {widths[i % 5], 4, 1 + i % 11, 1},
                           .n = lengths[1 + i / 3 % 7],
                           .extra = (i % 5 == 0 ? 1 : 4) * (i % 7 == 0 ? -1 : 1),
                           .spread = i % 13 == 0 ? 200 : 2};
        scene_compare(b, ref, "cache_attention", build_cells, &v);
    }
    const variant edges[] = {{.dim = {32, 2, 3, 1}, .n = 0, .extra = 2, .compute = SOTTO_COMPUTE_BF16},
                             {.dim = {32, 2, 0, 1}, .n = 5, .extra = 2, .compute = SOTTO_COMPUTE_BF16},
                             {.dim = {64, 2, 5, 1}, .n = 70, .extra = 1, .spread = 240, .compute = SOTTO_COMPUTE_BF16}};
    for (int i = 0; i < COUNT(edges); i++)
        scene_compare(b, ref, "attention, edge", build_attention, &edges[i]);
}

/* What a matrix of i8 becomes of rows of any type: the largest number of the row is 127 steps. NaN spoils its row only. */
static void i8_storage_on(sotto_backend *b, sotto_backend *ref)
{
    (void)ref;
    enum { K = 96, N = 70 };
    const int64_t dim[2] = {K, N};
    for (int t = 0; t < N_WEIGHT_TYPES; t++) {
        sotto_error err;
        sotto_store *store;
        assert_int_equal(sotto_store_create(b, SOTTO_USAGE_WEIGHTS, &store, &err), SOTTO_OK);
        sotto_tensor *w = sotto_store_add(store, "w", SOTTO_I8, 2, dim, true);
        assert_int_equal(sotto_store_allocate(store, &err), SOTTO_OK);
        const size_t row_bytes = sotto_dtype_row_bytes(weight_types[t], K);
        static float x[N * K], got[N * K];
        static _Alignas(float) char rows[N * K * 4];
        uint32_t random = (uint32_t)scene_seed() + (uint32_t)t;
        for (int i = 0; i < N * K; i++) {
            random = random * 1664525u + 1013904223u;
            x[i] = i / K == 3 ? 0 : ((float)(random >> 8) * 0x1p-23f - 1) * (i / K == 5 ? 1e-3f : 2);
        }
        for (int r = 0; r < N; r++) {
            assert_true(sotto_row_from_f32(weight_types[t], x + r * K, rows + (size_t)r * row_bytes, K));
            assert_true(sotto_row_to_f32(weight_types[t], rows + (size_t)r * row_bytes, x + r * K, K));
        }
        if (weight_types[t] == SOTTO_F32) {
            ((float *)(void *)rows)[7 * K + 3] = NAN;
            x[7 * K + 3] = NAN;
        }
        /* in three pieces, out of order */
        static const int piece[][2] = {{33, 20}, {0, 33}, {53, 17}};
        for (int i = 0; i < COUNT(piece); i++)
            assert_int_equal(sotto_store_upload(store, w, piece[i][0], piece[i][1], weight_types[t],
                                                rows + (size_t)piece[i][0] * row_bytes, &err),
                             SOTTO_OK);
        assert_int_equal(sotto_store_download(store, w, got, &err), SOTTO_OK);
        for (int r = 0; r < N; r++) {
            float max = 0;
            for (int i = 0; i < K; i++)
                max = fmaxf(max, fabsf(x[r * K + i]));
            for (int i = 0; i < K; i++) {
                const float want = max > 0 ? max / 127 * rintf(x[r * K + i] * (127 / max)) : 0;
                if (r == 7 && isnan(x[7 * K + 3]) ? !isnan(got[r * K + i]) : got[r * K + i] != want)
                    fail_msg("%s: %s as i8: [%d, %d] is %.9g, expected %.9g", sotto_backend_description(b),
                             sotto_dtype_name(weight_types[t]), r, i, got[r * K + i], want);
            }
        }
        sotto_store_free(store);
    }
}

static void cells_on(sotto_backend *b, sotto_backend *ref)
{
    static const int64_t widths[] = {64, 8, 33, 80}, cells[] = {1, 31, 32, 33, 40, 224, 600};
    for (int i = 0; i < 84; i++) {
        const variant v = {.how = (layout)(i % 3),
                           .dtype = float_types[i % 3],
                           .dim = {widths[i % 4], 4, 1 + i % 11, 1},
                           .n = cells[i % 7],
                           .extra = (i % 5 == 0 ? 1 : 4) * (i % 2 ? -1 : 1),
                           .spread = i % 13 == 0 ? 200 : 2};
        scene_compare(b, ref, "cache_attention", build_cells, &v);
    }
}

static const sotto_dtype cache_types[] = {SOTTO_F16, SOTTO_Q8_0, SOTTO_F32, SOTTO_BF16};

/* Heads that share heads of keys: few rows over many cells, which may be cut into parts, and windows of them. */
static void grouped_cells_on(sotto_backend *b, sotto_backend *ref)
{
    static const int64_t widths[] = {64, 32, 96, 256}, cells[] = {1, 63, 128, 200, 700, 1500}, share[] = {3, 4, 1, 9};
    static const int windows[] = {0, 1, 5, 64, 300};
    for (int i = 0; i < 60; i++) {
        const int64_t heads = 1 + i % 3, width = widths[i / 3 % 4];
        const int64_t room = (1 << 20) / 4 / (heads * width); /* there is a device with buffers of a megabyte */
        const variant v = {.how = (layout)(i % 3),
                           .dtype = cache_types[i % 4],
                           .dim = {width, heads * share[i % 4], i % 7 ? 1 + i % 5 : 15, 1},
                           .n = cells[i % 6] < room ? cells[i % 6] : room,
                           .extra = (int)heads * (i % 5 < 2 ? -1 : 1),
                           .window = windows[i / 2 % 5],
                           .spread = i % 13 == 0 ? 200 : 2};
        scene_compare(b, ref, "cache_attention of shared heads", build_cells, &v);
    }
}

/* Many rows of one list that see one cell more each, and rows of several lists between them. */
static void prompts_on(sotto_backend *b, sotto_backend *ref)
{
    static const int64_t widths[] = {64, 32, 80, 256, 64}, rows[] = {16, 17, 40, 63, 65, 130}, share[] = {3, 4, 1};
    static const int windows[] = {0, 1, 40, 0};
    for (int i = 0; i < 48; i++) {
        const int64_t heads = 1 + i / 6 % 2, d = widths[i % 5];
        const variant v = {.how = (layout)(i % 3),
                           .dtype = cache_types[i % 4 == 1 && d % 32 ? 0 : i % 4],
                           .bias = i % 5 > 0,
                           .dim = {d, heads * share[i / 2 % 3], rows[i % 6], 1},
                           .n = rows[i % 6] + (i == 20 ? 600 : i % 9),
                           .extra = (int)heads * (i % 7 < 3 ? -1 : 1),
                           .window = windows[i / 3 % 4],
                           .compute = i % 2 ? SOTTO_COMPUTE_BF16 : SOTTO_COMPUTE_F32,
                           .spread = i % 11 == 0 ? 60 : 2};
        scene_compare(b, ref, "cache_attention of a prompt", build_cells, &v);
    }
}

/* Products and attention in halves where the device has matrix units: whole and ragged tiles, of both sizes. */
static void halves_on(sotto_backend *b, sotto_backend *ref)
{
    static const int64_t rows[] = {9, 16, 31, 64, 65, 128, 130, 200}, columns[] = {8, 64, 65, 127, 128, 200};
    static const int64_t depths[] = {32, 64, 96, 256, 8, 40, 33};
    for (int t = 0; t < N_WEIGHT_TYPES; t++)
        for (int i = 0; i < 12; i++) {
            const bool blocks = sotto_dtype_block(weight_types[t]) > 1;
            const variant v = {.how = (layout)(i % 3),
                               .dtype = weight_types[t],
                               .matrix = i % 5 != 3,
                               .act = i % 4,
                               .bias = i % 2,
                               .residual = i % 3 > 0,
                               .extra = i % 4 == 0,
                               .dim = {depths[(i * 5 + t) % (blocks ? 4 : COUNT(depths))],
                                       rows[(i * 3 + t) % COUNT(rows)], 1 + i % 7 / 6, 1},
                               .n = columns[(i + t) % COUNT(columns)],
                               .compute = SOTTO_COMPUTE_F16};
            scene_compare(b, ref, "linear in halves", build_linear, &v);
        }
    for (int i = 0; i < 8; i++) {
        const variant linear = {.how = (layout)(i % 3),
                                .dtype = SOTTO_I8,
                                .matrix = true,
                                .bias = i % 2,
                                .dim = {depths[i % COUNT(depths)], rows[i], 1, 1},
                                .n = columns[i % COUNT(columns)],
                                .compute = SOTTO_COMPUTE_F16};
        scene_compare(b, ref, "linear in halves", build_linear, &linear);
        const variant conv = {.dtype = float_types[i % 3],
                              .matrix = true,
                              .act = i % 3,
                              .bias = i % 2,
                              .dim = {i % 2 ? 80 : 8, rows[i], 1, 1},
                              .n = columns[i % COUNT(columns)],
                              .extra = 1 + i / 2 % 2,
                              .compute = SOTTO_COMPUTE_F16};
        scene_compare(b, ref, "conv_1d in halves", build_conv, &conv);
    }
    static const int64_t lengths[] = {1, 15, 16, 31, 63, 64, 65, 130};
    for (int i = 0; i < 32; i++) {
        const int64_t n_k = lengths[i % 8], n_q = i % 3 == 0 ? n_k : lengths[i / 3 % 8];
        variant v = {.how = (layout)(i % 3),
                     .compute = SOTTO_COMPUTE_F16,
                     .dim = {i % 2 ? 128 : 64, i % 3 == 1 ? 4 : 2, n_q, 1 + (i % 6 == 0)},
                     .n = n_k,
                     .extra = (i % 4 == 1 ? 1 : 2) * (i % 5 < 2 ? -1 : 1)};
        scene_compare(b, ref, "attention in halves", build_attention, &v);
        v.spread = 3;
        scene_compare(b, ref, "attention in halves, sharp", build_attention, &v);
    }
    /* numbers at the end of what halves hold: sums of their products are no halves */
    const variant large[] = {{.dtype = SOTTO_F16, .matrix = true, .dim = {256, 70, 1, 1}, .n = 64, .spread = 6e4f},
                             {.dim = {64, 2, 70, 1}, .n = 130, .extra = 2, .spread = 6e4f}};
    for (int i = 0; i < 2; i++) {
        variant v = large[i];
        v.compute = SOTTO_COMPUTE_F16;
        scene_compare(b, ref, "large numbers in halves", i ? build_attention : build_linear, &v);
    }
    /* a prompt's rows, which have kernels of their own */
    for (int i = 0; i < 8; i++) {
        const variant v = {.how = (layout)(i % 3),
                           .dtype = SOTTO_F16,
                           .compute = SOTTO_COMPUTE_F16,
                           .bias = i > 3,
                           .dim = {i % 2 ? 128 : 64, 2, 65 + 37 * (i / 2 % 2), 1},
                           .n = i == 3 ? 130 : 70,
                           .extra = i % 4 < 2 ? -2 : 1};
        scene_compare(b, ref, "cache_attention in halves", build_cells, &v);
    }
}

static void test_halves(void **state)
{
    (void)state;
    on_every_device(halves_on);
}

static void test_products(void **state)
{
    (void)state;
    on_every_device(products_on);
}

static void test_narrow_products(void **state)
{
    (void)state;
    on_every_device(narrow_products_on);
}

static void test_narrow_attention(void **state)
{
    (void)state;
    on_every_device(narrow_attention_on);
}

static void test_i8_storage(void **state)
{
    (void)state;
    on_every_device(i8_storage_on);
}

static void test_convolutions(void **state)
{
    (void)state;
    on_every_device(convolutions_on);
}

static void test_rows(void **state)
{
    (void)state;
    on_every_device(rows_on);
}

static void test_elements(void **state)
{
    (void)state;
    on_every_device(elements_on);
}

static void test_masked_rows(void **state)
{
    (void)state;
    on_every_device(masked_rows_on);
}

static void test_many_rows(void **state)
{
    (void)state;
    on_every_device(many_rows_on);
}

static void test_moves(void **state)
{
    (void)state;
    on_every_device(moves_on);
}

static void test_attention(void **state)
{
    (void)state;
    on_every_device(attention_on);
}

static void test_cells(void **state)
{
    (void)state;
    on_every_device(cells_on);
}

static void test_grouped_cells(void **state)
{
    (void)state;
    on_every_device(grouped_cells_on);
}

static void test_prompts(void **state)
{
    (void)state;
    on_every_device(prompts_on);
}

static void test_block_moves(void **state)
{
    (void)state;
    on_every_device(block_moves_on);
}

/* ---- two backends of one device at once: the same bits as alone ---- */

typedef struct worker {
    const char *device;
    void *out;
    size_t bytes;
} worker;

static const variant shared_case = {.how = SLICED,
                                    .dtype = SOTTO_Q5_1,
                                    .matrix = true,
                                    .act = SOTTO_ACT_GELU,
                                    .bias = true,
                                    .dim = {256, 50, 1, 1}, /* less than a megabyte */
                                    .n = 200};

/* No cmocka calls but on failure: this runs in threads. */
static void work(void *arg)
{
    worker *w = arg;
    sotto_backend *b = open_or_null(w->device, NULL, 2);
    for (int i = 0; b && i < 20; i++) {
        scene s;
        if (!scene_run(&s, b, build_linear, &shared_case, 42, false)) {
            scene_end(&s);
            break;
        }
        void *out = scene_result(&s);
        if (w->out && memcmp(w->out, out, w->bytes) != 0)
            w->bytes = 0;
        else
            w->bytes = sotto_tensor_bytes(s.y);
        free(w->out);
        w->out = out;
        scene_end(&s);
        if (w->bytes == 0)
            break;
    }
    sotto_backend_free(b);
}

static void test_two_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < sotto_device_count(); i++) {
        sotto_device_info info;
        assert_int_equal(sotto_device_get(i, &info, NULL), SOTTO_OK);
        worker alone = {.device = info.id}, together[2] = {alone, alone};
        work(&alone);
        st_thread thread[2];
        for (int t = 0; t < 2; t++)
            assert_true(st_thread_create(&thread[t], work, &together[t]));
        for (int t = 0; t < 2; t++)
            st_thread_join(&thread[t]);
        for (int t = 0; t < 2; t++) {
            assert_true(alone.bytes > 0 && together[t].bytes == alone.bytes);
            assert_memory_equal(together[t].out, alone.out, alone.bytes);
            free(together[t].out);
        }
        free(alone.out);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1) /* a pattern of test names, e.g. "test_moves" */
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_convolutions),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_masked_rows),
        cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_grouped_cells),
        cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_block_moves),
        cmocka_unit_test(test_two_at_once),
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_narrow_products),
        cmocka_unit_test(test_narrow_attention),
        cmocka_unit_test(test_i8_storage),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    scene_print_coverage();
    return failed;
}
