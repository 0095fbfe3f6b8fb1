#include "tensor/op_impl.h"

sotto_tensor *sotto_power(sotto_graph *g, sotto_tensor *x)
{
    sotto_tensor *bad = st_op_bad(g, ST_OP_POWER, &x, 1, 0);
    if (bad)
        return bad;
    if (!st_op_is_rows_f32(x) || x->dim[0] % 2 != 0)
        return st_op_fail(g, ST_OP_POWER, "expected f32 rows of an even number of elements", x, NULL);
    const int64_t dim[4] = {x->dim[0] / 2, x->dim[1], x->dim[2], x->dim[3]};
    return st_op_node(g, ST_OP_POWER, SOTTO_F32, 4, dim, &x, 1);
}

sotto_tensor *sotto_argmax(sotto_graph *g, sotto_tensor *x)
{
    sotto_tensor *bad = st_op_bad(g, ST_OP_ARGMAX, &x, 1, 0);
    if (bad)
        return bad;
    if (!st_op_is_rows_f32(x) || x->dim[0] < 1)
        return st_op_fail(g, ST_OP_ARGMAX, "expected f32 rows of at least one element", x, NULL);
    const int64_t dim[3] = {x->dim[1], x->dim[2], x->dim[3]};
    return st_op_node(g, ST_OP_ARGMAX, SOTTO_I32, 3, dim, &x, 1);
}

sotto_tensor *sotto_top_k(sotto_graph *g, sotto_tensor *x, int k)
{
    sotto_tensor *bad = st_op_bad(g, ST_OP_TOP_K, &x, 1, 0);
    if (bad)
        return bad;
    /* indices are exact in f32 up to here */
    if (!st_op_is_rows_f32(x) || x->dim[3] != 1 || k < 1 || k > x->dim[0] || x->dim[0] > 1 << 24)
        return st_op_fail(g, ST_OP_TOP_K, "expected f32 rows of k to 2^24 elements in three dimensions", x, NULL);
    const int64_t dim[4] = {k, 2, x->dim[1], x->dim[2]};
    return st_op_node(g, ST_OP_TOP_K, SOTTO_F32, 4, dim, &x, 1);
}

sotto_tensor *sotto_block_sums(sotto_graph *g, sotto_tensor *x)
{
    sotto_tensor *bad = st_op_bad(g, ST_OP_BLOCK_SUMS, &x, 1, 0);
    if (bad)
        return bad;
    if (!st_op_is_rows_f32(x) || x->dim[3] != 1 || x->dim[0] < 1)
        return st_op_fail(g, ST_OP_BLOCK_SUMS, "expected f32 rows of at least one element in three dimensions", x, NULL);
    const int64_t dim[4] = {(x->dim[0] - 1) / SOTTO_SUMS_BLOCK + 1, 2, x->dim[1], x->dim[2]};
    return st_op_node(g, ST_OP_BLOCK_SUMS, SOTTO_F32, 4, dim, &x, 1);
}
