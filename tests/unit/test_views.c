/* Views against a model of them: a shape and the list of element numbers that it shows, in row order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tensor/tensor_impl.h"

enum { MOST = 6 * 6 * 6 * 6 };

typedef struct model {
    int64_t dim[4];
    int64_t n;
    int64_t element[MOST];
} model;

static unsigned seed;

static void fill(model *m, const int64_t *dim)
{
    m->n = 1;
    for (int a = 0; a < 4; a++)
        m->n *= m->dim[a] = dim[a];
    for (int64_t i = 0; i < m->n; i++)
        m->element[i] = i;
}

static int64_t at(const model *m, const int64_t *i)
{
    return m->element[((i[3] * m->dim[2] + i[2]) * m->dim[1] + i[1]) * m->dim[0] + i[0]];
}

/* dim of the result; element i of it is element `from(i)` of m */
static void pick(model *m, const int64_t *dim, const int *axis, const int64_t *start)
{
    static model out;
    fill(&out, dim);
    for (int64_t n = 0; n < out.n; n++) {
        int64_t rest = n, i[4];
        for (int a = 0; a < 4; a++) {
            i[axis[a]] = rest % dim[a] + start[axis[a]];
            rest /= dim[a];
        }
        out.element[n] = at(m, i);
    }
    *m = out;
}

/* One stride an axis gives the model's elements: then a reshape to it must have been granted. */
static bool has_strides(const model *m)
{
    int64_t stride[4] = {0};
    for (int a = 0; a < 4; a++)
        if (m->dim[a] > 1) {
            int64_t one[4] = {0};
            one[a] = 1;
            stride[a] = at(m, one) - m->element[0];
        }
    for (int64_t n = 0; n < m->n; n++) {
        int64_t rest = n, expected = m->element[0];
        for (int a = 0; a < 4; a++) {
            expected += rest % m->dim[a] * stride[a];
            rest /= m->dim[a];
        }
        if (m->element[n] != expected)
            return false;
    }
    return true;
}

static void compare(const sotto_tensor *t, const sotto_tensor *root, const model *m)
{
    assert_ptr_equal(t == root ? root : t->view_of, root);
    for (int a = 0; a < 4; a++)
        assert_int_equal(t->dim[a], m->dim[a]);
    for (int64_t n = 0; n < m->n; n++) {
        int64_t rest = n;
        size_t offset = t->view_of ? t->view_offset : 0;
        for (int a = 0; a < 4; a++) {
            offset += (size_t)(rest % m->dim[a]) * t->stride[a];
            rest /= m->dim[a];
        }
        assert_int_equal(offset, (size_t)m->element[n] * sizeof(float));
    }
    bool in_order = true;
    for (int64_t n = 0; n < m->n; n++)
        in_order = in_order && m->element[n] == m->element[0] + n;
    if (m->n > 0)
        assert_int_equal(st_tensor_is_contiguous(t), in_order);
}

static sotto_graph *create(void)
{
    sotto_graph *g;
    assert_int_equal(sotto_graph_create("views", &g, NULL), SOTTO_OK);
    return g;
}

/* A random split of n elements into four dimensions. */
static void factors(int64_t n, int64_t *dim)
{
    for (int a = 0; a < 4; a++)
        dim[a] = 1;
    for (int64_t p = 2; n > 1; p++)
        while (n % p == 0) {
            dim[rand() % 4] *= p;
            n /= p;
        }
}

/* Applies one random view to both; returns the old tensor when a reshape was refused, as it had to be. */
static sotto_tensor *step(sotto_graph *g, sotto_tensor *t, model *m)
{
    int axis[4] = {0, 1, 2, 3};
    int64_t dim[4], start[4] = {0};
    memcpy(dim, m->dim, sizeof dim);
    const int what = rand() % 4;
    if (what == 0) {
        const int a = rand() % 4;
        start[a] = rand() % m->dim[a];
        dim[a] = 1 + rand() % (m->dim[a] - start[a]);
        pick(m, dim, axis, start);
        return sotto_view_slice(g, t, a, start[a], dim[a]);
    }
    if (what == 1) {
        for (int a = 3; a > 0; a--) {
            const int b = rand() % (a + 1), old = axis[a];
            axis[a] = axis[b];
            axis[b] = old;
        }
        for (int a = 0; a < 4; a++)
            dim[a] = m->dim[axis[a]];
        pick(m, dim, axis, start);
        return sotto_view_permute(g, t, axis);
    }
    static model shaped;
    shaped = *m;
    factors(m->n, shaped.dim);
    const bool possible = has_strides(&shaped);
    if (!possible) {
        sotto_graph *other = create(); /* errors are sticky */
        assert_true(sotto_view_reshape(other, t, 4, shaped.dim)->flags & ST_TENSOR_POISON);
        sotto_graph_free(other);
        return t;
    }
    *m = shaped;
    return sotto_view_reshape(g, t, 4, shaped.dim);
}

static void chains_of_views(void **state)
{
    (void)state;
    static model m;
    for (int round = 0; round < 3000; round++) {
        sotto_graph *g = create();
        int64_t dim[4];
        for (int a = 0; a < 4; a++)
            dim[a] = 1 + rand() % 6;
        fill(&m, dim);
        sotto_tensor *root = sotto_graph_input(g, "x", SOTTO_F32, 4, dim), *t = root;
        for (int i = 0; i < 5; i++) {
            t = step(g, t, &m);
            if (t->flags & ST_TENSOR_POISON)
                fail_msg("seed %u, round %d: %s", seed, round, g->error.text);
            compare(t, root, &m);
        }
        sotto_graph_free(g);
    }
}

static void frames_overlap(void **state)
{
    (void)state;
    sotto_graph *g = create();
    const int64_t dim[2] = {10, 3};
    sotto_tensor *x = sotto_graph_input(g, "x", SOTTO_F32, 2, dim);
    sotto_tensor *f = sotto_view_frames(g, x, 6, 5, 5); /* 30 elements, the last frame ends with them */
    assert_int_equal(f->dim[0], 5);
    assert_int_equal(f->dim[1], 6);
    assert_int_equal(f->stride[1], 5 * sizeof(float));
    f = sotto_view_frames(g, sotto_view_slice(g, x, 1, 1, 2), 4, 3, 11);
    assert_int_equal(f->view_offset, 10 * sizeof(float));
    assert_int_equal(f->stride[1], 3 * sizeof(float));
    assert_ptr_equal(f->view_of, x);
    assert_int_equal(sotto_graph_finish(g, NULL), SOTTO_OK);
    sotto_graph_free(g);
}

typedef sotto_tensor *bad_view(sotto_graph *g, sotto_tensor *x);

#define BAD(name, call)                                        \
    static sotto_tensor *name(sotto_graph *g, sotto_tensor *x) \
    {                                                          \
        return call;                                           \
    }

static const int64_t dim_31[2] = {31, 1}, dim_negative[2] = {-5, -6}, dim_30[1] = {30};
static const int axis_twice[4] = {0, 1, 1, 3}, axis_outside[4] = {0, 1, 2, 4};

BAD(slice_axis, sotto_view_slice(g, x, 4, 0, 1))
BAD(slice_axis_below, sotto_view_slice(g, x, -1, 0, 1))
BAD(slice_start, sotto_view_slice(g, x, 0, -1, 1))
BAD(slice_behind, sotto_view_slice(g, x, 0, 11, 0))
BAD(slice_long, sotto_view_slice(g, x, 1, 1, 3))
BAD(slice_negative, sotto_view_slice(g, x, 1, 1, -1))
BAD(slice_overflow, sotto_view_slice(g, x, 1, INT64_MAX, INT64_MAX))
BAD(reshape_count, sotto_view_reshape(g, x, 2, dim_31))
BAD(reshape_negative, sotto_view_reshape(g, x, 2, dim_negative))
BAD(reshape_no_dims, sotto_view_reshape(g, x, 0, dim_30))
BAD(reshape_many_dims, sotto_view_reshape(g, x, 5, dim_30))
BAD(permute_twice, sotto_view_permute(g, x, axis_twice))
BAD(permute_outside, sotto_view_permute(g, x, axis_outside))
BAD(frames_long, sotto_view_frames(g, x, 6, 5, 6))
BAD(frames_none, sotto_view_frames(g, x, 0, 5, 5))
BAD(frames_no_step, sotto_view_frames(g, x, 6, 0, 5))
BAD(frames_overflow, sotto_view_frames(g, x, INT64_MAX, INT64_MAX, INT64_MAX))
BAD(frames_strided, sotto_view_frames(g, sotto_view_slice(g, x, 0, 1, 5), 2, 2, 2))
BAD(of_null, sotto_view_slice(g, x->dim[0] ? NULL : x, 0, 0, 1))

static void refusals(void **state)
{
    (void)state;
    bad_view *const bad[] = {slice_axis,        slice_axis_below, slice_start,     slice_behind,     slice_long,
                             slice_negative,    slice_overflow,   reshape_count,   reshape_negative, reshape_no_dims,
                             reshape_many_dims, permute_twice,    permute_outside, frames_long,      frames_none,
                             frames_no_step,    frames_overflow,  frames_strided,  of_null};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sotto_graph *g = create();
        const int64_t dim[2] = {10, 3};
        sotto_tensor *x = sotto_graph_input(g, "x", SOTTO_F32, 2, dim);
        sotto_tensor *y = bad[i](g, x);
        assert_non_null(y);
        sotto_error err;
        if (sotto_graph_finish(g, &err) != SOTTO_E_ARGUMENT)
            fail_msg("refusal %zu was granted", i);
        assert_true(strlen(err.text) > strlen("graph \"views\": "));
        sotto_graph_free(g);
    }
}

/* Rows of blocks may be cut between blocks only, and their blocks stay innermost. */
static void blocks(void **state)
{
    (void)state;
    const int64_t dim[2] = {96, 4}, join[1] = {384};
    const int swap[4] = {1, 0, 2, 3}, keep[4] = {0, 2, 1, 3};
    sotto_graph *g = create();
    sotto_tensor *x = sotto_graph_input(g, "x", SOTTO_Q4_0, 2, dim);
    sotto_tensor *y = sotto_view_slice(g, x, 0, 32, 64);
    assert_int_equal(y->view_offset, 18);
    assert_int_equal(y->dim[0], 64);
    assert_int_equal(sotto_view_slice(g, x, 1, 2, 2)->view_offset, 2 * 3 * 18);
    assert_int_equal(sotto_view_permute(g, x, keep)->dim[2], 4);
    assert_int_equal(sotto_view_reshape(g, x, 1, join)->stride[1], 12 * 18);
    assert_int_equal(g->error.code, SOTTO_OK);
    sotto_graph_free(g);
    for (int i = 0; i < 3; i++) {
        g = create();
        x = sotto_graph_input(g, "x", SOTTO_Q4_0, 2, dim);
        y = i == 0   ? sotto_view_slice(g, x, 0, 16, 64)
            : i == 1 ? sotto_view_slice(g, x, 0, 32, 40)
                     : sotto_view_permute(g, x, swap);
        assert_true(y->flags & ST_TENSOR_POISON);
        sotto_graph_free(g);
    }
}

static void empty(void **state)
{
    (void)state;
    const int64_t dim[3] = {5, 0, 7}, other[2] = {0, 9};
    sotto_graph *g = create();
    sotto_tensor *x = sotto_graph_input(g, "x", SOTTO_F32, 3, dim);
    sotto_tensor *y = sotto_view_reshape(g, sotto_view_slice(g, x, 0, 1, 3), 2, other);
    assert_int_equal(sotto_tensor_count(y), 0);
    assert_int_equal(y->dim[1], 9);
    y = sotto_view_slice(g, sotto_view_slice(g, x, 2, 7, 0), 0, 5, 0);
    assert_int_equal(sotto_tensor_bytes(y), 0);
    assert_int_equal(sotto_graph_finish(g, NULL), SOTTO_OK);
    sotto_graph_free(g);
    /* nothing in it, and yet the number of its rows is no number */
    sotto_tensor t;
    const int64_t rows[4] = {0, INT64_C(1) << 40, INT64_C(1) << 40, 1};
    assert_false(st_tensor_init(&t, SOTTO_F32, 4, rows));
    assert_true(st_tensor_init(&t, SOTTO_F32, 2, rows));
    assert_int_equal(st_tensor_n_rows(&t), INT64_C(1) << 40);
}

int main(void)
{
    const char *text = getenv("SOTTO_TEST_SEED");
    seed = text ? (unsigned)strtoul(text, NULL, 10) : (unsigned)time(NULL);
    printf("seed %u (SOTTO_TEST_SEED)\n", seed);
    srand(seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_of_views), cmocka_unit_test(frames_overlap), cmocka_unit_test(refusals),
        cmocka_unit_test(blocks),          cmocka_unit_test(empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
