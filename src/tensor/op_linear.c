#include "tensor/op_impl.h"

static bool is_weight(const sotto_tensor *w)
{
    return w->dim[2] == 1 && w->dim[3] == 1 && st_op_is_weight_type(w->dtype) &&
           ((w->flags & ST_TENSOR_MATRIX) || (w->dtype != SOTTO_I8 && st_tensor_is_contiguous(w)));
}

sotto_tensor *sotto_linear(sotto_graph *g, sotto_tensor *x, sotto_tensor *w, sotto_tensor *b, sotto_activation act,
                           sotto_tensor *residual)
{
    sotto_tensor *const src[] = {x, w, b, residual};
    sotto_tensor *bad = st_op_bad(g, ST_OP_LINEAR, src, 4, 1u << 2 | 1u << 3);
    if (bad)
        return bad;
    if (!st_op_is_rows_f32(x) || !is_weight(w) || w->dim[0] != x->dim[0])
        return st_op_fail(g, ST_OP_LINEAR, "x and w do not fit", x, w);
    if (b && !st_op_is_vector(b, w->dim[1]))
        return st_op_fail(g, ST_OP_LINEAR, "the bias does not fit", w, b);
    const int64_t dim[4] = {w->dim[1], x->dim[1], x->dim[2], x->dim[3]};
    sotto_tensor *y = st_op_node(g, ST_OP_LINEAR, SOTTO_F32, 4, dim, src, 4);
    if (residual && !(y->flags & ST_TENSOR_POISON) && (!st_op_is_rows_f32(residual) || !st_op_same_shape(y, residual)))
        return st_op_fail(g, ST_OP_LINEAR, "the residual does not fit the result", y, residual);
    y->params.act = act;
    return y;
}

sotto_tensor *sotto_matmul(sotto_graph *g, sotto_tensor *a, sotto_tensor *b)
{
    sotto_tensor *const src[] = {a, b};
    sotto_tensor *bad = st_op_bad(g, ST_OP_MATMUL, src, 2, 0);
    if (bad)
        return bad;
    const bool leading = (b->dim[2] == 1 || b->dim[2] == a->dim[2]) && (b->dim[3] == 1 || b->dim[3] == a->dim[3]);
    if (!st_op_is_rows_f32(a) || !st_op_is_rows_f32(b) || a->dim[0] != b->dim[0] || !leading)
        return st_op_fail(g, ST_OP_MATMUL, "a and b do not fit", a, b);
    const int64_t dim[4] = {b->dim[1], a->dim[1], a->dim[2], a->dim[3]};
    return st_op_node(g, ST_OP_MATMUL, SOTTO_F32, 4, dim, src, 2);
}

sotto_tensor *sotto_conv_1d(sotto_graph *g, sotto_tensor *x, sotto_tensor *w, sotto_tensor *b, int kernel, int stride,
                            int pad, sotto_activation act, sotto_tensor *residual)
{
    sotto_tensor *const src[] = {x, w, b, residual};
    sotto_tensor *bad = st_op_bad(g, ST_OP_CONV_1D, src, 4, 1u << 2 | 1u << 3);
    if (bad)
        return bad;
    if (kernel < 1 || stride < 1 || pad < 0 || pad >= kernel || !st_op_is_rows_f32(x) || !is_weight(w) ||
        w->dim[0] % kernel != 0 || w->dim[0] / kernel != x->dim[0] || x->dim[1] + 2 * (int64_t)pad < kernel)
        return st_op_fail(g, ST_OP_CONV_1D, "x, w, kernel, stride or padding do not fit", x, w);
    if (b && !st_op_is_vector(b, w->dim[1]))
        return st_op_fail(g, ST_OP_CONV_1D, "the bias does not fit", w, b);
    const int64_t dim[4] = {w->dim[1], (x->dim[1] + 2 * (int64_t)pad - kernel) / stride + 1, x->dim[2], x->dim[3]};
    sotto_tensor *y = st_op_node(g, ST_OP_CONV_1D, SOTTO_F32, 4, dim, src, 4);
    if (residual && !(y->flags & ST_TENSOR_POISON) && (!st_op_is_rows_f32(residual) || !st_op_same_shape(y, residual)))
        return st_op_fail(g, ST_OP_CONV_1D, "the residual does not fit the result", y, residual);
    y->params.act = act;
    y->params.i[0] = kernel;
    y->params.i[1] = stride;
    y->params.i[2] = pad;
    return y;
}
