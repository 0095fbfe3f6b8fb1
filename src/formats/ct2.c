/* ct2.c: CTranslate2's model.bin with its vocabulary, "WhisperSpec". Attention projections of one input are stored as one
 * matrix; they are given as separate tensors that point at its rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "formats/json_file.h"
#include "formats/model_file_impl.h"
#include "formats/token_files.h"

enum { MIN_VERSION = 3, MAX_VERSION = 6, MAX_LAYERS = 1024, MAX_NAME = 128, LEAST_VARIABLE = 9 };

typedef struct variable {
    const char *name;
    int type; /* of CTranslate2 */
    int rank;
    int64_t dim[SOTTO_MAX_DIMS]; /* outermost first */
    const uint8_t *data;
    size_t bytes;
} variable;

typedef struct ct2 {
    sotto_model_file *file;
    variable *list; /* sorted by name */
    int64_t n, cap;
} ct2;

enum { TYPE_I8 = 1, TYPE_I16 = 2 };

static const struct {
    const char *name;
    size_t bytes;
    int dtype; /* -1: no tensor of it is read */
} types[] = {
    {"float32", 4, SOTTO_F32}, {"int8", 1, SOTTO_I8},     {"int16", 2, -1},
    {"int32", 4, SOTTO_I32},   {"float16", 2, SOTTO_F16}, {"bfloat16", 2, SOTTO_BF16},
};
enum { N_TYPES = sizeof types / sizeof *types };

/* ---- the file ---- */

/* A text with its length (which counts the final zero) before it; NULL when it is cut short or has no final zero. */
static const char *take_text(st_bytes *b)
{
    const uint16_t n = st_bytes_u16(b);
    const char *text = n > 0 ? st_bytes_take(b, n) : NULL;
    if (!text || memchr(text, 0, n) != text + n - 1) {
        b->failed = true;
        return NULL;
    }
    return text;
}

static bool probe(const uint8_t *data, size_t size)
{
    st_bytes b = st_bytes_over(data, size);
    const uint32_t version = st_bytes_u32(&b);
    const char *spec = take_text(&b);
    return version >= 1 && version < 256 && spec && strstr(spec, "Spec");
}

static sotto_status cut_short(const st_bytes *b, const char *what, sotto_error *err)
{
    return st_fail(err, SOTTO_E_FORMAT, "ends inside %s, after %zu bytes", what, b->size);
}

static sotto_status read_variable(st_bytes *b, uint32_t version, variable *v, sotto_error *err)
{
    v->name = take_text(b);
    if (!v->name)
        return cut_short(b, "the name of a variable", err);
    v->rank = st_bytes_u8(b);
    if (v->rank > SOTTO_MAX_DIMS)
        return st_fail(err, SOTTO_E_FORMAT, "%.100s: %d dimensions, expected at most %d", v->name, v->rank,
                       (int)SOTTO_MAX_DIMS);
    size_t count = 1;
    for (int i = 0; i < v->rank; i++) {
        v->dim[i] = st_bytes_u32(b);
        if (!st_mul_size(count, (size_t)v->dim[i], &count))
            return st_fail(err, SOTTO_E_FORMAT, "%.100s: its dimensions are too large", v->name);
    }
    /* Version 3 has the width of an element instead of its type and the number of elements instead of bytes. */
    const int type = st_bytes_u8(b);
    size_t bytes = st_bytes_u32(b);
    v->type = version >= 4 ? type : type == 4 ? 0 : type == 2 ? TYPE_I16 : type == 1 ? TYPE_I8 : -1;
    if (b->failed)
        return cut_short(b, v->name, err);
    if (v->type < 0 || v->type >= N_TYPES)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%.100s: %s %d is not known", v->name,
                       version >= 4 ? "element type" : "element width", type);
    size_t expected;
    if (!st_mul_size(count, types[v->type].bytes, &expected) ||
        (version < 4 && !st_mul_size(bytes, types[v->type].bytes, &bytes)) || bytes != expected)
        return st_fail(err, SOTTO_E_FORMAT, "%.100s: %zu bytes, expected %zu elements of %s", v->name, bytes, count,
                       types[v->type].name);
    v->bytes = bytes;
    v->data = st_bytes_take(b, bytes);
    return v->data ? SOTTO_OK : cut_short(b, v->name, err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const variable *)a)->name, ((const variable *)b)->name);
}

static const variable *find(const ct2 *c, const char *name)
{
    const variable key = {.name = name};
    return c->n > 0 ? bsearch(&key, c->list, (size_t)c->n, sizeof key, by_name) : NULL;
}

/* The names we look for are those of variables; an alias (the output projection of the embedding) is only skipped. */
static sotto_status skip_aliases(st_bytes *b, sotto_error *err)
{
    const uint32_t n = st_bytes_u32(b);
    for (uint64_t i = 0; i < 2 * (uint64_t)n && !b->failed; i++)
        (void)take_text(b);
    return b->failed ? cut_short(b, "the list of aliases", err) : SOTTO_OK;
}

static sotto_status read_variables(ct2 *c, const uint8_t *data, size_t size, sotto_error *err)
{
    st_bytes b = st_bytes_over(data, size);
    const uint32_t version = st_bytes_u32(&b);
    const char *spec = take_text(&b);
    (void)st_bytes_u32(&b); /* revision of the specification: the names and shapes tell more */
    const uint32_t n = st_bytes_u32(&b);
    if (!spec || b.failed)
        return cut_short(&b, "the header", err);
    if (version < MIN_VERSION || version > MAX_VERSION)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "version %u of CTranslate2's format, expected %d to %d",
                       (unsigned)version, (int)MIN_VERSION, (int)MAX_VERSION);
    if (strcmp(spec, "WhisperSpec") != 0)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "a CTranslate2 model of \"%.60s\", expected \"WhisperSpec\"", spec);
    if (n > st_bytes_left(&b) / LEAST_VARIABLE)
        return st_fail(err, SOTTO_E_FORMAT, "%u variables, but only %zu bytes are left", (unsigned)n, st_bytes_left(&b));
    for (uint32_t i = 0; i < n; i++) {
        if (!st_grow(&c->list, &c->cap, c->n + 1, sizeof *c->list))
            return st_fail_memory(err, (uint64_t)(c->n + 1) * sizeof *c->list, "the list of variables");
        ST_TRY(read_variable(&b, version, &c->list[c->n], err));
        c->n++;
    }
    if (c->n > 1)
        qsort(c->list, (size_t)c->n, sizeof *c->list, by_name);
    for (int64_t i = 1; i < c->n; i++)
        if (strcmp(c->list[i - 1].name, c->list[i].name) == 0)
            return st_fail(err, SOTTO_E_FORMAT, "variable \"%.100s\" is there twice", c->list[i].name);
    return skip_aliases(&b, err);
}

/* ---- tensors ---- */

static sotto_status need(const ct2 *c, const char *name, const variable **out, sotto_error *err)
{
    *out = find(c, name);
    return *out ? SOTTO_OK : st_fail(err, SOTTO_E_FORMAT, "%s: missing", name);
}

/* Factors to multiply with, from the stored ones to divide by. */
static sotto_status row_scales(ct2 *c, const variable *v, const float **out, sotto_error *err)
{
    char name[MAX_NAME];
    snprintf(name, sizeof name, "%s_scale", v->name);
    const variable *s;
    ST_TRY(need(c, name, &s, err));
    if (s->type != 0 || s->bytes != (size_t)v->dim[0] * 4)
        return st_fail(err, SOTTO_E_FORMAT, "%s: %zu bytes of %s, expected %lld float32", name, s->bytes,
                       types[s->type].name, (long long)v->dim[0]);
    float *scale = st_model_array(c->file, v->dim[0], sizeof *scale, name, err);
    if (!scale)
        return SOTTO_E_MEMORY;
    memcpy(scale, s->data, s->bytes);
    for (int64_t i = 0; i < v->dim[0]; i++) {
        if (!(scale[i] > 0) || isinf(scale[i]))
            return st_fail(err, SOTTO_E_FORMAT, "%s: row %lld is %g, expected above 0", name, (long long)i,
                           (double)scale[i]);
        scale[i] = (float)(1.0 / (double)scale[i]);
    }
    *out = scale;
    return SOTTO_OK;
}

/* Convolutions as integers (few weights) are given as f32, because a scale covers a whole output channel. */
static sotto_status expand_conv(ct2 *c, sotto_model_tensor *t, const float *scale, sotto_error *err)
{
    const int64_t per_channel = t->dim[0] * t->dim[1];
    float *values = st_model_array(c->file, per_channel * t->dim[2], sizeof *values, t->name, err);
    if (!values)
        return SOTTO_E_MEMORY;
    for (int64_t o = 0; o < t->dim[2]; o++)
        for (int64_t i = 0; i < per_channel; i++)
            values[o * per_channel + i] = (float)((const int8_t *)t->data)[o * per_channel + i] * scale[o];
    t->data = values;
    t->bytes *= sizeof *values;
    t->dtype = SOTTO_F32;
    return SOTTO_OK;
}

/* Gives `v` as n_parts tensors of equal numbers of rows; a NULL name leaves that part out. */
static sotto_status add_parts(ct2 *c, const variable *v, int n_parts, const char *const *names, sotto_error *err)
{
    if (types[v->type].dtype < 0)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%s: weights of type %s are not supported", v->name,
                       types[v->type].name);
    if (v->rank < 1 || v->dim[0] % n_parts != 0)
        return st_fail(err, SOTTO_E_FORMAT, "%s: %lld rows, expected a multiple of %d", v->name,
                       (long long)(v->rank < 1 ? 1 : v->dim[0]), n_parts);
    const float *scale = NULL;
    if (v->type == TYPE_I8)
        ST_TRY(row_scales(c, v, &scale, err));
    const int64_t rows = v->dim[0] / n_parts;
    sotto_model_tensor t = {.dtype = (sotto_dtype)types[v->type].dtype, .n_dims = v->rank};
    for (int i = 0; i < v->rank; i++)
        t.dim[v->rank - 1 - i] = i == 0 ? rows : v->dim[i];
    t.bytes = st_tensor_bytes(&t, t.dtype);
    if (t.bytes == 0)
        return st_fail(err, SOTTO_E_FORMAT, "%s: a dimension is 0", v->name);
    const size_t bytes = t.bytes;
    for (int i = 0; i < n_parts; i++) {
        if (!names[i])
            continue;
        sotto_model_tensor one = t;
        one.name = names[i];
        one.data = v->data + (size_t)i * bytes;
        one.row_scale = scale ? scale + i * rows : NULL;
        if (scale && v->rank == 3) {
            one.row_scale = NULL;
            ST_TRY(expand_conv(c, &one, scale + i * rows, err));
        }
        ST_TRY(st_model_add_tensor(c->file, &one, err));
    }
    return SOTTO_OK;
}

typedef struct module {
    const char *name;    /* of CTranslate2, behind the prefix */
    const char *leaf[2]; /* "weight" "bias", or "gamma" "beta" of a norm */
    int n_parts;
    const char *part[3];
    bool decoder_only;
} module;

#define LINEAR           \
    {                    \
        "weight", "bias" \
    }
#define NORM            \
    {                   \
        "gamma", "beta" \
    }

static const module layer_modules[] = {
    {"self_attention/layer_norm", NORM, 1, {"attn_ln"}, false},
    {"self_attention/linear_0", LINEAR, 3, {"attn.query", "attn.key", "attn.value"}, false},
    {"self_attention/linear_1", LINEAR, 1, {"attn.out"}, false},
    {"attention/layer_norm", NORM, 1, {"cross_attn_ln"}, true},
    {"attention/linear_0", LINEAR, 1, {"cross_attn.query"}, true},
    {"attention/linear_1", LINEAR, 2, {"cross_attn.key", "cross_attn.value"}, true},
    {"attention/linear_2", LINEAR, 1, {"cross_attn.out"}, true},
    {"ffn/layer_norm", NORM, 1, {"mlp_ln"}, false},
    {"ffn/linear_0", LINEAR, 1, {"mlp.0"}, false},
    {"ffn/linear_1", LINEAR, 1, {"mlp.2"}, false},
};

static const module plain_modules[] = {
    {"encoder/conv1", LINEAR, 1, {"encoder.conv1"}, false},
    {"encoder/conv2", LINEAR, 1, {"encoder.conv2"}, false},
    {"encoder/layer_norm", NORM, 1, {"encoder.ln_post"}, false},
    {"decoder/layer_norm", NORM, 1, {"decoder.ln"}, false},
};

static const char *const plain_variables[][2] = {
    {"encoder/position_encodings/encodings", "encoder.positional_embedding"},
    {"decoder/position_encodings/encodings", "decoder.positional_embedding"},
    {"decoder/embeddings/weight", "decoder.token_embedding.weight"},
};

/* The original has no bias for keys; here it is zeros. */
static sotto_status add_module(ct2 *c, const char *from, const char *to, const module *m, sotto_error *err)
{
    for (int leaf = 0; leaf < 2; leaf++) {
        char name[MAX_NAME], part[3][MAX_NAME];
        const char *parts[3] = {NULL};
        snprintf(name, sizeof name, "%s%s/%s", from, m->name, m->leaf[leaf]);
        for (int i = 0; i < m->n_parts; i++) {
            snprintf(part[i], MAX_NAME, "%s%s.%s", to, m->part[i], leaf ? "bias" : "weight");
            const bool key_bias = leaf && m->n_parts > 1 && strstr(m->part[i], ".key");
            parts[i] = key_bias ? NULL : part[i];
        }
        const variable *v;
        ST_TRY(need(c, name, &v, err));
        ST_TRY(add_parts(c, v, m->n_parts, parts, err));
    }
    return SOTTO_OK;
}

static sotto_status add_layers(ct2 *c, const char *side, int *n_layers, sotto_error *err)
{
    const bool decoder = side[0] == 'd';
    for (int layer = 0; layer < MAX_LAYERS; layer++) {
        char from[48], to[48], first[MAX_NAME];
        snprintf(from, sizeof from, "%s/layer_%d/", side, layer);
        snprintf(to, sizeof to, "%s.blocks.%d.", side, layer);
        snprintf(first, sizeof first, "%sself_attention/layer_norm/gamma", from);
        *n_layers = layer;
        if (!find(c, first))
            return SOTTO_OK;
        for (size_t i = 0; i < sizeof layer_modules / sizeof *layer_modules; i++)
            if (decoder || !layer_modules[i].decoder_only)
                ST_TRY(add_module(c, from, to, &layer_modules[i], err));
    }
    return st_fail(err, SOTTO_E_FORMAT, "%s: more than %d layers", side, (int)MAX_LAYERS);
}

/* ---- metadata ---- */

static sotto_status put_dim(ct2 *c, const char *key, const char *name, int axis, sotto_error *err)
{
    const variable *v;
    ST_TRY(need(c, name, &v, err));
    if (axis >= v->rank)
        return st_fail(err, SOTTO_E_FORMAT, "%s: %d dimensions, expected more than %d", name, v->rank, axis);
    return st_model_put_int(c->file, key, v->dim[axis], err);
}

static sotto_status put_heads(ct2 *c, const char *key, const char *name, sotto_error *err)
{
    const variable *v;
    ST_TRY(need(c, name, &v, err));
    int64_t heads = 0;
    for (size_t i = v->bytes; i > 0; i--)
        heads = heads << 8 | v->data[i - 1];
    if (v->rank != 0 || v->bytes > 4)
        return st_fail(err, SOTTO_E_FORMAT, "%s: expected one whole number", name);
    return st_model_put_int(c->file, key, heads, err);
}

static sotto_status put_metadata(ct2 *c, int encoder_layers, int decoder_layers, sotto_error *err)
{
    sotto_model_file *f = c->file;
    ST_TRY(st_model_put_text(f, "general.architecture", "whisper", err));
    ST_TRY(put_dim(c, "whisper.n_vocab", "decoder/embeddings/weight", 0, err));
    ST_TRY(put_dim(c, "whisper.n_audio_ctx", "encoder/position_encodings/encodings", 0, err));
    ST_TRY(put_dim(c, "whisper.n_audio_state", "encoder/position_encodings/encodings", 1, err));
    ST_TRY(put_heads(c, "whisper.n_audio_head", "encoder/num_heads", err));
    ST_TRY(st_model_put_int(f, "whisper.n_audio_layer", encoder_layers, err));
    ST_TRY(put_dim(c, "whisper.n_text_ctx", "decoder/position_encodings/encodings", 0, err));
    ST_TRY(put_dim(c, "whisper.n_text_state", "decoder/embeddings/weight", 1, err));
    ST_TRY(put_heads(c, "whisper.n_text_head", "decoder/num_heads", err));
    ST_TRY(st_model_put_int(f, "whisper.n_text_layer", decoder_layers, err));
    ST_TRY(put_dim(c, "whisper.n_mels", "encoder/conv1/weight", 1, err));
    bool found;
    ST_TRY(st_model_has_sibling(f, "config.json", &found, err));
    if (found) {
        json_t *config;
        ST_TRY(st_json_sibling(f, "config.json", &config, err));
        const sotto_status status = st_put_alignment_heads(f, json_object_get(config, "alignment_heads"), err);
        json_decref(config);
        ST_TRY(status);
    }
    return st_put_tokens(f, err);
}

static sotto_status read_model(ct2 *c, const uint8_t *data, size_t size, sotto_error *err)
{
    ST_TRY(read_variables(c, data, size, err));
    int n_layers[2];
    ST_TRY(add_layers(c, "encoder", &n_layers[0], err));
    ST_TRY(add_layers(c, "decoder", &n_layers[1], err));
    for (size_t i = 0; i < sizeof plain_modules / sizeof *plain_modules; i++)
        ST_TRY(add_module(c, "", "", &plain_modules[i], err));
    for (size_t i = 0; i < sizeof plain_variables / sizeof *plain_variables; i++) {
        const variable *v;
        ST_TRY(need(c, plain_variables[i][0], &v, err));
        ST_TRY(add_parts(c, v, 1, &plain_variables[i][1], err));
    }
    return put_metadata(c, n_layers[0], n_layers[1], err);
}

static sotto_status open_ct2(sotto_model_file *file, const uint8_t *data, size_t size, sotto_error *err)
{
    if (!file->folder)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "a CTranslate2 model is a folder and cannot be opened from memory");
    ct2 c = {.file = file};
    const sotto_status status = read_model(&c, data, size, err);
    st_free(c.list);
    return status;
}

const st_reader st_reader_ct2 = {"ctranslate2", probe, open_ct2, NULL};
