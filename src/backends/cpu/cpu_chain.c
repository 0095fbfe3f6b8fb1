/* cpu_chain.c: see cpu_chain.h. In a chain rows of a late operation are written before rows of an early one are read. The
 * plan's memory was laid out for operations one after the other, so a chain ends where a result would lie on what its own
 * operations read, unless row by row in the same place. */
#include "backends/cpu/cpu_chain.h"

#include <string.h>

static const sotto_tensor *home_of(const sotto_tensor *t)
{
    return t->view_of != NULL ? t->view_of : t;
}

/* ---- what may be in a chain ---- */

static bool is_norm(const sotto_tensor *node)
{
    return node->op == ST_OP_LAYER_NORM || node->op == ST_OP_RMS_NORM;
}

static bool flat(const sotto_tensor *t, int64_t rows)
{
    return t->dim[1] == rows && t->dim[2] == 1 && t->dim[3] == 1;
}

/* Columns of an f32 tensor into a cache, a row of the one to a row of the other: [n, rows, d]. */
static bool is_row_copy(const sotto_tensor *node, int64_t rows)
{
    const sotto_tensor *x = node->src[0], *y = node->src[1];
    return node->op == ST_OP_COPY && y != NULL && x->dtype == SOTTO_F32 && x->dim[1] == rows && x->dim[3] == 1 &&
           x->view_of != NULL && x->stride[0] == sizeof(float) && y->stride[0] == sotto_dtype_bytes(y->dtype) &&
           (y->dtype == SOTTO_F32 || y->dtype == SOTTO_F16 || y->dtype == SOTTO_BF16 || y->dtype == SOTTO_Q8_0) &&
           (home_of(y)->flags & ST_TENSOR_STORED) != 0;
}

static bool is_attention(const sotto_tensor *node)
{
    return node->op == ST_OP_ATTENTION;
}

static bool may_follow(const sotto_tensor *node, int64_t rows)
{
    if (is_norm(node))
        return flat(node, rows) && flat(node->src[0], rows) && rows > ST_CPU_ROW_BLOCK;
    if (node->op == ST_OP_LINEAR)
        return flat(node, rows) && flat(node->src[0], rows) && st_cpu_linear_in_rows(node);
    return is_row_copy(node, rows);
}

/* The link whose result a tensor is, or is a view of; -1: none. */
static int link_of(const st_cpu_chain *c, const sotto_tensor *t)
{
    for (int i = 0; t != NULL && i < c->n; i++)
        if (c->link[i].node == home_of(t))
            return i;
    return -1;
}

/* Products and norms take whole results only, copies the columns of a product. */
static bool sources_fit(const st_cpu_chain *c, const sotto_tensor *node)
{
    for (int i = 0; i < ST_MAX_SRC; i++) {
        const sotto_tensor *s = node->src[i];
        const int from = link_of(c, s);
        if (from < 0 && node->op == ST_OP_COPY && i == 0)
            return false;
        if (from < 0)
            continue;
        const bool copied = node->op == ST_OP_COPY && i == 0 && c->link[from].node->op == ST_OP_LINEAR &&
                            s->stride[1] == c->link[from].node->stride[1];
        const bool whole = s->view_of == NULL && (i == 0 || (i == 3 && node->op == ST_OP_LINEAR));
        if (!copied && !whole)
            return false;
    }
    return true;
}

/* ---- memory ---- */

static bool overlap(const sotto_tensor *a, const sotto_tensor *b)
{
    const sotto_tensor *x = home_of(a), *y = home_of(b);
    return x->buffer == y->buffer && x->offset < y->offset + sotto_tensor_bytes(y) &&
           y->offset < x->offset + sotto_tensor_bytes(x);
}

static bool same_rows(const sotto_tensor *a, const sotto_tensor *b)
{
    return a->view_of == NULL && b->view_of == NULL && a->offset == b->offset && a->stride[1] == b->stride[1] &&
           a->dim[0] == b->dim[0];
}

/* Whether link t may write its result while other rows of the chain are at any other of its links. */
static bool may_write(const st_cpu_chain *c, int t)
{
    const sotto_tensor *y = c->link[t].node;
    for (int i = 0; i < c->n; i++) {
        const sotto_tensor *node = c->link[i].node;
        if (i < t && c->link[i].out < 0 && overlap(node, y) && !(home_of(node)->flags & ST_TENSOR_STORED))
            return false;
        for (int s = 0; s < ST_MAX_SRC; s++) {
            const sotto_tensor *x = node->src[s];
            if (x == NULL || (home_of(x)->flags & ST_TENSOR_STORED) || link_of(c, x) >= 0 || !overlap(x, y))
                continue;
            if (i > t || !same_rows(x, y))
                return false;
        }
    }
    return true;
}

/* Nobody outside the nodes [first, end) reads it. */
static bool stays_inside(const st_exec_plan *plan, int first, int end, const sotto_tensor *node)
{
    if (node->flags & (ST_TENSOR_OUTPUT | ST_TENSOR_SHARED | ST_TENSOR_STORED))
        return false;
    for (int i = 0; i < plan->n_node; i++) {
        if (i >= first && i < end)
            continue;
        for (int s = 0; s < ST_MAX_SRC; s++)
            if (plan->node[i]->src[s] != NULL && home_of(plan->node[i]->src[s]) == node)
                return false;
    }
    return true;
}

/* The last link that reads link i's result. */
static int last_reader(const st_cpu_chain *c, int i)
{
    int last = i;
    for (int j = i + 1; j < c->n; j++)
        for (int s = 0; s < ST_MAX_SRC; s++)
            if (c->link[j].node->src[s] != NULL && home_of(c->link[j].node->src[s]) == c->link[i].node)
                last = j;
    return last;
}

/* Places for what stays inside: the first that is free while it is wanted. */
static void place(st_cpu_chain *c, const st_exec_plan *plan, int first, int end)
{
    const ptrdiff_t block = (ptrdiff_t)c->tile * c->most;
    c->block_floats = 0;
    for (int i = 0; i < c->n; i++) {
        const sotto_tensor *node = c->link[i].node;
        c->link[i].out = -1;
        if (node->op == ST_OP_COPY || is_attention(node) || !stays_inside(plan, first, end, node))
            continue;
        const ptrdiff_t size = (ptrdiff_t)((node->dim[0] + 15) / 16 * 16) * block;
        ptrdiff_t at = 0;
        for (int j = 0; j < i; j++) {
            const ptrdiff_t from = c->link[j].out, to = from + (c->link[j].node->dim[0] + 15) / 16 * 16 * block;
            if (from >= 0 && last_reader(c, j) >= i && at < to && from < at + size) {
                at = to;
                j = -1; /* again from the first */
            }
        }
        c->link[i].out = at;
        if ((size_t)(at + size) > c->block_floats)
            c->block_floats = (size_t)(at + size);
    }
    for (int i = 0; i < c->n; i++) {
        st_cpu_link *l = &c->link[i];
        const int from = link_of(c, l->node->src[0]),
                  other = l->node->op == ST_OP_LINEAR ? link_of(c, l->node->src[3]) : -1;
        l->in = from < 0 ? -1 : c->link[from].out;
        l->residual = other < 0 ? -1 : c->link[other].out;
    }
}

/* ---- finding ---- */

/* A product before link i, with nothing but copies between them, has the same left side. */
static bool left_is_packed(const st_cpu_chain *c, int i)
{
    int before = i - 1;
    while (before >= 0 && c->link[before].node->op == ST_OP_COPY)
        before--;
    return c->link[i].node->op == ST_OP_LINEAR && before >= 0 && c->link[before].node->op == ST_OP_LINEAR &&
           st_cpu_linear_packs_alike(c->link[before].node, c->link[i].node);
}

/* The most links from the first on whose results may all be written; they end with a product or a copy. */
static void shorten(st_cpu_chain *c, const st_exec_plan *plan, int first, int *end)
{
    for (bool again = true; again && c->n > 0;) {
        again = false;
        while (c->n > 0 && is_norm(c->link[c->n - 1].node))
            c->n--;
        for (*end = first; c->n > 0 && plan->node[*end] != c->link[c->n - 1].node;)
            ++*end;
        ++*end;
        place(c, plan, first, *end);
        for (int t = 0; t < c->n && !again; t++) {
            if (c->link[t].out < 0 && !is_attention(c->link[t].node) && !may_write(c, t)) {
                c->n = t;
                again = true;
            }
        }
    }
}

int st_cpu_chain_find(const st_cpu_kernels *k, const st_exec_plan *plan, int first, st_cpu_link *link, st_cpu_chain *out)
{
    *out = (st_cpu_chain){.link = link, .rows = plan->node[first]->dim[1], .tile = 1, .most = 1};
    int end = first;
    for (; end < plan->n_node; end++) {
        const sotto_tensor *node = plan->node[end];
        if (node->op == ST_OP_NONE)
            continue;
        if (!may_follow(node, out->rows) || !sources_fit(out, node))
            break;
        link[out->n++] = (st_cpu_link){.node = node, .in = -1, .residual = -1, .out = -1};
    }
    const sotto_tensor *const behind = end < plan->n_node ? plan->node[end] : NULL;
    size_t work = 0;
    for (int i = 0; i < out->n; i++) {
        if (link[i].node->op != ST_OP_LINEAR)
            continue;
        const int tile = st_cpu_linear_tile(k, link[i].node);
        out->tile = tile > out->tile ? tile : out->tile;
        if (st_cpu_linear_scratch(link[i].node) > work)
            work = st_cpu_linear_scratch(link[i].node);
    }
    out->most = ST_CPU_ROW_BLOCK / out->tile;
    const sotto_tensor *const last = out->n > 0 ? link[out->n - 1].node : NULL;
    if (behind != NULL && last != NULL && last->op == ST_OP_LINEAR && is_attention(behind) &&
        st_cpu_attention_packs(k, behind, last, out->tile))
        link[out->n++] = (st_cpu_link){.node = behind, .in = -1, .residual = -1, .out = -1};
    shorten(out, plan, first, &end);
    if (out->n < 2 || out->most < 1 || work == 0)
        return 0;
    out->attention = -1;
    if (is_attention(link[out->n - 1].node)) {
        out->attention = end - 1;
        out->shared_floats = st_cpu_attention_shared(k, behind);
    }
    for (int i = 0; i < out->n; i++)
        link[i].packed = left_is_packed(out, i);
    out->units = (out->rows + out->tile - 1) / out->tile;
    out->thread_floats = out->block_floats + work;
    return end - first;
}

/* ---- running ---- */

typedef struct block {
    int64_t row;
    int n;
    float *scratch;
} block;

/* Where rows of a tensor begin, in the scratch or in the tensor, and how far apart they are. */
static float *rows_of(const block *b, const sotto_tensor *t, ptrdiff_t at, ptrdiff_t *stride)
{
    if (at >= 0) {
        *stride = (ptrdiff_t)t->dim[0];
        return b->scratch + at;
    }
    *stride = (ptrdiff_t)(t->stride[1] / sizeof(float));
    return (float *)st_tensor_data(t) + b->row * *stride;
}

static void run_norm(const st_cpu_kernels *k, const st_cpu_link *l, const block *b)
{
    const sotto_tensor *node = l->node;
    ptrdiff_t in, out;
    const float *x = rows_of(b, node->src[0], l->in, &in), *w = st_tensor_data(node->src[1]);
    float *y = rows_of(b, node, l->out, &out);
    for (int r = 0; r < b->n; r++, x += in, y += out) {
        if (node->op == ST_OP_LAYER_NORM)
            k->layer_norm(x, w, st_tensor_data(node->src[2]), node->params.f[0], node->dim[0], y);
        else
            k->rms_norm(x, w, node->params.f[0], node->dim[0], y);
    }
}

static void run_linear(const st_cpu_kernels *k, const st_cpu_link *l, const block *b, float *work)
{
    const sotto_tensor *residual = l->node->src[3];
    st_cpu_linear_rows rows = {.n = b->n, .packed = l->packed};
    ptrdiff_t ignored;
    rows.x = rows_of(b, l->node->src[0], l->in, &rows.x_stride);
    rows.out = rows_of(b, l->node, l->out, &ignored);
    if (residual != NULL)
        rows.residual = rows_of(b, residual, l->residual, &rows.residual_stride);
    st_cpu_linear_run(k, l->node, &rows, work);
}

static void run_copy(const st_cpu_kernels *k, const st_cpu_link *l, const block *b)
{
    const sotto_tensor *x = l->node->src[0], *y = l->node->src[1];
    const int64_t n = x->dim[0];
    for (int64_t h = 0; h < x->dim[2]; h++) {
        const char *from = l->in >= 0 ? (const char *)(b->scratch + l->in) + x->view_offset
                                      : (const char *)st_tensor_data(x) + (size_t)b->row * x->stride[1];
        char *to = (char *)st_tensor_data(y) + (size_t)b->row * y->stride[1] + (size_t)h * y->stride[2];
        from += (size_t)h * x->stride[2];
        for (int r = 0; r < b->n; r++, from += x->stride[1], to += y->stride[1]) {
            const float *row = (const float *)(const void *)from;
            if (y->dtype == SOTTO_BF16)
                k->to_bf16(row, (uint16_t *)(void *)to, n);
            else if (y->dtype == SOTTO_F16)
                k->to_f16(row, (uint16_t *)(void *)to, n);
            else if (y->dtype == SOTTO_Q8_0)
                k->to_q8_0(row, to, n);
            else
                memcpy(to, row, (size_t)n * sizeof *row);
        }
    }
}

/* The columns of the product before as an attention likes them. */
static void run_packing(st_cpu_run *r, const st_cpu_link *l, const sotto_tensor *product, const block *b)
{
    ptrdiff_t stride;
    const float *x = rows_of(b, product, l->in, &stride);
    st_cpu_attention_pack_block(r, l->node, x, stride, b->row, b->n);
}

void st_cpu_chain_run(st_cpu_run *r, const st_cpu_chain *c)
{
    float *const work = r->scratch + c->block_floats;
    int64_t start, count;
    while ((count = st_cpu_take(r, c->most, &start)) > 0) {
        const int64_t row = start * c->tile, end = row + count * c->tile;
        const block b = {row, (int)((end < c->rows ? end : c->rows) - row), r->scratch};
        for (int i = 0; i < c->n; i++) {
            const st_cpu_link *l = &c->link[i];
            if (l->node->op == ST_OP_LINEAR)
                run_linear(r->k, l, &b, work);
            else if (l->node->op == ST_OP_COPY)
                run_copy(r->k, l, &b);
            else if (is_attention(l->node))
                run_packing(r, l, l[-1].node, &b);
            else
                run_norm(r->k, l, &b);
        }
    }
}
