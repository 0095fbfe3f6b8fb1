#include "models/whisper/net.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "models/common/cells.h"
#include "models/common/logits.h"
#include "models/whisper/graphs.h"

enum {
    MAX_PLANS = 40,
    /* More than a few rows are padded to a multiple, so that few plans serve all numbers. */
    UNPADDED_ROWS = 16,
    PROMPT_STEP = 16,
    /* With many windows the numbers vary more, and up to this many are steps, which are read often. */
    BATCH_ROWS = 64,
    BATCH_STEP = 8,
    BATCH_PROMPT_STEP = 32,
    BATCH_WANT_STEP = 8,
    MAX_SEQUENCES = 16, /* of a window */
    /* Of padding that is thin all positions of the first 4 s are kept, then every eighth (docs/quality.md). */
    WHOLE_PADDING = 200,
    THIN_STEP = 8,
    N_LISTS = 12 /* inputs with a number for each row, the rows wanted, and four of these numbers for them */
};

typedef struct encode_plan {
    sotto_plan *plan; /* NULL: not made yet */
    int n_kept;       /* positions behind the convolutions */
    st_encode_graph io;
} encode_plan;

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
    st_cells *cells;              /* [n_window] */
    sotto_dtype keys, values;     /* of both caches */
    int n_seq, n_window, n_ctx;
    encode_plan *encode; /* [n_window] */
    int last_window;     /* of the last encode */
    bool encode_is_own, thin_padding;
    int32_t *keep, *spread; /* [n_audio_ctx] */
    st_encode_outside outside;
    void *outside_user;
    float *outside_mel, *outside_out; /* [n_mels, 3000], [n_audio_ctx, D] */
    decode_plan plans[MAX_PLANS];
    int n_plans;
    uint64_t use;
    int32_t *rows; /* scratch of inputs: N_LISTS lists of rows_cap */
    int64_t rows_cap;
    float *blocks; /* st_row.blocks of rows whose logits are copied: room for n_blocks_cap rows, NULL until it is needed */
    int n_blocks, n_blocks_cap; /* n_blocks: in use */
    sotto_run_options run;
    bool output_valid;
};

/* What goes with the compute type. */
static sotto_dtype caches_of(const sotto_whisper_model *m, int head)
{
    const sotto_dtype preferred = sotto_backend_preferred_caches(m->backend);
    if (m->compute == SOTTO_F32 || m->compute == SOTTO_F16)
        return SOTTO_F16;
    return m->compute == SOTTO_I8 && head % sotto_dtype_block(preferred) == 0 ? preferred : SOTTO_BF16;
}

sotto_status st_net_cache_type(const sotto_whisper_model *model, const char *field, const char *name, sotto_dtype *out,
                               sotto_error *err)
{
    static const sotto_dtype types[] = {SOTTO_F32, SOTTO_F16, SOTTO_BF16, SOTTO_Q8_0};
    const int head = model->h.n_text_state / model->h.n_text_head;
    if (!name || strcmp(name, "auto") == 0) {
        *out = caches_of(model, head);
        return SOTTO_OK;
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(sotto_dtype_name(types[i]), name) != 0)
            continue;
        *out = types[i];
        if (head % sotto_dtype_block(types[i]) == 0)
            return SOTTO_OK;
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%s: heads of %d numbers are no whole blocks of %s, of %d numbers each",
                       field, head, name, (int)sotto_dtype_block(types[i]));
    }
    return st_fail(err, SOTTO_E_ARGUMENT, "%s: \"%s\" is no type of caches, expected auto, f32, f16, bf16 or q8_0",
                   field, name);
}

static sotto_status create_cache(st_net *net, const char *what, const int64_t dim[3], sotto_store **store,
                                 sotto_tensor **k, sotto_tensor **v, sotto_error *err)
{
    ST_TRY(sotto_store_create(net->backend, SOTTO_USAGE_CACHE, store, err));
    for (int i = 0; i < net->m->h.n_text_layer; i++) {
        char name[64];
        sotto_store_set_device(
            *store, sotto_backend_cache_device(net->backend, net->m->h.n_audio_layer + i, st_whisper_layers(net->m)));
        snprintf(name, sizeof name, "%s_k.%d", what, i);
        k[i] = sotto_store_add(*store, name, net->keys, 3, dim, false);
        snprintf(name, sizeof name, "%s_v.%d", what, i);
        v[i] = sotto_store_add(*store, name, net->values, 3, dim, false);
    }
    return sotto_store_check(*store, err);
}

static void free_encode(st_net *net)
{
    for (int i = 0; net->encode && i < net->n_window; i++) {
        sotto_plan_free(net->encode[i].plan);
        net->encode[i].plan = NULL;
    }
}

/* Plans differ in where they write. They share memory, as they never run at the same time. */
static sotto_status build_encode(st_net *net, const st_encode_shape *shape, sotto_error *err)
{
    encode_plan e = {.n_kept = shape->n_kept};
    sotto_status status = st_graph_encode(net->m, &net->caches, shape, &e.io, err);
    if (status == SOTTO_OK)
        status = sotto_plan_create_take(net->backend, net->arena, e.io.graph, &e.plan, err);
    else
        sotto_graph_free(e.io.graph);
    if (status != SOTTO_OK)
        return status;
    if (shape->n_ctx != net->n_ctx || shape->own_encoder != net->encode_is_own)
        free_encode(net);
    sotto_plan_free(net->encode[shape->window].plan);
    net->encode[shape->window] = e;
    net->encode_is_own = shape->own_encoder;
    net->n_ctx = shape->n_ctx;
    net->output_valid = false;
    return SOTTO_OK;
}

static sotto_status build_decode(st_net *net, int n_rows, int n_want, decode_plan *out, sotto_error *err)
{
    decode_plan p = {.n_rows = n_rows, .n_want = n_want};
    sotto_status status = st_graph_decode(net->m, &net->caches, net->n_window * net->n_seq, n_rows, n_want, &p.io, err);
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

/* Rows of the plan that takes n. */
static int padded_rows(const st_net *net, int n)
{
    if (n <= UNPADDED_ROWS)
        return n;
    const int step = net->n_window == 1 ? PROMPT_STEP : n <= BATCH_ROWS ? BATCH_STEP : BATCH_PROMPT_STEP;
    return (n + step - 1) / step * step;
}

/* Logits of the plan that takes n_rows, of which n want some. */
static int padded_want(const st_net *net, int n, int n_rows, int padded)
{
    if (n == 0)
        return 1;
    if (net->n_window == 1 || (n <= 2 && n < n_rows))
        return n;
    if (n == n_rows)
        return padded;
    const int want = (n + BATCH_WANT_STEP - 1) / BATCH_WANT_STEP * BATCH_WANT_STEP;
    return want < padded ? want : padded;
}

/* Cells for the longest prompt, shared by all sequences, and a full half context of own tokens for each. */
static int cell_count(const st_hparams *h, int n_seq)
{
    return h->n_text_ctx + n_seq * (h->n_text_ctx / 2 + 1);
}

static sotto_status init_cells(st_net *net, int n_cell, sotto_error *err)
{
    net->cells = st_calloc((size_t)net->n_window, sizeof *net->cells);
    bool made = net->cells != NULL;
    for (int i = 0; made && i < net->n_window; i++)
        made = st_cells_init(&net->cells[i], net->n_seq, net->m->h.n_text_ctx, i * n_cell, n_cell, net->n_seq);
    return made ? SOTTO_OK : st_fail_memory(err, (uint64_t)n_cell * 8, "the lists of the decoder's cache");
}

/* Caches and plans of n_window windows. */
static sotto_status init(st_net *net, sotto_error *err)
{
    const st_hparams *h = &net->m->h;
    const int n_cell = cell_count(h, net->n_seq), n_all = net->n_window * net->n_seq;
    const size_t n_layer = (size_t)h->n_text_layer;
    const int n_ctx = net->n_ctx > 0 ? net->n_ctx : h->n_audio_ctx;
    net->cache_tensors = st_calloc(4 * n_layer, sizeof *net->cache_tensors);
    net->encode = st_calloc((size_t)net->n_window, sizeof *net->encode);
    net->keep = st_calloc((size_t)h->n_audio_ctx, sizeof *net->keep);
    net->spread = st_calloc((size_t)h->n_audio_ctx, sizeof *net->spread);
    net->rows_cap = h->n_text_ctx + BATCH_PROMPT_STEP;
    net->rows = st_calloc(N_LISTS * (size_t)net->rows_cap, sizeof *net->rows);
    if (!net->cache_tensors || !net->encode || !net->keep || !net->spread || !net->rows)
        return st_fail_memory(err, 4 * n_layer * sizeof *net->cache_tensors, "the lists of the decoder's cache");
    ST_TRY(init_cells(net, n_cell, err));
    net->caches = (st_caches){net->cache_tensors, net->cache_tensors + n_layer, net->cache_tensors + 2 * n_layer,
                              net->cache_tensors + 3 * n_layer};
    const int64_t d = h->n_text_state, self[3] = {d, (int64_t)net->n_window * n_cell, 1};
    const int64_t cross[3] = {d / h->n_text_head, (int64_t)net->n_window * h->n_audio_ctx, h->n_text_head};
    ST_TRY(create_cache(net, "self", self, &net->self_store, net->caches.self_k, net->caches.self_v, err));
    ST_TRY(create_cache(net, "cross", cross, &net->cross_store, net->caches.cross_k, net->caches.cross_v, err));
    /* a dry run: plans of the largest graphs are made, and with them all sizes known, before memory is taken */
    ST_TRY(build_encode(net, &(st_encode_shape){0, n_ctx, n_ctx, net->outside == NULL}, err));
    decode_plan *step;
    ST_TRY(plan_for(net, net->n_seq, net->n_seq, &step, err));
    const int n_most = padded_rows(net, n_all < h->n_text_ctx ? n_all : h->n_text_ctx);
    if (net->n_window > 1)
        ST_TRY(plan_for(net, n_most, n_most, &step, err));
    if (net->m->measure_only)
        return SOTTO_OK;
    ST_TRY(sotto_store_allocate(net->self_store, err));
    ST_TRY(sotto_store_allocate(net->cross_store, err));
    ST_TRY(sotto_plan_allocate(net->encode[0].plan, err));
    return sotto_plan_allocate(step->plan, err);
}

static void release(st_net *net)
{
    for (int i = 0; i < net->n_plans; i++)
        sotto_plan_free(net->plans[i].plan);
    free_encode(net);
    sotto_store_free(net->self_store);
    sotto_store_free(net->cross_store);
    for (int i = 0; net->cells && i < net->n_window; i++)
        st_cells_free(&net->cells[i]);
    st_free(net->cells);
    st_free(net->encode);
    st_free(net->keep);
    st_free(net->spread);
    st_free(net->cache_tensors);
    st_free(net->rows);
    st_free(net->blocks);
}

sotto_status st_net_create(const sotto_whisper_model *model, sotto_backend *backend, sotto_arena *arena,
                           const st_net_shape *shape, st_net **out, sotto_error *err)
{
    *out = NULL;
    st_net *net = st_calloc(1, sizeof *net);
    if (!net)
        return st_fail_memory(err, sizeof *net, "a network's state");
    net->m = model;
    net->backend = backend;
    net->arena = arena;
    net->n_seq = shape->n_seq;
    net->keys = shape->keys;
    net->values = shape->values;
    net->n_window = 1;
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
    release(net);
    st_free(net->outside_mel);
    st_free(net->outside_out);
    st_free(net);
}

sotto_status st_net_set_windows(st_net *net, int n, sotto_error *err)
{
    if (n == net->n_window)
        return SOTTO_OK;
    st_net *next = st_calloc(1, sizeof *next);
    if (!next)
        return st_fail_memory(err, sizeof *next, "a network's state");
    *next = (st_net){.m = net->m,
                     .backend = net->backend,
                     .arena = net->arena,
                     .keys = net->keys,
                     .values = net->values,
                     .n_seq = net->n_seq,
                     .n_window = n,
                     .n_ctx = net->n_ctx,
                     .thin_padding = net->thin_padding,
                     .outside = net->outside,
                     .outside_user = net->outside_user,
                     .outside_mel = net->outside_mel,
                     .outside_out = net->outside_out,
                     .run = net->run};
    const sotto_status status = init(next, err);
    if (status == SOTTO_OK) {
        release(net);
        *net = *next;
    } else
        release(next);
    st_free(next);
    return status;
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
    return build_encode(net, &(st_encode_shape){0, n_ctx, n_ctx, own}, err);
}

void st_net_set_thin_padding(st_net *net, bool thin)
{
    net->thin_padding = thin;
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
                      .encode = sotto_plan_bytes(net->encode[0].plan)};
    for (int i = 0; i < net->n_plans; i++) {
        const uint64_t n = sotto_plan_bytes(net->plans[i].plan);
        b.decode = n > b.decode ? n : b.decode;
    }
    return b;
}

void st_net_device_bytes(const st_net *net, int device, uint64_t *caches, uint64_t *compute)
{
    *caches = sotto_store_device_bytes(net->self_store, device) + sotto_store_device_bytes(net->cross_store, device);
    *compute = sotto_plan_device_bytes(net->encode[0].plan, device);
    for (int i = 0; i < net->n_plans; i++) {
        const uint64_t n = sotto_plan_device_bytes(net->plans[i].plan, device);
        *compute = n > *compute ? n : *compute; /* plans share an arena */
    }
}

const sotto_plan *st_net_plan(const st_net *net, const char *name)
{
    if (strcmp(name, "encode") == 0)
        return net->encode[0].plan;
    return strcmp(name, "decode") == 0 ? net->plans[0].plan : NULL; /* the first was made for all sequences */
}

sotto_status st_net_encoder_output(st_net *net, float *out, sotto_error *err)
{
    const encode_plan *e = &net->encode[net->last_window];
    if (!net->output_valid || !net->encode_is_own)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "the encoder's output is gone: ask right after encoding");
    if (e->n_kept < net->n_ctx)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "the encoder's output has %d of %d positions: its padding is thin",
                       e->n_kept, net->n_ctx);
    const size_t bytes = (size_t)net->n_ctx * (size_t)net->m->h.n_audio_state * sizeof *out;
    return sotto_plan_get(e->plan, e->io.output, 0, out, bytes, err);
}

/* The caller's encoder gets the window as the original lays it out, [n_mels, 3000], and gives [n_audio_ctx, D]. */
static sotto_status encode_outside(st_net *net, const encode_plan *e, const float *log_mel, sotto_error *err)
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
    return sotto_plan_set(e->plan, e->io.input, 0, net->outside_out, bytes, err);
}

/* Positions that a window of n_frames keeps, in net->keep, each of which stands for those that follow it, in net->spread. */
static int keep_positions(const st_net *net, int n_frames)
{
    const int whole = (n_frames + 1) / 2 + WHOLE_PADDING, step = net->thin_padding && net->encode_is_own ? THIN_STEP : 1;
    int n = 0;
    for (int at = 0; at < net->n_ctx; at++) {
        if (at < whole || (at - whole) % step == 0)
            net->keep[n++] = at;
        net->spread[at] = n - 1;
    }
    return n;
}

static sotto_status set_positions(const st_net *net, const encode_plan *e, sotto_error *err)
{
    if (!e->io.keep)
        return SOTTO_OK;
    ST_TRY(sotto_plan_set(e->plan, e->io.keep, 0, net->keep, (size_t)e->n_kept * sizeof *net->keep, err));
    return sotto_plan_set(e->plan, e->io.spread, 0, net->spread, (size_t)net->n_ctx * sizeof *net->spread, err);
}

static sotto_status encode(void *ctx, int window, const float *log_mel, int n_frames, sotto_error *err)
{
    st_net *net = ctx;
    if (window < 0 || window >= net->n_window)
        return st_fail(err, SOTTO_E_INTERNAL, "encode: window %d, expected 0 to %d", window, net->n_window - 1);
    ST_TRY(st_net_set_audio_ctx(net, net->n_ctx, err)); /* the encoder may have been replaced */
    const encode_plan *e = &net->encode[window];
    const int n_kept = keep_positions(net, n_frames);
    if (!e->plan || e->n_kept != n_kept)
        ST_TRY(build_encode(net, &(st_encode_shape){window, net->n_ctx, n_kept, net->encode_is_own}, err));
    ST_TRY(set_positions(net, e, err));
    if (net->encode_is_own) {
        const size_t bytes = 2 * (size_t)net->n_ctx * (size_t)net->m->h.n_mels * sizeof *log_mel;
        ST_TRY(sotto_plan_set(e->plan, e->io.input, 0, log_mel, bytes, err));
    } else
        ST_TRY(encode_outside(net, e, log_mel, err));
    ST_TRY(sotto_plan_run(e->plan, &net->run, err));
    net->last_window = window;
    net->output_valid = true;
    return SOTTO_OK;
}

enum { SEQUENCE, N_KV, CROSS_BASE, CROSS_N, N_ASKED };

typedef struct row_lists {
    int32_t *token, *position, *cell, *want;
    int32_t *asked[N_ASKED], *wanted[N_ASKED]; /* of each row, and of each of want */
} row_lists;

static row_lists lists_of(const st_net *net)
{
    int32_t *at[N_LISTS];
    for (int i = 0; i < N_LISTS; i++)
        at[i] = net->rows + i * net->rows_cap;
    return (row_lists){at[0], at[1], at[2], at[3], {at[4], at[5], at[6], at[7]}, {at[8], at[9], at[10], at[11]}};
}

static sotto_status fill_lists(st_net *net, const st_row *rows, int n_rows, const row_lists *in, int *n_want,
                               sotto_error *err)
{
    const int n_all = net->n_window * net->n_seq;
    *n_want = 0;
    for (int i = 0; i < n_rows; i++) {
        const st_row *r = &rows[i];
        if (r->seq < 0 || r->seq >= n_all)
            return st_fail(err, SOTTO_E_INTERNAL, "decoder cache: sequence %d of %d", (int)r->seq, n_all);
        const int window = r->seq / net->n_seq;
        st_cells *cells = &net->cells[window];
        const int32_t cell = st_cells_put(cells, r->seq % net->n_seq, r->pos);
        if (cell < 0)
            return st_fail(err, SOTTO_E_INTERNAL,
                           "decoder cache: no cell for position %d of sequence %d "
                           "(%d positions, %d sequences, %d of %d cells free)",
                           (int)r->pos, (int)r->seq, cells->n_ctx, n_all, cells->n_unused, cells->n_cell);
        in->token[i] = r->token;
        in->position[i] = r->pos;
        in->cell[i] = cell;
        in->asked[SEQUENCE][i] = r->seq;
        in->asked[N_KV][i] = r->pos + 1;
        in->asked[CROSS_BASE][i] = window * net->m->h.n_audio_ctx;
        in->asked[CROSS_N][i] = net->n_ctx;
        if (r->logits)
            in->want[(*n_want)++] = i;
    }
    return SOTTO_OK;
}

static void pad_lists(const row_lists *in, int from, int to)
{
    for (int i = from; i < to; i++) {
        in->token[i] = in->position[i] = 0;
        in->cell[i] = -1;
        for (int k = 0; k < N_ASKED; k++)
            in->asked[k][i] = 0;
    }
}

/* want [from, to) is filled with one row more often, and what is asked of the rows wanted copied. */
static void want_lists(const row_lists *in, int row, int from, int to)
{
    for (int i = from; i < to; i++)
        in->want[i] = row;
    for (int k = 0; k < N_ASKED; k++)
        for (int i = 0; i < to; i++)
            in->wanted[k][i] = in->asked[k][in->want[i]];
}

static sotto_status set_asked(const decode_plan *p, const st_decode_rows *rows, int32_t *const asked[N_ASKED], int n,
                              sotto_error *err)
{
    sotto_tensor *const t[N_ASKED] = {rows->sequence, rows->n_kv, rows->cross_base, rows->cross_n};
    for (int k = 0; k < N_ASKED; k++)
        ST_TRY(sotto_plan_set(p->plan, t[k], 0, asked[k], (size_t)n * sizeof(int32_t), err));
    return SOTTO_OK;
}

static sotto_status set_lists(st_net *net, const decode_plan *p, const row_lists *in, sotto_error *err)
{
    const st_decode_graph *io = &p->io;
    const size_t bytes = (size_t)p->n_rows * sizeof(int32_t);
    ST_TRY(sotto_plan_set(p->plan, io->token, 0, in->token, bytes, err));
    ST_TRY(sotto_plan_set(p->plan, io->position, 0, in->position, bytes, err));
    ST_TRY(sotto_plan_set(p->plan, io->cell, 0, in->cell, bytes, err));
    ST_TRY(set_asked(p, &io->rows, in->asked, p->n_rows, err));
    const size_t list = (size_t)net->n_seq * (size_t)net->m->h.n_text_ctx * sizeof(int32_t);
    for (int w = 0; w < net->n_window; w++)
        ST_TRY(sotto_plan_set(p->plan, io->list, (size_t)w * list, net->cells[w].list, list, err));
    if (!io->want)
        return SOTTO_OK;
    ST_TRY(sotto_plan_set(p->plan, io->want, 0, in->want, (size_t)p->n_want * sizeof(int32_t), err));
    return set_asked(p, &io->wanted, in->wanted, p->n_want, err);
}

/* Logits and blocks of one row as copies. Of more rows than are ever asked for, the blocks are left out. */
static sotto_status copy_row(st_net *net, const decode_plan *p, size_t row, st_row *r, sotto_error *err)
{
    const size_t n = (size_t)net->m->h.n_vocab * sizeof(float),
                 n_of_blocks = 2 * (size_t)st_logits_blocks(net->m->h.n_vocab);
    ST_TRY(sotto_plan_get(p->plan, p->io.logits, row * n, r->logits, n, err));
    if (!net->blocks) {
        net->n_blocks_cap = net->n_window * (net->n_seq > 2 ? net->n_seq : 2);
        net->blocks = st_alloc((size_t)net->n_blocks_cap * n_of_blocks, sizeof *net->blocks);
        if (!net->blocks)
            return st_fail_memory(err, (size_t)net->n_blocks_cap * n_of_blocks * sizeof(float), "sums of logits");
    }
    if (net->n_blocks == net->n_blocks_cap)
        return SOTTO_OK;
    r->blocks = net->blocks + (size_t)net->n_blocks++ * n_of_blocks;
    const size_t bytes = n_of_blocks * sizeof(float);
    return sotto_plan_get(p->plan, p->io.blocks, row * bytes, r->blocks, bytes, err);
}

/* What the rows that want logits get of the plan's, where these lie or as a copy. */
static sotto_status give_logits(st_net *net, const decode_plan *p, st_row *rows, const int32_t *want, int n_want,
                                bool in_place, sotto_error *err)
{
    const size_t n = (size_t)net->m->h.n_vocab, n_of_blocks = 2 * (size_t)st_logits_blocks(net->m->h.n_vocab);
    float *const logits = in_place ? sotto_plan_view(p->plan, p->io.logits) : NULL;
    float *const blocks = logits ? sotto_plan_view(p->plan, p->io.blocks) : NULL;
    for (int i = 0; i < n_want; i++) {
        st_row *r = &rows[want[i]];
        const size_t row = (size_t)(p->io.want ? i : want[i]);
        r->blocks = blocks ? blocks + row * n_of_blocks : NULL;
        if (logits)
            r->logits = logits + row * n;
        else
            ST_TRY(copy_row(net, p, row, r, err));
    }
    return SOTTO_OK;
}

/* At most as many rows as there are positions, so that memory does not depend on the number of windows that are prompted. */
static sotto_status decode_piece(st_net *net, st_row *rows, int n_rows, bool last, sotto_error *err)
{
    const row_lists in = lists_of(net);
    int n_want;
    ST_TRY(fill_lists(net, rows, n_rows, &in, &n_want, err));
    const int padded = padded_rows(net, n_rows), want = padded_want(net, n_want, n_rows, padded);
    pad_lists(&in, n_rows, padded);
    want_lists(&in, n_rows - 1, n_want, want);
    decode_plan *p;
    ST_TRY(plan_for(net, padded, want, &p, err));
    ST_TRY(set_lists(net, p, &in, err));
    net->output_valid = false;
    ST_TRY(sotto_plan_run(p->plan, &net->run, err));
    return give_logits(net, p, rows, in.want, n_want, last, err);
}

static sotto_status decode(void *ctx, st_row *rows, int n_rows, sotto_error *err)
{
    st_net *net = ctx;
    const int most = net->m->h.n_text_ctx;
    if (n_rows < 1 || n_rows > net->n_window * most)
        return st_fail(err, SOTTO_E_ARGUMENT, "decode: %d rows, expected 1 to %d", n_rows, net->n_window * most);
    net->n_blocks = 0;
    for (int i = 0; i < n_rows; i += most)
        ST_TRY(decode_piece(net, rows + i, n_rows - i < most ? n_rows - i : most, n_rows - i <= most, err));
    return SOTTO_OK;
}

static void reorder(void *ctx, const int32_t *dst, const int32_t *src, int n, int length)
{
    st_net *net = ctx;
    int32_t to[MAX_SEQUENCES], from[MAX_SEQUENCES];
    n = n < MAX_SEQUENCES ? n : MAX_SEQUENCES;
    if (n < 1 || dst[0] < 0 || dst[0] >= net->n_window * net->n_seq)
        return;
    const int window = dst[0] / net->n_seq;
    for (int i = 0; i < n; i++) {
        to[i] = dst[i] - window * net->n_seq;
        from[i] = src[i] - window * net->n_seq;
    }
    st_cells_reorder(&net->cells[window], to, from, n, length);
}

static void reset(void *ctx, int window)
{
    st_net *net = ctx;
    if (window >= 0 && window < net->n_window)
        st_cells_reset(&net->cells[window]);
}

st_engine st_net_engine(st_net *net)
{
    return (st_engine){.ctx = net,
                       .n_vocab = net->m->h.n_vocab,
                       .n_text_ctx = net->m->h.n_text_ctx,
                       .n_seq = net->n_seq,
                       .n_window = net->n_window,
                       .encode = encode,
                       .decode = decode,
                       .reorder = reorder,
                       .reset = reset};
}
