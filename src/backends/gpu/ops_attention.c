/* ops_attention.c: attention over all keys of a window, and of single rows over a cache. */
#include "backends/gpu/gpu_plan.h"
#include "backends/gpu/kernels/params.h"
#include "base/status.h"

enum {
    MOST_GRID = 65535,
    QUERIES = 16,     /* of a group of attention */
    MMA_QUERIES = 64, /* of attention_mma_* and cache_mma_* */
    MANY_ROWS = 65,   /* of a cache: a prompt; a step of many sequences has fewer, whose lists all differ */
    MOST_D = 128,
    CACHE_MOST_D = 256,
    WHOLE_KEYS = 512, /* so many keys of a cache are not cut into parts */
    PART_KEYS = 128,
    MOST_PARTS = 32
};

static bool f32_heads(const sotto_tensor *t)
{
    return t->dtype == SOTTO_F32 && (t->stride[0] == sizeof(float) || t->dim[0] <= 1);
}

/* Of this type, and every row of a head begins at a multiple of eight elements and of 16 bytes. */
static bool eights(const st_gpu_operand *t, sotto_dtype dtype)
{
    return t->dtype == dtype && t->stride[1] % 8 == 0 && t->stride[2] % 8 == 0 && t->stride[3] % 8 == 0 &&
           t->at.offset % 16 == 0;
}

static bool supports_attention(const sotto_tensor *node)
{
    const sotto_tensor *q = node->src[0];
    return st_tensor_is_contiguous(node) && f32_heads(q) && f32_heads(node->src[1]) && f32_heads(node->src[2]) &&
           q->dim[0] <= MOST_D && q->dim[1] <= MOST_GRID && q->dim[3] <= MOST_GRID;
}

/* Those of n operands that matrix units cannot read as they are become halves in the node's scratch. */
static sotto_status halve_some(st_gpu_builder *b, st_gpu_operand *const *x, int n, sotto_error *err)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += eights(x[i], SOTTO_F16) ? 0 : st_gpu_halves_bytes(x[i]);
    st_gpu_arg to = st_gpu_scratch(b, bytes);
    for (int i = 0; i < n; i++) {
        const size_t own = st_gpu_halves_bytes(x[i]);
        if (eights(x[i], SOTTO_F16))
            continue;
        ST_TRY(st_gpu_halve(b, x[i], to, err));
        to.offset += own;
    }
    return SOTTO_OK;
}

static bool has_units(const st_gpu_builder *b, const sotto_tensor *node, int d)
{
    return b->gpu->caps.has_mma && node->params.compute == SOTTO_COMPUTE_F16 && (d == 64 || d == 128);
}

/* q [b, n_q, h, d], k and v [b, n_k, h_kv, d], y [b, n_q, h * d] */
static sotto_status emit_attention(st_gpu_builder *b, const sotto_tensor *node, sotto_error *err)
{
    st_gpu_operand q = st_gpu_operand_of(b, node->src[0]), k = st_gpu_operand_of(b, node->src[1]),
                   v = st_gpu_operand_of(b, node->src[2]);
    const st_gpu_operand y = st_gpu_operand_of(b, node);
    const bool mma = has_units(b, node, q.dim[0]);
    if (mma)
        ST_TRY(halve_some(b, (st_gpu_operand *const[]){&q, &k, &v}, 3, err));
    const struct attention_p p = {.n_q = q.dim[2],
                                  .n_k = k.dim[2],
                                  .h = q.dim[1],
                                  .h_kv = k.dim[1],
                                  .d = q.dim[0],
                                  .q_type = q.dtype,
                                  .q_row = q.stride[2],
                                  .q_head = q.stride[1],
                                  .q_batch = q.stride[3],
                                  .k_type = k.dtype,
                                  .k_row = k.stride[2],
                                  .k_head = k.stride[1],
                                  .k_batch = k.stride[3],
                                  .v_type = v.dtype,
                                  .v_row = v.stride[2],
                                  .v_head = v.stride[1],
                                  .v_batch = v.stride[3],
                                  .y_type = y.dtype,
                                  .y_row = y.stride[1],
                                  .y_batch = y.stride[2],
                                  .causal = node->params.i[0],
                                  .scale = node->params.f[0]};
    const uint32_t queries = mma ? MMA_QUERIES : QUERIES, blocks = ((uint32_t)p.n_q + queries - 1) / queries;
    const st_gpu_kernel kernel = !mma        ? ST_GPU_attention
                                 : p.d == 64 ? ST_GPU_attention_mma_64
                                             : ST_GPU_attention_mma_128;
    const st_gpu_arg args[] = {q.at, k.at, v.at, y.at};
    return st_gpu_emit(b, kernel, blocks, (uint32_t)p.h, (uint32_t)q.dim[3], &p, sizeof p, args, 4, err);
}

/* Eight elements at a time are read at addresses that are multiples of theirs, also when they are kept in halves. */
static bool eights_begin(const sotto_tensor *t)
{
    return !t->view_of || t->view_offset % (8 * sotto_dtype_bytes(t->dtype)) == 0;
}

static bool are_cells(const sotto_tensor *t)
{
    return st_gpu_is_q8_0_rows(t) ||
           (sotto_dtype_block(t->dtype) == 1 && t->stride[0] == sotto_dtype_bytes(t->dtype) && eights_begin(t));
}

static bool supports_cache(const sotto_tensor *node)
{
    const sotto_tensor *q = node->src[0];
    return are_cells(node->src[1]) && are_cells(node->src[2]) && st_tensor_is_contiguous(node) && f32_heads(q) &&
           q->dim[0] <= CACHE_MOST_D && q->dim[0] % 8 == 0 && eights_begin(q);
}

/* Parts that the keys of a row are cut into, so that few rows keep the whole device at work. */
static int parts_of(const st_gpu_caps *caps, const struct cache_p *p)
{
    const int most_keys = p->has_index ? p->max_kv : p->n_cell;
    if (most_keys <= WHOLE_KEYS)
        return 1;
    const int by_work = 2 * caps->n_units / (p->n_row * p->h), by_keys = most_keys / PART_KEYS;
    const int n = by_work < by_keys ? by_work : by_keys;
    return n < 1 ? 1 : n > MOST_PARTS ? MOST_PARTS : n;
}

/* q [n_row, h, d], k and v [n_cell, h_kv, d], y [n_row, h * d] */
static sotto_status emit_cache(st_gpu_builder *b, const sotto_tensor *node, sotto_error *err)
{
    const sotto_tensor *list = node->src[3];
    st_gpu_operand q = st_gpu_operand_of(b, node->src[0]);
    const st_gpu_operand k = st_gpu_operand_of(b, node->src[1]), v = st_gpu_operand_of(b, node->src[2]),
                         base = st_gpu_operand_of(b, node->src[4]), n_kv = st_gpu_operand_of(b, node->src[5]),
                         y = st_gpu_operand_of(b, node), index = list ? st_gpu_operand_of(b, list) : base;
    struct cache_p p = {.n_row = q.dim[2],
                        .n_cell = k.dim[2],
                        .h = q.dim[1],
                        .h_kv = k.dim[1],
                        .d = q.dim[0],
                        .q_type = q.dtype,
                        .q_row = q.stride[2],
                        .q_head = q.stride[1],
                        .k_type = k.dtype,
                        .k_row = k.stride[2],
                        .k_head = k.stride[1],
                        .v_type = v.dtype,
                        .v_row = v.stride[2],
                        .v_head = v.stride[1],
                        .y_type = y.dtype,
                        .y_row = y.stride[1],
                        .has_index = list != NULL,
                        .n_list = list ? index.dim[1] : 1,
                        .max_kv = list ? index.dim[0] : 0,
                        .window = node->params.i[0],
                        .scale = node->params.f[0]};
    const bool narrow = eights(&k, SOTTO_F16) && eights(&v, SOTTO_F16) && eights(&q, q.dtype);
    if (narrow && p.window == 0 && p.n_row >= MANY_ROWS && has_units(b, node, p.d) && p.h <= MOST_GRID) {
        ST_TRY(halve_some(b, (st_gpu_operand *const[]){&q}, 1, err));
        p.q_row = q.stride[2];
        p.q_head = q.stride[1];
        const st_gpu_arg many[] = {q.at, k.at, v.at, index.at, base.at, n_kv.at, y.at};
        return st_gpu_emit(b, p.d == 64 ? ST_GPU_cache_mma_64 : ST_GPU_cache_mma_128,
                           ((uint32_t)p.n_row + MMA_QUERIES - 1) / MMA_QUERIES, (uint32_t)p.h, 1, &p, sizeof p, many, 7,
                           err);
    }
    p.n_split = parts_of(&b->gpu->caps, &p);
    const uint32_t pairs = (uint32_t)(p.n_row * p.h);
    st_gpu_arg parts = n_kv.at;
    if (p.n_split > 1)
        parts = st_gpu_scratch(b, (size_t)pairs * (size_t)p.n_split * (size_t)(p.d + 2) * sizeof(float));
    const st_gpu_arg args[] = {q.at, k.at, v.at, index.at, base.at, n_kv.at, parts, y.at};
    const st_gpu_kernel kernel = narrow && p.d == 64                                   ? ST_GPU_cache_attention_64
                                 : narrow && p.d == 128 && b->gpu->caps.subgroup >= 16 ? ST_GPU_cache_attention_128
                                                                                       : ST_GPU_cache_attention;
    ST_TRY(st_gpu_emit(b, kernel, pairs, (uint32_t)p.n_split, 1, &p, sizeof p, args, 8, err));
    if (p.n_split == 1)
        return SOTTO_OK;
    const st_gpu_arg join[] = {n_kv.at, parts, y.at};
    return st_gpu_emit(b, ST_GPU_cache_join, pairs, 1, 1, &p, sizeof p, join, 3, err);
}

const st_gpu_op st_gpu_op_attention = {supports_attention, emit_attention, 7u, true};
const st_gpu_op st_gpu_op_cache_attention = {supports_cache, emit_cache, 1u << 0, true};
