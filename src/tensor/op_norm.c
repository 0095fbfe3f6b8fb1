#include "tensor/op_impl.h"

sotto_tensor *sotto_layer_norm(sotto_graph *g, sotto_tensor *x, sotto_tensor *w, sotto_tensor *b, float eps)
{
    sotto_tensor *const src[] = {x, w, b};
    sotto_tensor *bad = st_op_bad(g, ST_OP_LAYER_NORM, src, 3, 0);
    if (bad)
        return bad;
    if (!st_op_is_rows_f32(x) || !st_op_is_vector(w, x->dim[0]) || !st_op_is_vector(b, x->dim[0]) || !(eps >= 0))
        return st_op_fail(g, ST_OP_LAYER_NORM, "x, w and b do not fit", x, w);
    sotto_tensor *y = st_op_node(g, ST_OP_LAYER_NORM, SOTTO_F32, 4, x->dim, src, 3);
    y->params.f[0] = eps;
    return y;
}

sotto_tensor *sotto_rms_norm(sotto_graph *g, sotto_tensor *x, sotto_tensor *w, float eps)
{
    sotto_tensor *const src[] = {x, w};
    sotto_tensor *bad = st_op_bad(g, ST_OP_RMS_NORM, src, 2, 0);
    if (bad)
        return bad;
    if (!st_op_is_rows_f32(x) || !st_op_is_vector(w, x->dim[0]) || !(eps >= 0))
        return st_op_fail(g, ST_OP_RMS_NORM, "x and w do not fit", x, w);
    sotto_tensor *y = st_op_node(g, ST_OP_RMS_NORM, SOTTO_F32, 4, x->dim, src, 2);
    y->params.f[0] = eps;
    return y;
}

sotto_tensor *sotto_softmax(sotto_graph *g, sotto_tensor *x, sotto_tensor *mask, float scale)
{
    sotto_tensor *const src[] = {x, mask};
    sotto_tensor *bad = st_op_bad(g, ST_OP_SOFTMAX, src, 2, 1u << 1);
    if (bad)
        return bad;
    if (!st_op_is_rows_f32(x))
        return st_op_fail(g, ST_OP_SOFTMAX, "x is not made of f32 rows", x, NULL);
    if (mask && (!st_op_is_rows_f32(mask) || !st_op_broadcasts(x, mask) || mask->dim[0] != x->dim[0]))
        return st_op_fail(g, ST_OP_SOFTMAX, "the mask does not broadcast to x", x, mask);
    sotto_tensor *y = st_op_node(g, ST_OP_SOFTMAX, SOTTO_F32, 4, x->dim, src, 2);
    y->params.f[0] = scale;
    return y;
}
