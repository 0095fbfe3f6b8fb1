#include "models/whisper/graphs.h"

#include <math.h>

#include "base/status.h"

#define LN_EPS 1e-5f

typedef struct builder {
    sotto_graph *g;
    int64_t d, n_head;
    sotto_compute compute; /* of all but products with weights of block types */
    sotto_compute blocks;  /* of these */
} builder;

static sotto_tensor *use(const builder *b, sotto_tensor *stored)
{
    return sotto_graph_use(b->g, stored);
}

static sotto_tensor *row_input(sotto_graph *g, const char *name, int64_t n)
{
    return sotto_graph_input(g, name, SOTTO_I32, 1, &n);
}

static sotto_tensor *norm(const builder *b, sotto_tensor *x, sotto_tensor *w, sotto_tensor *bias)
{
    return sotto_layer_norm(b->g, x, use(b, w), use(b, bias), LN_EPS);
}

static sotto_tensor *linear(const builder *b, sotto_tensor *x, sotto_tensor *w, sotto_tensor *bias,
                            sotto_activation act, sotto_tensor *residual)
{
    const bool blocks = sotto_dtype_block(sotto_tensor_dtype(w)) > 1;
    sotto_graph_set_compute(b->g, blocks ? b->blocks : b->compute);
    sotto_tensor *y = sotto_linear(b->g, x, use(b, w), bias ? use(b, bias) : NULL, act, residual);
    sotto_graph_set_compute(b->g, b->compute);
    return y;
}

/* columns [part * D, (part + 1) * D) of x [n, parts * D] */
static sotto_tensor *part_of(const builder *b, sotto_tensor *x, int part)
{
    return sotto_view_slice(b->g, x, 0, part * b->d, b->d);
}

/* [n, D] -> [1, n, n_head, d_head] (dense attention) or [n, n_head, d_head] (cache attention), same memory */
static sotto_tensor *heads(const builder *b, sotto_tensor *x)
{
    const int64_t dim[3] = {b->d / b->n_head, b->n_head, sotto_tensor_dim(x, 1)};
    return sotto_view_reshape(b->g, x, 3, dim);
}

/* [n, n_head, d_head] <-> [n_head, n, d_head], same memory */
static sotto_tensor *heads_first(const builder *b, sotto_tensor *x)
{
    static const int axis[4] = {0, 2, 1, 3};
    return sotto_view_permute(b->g, x, axis);
}

static float attention_scale(const builder *b)
{
    return 1.0f / sqrtf((float)(b->d / b->n_head));
}

static sotto_tensor *mlp(const builder *b, sotto_tensor *x, const st_mlp_weights *w)
{
    sotto_tensor *h = norm(b, x, w->ln_w, w->ln_b);
    h = linear(b, h, w->up_w, w->up_b, SOTTO_ACT_GELU, NULL); /* [n, 4 D] */
    /* behind the GELU numbers are of the most different sizes: 8 bits of them would cost half of what the first logits are off by */
    const builder fine = {b->g, b->d, b->n_head, b->compute, b->compute};
    return linear(&fine, h, w->down_w, w->down_b, SOTTO_ACT_NONE, x);
}

static sotto_tensor *encoder_layer(const builder *b, sotto_tensor *x, const st_layer_weights *w)
{
    sotto_tensor *h = norm(b, x, w->self.ln_w, w->self.ln_b);
    h = linear(b, h, w->self.qkv_w, w->self.qkv_b, SOTTO_ACT_NONE, NULL); /* [n_ctx, 3 D] */
    h = sotto_attention(b->g, heads(b, part_of(b, h, 0)), heads(b, part_of(b, h, 1)), heads(b, part_of(b, h, 2)),
                        attention_scale(b), false); /* [n_ctx, D] */
    x = linear(b, h, w->self.out_w, w->self.out_b, SOTTO_ACT_NONE, x);
    return mlp(b, x, &w->mlp);
}

/* What products of many rows are computed in. */
static sotto_compute encoder_compute(const sotto_whisper_model *m)
{
    return m->compute == SOTTO_F32   ? SOTTO_COMPUTE_F32
           : m->compute == SOTTO_F16 ? SOTTO_COMPUTE_F16
           : m->words                ? SOTTO_COMPUTE_WORDS
                                     : SOTTO_COMPUTE_BF16;
}

/* And of few: 16 bits cost next to nothing there, and the logits of base come out within 0.5 of f32 with them; so they do with 8
 * for each 32 numbers, where weights are blocks. */
static sotto_compute decoder_compute(const sotto_whisper_model *m)
{
    return m->compute == SOTTO_BF16 || m->compute == SOTTO_I8 ? SOTTO_COMPUTE_FINE : encoder_compute(m);
}

static sotto_tensor *encoder(builder *b, const sotto_whisper_model *m, st_encode_graph *io, const st_encode_shape *shape)
{
    sotto_tensor *x =
        sotto_conv_1d(b->g, io->input, use(b, m->conv1_w), use(b, m->conv1_b), 3, 1, 1, SOTTO_ACT_GELU, NULL);
    sotto_tensor *pos = sotto_view_slice(b->g, use(b, m->audio_pos), 1, 0, shape->n_ctx);
    x = sotto_conv_1d(b->g, x, use(b, m->conv2_w), use(b, m->conv2_b), 3, 2, 1, SOTTO_ACT_GELU, pos); /* [n_ctx, D] */
    if (shape->n_kept < shape->n_ctx) {
        io->keep = row_input(b->g, "keep", shape->n_kept);
        io->spread = row_input(b->g, "spread", shape->n_ctx);
        x = sotto_get_rows(b->g, x, io->keep); /* [n_kept, D] */
    }
    for (int i = 0; i < m->h.n_audio_layer; i++) {
        /* where bf16 rounds numbers, the first block, whose errors grow the most, is computed in f32 (docs/quality.md) */
        const bool exact = m->compute == SOTTO_BF16 && i == 0 && !m->words;
        b->compute = b->blocks = exact ? SOTTO_COMPUTE_F32 : encoder_compute(m);
        sotto_graph_set_compute(b->g, b->compute);
        x = encoder_layer(b, x, &m->encoder[i]);
    }
    return norm(b, x, m->encoder_ln_w, m->encoder_ln_b);
}

sotto_status st_graph_encode(const sotto_whisper_model *m, const st_caches *caches, const st_encode_shape *shape,
                             st_encode_graph *out, sotto_error *err)
{
    const int64_t n_ctx = shape->n_ctx;
    ST_TRY(sotto_graph_create(shape->own_encoder ? "encode" : "cross", &out->graph, err));
    sotto_graph *g = out->graph;
    sotto_graph_set_compute(g, encoder_compute(m));
    builder b = {g, m->h.n_audio_state, m->h.n_audio_head, encoder_compute(m), encoder_compute(m)};
    sotto_tensor *x;
    out->keep = out->spread = NULL;
    if (shape->own_encoder) {
        const int64_t dim[2] = {m->h.n_mels, 2 * n_ctx};
        out->input = sotto_graph_input(g, "log_mel", SOTTO_F32, 2, dim);
        x = encoder(&b, m, out, shape);
    } else {
        const int64_t dim[2] = {b.d, n_ctx};
        out->input = x = sotto_graph_input(g, "encoder_output", SOTTO_F32, 2, dim);
    }
    const int64_t first = (int64_t)shape->window * m->h.n_audio_ctx; /* of the window's rows in the caches */
    for (int i = 0; i < m->h.n_text_layer; i++) {
        const st_attention_weights *w = &m->decoder[i].cross;
        sotto_tensor *kv = linear(&b, x, w->kv_w, w->kv_b, SOTTO_ACT_NONE, NULL); /* [n_kept, 2 D] */
        if (out->spread)
            kv = sotto_get_rows(g, kv, out->spread); /* [n_ctx, 2 D] */
        sotto_tensor *const cache[2] = {use(&b, caches->cross_k[i]), use(&b, caches->cross_v[i])};
        for (int part = 0; part < 2; part++)
            (void)sotto_copy_into(g, sotto_view_slice(g, cache[part], 1, first, n_ctx),
                                  heads_first(&b, heads(&b, part_of(&b, kv, part))));
    }
    out->output = x;
    if (shape->own_encoder)
        sotto_graph_output(g, x, "encoder_output");
    return sotto_graph_finish(g, err);
}

static st_decode_rows rows_input(sotto_graph *g, const char *const names[4], int64_t n)
{
    sotto_tensor *t[4];
    for (int i = 0; i < 4; i++)
        t[i] = row_input(g, names[i], n);
    return (st_decode_rows){t[0], t[1], t[2], t[3]};
}

/* want: NULL, or the rows [n_want] that the result has; of the others only keys and values are made. */
static sotto_tensor *decoder_layer(const builder *b, sotto_tensor *x, const st_layer_weights *w,
                                   const st_caches *caches, int i, const st_decode_graph *in, sotto_tensor *want)
{
    sotto_graph *g = b->g;
    const st_decode_rows *rows = want ? &in->wanted : &in->rows;
    sotto_tensor *h = norm(b, x, w->self.ln_w, w->self.ln_b);
    h = linear(b, h, w->self.qkv_w, w->self.qkv_b, SOTTO_ACT_NONE, NULL); /* [n, 3 D] */
    sotto_tensor *k = sotto_set_rows(g, use(b, caches->self_k[i]), in->cell, part_of(b, h, 1));
    sotto_tensor *v = sotto_set_rows(g, use(b, caches->self_v[i]), in->cell, part_of(b, h, 2));
    if (want) {
        h = sotto_get_rows(g, h, want);
        x = sotto_get_rows(g, x, want);
    }
    h = sotto_cache_attention(g, heads(b, part_of(b, h, 0)), heads(b, k), heads(b, v), in->list, rows->sequence,
                              rows->n_kv, attention_scale(b), 0); /* [n, D] */
    x = linear(b, h, w->self.out_w, w->self.out_b, SOTTO_ACT_NONE, x);

    h = norm(b, x, w->cross.ln_w, w->cross.ln_b);
    h = linear(b, h, w->cross.q_w, w->cross.q_b, SOTTO_ACT_NONE, NULL); /* [n, D] */
    h = sotto_cache_attention(g, heads(b, h), heads_first(b, use(b, caches->cross_k[i])),
                              heads_first(b, use(b, caches->cross_v[i])), NULL, rows->cross_base, rows->cross_n,
                              attention_scale(b), 0);
    x = linear(b, h, w->cross.out_w, w->cross.out_b, SOTTO_ACT_NONE, x);
    return mlp(b, x, &w->mlp);
}

sotto_status st_graph_decode(const sotto_whisper_model *m, const st_caches *caches, int n_seq, int n_rows, int n_want,
                             st_decode_graph *out, sotto_error *err)
{
    ST_TRY(sotto_graph_create("decode", &out->graph, err));
    sotto_graph *g = out->graph;
    const sotto_compute fine = decoder_compute(m);
    const builder b = {g, m->h.n_text_state, m->h.n_text_head, fine, m->compute == SOTTO_I8 ? SOTTO_COMPUTE_INT8 : fine};
    sotto_graph_set_compute(g, fine);
    out->token = row_input(g, "token", n_rows);
    out->position = row_input(g, "position", n_rows);
    out->cell = row_input(g, "cell", n_rows);
    const int64_t list[2] = {m->h.n_text_ctx, n_seq};
    out->list = sotto_graph_input(g, "list", SOTTO_I32, 2, list);
    out->rows = rows_input(g, (const char *[4]){"sequence", "n_kv", "cross_base", "cross_n"}, n_rows);
    out->want = NULL;
    out->wanted = (st_decode_rows){0};
    if (n_want < n_rows) {
        out->want = row_input(g, "want", n_want);
        out->wanted =
            rows_input(g, (const char *[4]){"want_sequence", "want_n_kv", "want_cross_base", "want_cross_n"}, n_want);
    }
    sotto_tensor *x = sotto_add(g, sotto_get_rows(g, use(&b, m->lookup), out->token),
                                sotto_get_rows(g, use(&b, m->text_pos), out->position));
    for (int i = 0; i < m->h.n_text_layer; i++)
        x = decoder_layer(&b, x, &m->decoder[i], caches, i, out, i == m->h.n_text_layer - 1 ? out->want : NULL);
    x = norm(&b, x, m->decoder_ln_w, m->decoder_ln_b);
    const builder whole = {g, b.d, b.n_head, fine, fine}; /* 8 bits here cost base in q4_0 three words of 355 */
    out->logits = linear(&whole, x, m->embedding, NULL, SOTTO_ACT_NONE, NULL); /* [n_want, n_vocab] */
    sotto_graph_output(g, out->logits, "logits");
    out->blocks = sotto_block_sums(g, out->logits); /* [n_want, 2, n_vocab / 64] */
    sotto_graph_output(g, out->blocks, "blocks");
    return sotto_graph_finish(g, err);
}
