/* cpu_ops_attention.c: attention over whole sequences, and of single rows over a cache. */
#include <string.h>

#include "backends/cpu/cpu_attention.h"
#include "backends/cpu/cpu_attention_bf16.h"
#include "backends/cpu/cpu_exec.h"

/* ---- attention: phase 0 packs all heads' keys and values, phase 1 takes tiles of query rows ---- */

static ptrdiff_t floats(size_t bytes)
{
    return (ptrdiff_t)(bytes / sizeof(float));
}

/* Head h of batch b; pointers are set only when the data exists. */
static st_cpu_attention head_of(const sotto_tensor *node, int64_t b, int64_t h, bool data)
{
    const sotto_tensor *q = node->src[0], *k = node->src[1], *v = node->src[2]; /* [b, n, h, d] */
    const int64_t h_kv = h / (q->dim[1] / k->dim[1]);
    st_cpu_attention a = {.q_stride = floats(q->stride[2]),
                          .k_stride = floats(k->stride[2]),
                          .v_stride = floats(v->stride[2]),
                          .out_stride = (ptrdiff_t)(q->dim[1] * q->dim[0]),
                          .n_q = q->dim[2],
                          .n_k = k->dim[2],
                          .d = (int)q->dim[0],
                          .scale = node->params.f[0],
                          .causal = node->params.i[0] != 0};
    if (data) {
        a.q = (const float *)st_tensor_data(q) + b * floats(q->stride[3]) + h * floats(q->stride[1]);
        a.k = (const float *)st_tensor_data(k) + b * floats(k->stride[3]) + h_kv * floats(k->stride[1]);
        a.v = (const float *)st_tensor_data(v) + b * floats(v->stride[3]) + h_kv * floats(v->stride[1]);
        a.out = (float *)st_tensor_data(node) + (b * a.n_q * q->dim[1] + h) * q->dim[0];
    }
    return a;
}

static bool even(const sotto_tensor *t)
{
    return st_cpu_f32_rows(t) && t->stride[1] % sizeof(float) == 0 && t->stride[2] % sizeof(float) == 0 &&
           t->stride[3] % sizeof(float) == 0;
}

static bool supports_attention(const sotto_tensor *node)
{
    return even(node->src[0]) && even(node->src[1]) && even(node->src[2]) && st_tensor_is_contiguous(node) &&
           node->src[0]->dim[0] <= 1024;
}

/* How a node is computed: in f32, or in bf16 where that is allowed and the level has it. */
typedef struct attention_way {
    int tile; /* query rows of a unit */
    size_t packed, scratch;
    void (*pack)(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t unit, float *packed);
    void (*rows)(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t row, int n_rows, const float *packed,
                 float *scratch);
} attention_way;

static attention_way way_of(const st_cpu_kernels *k, const sotto_tensor *node, const st_cpu_attention *a)
{
    if (st_cpu_takes_bf16(node) && st_cpu_attention_bf16_fits(k, a))
        return (attention_way){k->bf16.mr, st_cpu_attention_bf16_packed(a), st_cpu_attention_bf16_scratch(a),
                               st_cpu_attention_bf16_pack, st_cpu_attention_bf16_rows};
    return (attention_way){k->mr, st_cpu_attention_packed(a), st_cpu_attention_scratch(a), st_cpu_attention_pack,
                           st_cpu_attention_rows};
}

static void need_attention(const st_cpu_kernels *k, const sotto_tensor *node, st_cpu_need *need)
{
    const sotto_tensor *q = node->src[0], *key = node->src[1];
    const st_cpu_attention a = head_of(node, 0, 0, false);
    const attention_way way = way_of(k, node, &a);
    need->n_phase = 2;
    need->units[0] = q->dim[3] * key->dim[1] * st_cpu_attention_pack_units(&a);
    need->units[1] = q->dim[3] * q->dim[1] * ((a.n_q + way.tile - 1) / way.tile);
    need->thread_floats = way.scratch;
    need->shared_floats = way.packed * (size_t)(q->dim[3] * key->dim[1]);
}

static void run_attention(st_cpu_run *r, const sotto_tensor *node, int phase)
{
    const sotto_tensor *q = node->src[0], *key = node->src[1];
    const int64_t heads = q->dim[1], heads_kv = key->dim[1], share = heads_kv > 0 ? heads / heads_kv : 1;
    const st_cpu_attention any = head_of(node, 0, 0, false);
    const attention_way way = way_of(r->k, node, &any);
    const int64_t units = st_cpu_attention_pack_units(&any), tiles = (q->dim[2] + way.tile - 1) / way.tile;
    int64_t start, count;
    while ((count = st_cpu_take(r, 16, &start)) > 0) {
        for (int64_t u = start; u < start + count; u++) {
            if (phase == 0) {
                const int64_t head = u / units;
                const st_cpu_attention a = head_of(node, head / heads_kv, head % heads_kv * share, true);
                way.pack(r->k, &a, u % units, r->shared + way.packed * (size_t)head);
            } else {
                const int64_t head = u / tiles, row = u % tiles * way.tile, left = any.n_q - row;
                const st_cpu_attention a = head_of(node, head / heads, head % heads, true);
                const int64_t packed = head / heads * heads_kv + head % heads / share;
                way.rows(r->k, &a, row, (int)(left < way.tile ? left : way.tile),
                         r->shared + way.packed * (size_t)packed, r->scratch);
            }
        }
    }
}

/* ---- cache attention: a unit is a head and some neighbouring rows; up to 8 that see the same cells go together ---- */

enum { CACHE_ROWS = 64 }; /* of a unit: eight windows of five beams are one, so that none meets its cells twice */

static bool is_cells(sotto_dtype t)
{
    return t == SOTTO_F32 || t == SOTTO_F16 || t == SOTTO_BF16 || t == SOTTO_Q8_0;
}

static bool supports_cache_attention(const sotto_tensor *node)
{
    const sotto_tensor *q = node->src[0], *k = node->src[1], *v = node->src[2];
    for (int i = 3; i < 6; i++)
        if (node->src[i] != NULL && (node->src[i]->dtype != SOTTO_I32 || !st_tensor_is_contiguous(node->src[i])))
            return false;
    return st_cpu_f32_rows(q) && q->stride[1] % sizeof(float) == 0 && q->stride[2] % sizeof(float) == 0 &&
           k->dtype == v->dtype && is_cells(k->dtype) && k->stride[0] == sotto_dtype_bytes(k->dtype) &&
           v->stride[0] == k->stride[0] && st_tensor_is_contiguous(node);
}

static void need_cache_attention(const st_cpu_kernels *k, const sotto_tensor *node, st_cpu_need *need)
{
    (void)k;
    const sotto_tensor *q = node->src[0];
    need->n_phase = 1;
    need->units[0] = q->dim[1] * ((q->dim[2] + CACHE_ROWS - 1) / CACHE_ROWS);
    need->thread_floats = st_cpu_cells_scratch((int)q->dim[0]);
}

typedef struct cell_list {
    const int32_t *index;
    int64_t base, n_kv;
} cell_list;

/* What row r sees, with everything from the lists brought into range. */
static cell_list list_of(const sotto_tensor *node, int64_t r)
{
    const sotto_tensor *index = node->src[3];
    const int64_t n_cell = node->src[1]->dim[2];
    int64_t base = ((const int32_t *)st_tensor_data(node->src[4]))[r],
            n = ((const int32_t *)st_tensor_data(node->src[5]))[r];
    cell_list l = {0};
    if (n_cell == 0 || n <= 0)
        return l;
    base = base < 0 ? 0 : base;
    if (index == NULL) {
        l.base = base < n_cell ? base : n_cell;
        l.n_kv = n < n_cell - l.base ? n : n_cell - l.base;
    } else if (index->dim[1] > 0) {
        base = base < index->dim[1] ? base : index->dim[1] - 1;
        l.index = (const int32_t *)st_tensor_data(index) + base * index->dim[0];
        l.n_kv = n < index->dim[0] ? n : index->dim[0];
    }
    const int64_t window = node->params.i[0], unseen = window > 0 && l.n_kv > window ? l.n_kv - window : 0;
    if (l.index != NULL)
        l.index += unseen;
    l.base += unseen;
    l.n_kv -= unseen;
    return l;
}

static bool same_list(cell_list a, cell_list b)
{
    return a.index == b.index && a.base == b.base && a.n_kv == b.n_kv;
}

static void run_cache_attention(st_cpu_run *r, const sotto_tensor *node, int phase)
{
    (void)phase;
    const sotto_tensor *q = node->src[0], *k = node->src[1], *v = node->src[2];
    const int64_t heads = q->dim[1], share = heads / (k->dim[1] > 0 ? k->dim[1] : 1), n_row = q->dim[2], d = q->dim[0];
    const int64_t blocks = (n_row + CACHE_ROWS - 1) / CACHE_ROWS;
    const bool window = node->src[3] == NULL && r->k->window_bf16 != NULL && k->dtype == SOTTO_BF16 && d % 32 == 0 &&
                        d <= ST_CPU_WINDOW_MAX_D && st_cpu_takes_bf16(node);
    void (*kernel)(const st_cpu_cells *) = window                   ? r->k->window_bf16
                                           : k->dtype == SOTTO_F32  ? r->k->cells_f32
                                           : k->dtype == SOTTO_F16  ? r->k->cells_f16
                                           : k->dtype == SOTTO_Q8_0 ? r->k->cells_q8_0
                                                                    : r->k->cells_bf16;
    int64_t u;
    while (st_cpu_take(r, 1, &u) > 0) {
        const int64_t h = u / blocks, first = u % blocks * CACHE_ROWS;
        const int64_t end = first + CACHE_ROWS < n_row ? first + CACHE_ROWS : n_row;
        st_cpu_cells c = {.d = (int)d,
                          .scale = node->params.f[0],
                          .k = (const char *)st_tensor_data(k) + (size_t)(h / share) * k->stride[1],
                          .v = (const char *)st_tensor_data(v) + (size_t)(h / share) * v->stride[1],
                          .k_stride = k->stride[2],
                          .v_stride = v->stride[2],
                          .n_cell = k->dim[2],
                          .scratch = r->scratch};
        for (int64_t row = first; row < end;) {
            const cell_list l = list_of(node, row);
            c.index = l.index;
            c.base = l.base;
            c.n_kv = l.n_kv;
            for (c.n_row = 0; row < end && c.n_row < ST_CPU_MAX_SKINNY && same_list(list_of(node, row), l); row++) {
                c.q[c.n_row] = (const float *)st_tensor_data(q) + row * floats(q->stride[2]) + h * floats(q->stride[1]);
                c.out[c.n_row++] = (float *)st_tensor_data(node) + (row * heads + h) * d;
            }
            kernel(&c);
        }
    }
}

const st_cpu_op st_cpu_op_attention = {supports_attention, need_attention, run_attention};
const st_cpu_op st_cpu_op_cache_attention = {supports_cache_attention, need_cache_attention, run_cache_attention};
