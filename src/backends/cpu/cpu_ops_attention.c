/* cpu_ops_attention.c: attention over whole sequences, and of single rows over a cache. */
#include <math.h>
#include <string.h>

#include "backends/cpu/cpu_attention.h"
#include "backends/cpu/cpu_attention_bf16.h"
#include "backends/cpu/cpu_attention_words.h"
#include "backends/cpu/cpu_cells.h"
#include "backends/cpu/cpu_cells_words.h"
#include "backends/cpu/cpu_chain.h"
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

/* How a node is computed: in f32, or, where that is allowed, in bf16 or words, whichever the level has. */
typedef struct attention_way {
    int tile;      /* query rows of a unit */
    int64_t units; /* of packing */
    size_t packed, scratch;
    void (*pack)(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t unit, float *packed);
    void (*rows)(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t row, int n_rows, const float *packed,
                 float *scratch);
} attention_way;

static attention_way way_of(const st_cpu_kernels *k, const sotto_tensor *node, const st_cpu_attention *a)
{
    if (st_cpu_takes_bf16(node) && st_cpu_attention_bf16_fits(k, a))
        return (attention_way){st_cpu_attention_bf16_tile(k, a), st_cpu_attention_pack_units(a),
                               st_cpu_attention_bf16_packed(a),  st_cpu_attention_bf16_scratch(a),
                               st_cpu_attention_bf16_pack,       st_cpu_attention_bf16_rows};
    if (st_cpu_takes_bf16(node) && st_cpu_attention_words_fits(k, a))
        return (attention_way){ST_CPU_WORDS_ROWS,
                               st_cpu_attention_words_units(a),
                               st_cpu_attention_words_packed(a),
                               st_cpu_attention_words_scratch(a),
                               st_cpu_attention_words_pack,
                               st_cpu_attention_words_rows};
    return (attention_way){st_cpu_attention_tile(k),    st_cpu_attention_pack_units(a), st_cpu_attention_packed(a),
                           st_cpu_attention_scratch(a), st_cpu_attention_pack,          st_cpu_attention_rows};
}

static void need_attention(const st_cpu_kernels *k, const sotto_tensor *node, st_cpu_need *need)
{
    const sotto_tensor *q = node->src[0], *key = node->src[1];
    const st_cpu_attention a = head_of(node, 0, 0, false);
    const attention_way way = way_of(k, node, &a);
    need->n_phase = 2;
    need->units[0] = q->dim[3] * key->dim[1] * way.units;
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
    const int64_t tiles = (q->dim[2] + way.tile - 1) / way.tile;
    const size_t queries = phase == ST_CPU_ATTENTION_PACKED ? st_cpu_attention_bf16_queries(&any) : 0;
    const float *const packed_q = r->shared + way.packed * (size_t)(q->dim[3] * heads_kv);
    int64_t start, count;
    while ((count = st_cpu_take(r, 16, &start)) > 0) {
        for (int64_t u = start; u < start + count; u++) {
            if (phase == 0) { /* heads first: theirs lie side by side */
                const int64_t h = u % heads_kv, b = u / heads_kv / way.units;
                const st_cpu_attention a = head_of(node, b, h * share, true);
                way.pack(r->k, &a, u / heads_kv % way.units, r->shared + way.packed * (size_t)(b * heads_kv + h));
            } else {
                const int64_t head = u / tiles, row = u % tiles * way.tile, left = any.n_q - row;
                st_cpu_attention a = head_of(node, head / heads, head % heads, true);
                const int64_t packed = head / heads * heads_kv + head % heads / share;
                if (phase == ST_CPU_ATTENTION_PACKED)
                    a.packed_q = (const uint8_t *)(packed_q + queries * (size_t)head);
                way.rows(r->k, &a, row, (int)(left < way.tile ? left : way.tile),
                         r->shared + way.packed * (size_t)packed, r->scratch);
            }
        }
    }
}

/* ---- attention behind a chain ---- */

/* Columns of the product, row for row. */
static bool is_columns(const sotto_tensor *t, const sotto_tensor *product)
{
    return t->view_of == product && t->dim[3] == 1 && t->dim[2] == product->dim[1] &&
           t->stride[2] == product->stride[1] && t->view_offset + t->dim[1] * t->stride[1] <= product->stride[1];
}

bool st_cpu_attention_packs(const st_cpu_kernels *k, const sotto_tensor *node, const sotto_tensor *product, int tile)
{
    const st_cpu_attention a = head_of(node, 0, 0, false);
    return is_columns(node->src[0], product) && is_columns(node->src[1], product) &&
           is_columns(node->src[2], product) && tile % ST_CPU_PANEL == 0 && st_cpu_takes_bf16(node) &&
           st_cpu_attention_bf16_fits(k, &a) && st_cpu_attention_bf16_tile(k, &a) == 16;
}

size_t st_cpu_attention_shared(const st_cpu_kernels *k, const sotto_tensor *node)
{
    st_cpu_need need = {0};
    need_attention(k, node, &need);
    const st_cpu_attention a = head_of(node, 0, 0, false);
    return need.shared_floats + st_cpu_attention_bf16_queries(&a) * (size_t)node->src[0]->dim[1];
}

void st_cpu_attention_pack_block(const st_cpu_run *r, const sotto_tensor *node, const float *x, ptrdiff_t stride,
                                 int64_t row, int n)
{
    const sotto_tensor *q = node->src[0], *k = node->src[1], *v = node->src[2];
    st_cpu_attention a = head_of(node, 0, 0, false);
    const size_t packed = st_cpu_attention_bf16_packed(&a), queries = st_cpu_attention_bf16_queries(&a);
    float *const packed_q = r->shared + packed * (size_t)k->dim[1];
    a.q_stride = a.k_stride = a.v_stride = stride;
    for (int64_t h = 0; h < q->dim[1]; h++) {
        a.q = x + floats(q->view_offset) + h * floats(q->stride[1]);
        st_cpu_attention_bf16_pack_queries(r->k, &a, row, n, (uint8_t *)(packed_q + queries * (size_t)h));
    }
    for (int64_t h = 0; h < k->dim[1]; h++) {
        a.k = x + floats(k->view_offset) + h * floats(k->stride[1]);
        a.v = x + floats(v->view_offset) + h * floats(v->stride[1]);
        st_cpu_attention_bf16_pack_cells(r->k, &a, row, n, r->shared + packed * (size_t)h);
    }
}

/* ---- cache attention ----
 *
 * A unit is a head of keys and some neighbouring rows. Of these, up to 8 pairs of a row and a head that see the same cells
 * meet them together. Rows of a prompt, which see more and more of one list, go through cpu_cells.h. When there are few
 * rows, and heads share heads of keys, the cells of a row are shared out as well: each part leaves its weighted values, its
 * largest score and its sum, and a second phase joins the parts.
 *
 * Beams have lists of their own that begin alike, since they share a past: neighbouring rows meet the cells of that past
 * together, each its own cells after that, and the two parts are joined at once. Which rows do so depends on the lists
 * alone, so that a window's beams find the same numbers whichever other windows are there. Where the cells of one row cost
 * as much as those of eight, all cells that some beam sees are met by all of them, and what a beam does not see is masked. */

enum {
    CACHE_ROWS = 128,    /* of a unit at most */
    BEAM_ROWS = 64,      /* eight windows of five beams are one unit, so that none meets its cells twice */
    PROMPT_UNITS = 16,   /* wanted of a node of many rows where no heads share, */
    CACHE_UNITS = 32,    /* and where they do */
    PROMPT_ROWS = 16,    /* from so many rows on there may be a prompt among them */
    PROMPT_ALONE = 32,   /* rows of a prompt that are worth a tile where no heads share */
    PROMPT_QUERIES = 12, /* the same where they do, in pairs of a row and a head */
    CACHE_PARTS = 16,    /* units wanted of a node of few rows */
    JOIN_ALONE = 16384,  /* numbers of all parts: so many are joined by one thread */
    PART_CELLS = 64,     /* of a part at least */
    SHARED_CELLS = 32,   /* so many are worth meeting together */
    JOINED_CELLS = 4096  /* of rows that meet all of them, at most */
};

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
           is_cells(k->dtype) && is_cells(v->dtype) && k->stride[0] == sotto_dtype_bytes(k->dtype) &&
           v->stride[0] == sotto_dtype_bytes(v->dtype) && st_tensor_is_contiguous(node);
}

/* How a node is cut, from shapes alone. */
typedef struct cache_cut {
    int64_t heads, heads_kv, share, n_row, d;
    int64_t rows, blocks; /* rows of a unit, and how many such blocks there are */
    int64_t parts;        /* that the cells of a row are cut into at most */
} cache_cut;

static int64_t unit_rows(const cache_cut *c)
{
    const bool alone = c->share <= 1, spread = !alone && c->n_row >= PROMPT_ROWS;
    const int64_t least = spread ? 4 : BEAM_ROWS, most = alone ? CACHE_ROWS : BEAM_ROWS;
    const int64_t rows = (c->n_row * c->heads_kv / (alone ? PROMPT_UNITS : CACHE_UNITS) + 3) / 4 * 4;
    return rows < least ? least : rows > most ? most : rows;
}

static cache_cut cut_of(const sotto_tensor *node)
{
    const sotto_tensor *q = node->src[0], *k = node->src[1], *index = node->src[3];
    cache_cut c = {.heads = q->dim[1], .heads_kv = k->dim[1], .n_row = q->dim[2], .d = q->dim[0], .parts = 1};
    c.share = c.heads_kv > 0 ? c.heads / c.heads_kv : 1;
    c.rows = unit_rows(&c);
    if (c.share > 1 && c.n_row < PROMPT_ROWS) {
        const int64_t cells = index != NULL ? index->dim[0] : k->dim[2], most = cells / PART_CELLS;
        const int64_t parts = (CACHE_PARTS + c.heads_kv - 1) / c.heads_kv;
        c.parts = parts < most ? parts : most > 1 ? most : 1;
    }
    c.blocks = (c.n_row + c.rows - 1) / c.rows;
    return c;
}

/* Where rows with lists of their own may share cells, both parts of each of them. */
static size_t pair_floats(const sotto_tensor *node, const cache_cut *c)
{
    return node->src[3] != NULL && c->share == 1 && c->n_row > 1 ? (size_t)(2 * ST_CPU_MAX_SKINNY * (c->d + 2)) : 0;
}

/* Whether the level's kernel for windows of bf16 can take the node's cells. */
static bool takes_window(const st_cpu_kernels *k, const sotto_tensor *node, const cache_cut *c)
{
    return k->window_bf16 != NULL && node->src[1]->dtype == SOTTO_BF16 && node->src[2]->dtype == SOTTO_BF16 &&
           c->d % 32 == 0 && c->d <= ST_CPU_WINDOW_MAX_D && c->parts == 1 && st_cpu_takes_bf16(node);
}

/* Where such rows meet all of their cells: the cells, and of each a byte. */
static size_t joined_floats(const st_cpu_kernels *k, const sotto_tensor *node, const cache_cut *c)
{
    return pair_floats(node, c) > 0 && takes_window(k, node, c) ? JOINED_CELLS / 4 * 5 : 0;
}

/* Keys and values of a prompt may be rounded to bf16. */
static bool prompt_bf16(const sotto_tensor *node)
{
    return st_cpu_takes_bf16(node) || node->params.compute == SOTTO_COMPUTE_INT8;
}

static void need_cache_attention(const st_cpu_kernels *k, const sotto_tensor *node, st_cpu_need *need)
{
    const cache_cut c = cut_of(node);
    need->n_phase = c.parts > 1 ? 2 : 1;
    need->units[0] = c.heads_kv * c.blocks * c.parts;
    need->units[1] = c.n_row * c.heads_kv;
    need->thread_floats = st_cpu_cells_scratch((int)c.d) + pair_floats(node, &c) + joined_floats(k, node, &c);
    if (c.n_row >= PROMPT_ROWS) {
        const size_t prompt = st_cpu_prompt_scratch(k, (int)c.d, (int)c.share, (int)c.rows, prompt_bf16(node));
        need->thread_floats = prompt > need->thread_floats ? prompt : need->thread_floats;
        const size_t words = st_cpu_prompt_words_may(k, (int)c.d, (int)c.share, prompt_bf16(node))
                                 ? st_cpu_prompt_words_scratch((int)c.d, (int)c.rows)
                                 : 0;
        need->thread_floats = words > need->thread_floats ? words : need->thread_floats;
    }
    if (c.parts > 1)
        need->shared_floats = (size_t)(c.n_row * c.heads * c.parts) * (size_t)(c.d + 2);
    need->alone = c.n_row * c.heads * c.parts * c.d <= JOIN_ALONE;
}

/* A list, or NULL and the cell it begins at, and the places of it that a row sees, brought into range. */
typedef struct cell_list {
    const int32_t *index;
    int64_t base;
    st_cpu_range seen;
} cell_list;

static cell_list list_of(const sotto_tensor *node, int64_t r)
{
    const sotto_tensor *index = node->src[3];
    const int64_t n_cell = node->src[1]->dim[2], window = node->params.i[0];
    int64_t base = ((const int32_t *)st_tensor_data(node->src[4]))[r],
            n = ((const int32_t *)st_tensor_data(node->src[5]))[r];
    cell_list l = {0};
    if (n_cell == 0 || n <= 0)
        return l;
    base = base < 0 ? 0 : base;
    if (index == NULL) {
        l.base = base < n_cell ? base : n_cell;
        l.seen.end = n < n_cell - l.base ? n : n_cell - l.base;
    } else if (index->dim[1] > 0) {
        base = base < index->dim[1] ? base : index->dim[1] - 1;
        l.index = (const int32_t *)st_tensor_data(index) + base * index->dim[0];
        l.seen.end = n < index->dim[0] ? n : index->dim[0];
    }
    l.seen.first = window > 0 && l.seen.end > window ? l.seen.end - window : 0;
    return l;
}

static bool same_list(cell_list a, cell_list b)
{
    return a.index == b.index && a.base == b.base;
}

static bool same_cells(cell_list a, cell_list b)
{
    return same_list(a, b) && a.seen.first == b.seen.first && a.seen.end == b.seen.end;
}

/* One node's run, and a unit of it. */
typedef struct cache_unit {
    const st_cpu_run *run;
    const sotto_tensor *node;
    cache_cut cut;
    void (*kernel)(const st_cpu_cells *);
    int64_t head; /* of keys */
    int64_t part;
    int64_t joined_row, n_joined; /* the rows whose joined list the thread's scratch holds */
} cache_unit;

static const float *query(const cache_unit *u, int64_t row, int64_t h)
{
    const sotto_tensor *q = u->node->src[0];
    return (const float *)st_tensor_data(q) + row * floats(q->stride[2]) +
           (u->head * u->cut.share + h) * floats(q->stride[1]);
}

static int64_t parts_of(const cache_unit *u, cell_list l)
{
    const int64_t most = (l.seen.end - l.seen.first) / PART_CELLS;
    return most < 1 ? 1 : most < u->cut.parts ? most : u->cut.parts;
}

static float *part_of(const cache_unit *u, int64_t row, int64_t h, int64_t part)
{
    const int64_t pair = row * u->cut.heads + u->head * u->cut.share + h;
    return u->run->shared + (pair * u->cut.parts + part) * (u->cut.d + 2);
}

static float *result(const cache_unit *u, int64_t row, int64_t h)
{
    return (float *)st_tensor_data(u->node) + (row * u->cut.heads + u->head * u->cut.share + h) * u->cut.d;
}

/* Places [from, to) of a list, for no row yet. */
static st_cpu_cells cells_of(const cache_unit *u, cell_list l, int64_t from, int64_t to)
{
    const sotto_tensor *k = u->node->src[1], *v = u->node->src[2];
    return (st_cpu_cells){.d = (int)u->cut.d,
                          .scale = u->node->params.f[0],
                          .k = (const char *)st_tensor_data(k) + (size_t)u->head * k->stride[1],
                          .v = (const char *)st_tensor_data(v) + (size_t)u->head * v->stride[1],
                          .k_stride = k->stride[2],
                          .v_stride = v->stride[2],
                          .k_type = k->dtype,
                          .v_type = v->dtype,
                          .index = l.index != NULL ? l.index + from : NULL,
                          .base = l.base + from,
                          .n_kv = to - from,
                          .n_cell = k->dim[2],
                          .scratch = u->run->scratch};
}

/* Rows [row, end), which all see the cells of l. */
static void walk_cells(const cache_unit *u, int64_t row, int64_t end, cell_list l)
{
    const int64_t parts = parts_of(u, l), n = l.seen.end - l.seen.first;
    if (u->part >= parts)
        return;
    st_cpu_cells c = cells_of(u, l, l.seen.first + n * u->part / parts, l.seen.first + n * (u->part + 1) / parts);
    c.part = parts > 1;
    const int64_t first = row * u->cut.share, last = end * u->cut.share;
    for (int64_t pair = first; pair < last; pair++) {
        const int64_t r = pair / u->cut.share, h = pair % u->cut.share;
        c.q[c.n_row] = query(u, r, h);
        c.out[c.n_row++] = parts > 1 ? part_of(u, r, h, u->part) : result(u, r, h);
        if (c.n_row == ST_CPU_MAX_SKINNY || pair + 1 == last) {
            u->kernel(&c);
            c.n_row = 0;
        }
    }
}

/* How many rows from `row` on are a prompt: of one list, all cells of which up to the last one seen are seen by some row.
 * 0 when they are better met one by one. */
static int64_t prompt_rows(const cache_unit *u, int64_t row, int64_t end, st_cpu_range *seen)
{
    const cell_list l = list_of(u->node, row);
    st_cpu_range all = l.seen;
    bool alike = true;
    int64_t n = 0;
    for (; row + n < end; n++) {
        const cell_list other = list_of(u->node, row + n);
        if (!same_list(l, other) || other.seen.first > all.end || other.seen.end < all.first)
            break;
        alike = alike && same_cells(l, other);
        all.first = other.seen.first < all.first ? other.seen.first : all.first;
        all.end = other.seen.end > all.end ? other.seen.end : all.end;
        seen[n] = other.seen;
    }
    const bool together = alike && u->kernel == u->run->k->window_bf16; /* which reads cells that all see as fast */
    const bool worth = u->cut.share > 1 ? n > 1 && n * u->cut.share >= PROMPT_QUERIES : n >= PROMPT_ALONE && !together;
    return worth ? n : 0;
}

static void walk_prompt(const cache_unit *u, int64_t row, int64_t n, const st_cpu_range *seen)
{
    const sotto_tensor *q = u->node->src[0], *k = u->node->src[1], *v = u->node->src[2];
    const cell_list l = list_of(u->node, row);
    const st_cpu_prompt p = {.d = (int)u->cut.d,
                             .share = (int)u->cut.share,
                             .n_row = (int)n,
                             .scale = u->node->params.f[0],
                             .bf16 = prompt_bf16(u->node),
                             .q = query(u, row, 0),
                             .out = result(u, row, 0),
                             .q_row = floats(q->stride[2]),
                             .q_head = floats(q->stride[1]),
                             .out_row = (ptrdiff_t)(u->cut.heads * u->cut.d),
                             .k_type = k->dtype,
                             .v_type = v->dtype,
                             .k = (const char *)st_tensor_data(k) + (size_t)u->head * k->stride[1],
                             .v = (const char *)st_tensor_data(v) + (size_t)u->head * v->stride[1],
                             .k_stride = k->stride[2],
                             .v_stride = v->stride[2],
                             .index = l.index,
                             .base = l.base,
                             .n_cell = k->dim[2],
                             .seen = seen};
    if (st_cpu_prompt_words_fits(u->run->k, &p))
        st_cpu_prompt_words_rows(u->run->k, &p, u->run->scratch);
    else
        st_cpu_prompt_rows(u->run->k, &p, u->run->scratch);
}

/* The two parts of a row one behind the other in the thread's scratch; each is d values, its largest score and its sum. */
static float *half_of(const cache_unit *u, int64_t i, int64_t half)
{
    return u->run->scratch + st_cpu_cells_scratch((int)u->cut.d) + (2 * i + half) * (u->cut.d + 2);
}

/* Whether rows r - 1 and r have lists of their own that begin with the same cell. */
static bool begin_alike(const cache_unit *u, int64_t r)
{
    const cell_list a = list_of(u->node, r - 1), b = list_of(u->node, r);
    return a.index != NULL && b.index != NULL && a.index != b.index && a.seen.first == 0 && b.seen.first == 0 &&
           a.seen.end > 0 && b.seen.end > 0 && a.index[0] == b.index[0];
}

/* Rows from `row` on whose lists begin alike: a group of 8 at most, counted from the first of all such neighbours. */
static int64_t group_rows(const cache_unit *u, int64_t row)
{
    int64_t before = 0, n = 1;
    if (pair_floats(u->node, &u->cut) == 0)
        return 1;
    while (row - before > 0 && begin_alike(u, row - before))
        before++;
    const int64_t most = ST_CPU_MAX_SKINNY - before % ST_CPU_MAX_SKINNY;
    while (n < most && row + n < u->cut.n_row && begin_alike(u, row + n))
        n++;
    return n;
}

/* Whether a group began before this row and goes on here. */
static bool in_group(const cache_unit *u, int64_t row)
{
    int64_t before = 0;
    if (pair_floats(u->node, &u->cut) == 0)
        return false;
    while (row - before > 0 && begin_alike(u, row - before))
        before++;
    return before % ST_CPU_MAX_SKINNY != 0;
}

/* How many places all lists of rows [row, row + n) begin with in common. */
static int64_t shared_places(const cache_unit *u, int64_t row, int64_t n)
{
    const cell_list first = list_of(u->node, row);
    int64_t common = first.seen.end;
    for (int64_t i = 1; i < n; i++) {
        const cell_list l = list_of(u->node, row + i);
        int64_t same = 0;
        common = l.seen.end < common ? l.seen.end : common;
        while (same < common && l.index[same] == first.index[same])
            same++;
        common = same;
    }
    return common;
}

static void join_parts(const cache_unit *u, float *out, const float *part, int64_t parts);

/* Rows [row, row + n), n <= 8, whose lists begin with `common` cells in common. */
static void walk_shared(const cache_unit *u, int64_t row, int64_t n, int64_t common)
{
    st_cpu_cells c = cells_of(u, list_of(u->node, row), 0, common);
    c.part = true;
    for (int64_t i = 0; i < n; i++) {
        c.q[i] = query(u, row + i, 0);
        c.out[i] = half_of(u, i, 0);
    }
    c.n_row = (int)n;
    u->kernel(&c);
    for (int64_t i = 0; i < n; i++) {
        const cell_list l = list_of(u->node, row + i);
        c = cells_of(u, l, common, l.seen.end);
        c.part = true;
        c.q[0] = query(u, row + i, 0);
        c.out[0] = half_of(u, i, 1);
        c.n_row = 1;
        if (c.n_kv > 0)
            u->kernel(&c);
        join_parts(u, result(u, row + i, 0), half_of(u, i, 0), c.n_kv > 0 ? 2 : 1);
    }
}

/* All cells of rows [row, row + n): after the common ones place by place, with the rows that see them as bits. How many
 * there are, or 0: too many. */
static int64_t join_lists(const cache_unit *u, int64_t row, int64_t n, int64_t common, int32_t *cells, uint8_t *seen)
{
    cell_list l[ST_CPU_MAX_SKINNY];
    int64_t end = 0, count = common;
    for (int64_t i = 0; i < n; i++) {
        l[i] = list_of(u->node, row + i);
        end = l[i].seen.end > end ? l[i].seen.end : end;
    }
    if (common > JOINED_CELLS)
        return 0;
    memcpy(cells, l[0].index, sizeof *cells * (size_t)common);
    for (int64_t place = common; place < end; place++) {
        const int64_t first = count;
        for (int64_t i = 0; i < n; i++) {
            if (place >= l[i].seen.end)
                continue;
            int64_t at = first;
            while (at < count && cells[at] != l[i].index[place])
                at++;
            if (at == count) {
                if (count == JOINED_CELLS)
                    return 0;
                cells[count] = l[i].index[place];
                seen[count++ - common] = 0;
            }
            seen[at - common] |= (uint8_t)(1u << i);
        }
    }
    return count;
}

/* Whether meeting `joined` cells together is less work than each row's cells for itself. */
static bool worth_joining(const cache_unit *u, int64_t row, int64_t n, int64_t joined)
{
    int64_t apart = 0;
    for (int64_t i = 0; i < n; i++)
        apart += list_of(u->node, row + i).seen.end;
    return joined >= SHARED_CELLS && joined * 2 <= apart;
}

/* Rows [row, row + n), n <= 8, over the cells of all of them; false: not here. */
static bool walk_joined(cache_unit *u, int64_t row, int64_t n, int64_t common)
{
    if (joined_floats(u->run->k, u->node, &u->cut) == 0)
        return false;
    int32_t *cells = (int32_t *)(void *)half_of(u, ST_CPU_MAX_SKINNY, 0);
    uint8_t *seen = (uint8_t *)(cells + JOINED_CELLS);
    if (u->joined_row != row) { /* all heads of a unit's rows have the same list */
        u->joined_row = row;
        u->n_joined = join_lists(u, row, n, common, cells, seen);
        if (common < SHARED_CELLS && !worth_joining(u, row, n, u->n_joined))
            u->n_joined = 0;
    }
    if (u->n_joined == 0)
        return false;
    st_cpu_cells c = cells_of(u, (cell_list){.index = cells}, 0, u->n_joined);
    c.seen = seen;
    c.n_common = common;
    for (; c.n_row < n; c.n_row++) {
        c.q[c.n_row] = query(u, row + c.n_row, 0);
        c.out[c.n_row] = result(u, row + c.n_row, 0);
    }
    u->run->k->window_bf16(&c);
    return true;
}

static void walk_rows(cache_unit *u, int64_t row, int64_t end)
{
    st_cpu_range seen[CACHE_ROWS];
    while (row < end && in_group(u, row)) /* the unit where a group begins does all of it */
        row++;
    while (end < u->cut.n_row && in_group(u, end))
        end++;
    while (row < end) {
        const int64_t group = group_rows(u, row), common = group > 1 ? shared_places(u, row, group) : 0;
        const bool joined = group > 1 && walk_joined(u, row, group, common);
        if (!joined && common >= SHARED_CELLS)
            walk_shared(u, row, group, common);
        if (joined || common >= SHARED_CELLS) {
            row += group;
            continue;
        }
        const int64_t prompt = u->cut.n_row >= PROMPT_ROWS ? prompt_rows(u, row, end, seen) : 0;
        if (prompt > 0) {
            walk_prompt(u, row, prompt, seen);
            u->joined_row = -1; /* the scratch is no longer what it was */
            row += prompt;
            continue;
        }
        const cell_list l = list_of(u->node, row);
        int64_t next = row + 1;
        while (next < end && same_cells(list_of(u->node, next), l))
            next++;
        walk_cells(u, row, next, l);
        row = next;
    }
}

/* The parts of one row of one head, one behind the other. */
static void join_parts(const cache_unit *u, float *out, const float *part, int64_t parts)
{
    float *weighted = u->run->scratch, top = -INFINITY, sum = 0;
    const st_cpu_kernels *k = u->run->k;
    const int64_t d = u->cut.d;
    for (int64_t i = 0; i < parts; i++) {
        const float max = part[i * (d + 2) + d];
        top = max > top ? max : top;
    }
    for (int64_t i = 0; i < parts; i++, part += d + 2) {
        const float factor = exp2f(part[d] - (top > -INFINITY ? top : 0.0f));
        sum += factor * part[d + 1];
        k->scale(part, factor, 0.0f, i == 0 ? out : weighted, d);
        if (i > 0)
            k->add(out, weighted, out, d);
    }
    k->scale(out, sum == 0 ? 0.0f : 1.0f / sum, 0.0f, out, d);
}

static void run_cache_attention(st_cpu_run *r, const sotto_tensor *node, int phase)
{
    cache_unit u = {.run = r, .node = node, .cut = cut_of(node), .joined_row = -1};
    const bool window = node->src[3] == NULL && takes_window(r->k, node, &u.cut);
    u.kernel = window ? r->k->window_bf16 : r->k->cells;
    int64_t unit;
    while (st_cpu_take(r, 1, &unit) > 0) {
        if (phase == 1) {
            u.head = unit % u.cut.heads_kv;
            const int64_t row = unit / u.cut.heads_kv, parts = parts_of(&u, list_of(node, row));
            for (int64_t h = 0; parts > 1 && h < u.cut.share; h++)
                join_parts(&u, result(&u, row, h), part_of(&u, row, h, 0), parts);
            continue;
        }
        u.part = unit % u.cut.parts;
        u.head = unit / u.cut.parts / u.cut.blocks;
        const int64_t first = unit / u.cut.parts % u.cut.blocks * u.cut.rows, end = first + u.cut.rows;
        walk_rows(&u, first, end < u.cut.n_row ? end : u.cut.n_row);
    }
}

const st_cpu_op st_cpu_op_attention = {supports_attention, need_attention, run_attention};
const st_cpu_op st_cpu_op_cache_attention = {supports_cache_attention, need_cache_attention, run_cache_attention};
