#include "tensor/op_impl.h"

sotto_tensor *st_op_fail(sotto_graph *g, st_op op, const char *what, const sotto_tensor *a, const sotto_tensor *b)
{
    char sa[96] = "", sb[96] = "";
    if (a)
        st_tensor_shape_text(a, sa, sizeof sa);
    if (b)
        st_tensor_shape_text(b, sb, sizeof sb);
    return st_graph_fail(g, SOTTO_E_ARGUMENT, "%s: %s (%s %s%s%s%s%s)", st_op_name(op), what,
                         a ? sotto_dtype_name(a->dtype) : "none", sa, b ? " and " : "",
                         b ? sotto_dtype_name(b->dtype) : "", b ? " " : "", sb);
}

sotto_tensor *st_op_bad(sotto_graph *g, st_op op, sotto_tensor *const *src, int n_src, unsigned optional)
{
    for (int i = 0; i < n_src; i++)
        if (!src[i] && !(optional & 1u << i))
            return st_graph_fail(g, SOTTO_E_ARGUMENT, "%s: source %d is NULL", st_op_name(op), i);
    if (st_graph_poisoned(g, src, n_src))
        return st_graph_fail(g, SOTTO_E_ARGUMENT, "%s: a source is the result of a failed operation", st_op_name(op));
    return NULL;
}

sotto_tensor *st_op_node(sotto_graph *g, st_op op, sotto_dtype dtype, int n_dims, const int64_t *dim,
                         sotto_tensor *const *src, int n_src)
{
    sotto_tensor *t = st_graph_new_node(g, op, dtype, n_dims, dim);
    if (!(t->flags & ST_TENSOR_POISON))
        for (int i = 0; i < n_src; i++)
            t->src[i] = src[i];
    return t;
}

bool st_op_is_rows_f32(const sotto_tensor *t)
{
    return t->dtype == SOTTO_F32 && !(t->flags & ST_TENSOR_MATRIX) && st_tensor_has_rows(t);
}

bool st_op_is_vector(const sotto_tensor *t, int64_t n)
{
    return t->dtype == SOTTO_F32 && sotto_tensor_count(t) == n && t->dim[0] == n && st_tensor_is_contiguous(t) &&
           !(t->flags & ST_TENSOR_MATRIX);
}

bool st_op_is_weight_type(sotto_dtype dtype)
{
    static const sotto_dtype types[] = {SOTTO_F32,  SOTTO_F16,  SOTTO_BF16, SOTTO_Q4_0, SOTTO_Q4_1,
                                        SOTTO_Q5_0, SOTTO_Q5_1, SOTTO_Q8_0, SOTTO_I8,   SOTTO_Q2_K,
                                        SOTTO_Q3_K, SOTTO_Q4_K, SOTTO_Q5_K, SOTTO_Q6_K, SOTTO_IQ4_NL};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i] == dtype)
            return true;
    return false;
}

bool st_op_is_cache_type(sotto_dtype dtype)
{
    return dtype == SOTTO_F32 || dtype == SOTTO_F16 || dtype == SOTTO_BF16 || dtype == SOTTO_Q8_0;
}

bool st_op_same_shape(const sotto_tensor *a, const sotto_tensor *b)
{
    for (int i = 0; i < SOTTO_MAX_DIMS; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

bool st_op_broadcasts(const sotto_tensor *a, const sotto_tensor *b)
{
    for (int i = 0; i < SOTTO_MAX_DIMS; i++)
        if (b->dim[i] != a->dim[i] && b->dim[i] != 1)
            return false;
    return true;
}
