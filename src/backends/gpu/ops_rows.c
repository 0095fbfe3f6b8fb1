/* ops_rows.c: operations on one row at a time: a group of items each. */
#include "backends/gpu/gpu_plan.h"
#include "backends/gpu/kernels/params.h"

#include <math.h>
#include <string.h>

/* x and y; row r of both is (r % dim1, r / dim1 % dim2, r / dim1 / dim2). */
static struct rows_p rows_of(const st_gpu_operand *x, const st_gpu_operand *y)
{
    struct rows_p p = {
        .n = y->dim[0], .dim1 = x->dim[1], .dim2 = x->dim[2], .x_type = (int)x->dtype, .y_type = (int)y->dtype};
    memcpy(p.x_stride, x->stride, sizeof p.x_stride);
    memcpy(p.y_stride, y->stride, sizeof p.y_stride);
    return p;
}

static uint32_t n_rows(const st_gpu_operand *x)
{
    return (uint32_t)x->dim[1] * (uint32_t)x->dim[2] * (uint32_t)x->dim[3];
}

/* Four elements at once may be read from any of its rows that begins a multiple of four into it. */
static bool is_wide(const st_gpu_operand *o)
{
    bool wide = o->at.offset % 16 == 0 && o->stride[0] == 1 && o->dim[0] % 4 == 0;
    for (int a = 1; a < 4; a++)
        wide = wide && (o->dim[a] == 1 || o->stride[a] % 4 == 0);
    return wide;
}

static bool always(const sotto_tensor *node)
{
    (void)node;
    return true;
}

static sotto_status emit_layer_norm(st_gpu_builder *b, const sotto_tensor *node, sotto_error *err)
{
    const st_gpu_operand x = st_gpu_operand_of(b, node->src[0]), w = st_gpu_operand_of(b, node->src[1]),
                         bias = st_gpu_operand_of(b, node->src[2]), y = st_gpu_operand_of(b, node);
    struct rows_p p = rows_of(&x, &y);
    p.wide = is_wide(&x) && is_wide(&w) && is_wide(&bias) && is_wide(&y);
    p.a = node->params.f[0];
    const st_gpu_arg args[] = {x.at, w.at, bias.at, y.at};
    return st_gpu_emit(b, ST_GPU_layer_norm, n_rows(&x), 1, 1, &p, sizeof p, args, 4, err);
}

static sotto_status emit_rms_norm(st_gpu_builder *b, const sotto_tensor *node, sotto_error *err)
{
    const st_gpu_operand x = st_gpu_operand_of(b, node->src[0]), w = st_gpu_operand_of(b, node->src[1]),
                         y = st_gpu_operand_of(b, node);
    struct rows_p p = rows_of(&x, &y);
    p.wide = is_wide(&x) && is_wide(&w) && is_wide(&y);
    p.a = node->params.f[0];
    const st_gpu_arg args[] = {x.at, w.at, y.at};
    return st_gpu_emit(b, ST_GPU_rms_norm, n_rows(&x), 1, 1, &p, sizeof p, args, 3, err);
}

static sotto_status emit_softmax(st_gpu_builder *b, const sotto_tensor *node, sotto_error *err)
{
    const st_gpu_operand x = st_gpu_operand_of(b, node->src[0]), y = st_gpu_operand_of(b, node);
    const st_gpu_operand mask = node->src[1] ? st_gpu_operand_of(b, node->src[1]) : x;
    struct rows_p p = rows_of(&x, &y);
    p.has_mask = node->src[1] != NULL;
    p.m_type = (int)mask.dtype;
    for (int a = 0; a < 4; a++)
        p.m_stride[a] = mask.dim[a] == 1 ? 0 : mask.stride[a];
    p.a = node->params.f[0];
    const st_gpu_arg args[] = {x.at, mask.at, y.at};
    return st_gpu_emit(b, ST_GPU_softmax, n_rows(&x), 1, 1, &p, sizeof p, args, 3, err);
}

/* The result has one dimension less. */
static sotto_status emit_argmax(st_gpu_builder *b, const sotto_tensor *node, sotto_error *err)
{
    const st_gpu_operand x = st_gpu_operand_of(b, node->src[0]), y = st_gpu_operand_of(b, node);
    struct rows_p p = rows_of(&x, &y);
    p.n = x.dim[0];
    memcpy(p.y_stride + 1, y.stride, 3 * sizeof *p.y_stride);
    const st_gpu_arg args[] = {x.at, y.at};
    return st_gpu_emit(b, ST_GPU_argmax, n_rows(&x), 1, 1, &p, sizeof p, args, 2, err);
}

static sotto_status emit_power(st_gpu_builder *b, const sotto_tensor *node, sotto_error *err)
{
    const st_gpu_operand x = st_gpu_operand_of(b, node->src[0]), y = st_gpu_operand_of(b, node);
    const struct rows_p p = rows_of(&x, &y);
    const st_gpu_arg args[] = {x.at, y.at};
    return st_gpu_emit(b, ST_GPU_power, n_rows(&x), 1, 1, &p, sizeof p, args, 2, err);
}

/* Two rows of k numbers from each of x. */
static struct top_k_p pairs_of(const st_gpu_operand *x, const st_gpu_operand *y)
{
    struct top_k_p p = {.n = x->dim[0], .k = y->dim[0], .dim1 = x->dim[1], .x_type = (int)x->dtype};
    memcpy(p.x_stride, x->stride, sizeof p.x_stride);
    memcpy(p.y_stride, y->stride, sizeof p.y_stride);
    return p;
}

static sotto_status emit_top_k(st_gpu_builder *b, const sotto_tensor *node, sotto_error *err)
{
    const st_gpu_operand x = st_gpu_operand_of(b, node->src[0]), y = st_gpu_operand_of(b, node);
    const struct top_k_p p = pairs_of(&x, &y);
    const st_gpu_arg args[] = {x.at, y.at};
    return st_gpu_emit(b, ST_GPU_top_k, n_rows(&x), 1, 1, &p, sizeof p, args, 2, err);
}

static sotto_status emit_block_sums(st_gpu_builder *b, const sotto_tensor *node, sotto_error *err)
{
    const st_gpu_operand x = st_gpu_operand_of(b, node->src[0]), y = st_gpu_operand_of(b, node);
    const struct top_k_p p = pairs_of(&x, &y);
    const st_gpu_arg args[] = {x.at, y.at};
    return st_gpu_emit(b, ST_GPU_block_sums, n_rows(&x) * (((uint32_t)p.k + 3) / 4), 1, 1, &p, sizeof p, args, 2, err);
}

static sotto_status emit_rope(st_gpu_builder *b, const sotto_tensor *node, sotto_error *err)
{
    const st_gpu_operand x = st_gpu_operand_of(b, node->src[0]), positions = st_gpu_operand_of(b, node->src[1]),
                         y = st_gpu_operand_of(b, node);
    const st_gpu_arg factors = node->src[2] ? st_gpu_operand_of(b, node->src[2]).at : x.at;
    struct rope_p p = {.d = x.dim[0],
                       .heads = x.dim[1],
                       .n = x.dim[2],
                       .n_rot = node->params.i[0],
                       .halves = node->params.i[1],
                       .has_factors = node->src[2] != NULL,
                       .all_positions = positions.dim[1] > 1,
                       .x_type = (int)x.dtype,
                       .y_type = (int)y.dtype,
                       .turns = (float)(node->params.f[1] / 6.283185307179586),
                       .magnitude = node->params.f[2]};
    memcpy(p.x_stride, x.stride, sizeof p.x_stride);
    memcpy(p.y_stride, y.stride, sizeof p.y_stride);
    /* ten bits of the step stay exact times the number of a pair */
    const double step = p.n_rot > 0 ? 2 * log2(node->params.f[0]) / p.n_rot : 0;
    p.step = (float)(rint(step * 0x1p10) * 0x1p-10);
    p.step_rest = (float)(step - p.step);
    const st_gpu_arg args[] = {x.at, positions.at, factors, y.at};
    return st_gpu_emit(b, ST_GPU_rope, (uint32_t)x.dim[2] * (uint32_t)x.dim[3], 1, 1, &p, sizeof p, args, 4, err);
}

/* What norms read is added to from layer to layer and stays f32. */
const st_gpu_op st_gpu_op_layer_norm = {always, emit_layer_norm, 0, true};
const st_gpu_op st_gpu_op_rms_norm = {always, emit_rms_norm, 0, true};
const st_gpu_op st_gpu_op_softmax = {always, emit_softmax, 1, true};
const st_gpu_op st_gpu_op_argmax = {always, emit_argmax, 0, false};
const st_gpu_op st_gpu_op_top_k = {always, emit_top_k, 0, false};
const st_gpu_op st_gpu_op_block_sums = {always, emit_block_sums, 0, false};
const st_gpu_op st_gpu_op_rope = {always, emit_rope, 1, true};
const st_gpu_op st_gpu_op_power = {always, emit_power, 0, false};
