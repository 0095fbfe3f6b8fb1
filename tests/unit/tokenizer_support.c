#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "formats/gguf.h"
#include "models/common/tokenizer_impl.h"
#include "tokenizer_support.h"

static void key_of(meta_file *m, const char *key, int type)
{
    blob_text(&m->body, key, 8);
    blob_number(&m->body, (uint64_t)type, 4);
    m->n++;
}

static void array_of(meta_file *m, const char *key, int type, int64_t n)
{
    key_of(m, key, ST_GGUF_ARRAY);
    blob_number(&m->body, (uint64_t)type, 4);
    blob_number(&m->body, (uint64_t)n, 8);
}

void meta_string(meta_file *m, const char *key, const char *value)
{
    key_of(m, key, ST_GGUF_STRING);
    blob_text(&m->body, value, 8);
}

void meta_int(meta_file *m, const char *key, int64_t value)
{
    key_of(m, key, ST_GGUF_U32);
    blob_number(&m->body, (uint64_t)value, 4);
}

void meta_bool(meta_file *m, const char *key, bool value)
{
    key_of(m, key, ST_GGUF_BOOL);
    blob_number(&m->body, value, 1);
}

void meta_strings(meta_file *m, const char *key, const char *const *value, int64_t n)
{
    if (n < 0)
        for (n = 0; value[n];)
            n++;
    array_of(m, key, ST_GGUF_STRING, n);
    for (int64_t i = 0; i < n; i++)
        blob_text(&m->body, value[i], 8);
}

void meta_ints(meta_file *m, const char *key, const int32_t *value, int64_t n)
{
    array_of(m, key, ST_GGUF_I32, n);
    for (int64_t i = 0; i < n; i++)
        blob_number(&m->body, (uint32_t)value[i], 4);
}

void meta_floats(meta_file *m, const char *key, const float *value, int64_t n)
{
    array_of(m, key, ST_GGUF_F32, n);
    for (int64_t i = 0; i < n; i++)
        blob_f32(&m->body, value[i]);
}

void meta_bytes(meta_file *m, const char *key, const uint8_t *value, int64_t n)
{
    array_of(m, key, ST_GGUF_U8, n);
    blob_bytes(&m->body, value, (size_t)n);
}

blob meta_finish(meta_file *m)
{
    blob b = {0};
    blob_bytes(&b, "GGUF", 4);
    blob_number(&b, 3, 4);
    blob_number(&b, 0, 8); /* tensors */
    blob_number(&b, m->n, 8);
    blob_bytes(&b, m->body.data, m->body.n);
    blob_free(&m->body);
    *m = (meta_file){0};
    return b;
}

sotto_status meta_tokenizer(meta_file *m, st_tokenizer **out, sotto_error *err)
{
    blob b = meta_finish(m);
    sotto_model_file *file;
    *out = NULL;
    sotto_status status = sotto_model_file_open_memory(b.data, b.n, "vocabulary", &file, err);
    if (status == SOTTO_OK) {
        status = st_tokenizer_create(file, out, err);
        sotto_model_file_free(file);
    }
    blob_free(&b);
    return status;
}

st_tokenizer *must_make(meta_file *m)
{
    sotto_error err;
    st_tokenizer *t;
    if (meta_tokenizer(m, &t, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    return t;
}

void gpt2_file(meta_file *m, const char *pre, const char *const *tokens, const char *const *joins,
               int32_t (*kind_of)(const char *token))
{
    static char bytes[256][4];
    static const char *all[1024];
    static int32_t kinds[1024];
    static const char *const none[] = {NULL};
    int n = 256;
    for (int i = 0; i < 256; i++) {
        memset(bytes[i], 0, sizeof bytes[i]);
        st_utf8_put(st_byte_to_code((uint8_t)i), bytes[i]);
        all[i] = bytes[i];
    }
    for (int i = 0; tokens && tokens[i] && n < 1024; i++)
        all[n++] = tokens[i];
    for (int i = 0; i < n; i++)
        kinds[i] = kind_of ? kind_of(all[i]) : 1;
    meta_string(m, "general.architecture", "llama");
    meta_string(m, "tokenizer.ggml.model", "gpt2");
    if (pre)
        meta_string(m, "tokenizer.ggml.pre", pre);
    meta_strings(m, "tokenizer.ggml.tokens", all, n);
    meta_ints(m, "tokenizer.ggml.token_type", kinds, n);
    meta_strings(m, "tokenizer.ggml.merges", joins ? joins : none, -1);
}

static char text_out[1 << 16];

static void add(size_t *at, const char *bytes, size_t n)
{
    if (*at + n + 2 < sizeof text_out) {
        memcpy(text_out + *at, bytes, n);
        *at += n;
    }
    text_out[*at] = 0;
}

static const char *encoded(const st_tokenizer *t, const char *text, size_t n, bool add_special, bool parse_special,
                           bool spell)
{
    int32_t *ids = NULL;
    int64_t capacity = 0, count = 0;
    sotto_error err;
    if (st_tokenizer_encode(t, text, n, add_special, parse_special, &ids, &capacity, &count, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    size_t at = 0;
    text_out[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        size_t length;
        const char *bytes =
            spell ? st_tok_table_get(&t->spelling, ids[i], &length) : st_tokenizer_bytes(t, ids[i], true, &length);
        add(&at, "|", i > 0);
        add(&at, bytes, length);
    }
    st_free(ids);
    return text_out;
}

const char *spelled(const st_tokenizer *t, const char *text, size_t n, bool add_special, bool parse_special)
{
    return encoded(t, text, n, add_special, parse_special, true);
}

const char *pieces(const st_tokenizer *t, const char *text, size_t n)
{
    return encoded(t, text, n, false, false, false);
}
