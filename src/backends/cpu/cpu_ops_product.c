/* cpu_ops_product.c: linear, matmul, conv_1d and conv_2d. All are products of rows with panels: packed weights as they are stored,
 * anything else packed into shared scratch in a first phase. Many rows are shared out by rows, so that a thread packs its
 * rows once and keeps them; few rows by panels, so that every thread streams its own part of the weights. */
#include <string.h>

#include "backends/cpu/cpu_chain.h"
#include "backends/cpu/cpu_exec.h"
#include "backends/cpu/cpu_gemm.h"
#include "sotto/quant.h"

enum { PANELS_AT_ONCE_BYTES = 1 << 20 }; /* long contiguous reads keep the prefetchers busy */

/* One product or a batch of them over right sides of the same shape. */
typedef struct product {
    st_cpu_left left;
    const sotto_tensor *w; /* right side as a tensor: [.., n, k] */
    int64_t m, n, k;       /* of one product */
    int64_t n_batch;       /* products; for linear and conv_1d all rows are one product */
    bool stored_packed, bf16, fine, int8, words;
    st_cpu_wtype type;
} product;

static int64_t batches_of_w(const product *p)
{
    return p->n_batch > 1 ? p->w->dim[2] * p->w->dim[3] : 1;
}

/* A tensor's rows as the left side; false when the strides are not whole floats. */
static bool left_of(const sotto_tensor *x, st_cpu_left *left)
{
    *left = (st_cpu_left){.n1 = x->dim[1],
                          .n2 = x->dim[2],
                          .stride1 = (ptrdiff_t)(x->stride[1] / sizeof(float)),
                          .stride2 = (ptrdiff_t)(x->stride[2] / sizeof(float)),
                          .stride3 = (ptrdiff_t)(x->stride[3] / sizeof(float))};
    return st_cpu_f32_rows(x) && x->stride[1] % sizeof(float) == 0 && x->stride[2] % sizeof(float) == 0 &&
           x->stride[3] % sizeof(float) == 0;
}

static void describe_linear(const sotto_tensor *node, product *p)
{
    memset(p, 0, sizeof *p);
    left_of(node->src[0], &p->left);
    p->w = node->src[1];
    p->m = st_tensor_n_rows(node);
    p->n = p->w->dim[1];
    p->k = p->w->dim[0];
    p->n_batch = 1;
    p->bf16 = st_cpu_takes_bf16(node);
    p->fine = node->params.compute == SOTTO_COMPUTE_FINE;
    p->int8 = node->params.compute == SOTTO_COMPUTE_INT8;
    p->words = node->params.compute == SOTTO_COMPUTE_WORDS;
    p->stored_packed = st_cpu_packed(p->w, &p->type);
    if (!p->stored_packed)
        p->type = ST_CPU_W_F32;
}

static void describe_conv(const sotto_tensor *node, product *p)
{
    describe_linear(node, p);
    const sotto_tensor *x = node->src[0];
    const int stride = node->params.i[1], pad = node->params.i[2];
    const int64_t c_in = x->dim[0];
    p->left = (st_cpu_left){.n1 = node->dim[1],
                            .n2 = x->dim[2],
                            .stride1 = (ptrdiff_t)(stride * c_in),
                            .stride2 = (ptrdiff_t)(x->stride[2] / sizeof(float)),
                            .stride3 = (ptrdiff_t)(x->stride[3] / sizeof(float)),
                            .origin = -(ptrdiff_t)(pad * c_in),
                            .clip = x->dim[1] * c_in};
}

static void describe_matmul(const sotto_tensor *node, product *p)
{
    memset(p, 0, sizeof *p);
    left_of(node->src[0], &p->left);
    p->w = node->src[1];
    p->m = node->dim[1];
    p->n = p->w->dim[1];
    p->k = p->w->dim[0];
    p->n_batch = node->dim[2] * node->dim[3];
    p->type = ST_CPU_W_F32;
}

/* ---- needs ---- */

static bool by_panels(const product *p)
{
    return p->n_batch == 1 && p->m <= ST_CPU_ROW_BLOCK;
}

static st_cpu_right right_of(const product *p, const void *packed)
{
    return (st_cpu_right){p->type, p->n, p->k, packed, p->bf16, p->fine, p->int8, p->words};
}

/* Rows of one unit when sharing out by rows: a tile, or for a batch a whole block, since a unit must not span products. */
static int64_t unit_rows(const st_cpu_kernels *k, const product *p)
{
    const st_cpu_right right = right_of(p, NULL);
    return p->n_batch > 1 ? ST_CPU_ROW_BLOCK : st_cpu_gemm_tile(k, &right, p->m);
}

static void need_product(const st_cpu_kernels *k, const product *p, st_cpu_need *need)
{
    const int64_t rows = p->m < ST_CPU_ROW_BLOCK ? p->m : ST_CPU_ROW_BLOCK, unit = unit_rows(k, p);
    need->n_phase = 2;
    need->units[0] = 0;
    need->thread_floats = st_cpu_gemm_scratch(rows, p->k);
    if (!p->stored_packed) {
        need->units[0] = st_cpu_panels(p->n) * batches_of_w(p);
        need->shared_floats = st_cpu_panel_bytes(ST_CPU_W_F32, p->k) / sizeof(float) * (size_t)need->units[0];
        if (p->w->dtype != SOTTO_F32 && need->thread_floats < (size_t)(ST_CPU_PANEL * p->k))
            need->thread_floats = (size_t)(ST_CPU_PANEL * p->k);
    }
    need->units[1] = by_panels(p) ? st_cpu_panels(p->n) : (p->m + unit - 1) / unit * p->n_batch;
    if (p->m == 0 || p->n == 0)
        need->units[0] = need->units[1] = 0;
    if (need->units[0] == 0) { /* nothing to pack: the product is the only phase */
        need->n_phase = 1;
        need->units[0] = need->units[1];
    }
}

/* ---- phase: packing what is not stored packed ---- */

static void pack_right(st_cpu_run *r, const product *p)
{
    const int64_t panels = st_cpu_panels(p->n), k_padded = st_cpu_blocks(ST_CPU_W_F32, p->k) * ST_CPU_BLOCK;
    const size_t panel_floats = (size_t)k_padded * ST_CPU_PANEL;
    const sotto_tensor *w = p->w;
    int64_t start, count;
    while ((count = st_cpu_take(r, 8, &start)) > 0) {
        for (int64_t u = start; u < start + count; u++) {
            const int64_t batch = u / panels, first = u % panels * ST_CPU_PANEL;
            const int rows = (int)(p->n - first < ST_CPU_PANEL ? p->n - first : ST_CPU_PANEL);
            const char *data = (const char *)st_tensor_data(w) + (size_t)(batch % w->dim[2]) * w->stride[2] +
                               (size_t)(batch / w->dim[2]) * w->stride[3] + (size_t)first * w->stride[1];
            const float *x = (const float *)(const void *)data;
            ptrdiff_t stride = (ptrdiff_t)(w->stride[1] / sizeof(float));
            if (w->dtype != SOTTO_F32) {
                for (int i = 0; i < rows; i++)
                    (void)sotto_row_to_f32(w->dtype, data + (size_t)i * w->stride[1], r->scratch + i * p->k, p->k);
                x = r->scratch;
                stride = (ptrdiff_t)p->k;
            }
            r->k->pack_panel(x, stride, rows, p->k, k_padded, r->shared + panel_floats * (size_t)u);
        }
    }
}

/* ---- phase: the product ---- */

static void multiply(st_cpu_run *r, const product *p, const st_cpu_epilogue *e)
{
    const st_cpu_right right = right_of(p, p->stored_packed ? st_tensor_data(p->w) : (void *)r->shared);
    const int64_t panels = st_cpu_panels(p->n), tile = st_cpu_gemm_tile(r->k, &right, p->m);
    int64_t start, count;
    if (by_panels(p)) {
        bool ready = false;
        const size_t panel_bytes = st_cpu_panel_bytes(p->type, p->k);
        const int64_t most = panel_bytes > 0 && PANELS_AT_ONCE_BYTES / panel_bytes > 1
                                 ? (int64_t)(PANELS_AT_ONCE_BYTES / panel_bytes)
                                 : 1;
        while ((count = st_cpu_take(r, most, &start)) > 0) {
            if (!ready)
                st_cpu_gemm_pack(r->k, &p->left, &right, p->m, 0, (int)p->m, r->scratch);
            ready = true;
            st_cpu_gemm_panels(r->k, &right, e, p->m, 0, (int)p->m, start, count, r->scratch);
        }
        return;
    }
    while ((count = st_cpu_take(r, ST_CPU_ROW_BLOCK / tile, &start)) > 0) {
        const int64_t row = start * tile, end = row + count * tile, rows = (end < p->m ? end : p->m) - row;
        st_cpu_gemm_pack(r->k, &p->left, &right, p->m, row, (int)rows, r->scratch);
        st_cpu_gemm_panels(r->k, &right, e, p->m, row, (int)rows, 0, panels, r->scratch);
    }
}

static void multiply_batch(st_cpu_run *r, const product *p, const sotto_tensor *node)
{
    const sotto_tensor *a = node->src[0], *w = p->w;
    const int64_t blocks = (p->m + ST_CPU_ROW_BLOCK - 1) / ST_CPU_ROW_BLOCK;
    const size_t w_bytes = st_cpu_panel_bytes(ST_CPU_W_F32, p->k) * (size_t)st_cpu_panels(p->n);
    int64_t start, count;
    while ((count = st_cpu_take(r, 1, &start)) > 0) {
        const int64_t batch = start / blocks, i2 = batch % node->dim[2], i3 = batch / node->dim[2];
        const int64_t row = start % blocks * ST_CPU_ROW_BLOCK;
        const int rows = (int)(p->m - row < ST_CPU_ROW_BLOCK ? p->m - row : ST_CPU_ROW_BLOCK);
        const int64_t w2 = w->dim[2] == 1 ? 0 : i2, w3 = w->dim[3] == 1 ? 0 : i3;
        st_cpu_left left = p->left;
        left.x = (const float *)st_tensor_data(a) + i2 * left.stride2 + i3 * left.stride3;
        left.n2 = 1;
        const st_cpu_right right = right_of(p, (const uint8_t *)r->shared + w_bytes * (size_t)(w3 * w->dim[2] + w2));
        const st_cpu_epilogue e = {.out = (float *)st_tensor_data(node) + batch * p->m * p->n,
                                   .out_stride = (ptrdiff_t)p->n};
        /* with few rows a block is the whole product */
        st_cpu_gemm_pack(r->k, &left, &right, p->m, row, rows, r->scratch);
        st_cpu_gemm_panels(r->k, &right, &e, p->m, row, rows, 0, st_cpu_panels(p->n), r->scratch);
    }
}

/* ---- linear, conv_1d ---- */

/* Rows at one distance from each other, so that a row number is enough to find one. */
static bool even_rows(const sotto_tensor *t)
{
    return st_cpu_f32_rows(t) && (t->dim[2] <= 1 || t->stride[2] == t->stride[1] * (size_t)t->dim[1]) &&
           (t->dim[3] <= 1 || t->stride[3] == t->stride[1] * (size_t)(t->dim[1] * t->dim[2])) &&
           t->stride[1] % sizeof(float) == 0;
}

static bool supports_right(const sotto_tensor *w)
{
    st_cpu_wtype type;
    if (w->dim[2] != 1 || w->dim[3] != 1)
        return false;
    if (w->flags & ST_TENSOR_MATRIX)
        return st_cpu_wtype_of(w->dtype, &type) &&
               (w->view_of == NULL ||
                (w->view_offset == 0 && w->dim[0] == w->view_of->dim[0] && w->dim[1] == w->view_of->dim[1]));
    return w->dtype != SOTTO_I32 && w->dtype != SOTTO_I8 && w->stride[0] == sotto_dtype_bytes(w->dtype) &&
           (w->dtype != SOTTO_F32 || w->stride[1] % sizeof(float) == 0);
}

static bool supports_rest(const sotto_tensor *node)
{
    st_cpu_left ignored;
    return node->dtype == SOTTO_F32 && st_tensor_is_contiguous(node) && left_of(node->src[0], &ignored) &&
           supports_right(node->src[1]) && (node->src[2] == NULL || st_cpu_f32_rows(node->src[2])) &&
           (node->src[3] == NULL || even_rows(node->src[3]));
}

static bool supports_conv(const sotto_tensor *node)
{
    const sotto_tensor *x = node->src[0];
    return supports_rest(node) && x->stride[1] == (size_t)x->dim[0] * sizeof(float);
}

static void run_rows(st_cpu_run *r, const sotto_tensor *node, product *p, int phase)
{
    st_cpu_need need = {0};
    need_product(r->k, p, &need);
    if (phase < need.n_phase - 1) {
        pack_right(r, p);
        return;
    }
    const sotto_tensor *bias = node->src[2], *residual = node->src[3];
    const st_cpu_epilogue e = {.out = st_tensor_data(node),
                               .out_stride = (ptrdiff_t)p->n,
                               .bias = bias != NULL ? st_tensor_data(bias) : NULL,
                               .residual = residual != NULL ? st_tensor_data(residual) : NULL,
                               .residual_stride =
                                   residual != NULL ? (ptrdiff_t)(residual->stride[1] / sizeof(float)) : 0,
                               .act = (sotto_activation)node->params.act};
    p->left.x = st_tensor_data(node->src[0]);
    multiply(r, p, &e);
}

static void need_linear(const st_cpu_kernels *k, const sotto_tensor *node, st_cpu_need *need)
{
    product p;
    describe_linear(node, &p);
    need_product(k, &p, need);
}

static void run_linear(st_cpu_run *r, const sotto_tensor *node, int phase)
{
    product p;
    describe_linear(node, &p);
    run_rows(r, node, &p, phase);
}

static void need_conv(const st_cpu_kernels *k, const sotto_tensor *node, st_cpu_need *need)
{
    product p;
    describe_conv(node, &p);
    need_product(k, &p, need);
}

static void run_conv(st_cpu_run *r, const sotto_tensor *node, int phase)
{
    product p;
    describe_conv(node, &p);
    run_rows(r, node, &p, phase);
}

/* ---- linear as a link of a chain ---- */

bool st_cpu_linear_in_rows(const sotto_tensor *node)
{
    product p;
    describe_linear(node, &p);
    return p.stored_packed && !by_panels(&p) && p.n > 0 && p.k > 0 && p.left.n2 == 1 && node->src[0]->dim[3] == 1;
}

int st_cpu_linear_tile(const st_cpu_kernels *k, const sotto_tensor *node)
{
    product p;
    describe_linear(node, &p);
    const st_cpu_right right = right_of(&p, NULL);
    return st_cpu_gemm_tile(k, &right, p.m);
}

size_t st_cpu_linear_scratch(const sotto_tensor *node)
{
    return st_cpu_gemm_scratch(ST_CPU_ROW_BLOCK, node->src[1]->dim[0]);
}

bool st_cpu_linear_packs_alike(const sotto_tensor *a, const sotto_tensor *b)
{
    product p, q;
    describe_linear(a, &p);
    describe_linear(b, &q);
    return a->src[0] == b->src[0] && p.type == q.type && p.k == q.k && p.m == q.m &&
           a->params.compute == b->params.compute;
}

void st_cpu_linear_run(const st_cpu_kernels *k, const sotto_tensor *node, const st_cpu_linear_rows *rows, float *scratch)
{
    product p;
    describe_linear(node, &p);
    const st_cpu_right right = right_of(&p, st_tensor_data(p.w));
    const st_cpu_left left = {.x = rows->x, .n1 = rows->n, .n2 = 1, .stride1 = rows->x_stride};
    const st_cpu_epilogue e = {.out = rows->out,
                               .out_stride = (ptrdiff_t)p.n,
                               .bias = node->src[2] != NULL ? st_tensor_data(node->src[2]) : NULL,
                               .residual = rows->residual,
                               .residual_stride = rows->residual_stride,
                               .act = (sotto_activation)node->params.act};
    if (!rows->packed)
        st_cpu_gemm_pack(k, &left, &right, p.m, 0, rows->n, scratch);
    st_cpu_gemm_panels(k, &right, &e, p.m, 0, rows->n, 0, st_cpu_panels(p.n), scratch);
}

/* ---- conv_2d: what is under the window goes into a thread's scratch, a block of rows at a time ---- */

static bool supports_conv_2d(const sotto_tensor *node)
{
    return node->dtype == SOTTO_F32 && st_tensor_is_contiguous(node) && st_cpu_f32_rows(node->src[0]) &&
           supports_right(node->src[1]) && (node->src[2] == NULL || st_cpu_f32_rows(node->src[2]));
}

static void describe_conv_2d(const sotto_tensor *node, product *p)
{
    describe_linear(node, p);
    p->left = (st_cpu_left){.n1 = p->m, .n2 = 1, .stride1 = (ptrdiff_t)p->k};
}

static size_t block_floats(const product *p)
{
    const int64_t rows = p->m < ST_CPU_ROW_BLOCK ? p->m : ST_CPU_ROW_BLOCK;
    return ((size_t)(rows * p->k) + 15) / 16 * 16;
}

static void need_conv_2d(const st_cpu_kernels *k, const sotto_tensor *node, st_cpu_need *need)
{
    product p;
    describe_conv_2d(node, &p);
    need_product(k, &p, need);
    need->thread_floats += block_floats(&p);
    if (need->units[need->n_phase - 1] > 0)
        need->units[need->n_phase - 1] = (p.m + ST_CPU_ROW_BLOCK - 1) / ST_CPU_ROW_BLOCK;
}

static void run_conv_2d(st_cpu_run *r, const sotto_tensor *node, int phase)
{
    product p;
    st_cpu_need need = {0};
    describe_conv_2d(node, &p);
    need_product(r->k, &p, &need);
    if (phase < need.n_phase - 1) {
        pack_right(r, &p);
        return;
    }
    const st_cpu_right right = right_of(&p, p.stored_packed ? st_tensor_data(p.w) : (void *)r->shared);
    const st_cpu_epilogue e = {.out = st_tensor_data(node),
                               .out_stride = (ptrdiff_t)p.n,
                               .bias = node->src[2] != NULL ? st_tensor_data(node->src[2]) : NULL,
                               .act = (sotto_activation)node->params.act};
    float *const block = r->scratch, *const packed = block + block_floats(&p);
    int64_t start;
    while (st_cpu_take(r, 1, &start) > 0) {
        const int64_t row = start * ST_CPU_ROW_BLOCK;
        const int rows = (int)(p.m - row < ST_CPU_ROW_BLOCK ? p.m - row : ST_CPU_ROW_BLOCK);
        for (int i = 0; i < rows; i++)
            st_cpu_under_window(node, row + i, block + (size_t)i * (size_t)p.k);
        p.left.x = block;
        p.left.origin = -(ptrdiff_t)(row * p.k);
        st_cpu_gemm_pack(r->k, &p.left, &right, p.m, row, rows, packed);
        st_cpu_gemm_panels(r->k, &right, &e, p.m, row, rows, 0, st_cpu_panels(p.n), packed);
    }
}

/* ---- matmul ---- */

static bool supports_matmul(const sotto_tensor *node)
{
    st_cpu_left ignored;
    const sotto_tensor *b = node->src[1];
    return node->dtype == SOTTO_F32 && st_tensor_is_contiguous(node) && left_of(node->src[0], &ignored) &&
           !(b->flags & ST_TENSOR_MATRIX) &&
           (b->dtype == SOTTO_F32 || b->dtype == SOTTO_F16 || b->dtype == SOTTO_BF16) &&
           b->stride[0] == sotto_dtype_bytes(b->dtype) && (b->dtype != SOTTO_F32 || b->stride[1] % sizeof(float) == 0);
}

static void need_matmul(const st_cpu_kernels *k, const sotto_tensor *node, st_cpu_need *need)
{
    product p;
    describe_matmul(node, &p);
    need_product(k, &p, need);
}

static void run_matmul(st_cpu_run *r, const sotto_tensor *node, int phase)
{
    product p;
    describe_matmul(node, &p);
    st_cpu_need need = {0};
    need_product(r->k, &p, &need);
    if (phase < need.n_phase - 1) {
        pack_right(r, &p);
    } else if (p.n_batch > 1) {
        multiply_batch(r, &p, node);
    } else {
        const st_cpu_epilogue e = {.out = st_tensor_data(node), .out_stride = (ptrdiff_t)p.n};
        p.left.x = st_tensor_data(node->src[0]);
        multiply(r, &p, &e);
    }
}

const st_cpu_op st_cpu_op_linear = {supports_rest, need_linear, run_linear};
const st_cpu_op st_cpu_op_conv_1d = {supports_conv, need_conv, run_conv};
const st_cpu_op st_cpu_op_conv_2d = {supports_conv_2d, need_conv_2d, run_conv_2d};
const st_cpu_op st_cpu_op_matmul = {supports_matmul, need_matmul, run_matmul};
