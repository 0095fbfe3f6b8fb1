/* ops_window.c: windows over images. */
#include "backends/gpu/gpu_pack.h"
#include "backends/gpu/gpu_plan.h"
#include "backends/gpu/kernels/params.h"
#include "quant/quant.h"

#include <string.h>

enum { TILE = 64, EIGHT = 8 }; /* of conv_2d in window.krn */

static struct window_p window_of(const sotto_tensor *node, const st_gpu_operand *x, const st_gpu_operand *y)
{
    struct window_p p = {.c = x->dim[0],
                         .x_type = (int)x->dtype,
                         .m = y->dim[1] * y->dim[2] * y->dim[3],
                         .n = y->dim[0],
                         .k = node->params.i[0] * node->params.i[1] * x->dim[0],
                         .y_row = y->stride[1],
                         .y_type = (int)y->dtype,
                         .act = node->params.act};
    for (int a = 0; a < 2; a++) {
        p.size[a] = x->dim[1 + a];
        p.out[a] = y->dim[1 + a];
        p.window[a] = node->params.i[a];
        p.step[a] = node->params.i[2 + a];
        p.pad[a] = node->params.i[4 + a];
        p.dilation[a] = node->params.i[6 + a];
    }
    memcpy(p.x_stride, x->stride, sizeof p.x_stride);
    return p;
}

static bool supports_im2col(const sotto_tensor *node)
{
    (void)node;
    return true;
}

static sotto_status emit_im2col(st_gpu_builder *b, const sotto_tensor *node, sotto_error *err)
{
    const st_gpu_operand x = st_gpu_operand_of(b, node->src[0]), y = st_gpu_operand_of(b, node);
    const struct window_p p = window_of(node, &x, &y);
    const st_gpu_arg args[] = {x.at, y.at};
    return st_gpu_emit(b, ST_GPU_im2col, (uint32_t)p.m, 1, 1, &p, sizeof p, args, 2, err);
}

static bool supports_conv_2d(const sotto_tensor *node)
{
    const sotto_tensor *w = node->src[1];
    st_gpu_layout l;
    if (w->dim[1] > 65535 * TILE || node->params.act > SOTTO_ACT_SILU)
        return false;
    if (w->flags & ST_TENSOR_MATRIX)
        return !w->view_of && !st_gpu_is_blocks(w->dtype) && st_gpu_layout_of(w->dtype, w->dim[0], w->dim[1], &l);
    return st_is_plain_float(w->dtype);
}

static sotto_status emit_conv_2d(st_gpu_builder *b, const sotto_tensor *node, sotto_error *err)
{
    const st_gpu_operand x = st_gpu_operand_of(b, node->src[0]), w = st_gpu_operand_of(b, node->src[1]),
                         y = st_gpu_operand_of(b, node);
    const st_gpu_arg bias = node->src[2] ? st_gpu_operand_of(b, node->src[2]).at : x.at;
    struct window_p p = window_of(node, &x, &y);
    p.w_type = (int)w.dtype;
    p.has_bias = node->src[2] != NULL;
    p.eights = p.c % EIGHT == 0 && p.x_stride[0] == 1;
    p.x_wide =
        p.x_stride[1] % EIGHT == 0 && p.x_stride[2] % EIGHT == 0 && p.x_stride[3] % EIGHT == 0 && x.at.offset % 16 == 0;
    p.w_wide = p.k % EIGHT == 0 && ((node->src[1]->flags & ST_TENSOR_MATRIX) || w.at.offset % 16 == 0);
    const st_gpu_arg args[] = {x.at, w.at, st_gpu_scales_of(node->src[1]), bias, y.at};
    return st_gpu_emit(b, ST_GPU_conv_2d, ((uint32_t)p.m + TILE - 1) / TILE, ((uint32_t)p.n + TILE - 1) / TILE, 1, &p,
                       sizeof p, args, 5, err);
}

const st_gpu_op st_gpu_op_im2col = {supports_im2col, emit_im2col, 1, true};
const st_gpu_op st_gpu_op_conv_2d = {supports_conv_2d, emit_conv_2d, 1, true};
