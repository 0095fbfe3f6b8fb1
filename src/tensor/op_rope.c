#include "tensor/op_impl.h"

sotto_tensor *sotto_rope(sotto_graph *g, sotto_tensor *x, sotto_tensor *positions, sotto_tensor *factors,
                         sotto_rope_pairs pairs, int n_rot, float base, float scale, float magnitude)
{
    sotto_tensor *const src[] = {x, positions, factors};
    sotto_tensor *bad = st_op_bad(g, ST_OP_ROPE, src, 3, 1u << 2);
    if (bad)
        return bad;
    if (!st_op_is_rows_f32(x) || n_rot < 0 || n_rot % 2 != 0 || n_rot > x->dim[0] || !(base > 0) || !(scale == scale) ||
        !(magnitude == magnitude))
        return st_op_fail(g, ST_OP_ROPE, "expected f32 rows of at least the rotated elements, an even number", x, NULL);
    if (positions->dtype != SOTTO_I32 || !st_tensor_is_contiguous(positions) || positions->dim[0] != x->dim[2] ||
        (positions->dim[1] != 1 && positions->dim[1] != x->dim[3]) || positions->dim[2] != 1 || positions->dim[3] != 1)
        return st_op_fail(g, ST_OP_ROPE, "expected an i32 position for each row", x, positions);
    if (factors && !st_op_is_vector(factors, n_rot / 2))
        return st_op_fail(g, ST_OP_ROPE, "expected a factor for each pair", x, factors);
    sotto_tensor *y = st_op_node(g, ST_OP_ROPE, SOTTO_F32, 4, x->dim, src, 3);
    y->params.i[0] = n_rot;
    y->params.i[1] = pairs == SOTTO_ROPE_HALVES;
    y->params.f[0] = base;
    y->params.f[1] = scale;
    y->params.f[2] = magnitude;
    return y;
}
