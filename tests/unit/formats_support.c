#include "unit/formats_support.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/half.h"

/* ---- bytes ---- */

void blob_free(blob *b)
{
    free(b->data);
    *b = (blob){0};
}

void blob_bytes(blob *b, const void *data, size_t n)
{
    if (b->n + n > b->cap) {
        b->cap = 2 * (b->n + n) + 64;
        b->data = realloc(b->data, b->cap);
        assert_non_null(b->data);
    }
    if (n > 0)
        memcpy(b->data + b->n, data, n);
    b->n += n;
}

void blob_number(blob *b, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        blob_bytes(b, &(uint8_t){(uint8_t)(value >> 8 * i)}, 1);
}

void blob_f32(blob *b, float value)
{
    blob_number(b, st_f32_bits(value), 4);
}

void blob_text(blob *b, const char *text, int bytes)
{
    blob_number(b, strlen(text), bytes);
    blob_bytes(b, text, strlen(text));
}

/* ---- folders ---- */

char *make_folder(void)
{
    char *folder = strdup("/tmp/sotto-formats-XXXXXX");
    assert_non_null(folder);
    assert_non_null(mkdtemp(folder));
    return folder;
}

static int each_file(const char *folder, bool remove_them)
{
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            n++;
            if (remove_them)
                unlinkat(dirfd(d), e->d_name, 0);
        }
    if (d)
        closedir(d);
    return n;
}

int count_files(const char *folder)
{
    return each_file(folder, false);
}

void remove_folder(char *folder)
{
    each_file(folder, true);
    rmdir(folder);
    free(folder);
}

const char *in_folder(const char *folder, const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

void write_file(const char *folder, const char *name, const void *data, size_t n)
{
    FILE *f = fopen(in_folder(folder, name), "wb");
    assert_non_null(f);
    if (n > 0)
        assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

void write_blob(const char *folder, const char *name, const blob *b)
{
    write_file(folder, name, b->data, b->n);
}

void write_text(const char *folder, const char *name, const char *text)
{
    write_file(folder, name, text, strlen(text));
}

/* ---- opening ---- */

static void check_opened(sotto_status status, sotto_model_file *f, const sotto_error *err)
{
    if (status == SOTTO_OK)
        assert_non_null(f);
    else {
        assert_null(f);
        assert_int_equal(err->code, status);
        assert_true(strlen(err->text) > 10);
    }
    sotto_model_file_free(f);
}

sotto_status try_memory(const void *data, size_t n, sotto_error *err)
{
    uint8_t *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    if (n > 0)
        memcpy(copy, data, n);
    *err = (sotto_error){0};
    sotto_model_file *f;
    const sotto_status status = sotto_model_file_open_memory(copy, n, "memory", &f, err);
    check_opened(status, f, err);
    free(copy);
    return status;
}

sotto_status try_path(const char *path, sotto_error *err)
{
    *err = (sotto_error){0};
    sotto_model_file *f;
    const sotto_status status = sotto_model_file_open(path, &f, err);
    check_opened(status, f, err);
    return status;
}

void expect(sotto_status got, const sotto_error *err, sotto_status want, const char *part, const char *label)
{
    if (got != want || (got != SOTTO_OK && !strstr(err->text, part)))
        fail_msg("%s: %s \"%s\", expected %s \"%s\"", label, sotto_status_name(got), err->text, sotto_status_name(want),
                 part);
}

sotto_model_file *must_open(const char *path)
{
    sotto_error err = {0};
    sotto_model_file *f;
    if (sotto_model_file_open(path, &f, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    return f;
}

float *tensor_values(const sotto_model_file *f, const char *name, int64_t *n)
{
    sotto_model_tensor t;
    if (sotto_model_tensor_find(f, name, &t) != SOTTO_OK)
        fail_msg("%s: missing", name);
    int64_t rows = 1;
    for (int i = 1; i < t.n_dims; i++)
        rows *= t.dim[i];
    *n = rows * (t.n_dims > 0 ? t.dim[0] : 1);
    float *values = malloc((size_t)*n * sizeof *values);
    assert_non_null(values);
    assert_int_equal(sotto_model_tensor_f32(&t, 0, rows, values, NULL), SOTTO_OK);
    return values;
}

/* Every Whisper model has these. */
static const char *const plain[] = {
    "encoder.conv1.weight",   "encoder.conv1.bias",   "encoder.conv2.weight",           "encoder.conv2.bias",
    "encoder.ln_post.weight", "encoder.ln_post.bias", "encoder.positional_embedding",   "decoder.positional_embedding",
    "decoder.ln.weight",      "decoder.ln.bias",      "decoder.token_embedding.weight",
};

/* ---- ggml ---- */

ggml_recipe ggml_ordinary(void)
{
    return (ggml_recipe){
        .header = {51865, 1500, 8, 1, 0, 448, 8, 1, 0, 1, 0},
        .n_mel = 1,
        .n_fft = 201,
        .n_tokens = 2,
        .token_length = 2,
        .n_dims = 2,
        .name_length = 8,
        .dim = {4, 2, 1, 1, 1, 1, 1, 1},
        .name = "a.weight",
    };
}

static void blob_scalar(blob *b, const char *name)
{
    blob_number(b, 0, 4);
    blob_number(b, strlen(name), 4);
    blob_number(b, 0, 4);
    blob_bytes(b, name, strlen(name));
    blob_f32(b, 3);
}

blob ggml_file(const ggml_recipe *r)
{
    blob b = {0};
    blob_number(&b, 0x67676d6c, 4);
    for (int i = 0; i < 11; i++)
        blob_number(&b, (uint32_t)r->header[i], 4);
    blob_number(&b, (uint32_t)r->n_mel, 4);
    blob_number(&b, (uint32_t)r->n_fft, 4);
    for (int i = 0; i < 201; i++)
        blob_f32(&b, (float)i);
    blob_number(&b, (uint32_t)r->n_tokens, 4);
    blob_number(&b, r->token_length, 4);
    blob_bytes(&b, "ab", 2);
    blob_number(&b, 0, 4);
    blob_number(&b, (uint32_t)r->n_dims, 4);
    blob_number(&b, (uint32_t)r->name_length, 4);
    blob_number(&b, (uint32_t)r->type, 4);
    for (int i = 0; i < r->n_dims && i < 8; i++)
        blob_number(&b, (uint32_t)r->dim[i], 4);
    blob_bytes(&b, r->name, 8);
    for (int i = 0; i < 8; i++)
        blob_f32(&b, (float)i + 0.5f);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        blob_scalar(&b, plain[i]);
    blob_scalar(&b, "scalar");
    return b;
}

/* ---- GGUF ---- */

static const struct {
    const char *key;
    int64_t value; /* -1: the width */
} sizes[] = {
    {"whisper.n_vocab", 51864},   {"whisper.n_audio_ctx", 4},   {"whisper.n_audio_state", -1},
    {"whisper.n_audio_head", 1},  {"whisper.n_audio_layer", 0}, {"whisper.n_text_ctx", 8},
    {"whisper.n_text_state", -1}, {"whisper.n_text_head", 1},   {"whisper.n_text_layer", 0},
    {"whisper.n_mels", 2},
};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

static const struct {
    const char *name;
    int n_dims;
    int64_t dim[3]; /* 0: the width */
} tensors[] = {
    {"decoder.token_embedding.weight", 2, {0, 6, 1}},
    {"encoder.conv1.weight", 3, {3, 2, 4}},
    {"encoder.conv1.bias", 1, {4, 1, 1}},
    {"encoder.positional_embedding", 2, {0, 4, 1}},
    {"encoder.blocks.0.attn.query.weight", 2, {0, 3, 1}},
    {"encoder.blocks.0.attn.query.bias", 1, {0, 1, 1}},
    {"odd.weight", 2, {6, 2, 1}},
    {"encoder.conv2.weight", 3, {3, 4, 4}},
    {"encoder.conv2.bias", 1, {4, 1, 1}},
    {"encoder.ln_post.weight", 1, {0, 1, 1}},
    {"encoder.ln_post.bias", 1, {0, 1, 1}},
    {"decoder.positional_embedding", 2, {0, 8, 1}},
    {"decoder.ln.weight", 1, {0, 1, 1}},
    {"decoder.ln.bias", 1, {0, 1, 1}},
};
enum { N_TENSORS = sizeof tensors / sizeof *tensors };

static sotto_dtype type_of(int i, sotto_dtype matrices)
{
    const bool small = tensors[i].n_dims == 1 || strstr(tensors[i].name, "positional");
    return small ? SOTTO_F32 : matrices;
}

blob whisper_gguf(int64_t width, sotto_dtype type)
{
    blob b = {0};
    blob_bytes(&b, "GGUF", 4);
    blob_number(&b, 3, 4);
    blob_number(&b, N_TENSORS, 8);
    blob_number(&b, N_SIZES + 3, 8);
    blob_text(&b, "general.architecture", 8);
    blob_number(&b, 8, 4);
    blob_text(&b, "whisper", 8);
    for (int i = 0; i < N_SIZES; i++) {
        blob_text(&b, sizes[i].key, 8);
        blob_number(&b, 4, 4);
        blob_number(&b, (uint64_t)(sizes[i].value >= 0 ? sizes[i].value : width), 4);
    }
    blob_text(&b, "tokenizer.ggml.tokens", 8);
    blob_number(&b, 9, 4);
    blob_number(&b, 8, 4);
    blob_number(&b, 3, 8);
    blob_text(&b, "a", 8);
    blob_text(&b, "", 8);
    char longest[301];
    memset(longest, 'x', 300);
    longest[300] = '\0';
    blob_text(&b, longest, 8);
    blob_text(&b, "whisper.alignment_heads", 8);
    blob_number(&b, 9, 4);
    blob_number(&b, 5, 4);
    blob_number(&b, 2, 8);
    blob_number(&b, 0, 4);
    blob_number(&b, (uint32_t)-1, 4);
    uint64_t offset = 0;
    int64_t count[N_TENSORS];
    for (int i = 0; i < N_TENSORS; i++) {
        blob_text(&b, tensors[i].name, 8);
        blob_number(&b, (uint64_t)tensors[i].n_dims, 4);
        count[i] = 1;
        for (int a = 0; a < tensors[i].n_dims; a++) {
            const int64_t dim = tensors[i].dim[a] ? tensors[i].dim[a] : width;
            count[i] *= dim;
            blob_number(&b, (uint64_t)dim, 8);
        }
        blob_number(&b, (uint64_t)type_of(i, type), 4);
        blob_number(&b, offset, 8);
        offset += (uint64_t)count[i] * (type_of(i, type) == SOTTO_F32 ? 4 : 2);
        offset = (offset + 31) / 32 * 32;
    }
    for (int i = 0; i < N_TENSORS; i++) {
        while (b.n % 32 != 0)
            blob_number(&b, 0, 1);
        for (int64_t k = 0; k < count[i]; k++) {
            const float value = (float)((k * 37 + i * 11) % 127 - 63) / 64;
            if (type_of(i, type) == SOTTO_F32)
                blob_f32(&b, value);
            else
                blob_number(&b, st_f32_to_f16(value), 2);
        }
    }
    return b;
}
