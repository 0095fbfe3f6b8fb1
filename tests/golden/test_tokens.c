/* Tokens of two real vocabularies against llama.cpp's (data/llama_tokens.json, made by tools/make_token_golden.py). */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "base/alloc.h"
#include "golden_support.h"
#include "models/common/tokenizer.h"

static json_t *file;

static int open_file(void **state)
{
    json_error_t e;
    (void)state;
    file = json_load_file(SOTTO_SOURCE_DIR "/tests/golden/data/llama_tokens.json", JSON_ALLOW_NUL, &e);
    if (!file)
        print_error("llama_tokens.json: line %d: %s\n", e.line, e.text);
    return file ? 0 : -1;
}

static int close_file(void **state)
{
    (void)state;
    json_decref(file);
    return 0;
}

/* The GGUF file in the model's folder; NULL when it has not been fetched. */
static st_tokenizer *load(const char *name)
{
    const char *folder = model_path(name);
    if (!folder)
        return NULL;
    char path[1024] = "";
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        const size_t n = strlen(e->d_name);
        if (n > 5 && strcmp(e->d_name + n - 5, ".gguf") == 0)
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    }
    if (d)
        closedir(d);
    if (!path[0]) {
        printf("skipped: %s has no GGUF file\n", folder);
        return NULL;
    }
    sotto_error err;
    sotto_model_file *model;
    st_tokenizer *t;
    if (sotto_model_file_open(path, &model, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    if (st_tokenizer_create(model, &t, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    sotto_model_file_free(model);
    return t;
}

static size_t text_of(json_t *entry, char *out, size_t size)
{
    const char *hex = json_string_value(json_object_get(entry, "hex"));
    if (!hex) {
        const size_t n = json_string_length(entry);
        assert_true(n < size);
        memcpy(out, json_string_value(entry), n);
        return n;
    }
    const size_t n = strlen(hex) / 2;
    assert_true(n < size);
    for (size_t i = 0; i < n; i++) {
        unsigned byte = 0;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
        out[i] = (char)byte;
    }
    return n;
}

static void check_ids(const char *kind, size_t index, const char *text, size_t n, const int32_t *ids, int64_t count,
                      json_t *want)
{
    int64_t at = 0;
    while (at < count && at < (int64_t)json_array_size(want) &&
           ids[at] == json_integer_value(json_array_get(want, (size_t)at)))
        at++;
    if (at < count || count != (int64_t)json_array_size(want))
        fail_msg("text %zu, %s: token %lld of %lld is %d, llama.cpp has %lld of %zu: \"%.*s\"", index, kind,
                 (long long)at, (long long)count, at < count ? ids[at] : -1,
                 (long long)json_integer_value(json_array_get(want, (size_t)at)), json_array_size(want),
                 (int)(n < 60 ? n : 60), text);
}

/* Is there something that does not come back: U+2581 is a space, and SmolLM2 has no tokens for some control characters? */
static bool changes(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((uint8_t)text[i] < 0x20 && !strchr("\t\n\r", text[i]))
            return true;
    return strstr(text, "\u2581") != NULL;
}

static void check_back(const st_tokenizer *t, const char *text, size_t n, const int32_t *ids, int64_t count)
{
    static char back[1 << 14];
    size_t at = 0, length;
    for (int64_t i = 0; i < count; i++) {
        const char *bytes = st_tokenizer_bytes(t, ids[i], true, &length);
        assert_true(at + length < sizeof back);
        memcpy(back + at, bytes, length);
        at += length;
    }
    if (at != n || memcmp(back, text, n) != 0)
        fail_msg("\"%.60s\" comes back as \"%.60s\"", text, back);
}

static void check_texts(const st_tokenizer *t, json_t *want)
{
    static char text[1 << 14];
    json_t *texts = golden_at(file, "texts"), *entry;
    size_t i;
    int32_t *ids = NULL;
    int64_t capacity = 0, count;
    sotto_error err;
    assert_true(json_array_size(texts) >= 200);
    json_array_foreach(texts, i, entry)
    {
        const size_t n = text_of(entry, text, sizeof text);
        for (int plain = 0; plain < 2; plain++) {
            const char *kind = plain ? "plain" : "default";
            count = 0;
            if (st_tokenizer_encode(t, text, n, !plain, !plain, &ids, &capacity, &count, &err) != SOTTO_OK)
                fail_msg("%s", err.text);
            check_ids(kind, i, text, n, ids, count, json_array_get(golden_at(want, kind), i));
        }
        text[n] = 0;
        if (json_is_string(entry) && !changes(text, n))
            check_back(t, text, n, ids, count);
    }
    st_free(ids);
}

/* Over the bytes of all tokens, each behind its length. */
static uint32_t bytes_crc(const st_tokenizer *t, bool special)
{
    uLong crc = 0;
    for (int32_t id = 0; id < st_tokenizer_size(t); id++) {
        size_t n;
        const char *bytes = st_tokenizer_bytes(t, id, special, &n);
        const Bytef length[4] = {(Bytef)n, (Bytef)(n >> 8), (Bytef)(n >> 16), (Bytef)(n >> 24)};
        crc = crc32(crc, length, 4);
        if (n > 0)
            crc = crc32(crc, (const Bytef *)bytes, (uInt)n);
    }
    return (uint32_t)crc;
}

static void check_vocabulary(const st_tokenizer *t, json_t *want)
{
    const st_token_ids ids = st_tokenizer_ids(t);
    assert_int_equal(st_tokenizer_size(t), json_integer_value(golden_at(want, "n_tokens")));
    assert_int_equal(ids.bos, json_integer_value(golden_at(want, "bos")));
    assert_int_equal(ids.eos, json_integer_value(golden_at(want, "eos")));
    assert_int_equal(ids.pad, json_integer_value(golden_at(want, "pad")));
    assert_int_equal(ids.newline, json_integer_value(golden_at(want, "newline")));
    assert_int_equal(ids.add_bos, json_boolean_value(golden_at(want, "add_bos")));
    assert_int_equal(ids.add_eos, json_boolean_value(golden_at(want, "add_eos")));
    json_t *ends = golden_at(want, "ends");
    size_t n_ends = 0;
    for (int32_t id = 0; id < st_tokenizer_size(t); id++)
        if (st_tokenizer_ends(t, id)) {
            assert_int_equal(id, json_integer_value(json_array_get(ends, n_ends)));
            n_ends++;
        }
    assert_int_equal(n_ends, json_array_size(ends));
    assert_true(st_tokenizer_ends(t, ids.eot));
    for (int special = 0; special < 2; special++)
        assert_int_equal(bytes_crc(t, special),
                         json_integer_value(json_array_get(golden_at(want, "bytes_crc"), (size_t)special)));
}

static void check_model(const char *name)
{
    st_tokenizer *t = load(name);
    if (!t)
        skip();
    json_t *want = golden_at(golden_at(file, "models"), name);
    check_vocabulary(t, want);
    check_texts(t, want);
    st_tokenizer_free(t);
}

static void smollm2_has_the_tokens_of_llama_cpp(void **state)
{
    (void)state;
    check_model("smollm2-135m");
}

static void gemma3_has_the_tokens_of_llama_cpp(void **state)
{
    (void)state;
    check_model("gemma3-270m");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smollm2_has_the_tokens_of_llama_cpp),
        cmocka_unit_test(gemma3_has_the_tokens_of_llama_cpp),
    };
    return cmocka_run_group_tests(tests, open_file, close_file);
}
