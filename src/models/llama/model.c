/* model.c: from a GGUF file to weights on devices. */
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/thread.h"
#include "models/common/needs.h"
#include "models/llama/model_impl.h"
#include "sotto/quant.h"

typedef struct loader {
    const sotto_model_file *file;
    sotto_llama_model *m;
    const sotto_llama_model_options *options;
    bool tied;                  /* the output is the embedding */
    bool own_lookup;            /* a second copy of it for looking tokens up, because the first is in pieces */
    sotto_status tokens_status; /* of the thread that reads them, once it has ended */
    sotto_error tokens_error;
} loader;

enum { TOKENS_ASIDE = 8192 }; /* so many are worth a thread */

/* The type a matrix is kept in: the file's where its device multiplies with it, else one that loses nothing that matters. In
 * f16 nothing is wider than that, and with 8-bit activations halves are multiplied as bf16. */
static sotto_dtype resident_dtype(const void *user, const st_weight *w, sotto_dtype file)
{
    const sotto_llama_model *m = ((const loader *)user)->m;
    if (w->rows_only)
        return file;
    if (m->compute == SOTTO_F16 && file == SOTTO_F32)
        return SOTTO_F16;
    if (m->compute == SOTTO_I8 && file == SOTTO_F16)
        return SOTTO_BF16;
    return sotto_backend_multiplies(m->backend, w->device, file) ? file : SOTTO_F16;
}

static void go_to_layer(loader *l, int i)
{
    l->m->weights.device = sotto_backend_layer_device(l->m->backend, i, l->m->h.n_layer);
}

/* Names are far shorter than ST_WEIGHT_NAME; one that is not becomes empty, and then a missing tensor. */
static const char *join(char out[ST_WEIGHT_NAME], const char *a, const char *b, const char *c)
{
    const int n = snprintf(out, ST_WEIGHT_NAME, "%s%s%s", a, b, c);
    if (n < 0 || n >= ST_WEIGHT_NAME)
        out[0] = 0;
    return out;
}

static bool has(const loader *l, const char *prefix, const char *name)
{
    char full[ST_WEIGHT_NAME];
    sotto_model_tensor t;
    join(full, prefix, name, "");
    return sotto_model_tensor_find(l->file, full, &t) !=
           SOTTO_E_NOT_FOUND; /* of a type that cannot be read, it is there */
}

/* Parts of one resident type become one product. */
static void add_fused(loader *l, st_fused *f, const char *prefix, const char *const *names, const int64_t *rows, int n,
                      bool needs_bias)
{
    st_weights *list = &l->m->weights;
    sotto_dtype type[ST_FUSED_PARTS] = {SOTTO_F32};
    int64_t width[ST_FUSED_PARTS] = {0};
    memset(f, 0, sizeof *f);
    for (int p = 0; p < n; p++) {
        char name[ST_WEIGHT_NAME];
        join(name, prefix, names[p], ".weight");
        sotto_model_tensor t;
        const st_weight plain = {.kind = ST_WEIGHT_MATRIX, .device = list->device};
        const bool found = sotto_model_tensor_find(l->file, name, &t) == SOTTO_OK;
        const sotto_dtype mine = resident_dtype(l, &plain, found ? t.dtype : type[0]);
        int to = 0;
        while (to < f->n && type[to] != mine)
            to++;
        f->n = to == f->n ? f->n + 1 : f->n;
        type[to] = mine;
        f->of[p] = to;
        f->start[p] = width[to];
        f->rows[p] = rows[p];
        width[to] += rows[p];
    }
    for (int i = 0; i < f->n; i++) {
        st_weight *w = st_weights_add(list, &f->w[i], ST_WEIGHT_MATRIX);
        for (int p = 0; p < n; p++) {
            char name[ST_WEIGHT_NAME];
            join(name, names[p], ".weight", "");
            if (f->of[p] == i)
                st_weight_part(w, rows[p], l->m->h.n_embd, prefix, name);
        }
    }
    bool bias = needs_bias;
    for (int p = 0; p < n; p++) {
        char name[ST_WEIGHT_NAME];
        join(name, names[p], ".bias", "");
        bias = bias || has(l, prefix, name);
    }
    for (int i = 0; i < f->n && bias; i++) {
        st_weight *b = st_weights_add(list, &f->b[i], ST_WEIGHT_VECTOR);
        if (b)
            b->missing_is_zero = needs_bias ? 0 : ~0u;
        for (int p = 0; p < n; p++) {
            char name[ST_WEIGHT_NAME];
            join(name, names[p], ".bias", "");
            if (f->of[p] == i)
                st_weight_part(b, 1, rows[p], prefix, name);
        }
    }
}

/* One matrix of the file that holds all parts. */
static void add_whole(loader *l, st_fused *f, const char *prefix, const char *name, const int64_t *rows, int n)
{
    memset(f, 0, sizeof *f);
    f->n = 1;
    int64_t all = 0;
    for (int p = 0; p < n; p++) {
        f->start[p] = all;
        f->rows[p] = rows[p];
        all += rows[p];
    }
    char full[ST_WEIGHT_NAME];
    join(full, name, ".weight", "");
    st_weights_add_one(&l->m->weights, &f->w[0], ST_WEIGHT_MATRIX, all, l->m->h.n_embd, prefix, full);
    join(full, name, ".bias", "");
    if (has(l, prefix, full))
        st_weights_add_one(&l->m->weights, &f->b[0], ST_WEIGHT_VECTOR, 1, all, prefix, full);
}

static void add_vector(loader *l, sotto_tensor **out, int64_t n, const char *prefix, const char *name)
{
    st_weights_add_one(&l->m->weights, out, ST_WEIGHT_VECTOR, 1, n, prefix, name);
}

static void add_matrix(loader *l, sotto_tensor **out, int64_t rows, int64_t n, const char *prefix, const char *name)
{
    st_weights_add_one(&l->m->weights, out, ST_WEIGHT_MATRIX, rows, n, prefix, name);
}

/* With a bias when the file has one. */
static void add_linear(loader *l, sotto_tensor **w, sotto_tensor **b, int64_t rows, int64_t n, const char *prefix,
                       const char *name)
{
    char full[ST_WEIGHT_NAME];
    join(full, name, ".weight", "");
    add_matrix(l, w, rows, n, prefix, full);
    join(full, name, ".bias", "");
    if (has(l, prefix, full))
        add_vector(l, b, rows, prefix, full);
}

static void add_layer(loader *l, int i)
{
    static const char *const qkv[] = {"attn_q", "attn_k", "attn_v"}, *const gate_up[] = {"ffn_gate", "ffn_up"};
    const st_llama_hparams *h = &l->m->h;
    const int64_t q = (int64_t)h->n_head * h->d_head, kv = (int64_t)h->n_head_kv * h->d_head;
    const int64_t qkv_rows[] = {q, kv, kv}, ffn_rows[] = {h->n_ff, h->n_ff};
    st_llama_layer *w = &l->m->layer[i];
    char p[ST_WEIGHT_NAME];
    snprintf(p, sizeof p, "blk.%d.", i);
    go_to_layer(l, i);
    add_vector(l, &w->attn_norm, h->n_embd, p, "attn_norm.weight");
    if (h->arch->fused_qkv && has(l, p, "attn_qkv.weight"))
        add_whole(l, &w->qkv, p, "attn_qkv", qkv_rows, 3);
    else
        add_fused(l, &w->qkv, p, qkv, qkv_rows, 3, h->arch->bias);
    if (h->arch->head_norm) {
        add_vector(l, &w->q_norm, h->d_head, p, "attn_q_norm.weight");
        add_vector(l, &w->k_norm, h->d_head, p, "attn_k_norm.weight");
    }
    add_linear(l, &w->out, &w->out_b, h->n_embd, q, p, "attn_output");
    if (h->arch->post_norm) {
        add_vector(l, &w->attn_post_norm, h->n_embd, p, "post_attention_norm.weight");
        add_vector(l, &w->ffn_post_norm, h->n_embd, p, "post_ffw_norm.weight");
    }
    add_vector(l, &w->ffn_norm, h->n_embd, p, "ffn_norm.weight");
    if (h->arch->fused_gate)
        add_whole(l, &w->gate_up, p, "ffn_up", ffn_rows, 2);
    else
        add_fused(l, &w->gate_up, p, gate_up, ffn_rows, 2, false);
    add_linear(l, &w->down, &w->down_b, h->n_embd, h->n_ff, p, "ffn_down");
}

static sotto_status list_weights(loader *l, sotto_error *err)
{
    sotto_llama_model *m = l->m;
    const st_llama_hparams *h = &m->h;
    m->weights.count = 0;
    l->tied = !has(l, "", "output.weight");
    go_to_layer(l, h->n_layer - 1);
    if (l->tied)
        add_matrix(l, &m->output, h->n_vocab, h->n_embd, "", "token_embd.weight");
    else
        add_linear(l, &m->output, &m->output_b, h->n_vocab, h->n_embd, "", "output");
    add_vector(l, &m->output_norm, h->n_embd, "", "output_norm.weight");
    m->weights.device = sotto_backend_device_count(m->backend) - 1;
    st_weight *lookup = st_weights_add(&m->weights, &m->lookup, ST_WEIGHT_MATRIX);
    st_weight_part(lookup, h->n_vocab, h->n_embd, "", "token_embd.weight");
    if (lookup)
        lookup->rows_only = true;
    for (int i = 0; i < h->n_layer; i++)
        add_layer(l, i);
    return st_weights_check(&m->weights, err);
}

static bool is_shared(const loader *l, const st_weight *w)
{
    return w->out == &l->m->lookup && l->tied && !l->own_lookup;
}

static sotto_status declare(loader *l, const st_weight *w, sotto_error *err)
{
    sotto_llama_model *m = l->m;
    if (w->out == &m->output) {
        sotto_dtype dtype;
        int64_t dim[2];
        ST_TRY(st_weight_shape(&m->weights, w, &dtype, dim, err));
        sotto_store_set_device(m->store, w->device);
        l->own_lookup = sotto_store_would_split(m->store, dtype, 2, dim);
    }
    if (is_shared(l, w)) {
        m->lookup = m->output;
        return SOTTO_OK;
    }
    return st_weight_declare(&m->weights, w, err);
}

/* ---- rotation: a table of factors beside each layer ---- */

static sotto_status read_factors(const loader *l, const char *name, float *out, bool *found, sotto_error *err)
{
    sotto_model_tensor t;
    const int32_t n = l->m->h.n_rot / 2;
    *found = sotto_model_tensor_find(l->file, name, &t) != SOTTO_E_NOT_FOUND;
    if (!*found)
        return SOTTO_OK;
    ST_TRY(sotto_model_tensor_need(l->file, name, &t, err));
    if (t.n_dims != 1 || t.dim[0] != n)
        return st_fail(err, SOTTO_E_FORMAT, "%s: %lld numbers, expected %d", name, (long long)t.dim[0], (int)n);
    ST_TRY(sotto_model_tensor_f32(&t, 0, 1, out, err));
    for (int32_t i = 0; i < n; i++)
        if (!(out[i] > 0 && out[i] < 1e9f))
            return st_fail(err, SOTTO_E_FORMAT, "%s: number %d is %g, expected more than 0", name, (int)i,
                           (double)out[i]);
    return SOTTO_OK;
}

static sotto_status make_ropes(loader *l, sotto_error *err)
{
    sotto_llama_model *m = l->m;
    const size_t n = (size_t)m->h.n_rot / 2;
    static const char *const names[2][2] = {{"rope_freqs.weight", "rope_freqs.weight"},
                                            {"rope_factors_short.weight", "rope_factors_long.weight"}};
    const char *const *name = names[m->h.scaling == ST_ROPE_LONGROPE];
    m->rope_factors = st_calloc(4 * n, sizeof *m->rope_factors);
    float *given = st_alloc(n, sizeof *given);
    sotto_status status = SOTTO_OK;
    if (!m->rope_factors || !given)
        status = st_fail_memory(err, 5 * n * sizeof *given, "factors of rotation");
    for (int far = 0; far < 2 && status == SOTTO_OK; far++) {
        bool found;
        status = read_factors(l, name[far], given, &found, err);
        for (int window = 0; window < 2 && status == SOTTO_OK; window++)
            m->rope[window][far] = st_llama_rope_table(&m->h, window == 1, found ? given : NULL,
                                                       m->rope_factors + (size_t)(2 * window + far) * n);
    }
    st_free(given);
    return status;
}

static void declare_ropes(loader *l)
{
    sotto_llama_model *m = l->m;
    const int64_t n = m->h.n_rot / 2;
    for (int i = 0; i < m->h.n_layer; i++) {
        const st_llama_rope *r = m->rope[st_llama_window(&m->h, i) > 0];
        sotto_store_set_device(m->store, sotto_backend_layer_device(m->backend, i, m->h.n_layer));
        for (int far = 0; far < 2; far++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%d.rope_factors.%d", i, far);
            m->layer[i].rope_factors[far] = NULL;
            if (far == 1 && m->h.scaling != ST_ROPE_LONGROPE)
                m->layer[i].rope_factors[1] = m->layer[i].rope_factors[0];
            else if (r[far].has_factors)
                m->layer[i].rope_factors[far] = sotto_store_add(m->store, name, SOTTO_F32, 1, &n, false);
        }
    }
}

static sotto_status upload_ropes(loader *l, sotto_error *err)
{
    sotto_llama_model *m = l->m;
    const size_t n = (size_t)m->h.n_rot / 2;
    for (int i = 0; i < m->h.n_layer; i++) {
        const size_t window = st_llama_window(&m->h, i) > 0;
        for (size_t far = 0; far < 2; far++) {
            sotto_tensor *t = m->layer[i].rope_factors[far];
            if (t && (far == 0 || t != m->layer[i].rope_factors[0]))
                ST_TRY(sotto_store_upload(m->store, t, 0, 1, SOTTO_F32, m->rope_factors + (2 * window + far) * n, err));
        }
    }
    return SOTTO_OK;
}

static sotto_status load_weights(void *user, sotto_error *err)
{
    loader *l = user;
    sotto_llama_model *m = l->m;
    st_weights *list = &m->weights;
    ST_TRY(list_weights(l, err));
    ST_TRY(sotto_store_create(m->backend, SOTTO_USAGE_WEIGHTS, &m->store, err));
    list->store = m->store;
    list->backend = m->backend;
    declare_ropes(l);
    for (int64_t i = 0; i < list->count; i++)
        ST_TRY(declare(l, &list->list[i], err));
    if (m->measure_only)
        return sotto_store_check(m->store, err);
    ST_TRY(sotto_store_allocate(m->store, err));
    const int64_t n_scratch = st_weights_scratch(list);
    float *scratch = st_alloc((size_t)n_scratch, sizeof *scratch);
    if (!scratch)
        return st_fail_memory(err, (uint64_t)n_scratch * sizeof *scratch, "loading weights");
    sotto_status status = upload_ropes(l, err);
    for (int64_t i = 0; i < list->count && status == SOTTO_OK; i++)
        if (!is_shared(l, &list->list[i]))
            status = st_weight_upload(list, &list->list[i], scratch, n_scratch, err);
    st_free(scratch);
    return status;
}

static sotto_status try_session(void *user, sotto_error *err)
{
    sotto_llama_model *m = ((loader *)user)->m;
    if (m->measure_only)
        return SOTTO_OK;
    const sotto_logger logger = m->logger;
    m->logger = (sotto_logger){0}; /* what it would say, the session that stays will say */
    sotto_llama_session *session;
    const sotto_status status = sotto_llama_session_create(m, NULL, &session, err);
    m->logger = logger;
    sotto_llama_session_free(session);
    return status;
}

static sotto_status choose_compute(sotto_llama_model *m, const char *name, sotto_error *err)
{
    static const struct {
        const char *name;
        sotto_dtype dtype;
    } types[] = {{"f32", SOTTO_F32}, {"f16", SOTTO_F16}, {"int8", SOTTO_I8}};
    if (!name || strcmp(name, "auto") == 0) {
        m->compute = sotto_backend_preferred_weights(m->backend);
        if (m->compute == SOTTO_BF16) /* a level with units for bf16 has them for bytes, too */
            m->compute = SOTTO_I8;
        return SOTTO_OK;
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(name, types[i].name) == 0) {
            m->compute = types[i].dtype;
            return SOTTO_OK;
        }
    return st_fail(err, SOTTO_E_ARGUMENT, "compute type \"%s\" is unknown, expected auto, f32, f16 or int8", name);
}

/* What tells models apart: names, types and sizes of the tensors, and some bytes of each. */
static uint64_t fingerprint(const sotto_model_file *file)
{
    enum { SOME = 256 };
    uLong a = crc32(0, NULL, 0), b = adler32(0, NULL, 0);
    for (int64_t i = 0; i < sotto_model_tensor_count(file); i++) {
        sotto_model_tensor t;
        if (sotto_model_tensor_get(file, i, &t) != SOTTO_OK || !t.data)
            continue;
        const size_t n = t.bytes < SOME ? t.bytes : SOME, at = (t.bytes - n) / 2;
        const int64_t facts[] = {(int64_t)t.dtype, t.dim[0], t.dim[1], (int64_t)t.bytes};
        a = crc32(a, (const Bytef *)t.name, (uInt)strlen(t.name));
        a = crc32(a, (const Bytef *)facts, sizeof facts);
        a = crc32(a, (const Bytef *)t.data + at, (uInt)n);
        b = adler32(b, (const Bytef *)t.data + at, (uInt)n);
    }
    return (uint64_t)a << 32 | (uint64_t)b;
}

static sotto_status read_name(loader *l, sotto_error *err)
{
    const char *name = "";
    size_t n = 0;
    if (sotto_meta_string(l->file, "general.name", &name, &n, NULL) != SOTTO_OK)
        n = 0;
    l->m->name = st_calloc(n + 1, 1);
    if (!l->m->name)
        return st_fail_memory(err, n + 1, "the model's name");
    if (n > 0)
        memcpy(l->m->name, name, n);
    for (int64_t i = 0; i < sotto_model_tensor_count(l->file); i++) {
        sotto_model_tensor t;
        if (sotto_model_tensor_get(l->file, i, &t) != SOTTO_OK)
            continue;
        int64_t count = 1;
        for (int a = 0; a < t.n_dims; a++)
            count *= t.dim[a];
        l->m->n_params += count;
    }
    return SOTTO_OK;
}

static sotto_status read_tokens(loader *l, sotto_error *err)
{
    sotto_llama_model *m = l->m;
    ST_TRY(st_shared_tree_create(&m->texts, err));
    ST_TRY(st_tokenizer_create(l->file, &m->tokenizer, err));
    if (st_tokenizer_size(m->tokenizer) != m->h.n_vocab)
        return st_fail(err, SOTTO_E_FORMAT, "token_embd.weight: %d rows, expected one for each of the %d tokens",
                       (int)m->h.n_vocab, (int)st_tokenizer_size(m->tokenizer));
    if (st_chat_choose(l->file, NULL, &m->chat, &m->no_chat) != SOTTO_OK)
        m->chat = NULL;
    return SOTTO_OK;
}

static void read_tokens_aside(void *arg)
{
    loader *l = arg;
    l->tokens_status = read_tokens(l, &l->tokens_error);
}

static sotto_status open_backend(loader *l, sotto_error *err)
{
    static const char *const ops[] = {"linear",   "rms_norm", "cache_attention", "rope", "glu", "add", "get_rows",
                                      "set_rows", "copy",     "scale",           "tanh", NULL};
    const char *compute = l->options->compute;
    st_needs needs = {ops, st_needs_types(l->file)};
    sotto_backend_options o = l->options->backend;
    const bool on_cpu = o.gpu_layers < 0 || o.main_device; /* where the choice may fall on int8 */
    if (compute && strcmp(compute, "auto") != 0 ? strcmp(compute, "int8") == 0 : on_cpu)
        needs.types |= ST_NEEDS_TYPE(SOTTO_BF16);
    if (!o.needs) {
        o.needs = st_needs_op;
        o.needs_user = &needs;
    }
    return sotto_backend_open(&o, &l->m->backend, err);
}

static sotto_status load_network(loader *l, sotto_error *err)
{
    sotto_llama_model *m = l->m;
    const sotto_llama_model_options *o = l->options;
    m->measure_only = o->measure_only;
    ST_TRY(open_backend(l, err));
    ST_TRY(choose_compute(m, o->compute, err));
    m->layer = st_calloc((size_t)m->h.n_layer, sizeof *m->layer);
    if (!m->layer)
        return st_fail_memory(err, sizeof *m->layer * (size_t)m->h.n_layer, "the list of layers");
    m->weights.file = l->file;
    m->weights.resident = resident_dtype;
    m->weights.user = l;
    ST_TRY(make_ropes(l, err));
    m->fingerprint = m->measure_only ? 0 : fingerprint(l->file);
    ST_TRY(st_load_what_fits(m->backend, o->backend.gpu_layers, m->h.n_layer, &m->logger, &m->store, load_weights,
                             try_session, l, err));
    if (!m->measure_only)
        m->file = st_weights_retain_file(&m->weights);
    return SOTTO_OK;
}

/* Many tokens are read while devices are opened and weights packed. What is wrong with tokens is told first. */
static sotto_status load(loader *l, sotto_error *err)
{
    sotto_llama_model *m = l->m;
    st_thread aside;
    ST_TRY(st_llama_hparams_read(l->file, &m->h, err));
    ST_TRY(read_name(l, err));
    m->logger = l->options->backend.logger;
    const bool apart =
        m->h.n_vocab >= TOKENS_ASIDE && st_thread_cores() > 1 && st_thread_create(&aside, read_tokens_aside, l);
    if (!apart)
        ST_TRY(read_tokens(l, err));
    const sotto_status status = load_network(l, err);
    if (apart) {
        st_thread_join(&aside);
        if (l->tokens_status != SOTTO_OK && err)
            *err = l->tokens_error;
        ST_TRY(l->tokens_status);
    }
    if (status == SOTTO_OK && st_tokenizer_warning(m->tokenizer))
        st_log(&m->logger, SOTTO_LOG_WARNING, "%s", st_tokenizer_warning(m->tokenizer));
    return status;
}

sotto_status st_llama_model_load(const sotto_model_file *file, const sotto_llama_model_options *options,
                                 sotto_llama_model **out, sotto_error *err)
{
    const double start = st_time_now();
    loader l = {.file = file, .m = st_calloc(1, sizeof *l.m), .options = options};
    *out = NULL;
    if (!l.m)
        return st_fail_memory(err, sizeof *l.m, "a model");
    const sotto_status status = load(&l, err);
    if (status != SOTTO_OK) {
        sotto_llama_model_free(l.m);
        return status;
    }
    l.m->weights.file = NULL;
    l.m->weights.user = NULL;
    l.m->load_seconds = st_time_now() - start;
    *out = l.m;
    return SOTTO_OK;
}

void sotto_llama_model_free(sotto_llama_model *model)
{
    if (!model)
        return;
    st_tokenizer_free(model->tokenizer);
    st_shared_tree_release(model->texts);
    sotto_store_free(model->store);
    sotto_model_file_free(model->file);
    sotto_backend_free(model->backend);
    st_weights_free(&model->weights);
    st_free(model->rope_factors);
    st_free(model->layer);
    st_free(model->name);
    st_free(model);
}
