#include "tensor/op_impl.h"

static bool is_rows_list(const sotto_tensor *t)
{
    return t->dtype == SOTTO_I32 && st_tensor_is_contiguous(t) && sotto_tensor_count(t) == t->dim[0];
}

sotto_tensor *sotto_get_rows(sotto_graph *g, sotto_tensor *table, sotto_tensor *rows)
{
    sotto_tensor *const src[] = {table, rows};
    sotto_tensor *bad = st_op_bad(g, ST_OP_GET_ROWS, src, 2, 0);
    if (bad)
        return bad;
    if (!st_op_is_weight_type(table->dtype) || !st_tensor_has_rows(table) || table->dim[2] != 1 || table->dim[3] != 1 ||
        !is_rows_list(rows))
        return st_op_fail(g, ST_OP_GET_ROWS, "expected a table of rows and an i32 list", table, rows);
    const int64_t dim[2] = {table->dim[0], rows->dim[0]};
    return st_op_node(g, ST_OP_GET_ROWS, SOTTO_F32, 2, dim, src, 2);
}

sotto_tensor *st_op_write_view(sotto_graph *g, st_op op, sotto_tensor *dst, sotto_tensor *const *src, int n_src)
{
    sotto_tensor *y = st_op_node(g, op, dst->dtype, SOTTO_MAX_DIMS, dst->dim, src, n_src);
    if (y->flags & ST_TENSOR_POISON)
        return y;
    for (int a = 0; a < SOTTO_MAX_DIMS; a++)
        y->stride[a] = dst->stride[a];
    y->view_of = dst->view_of ? dst->view_of : dst;
    y->view_offset = dst->view_of ? dst->view_offset : 0;
    y->flags |= dst->flags & ST_TENSOR_STORED;
    return y;
}

sotto_tensor *sotto_set_rows(sotto_graph *g, sotto_tensor *table, sotto_tensor *rows, sotto_tensor *x)
{
    sotto_tensor *const src[] = {table, rows, x};
    sotto_tensor *bad = st_op_bad(g, ST_OP_SET_ROWS, src, 3, 0);
    if (bad)
        return bad;
    if (!st_op_is_cache_type(table->dtype) || (table->flags & ST_TENSOR_MATRIX) || !st_tensor_has_rows(table) ||
        table->dim[2] != 1 || table->dim[3] != 1 || !st_op_is_rows_f32(x) || x->dim[0] != table->dim[0] ||
        x->dim[2] != 1 || x->dim[3] != 1)
        return st_op_fail(g, ST_OP_SET_ROWS, "the table and x do not fit", table, x);
    if (!is_rows_list(rows) || rows->dim[0] != x->dim[1])
        return st_op_fail(g, ST_OP_SET_ROWS, "expected one i32 number for each row of x", x, rows);
    return st_op_write_view(g, ST_OP_SET_ROWS, table, src, 3);
}
