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
