/* ref_move.c: get_rows, set_rows, copy, concat. */
#include "reference/ref.h"
#include "sotto/quant.h"

static void get_rows(st_ref_run *r, const sotto_tensor *node)
{
    const sotto_tensor *table = node->src[0];
    const int32_t *rows = st_tensor_data(node->src[1]);
    for (int64_t i = 0; i < node->dim[1] && node->dim[0] > 0 && !st_ref_stop(r); i++) {
        float *y = (float *)(void *)st_ref_address(node, (st_ref_at){{0, i, 0, 0}});
        if (rows[i] < 0 || rows[i] >= table->dim[1])
            memset(y, 0, (size_t)node->dim[0] * sizeof *y);
        else
            st_ref_weights(table, rows[i], y);
    }
}

/* The result is the table itself, seen again. */
static void set_rows(st_ref_run *r, const sotto_tensor *node)
{
    const sotto_tensor *x = node->src[2];
    const int32_t *rows = st_tensor_data(node->src[1]);
    for (int64_t i = 0; i < x->dim[1] && !st_ref_stop(r); i++)
        if (rows[i] >= 0 && rows[i] < node->dim[1] && node->dim[0] > 0)
            (void)sotto_row_from_f32(node->dtype,
                                     (const float *)(const void *)st_ref_address(x, (st_ref_at){{0, i, 0, 0}}),
                                     st_ref_address(node, (st_ref_at){{0, rows[i], 0, 0}}), node->dim[0]);
}

static void put_from(const sotto_tensor *node, st_ref_at to, const sotto_tensor *x, st_ref_at from)
{
    if (x->dtype == node->dtype) /* bits as they are, also of a NaN */
        memmove(st_ref_address(node, to), st_ref_address(x, from), sotto_dtype_bytes(x->dtype));
    else
        st_ref_put(node, to, st_ref_get(x, from));
}

/* Also copy_into: the node is then a view of its destination. */
static void copy(st_ref_run *r, const sotto_tensor *node)
{
    (void)r;
    if (node->dtype == SOTTO_Q8_0) {
        for (int64_t n = 0; n < sotto_tensor_count(node); n += node->dim[0]) {
            const st_ref_at at = st_ref_position(node, n);
            (void)sotto_row_from_f32(node->dtype, (const float *)(const void *)st_ref_address(node->src[0], at),
                                     st_ref_address(node, at), node->dim[0]);
        }
        return;
    }
    for (int64_t n = 0; n < sotto_tensor_count(node); n++) {
        const st_ref_at at = st_ref_position(node, n);
        put_from(node, at, node->src[0], at);
    }
}

static void concat(st_ref_run *r, const sotto_tensor *node)
{
    (void)r;
    const sotto_tensor *a = node->src[0], *b = node->src[1];
    const int axis = node->params.i[0];
    for (int64_t n = 0; n < sotto_tensor_count(node); n++) {
        const st_ref_at at = st_ref_position(node, n);
        st_ref_at from = at;
        const bool second = at.i[axis] >= a->dim[axis];
        if (second)
            from.i[axis] -= a->dim[axis];
        put_from(node, at, second ? b : a, from);
    }
}

const st_ref_op st_ref_get_rows = {get_rows, NULL};
const st_ref_op st_ref_set_rows = {set_rows, NULL};
const st_ref_op st_ref_copy = {copy, NULL};
const st_ref_op st_ref_concat = {concat, NULL};
