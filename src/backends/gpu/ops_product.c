/* ops_product.c: products with stored matrices, of activations, and convolutions, which are products of overlapping rows. */
#include "backends/gpu/gpu_pack.h"
#include "backends/gpu/gpu_plan.h"
#include "backends/gpu/kernels/params.h"
#include "backends/gpu/ops_dot.h"
#include "base/status.h"
#include "quant/quant.h"

enum {
    MOST_GRID = 65535,
    MOST_ROWS_GEMV = 8, /* with matrix units; without them two rounds of eight are still faster than a tile */
    MOST_ROWS_FEW = 16,
    TILE = 64,      /* of gemm_* and gemm_mma_small_* */
    BIG_TILE = 128, /* of gemm_mma_* */
    EIGHT = 8,
    NO_LIMIT = INT32_MAX / EIGHT * EIGHT
};

typedef struct product_kernels {
    sotto_dtype dtype;
    st_gpu_kernel gemm, gemv, gemv4, gemv8, gemm_mma, gemm_mma_small; /* the last two 0: none */
    bool has_mma;
} product_kernels;

#define ROW(W, dtype)                                                                                     \
    {                                                                                                     \
        dtype, ST_GPU_gemm_##W, ST_GPU_gemv_##W, ST_GPU_gemv4_##W, ST_GPU_gemv8_##W, ST_GPU_gemm_mma_##W, \
            ST_GPU_gemm_mma_small_##W, true                                                               \
    }
static const product_kernels kernels[] = {
    {SOTTO_F32, ST_GPU_gemm_f32, ST_GPU_gemv_f32, ST_GPU_gemv4_f32, ST_GPU_gemv8_f32, ST_GPU_gemm_f32, ST_GPU_gemm_f32,
     false},
    ROW(f16, SOTTO_F16),
    ROW(bf16, SOTTO_BF16),
    ROW(i8, SOTTO_I8),
    ROW(q8_0, SOTTO_Q8_0),
    ROW(q4_0, SOTTO_Q4_0),
    ROW(q4_1, SOTTO_Q4_1),
    ROW(q5_0, SOTTO_Q5_0),
    ROW(q5_1, SOTTO_Q5_1),
    ROW(blocks, SOTTO_Q2_K),
    ROW(blocks, SOTTO_Q3_K),
    ROW(blocks, SOTTO_Q4_K),
    ROW(blocks, SOTTO_Q5_K),
    ROW(blocks, SOTTO_Q6_K),
    ROW(blocks, SOTTO_IQ4_NL),
};
#undef ROW

static const product_kernels *kernels_of(sotto_dtype dtype)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i].dtype == dtype)
            return &kernels[i];
    return NULL;
}

static bool f32_rows(const sotto_tensor *t)
{
    return t->dtype == SOTTO_F32 && (t->stride[0] == sizeof(float) || t->dim[0] <= 1);
}

/* A whole stored matrix in the layout of gpu_pack.h, or plain rows. */
static bool supports_right(const sotto_tensor *w)
{
    st_gpu_layout l;
    if (w->flags & ST_TENSOR_MATRIX)
        return !w->view_of && kernels_of(w->dtype) && st_gpu_layout_of(w->dtype, w->dim[0], st_tensor_n_rows(w), &l);
    return st_is_plain_float(w->dtype) && (w->stride[0] == sotto_dtype_bytes(w->dtype) || w->dim[0] <= 1);
}

static bool fits_grid(const sotto_tensor *node)
{
    return node->dim[2] * node->dim[3] <= MOST_GRID && node->dim[1] / TILE < MOST_GRID;
}

static bool supports_linear(const sotto_tensor *node)
{
    return node->params.act <= SOTTO_ACT_SILU && node->dtype == SOTTO_F32 && st_tensor_is_contiguous(node) &&
           f32_rows(node->src[0]) && supports_right(node->src[1]) && (!node->src[2] || f32_rows(node->src[2])) &&
           (!node->src[3] || f32_rows(node->src[3])) && fits_grid(node);
}

static bool supports_conv(const sotto_tensor *node)
{
    const sotto_tensor *x = node->src[0];
    return supports_linear(node) && (x->stride[1] == (size_t)x->dim[0] * sizeof(float) || x->dim[1] <= 1);
}

static bool supports_matmul(const sotto_tensor *node)
{
    return node->dtype == SOTTO_F32 && st_tensor_is_contiguous(node) && f32_rows(node->src[0]) &&
           supports_right(node->src[1]) && fits_grid(node);
}

static bool by_eight(int a, int b, int c)
{
    return a % EIGHT == 0 && b % EIGHT == 0 && c % EIGHT == 0;
}

/* Leading dimensions of one make room for others: [b3, b2, m] with rows that follow one another is [b3 b2 m]. */
static void flatten(struct product_p *p, int *batch3)
{
    const bool shared = p->w_b2 == 0 && p->w_b3 == 0 && p->x_len == NO_LIMIT;
    if (shared && p->batch2 > 1 && p->x_b2 == p->m * p->x_row && p->y_b2 == p->m * p->y_row &&
        (!p->has_residual || p->r_b2 == p->m * p->r_row) && *batch3 == 1) {
        p->m *= p->batch2;
        p->batch2 = 1;
    }
}

/* The sizes and strides that all products have in common. */
static struct product_p describe(const sotto_tensor *node, const st_gpu_operand *x, const st_gpu_operand *w,
                                 const st_gpu_operand *y)
{
    struct product_p p = {.m = (int)node->dim[1],
                          .n = (int)node->dim[0],
                          .k = w->dim[0],
                          .batch2 = (int)node->dim[2],
                          .x_type = x->dtype,
                          .x_len = NO_LIMIT,
                          .x_row = x->stride[1],
                          .x_b2 = x->stride[2],
                          .x_b3 = x->stride[3],
                          .w_type = w->dtype,
                          .w_row = w->stride[1],
                          .y_type = y->dtype,
                          .y_row = y->stride[1],
                          .y_b2 = y->stride[2],
                          .y_b3 = y->stride[3],
                          .act = node->params.act};
    return p;
}

static bool is_wide(const struct product_p *p, const st_gpu_operand *x)
{
    return by_eight(p->x_row, p->x_first, p->x_len) && by_eight(p->x_b2, p->x_b3, 0) && x->at.offset % 16 == 0;
}

static sotto_status emit(st_gpu_builder *b, const sotto_tensor *node, struct product_p *p, st_gpu_operand *x,
                         const st_gpu_operand *w, const st_gpu_operand *y, sotto_error *err)
{
    const st_gpu_caps *caps = &b->gpu->caps;
    const bool packed = node->src[1]->flags & ST_TENSOR_MATRIX;
    const product_kernels *k = kernels_of(w->dtype);
    st_gpu_operand bias = *x, residual = *x;
    if (node->op != ST_OP_MATMUL && node->src[2]) {
        bias = st_gpu_operand_of(b, node->src[2]);
        p->has_bias = 1;
    }
    if (node->op != ST_OP_MATMUL && node->src[3]) {
        residual = st_gpu_operand_of(b, node->src[3]);
        p->has_residual = 1;
        p->r_type = residual.dtype;
        p->r_row = residual.stride[1];
        p->r_b2 = residual.stride[2];
        p->r_b3 = residual.stride[3];
    }
    p->w_wide = by_eight(p->k, p->w_row, 0) && by_eight(p->w_b2, p->w_b3, 0) && (packed || w->at.offset % 16 == 0);
    int batch3 = (int)node->dim[3];
    flatten(p, &batch3);
    const uint32_t batch = (uint32_t)(p->batch2 * batch3), m = (uint32_t)p->m, n = (uint32_t)p->n;
    const bool by_units = caps->has_mma && k->has_mma && node->params.compute == SOTTO_COMPUTE_F16 && p->w_wide;
    p->x_wide = is_wide(p, x);
    if (st_gpu_takes_dots(b, node, p)) {
        const st_gpu_arg args[] = {x->at, w->at, st_gpu_scales_of(node->src[1]), bias.at, residual.at, y->at};
        return st_gpu_emit_dots(b, node, p, batch, args, err);
    }
    const bool few = m <= (by_units ? MOST_ROWS_GEMV : MOST_ROWS_FEW) && p->x_wide && p->w_wide && p->x_len == NO_LIMIT;
    if (by_units && !few && (p->x_type != SOTTO_F16 || !p->x_wide)) {
        /* rows one after another; of a convolution, whose rows overlap, what they are cut from */
        ST_TRY(st_gpu_halve(b, x, st_gpu_scratch(b, st_gpu_halves_bytes(x)), err));
        p->x_type = SOTTO_F16;
        p->x_row = p->x_len == NO_LIMIT ? x->stride[1] : p->x_row;
        p->x_b2 = x->stride[2];
        p->x_b3 = x->stride[3];
        p->x_wide = is_wide(p, x);
    }
    const bool mma = by_units && p->x_wide;
    const st_gpu_arg args[] = {x->at, w->at, st_gpu_scales_of(node->src[1]), bias.at, residual.at, y->at};
    if (few) {
        const uint32_t rows = m == 1 ? 1 : m <= 4 ? 4 : 8;
        const uint32_t columns = 128 / (uint32_t)caps->subgroup * (rows == 1 ? 1 : 2);
        const st_gpu_kernel kernel = rows == 1 ? k->gemv : rows == 4 ? k->gemv4 : k->gemv8;
        return st_gpu_emit(b, kernel, (n + columns - 1) / columns, (m + rows - 1) / rows, batch, p, sizeof *p, args, 6,
                           err);
    }
    const uint32_t big = ((m + BIG_TILE - 1) / BIG_TILE) * ((n + BIG_TILE - 1) / BIG_TILE) * batch;
    const bool is_big = mma && (int64_t)big * 4 >= (int64_t)caps->n_units * 3;
    const uint32_t tile = is_big ? BIG_TILE : TILE;
    return st_gpu_emit(b,
                       is_big ? k->gemm_mma
                       : mma  ? k->gemm_mma_small
                              : k->gemm,
                       (n + tile - 1) / tile, (m + tile - 1) / tile, batch, p, sizeof *p, args, 6, err);
}

static sotto_status emit_linear(st_gpu_builder *b, const sotto_tensor *node, sotto_error *err)
{
    st_gpu_operand x = st_gpu_operand_of(b, node->src[0]);
    const st_gpu_operand w = st_gpu_operand_of(b, node->src[1]), y = st_gpu_operand_of(b, node);
    struct product_p p = describe(node, &x, &w, &y);
    p.w_row = w.dim[0];
    return emit(b, node, &p, &x, &w, &y, err);
}

static sotto_status emit_conv(st_gpu_builder *b, const sotto_tensor *node, sotto_error *err)
{
    st_gpu_operand x = st_gpu_operand_of(b, node->src[0]);
    const st_gpu_operand w = st_gpu_operand_of(b, node->src[1]), y = st_gpu_operand_of(b, node);
    struct product_p p = describe(node, &x, &w, &y);
    const int stride = node->params.i[1], pad = node->params.i[2], channels = x.dim[0];
    p.w_row = w.dim[0];
    p.x_row = stride * channels;
    p.x_first = -pad * channels;
    p.x_len = x.dim[1] * channels;
    return emit(b, node, &p, &x, &w, &y, err);
}

static sotto_status emit_matmul(st_gpu_builder *b, const sotto_tensor *node, sotto_error *err)
{
    st_gpu_operand x = st_gpu_operand_of(b, node->src[0]);
    const st_gpu_operand w = st_gpu_operand_of(b, node->src[1]), y = st_gpu_operand_of(b, node);
    struct product_p p = describe(node, &x, &w, &y);
    p.w_b2 = w.dim[2] > 1 ? w.stride[2] : 0;
    p.w_b3 = w.dim[3] > 1 ? w.stride[3] : 0;
    return emit(b, node, &p, &x, &w, &y, err);
}

const st_gpu_op st_gpu_op_linear = {supports_linear, emit_linear, 1u << 0, true};
const st_gpu_op st_gpu_op_conv_1d = {supports_conv, emit_conv, 1u << 0, true};
const st_gpu_op st_gpu_op_matmul = {supports_matmul, emit_matmul, 0, false};
