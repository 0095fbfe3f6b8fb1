/* safetensors.c: Hugging Face folders. One file of weights, or an index and several; config.json gives the sizes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "formats/hf_names.h"
#include "formats/json_file.h"
#include "formats/model_file_impl.h"
#include "formats/token_files.h"

enum { MAX_NAME = 512, MAX_HEADER = 100 << 20 };

/* ---- one file ---- */

typedef struct extent {
    size_t start, end;
    const char *name;
} extent;

typedef struct shard {
    sotto_model_file *file;
    const uint8_t *data; /* behind the header */
    size_t size;
    extent *where;
    int64_t n;
} shard;

static const struct {
    const char *name;
    sotto_dtype dtype;
} types[] = {{"F32", SOTTO_F32}, {"F16", SOTTO_F16}, {"BF16", SOTTO_BF16}, {"I8", SOTTO_I8}, {"I32", SOTTO_I32}};

static bool probe(const uint8_t *data, size_t size)
{
    st_bytes b = st_bytes_over(data, size);
    const uint64_t n = st_bytes_u64(&b);
    return size > 8 && n >= 2 && n <= MAX_HEADER && data[8] == '{';
}

static bool find_type(const json_t *name, sotto_dtype *out)
{
    for (size_t i = 0; json_is_string(name) && i < sizeof types / sizeof *types; i++)
        if (strcmp(json_string_value(name), types[i].name) == 0) {
            *out = types[i].dtype;
            return true;
        }
    return false;
}

static sotto_status read_shape(const char *name, const json_t *shape, sotto_model_tensor *t, sotto_error *err)
{
    const size_t rank = json_array_size(shape);
    if (!json_is_array(shape) || rank > SOTTO_MAX_DIMS)
        return st_fail(err, SOTTO_E_FORMAT, "%.100s: shape: expected an array of at most %d sizes", name,
                       (int)SOTTO_MAX_DIMS);
    t->n_dims = (int)rank;
    for (size_t i = 0; i < rank; i++) {
        const json_t *size = json_array_get(shape, i);
        if (!json_is_integer(size))
            return st_fail(err, SOTTO_E_FORMAT, "%.100s: shape: expected whole numbers", name);
        t->dim[rank - 1 - i] = json_integer_value(size);
    }
    return SOTTO_OK;
}

/* Where the bytes are; false when it is no pair of offsets inside the file. */
static bool read_offsets(const shard *s, const json_t *offsets, extent *out)
{
    const json_t *start = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(start) || !json_is_integer(end))
        return false;
    const json_int_t a = json_integer_value(start), b = json_integer_value(end);
    if (a < 0 || b < a || (uint64_t)b > s->size)
        return false;
    out->start = (size_t)a;
    out->end = (size_t)b;
    return true;
}

static sotto_status read_tensor(shard *s, const char *name, const json_t *about, sotto_error *err)
{
    extent *where = &s->where[s->n];
    where->name = name;
    if (!read_offsets(s, json_object_get(about, "data_offsets"), where))
        return st_fail(err, SOTTO_E_FORMAT,
                       "%.100s: data_offsets: expected a start and an end within the %zu bytes of the file", name,
                       s->size);
    s->n++;
    char original[MAX_NAME];
    sotto_model_tensor t = {.name = original};
    const bool known = st_hf_name(name, original, sizeof original);
    const json_t *type = json_object_get(about, "dtype");
    if (!find_type(type, &t.dtype)) {
        if (!known) /* masks and counters of other models */
            return SOTTO_OK;
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%.100s: dtype \"%.20s\" is not supported", name,
                       json_is_string(type) ? json_string_value(type) : "");
    }
    ST_TRY(read_shape(name, json_object_get(about, "shape"), &t, err));
    if (!known && (where->end == where->start || strcmp(name, "proj_out.weight") == 0)) /* the embedding once more */
        return SOTTO_OK;
    ST_TRY(st_check_tensor(&t, &t.bytes, err));
    if (t.bytes != where->end - where->start)
        return st_fail(err, SOTTO_E_FORMAT, "%.100s: data_offsets: %zu bytes, expected %zu", name,
                       where->end - where->start, t.bytes);
    t.data = s->data + where->start;
    return st_model_add_tensor(s->file, &t, err);
}

static int by_start(const void *a, const void *b)
{
    const extent *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static sotto_status read_header(shard *s, const json_t *header, sotto_error *err)
{
    const char *name;
    json_t *about;
    json_object_foreach((json_t *)(uintptr_t)header, name, about) if (strcmp(name, "__metadata__") != 0)
        ST_TRY(read_tensor(s, name, about, err));
    if (s->n > 1)
        qsort(s->where, (size_t)s->n, sizeof *s->where, by_start);
    for (int64_t i = 1; i < s->n; i++)
        if (s->where[i].start < s->where[i - 1].end)
            return st_fail(err, SOTTO_E_FORMAT, "%.100s and %.100s overlap", s->where[i - 1].name, s->where[i].name);
    return SOTTO_OK;
}

static sotto_status read_shard(sotto_model_file *file, const uint8_t *data, size_t size, sotto_error *err)
{
    st_bytes b = st_bytes_over(data, size);
    const uint64_t n = st_bytes_u64(&b);
    if (b.failed || n > st_bytes_left(&b) || n > MAX_HEADER)
        return st_fail(err, SOTTO_E_FORMAT, "a header of %llu bytes in a file of %zu, expected at most %d",
                       (unsigned long long)n, size, (int)MAX_HEADER);
    json_t *header;
    ST_TRY(st_json_bytes("the header", st_bytes_take(&b, (size_t)n), (size_t)n, &header, err));
    shard s = {.file = file, .data = data + b.at, .size = st_bytes_left(&b)};
    s.where = st_alloc(json_object_size(header) + 1, sizeof *s.where);
    sotto_status status = s.where ? read_header(&s, header, err) : st_fail_memory(err, n, "the list of tensors");
    st_free(s.where);
    json_decref(header);
    return status;
}

/* ---- the files beside it ---- */

static const char *const config_keys[][2] = {
    {"whisper.n_vocab", "vocab_size"},           {"whisper.n_audio_ctx", "max_source_positions"},
    {"whisper.n_audio_state", "d_model"},        {"whisper.n_audio_head", "encoder_attention_heads"},
    {"whisper.n_audio_layer", "encoder_layers"}, {"whisper.n_text_ctx", "max_target_positions"},
    {"whisper.n_text_state", "d_model"},         {"whisper.n_text_head", "decoder_attention_heads"},
    {"whisper.n_text_layer", "decoder_layers"},  {"whisper.n_mels", "num_mel_bins"},
};

static sotto_status put_config(sotto_model_file *file, const json_t *config, bool *whisper, sotto_error *err)
{
    const json_t *type = json_object_get(config, "model_type");
    if (!json_is_string(type))
        return st_fail(err, SOTTO_E_FORMAT, "config.json: model_type: expected a text");
    const char *name = st_arena_strdup(file->arena, json_string_value(type), json_string_length(type));
    if (!name)
        return st_fail_memory(err, json_string_length(type), "config.json");
    *whisper = strcmp(name, "whisper") == 0;
    ST_TRY(st_model_put_text(file, "general.architecture", name, err));
    for (size_t i = 0; *whisper && i < sizeof config_keys / sizeof *config_keys; i++) {
        const json_t *value = json_object_get(config, config_keys[i][1]);
        if (!json_is_integer(value))
            return st_fail(err, SOTTO_E_FORMAT, "config.json: %s: expected a whole number", config_keys[i][1]);
        ST_TRY(st_model_put_int(file, config_keys[i][0], json_integer_value(value), err));
    }
    return SOTTO_OK;
}

static sotto_status put_generation(sotto_model_file *file, sotto_error *err)
{
    bool found;
    ST_TRY(st_model_has_sibling(file, "generation_config.json", &found, err));
    if (!found)
        return SOTTO_OK;
    json_t *generation;
    ST_TRY(st_json_sibling(file, "generation_config.json", &generation, err));
    const sotto_status status = st_put_alignment_heads(file, json_object_get(generation, "alignment_heads"), err);
    json_decref(generation);
    return status;
}

/* Without config.json (a file in memory) tensors are all there is. */
static sotto_status put_metadata(sotto_model_file *file, sotto_error *err)
{
    bool found;
    ST_TRY(st_model_has_sibling(file, "config.json", &found, err));
    if (!found)
        return SOTTO_OK;
    json_t *config;
    ST_TRY(st_json_sibling(file, "config.json", &config, err));
    bool whisper = false;
    const sotto_status status = put_config(file, config, &whisper, err);
    json_decref(config);
    ST_TRY(status);
    if (!whisper)
        return SOTTO_OK;
    ST_TRY(put_generation(file, err));
    return st_put_tokens(file, err);
}

static sotto_status open_single(sotto_model_file *file, const uint8_t *data, size_t size, sotto_error *err)
{
    ST_TRY(read_shard(file, data, size, err));
    return put_metadata(file, err);
}

const st_reader st_reader_safetensors = {"safetensors", probe, open_single, NULL};

/* ---- an index of several files ---- */

static bool probe_index(const uint8_t *data, size_t size)
{
    static const char key[] = "\"weight_map\"";
    if (size == 0 || data[0] != '{')
        return false;
    for (size_t i = 0; i + sizeof key - 1 <= size; i++)
        if (data[i] == '"' && memcmp(data + i, key, sizeof key - 1) == 0)
            return true;
    return false;
}

static bool plain_name(const char *name)
{
    return name[0] != '\0' && name[0] != '.' && !strpbrk(name, "/\\:");
}

static sotto_status open_shard(sotto_model_file *file, const char *name, sotto_error *err)
{
    if (!plain_name(name))
        return st_fail(err, SOTTO_E_FORMAT, "weight_map: \"%.100s\" is no name of a file in the same folder", name);
    const char *path = st_model_sibling(file, name);
    if (!path)
        return st_fail_memory(err, strlen(name), "weight_map");
    const uint8_t *data;
    size_t size;
    ST_TRY(st_model_map(file, path, &data, &size, err));
    if (!probe(data, size))
        return st_fail(err, SOTTO_E_FORMAT, "%s: is no safetensors file", name);
    const sotto_status status = read_shard(file, data, size, err);
    return status == SOTTO_OK ? status : st_fail_context(err, status, "%s", name);
}

static sotto_status open_shards(sotto_model_file *file, json_t *map, sotto_error *err)
{
    if (!json_is_object(map))
        return st_fail(err, SOTTO_E_FORMAT, "weight_map: expected an object");
    json_t *done = json_object(); /* names of files already read */
    sotto_status status = done ? SOTTO_OK : st_fail_memory(err, 1, "weight_map");
    const char *tensor;
    json_t *name;
    json_object_foreach(map, tensor, name)
    {
        if (status != SOTTO_OK)
            break;
        if (!json_is_string(name))
            status = st_fail(err, SOTTO_E_FORMAT, "weight_map: %.100s: expected the name of a file", tensor);
        else if (!json_object_get(done, json_string_value(name)))
            status = json_object_set_new(done, json_string_value(name), json_true()) == 0
                         ? open_shard(file, json_string_value(name), err)
                         : st_fail_memory(err, 1, "weight_map");
    }
    json_decref(done);
    return status;
}

static sotto_status open_index(sotto_model_file *file, const uint8_t *data, size_t size, sotto_error *err)
{
    if (!file->folder)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "an index of several files cannot be opened from memory");
    json_t *index;
    ST_TRY(st_json_bytes("the index", data, size, &index, err));
    const sotto_status status = open_shards(file, json_object_get(index, "weight_map"), err);
    json_decref(index);
    ST_TRY(status);
    return put_metadata(file, err);
}

const st_reader st_reader_shards = {"safetensors", probe_index, open_index, NULL};
