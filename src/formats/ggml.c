/* ggml.c: the Whisper `.bin` files of ggml: header, mel filters, tokens, then tensors until the end of the file. */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "formats/ggml.h"
#include "formats/mel_filters.h"
#include "formats/model_file_impl.h"
#include "formats/token_files.h"
#include "formats/whisper_names.h"

enum { MAX_NAME = 1024 };

const char *const st_ggml_header[ST_GGML_HEADER] = {
    "whisper.n_vocab",       "whisper.n_audio_ctx", "whisper.n_audio_state", "whisper.n_audio_head",
    "whisper.n_audio_layer", "whisper.n_text_ctx",  "whisper.n_text_state",  "whisper.n_text_head",
    "whisper.n_text_layer",  "whisper.n_mels",
};

/* Types of the bulk of the weights, as the header tells them; thousands count versions of the block formats. */
static const int32_t known_ftypes[] = {0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14, 19, 24};

static bool probe(const uint8_t *data, size_t size)
{
    st_bytes b = st_bytes_over(data, size);
    return st_bytes_u32(&b) == ST_GGML_MAGIC && !b.failed && size > 4;
}

static sotto_status cut_short(const st_bytes *b, const char *what, sotto_error *err)
{
    return st_fail(err, SOTTO_E_FORMAT, "ends inside %s, after %zu bytes", what, b->size);
}

static sotto_status read_header(sotto_model_file *file, st_bytes *b, int32_t *n_mels, sotto_error *err)
{
    ST_TRY(st_model_put_text(file, "general.architecture", "whisper", err));
    for (int i = 0; i < ST_GGML_HEADER; i++) {
        *n_mels = st_bytes_i32(b);
        ST_TRY(st_model_put_int(file, st_ggml_header[i], *n_mels, err));
    }
    const int32_t ftype = st_bytes_i32(b);
    if (b->failed)
        return cut_short(b, "the header", err);
    for (size_t i = 0; i < sizeof known_ftypes / sizeof *known_ftypes; i++)
        if (ftype >= 0 && ftype % 1000 == known_ftypes[i])
            return SOTTO_OK;
    return st_fail(err, SOTTO_E_UNSUPPORTED, "ftype: %d is not known", (int)ftype);
}

static sotto_status read_filters(sotto_model_file *file, st_bytes *b, int32_t n_mels, sotto_error *err)
{
    const int32_t n_mel = st_bytes_i32(b), n_fft = st_bytes_i32(b);
    if (b->failed)
        return cut_short(b, "the size of the mel filters", err);
    if (n_mel != n_mels || n_mel < 1 || n_mel > ST_MEL_MAX || n_fft != ST_MEL_BINS)
        return st_fail(err, SOTTO_E_FORMAT, "mel filters: %d x %d, expected whisper.n_mels (%d, at most %d) x %d",
                       (int)n_mel, (int)n_fft, (int)n_mels, (int)ST_MEL_MAX, (int)ST_MEL_BINS);
    const int64_t count = (int64_t)n_mel * n_fft;
    const void *data = st_bytes_take(b, (size_t)count * sizeof(float));
    if (!data)
        return cut_short(b, "the mel filters", err);
    float *filters = st_model_array(file, count, sizeof *filters, "the mel filters", err);
    if (!filters)
        return SOTTO_E_MEMORY;
    memcpy(filters, data, (size_t)count * sizeof *filters);
    return st_model_put_floats(file, "whisper.mel_filters", filters, count, err);
}

static sotto_status read_tokens(sotto_model_file *file, st_bytes *b, sotto_error *err)
{
    const int32_t n = st_bytes_i32(b);
    if (b->failed)
        return cut_short(b, "the number of tokens", err);
    if (n < 0 || (size_t)n > st_bytes_left(b) / 4)
        return st_fail(err, SOTTO_E_FORMAT, "%d tokens, but only %zu bytes are left", (int)n, st_bytes_left(b));
    st_text *tokens = st_model_array(file, n, sizeof *tokens, "tokens", err);
    if (!tokens)
        return SOTTO_E_MEMORY;
    for (int32_t i = 0; i < n; i++) {
        const uint32_t length = st_bytes_u32(b);
        if (b->failed || length > st_bytes_left(b))
            return st_fail(err, SOTTO_E_FORMAT, "token %d: %u bytes, but only %zu are left", (int)i, (unsigned)length,
                           st_bytes_left(b));
        tokens[i] = (st_text){st_bytes_take(b, length), length};
        if (length == 0)
            tokens[i].data = "";
    }
    return st_model_put_texts(file, "tokenizer.ggml.tokens", tokens, st_count_base_tokens(tokens, n), err);
}

/* The biases of the convolutions are stored as columns, [n, 1]. */
static void flatten_column(sotto_model_tensor *t)
{
    const size_t n = strlen(t->name);
    if (t->n_dims != 2 || t->dim[0] != 1 || n < 5 || strcmp(t->name + n - 5, ".bias") != 0)
        return;
    t->n_dims = 1;
    t->dim[0] = t->dim[1];
    t->dim[1] = 1;
}

static sotto_status read_tensor(sotto_model_file *file, st_bytes *b, sotto_error *err)
{
    const size_t start = b->at;
    const int32_t n_dims = st_bytes_i32(b), length = st_bytes_i32(b), type = st_bytes_i32(b);
    if (b->failed)
        return cut_short(b, "a tensor's head", err);
    if (n_dims < 0 || n_dims > SOTTO_MAX_DIMS)
        return st_fail(err, SOTTO_E_FORMAT, "tensor at byte %zu: %d dimensions, expected 0 to %d", start, (int)n_dims,
                       (int)SOTTO_MAX_DIMS);
    if (length < 1 || length > MAX_NAME)
        return st_fail(err, SOTTO_E_FORMAT, "tensor at byte %zu: a name of %d bytes, expected 1 to %d", start,
                       (int)length, (int)MAX_NAME);
    sotto_model_tensor t = {.dtype = (sotto_dtype)type, .n_dims = n_dims};
    for (int i = 0; i < n_dims; i++)
        t.dim[i] = st_bytes_i32(b);
    char name[MAX_NAME + 1];
    const void *text = st_bytes_take(b, (size_t)length);
    if (!text)
        return cut_short(b, "a tensor's head", err);
    memcpy(name, text, (size_t)length);
    name[length] = '\0';
    if (strlen(name) != (size_t)length)
        return st_fail(err, SOTTO_E_FORMAT, "tensor at byte %zu: its name contains a zero", start);
    t.name = name;
    ST_TRY(st_check_tensor(&t, &t.bytes, err));
    if (t.bytes > st_bytes_left(b))
        return st_fail(err, SOTTO_E_FORMAT, "%s: %zu bytes, but only %zu are left", name, t.bytes, st_bytes_left(b));
    t.data = st_bytes_take(b, t.bytes);
    flatten_column(&t);
    return st_model_add_tensor(file, &t, err);
}

static sotto_status open_ggml(sotto_model_file *file, const uint8_t *data, size_t size, sotto_error *err)
{
    st_bytes b = st_bytes_over(data, size);
    (void)st_bytes_u32(&b);
    int32_t n_mels;
    ST_TRY(read_header(file, &b, &n_mels, err));
    ST_TRY(read_filters(file, &b, n_mels, err));
    ST_TRY(read_tokens(file, &b, err));
    while (st_bytes_left(&b) > 0)
        ST_TRY(read_tensor(file, &b, err));
    return SOTTO_OK;
}

/* The file tells no number of tensors: one that was cut between two of them is known only by what it lacks. */
const st_reader st_reader_ggml = {"ggml", probe, open_ggml, st_whisper_complete};
