/* model.c: from a model file to weights on a device. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/thread.h"
#include "formats/mel_filters.h"
#include "models/common/needs.h"
#include "models/common/weights.h"
#include "models/whisper/model_impl.h"
#include "sotto/quant.h"

typedef struct loader {
    const sotto_model_file *file;
    const sotto_whisper_model_options *options;
    sotto_whisper_model *m;
    st_weights weights;
    bool own_lookup; /* the embedding is in pieces, so a whole one is kept on the CPU */
} loader;

/* Names are far shorter than ST_WEIGHT_NAME; one that is not becomes empty, and then a missing tensor. */
static void join(char out[ST_WEIGHT_NAME], const char *a, const char *b)
{
    const int n = snprintf(out, ST_WEIGHT_NAME, "%s%s", a, b);
    if (n < 0 || n >= ST_WEIGHT_NAME)
        out[0] = 0;
}

static void add_vector(loader *l, sotto_tensor **out, int64_t n, const char *prefix, const char *name)
{
    st_weights_add_one(&l->weights, out, ST_WEIGHT_VECTOR, 1, n, prefix, name);
}

static void add_matrix(loader *l, sotto_tensor **out, int64_t rows, int64_t n, const char *prefix, const char *name)
{
    st_weights_add_one(&l->weights, out, ST_WEIGHT_MATRIX, rows, n, prefix, name);
}

static void add_table(loader *l, sotto_tensor **out, int64_t rows, int64_t n, const char *prefix, const char *name)
{
    st_weights_add_one(&l->weights, out, ST_WEIGHT_TABLE, rows, n, prefix, name);
}

/* weight [rows, n] and bias [rows] of one linear layer */
static void add_linear(loader *l, sotto_tensor **w, sotto_tensor **b, int64_t rows, int64_t n, const char *prefix,
                       const char *name)
{
    char full[ST_WEIGHT_NAME];
    join(full, prefix, name);
    add_matrix(l, w, rows, n, full, ".weight");
    add_vector(l, b, rows, full, ".bias");
}

static void add_conv(loader *l, sotto_tensor **w, sotto_tensor **b, int64_t rows, int64_t n, const char *name)
{
    st_weights_add_one(&l->weights, w, ST_WEIGHT_CONV, rows, n, name, ".weight");
    add_vector(l, b, rows, name, ".bias");
}

static void add_norm(loader *l, sotto_tensor **w, sotto_tensor **b, int64_t n, const char *prefix, const char *name)
{
    char full[ST_WEIGHT_NAME];
    join(full, prefix, name);
    add_vector(l, w, n, full, ".weight");
    add_vector(l, b, n, full, ".bias");
}

/* Matrices [d, d] as one; the key's bias is not there. */
static void add_fused(loader *l, sotto_tensor **w, sotto_tensor **b, int64_t d, const char *prefix,
                      const char *const *names, int n_names)
{
    st_weight *matrix = st_weights_add(&l->weights, w, ST_WEIGHT_MATRIX);
    for (int i = 0; i < n_names; i++) {
        char full[ST_WEIGHT_NAME];
        join(full, names[i], ".weight");
        st_weight_part(matrix, d, d, prefix, full);
    }
    st_weight *bias = st_weights_add(&l->weights, b, ST_WEIGHT_VECTOR);
    for (int i = 0; i < n_names; i++) {
        char full[ST_WEIGHT_NAME];
        join(full, names[i], ".bias");
        st_weight_part(bias, 1, d, prefix, full);
        if (bias && strcmp(names[i], "key") == 0)
            bias->missing_is_zero |= 1u << i;
    }
}

/* What is listed next lives with layer i, counted from the encoder's first to the decoder's last. */
static void go_to_layer(loader *l, int i)
{
    l->weights.device = sotto_backend_layer_device(l->m->backend, i, st_whisper_layers(l->m));
}

static void add_layers(loader *l, st_layer_weights *layers, int n_layers, int64_t d, const char *side, bool cross)
{
    static const char *const qkv[] = {"query", "key", "value"};
    for (int i = 0; i < n_layers; i++) {
        st_layer_weights *w = &layers[i];
        go_to_layer(l, cross ? l->m->h.n_audio_layer + i : i);
        char p[ST_WEIGHT_NAME], q[ST_WEIGHT_NAME];
        snprintf(p, sizeof p, "%s.blocks.%d.", side, i);
        add_norm(l, &w->self.ln_w, &w->self.ln_b, d, p, "attn_ln");
        join(q, p, "attn.");
        add_fused(l, &w->self.qkv_w, &w->self.qkv_b, d, q, qkv, 3);
        add_linear(l, &w->self.out_w, &w->self.out_b, d, d, q, "out");
        if (cross) {
            add_norm(l, &w->cross.ln_w, &w->cross.ln_b, d, p, "cross_attn_ln");
            join(q, p, "cross_attn.");
            add_linear(l, &w->cross.q_w, &w->cross.q_b, d, d, q, "query");
            add_fused(l, &w->cross.kv_w, &w->cross.kv_b, d, q, qkv + 1, 2);
            add_linear(l, &w->cross.out_w, &w->cross.out_b, d, d, q, "out");
        }
        add_norm(l, &w->mlp.ln_w, &w->mlp.ln_b, d, p, "mlp_ln");
        add_linear(l, &w->mlp.up_w, &w->mlp.up_b, 4 * d, d, p, "mlp.0");
        add_linear(l, &w->mlp.down_w, &w->mlp.down_b, d, 4 * d, p, "mlp.2");
    }
}

static sotto_status list_weights(loader *l, sotto_error *err)
{
    sotto_whisper_model *m = l->m;
    const int64_t d = m->h.n_audio_state;
    go_to_layer(l, 0);
    add_conv(l, &m->conv1_w, &m->conv1_b, d, 3 * m->h.n_mels, "encoder.conv1");
    add_conv(l, &m->conv2_w, &m->conv2_b, d, 3 * d, "encoder.conv2");
    add_table(l, &m->audio_pos, m->h.n_audio_ctx, d, "encoder", ".positional_embedding");
    add_layers(l, m->encoder, m->h.n_audio_layer, d, "encoder", false);
    add_norm(l, &m->encoder_ln_w, &m->encoder_ln_b, d, "encoder.", "ln_post");
    go_to_layer(l, st_whisper_layers(m) - 1);
    add_matrix(l, &m->embedding, m->h.n_vocab, d, "decoder.token_embedding", ".weight");
    l->weights.device = sotto_backend_device_count(m->backend) - 1;
    add_matrix(l, &m->lookup, m->h.n_vocab, d, "decoder.token_embedding", ".weight");
    go_to_layer(l, m->h.n_audio_layer);
    add_table(l, &m->text_pos, m->h.n_text_ctx, d, "decoder", ".positional_embedding");
    add_layers(l, m->decoder, m->h.n_text_layer, d, "decoder", true);
    add_norm(l, &m->decoder_ln_w, &m->decoder_ln_b, d, "decoder.", "ln");
    return st_weights_check(&l->weights, err);
}

/* Products of all rows of a window: the encoder's, and the keys and values that the decoder's layers make of its output. */
static bool meets_many_rows(const st_weight *w)
{
    return strncmp(w->part[0], "encoder.", 8) == 0 || strstr(w->part[0], "cross_attn.key") != NULL;
}

/* The encoder's first block turns sounds into what all others refine: int8 there would cost more words than in the rest of
 * the network together, and bf16 lets one frame of a recording come out wrong (docs/quality.md). It gets one type better. */
static bool is_delicate(const st_weight *w)
{
    return strncmp(w->part[0], "encoder.blocks.0.", 17) == 0;
}

/* The type a matrix is kept in. In f32 it is the file's where the backends compute with it, else one that loses nothing
 * that matters: i8 with a scale a row has the integers of q8_0; K types are far coarser than f16. Otherwise it is the
 * compute type, but for blocks smaller than that in the decoder, where reading weights is the work. */
static sotto_dtype resident_dtype(const void *user, const st_weight *w, sotto_dtype file)
{
    const sotto_whisper_model *m = ((const loader *)user)->m;
    sotto_dtype compute = m->compute;
    if (is_delicate(w) && (compute == SOTTO_BF16 || (compute == SOTTO_I8 && file != SOTTO_I8)))
        compute = compute == SOTTO_I8 || m->words ? SOTTO_BF16 : SOTTO_F32;
    const sotto_dtype half = m->words ? SOTTO_F16 : SOTTO_BF16;
    if (compute == SOTTO_F16) { /* as in f32, but nothing is wider */
        compute = SOTTO_F32;
        file = file == SOTTO_F32 ? SOTTO_F16 : file;
    }
    if (w->kind == ST_WEIGHT_CONV)
        return compute != SOTTO_F32 ? half : file == SOTTO_F32 ? SOTTO_F32 : SOTTO_F16;
    if (file == SOTTO_IQ4_NL || sotto_dtype_block(file) > 32) { /* not every device computes with these blocks */
        if (compute != SOTTO_F32 && !meets_many_rows(w) && sotto_backend_multiplies(m->backend, w->device, file))
            return file;
        file = SOTTO_F16;
    }
    const bool small_blocks = sotto_dtype_block(file) == 32 && file != SOTTO_Q8_0;
    if (compute != SOTTO_F32 && meets_many_rows(w))
        return compute == SOTTO_BF16 ? half : compute;
    if (compute != SOTTO_F32 && !small_blocks)
        return compute == SOTTO_BF16 && file == SOTTO_Q8_0 ? file : compute;
    if (file == SOTTO_I8)
        return w->width[0] % 32 == 0 ? SOTTO_Q8_0 : SOTTO_F16;
    return sotto_backend_multiplies(m->backend, w->device, file) ? file : SOTTO_F16;
}

static bool is_shared(const loader *l, const st_weight *w)
{
    return w->out == &l->m->lookup && !l->own_lookup;
}

static sotto_status declare(loader *l, const st_weight *w, sotto_error *err)
{
    sotto_whisper_model *m = l->m;
    if (w->out == &m->embedding) {
        sotto_dtype dtype;
        int64_t dim[2];
        ST_TRY(st_weight_shape(&l->weights, w, &dtype, dim, err));
        sotto_store_set_device(m->store, w->device);
        l->own_lookup = sotto_store_would_split(m->store, dtype, 2, dim);
    }
    if (is_shared(l, w)) {
        m->lookup = m->embedding;
        return SOTTO_OK;
    }
    return st_weight_declare(&l->weights, w, err);
}

static void declare_front_end(sotto_whisper_model *m)
{
    const int64_t dft[2] = {ST_N_FFT, 2 * ST_N_BINS}, filters[2] = {ST_N_BINS, m->h.n_mels};
    m->dft = sotto_store_add(m->store, "frontend.dft", SOTTO_F32, 2, dft, true);
    m->mel_filters = sotto_store_add(m->store, "frontend.mel_filters", SOTTO_F32, 2, filters, true);
}

/* Short-time Fourier transform with a periodic Hann window as one matrix (torch.stft with torch.hann_window). */
static sotto_status upload_front_end(loader *l, float *scratch, sotto_error *err)
{
    const double pi = 3.14159265358979323846;
    for (int k = 0; k < ST_N_BINS; k++)
        for (int i = 0; i < ST_N_FFT; i++) {
            const double window = 0.5 - 0.5 * cos(2 * pi * i / ST_N_FFT);
            const double angle = 2 * pi * (double)((long)k * i % ST_N_FFT) / ST_N_FFT;
            scratch[k * ST_N_FFT + i] = (float)(window * cos(angle));
            scratch[(ST_N_BINS + k) * ST_N_FFT + i] = (float)(-window * sin(angle));
        }
    sotto_whisper_model *m = l->m;
    ST_TRY(sotto_store_upload(m->store, m->dft, 0, 2 * ST_N_BINS, SOTTO_F32, scratch, err));
    const float *filters;
    int64_t count;
    if (sotto_meta_floats(l->file, "whisper.mel_filters", &filters, &count, NULL) != SOTTO_OK) {
        if (!st_mel_filters(m->h.n_mels, scratch))
            return st_fail(err, SOTTO_E_UNSUPPORTED, "whisper.n_mels: no filters are known for %d bands",
                           (int)m->h.n_mels);
        filters = scratch;
    } else if (count != (int64_t)m->h.n_mels * ST_N_BINS)
        return st_fail(err, SOTTO_E_FORMAT, "whisper.mel_filters: %lld numbers, expected %d x %d", (long long)count,
                       (int)m->h.n_mels, (int)ST_N_BINS);
    return sotto_store_upload(m->store, m->mel_filters, 0, m->h.n_mels, SOTTO_F32, filters, err);
}

static sotto_status load_weights(void *user, sotto_error *err)
{
    loader *l = user;
    sotto_whisper_model *m = l->m;
    st_weights *list = &l->weights;
    list->count = 0;
    ST_TRY(list_weights(l, err));
    ST_TRY(sotto_store_create(m->backend, SOTTO_USAGE_WEIGHTS, &m->store, err));
    list->store = m->store;
    list->backend = m->backend;
    declare_front_end(m);
    for (int64_t i = 0; i < list->count; i++)
        ST_TRY(declare(l, &list->list[i], err));
    if (m->measure_only)
        return sotto_store_check(m->store, err);
    ST_TRY(sotto_store_allocate(m->store, err));
    const int64_t own = 2 * ST_N_BINS * ST_N_FFT, theirs = st_weights_scratch(list),
                  widest = own > theirs ? own : theirs;
    float *scratch = st_alloc((size_t)widest, sizeof *scratch);
    if (!scratch)
        return st_fail_memory(err, (uint64_t)widest * sizeof *scratch, "loading weights");
    sotto_status status = upload_front_end(l, scratch, err);
    for (int64_t i = 0; i < list->count && status == SOTTO_OK; i++)
        if (!is_shared(l, &list->list[i]))
            status = st_weight_upload(list, &list->list[i], scratch, widest, err);
    st_free(scratch);
    return status;
}

static sotto_status try_session(void *user, sotto_error *err)
{
    sotto_whisper_model *m = ((loader *)user)->m;
    if (m->measure_only)
        return SOTTO_OK;
    const sotto_logger logger = m->logger;
    m->logger = (sotto_logger){0}; /* what it would say, the session that stays will say */
    sotto_whisper_session *session;
    const sotto_status status = sotto_whisper_session_create(m, NULL, &session, err);
    m->logger = logger;
    sotto_whisper_session_free(session);
    return status;
}

static sotto_status choose_compute(sotto_whisper_model *m, const char *name, sotto_error *err)
{
    static const struct {
        const char *name;
        sotto_dtype dtype;
    } types[] = {{"f32", SOTTO_F32}, {"f16", SOTTO_F16}, {"bf16", SOTTO_BF16}, {"int8", SOTTO_I8}};
    m->compute = sotto_backend_preferred_weights(m->backend);
    m->words = sotto_backend_prefers_words(m->backend);
    if (!name || strcmp(name, "auto") == 0)
        return SOTTO_OK;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(name, types[i].name) == 0) {
            m->compute = types[i].dtype;
            return SOTTO_OK;
        }
    return st_fail(err, SOTTO_E_ARGUMENT, "compute type \"%s\" is unknown, expected auto, f32, f16, bf16 or int8", name);
}

static sotto_status open_backend(loader *l, sotto_error *err)
{
    static const char *const ops[] = {"linear", "conv_1d",    "layer_norm", "attention", "cache_attention",
                                      "add",    "get_rows",   "set_rows",   "copy",      "power",
                                      "log10",  "block_sums", NULL};
    const char *compute = l->options->compute;
    st_needs needs = {ops, st_needs_types(l->file)};
    sotto_backend_options o = l->options->backend;
    if (compute && (strcmp(compute, "bf16") == 0 || strcmp(compute, "int8") == 0))
        needs.types |= ST_NEEDS_TYPE(SOTTO_BF16) | ST_NEEDS_TYPE(SOTTO_I8);
    else if (needs.types & ST_NEEDS_TYPE(SOTTO_I8)) /* what the file's integers become */
        needs.types = (needs.types & ~ST_NEEDS_TYPE(SOTTO_I8)) | ST_NEEDS_TYPE(SOTTO_Q8_0);
    if (!o.needs) {
        o.needs = st_needs_op;
        o.needs_user = &needs;
    }
    return sotto_backend_open(&o, &l->m->backend, err);
}

static sotto_status load(loader *l, sotto_error *err)
{
    sotto_whisper_model *m = l->m;
    const sotto_whisper_model_options *options = l->options;
    ST_TRY(st_hparams_read(l->file, &m->h, err));
    snprintf(m->format, sizeof m->format, "%s", sotto_model_file_format(l->file));
    ST_TRY(st_vocab_create(l->file, m->h.n_vocab, &m->vocab, err));
    m->measure_only = options->measure_only;
    m->logger = options->backend.logger;
    ST_TRY(open_backend(l, err));
    ST_TRY(choose_compute(m, options->compute, err));
    m->encoder = st_calloc((size_t)m->h.n_audio_layer, sizeof *m->encoder);
    m->decoder = st_calloc((size_t)m->h.n_text_layer, sizeof *m->decoder);
    if (!m->encoder || !m->decoder)
        return st_fail_memory(err, sizeof *m->encoder * (size_t)m->h.n_audio_layer, "the list of layers");
    ST_TRY(st_load_what_fits(m->backend, options->backend.gpu_layers, st_whisper_layers(m), &m->logger, &m->store,
                             load_weights, try_session, l, err));
    if (!m->measure_only)
        m->file = st_weights_retain_file(&l->weights);
    return SOTTO_OK;
}

sotto_status st_whisper_model_load(const sotto_model_file *file, const sotto_whisper_model_options *options,
                                   sotto_whisper_model **out, sotto_error *err)
{
    const double start = st_time_now();
    loader l = {.file = file, .options = options, .m = st_calloc(1, sizeof *l.m)};
    l.weights = (st_weights){.file = file, .resident = resident_dtype, .user = &l};
    *out = NULL;
    if (!l.m)
        return st_fail_memory(err, sizeof *l.m, "a model");
    const sotto_status status = load(&l, err);
    st_weights_free(&l.weights);
    if (status != SOTTO_OK) {
        sotto_whisper_model_free(l.m);
        return status;
    }
    l.m->load_seconds = st_time_now() - start;
    *out = l.m;
    return SOTTO_OK;
}

void sotto_whisper_model_free(sotto_whisper_model *model)
{
    if (!model)
        return;
    st_vocab_free(model->vocab);
    sotto_store_free(model->store);
    sotto_model_file_free(model->file);
    sotto_backend_free(model->backend);
    st_free(model->encoder);
    st_free(model->decoder);
    st_free(model);
}

uint64_t st_whisper_step_bytes(const sotto_whisper_model *m)
{
    uint64_t bytes = sotto_tensor_bytes(m->embedding);
    for (int i = 0; i < m->h.n_text_layer; i++) {
        const st_layer_weights *w = &m->decoder[i];
        const sotto_tensor *const read[] = {w->self.qkv_w,  w->self.out_w, w->cross.q_w,
                                            w->cross.out_w, w->mlp.up_w,   w->mlp.down_w};
        for (size_t k = 0; k < sizeof read / sizeof *read; k++)
            bytes += sotto_tensor_bytes(read[k]);
    }
    return bytes;
}
