/* ops_element.c: operations of one element of the result from one element of each source, copies among them. */
#include <string.h>

#include "backends/gpu/gpu_plan.h"
#include "backends/gpu/kernels/params.h"
#include "base/status.h"
#include "quant/blocks.h"

enum { ITEMS = 256 };

/* The numbers of element.krn */
typedef enum unary_op { COPY, SCALE, GELU, SILU, RELU, SIGMOID, TANH, SQRT, LOG10, HALF } unary_op;
typedef enum binary_op { ADD, MUL, GLU } binary_op;

/* A shape and the strides of what is walked over it, with as few dimensions as do: those of one element are left out, and
 * neighbours that lie one after another everywhere are one. */
typedef struct walk {
    int n; /* elements */
    int dim[4], stride[3][4];
} walk;

static void add_dimension(walk *w, int *n_dims, int dim, const int *stride)
{
    const int last = *n_dims - 1;
    bool follows = last >= 0;
    for (int s = 0; s < 3 && follows; s++)
        follows = stride[s] == w->stride[s][last] * w->dim[last];
    if (follows) {
        w->dim[last] *= dim;
        return;
    }
    w->dim[*n_dims] = dim;
    for (int s = 0; s < 3; s++)
        w->stride[s][*n_dims] = stride[s];
    ++*n_dims;
}

/* `shape` is y or a source; a source's dimension of one element stays where it is. */
static walk walk_of(const st_gpu_operand *shape, const st_gpu_operand *const *o, int n)
{
    walk w = {.n = 1};
    int n_dims = 0;
    for (int a = 0; a < 4; a++) {
        int stride[3] = {0};
        for (int s = 0; s < n; s++)
            stride[s] = o[s]->dim[a] == 1 ? 0 : o[s]->stride[a];
        w.n *= shape->dim[a];
        if (shape->dim[a] > 1)
            add_dimension(&w, &n_dims, shape->dim[a], stride);
    }
    for (int a = n_dims; a < 4; a++)
        w.dim[a] = 1;
    return w;
}

/* Four neighbours may be read of operand s at once wherever a row of four begins. */
static bool is_wide(const walk *w, int s, const st_gpu_operand *o)
{
    return o->at.offset % 16 == 0 && w->dim[0] % 4 == 0 && w->stride[s][0] == 1 && w->stride[s][1] % 4 == 0 &&
           w->stride[s][2] % 4 == 0 && w->stride[s][3] % 4 == 0;
}

static uint32_t groups(int n, int wide)
{
    return ((uint32_t)n / (wide ? 4 : 1) + ITEMS - 1) / ITEMS;
}

static sotto_status emit_map(st_gpu_builder *b, const st_gpu_operand *x, const st_gpu_operand *y, unary_op op, float a,
                             float c, sotto_error *err)
{
    const walk w = walk_of(x, (const st_gpu_operand *[]){x, y}, 2);
    struct unary_p p = {.n = w.n, .x_type = (int)x->dtype, .y_type = (int)y->dtype, .op = (int)op, .a = a, .b = c};
    memcpy(p.dim, w.dim, sizeof p.dim);
    memcpy(p.x_stride, w.stride[0], sizeof p.x_stride);
    memcpy(p.y_stride, w.stride[1], sizeof p.y_stride);
    p.wide = is_wide(&w, 0, x) && is_wide(&w, 1, y);
    const st_gpu_arg args[] = {x->at, y->at};
    return st_gpu_emit(b, ST_GPU_unary, groups(w.n, p.wide), 1, 1, &p, sizeof p, args, 2, err);
}

size_t st_gpu_halves_bytes(const st_gpu_operand *x)
{
    const size_t n = (size_t)x->dim[0] * (size_t)x->dim[1] * (size_t)x->dim[2] * (size_t)x->dim[3];
    return (2 * n + 255) / 256 * 256;
}

sotto_status st_gpu_halve(st_gpu_builder *b, st_gpu_operand *x, st_gpu_arg to, sotto_error *err)
{
    const size_t n = st_gpu_halves_bytes(x) / 2;
    if (n > INT32_MAX)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%zu elements of a GPU's operand: expected at most %d", n, INT32_MAX);
    st_gpu_operand y = *x;
    y.at = to;
    y.dtype = SOTTO_F16;
    for (int a = 0, stride = 1; a < 4; stride *= y.dim[a++])
        y.stride[a] = stride;
    ST_TRY(emit_map(b, x, &y, HALF, 0, 0, err));
    *x = y;
    return SOTTO_OK;
}

static sotto_status emit_unary(st_gpu_builder *b, const sotto_tensor *node, unary_op op, sotto_error *err)
{
    const st_gpu_operand x = st_gpu_operand_of(b, node->src[0]), y = st_gpu_operand_of(b, node);
    return emit_map(b, &x, &y, op, node->params.f[0], node->params.f[1], err);
}

static sotto_status emit_binary(st_gpu_builder *b, const sotto_tensor *node, binary_op op, sotto_error *err)
{
    const st_gpu_operand u = st_gpu_operand_of(b, node->src[0]), v = st_gpu_operand_of(b, node->src[1]),
                         y = st_gpu_operand_of(b, node);
    const walk w = walk_of(&y, (const st_gpu_operand *[]){&u, &v, &y}, 3);
    struct binary_p p = {.n = w.n,
                         .a_type = (int)u.dtype,
                         .b_type = (int)v.dtype,
                         .y_type = (int)y.dtype,
                         .op = (int)op + (op == GLU ? node->params.act : 0)};
    memcpy(p.dim, w.dim, sizeof p.dim);
    memcpy(p.a_stride, w.stride[0], sizeof p.a_stride);
    memcpy(p.b_stride, w.stride[1], sizeof p.b_stride);
    memcpy(p.y_stride, w.stride[2], sizeof p.y_stride);
    p.wide = is_wide(&w, 0, &u) && (is_wide(&w, 1, &v) || w.stride[1][0] == 0) && is_wide(&w, 2, &y);
    const st_gpu_arg args[] = {u.at, v.at, y.at};
    return st_gpu_emit(b, ST_GPU_binary, groups(w.n, p.wide), 1, 1, &p, sizeof p, args, 3, err);
}

static bool always(const sotto_tensor *node)
{
    (void)node;
    return true;
}

#define ELEMENT(NAME, EMIT, OP, ...)                                                               \
    static sotto_status emit_##NAME(st_gpu_builder *b, const sotto_tensor *node, sotto_error *err) \
    {                                                                                              \
        return EMIT(b, node, OP, err);                                                             \
    }                                                                                              \
    const st_gpu_op st_gpu_op_##NAME = {always, emit_##NAME, __VA_ARGS__};

/* All but copies may be computed in place, where both sides must have elements of one size: they stay f32. */
ELEMENT(add, emit_binary, ADD, 0, false)
ELEMENT(mul, emit_binary, MUL, 0, false)
ELEMENT(glu, emit_binary, GLU, 0, false)
ELEMENT(scale, emit_unary, SCALE, 0, false)
ELEMENT(gelu, emit_unary, GELU, 0, false)
ELEMENT(silu, emit_unary, SILU, 0, false)
ELEMENT(relu, emit_unary, RELU, 0, false)
ELEMENT(sigmoid, emit_unary, SIGMOID, 0, false)
ELEMENT(tanh, emit_unary, TANH, 0, false)
ELEMENT(sqrt, emit_unary, SQRT, 0, false)
ELEMENT(log10, emit_unary, LOG10, 0, false)
static bool supports_copy(const sotto_tensor *node)
{
    return node->dtype != SOTTO_Q8_0 ||
           (st_gpu_is_q8_0_rows(node) && node->src[0]->dtype == SOTTO_F32 && node->src[0]->stride[0] == sizeof(float));
}

/* copy_into as well: its node is a view of the destination */
static sotto_status emit_copy(st_gpu_builder *b, const sotto_tensor *node, sotto_error *err)
{
    if (node->dtype != SOTTO_Q8_0)
        return emit_unary(b, node, COPY, err);
    const st_gpu_operand x = st_gpu_operand_of(b, node->src[0]), y = st_gpu_operand_of(b, node);
    struct to_blocks_p p = {.width = y.dim[0] / ST_BLOCK, .dim1 = y.dim[1], .dim2 = y.dim[2], .x_type = (int)x.dtype};
    p.n = p.width * y.dim[1] * y.dim[2] * y.dim[3];
    memcpy(p.x_stride, x.stride + 1, sizeof p.x_stride);
    memcpy(p.y_stride, y.stride + 1, sizeof p.y_stride);
    const st_gpu_arg args[] = {x.at, y.at};
    return st_gpu_emit(b, ST_GPU_to_blocks, ((uint32_t)p.n + 127) / 128, 1, 1, &p, sizeof p, args, 2, err);
}
const st_gpu_op st_gpu_op_copy = {supports_copy, emit_copy, 1, true};

static sotto_status emit_concat(st_gpu_builder *b, const sotto_tensor *node, sotto_error *err)
{
    st_gpu_operand y = st_gpu_operand_of(b, node);
    const int axis = node->params.i[0];
    const size_t element = sotto_dtype_bytes(y.dtype);
    for (int s = 0; s < 2; s++) {
        const st_gpu_operand x = st_gpu_operand_of(b, node->src[s]);
        y.dim[axis] = x.dim[axis];
        ST_TRY(emit_map(b, &x, &y, COPY, 0, 0, err));
        y.at.offset += (size_t)x.dim[axis] * (size_t)y.stride[axis] * element;
    }
    return SOTTO_OK;
}

const st_gpu_op st_gpu_op_concat = {always, emit_concat, 3, true};
