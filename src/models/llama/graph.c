#include "models/llama/graph.h"

#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/status.h"

typedef struct builder {
    sotto_graph *g;
    const sotto_llama_model *m;
    const st_llama_caches *caches;
    st_llama_graph *io;
    bool observed;
} builder;

static sotto_tensor *use(const builder *b, sotto_tensor *stored)
{
    return stored ? sotto_graph_use(b->g, stored) : NULL;
}

static sotto_tensor *norm(const builder *b, sotto_tensor *x, sotto_tensor *w)
{
    return sotto_rms_norm(b->g, x, use(b, w), b->m->h.eps);
}

static void see(const builder *b, sotto_tensor *x, sotto_tensor *const *w, int n_w, bool wanted_rows)
{
    if (!b->observed)
        return;
    char name[64];
    snprintf(name, sizeof name, "input of %.40s", sotto_tensor_name(*w));
    sotto_graph_output(b->g, x, name);
    b->io->seen[b->io->n_seen++] = (st_llama_seen){x, w, n_w, wanted_rows};
}

/* [n, h d] -> [n, h, d], same memory */
static sotto_tensor *heads(const builder *b, sotto_tensor *x, int64_t n_head)
{
    const int64_t dim[3] = {b->m->h.d_head, n_head, sotto_tensor_dim(x, 1)};
    return sotto_view_reshape(b->g, x, 3, dim);
}

/* [n, h, d] -> [n, h d], same memory */
static sotto_tensor *joined(const builder *b, sotto_tensor *x, int64_t n_head)
{
    const int64_t dim[2] = {b->m->h.d_head * n_head, sotto_tensor_dim(x, 2)};
    return sotto_view_reshape(b->g, x, 2, dim);
}

static void products(const builder *b, sotto_tensor *x, const st_fused *f, sotto_tensor *y[ST_FUSED_PARTS])
{
    for (int i = 0; i < f->n; i++)
        y[i] = sotto_linear(b->g, x, use(b, f->w[i]), use(b, f->b[i]), SOTTO_ACT_NONE, NULL);
}

/* A part of what products() gave, [n, rows of the part]. */
static sotto_tensor *part_of(const builder *b, const st_fused *f, sotto_tensor *const *y, int part)
{
    sotto_tensor *whole = y[f->of[part]];
    if (sotto_tensor_dim(whole, 0) == f->rows[part])
        return whole;
    return sotto_view_slice(b->g, whole, 0, f->start[part], f->rows[part]);
}

/* The rotation of a layer; magnitude 1 for keys that have theirs already. */
static sotto_tensor *rope(const builder *b, sotto_tensor *x, sotto_tensor *position, int layer, bool again)
{
    const st_llama_hparams *h = &b->m->h;
    const bool far = b->caches->stretched;
    const st_llama_rope *r = &b->m->rope[st_llama_window(h, layer) > 0][far];
    return sotto_rope(b->g, x, position, use(b, b->m->layer[layer].rope_factors[far]), h->arch->pairs, h->n_rot,
                      r->base, r->scale, again ? 1 : r->magnitude);
}

/* Queries [n, n_head, d_head] and keys [n, n_head_kv, d_head], rotated. Where nothing is between, both are rotated at once. */
static void rotated(const builder *b, const st_llama_layer *w, sotto_tensor *const *y, int i, sotto_tensor **q,
                    sotto_tensor **k)
{
    const int64_t n_q = b->m->h.n_head, n_k = b->m->h.n_head_kv;
    const st_fused *f = &w->qkv;
    if (!w->q_norm && f->of[ST_Q] == f->of[ST_K] && f->start[ST_K] == f->start[ST_Q] + f->rows[ST_Q]) {
        const int64_t columns = f->rows[ST_Q] + f->rows[ST_K];
        sotto_tensor *both = sotto_view_slice(b->g, y[f->of[ST_Q]], 0, f->start[ST_Q], columns);
        both = rope(b, heads(b, both, n_q + n_k), b->io->position, i, false);
        *q = sotto_view_slice(b->g, both, 1, 0, n_q);
        *k = sotto_view_slice(b->g, both, 1, n_q, n_k);
        return;
    }
    *q = heads(b, part_of(b, f, y, ST_Q), n_q);
    *k = heads(b, part_of(b, f, y, ST_K), n_k);
    if (w->q_norm) {
        *q = norm(b, *q, w->q_norm);
        *k = norm(b, *k, w->k_norm);
    }
    *q = rope(b, *q, b->io->position, i, false);
    *k = rope(b, *k, b->io->position, i, false);
}

/* What attention adds, [n, n_head d_head], of all rows; NULL when keys and values are only stored. */
static sotto_tensor *attend(const builder *b, sotto_tensor *x, int i, bool only_store)
{
    const st_llama_hparams *h = &b->m->h;
    const st_llama_layer *w = &b->m->layer[i];
    const st_llama_caches *c = b->caches;
    sotto_tensor *y[ST_FUSED_PARTS], *q, *k;
    x = norm(b, x, w->attn_norm);
    see(b, x, w->qkv.w, w->qkv.n, false);
    products(b, x, &w->qkv, y);
    rotated(b, w, y, i, &q, &k);
    k = sotto_set_rows(b->g, use(b, c->k[i]), b->io->cell, joined(b, k, h->n_head_kv));
    sotto_tensor *v = sotto_set_rows(b->g, use(b, c->v[i]), b->io->cell, part_of(b, &w->qkv, y, ST_V));
    if (only_store)
        return NULL;
    return sotto_cache_attention(b->g, q, heads(b, k, h->n_head_kv), heads(b, v, h->n_head_kv), use(b, c->list[i]),
                                 b->io->sequence, b->io->n_kv, h->attention_scale, st_llama_window(h, i));
}

/* Rows that are wanted, of all rows. */
static sotto_tensor *wanted(const builder *b, sotto_tensor *x)
{
    return b->io->want ? sotto_get_rows(b->g, x, b->io->want) : x;
}

static sotto_tensor *add_projected(const builder *b, sotto_tensor *y, sotto_tensor *w, sotto_tensor *bias,
                                   sotto_tensor *post_norm, sotto_tensor *x)
{
    if (!post_norm)
        return sotto_linear(b->g, y, use(b, w), use(b, bias), SOTTO_ACT_NONE, x);
    y = sotto_linear(b->g, y, use(b, w), use(b, bias), SOTTO_ACT_NONE, NULL);
    return sotto_add(b->g, norm(b, y, post_norm), x);
}

/* After its keys are stored the last layer only computes what is wanted, unless somebody looks on. NULL when nothing is. */
static sotto_tensor *layer(const builder *b, sotto_tensor *x, int i, int n_want)
{
    const st_llama_hparams *h = &b->m->h;
    const st_llama_layer *w = &b->m->layer[i];
    const bool fewer = i == h->n_layer - 1 && !b->observed;
    sotto_tensor *y = attend(b, x, i, fewer && n_want == 0);
    if (!y)
        return NULL;
    if (fewer) {
        y = wanted(b, y);
        x = wanted(b, x);
    }
    see(b, y, &w->out, 1, fewer);
    x = add_projected(b, y, w->out, w->out_b, w->attn_post_norm, x);
    y = norm(b, x, w->ffn_norm);
    see(b, y, w->gate_up.w, w->gate_up.n, fewer);
    sotto_tensor *both[ST_FUSED_PARTS];
    products(b, y, &w->gate_up, both);
    y = sotto_glu(b->g, part_of(b, &w->gate_up, both, ST_GATE), part_of(b, &w->gate_up, both, ST_UP), h->arch->act);
    see(b, y, &w->down, 1, fewer);
    return add_projected(b, y, w->down, w->down_b, w->ffn_post_norm, x);
}

static sotto_tensor *row_input(sotto_graph *g, const char *name, int64_t n)
{
    return sotto_graph_input(g, name, SOTTO_I32, 1, &n);
}

static sotto_compute compute_of(const sotto_llama_model *m)
{
    return m->compute == SOTTO_F32   ? SOTTO_COMPUTE_F32
           : m->compute == SOTTO_F16 ? SOTTO_COMPUTE_F16
                                     : SOTTO_COMPUTE_INT8;
}

static void make_inputs(sotto_graph *g, st_llama_graph *io, int n_rows, int n_want)
{
    io->token = row_input(g, "token", n_rows);
    io->position = row_input(g, "position", n_rows);
    io->cell = row_input(g, "cell", n_rows);
    io->sequence = row_input(g, "sequence", n_rows);
    io->n_kv = row_input(g, "n_kv", n_rows);
    io->want = n_want > 0 && n_want < n_rows ? row_input(g, "want", n_want) : NULL;
}

static sotto_tensor *output(const builder *b, sotto_tensor *x)
{
    const sotto_llama_model *m = b->m;
    const float cap = m->h.soft_cap;
    x = norm(b, x, m->output_norm);
    see(b, x, &m->output, 1, true);
    x = sotto_linear(b->g, x, use(b, m->output), use(b, m->output_b), SOTTO_ACT_NONE, NULL); /* [n_want, n_vocab] */
    if (cap > 0)
        x = sotto_scale(b->g, sotto_tanh(b->g, sotto_scale(b->g, x, 1 / cap, 0)), cap, 0);
    return x;
}

sotto_status st_llama_graph_decode(const sotto_llama_model *m, const st_llama_caches *caches, int n_rows, int n_want,
                                   bool observed, st_llama_graph *out, sotto_error *err)
{
    const st_llama_hparams *h = &m->h;
    *out = (st_llama_graph){0};
    if (observed) {
        const size_t most = (size_t)h->n_layer * ST_LLAMA_SEEN_OF_LAYER + 1;
        out->seen = st_calloc(most, sizeof *out->seen);
        if (!out->seen)
            return st_fail_memory(err, most * sizeof *out->seen, "a list of products");
    }
    ST_TRY(sotto_graph_create("decode", &out->graph, err));
    sotto_graph *g = out->graph;
    sotto_graph_set_compute(g, compute_of(m));
    const builder b = {g, m, caches, out, observed};
    make_inputs(g, out, n_rows, n_want);
    sotto_tensor *x = sotto_get_rows(g, use(&b, m->lookup), out->token);
    if (h->arch->scaled_embedding)
        x = sotto_scale(g, x, sqrtf((float)h->n_embd), 0);
    for (int i = 0; i < h->n_layer; i++)
        x = layer(&b, x, i, n_want);
    if (observed)
        x = n_want > 0 ? wanted(&b, x) : NULL;
    if (x) {
        out->logits = output(&b, x);
        sotto_graph_output(g, out->logits, "logits");
    }
    return sotto_graph_finish(g, err);
}

sotto_status st_llama_graph_shift(const sotto_llama_model *m, const st_llama_caches *caches, int n_rows, bool values,
                                  st_llama_shift *out, sotto_error *err)
{
    *out = (st_llama_shift){0};
    ST_TRY(sotto_graph_create("shift", &out->graph, err));
    sotto_graph *g = out->graph;
    const builder b = {.g = g, .m = m, .caches = caches};
    out->from = row_input(g, "from", n_rows);
    out->to = row_input(g, "to", n_rows);
    out->turn = row_input(g, "turn", n_rows);
    for (int i = 0; i < m->h.n_layer; i++) {
        sotto_tensor *k = use(&b, caches->k[i]), *v = use(&b, caches->v[i]);
        sotto_tensor *x = heads(&b, sotto_get_rows(g, k, out->from), m->h.n_head_kv);
        x = rope(&b, x, out->turn, i, true);
        (void)sotto_set_rows(g, k, out->to, joined(&b, x, m->h.n_head_kv));
        if (values)
            (void)sotto_set_rows(g, v, out->to, sotto_get_rows(g, v, out->from));
    }
    return sotto_graph_finish(g, err);
}
