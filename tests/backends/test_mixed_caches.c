/* cache_attention with keys and values of two types, all pairs: single rows, rows together, and prompts, with heads that share
 * heads of keys and without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "every_device_support.h"
#include "scene_support.h"

static const sotto_dtype types[] = {SOTTO_F32, SOTTO_F16, SOTTO_BF16, SOTTO_Q8_0};

/* q [dim[2], dim[1], dim[0]], caches [n, extra, dim[0]], keys of `dtype` and values of types[act]; bias: row r sees one cell more
 * than the row before it, the last one all; else each row begins r cells later, and there are no lists. */
static void build(scene *s, const variant *v)
{
    const int64_t d = v->dim[0], n_row = v->dim[2], view[3] = {d, v->extra, v->n}, list_dim[2] = {v->n, 1};
    int32_t *base = calloc((size_t)n_row, sizeof *base), *n_kv = calloc((size_t)n_row, sizeof *n_kv),
            *index = calloc((size_t)v->n, sizeof *index);
    assert_true(base && n_kv && index);
    for (int64_t r = 0; r < n_row; r++) {
        n_kv[r] = (int32_t)(v->bias ? v->n - n_row + r + 1 : v->n);
        base[r] = (int32_t)(v->bias ? 0 : r);
    }
    for (int64_t i = 0; i < v->n; i++)
        index[i] = (int32_t)(i * 7 % v->n);
    sotto_tensor *q = scene_floats(s, v->how, v->dim);
    sotto_tensor *k = sotto_view_reshape(s->g, scene_cache(s, v->dtype, d * v->extra, v->n), 3, view);
    sotto_tensor *values = sotto_view_reshape(s->g, scene_cache(s, types[v->act], d * v->extra, v->n), 3, view);
    sotto_tensor *list = v->bias ? scene_given(s, SOTTO_I32, 2, list_dim, index) : NULL;
    s->node = sotto_cache_attention(s->g, q, k, values, list, scene_given(s, SOTTO_I32, 1, &n_row, base),
                                    scene_given(s, SOTTO_I32, 1, &n_row, n_kv), 0.5f, v->window);
    s->y = s->node;
    free(base);
    free(n_kv);
    free(index);
}

static void pairs_on(sotto_backend *b, sotto_backend *ref)
{
    static const int64_t widths[] = {64, 32, 96, 256}, rows[] = {1, 2, 5, 9, 33}, share[] = {1, 3, 4};
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 5; j++) {
            const int64_t heads = 1 + j % 2;
            const variant v = {.how = (layout)(j % 3),
                               .dtype = types[i / 4],
                               .act = i % 4,
                               .bias = (i + j) % 3 > 0,
                               .dim = {widths[(i + j) % 4], heads * share[(i + j) % 3], rows[j], 1},
                               .n = rows[j] + 29 * j,
                               .extra = (int)heads,
                               .window = i % 5 == 0 ? 13 : 0,
                               .compute = i % 2 ? SOTTO_COMPUTE_BF16 : SOTTO_COMPUTE_F32};
            scene_compare(b, ref, "cache_attention of two types", build, &v);
        }
}

static void test_pairs(void **state)
{
    (void)state;
    on_every_device(pairs_on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
