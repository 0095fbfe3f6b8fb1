/* model.c: from a model file to weights on a device. Every tensor of the model is one row of a list; the list is walked
 * once to declare (names, shapes and types are checked, sizes known) and once to upload. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/thread.h"
#include "formats/mel_filters.h"
#include "models/common/conv.h"
#include "models/whisper/model_impl.h"
#include "sotto/quant.h"

typedef enum weight_kind {
    WEIGHT_VECTOR, /* f32 [n], parts joined; a missing part is zeros */
    WEIGHT_TABLE,  /* f32 [rows, n] */
    WEIGHT_MATRIX, /* [rows, n] of the file's type, parts joined by rows */
    WEIGHT_CONV    /* file: [c_out, c_in, 3]; here: [c_out, 3 * c_in] with the kernel position outer */
} weight_kind;

enum { MAX_PARTS = 3, PART_NAME = 96 };

typedef struct weight {
    sotto_tensor **out;
    weight_kind kind;
    int device;
    int n_parts;
    char part[MAX_PARTS][PART_NAME];
    int64_t rows, n; /* of one part */
} weight;

typedef struct loader {
    const sotto_model_file *file;
    sotto_whisper_model *m;
    weight *list;
    int64_t count, cap;
    int device;      /* of the weights that are listed next */
    bool own_lookup; /* the embedding is in pieces, so a whole one is kept on the CPU */
    bool no_memory;
} loader;

static weight *add(loader *l, sotto_tensor **out, weight_kind kind, int64_t rows, int64_t n)
{
    if (l->no_memory || !st_grow(&l->list, &l->cap, l->count + 1, sizeof *l->list)) {
        l->no_memory = true;
        return NULL;
    }
    weight *w = &l->list[l->count++];
    memset(w, 0, sizeof *w);
    w->out = out;
    w->kind = kind;
    w->device = l->device;
    w->rows = rows;
    w->n = n;
    return w;
}

/* Names are far shorter than PART_NAME; one that is not becomes empty, and then a missing tensor. */
static void join(char out[PART_NAME], const char *a, const char *b)
{
    const int n = snprintf(out, PART_NAME, "%s%s", a, b);
    if (n < 0 || n >= PART_NAME)
        out[0] = 0;
}

static void part(weight *w, const char *prefix, const char *name)
{
    if (w)
        join(w->part[w->n_parts++], prefix, name);
}

static void add_one(loader *l, sotto_tensor **out, weight_kind kind, int64_t rows, int64_t n, const char *prefix,
                    const char *name)
{
    part(add(l, out, kind, rows, n), prefix, name);
}

/* weight [rows, n] and bias [rows] of one linear layer */
static void add_linear(loader *l, sotto_tensor **w, sotto_tensor **b, int64_t rows, int64_t n, const char *prefix,
                       const char *name)
{
    char full[PART_NAME];
    join(full, prefix, name);
    add_one(l, w, WEIGHT_MATRIX, rows, n, full, ".weight");
    add_one(l, b, WEIGHT_VECTOR, 1, rows, full, ".bias");
}

static void add_norm(loader *l, sotto_tensor **w, sotto_tensor **b, int64_t n, const char *prefix, const char *name)
{
    char full[PART_NAME];
    join(full, prefix, name);
    add_one(l, w, WEIGHT_VECTOR, 1, n, full, ".weight");
    add_one(l, b, WEIGHT_VECTOR, 1, n, full, ".bias");
}

static void add_fused(loader *l, sotto_tensor **w, sotto_tensor **b, int64_t d, const char *prefix,
                      const char *const *names, int n_names)
{
    weight *matrix = add(l, w, WEIGHT_MATRIX, d, d);
    for (int i = 0; i < n_names; i++) {
        char full[PART_NAME];
        join(full, prefix, names[i]);
        part(matrix, full, ".weight");
    }
    weight *bias = add(l, b, WEIGHT_VECTOR, 1, d);
    for (int i = 0; i < n_names; i++) {
        char full[PART_NAME];
        join(full, prefix, names[i]);
        part(bias, full, ".bias");
    }
}

/* What is listed next lives with layer i, counted from the encoder's first to the decoder's last. */
static void go_to_layer(loader *l, int i)
{
    l->device = sotto_backend_layer_device(l->m->backend, i, st_whisper_layers(l->m));
}

static void add_layers(loader *l, st_layer_weights *layers, int n_layers, int64_t d, const char *side, bool cross)
{
    static const char *const qkv[] = {"query", "key", "value"};
    for (int i = 0; i < n_layers; i++) {
        st_layer_weights *w = &layers[i];
        go_to_layer(l, cross ? l->m->h.n_audio_layer + i : i);
        char p[PART_NAME], q[PART_NAME];
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
    add_one(l, &m->conv1_w, WEIGHT_CONV, d, 3 * m->h.n_mels, "encoder.conv1", ".weight");
    add_one(l, &m->conv1_b, WEIGHT_VECTOR, 1, d, "encoder.conv1", ".bias");
    add_one(l, &m->conv2_w, WEIGHT_CONV, d, 3 * d, "encoder.conv2", ".weight");
    add_one(l, &m->conv2_b, WEIGHT_VECTOR, 1, d, "encoder.conv2", ".bias");
    add_one(l, &m->audio_pos, WEIGHT_TABLE, m->h.n_audio_ctx, d, "encoder", ".positional_embedding");
    add_layers(l, m->encoder, m->h.n_audio_layer, d, "encoder", false);
    add_norm(l, &m->encoder_ln_w, &m->encoder_ln_b, d, "encoder.", "ln_post");
    go_to_layer(l, st_whisper_layers(m) - 1);
    add_one(l, &m->embedding, WEIGHT_MATRIX, m->h.n_vocab, d, "decoder.token_embedding", ".weight");
    l->device = sotto_backend_device_count(m->backend) - 1;
    add_one(l, &m->lookup, WEIGHT_MATRIX, m->h.n_vocab, d, "decoder.token_embedding", ".weight");
    go_to_layer(l, m->h.n_audio_layer);
    add_one(l, &m->text_pos, WEIGHT_TABLE, m->h.n_text_ctx, d, "decoder", ".positional_embedding");
    add_layers(l, m->decoder, m->h.n_text_layer, d, "decoder", true);
    add_norm(l, &m->decoder_ln_w, &m->decoder_ln_b, d, "decoder.", "ln");
    if (l->no_memory)
        return st_fail_memory(err, (uint64_t)l->cap * sizeof *l->list, "the list of weights");
    return SOTTO_OK;
}

/* Products of all rows of a window: the encoder's, and the keys and values that the decoder's layers make of its output. */
static bool meets_many_rows(const weight *w)
{
    return strncmp(w->part[0], "encoder.", 8) == 0 || strstr(w->part[0], "cross_attn.key") != NULL;
}

/* The encoder's first block turns sounds into what all others refine: int8 there would cost more words than in the rest of
 * the network together, and bf16 lets one frame of a recording come out wrong (docs/quality.md). It gets one type better. */
static bool is_delicate(const weight *w)
{
    return strncmp(w->part[0], "encoder.blocks.0.", 17) == 0;
}

/* The type a matrix is kept in. In f32 it is the file's where the backends compute with it, else one that loses nothing
 * that matters: i8 with a scale a row has the integers of q8_0; K types are far coarser than f16. Otherwise it is the
 * compute type, but for blocks smaller than that in the decoder, where reading weights is the work. */
static sotto_dtype resident_dtype(const loader *l, const weight *w, sotto_dtype file)
{
    sotto_dtype compute = l->m->compute;
    if (is_delicate(w) && (compute == SOTTO_BF16 || (compute == SOTTO_I8 && file != SOTTO_I8)))
        compute = compute == SOTTO_BF16 ? SOTTO_F32 : SOTTO_BF16;
    if (compute == SOTTO_F16) { /* as in f32, but nothing is wider */
        compute = SOTTO_F32;
        file = file == SOTTO_F32 ? SOTTO_F16 : file;
    }
    if (w->kind == WEIGHT_CONV)
        return compute != SOTTO_F32 ? SOTTO_BF16 : file == SOTTO_F32 ? SOTTO_F32 : SOTTO_F16;
    if (file == SOTTO_IQ4_NL || sotto_dtype_block(file) > 32) /* not every device computes with these blocks */
        file = SOTTO_F16;
    const bool small_blocks = sotto_dtype_block(file) == 32 && file != SOTTO_Q8_0;
    if (compute != SOTTO_F32 && (meets_many_rows(w) || !small_blocks))
        return compute == SOTTO_BF16 && file == SOTTO_Q8_0 && !meets_many_rows(w) ? file : compute;
    if (file == SOTTO_I8)
        return w->n % 32 == 0 ? SOTTO_Q8_0 : SOTTO_F16;
    return sotto_dtype_can_pack(file) ? file : SOTTO_F16;
}

static bool key_bias(const char *name)
{
    return strstr(name, "attn.key.bias") != NULL;
}

static sotto_status find_part(const loader *l, const weight *w, int i, sotto_model_tensor *t, sotto_error *err)
{
    const char *name = w->part[i];
    ST_TRY(sotto_model_tensor_need(l->file, name, t, err));
    int64_t want[SOTTO_MAX_DIMS] = {w->n, w->rows, 1, 1};
    if (w->kind == WEIGHT_CONV) {
        want[0] = 3;
        want[1] = w->n / 3;
        want[2] = w->rows;
    }
    for (int a = 0; a < SOTTO_MAX_DIMS; a++) {
        const int64_t have = a < t->n_dims ? t->dim[a] : 1;
        if (have != want[a])
            return st_fail(err, SOTTO_E_FORMAT, "%s: dimension %d is %lld, expected %lld", name, a, (long long)have,
                           (long long)want[a]);
    }
    return SOTTO_OK;
}

static sotto_status declare(loader *l, const weight *w, sotto_error *err)
{
    sotto_dtype dtype = SOTTO_F32;
    for (int i = 0; i < w->n_parts; i++) {
        sotto_model_tensor t;
        if (w->kind == WEIGHT_VECTOR && key_bias(w->part[i]) &&
            sotto_model_tensor_find(l->file, w->part[i], &t) != SOTTO_OK)
            continue;
        ST_TRY(find_part(l, w, i, &t, err));
        if (w->kind == WEIGHT_VECTOR || w->kind == WEIGHT_TABLE)
            continue;
        const sotto_dtype d = resident_dtype(l, w, t.dtype);
        if (i == 0)
            dtype = d;
        else if (dtype != d)
            dtype = SOTTO_F32; /* parts of different types: the one that holds any of them exactly */
    }
    const bool vector = w->kind == WEIGHT_VECTOR;
    const int64_t dim[2] = {vector ? w->n * w->n_parts : w->n, w->rows * w->n_parts};
    const bool matrix = w->kind == WEIGHT_MATRIX || w->kind == WEIGHT_CONV;
    if (w->out == &l->m->embedding) {
        sotto_store_set_device(l->m->store, w->device);
        l->own_lookup = sotto_store_would_split(l->m->store, dtype, 2, dim);
    }
    if (w->out == &l->m->lookup && !l->own_lookup) {
        *w->out = l->m->embedding;
        return SOTTO_OK;
    }
    sotto_store_set_device(l->m->store, w->device);
    *w->out = sotto_store_add(l->m->store, w->part[0], dtype, vector ? 1 : 2, dim, matrix);
    return SOTTO_OK;
}

/* i8 with row scales as q8_0: the integers as they are, the row's scale (rounded to f16) in each block. */
static void i8_rows_to_q8_0(const sotto_model_tensor *t, int64_t row, int64_t n_rows, uint8_t *out)
{
    const int64_t n = t->dim[0];
    for (int64_t r = row; r < row + n_rows; r++) {
        const int8_t *q = (const int8_t *)t->data + r * n;
        uint16_t scale;
        (void)sotto_row_from_f32(SOTTO_F16, &t->row_scale[r], &scale, 1);
        for (int64_t b = 0; b < n / 32; b++, out += 34) {
            memcpy(out, &scale, 2);
            memcpy(out + 2, q + b * 32, 32);
        }
    }
}

/* Rows go through a bounded scratch when they need converting; else straight from the mapped file. */
static sotto_status upload_matrix_part(loader *l, const weight *w, int i, float *scratch, int64_t scratch_floats,
                                       sotto_error *err)
{
    sotto_model_tensor t;
    ST_TRY(find_part(l, w, i, &t, err));
    sotto_tensor *to = *w->out;
    const int64_t row0 = (int64_t)i * w->rows;
    const bool as_it_is =
        t.dtype == sotto_tensor_dtype(to) || (sotto_tensor_dtype(to) == SOTTO_I8 && sotto_dtype_can_pack(t.dtype));
    if (w->kind == WEIGHT_MATRIX && as_it_is && t.dtype != SOTTO_I8)
        return sotto_store_upload(l->m->store, to, row0, w->rows, t.dtype, t.data, err);
    if (w->kind == WEIGHT_CONV) {
        t.dim[0] = w->n;
        t.dim[1] = w->rows;
        t.dim[2] = 1;
        t.n_dims = 2;
    }
    const int64_t step = scratch_floats / w->n - 1;
    for (int64_t r = 0; r < w->rows; r += step) {
        const int64_t n_rows = w->rows - r < step ? w->rows - r : step;
        if (t.dtype == SOTTO_I8 && sotto_tensor_dtype(to) == SOTTO_Q8_0) {
            i8_rows_to_q8_0(&t, r, n_rows, (uint8_t *)scratch);
            ST_TRY(sotto_store_upload(l->m->store, to, row0 + r, n_rows, SOTTO_Q8_0, scratch, err));
            continue;
        }
        ST_TRY(sotto_model_tensor_f32(&t, r, n_rows, scratch, err));
        if (w->kind == WEIGHT_CONV)
            st_conv_kernel_outer(scratch, n_rows, w->n / 3, 3, scratch + n_rows * w->n);
        ST_TRY(sotto_store_upload(l->m->store, to, row0 + r, n_rows, SOTTO_F32, scratch, err));
    }
    return SOTTO_OK;
}

static sotto_status upload(loader *l, const weight *w, float *scratch, int64_t scratch_floats, sotto_error *err)
{
    sotto_model_tensor t;
    if (w->out == &l->m->lookup && !l->own_lookup)
        return SOTTO_OK;
    if (w->kind == WEIGHT_MATRIX || w->kind == WEIGHT_CONV) {
        for (int i = 0; i < w->n_parts; i++) {
            ST_TRY(upload_matrix_part(l, w, i, scratch, scratch_floats, err));
            if (sotto_model_tensor_find(l->file, w->part[i], &t) == SOTTO_OK)
                sotto_model_tensor_release(l->file, &t);
        }
        return SOTTO_OK;
    }
    const int64_t rows = w->rows, n = w->n;
    memset(scratch, 0, (size_t)(rows * n * w->n_parts) * sizeof *scratch);
    for (int i = 0; i < w->n_parts; i++)
        if (sotto_model_tensor_find(l->file, w->part[i], &t) == SOTTO_OK)
            ST_TRY(sotto_model_tensor_f32(&t, 0, rows, scratch + i * rows * n, err));
    return sotto_store_upload(l->m->store, *w->out, 0, rows, SOTTO_F32, scratch, err);
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

static sotto_status load_weights(loader *l, sotto_error *err)
{
    sotto_whisper_model *m = l->m;
    l->count = 0;
    ST_TRY(list_weights(l, err));
    ST_TRY(sotto_store_create(m->backend, SOTTO_USAGE_WEIGHTS, &m->store, err));
    declare_front_end(m);
    int64_t widest = 2 * ST_N_BINS * ST_N_FFT;
    for (int64_t i = 0; i < l->count; i++) {
        const weight *w = &l->list[i];
        ST_TRY(declare(l, w, err));
        const bool whole = w->kind == WEIGHT_VECTOR || w->kind == WEIGHT_TABLE;
        const int64_t need = whole ? w->rows * w->n * w->n_parts : 16 * w->n;
        widest = need > widest ? need : widest;
    }
    if (m->measure_only)
        return SOTTO_OK;
    ST_TRY(sotto_store_allocate(m->store, err));
    float *scratch = st_alloc((size_t)widest, sizeof *scratch);
    if (!scratch)
        return st_fail_memory(err, (uint64_t)widest * sizeof *scratch, "loading weights");
    sotto_status status = upload_front_end(l, scratch, err);
    for (int64_t i = 0; i < l->count && status == SOTTO_OK; i++)
        status = upload(l, &l->list[i], scratch, widest, err);
    st_free(scratch);
    return status;
}

static sotto_status choose_compute(sotto_whisper_model *m, const char *name, sotto_error *err)
{
    static const struct {
        const char *name;
        sotto_dtype dtype;
    } types[] = {{"f32", SOTTO_F32}, {"f16", SOTTO_F16}, {"bf16", SOTTO_BF16}, {"int8", SOTTO_I8}};
    m->compute = sotto_backend_preferred_weights(m->backend);
    if (!name || strcmp(name, "auto") == 0)
        return SOTTO_OK;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(name, types[i].name) == 0) {
            m->compute = types[i].dtype;
            return SOTTO_OK;
        }
    return st_fail(err, SOTTO_E_ARGUMENT, "compute type \"%s\" is unknown, expected auto, f32, f16, bf16 or int8", name);
}

/* When the library chose the device and its memory does not do, fewer layers go there, in the end none. */
static sotto_status load_what_fits(loader *l, const sotto_whisper_model_options *options, sotto_error *err)
{
    sotto_whisper_model *m = l->m;
    const int all = st_whisper_layers(m);
    int layers = options->backend.gpu_layers;
    layers = layers == SOTTO_LAYERS_ALL || layers > all ? all : layers;
    for (;;) {
        const sotto_status status = load_weights(l, err);
        const bool may = sotto_backend_is_auto(m->backend) && sotto_backend_device_count(m->backend) > 1;
        if (status != SOTTO_E_MEMORY || !may || layers < 0)
            return status;
        layers = layers > 1 ? layers * 3 / 4 : SOTTO_LAYERS_NONE;
        if (layers > 0)
            st_log(&options->backend.logger, SOTTO_LOG_WARNING, "%s: trying %d of %d layers on the device",
                   err ? err->text : "no memory", layers, all);
        else
            st_log(&options->backend.logger, SOTTO_LOG_WARNING, "%s: computing on the CPU",
                   err ? err->text : "no memory");
        sotto_store_free(m->store);
        m->store = NULL;
        sotto_backend_set_layers(m->backend, layers);
    }
}

static sotto_status load(loader *l, const sotto_whisper_model_options *options, sotto_error *err)
{
    sotto_whisper_model *m = l->m;
    ST_TRY(st_hparams_read(l->file, &m->h, err));
    snprintf(m->format, sizeof m->format, "%s", sotto_model_file_format(l->file));
    ST_TRY(st_vocab_create(l->file, m->h.n_vocab, &m->vocab, err));
    m->measure_only = options->measure_only;
    m->logger = options->backend.logger;
    ST_TRY(sotto_backend_open(&options->backend, &m->backend, err));
    ST_TRY(choose_compute(m, options->compute, err));
    m->encoder = st_calloc((size_t)m->h.n_audio_layer, sizeof *m->encoder);
    m->decoder = st_calloc((size_t)m->h.n_text_layer, sizeof *m->decoder);
    if (!m->encoder || !m->decoder)
        return st_fail_memory(err, sizeof *m->encoder * (size_t)m->h.n_audio_layer, "the list of layers");
    return load_what_fits(l, options, err);
}

sotto_status st_whisper_model_load(const sotto_model_file *file, const sotto_whisper_model_options *options,
                                   sotto_whisper_model **out, sotto_error *err)
{
    const double start = st_time_now();
    loader l = {.file = file, .m = st_calloc(1, sizeof *l.m)};
    *out = NULL;
    if (!l.m)
        return st_fail_memory(err, sizeof *l.m, "a model");
    const sotto_status status = load(&l, options, err);
    st_free(l.list);
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
    sotto_backend_free(model->backend);
    st_free(model->encoder);
    st_free(model->decoder);
    st_free(model);
}
