#include "tensor/op_impl.h"

static bool is_plain(sotto_dtype t)
{
    return t == SOTTO_F32 || t == SOTTO_F16 || t == SOTTO_BF16 || t == SOTTO_I32;
}

sotto_tensor *sotto_copy(sotto_graph *g, sotto_tensor *x, sotto_dtype dtype)
{
    sotto_tensor *const src[] = {x, NULL};
    sotto_tensor *bad = st_op_bad(g, ST_OP_COPY, src, 1, 0);
    if (bad)
        return bad;
    if (!is_plain(x->dtype) || !is_plain(dtype) || (x->flags & ST_TENSOR_MATRIX))
        return st_op_fail(g, ST_OP_COPY, "expected f32, f16, bf16 or i32", x, NULL);
    return st_op_node(g, ST_OP_COPY, dtype, SOTTO_MAX_DIMS, x->dim, src, 1);
}

sotto_tensor *sotto_copy_into(sotto_graph *g, sotto_tensor *dst, sotto_tensor *x)
{
    sotto_tensor *const src[] = {x, dst};
    sotto_tensor *bad = st_op_bad(g, ST_OP_COPY, src, 2, 0);
    if (bad)
        return bad;
    const bool in_blocks = dst->dtype == SOTTO_Q8_0 && st_op_is_rows_f32(x) && st_tensor_has_rows(dst);
    if (!is_plain(x->dtype) || !(is_plain(dst->dtype) || in_blocks) || ((x->flags | dst->flags) & ST_TENSOR_MATRIX) ||
        !st_op_same_shape(x, dst))
        return st_op_fail(g, ST_OP_COPY, "source and destination do not fit", x, dst);
    return st_op_write_view(g, ST_OP_COPY, dst, src, 2);
}

sotto_tensor *sotto_concat(sotto_graph *g, sotto_tensor *a, sotto_tensor *b, int axis)
{
    sotto_tensor *const src[] = {a, b};
    sotto_tensor *bad = st_op_bad(g, ST_OP_CONCAT, src, 2, 0);
    if (bad)
        return bad;
    bool fits = axis >= 0 && axis < SOTTO_MAX_DIMS && a->dtype == b->dtype && is_plain(a->dtype) &&
                !((a->flags | b->flags) & ST_TENSOR_MATRIX);
    int64_t dim[SOTTO_MAX_DIMS];
    for (int i = 0; i < SOTTO_MAX_DIMS; i++) {
        dim[i] = a->dim[i] + (i == axis ? b->dim[i] : 0);
        fits = fits && (i == axis || a->dim[i] == b->dim[i]);
    }
    if (!fits)
        return st_op_fail(g, ST_OP_CONCAT, "the shapes differ off the axis, or the types do", a, b);
    sotto_tensor *y = st_op_node(g, ST_OP_CONCAT, a->dtype, SOTTO_MAX_DIMS, dim, src, 2);
    y->params.i[0] = axis;
    return y;
}
