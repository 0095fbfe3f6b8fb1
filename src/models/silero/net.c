#include "models/silero/net.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"

struct st_vad_net {
    const sotto_vad_model *model;
    sotto_backend *backend;
    sotto_arena *arena;
    sotto_plan *plan;
    sotto_tensor *pcm, *hidden, *cell;                   /* inputs: [BLOCK, SPAN], [1, n_state] */
    sotto_tensor *probability, *last_hidden, *last_cell; /* [BLOCK, 1], [1, n_state] */
    float *spans;                                        /* [BLOCK, SPAN] */
    float *state;                                        /* [2, n_state]: hidden, cell */
    float context[ST_VAD_CONTEXT];
};

/* ---- graph ---- */

/* [BLOCK, SPAN] -> [BLOCK, features] */
static sotto_tensor *features(sotto_graph *g, const sotto_vad_model *m, sotto_tensor *pcm)
{
    static const int stride[ST_VAD_CONVS] = {1, 2, 2, 1};
    const int64_t hops[] = {ST_VAD_HOP, ST_VAD_SPAN / ST_VAD_HOP, ST_VAD_BLOCK};
    sotto_tensor *x = sotto_view_reshape(g, pcm, 3, hops);                                     /* [BLOCK, 5, HOP] */
    x = sotto_conv_1d(g, x, sotto_graph_use(g, m->stft), NULL, 2, 1, 0, SOTTO_ACT_NONE, NULL); /* [BLOCK, 4, 2 BINS] */
    x = sotto_sqrt(g, sotto_power(g, x));                                                      /* [BLOCK, 4, BINS] */
    for (int i = 0; i < ST_VAD_CONVS; i++)
        x = sotto_conv_1d(g, x, sotto_graph_use(g, m->conv_w[i]), sotto_graph_use(g, m->conv_b[i]), 3, stride[i], 1,
                          SOTTO_ACT_RELU, NULL); /* [BLOCK, 4 2 1 1, c_out] */
    const int64_t flat[] = {m->c_out[ST_VAD_CONVS - 1], ST_VAD_BLOCK};
    return sotto_view_reshape(g, x, 2, flat);
}

/* Rows [n, d] joined in pairs, so that each is copied log2(n) times. */
static sotto_tensor *join(sotto_graph *g, sotto_tensor **rows, int n)
{
    return n == 1 ? rows[0] : sotto_concat(g, join(g, rows, n / 2), join(g, rows + n / 2, n - n / 2), 1);
}

static void build(st_vad_net *net, sotto_graph *g)
{
    const sotto_vad_model *m = net->model;
    const int64_t span[] = {ST_VAD_SPAN, ST_VAD_BLOCK}, state[] = {m->n_state, 1};
    const int64_t n = m->n_state;
    net->pcm = sotto_graph_input(g, "pcm", SOTTO_F32, 2, span);
    net->hidden = sotto_graph_input(g, "hidden", SOTTO_F32, 2, state);
    net->cell = sotto_graph_input(g, "cell", SOTTO_F32, 2, state);
    sotto_tensor *x = features(g, m, net->pcm);
    x = sotto_linear(g, x, sotto_graph_use(g, m->input_w), sotto_graph_use(g, m->gate_b), SOTTO_ACT_NONE, NULL);
    sotto_tensor *h = net->hidden, *c = net->cell, *rows[ST_VAD_BLOCK];
    sotto_tensor *w = sotto_graph_use(g, m->state_w);
    for (int i = 0; i < ST_VAD_BLOCK; i++) {
        sotto_tensor *gates = sotto_linear(g, h, w, NULL, SOTTO_ACT_NONE, sotto_view_slice(g, x, 1, i, 1));
        sotto_tensor *open =
            sotto_sigmoid(g, sotto_view_slice(g, gates, 0, 0, 3 * n)); /* [1, 3 n]: input, forget, output */
        sotto_tensor *in =
            sotto_mul(g, sotto_tanh(g, sotto_view_slice(g, gates, 0, 3 * n, n)), sotto_view_slice(g, open, 0, 0, n));
        c = sotto_add(g, in, sotto_mul(g, c, sotto_view_slice(g, open, 0, n, n)));
        h = rows[i] = sotto_mul(g, sotto_tanh(g, c), sotto_view_slice(g, open, 0, 2 * n, n));
    }
    net->last_hidden = h;
    net->last_cell = c;
    sotto_tensor *heard = sotto_relu(g, join(g, rows, ST_VAD_BLOCK)); /* [BLOCK, n_state] */
    net->probability = sotto_sigmoid(
        g, sotto_linear(g, heard, sotto_graph_use(g, m->out_w), sotto_graph_use(g, m->out_b), SOTTO_ACT_NONE, NULL));
    sotto_graph_output(g, net->last_hidden, "hidden_out");
    sotto_graph_output(g, net->last_cell, "cell_out");
    sotto_graph_output(g, net->probability, "probability");
}

static sotto_status create(st_vad_net *net, sotto_error *err)
{
    const size_t n_state = (size_t)net->model->n_state;
    net->spans = st_alloc((size_t)ST_VAD_BLOCK * ST_VAD_SPAN, sizeof *net->spans);
    net->state = st_calloc(2 * n_state, sizeof *net->state);
    if (!net->spans || !net->state)
        return st_fail_memory(err, (size_t)ST_VAD_BLOCK * ST_VAD_SPAN * sizeof *net->spans, "voice activity detection");
    ST_TRY(sotto_backend_open(&net->model->backend_options, &net->backend, err));
    ST_TRY(sotto_arena_create(net->backend, &net->arena, err));
    sotto_graph *g;
    ST_TRY(sotto_graph_create("vad", &g, err));
    build(net, g);
    const sotto_status status = sotto_graph_finish(g, err);
    if (status != SOTTO_OK) {
        sotto_graph_free(g);
        return status;
    }
    return sotto_plan_create_take(net->backend, net->arena, g, &net->plan, err);
}

sotto_status st_vad_net_create(const sotto_vad_model *model, st_vad_net **out, sotto_error *err)
{
    *out = NULL;
    st_vad_net *net = st_calloc(1, sizeof *net);
    if (!net)
        return st_fail_memory(err, sizeof *net, "voice activity detection");
    net->model = model;
    const sotto_status status = create(net, err);
    if (status != SOTTO_OK) {
        st_vad_net_free(net);
        return status;
    }
    *out = net;
    return SOTTO_OK;
}

void st_vad_net_free(st_vad_net *net)
{
    if (!net)
        return;
    sotto_plan_free(net->plan);
    sotto_arena_free(net->arena);
    sotto_backend_free(net->backend);
    st_free(net->spans);
    st_free(net->state);
    st_free(net);
}

void st_vad_net_reset(st_vad_net *net)
{
    memset(net->context, 0, sizeof net->context);
    memset(net->state, 0, 2 * (size_t)net->model->n_state * sizeof *net->state);
}

/* ---- running ---- */

/* Each chunk with the samples before it, and its end mirrored (the last sample is not repeated). */
static void lay_out(st_vad_net *net, const float *pcm)
{
    for (int i = 0; i < ST_VAD_BLOCK; i++) {
        float *span = net->spans + i * ST_VAD_SPAN, *chunk = span + ST_VAD_CONTEXT, *end = chunk + SOTTO_VAD_CHUNK;
        memcpy(span, net->context, sizeof net->context);
        memcpy(chunk, pcm + i * SOTTO_VAD_CHUNK, SOTTO_VAD_CHUNK * sizeof *chunk);
        for (int j = 0; j < ST_VAD_CONTEXT; j++)
            end[j] = end[-2 - j];
        memcpy(net->context, end - ST_VAD_CONTEXT, sizeof net->context);
    }
}

sotto_status st_vad_net_run(st_vad_net *net, const float *pcm, float *out, sotto_error *err)
{
    const size_t n = (size_t)net->model->n_state, bytes = n * sizeof *net->state;
    lay_out(net, pcm);
    ST_TRY(sotto_plan_set(net->plan, net->pcm, 0, net->spans, (size_t)ST_VAD_BLOCK * ST_VAD_SPAN * sizeof *net->spans,
                          err));
    ST_TRY(sotto_plan_set(net->plan, net->hidden, 0, net->state, bytes, err));
    ST_TRY(sotto_plan_set(net->plan, net->cell, 0, net->state + n, bytes, err));
    ST_TRY(sotto_plan_run(net->plan, NULL, err));
    ST_TRY(sotto_plan_get(net->plan, net->last_hidden, 0, net->state, bytes, err));
    ST_TRY(sotto_plan_get(net->plan, net->last_cell, 0, net->state + n, bytes, err));
    return sotto_plan_get(net->plan, net->probability, 0, out, ST_VAD_BLOCK * sizeof *out, err);
}
