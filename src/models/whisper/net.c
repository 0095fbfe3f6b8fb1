#include "models/whisper/net.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "models/whisper/cells.h"
#include "models/whisper/graphs.h"

enum {
    MAX_PLANS = 32,
    PROMPT_STEP = 16, /* prompts longer than a few rows are padded to a multiple, so that few plans serve all lengths */
    UNPADDED_ROWS = 16
};

typedef struct decode_plan {
    int n_rows, n_want;
    uint64_t last_use;
    sotto_plan *plan;
    st_decode_graph io;
} decode_plan;

struct st_net {
    const sotto_whisper_model *m;
    sotto_backend *backend;
    sotto_arena *arena;
    sotto_store *self_store, *cross_store;
    st_caches caches;
    sotto_tensor **cache_tensors; /* the four arrays of st_caches in one block */
    st_cells cells;
    int n_seq, n_ctx;
    sotto_plan *encode_plan;
    st_encode_graph encode;
    bool encode_is_own;
    st_encode_outside outside;
    void *outside_user;
    float *outside_mel, *outside_out; /* [n_mels, 3000], [n_audio_ctx, D] */
    decode_plan plans[MAX_PLANS];
    int n_plans;
    uint64_t use;
    int32_t *rows; /* scratch of inputs: 7 lists of rows_cap */
    int64_t rows_cap;
    sotto_run_options run;
    bool output_valid;
};

static sotto_status create_cache(st_net *net, const char *what, int64_t n_rows, sotto_store **store, sotto_tensor **k,
                                 sotto_tensor **v, sotto_error *err)
{
    ST_TRY(sotto_store_create(net->backend, SOTTO_USAGE_CACHE, store, err));
    const int64_t dim[2] = {net->m->h.n_text_state, n_rows};
    for (int i = 0; i < net->m->h.n_text_layer; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s_k.%d", what, i);
        k[i] = sotto_store_add(*store, name, SOTTO_F16, 2, dim, false);
        snprintf(name, sizeof name, "%s_v.%d", what, i);
        v[i] = sotto_store_add(*store, name, SOTTO_F16, 2, dim, false);
    }
    return SOTTO_OK;
}

static sotto_status build_encode(st_net *net, int n_ctx, bool own, sotto_error *err)
{
    st_encode_graph e = {0};
    sotto_plan *plan = NULL;
    sotto_status status = st_graph_encode(net->m, &net->caches, n_ctx, own, &e, err);
    if (status == SOTTO_OK)
        status = sotto_plan_create_take(net->backend, net->arena, e.graph, &plan, err);
    else
        sotto_graph_free(e.graph);
    if (status != SOTTO_OK)
        return status;
    sotto_plan_free(net->encode_plan);
    net->encode_plan = plan;
    net->encode = e;
    net->encode_is_own = own;
    net->n_ctx = n_ctx;
    net->output_valid = false;
    return SOTTO_OK;
}

static sotto_status build_decode(st_net *net, int n_rows, int n_want, decode_plan *out, sotto_error *err)
{
    decode_plan p = {.n_rows = n_rows, .n_want = n_want};
    sotto_status status = st_graph_decode(net->m, &net->caches, net->n_seq, n_rows, n_want, &p.io, err);
    if (status == SOTTO_OK)
        status = sotto_plan_create_take(net->backend, net->arena, p.io.graph, &p.plan, err);
    else
        sotto_graph_free(p.io.graph);
    if (status == SOTTO_OK)
        *out = p;
    return status;
}

static sotto_status plan_for(st_net *net, int n_rows, int n_want, decode_plan **out, sotto_error *err)
{
    decode_plan *oldest = &net->plans[0];
    for (int i = 0; i < net->n_plans; i++) {
        decode_plan *p = &net->plans[i];
        if (p->n_rows == n_rows && p->n_want == n_want) {
            p->last_use = ++net->use;
            *out = p;
            return SOTTO_OK;
        }
        if (p->last_use < oldest->last_use)
            oldest = p;
    }
    decode_plan fresh;
    ST_TRY(build_decode(net, n_rows, n_want, &fresh, err));
    decode_plan *slot = net->n_plans < MAX_PLANS ? &net->plans[net->n_plans++] : oldest;
    sotto_plan_free(slot->plan);
    *slot = fresh;
    slot->last_use = ++net->use;
    *out = slot;
    return SOTTO_OK;
}

/* Cells for the longest prompt, shared by all sequences, and a full half context of own tokens for each. */
static int cell_count(const st_hparams *h, int n_seq)
{
    return h->n_text_ctx + n_seq * (h->n_text_ctx / 2 + 1);
}

static sotto_status init(st_net *net, sotto_error *err)
{
    const st_hparams *h = &net->m->h;
    const int n_cell = cell_count(h, net->n_seq);
    const size_t n_layer = (size_t)h->n_text_layer;
    net->cache_tensors = st_calloc(4 * n_layer, sizeof *net->cache_tensors);
    net->rows_cap = h->n_text_ctx + PROMPT_STEP;
    net->rows = st_calloc(7 * (size_t)net->rows_cap, sizeof *net->rows);
    if (!net->cache_tensors || !net->rows || !st_cells_init(&net->cells, net->n_seq, h->n_text_ctx, n_cell))
        return st_fail_memory(err, 4 * n_layer * sizeof *net->cache_tensors, "the lists of the decoder's cache");
    net->caches = (st_caches){net->cache_tensors, net->cache_tensors + n_layer, net->cache_tensors + 2 * n_layer,
                              net->cache_tensors + 3 * n_layer};
    ST_TRY(create_cache(net, "self", n_cell, &net->self_store, net->caches.self_k, net->caches.self_v, err));
    ST_TRY(create_cache(net, "cross", h->n_audio_ctx, &net->cross_store, net->caches.cross_k, net->caches.cross_v, err));
    /* a dry run: plans of the largest graphs are made, and with them all sizes known, before memory is taken */
    ST_TRY(build_encode(net, h->n_audio_ctx, true, err));
    decode_plan *step;
    ST_TRY(plan_for(net, net->n_seq, net->n_seq, &step, err));
    ST_TRY(sotto_store_allocate(net->self_store, err));
    return sotto_store_allocate(net->cross_store, err);
}

sotto_status st_net_create(const sotto_whisper_model *model, sotto_backend *backend, sotto_arena *arena, int n_seq,
                           st_net **out, sotto_error *err)
{
    *out = NULL;
    st_net *net = st_calloc(1, sizeof *net);
    if (!net)
        return st_fail_memory(err, sizeof *net, "a network's state");
    net->m = model;
    net->backend = backend;
    net->arena = arena;
    net->n_seq = n_seq;
    const sotto_status status = init(net, err);
    if (status != SOTTO_OK) {
        st_net_free(net);
        return status;
    }
    *out = net;
    return SOTTO_OK;
}

void st_net_free(st_net *net)
{
    if (!net)
        return;
    for (int i = 0; i < net->n_plans; i++)
        sotto_plan_free(net->plans[i].plan);
    sotto_plan_free(net->encode_plan);
    sotto_store_free(net->self_store);
    sotto_store_free(net->cross_store);
    st_cells_free(&net->cells);
    st_free(net->cache_tensors);
    st_free(net->rows);
    st_free(net->outside_mel);
    st_free(net->outside_out);
    st_free(net);
}

void st_net_set_run_options(st_net *net, const sotto_run_options *run)
{
    net->run = *run;
}

sotto_status st_net_set_audio_ctx(st_net *net, int n_ctx, sotto_error *err)
{
    const bool own = net->outside == NULL;
    if (n_ctx == net->n_ctx && own == net->encode_is_own)
        return SOTTO_OK;
    return build_encode(net, n_ctx, own, err);
}

void st_net_set_encoder(st_net *net, st_encode_outside encode, void *user)
{
    net->outside = encode;
    net->outside_user = user;
}

st_net_bytes st_net_get_bytes(const st_net *net)
{
    st_net_bytes b = {.self_cache = sotto_store_bytes(net->self_store),
                      .cross_cache = sotto_store_bytes(net->cross_store),
                      .encode = sotto_plan_bytes(net->encode_plan)};
    for (int i = 0; i < net->n_plans; i++) {
        const uint64_t n = sotto_plan_bytes(net->plans[i].plan);
        b.decode = n > b.decode ? n : b.decode;
    }
    return b;
}

const sotto_plan *st_net_plan(const st_net *net, const char *name)
{
    if (strcmp(name, "encode") == 0)
        return net->encode_plan;
    return strcmp(name, "decode") == 0 ? net->plans[0].plan : NULL; /* the first was made for all sequences */
}

sotto_status st_net_encoder_output(st_net *net, float *out, sotto_error *err)
{
    if (!net->output_valid || !net->encode_is_own)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "the encoder's output is gone: ask right after encoding");
    const size_t bytes = (size_t)net->n_ctx * (size_t)net->m->h.n_audio_state * sizeof *out;
    return sotto_plan_get(net->encode_plan, net->encode.output, 0, out, bytes, err);
}

/* The caller's encoder gets the window as the original lays it out, [n_mels, 3000], and gives [n_audio_ctx, D]. */
static sotto_status encode_outside(st_net *net, const float *log_mel, sotto_error *err)
{
    const st_hparams *h = &net->m->h;
    const size_t n_mel = (size_t)h->n_mels * ST_WINDOW_FRAMES, n_out = (size_t)h->n_audio_ctx * (size_t)h->n_audio_state;
    if (!net->outside_mel)
        net->outside_mel = st_alloc(n_mel, sizeof(float));
    if (!net->outside_out)
        net->outside_out = st_alloc(n_out, sizeof(float));
    if (!net->outside_mel || !net->outside_out)
        return st_fail_memory(err, (n_mel + n_out) * sizeof(float), "an encoder's input and output");
    for (int f = 0; f < ST_WINDOW_FRAMES; f++)
        for (int b = 0; b < h->n_mels; b++)
            net->outside_mel[(size_t)b * ST_WINDOW_FRAMES + (size_t)f] =
                log_mel[(size_t)f * (size_t)h->n_mels + (size_t)b];
    ST_TRY(net->outside(net->outside_user, net->outside_mel, h->n_mels, ST_WINDOW_FRAMES, net->outside_out, err));
    const size_t bytes = (size_t)net->n_ctx * (size_t)h->n_audio_state * sizeof(float);
    return sotto_plan_set(net->encode_plan, net->encode.input, 0, net->outside_out, bytes, err);
}

static sotto_status encode(void *ctx, const float *log_mel, sotto_error *err)
{
    st_net *net = ctx;
    ST_TRY(st_net_set_audio_ctx(net, net->n_ctx, err)); /* the encoder may have been replaced */
    if (net->encode_is_own) {
        const size_t bytes = 2 * (size_t)net->n_ctx * (size_t)net->m->h.n_mels * sizeof *log_mel;
        ST_TRY(sotto_plan_set(net->encode_plan, net->encode.input, 0, log_mel, bytes, err));
    } else
        ST_TRY(encode_outside(net, log_mel, err));
    ST_TRY(sotto_plan_run(net->encode_plan, &net->run, err));
    net->output_valid = true;
    return SOTTO_OK;
}

typedef struct row_lists {
    int32_t *token, *position, *cell, *sequence, *n_kv, *cross_n, *want;
} row_lists;

static sotto_status fill_lists(st_net *net, const st_row *rows, int n_rows, const row_lists *in, int *n_want,
                               sotto_error *err)
{
    *n_want = 0;
    for (int i = 0; i < n_rows; i++) {
        const st_row *r = &rows[i];
        const int32_t cell = st_cells_put(&net->cells, r->seq, r->pos);
        if (cell < 0)
            return st_fail(
                err,
                SOTTO_E_INTERNAL, "decoder cache: no cell for position %d of sequence %d (%d positions, %d sequences, %d of %d cells free)",
                (int)r->pos, (int)r->seq, net->cells.n_ctx, net->n_seq, net->cells.n_unused, net->cells.n_cell);
        in->token[i] = r->token;
        in->position[i] = r->pos;
        in->cell[i] = cell;
        in->sequence[i] = r->seq;
        in->n_kv[i] = r->pos + 1;
        in->cross_n[i] = net->n_ctx;
        if (r->want_logits)
            in->want[(*n_want)++] = i;
    }
    return SOTTO_OK;
}

static void pad_lists(const row_lists *in, int from, int to)
{
    for (int i = from; i < to; i++) {
        in->token[i] = in->position[i] = in->sequence[i] = 0;
        in->cell[i] = -1;
        in->n_kv[i] = in->cross_n[i] = 0;
    }
}

static sotto_status set_lists(st_net *net, const decode_plan *p, const row_lists *in, sotto_error *err)
{
    const st_decode_graph *io = &p->io;
    const size_t bytes = (size_t)p->n_rows * sizeof(int32_t);
    const struct {
        sotto_tensor *t;
        const int32_t *data;
    } rows[] = {{io->token, in->token},       {io->position, in->position}, {io->cell, in->cell},
                {io->sequence, in->sequence}, {io->n_kv, in->n_kv},         {io->cross_n, in->cross_n}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ST_TRY(sotto_plan_set(p->plan, rows[i].t, 0, rows[i].data, bytes, err));
    /* cross attention: every row starts at the first key; the padding rows' sequence numbers are zero as well */
    memset(in->position, 0, bytes);
    ST_TRY(sotto_plan_set(p->plan, io->cross_base, 0, in->position, bytes, err));
    const size_t list = (size_t)net->n_seq * (size_t)net->cells.n_ctx * sizeof(int32_t);
    ST_TRY(sotto_plan_set(p->plan, io->list, 0, net->cells.list, list, err));
    if (io->want)
        ST_TRY(sotto_plan_set(p->plan, io->want, 0, in->want, (size_t)p->n_want * sizeof(int32_t), err));
    return SOTTO_OK;
}

static sotto_status decode(void *ctx, const st_row *rows, int n_rows, float *logits, sotto_error *err)
{
    st_net *net = ctx;
    if (n_rows < 1 || n_rows > net->rows_cap - PROMPT_STEP)
        return st_fail(err, SOTTO_E_ARGUMENT, "decode: %d rows, expected 1 to %lld", n_rows,
                       (long long)net->rows_cap - PROMPT_STEP);
    int32_t *at[7];
    for (int i = 0; i < 7; i++)
        at[i] = net->rows + i * net->rows_cap;
    const row_lists in = {at[0], at[1], at[2], at[3], at[4], at[5], at[6]};
    int n_want;
    ST_TRY(fill_lists(net, rows, n_rows, &in, &n_want, err));
    int padded = n_rows;
    if (n_rows > UNPADDED_ROWS)
        padded = (n_rows + PROMPT_STEP - 1) / PROMPT_STEP * PROMPT_STEP;
    pad_lists(&in, n_rows, padded);
    if (n_want == 0)
        in.want[0] = n_rows - 1;
    decode_plan *p;
    ST_TRY(plan_for(net, padded, n_want > 0 ? n_want : 1, &p, err));
    ST_TRY(set_lists(net, p, &in, err));
    net->output_valid = false;
    ST_TRY(sotto_plan_run(p->plan, &net->run, err));
    const size_t bytes = (size_t)n_want * (size_t)net->m->h.n_vocab * sizeof *logits;
    if (n_want > 0)
        ST_TRY(sotto_plan_get(p->plan, p->io.logits, 0, logits, bytes, err));
    return SOTTO_OK;
}

static void reorder(void *ctx, const int32_t *dst, const int32_t *src, int n, int length)
{
    st_net *net = ctx;
    st_cells_reorder(&net->cells, dst, src, n, length);
}

static void reset(void *ctx)
{
    st_net *net = ctx;
    st_cells_reset(&net->cells);
}

st_engine st_net_engine(st_net *net)
{
    return (st_engine){.ctx = net,
                       .n_vocab = net->m->h.n_vocab,
                       .n_text_ctx = net->m->h.n_text_ctx,
                       .n_seq = net->n_seq,
                       .encode = encode,
                       .decode = decode,
                       .reorder = reorder,
                       .reset = reset};
}
