#include "tensor/op_impl.h"

/* The window in the order of its parameters, and the size of the result along w and h; false when nothing fits. */
static bool window_fits(const sotto_tensor *x, const sotto_window *w, int32_t params[8], int64_t out[2])
{
    for (int a = 0; a < 2; a++) {
        const int64_t kernel = w->kernel[a], stride = w->stride[a], pad = w->pad[a], dilation = w->dilation[a];
        if (kernel < 1 || stride < 1 || pad < 0 || dilation < 1)
            return false;
        const int64_t span = dilation * (kernel - 1) + 1, room = x->dim[1 + a] + 2 * pad;
        if (pad >= span || room < span || x->dim[1 + a] > INT32_MAX)
            return false;
        out[a] = (room - span) / stride + 1;
        params[a] = (int32_t)kernel;
        params[2 + a] = (int32_t)stride;
        params[4 + a] = (int32_t)pad;
        params[6 + a] = (int32_t)dilation;
    }
    return true;
}

static void set_window(sotto_tensor *y, const int32_t params[8])
{
    for (int i = 0; i < 8; i++)
        y->params.i[i] = params[i];
}

/* Elements under the window; -1 when there are too many. */
static int64_t window_elements(const sotto_tensor *x, const int32_t params[8])
{
    const int64_t places = (int64_t)params[0] * params[1];
    return x->dim[0] > 0 && places > INT32_MAX / x->dim[0] ? -1 : places * x->dim[0];
}

sotto_tensor *sotto_im2col(sotto_graph *g, sotto_tensor *x, const sotto_window *window)
{
    sotto_tensor *bad = st_op_bad(g, ST_OP_IM2COL, &x, 1, 0);
    if (bad)
        return bad;
    int32_t params[8];
    int64_t out[2];
    if (!window || !st_op_is_rows_f32(x) || !window_fits(x, window, params, out) || window_elements(x, params) < 0)
        return st_op_fail(g, ST_OP_IM2COL, "x and the window do not fit", x, NULL);
    const int64_t dim[4] = {window_elements(x, params), out[0], out[1], x->dim[3]};
    sotto_tensor *y = st_op_node(g, ST_OP_IM2COL, SOTTO_F32, 4, dim, &x, 1);
    set_window(y, params);
    return y;
}

sotto_tensor *sotto_conv_2d(sotto_graph *g, sotto_tensor *x, sotto_tensor *w, sotto_tensor *b,
                            const sotto_window *window, sotto_activation act)
{
    sotto_tensor *const src[] = {x, w, b};
    sotto_tensor *bad = st_op_bad(g, ST_OP_CONV_2D, src, 3, 1u << 2);
    if (bad)
        return bad;
    int32_t params[8];
    int64_t out[2];
    const bool weights = w->dim[2] == 1 && w->dim[3] == 1 && st_op_is_weight_type(w->dtype) && w->dtype != SOTTO_I8 &&
                         ((w->flags & ST_TENSOR_MATRIX) || st_tensor_is_contiguous(w));
    if (!window || !weights || !st_op_is_rows_f32(x) || !window_fits(x, window, params, out) ||
        window_elements(x, params) != w->dim[0])
        return st_op_fail(g, ST_OP_CONV_2D, "x, w and the window do not fit", x, w);
    if (b && !st_op_is_vector(b, w->dim[1]))
        return st_op_fail(g, ST_OP_CONV_2D, "the bias does not fit", w, b);
    const int64_t dim[4] = {w->dim[1], out[0], out[1], x->dim[3]};
    sotto_tensor *y = st_op_node(g, ST_OP_CONV_2D, SOTTO_F32, 4, dim, src, 3);
    y->params.act = act;
    set_window(y, params);
    return y;
}
