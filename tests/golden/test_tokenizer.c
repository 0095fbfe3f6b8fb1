/* Tokens of the models `base` and `tiny.en` against tiktoken and whisper.tokenizer: special ids, languages, suppressed symbols,
 * texts, bytes of tokens; and the compression ratio against Python's zlib. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden_support.h"
#include "models/whisper/decode.h"
#include "models/whisper/vocab.h"

static json_t *file;

static int open_file(void **state)
{
    (void)state;
    file = json_load_file(SOTTO_SOURCE_DIR "/tests/golden/data/tokenizer.json", 0, NULL);
    return file ? 0 : -1;
}

static int close_file(void **state)
{
    (void)state;
    json_decref(file);
    return 0;
}

static st_vocab *load(const char *name, int32_t n_vocab)
{
    const char *path = model_path(name);
    if (!path)
        return NULL;
    sotto_error err;
    sotto_model_file *model;
    if (sotto_model_file_open(path, &model, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    st_vocab *v;
    if (st_vocab_create(model, n_vocab, &v, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    sotto_model_file_free(model);
    return v;
}

static void check_special_ids(const st_vocab *v, json_t *want)
{
    const struct {
        const char *key;
        int32_t id;
    } ids[] = {
        {"n_vocab", v->n_vocab},
        {"eot", v->eot},
        {"sot", v->sot},
        {"translate", v->translate},
        {"transcribe", v->transcribe},
        {"sot_lm", v->sot_lm},
        {"sot_prev", v->sot_prev},
        {"no_speech", v->no_speech},
        {"no_timestamps", v->no_timestamps},
        {"timestamp_begin", v->timestamp},
    };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        assert_int_equal(ids[i].id, json_integer_value(golden_at(want, ids[i].key)));
    json_t *languages = golden_at(want, "languages"), *id;
    const char *code;
    assert_int_equal(v->n_languages, json_object_size(languages));
    json_object_foreach(languages, code, id)
        assert_int_equal(v->language + sotto_language_find(code), json_integer_value(id));
}

static void check_ids(const int32_t *ids, int64_t n, json_t *want, const char *what)
{
    bool same = n == (int64_t)json_array_size(want);
    for (int64_t i = 0; i < n && same; i++)
        same = ids[i] == json_integer_value(json_array_get(want, (size_t)i));
    if (!same)
        fail_msg("other tokens than tiktoken: %s", what);
}

static void check_vocabulary(const char *model, const char *kind, const char *text_key, int32_t n_vocab)
{
    st_vocab *v = load(model, n_vocab);
    if (!v)
        skip();
    json_t *want = golden_at(file, kind);
    check_special_ids(v, want);
    check_ids(v->non_speech, v->n_non_speech, golden_at(want, "non_speech_tokens"), "symbols that are not spoken");
    check_ids(v->blank, v->n_blank, golden_at(want, "blank"), "blank");
    json_t *texts = golden_at(file, "texts"), *entry;
    size_t i;
    static int32_t ids[1 << 16];
    json_array_foreach(texts, i, entry)
    {
        const char *text = json_string_value(golden_at(entry, "text"));
        int64_t n;
        sotto_error err;
        if (st_vocab_tokenize(v, text, ids, 1 << 16, &n, &err) != SOTTO_OK)
            fail_msg("%s: %s", text, err.text);
        assert_true(n <= 1 << 16);
        check_ids(ids, n, golden_at(entry, text_key), text);
        /* and back */
        size_t at = 0;
        for (int64_t k = 0; k < n; k++) {
            size_t length;
            const char *bytes = st_vocab_bytes(v, ids[k], &length);
            assert_true(strncmp(text + at, bytes, length) == 0);
            at += length;
        }
        assert_int_equal(at, strlen(text));
    }
    st_vocab_free(v);
}

static void multilingual_tokens_are_those_of_tiktoken(void **state)
{
    (void)state;
    check_vocabulary("base", "multilingual", "multilingual", 51865);
}

static void english_tokens_are_those_of_tiktoken(void **state)
{
    (void)state;
    check_vocabulary("tiny.en", "english", "english", 51864);
}

/* The layout with Cantonese has the text tokens of the multilingual one. */
static void large_v3_has_one_language_more(void **state)
{
    (void)state;
    check_vocabulary("base", "large_v3", "multilingual", 51866);
}

static void parts_of_characters_keep_their_bytes(void **state)
{
    (void)state;
    st_vocab *v = load("base", 51865);
    if (!v)
        skip();
    json_t *entry;
    size_t i;
    json_array_foreach(golden_at(file, "partial_tokens"), i, entry)
    {
        size_t n;
        const char *bytes = st_vocab_bytes(v, (int32_t)json_integer_value(json_array_get(entry, 0)), &n);
        const char *hex = json_string_value(json_array_get(entry, 1));
        char spelled[256] = "";
        for (size_t k = 0; k < n && k < 100; k++)
            snprintf(spelled + 2 * k, 3, "%02x", (unsigned)(uint8_t)bytes[k]);
        assert_string_equal(spelled, hex);
    }
    st_vocab_free(v);
}

static void languages_have_the_original_order_and_names(void **state)
{
    (void)state;
    json_t *entry;
    size_t i;
    json_array_foreach(golden_at(file, "languages"), i, entry)
    {
        assert_string_equal(sotto_language_code((int)i), json_string_value(json_array_get(entry, 0)));
        assert_string_equal(sotto_language_name((int)i), json_string_value(json_array_get(entry, 1)));
    }
    assert_null(sotto_language_code((int)json_array_size(golden_at(file, "languages"))));
    const char *name;
    json_object_foreach(golden_at(file, "language_names"), name, entry)
        assert_string_equal(sotto_language_code(sotto_language_find(name)), json_string_value(entry));
}

static void compression_ratios_are_those_of_python(void **state)
{
    (void)state;
    json_t *entry;
    size_t i;
    json_array_foreach(golden_at(file, "compression_ratios"), i, entry)
    {
        const char *text = json_string_value(json_array_get(entry, 0));
        float ratio;
        sotto_error err;
        assert_int_equal(st_compression_ratio(text, strlen(text), &ratio, &err), SOTTO_OK);
        assert_true(fabs((double)ratio - json_real_value(json_array_get(entry, 1))) < 1e-5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multilingual_tokens_are_those_of_tiktoken),
        cmocka_unit_test(english_tokens_are_those_of_tiktoken),
        cmocka_unit_test(large_v3_has_one_language_more),
        cmocka_unit_test(parts_of_characters_keep_their_bytes),
        cmocka_unit_test(languages_have_the_original_order_and_names),
        cmocka_unit_test(compression_ratios_are_those_of_python),
    };
    return cmocka_run_group_tests(tests, open_file, close_file);
}
