#include "tensor/op_impl.h"

sotto_tensor *sotto_attention(sotto_graph *g, sotto_tensor *q, sotto_tensor *k, sotto_tensor *v, float scale,
                              bool causal)
{
    sotto_tensor *const src[] = {q, k, v};
    sotto_tensor *bad = st_op_bad(g, ST_OP_ATTENTION, src, 3, 0);
    if (bad)
        return bad;
    /* [b, n, h, d], so dim is d, h, n, b */
    if (!st_op_is_rows_f32(q) || !st_op_is_rows_f32(k) || !st_op_is_rows_f32(v) || !st_op_same_shape(k, v) ||
        k->dim[0] != q->dim[0] || k->dim[1] < 1 || q->dim[1] % k->dim[1] != 0 || k->dim[3] != q->dim[3])
        return st_op_fail(g, ST_OP_ATTENTION, "q, k and v do not fit", q, k);
    const int64_t dim[3] = {q->dim[0] * q->dim[1], q->dim[2], q->dim[3]};
    sotto_tensor *y = st_op_node(g, ST_OP_ATTENTION, SOTTO_F32, 3, dim, src, 3);
    y->params.f[0] = scale;
    y->params.i[0] = causal;
    return y;
}

static bool is_cache(const sotto_tensor *t)
{
    return st_op_is_cache_type(t->dtype) && !(t->flags & ST_TENSOR_MATRIX) && st_tensor_has_rows(t);
}

static bool is_list(const sotto_tensor *t, int64_t n)
{
    return t->dtype == SOTTO_I32 && st_tensor_is_contiguous(t) && sotto_tensor_count(t) == n;
}

sotto_tensor *sotto_cache_attention(sotto_graph *g, sotto_tensor *q, sotto_tensor *k, sotto_tensor *v,
                                    sotto_tensor *index, sotto_tensor *base, sotto_tensor *n_kv, float scale, int window)
{
    sotto_tensor *const src[] = {q, k, v, index, base, n_kv};
    sotto_tensor *bad = st_op_bad(g, ST_OP_CACHE_ATTENTION, src, 6, 1u << 3);
    if (bad)
        return bad;
    /* q [n_row, h, d], k and v [n_cell, h_kv, d] */
    if (!st_op_is_rows_f32(q) || !is_cache(k) || !is_cache(v) || !st_op_same_shape(k, v) || k->dim[0] != q->dim[0] ||
        k->dim[1] < 1 || q->dim[1] % k->dim[1] != 0 || q->dim[3] != 1 || k->dim[3] != 1)
        return st_op_fail(g, ST_OP_CACHE_ATTENTION, "q, k and v do not fit", q, k);
    const int64_t n_row = q->dim[2];
    if (!is_list(base, n_row) || !is_list(n_kv, n_row))
        return st_op_fail(g, ST_OP_CACHE_ATTENTION, "base and n_kv must be i32, one for each row of q", q, base);
    if (index &&
        (index->dtype != SOTTO_I32 || !st_tensor_is_contiguous(index) || index->dim[2] != 1 || index->dim[3] != 1))
        return st_op_fail(g, ST_OP_CACHE_ATTENTION, "index must be i32 [n_list, max_kv]", index, NULL);
    if (window < 0)
        return st_op_fail(g, ST_OP_CACHE_ATTENTION, "a window must not be negative", q, k);
    const int64_t dim[2] = {q->dim[0] * q->dim[1], n_row};
    sotto_tensor *y = st_op_node(g, ST_OP_CACHE_ATTENTION, SOTTO_F32, 2, dim, src, 6);
    y->params.f[0] = scale;
    y->params.i[0] = window;
    return y;
}
