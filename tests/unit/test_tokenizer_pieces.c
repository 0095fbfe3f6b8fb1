/* How texts are cut into words, against Python's `regex` on the published patterns, and the unigram model against sentencepiece
 * (data made by tools/make_piece_golden.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/alloc.h"
#include "models/common/pretokenizers.h"
#include "models/common/tok_split.h"
#include "tokenizer_support.h"

static sotto_error err;

static json_t *open_data(const char *name)
{
    char path[512];
    json_error_t e;
    snprintf(path, sizeof path, SOTTO_SOURCE_DIR "/tests/unit/data/%s", name);
    json_t *file = json_load_file(path, JSON_ALLOW_NUL, &e);
    if (!file)
        fail_msg("%s: line %d: %s", path, e.line, e.text);
    return file;
}

static void check_cuts(const char *name, json_t *texts, json_t *want)
{
    const st_pretokenizer *p = st_pretokenizer_find(name, strlen(name));
    st_splitter *splitter;
    st_pieces pieces = {0};
    json_t *text;
    size_t i;
    assert_non_null(p);
    assert_int_equal(st_splitter_create(p->patterns, st_pretokenizer_count(p), &splitter, &err), SOTTO_OK);
    json_array_foreach(texts, i, text)
    {
        const size_t n = json_string_length(text);
        json_t *ends = json_array_get(want, i);
        if (st_splitter_cut(splitter, json_string_value(text), n, &pieces, &err) != SOTTO_OK)
            fail_msg("%s: %s", name, err.text);
        bool same = pieces.n == (int64_t)json_array_size(ends);
        for (int64_t k = 0; k < pieces.n && same; k++)
            same = pieces.end[k] == json_integer_value(json_array_get(ends, (size_t)k));
        if (!same)
            fail_msg("%s cuts text %zu into %lld pieces, expected %zu: \"%s\"", name, i, (long long)pieces.n,
                     json_array_size(ends), json_string_value(text));
    }
    st_pieces_free(&pieces);
    st_splitter_free(splitter);
}

static void words_are_those_of_the_published_patterns(void **state)
{
    (void)state;
    json_t *file = open_data("pieces.json"), *want;
    const char *name;
    json_object_foreach(json_object_get(file, "ends"), name, want)
        check_cuts(name, json_object_get(file, "texts"), want);
    json_decref(file);
}

static void every_name_has_patterns_that_compile(void **state)
{
    (void)state;
    const char *const names[] = {"default",       "llama3",
                                 "llama-v3",      "llama-bpe",
                                 "falcon3",       "dbrx",
                                 "glm4",          "deepseek-r1-qwen",
                                 "stablelm2",     "megrez",
                                 "laguna",        "minicpm5",
                                 "phi-2",         "mpt",
                                 "olmo",          "jais",
                                 "jina-v2-de",    "starcoder",
                                 "refact",        "command-r",
                                 "exaone",        "minerva-7b",
                                 "llama4",        "deepseek-llm",
                                 "spark2_5",      "youtu",
                                 "poro-chat",     "ufakzeka",
                                 "hunyuan-dense", "granite-embed-multi-97m"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const st_pretokenizer *p = st_pretokenizer_find(names[i], strlen(names[i]));
        st_splitter *s;
        st_pieces pieces = {0};
        const char *text = "It's 1234 \u4f60\u597d,  \u0420\u0443s \n\n x!";
        if (!p)
            fail_msg("%s is not known", names[i]);
        if (st_splitter_create(p->patterns, st_pretokenizer_count(p), &s, &err) != SOTTO_OK)
            fail_msg("%s: %s", names[i], err.text);
        assert_int_equal(st_splitter_cut(s, text, strlen(text), &pieces, &err), SOTTO_OK);
        assert_true(pieces.n > 3 && pieces.end[pieces.n - 1] == strlen(text));
        st_pieces_free(&pieces);
        st_splitter_free(s);
    }
    assert_null(st_pretokenizer_find("gpt-22", 6));
    assert_null(st_pretokenizer_find("gpt-2", 4));
    assert_null(st_pretokenizer_find("", 0));
}

/* Pieces of deepseek-llm, by hand: lines, letters with case, signs, white space at the end, East Asian runs, numbers. */
static void deepseek_llm_by_hand(void **state)
{
    (void)state;
    const char *text = "Ab c!\n12 \u4f60\u597d\u3002 x  ";
    const size_t want[] = {2, 4, 5, 6, 8, 9, 15, 18, 20, 22};
    const st_pretokenizer *p = st_pretokenizer_find("deepseek-llm", 12);
    st_splitter *s;
    st_pieces pieces = {0};
    assert_int_equal(st_splitter_create(p->patterns, st_pretokenizer_count(p), &s, &err), SOTTO_OK);
    assert_int_equal(st_splitter_cut(s, text, strlen(text), &pieces, &err), SOTTO_OK);
    for (int64_t i = 0; i < pieces.n; i++)
        assert_int_equal(pieces.end[i], want[i]);
    assert_int_equal(pieces.n, sizeof want / sizeof *want);
    st_pieces_free(&pieces);
    st_splitter_free(s);
}

/* ---- unigram ---- */

static st_tokenizer *make_unigram(json_t *file)
{
    static const char *tokens[1024];
    static float scores[1024];
    static int32_t types[1024];
    static uint8_t map[1 << 16];
    json_t *all = json_object_get(file, "tokens");
    const size_t n = json_array_size(all);
    assert_in_range(n, 10, 1024);
    for (size_t i = 0; i < n; i++) {
        tokens[i] = json_string_value(json_array_get(all, i));
        scores[i] = (float)json_number_value(json_array_get(json_object_get(file, "scores"), i));
        types[i] = (int32_t)json_integer_value(json_array_get(json_object_get(file, "types"), i));
    }
    const char *hex = json_string_value(json_object_get(file, "charsmap"));
    const size_t n_map = strlen(hex) / 2;
    assert_in_range(n_map, 8, sizeof map);
    for (size_t i = 0; i < n_map; i++) {
        const char digits[3] = {hex[2 * i], hex[2 * i + 1], 0};
        map[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    meta_file m = {0};
    meta_string(&m, "tokenizer.ggml.model", "t5");
    meta_strings(&m, "tokenizer.ggml.tokens", tokens, (int64_t)n);
    meta_floats(&m, "tokenizer.ggml.scores", scores, (int64_t)n);
    meta_ints(&m, "tokenizer.ggml.token_type", types, (int64_t)n);
    meta_bytes(&m, "tokenizer.ggml.precompiled_charsmap", map, (int64_t)n_map);
    meta_bool(&m, "tokenizer.ggml.add_space_prefix", true);
    meta_bool(&m, "tokenizer.ggml.remove_extra_whitespaces", true);
    return must_make(&m);
}

static void unigram_tokens_are_those_of_sentencepiece(void **state)
{
    (void)state;
    json_t *file = open_data("unigram.json"), *text;
    st_tokenizer *t = make_unigram(file);
    size_t i;
    int32_t *ids = NULL;
    int64_t capacity = 0;
    assert_string_equal(st_tokenizer_kind(t), "t5");
    json_array_foreach(json_object_get(file, "texts"), i, text)
    {
        int64_t count = 0;
        json_t *want = json_array_get(json_object_get(file, "ids"), i);
        assert_int_equal(st_tokenizer_encode(t, json_string_value(text), json_string_length(text), false, false, &ids,
                                             &capacity, &count, &err),
                         SOTTO_OK);
        bool same = count == (int64_t)json_array_size(want);
        for (int64_t k = 0; k < count && same; k++)
            same = ids[k] == json_integer_value(json_array_get(want, (size_t)k));
        if (!same)
            fail_msg("other tokens than sentencepiece: \"%s\" %s", json_string_value(text),
                     spelled(t, json_string_value(text), json_string_length(text), false, false));
    }
    /* and the end token */
    assert_string_equal(spelled(t, "", 0, true, true), "</s>");
    st_free(ids);
    st_tokenizer_free(t);
    json_decref(file);
}

static void wrong_maps_are_refused_or_lead_nowhere(void **state)
{
    (void)state;
    const char *const tokens[] = {"<pad>", "</s>", "<unk>", "a", "b"};
    const struct {
        uint8_t bytes[16];
        int n;
        const char *part; /* NULL: taken */
    } maps[] = {
        {{0}, 0, NULL},
        {{1, 0, 0}, 3, "expected strings behind it"},
        {{4, 0, 0, 0, 0, 0, 0, 0}, 8, "expected strings behind it"},
        {{2, 0, 0, 0, 0, 0, 0, 0}, 8, "expected strings behind it"},
        {{0xff, 0xff, 0xff, 0xff, 0}, 5, "expected strings behind it"},
        {{4, 0, 0, 0, 0, 0, 0, 0, 'x'}, 9, "its last string has no end"},
        /* offsets that leave the array, and a value behind the strings */
        {{4, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f, 0}, 9, NULL},
        {{8, 0, 0, 0, 0, 0x84, 1, 0, 0x61, 5, 0, 0, 0, 0}, 14, NULL},
    };
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        meta_file m = {0};
        st_tokenizer *t;
        meta_string(&m, "tokenizer.ggml.model", "t5");
        meta_strings(&m, "tokenizer.ggml.tokens", tokens, 5);
        meta_bytes(&m, "tokenizer.ggml.precompiled_charsmap", maps[i].bytes, maps[i].n);
        const sotto_status status = meta_tokenizer(&m, &t, &err);
        if (maps[i].part)
            expect(status, &err, SOTTO_E_FORMAT, maps[i].part, "map");
        else
            assert_int_equal(status, SOTTO_OK);
        if (t)
            assert_string_equal(spelled(t,
                                        "a\xff"
                                        "b",
                                        3, false, false),
                                "a|<unk>|b");
        st_tokenizer_free(t);
    }
    meta_file m = {0};
    meta_string(&m, "tokenizer.ggml.model", "t5");
    meta_strings(&m, "tokenizer.ggml.tokens", tokens, 5);
    meta_ints(&m, "tokenizer.ggml.precompiled_charsmap", (const int32_t[]){4, 0, 0, 0, 256}, 5);
    st_tokenizer *t;
    expect(meta_tokenizer(&m, &t, &err), &err, SOTTO_E_FORMAT, "element 4 is 256, expected a byte", "byte");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_those_of_the_published_patterns),
        cmocka_unit_test(every_name_has_patterns_that_compile),
        cmocka_unit_test(deepseek_llm_by_hand),
        cmocka_unit_test(unigram_tokens_are_those_of_sentencepiece),
        cmocka_unit_test(wrong_maps_are_refused_or_lead_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
