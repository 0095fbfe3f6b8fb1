#include "backends/gpu/ops_dot.h"

#include "backends/gpu/kernels/params.h"
#include "base/status.h"

enum { BLOCK = 32, BLOCK_BYTES = 8, EIGHT = 8, GROUP = 128 };

static const struct {
    sotto_dtype dtype;
    st_gpu_kernel one, four, eight;
} kernels[] = {
#define ROW(W, dtype)                                              \
    {                                                              \
        dtype, ST_GPU_dots_##W, ST_GPU_dots4_##W, ST_GPU_dots8_##W \
    }
    ROW(q8_0, SOTTO_Q8_0),   ROW(q4_0, SOTTO_Q4_0),   ROW(q4_1, SOTTO_Q4_1),     ROW(q5_0, SOTTO_Q5_0),
    ROW(q5_1, SOTTO_Q5_1),   ROW(blocks, SOTTO_Q2_K), ROW(blocks, SOTTO_Q3_K),   ROW(blocks, SOTTO_Q4_K),
    ROW(blocks, SOTTO_Q5_K), ROW(blocks, SOTTO_Q6_K), ROW(blocks, SOTTO_IQ4_NL),
#undef ROW
};
enum { N_KERNELS = sizeof kernels / sizeof *kernels };

static int row_of(sotto_dtype dtype)
{
    int i = 0;
    while (i < N_KERNELS && kernels[i].dtype != dtype)
        i++;
    return i;
}

bool st_gpu_takes_dots(const st_gpu_builder *b, const sotto_tensor *node, const struct product_p *p)
{
    return b->gpu->caps.has_dot4 && node->op == ST_OP_LINEAR && node->params.compute == SOTTO_COMPUTE_INT8 &&
           (node->src[1]->flags & ST_TENSOR_MATRIX) && row_of(node->src[1]->dtype) < N_KERNELS &&
           p->m <= ST_GPU_DOT_ROWS && p->k > 0;
}

/* The left side as bytes, in scratch: products that follow each other and read the same find it there. */
static sotto_status emit_bytes(st_gpu_builder *b, const sotto_tensor *node, const struct product_p *p, int n_rows,
                               st_gpu_arg x, bool pairs, st_gpu_arg bytes[2], sotto_error *err)
{
    const sotto_tensor *left = node->src[0];
    const size_t n = (size_t)n_rows * (size_t)p->k;
    if (b->left == left && b->left_pairs == pairs) {
        bytes[0] = bytes[1] = (st_gpu_arg){&b->gpu->scratch, 0};
        bytes[1].offset += n;
        return SOTTO_OK;
    }
    bytes[0] = bytes[1] = st_gpu_scratch(b, n + n / BLOCK * BLOCK_BYTES);
    bytes[1].offset += n;
    const struct bytes_p q = {.n_rows = n_rows,
                              .k = p->k,
                              .dim1 = p->m,
                              .dim2 = p->batch2,
                              .x_stride = {1, p->x_row, p->x_b2, p->x_b3},
                              .x_type = p->x_type,
                              .pairs = pairs,
                              .wide = p->x_wide};
    const st_gpu_arg args[] = {x, bytes[0], bytes[1]};
    ST_TRY(
        st_gpu_emit(b, ST_GPU_to_bytes, (uint32_t)((n / EIGHT + GROUP - 1) / GROUP), 1, 1, &q, sizeof q, args, 3, err));
    /* what is stored may be written to while the graph runs */
    b->left = (left->view_of ? left->view_of : left)->flags & ST_TENSOR_STORED ? NULL : left;
    b->left_pairs = pairs;
    return SOTTO_OK;
}

sotto_status st_gpu_emit_dots(st_gpu_builder *b, const sotto_tensor *node, const struct product_p *p, uint32_t n_batch,
                              const st_gpu_arg args[6], sotto_error *err)
{
    const int type = row_of(node->src[1]->dtype);
    const uint32_t m = (uint32_t)p->m, n = (uint32_t)p->n, rows = m == 1 ? 1 : m <= 4 ? 4 : 8;
    const uint32_t columns = GROUP / (uint32_t)b->gpu->caps.subgroup * (rows == 1 ? 1 : 2);
    st_gpu_arg bytes[2];
    ST_TRY(emit_bytes(b, node, p, (int)(m * n_batch), args[0], kernels[type].dtype != SOTTO_Q8_0, bytes, err));
    struct product_p q = *p;
    q.x_row = p->k;
    q.x_b2 = p->m * p->k;
    q.x_b3 = q.x_b2 * p->batch2;
    const st_gpu_arg all[] = {bytes[0], bytes[1], args[1], args[2], args[3], args[4], args[5]};
    return st_gpu_emit(b,
                       rows == 1   ? kernels[type].one
                       : rows == 4 ? kernels[type].four
                                   : kernels[type].eight,
                       (n + columns - 1) / columns, (m + rows - 1) / rows, n_batch, &q, sizeof q, all, 7, err);
}
