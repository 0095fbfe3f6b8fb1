/* ref_attention.c: attention over whole sequences, and of single rows over a cache. */
#include <math.h>

#include "base/half.h"
#include "quant/blocks.h"
#include "reference/ref.h"

static size_t scratch_keys(const sotto_tensor *node)
{
    return (size_t)node->src[1]->dim[2];
}

/* Scores become weights that sum to 1; with nothing to choose from all become 0. */
static void weigh(double *p, int64_t n)
{
    double top = -INFINITY, sum = 0;
    bool nan = false;
    for (int64_t j = 0; j < n; j++) {
        top = p[j] > top ? p[j] : top;
        nan = nan || p[j] != p[j];
    }
    const bool none = top == -INFINITY && !nan;
    for (int64_t j = 0; j < n; j++) {
        p[j] = none ? 0 : exp(p[j] - top);
        sum += p[j];
    }
    for (int64_t j = 0; !none && j < n; j++)
        p[j] /= sum;
}

/* q [b, n_q, h, d]; k, v [b, n_k, h_kv, d]; result [b, n_q, h * d] */
static void attend(st_ref_run *r, const sotto_tensor *node, int64_t b, int64_t h, int64_t i)
{
    const sotto_tensor *q = node->src[0], *k = node->src[1], *v = node->src[2];
    const int64_t d = q->dim[0], n_k = k->dim[2], h_kv = h / (q->dim[1] / k->dim[1]);
    int64_t n = node->params.i[0] ? n_k - q->dim[2] + i + 1 : n_k;
    n = n < 0 ? 0 : n;
    for (int64_t j = 0; j < n; j++) {
        double s = 0;
        for (int64_t e = 0; e < d; e++)
            s += st_ref_get(q, (st_ref_at){{e, h, i, b}}) * st_ref_get(k, (st_ref_at){{e, h_kv, j, b}});
        r->scratch[j] = s * node->params.f[0];
    }
    weigh(r->scratch, n);
    for (int64_t e = 0; e < d; e++) {
        double y = 0;
        for (int64_t j = 0; j < n; j++)
            y += r->scratch[j] * st_ref_get(v, (st_ref_at){{e, h_kv, j, b}});
        st_ref_put(node, (st_ref_at){{h * d + e, i, b, 0}}, y);
    }
}

static void attention(st_ref_run *r, const sotto_tensor *node)
{
    const sotto_tensor *q = node->src[0];
    for (int64_t b = 0; b < q->dim[3]; b++)
        for (int64_t h = 0; h < q->dim[1]; h++)
            for (int64_t i = 0; i < q->dim[2] && !st_ref_stop(r); i++)
                attend(r, node, b, h, i);
}

/* The cells that row r sees, with whatever the lists say brought into range. */
typedef struct cells {
    const int32_t *index;
    int64_t base, n;
} cells;

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

static cells cells_of(const sotto_tensor *node, int64_t row)
{
    const sotto_tensor *index = node->src[3];
    const int64_t n_cell = node->src[1]->dim[2];
    const int64_t base = ((const int32_t *)st_tensor_data(node->src[4]))[row];
    const int64_t n = ((const int32_t *)st_tensor_data(node->src[5]))[row];
    cells c = {0};
    if (n_cell == 0 || n <= 0 || (index && index->dim[1] == 0))
        return c;
    if (!index) {
        c.base = clamp(base, 0, n_cell);
        c.n = clamp(n, 0, n_cell - c.base);
    } else {
        c.index = (const int32_t *)st_tensor_data(index) + clamp(base, 0, index->dim[1] - 1) * index->dim[0];
        c.n = clamp(n, 0, index->dim[0]);
    }
    const int64_t window = node->params.i[0], unseen = window > 0 && c.n > window ? c.n - window : 0;
    if (index)
        c.index += unseen;
    c.base += unseen;
    c.n -= unseen;
    return c;
}

static int64_t cell(const cells *c, int64_t j, int64_t n_cell)
{
    return clamp(c->index ? c->index[j] : c->base + j, 0, n_cell - 1);
}

/* Element e of head h of a cell. */
static double cached(const sotto_tensor *t, int64_t e, int64_t h, int64_t at)
{
    if (t->dtype != SOTTO_Q8_0)
        return st_ref_get(t, (st_ref_at){{e, h, at, 0}});
    st_q8_0 block;
    memcpy(&block, st_ref_address(t, (st_ref_at){{0, h, at, 0}}) + (size_t)(e / ST_BLOCK) * sizeof block, sizeof block);
    return (double)st_f16_to_f32(block.d) * block.qs[e % ST_BLOCK];
}

static size_t scratch_cells(const sotto_tensor *node)
{
    const sotto_tensor *index = node->src[3];
    return (size_t)(index ? index->dim[0] : node->src[1]->dim[2]);
}

/* q [n_row, h, d]; k, v [n_cell, h_kv, d]; result [n_row, h * d] */
static void cache_attention(st_ref_run *r, const sotto_tensor *node)
{
    const sotto_tensor *q = node->src[0], *k = node->src[1], *v = node->src[2];
    const int64_t d = q->dim[0], n_cell = k->dim[2];
    for (int64_t u = 0; u < q->dim[1] * q->dim[2] && !st_ref_stop(r); u++) {
        const int64_t h = u % q->dim[1], row = u / q->dim[1], h_kv = h / (q->dim[1] / k->dim[1]);
        const cells c = cells_of(node, row);
        for (int64_t j = 0; j < c.n; j++) {
            double s = 0;
            for (int64_t e = 0; e < d; e++)
                s += st_ref_get(q, (st_ref_at){{e, h, row, 0}}) * cached(k, e, h_kv, cell(&c, j, n_cell));
            r->scratch[j] = s * node->params.f[0];
        }
        weigh(r->scratch, c.n);
        for (int64_t e = 0; e < d; e++) {
            double y = 0;
            for (int64_t j = 0; j < c.n; j++)
                y += r->scratch[j] * cached(v, e, h_kv, cell(&c, j, n_cell));
            st_ref_put(node, (st_ref_at){{h * d + e, row, 0, 0}}, y);
        }
    }
}

const st_ref_op st_ref_attention = {attention, scratch_keys};
const st_ref_op st_ref_cache_attention = {cache_attention, scratch_cells};
