#include "tensor/op_impl.h"

static sotto_tensor *binary(sotto_graph *g, st_op op, sotto_tensor *a, sotto_tensor *b)
{
    sotto_tensor *const src[] = {a, b};
    sotto_tensor *bad = st_op_bad(g, op, src, 2, 0);
    if (bad)
        return bad;
    if (a->dtype != SOTTO_F32 || b->dtype != SOTTO_F32 || ((a->flags | b->flags) & ST_TENSOR_MATRIX) ||
        !st_op_broadcasts(a, b))
        return st_op_fail(g, op, "expected f32, the second broadcasting to the first", a, b);
    return st_op_node(g, op, SOTTO_F32, SOTTO_MAX_DIMS, a->dim, src, 2);
}

static sotto_tensor *unary(sotto_graph *g, st_op op, sotto_tensor *x, float a, float b)
{
    sotto_tensor *bad = st_op_bad(g, op, &x, 1, 0);
    if (bad)
        return bad;
    if (x->dtype != SOTTO_F32 || (x->flags & ST_TENSOR_MATRIX))
        return st_op_fail(g, op, "expected f32", x, NULL);
    sotto_tensor *y = st_op_node(g, op, SOTTO_F32, SOTTO_MAX_DIMS, x->dim, &x, 1);
    y->params.f[0] = a;
    y->params.f[1] = b;
    return y;
}

sotto_tensor *sotto_add(sotto_graph *g, sotto_tensor *a, sotto_tensor *b)
{
    return binary(g, ST_OP_ADD, a, b);
}

sotto_tensor *sotto_mul(sotto_graph *g, sotto_tensor *a, sotto_tensor *b)
{
    return binary(g, ST_OP_MUL, a, b);
}

sotto_tensor *sotto_glu(sotto_graph *g, sotto_tensor *gate, sotto_tensor *up, sotto_activation act)
{
    sotto_tensor *const src[] = {gate, up};
    sotto_tensor *bad = st_op_bad(g, ST_OP_GLU, src, 2, 0);
    if (bad)
        return bad;
    if (!st_op_is_rows_f32(gate) || !st_op_is_rows_f32(up) || !st_op_same_shape(gate, up))
        return st_op_fail(g, ST_OP_GLU, "expected f32 rows, both of one shape", gate, up);
    if ((int)act < SOTTO_ACT_NONE || act > SOTTO_ACT_GELU_TANH)
        return st_op_fail(g, ST_OP_GLU, "the activation is not a known one", gate, up);
    sotto_tensor *y = st_op_node(g, ST_OP_GLU, SOTTO_F32, SOTTO_MAX_DIMS, gate->dim, src, 2);
    y->params.act = act;
    return y;
}

sotto_tensor *sotto_scale(sotto_graph *g, sotto_tensor *x, float a, float b)
{
    return unary(g, ST_OP_SCALE, x, a, b);
}

sotto_tensor *sotto_gelu(sotto_graph *g, sotto_tensor *x)
{
    return unary(g, ST_OP_GELU, x, 0, 0);
}

sotto_tensor *sotto_silu(sotto_graph *g, sotto_tensor *x)
{
    return unary(g, ST_OP_SILU, x, 0, 0);
}

sotto_tensor *sotto_relu(sotto_graph *g, sotto_tensor *x)
{
    return unary(g, ST_OP_RELU, x, 0, 0);
}

sotto_tensor *sotto_sigmoid(sotto_graph *g, sotto_tensor *x)
{
    return unary(g, ST_OP_SIGMOID, x, 0, 0);
}

sotto_tensor *sotto_tanh(sotto_graph *g, sotto_tensor *x)
{
    return unary(g, ST_OP_TANH, x, 0, 0);
}

sotto_tensor *sotto_sqrt(sotto_graph *g, sotto_tensor *x)
{
    return unary(g, ST_OP_SQRT, x, 0, 0);
}

sotto_tensor *sotto_log10(sotto_graph *g, sotto_tensor *x, float floor)
{
    return unary(g, ST_OP_LOG10, x, floor, 0);
}
