/* Tokenizers of GGUF files on small made-up vocabularies: the three types, control tokens, cutting into words, and files that
 * are wrong. Expected tokens are worked out by hand; real vocabularies: tests/golden/test_tokens.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "tokenizer_support.h"

static sotto_error err;

#define SPELLED(t, text, add, parse) spelled(t, text, sizeof(text) - 1, add, parse)
#define PIECES(t, text) pieces(t, text, sizeof(text) - 1)

static int32_t control_in_brackets(const char *token)
{
    const size_t n = strlen(token);
    return n > 2 && token[0] == '<' && token[n - 1] == '>' ? 3 : n > 2 && token[0] == '[' ? 4 : 1;
}

/* ---- gpt2 ---- */

static void joins_go_by_the_order_of_the_list(void **state)
{
    (void)state;
    meta_file m = {0};
    /* "bc" is joined before "ab" although the token "ab" has the lower number */
    gpt2_file(&m, "gpt-2", (const char *[]){"ab", "bc", "abc", "\u0120a", NULL},
              (const char *[]){"b c", "a b", "\u0120 a", NULL}, NULL);
    st_tokenizer *t = must_make(&m);
    assert_string_equal(st_tokenizer_kind(t), "gpt2");
    assert_null(st_tokenizer_warning(t));
    assert_string_equal(PIECES(t, "abc ab"), "a|bc| |ab"); /* and "ab" before " a" */
    assert_string_equal(PIECES(t, "ab"), "ab");
    assert_string_equal(SPELLED(t, "\n a", false, false), "\u010a|\u0120a");
    assert_int_equal(st_tokenizer_ids(t).newline, 10);
    assert_int_equal(st_tokenizer_find(t, "\u0120a", 3), 259);
    assert_int_equal(st_tokenizer_size(t), 260);
    st_tokenizer_free(t);
}

static void joins_of_what_is_no_token_are_left_out(void **state)
{
    (void)state;
    meta_file m = {0};
    gpt2_file(&m, "gpt-2", (const char *[]){"ab", NULL},
              (const char *[]){"a c", "ab c", "x", "", " ", "  ", "a  b", "a b", "a b", NULL}, NULL);
    st_tokenizer *t = must_make(&m);
    assert_string_equal(PIECES(t, "abac"), "ab|a|c");
    st_tokenizer_free(t);
}

static void whole_words_go_before_joins_where_the_model_wants_it(void **state)
{
    (void)state;
    const char *const tokens[] = {"ab", "bc", "abc", NULL}, *const joins[] = {"a b", NULL};
    meta_file m = {0};
    gpt2_file(&m, "gpt-2", tokens, joins, NULL);
    st_tokenizer *t = must_make(&m);
    assert_string_equal(PIECES(t, "abc"), "ab|c");
    st_tokenizer_free(t);
    gpt2_file(&m, "llama-bpe", tokens, joins, NULL);
    t = must_make(&m);
    assert_string_equal(PIECES(t, "abc abc"), "abc| |ab|c");
    st_tokenizer_free(t);
}

static void bytes_that_are_not_utf8_count_as_one_replacement_each(void **state)
{
    (void)state;
    meta_file m = {0};
    gpt2_file(&m, "gpt-2", NULL, NULL, NULL);
    st_tokenizer *t = must_make(&m);
    /* the three bytes of U+FFFD for each of e4, bd, ff */
    const char *want = "a|\xef|\xbf|\xbd|\xef|\xbf|\xbd|b|\xef|\xbf|\xbd";
    assert_string_equal(PIECES(t, "a\xe4\xbd"
                                  "b\xff"),
                        want);
    assert_string_equal(PIECES(t, ""), "");
    char zero[] = {'a', 0, 'b'};
    assert_string_equal(spelled(t, zero, 3, false, false), "a|\u0100|b");
    st_tokenizer_free(t);
}

static void bytes_without_a_token_are_left_out(void **state)
{
    (void)state;
    meta_file m = {0};
    meta_string(&m, "tokenizer.ggml.model", "gpt2");
    meta_strings(&m, "tokenizer.ggml.tokens", (const char *[]){"a", "c"}, 2);
    meta_strings(&m, "tokenizer.ggml.merges", NULL, 0);
    st_tokenizer *t = must_make(&m);
    assert_string_equal(PIECES(t, "abc\n"), "a|c");
    assert_int_equal(st_tokenizer_ids(t).newline, -1);
    assert_string_equal(st_tokenizer_warning(t), "tokenizer.ggml.pre is missing: texts are cut into words the way that "
                                                 "is called default");
    st_tokenizer_free(t);
}

/* ---- control tokens ---- */

static void control_tokens_are_found_only_where_that_is_asked_for(void **state)
{
    (void)state;
    meta_file m = {0};
    gpt2_file(&m, "gpt-2", (const char *[]){"<s>", "<|im_end|>", "[  ]", "<s><s>", NULL}, NULL, control_in_brackets);
    meta_int(&m, "tokenizer.ggml.bos_token_id", 256);
    meta_int(&m, "tokenizer.ggml.eos_token_id", 257);
    meta_bool(&m, "tokenizer.ggml.add_bos_token", true);
    meta_bool(&m, "tokenizer.ggml.add_eos_token", true);
    st_tokenizer *t = must_make(&m);
    assert_string_equal(SPELLED(t, "a<s>", false, true), "a|<s>");
    assert_string_equal(SPELLED(t, "a<s>", false, false), "a|<|s|>");
    assert_string_equal(SPELLED(t, "a<s>", true, true), "<s>|a|<s>|<|im_end|>");
    assert_string_equal(SPELLED(t, "", true, true), "<s>|<|im_end|>");
    assert_string_equal(SPELLED(t, "", false, true), "");
    /* the longest first, and from the left */
    assert_string_equal(SPELLED(t, "<s><s><s>", false, true), "<s><s>|<s>");
    assert_string_equal(SPELLED(t, "<|im_end|><|im_end", false, true), "<|im_end|>|<|||i|m|_|e|n|d");
    /* user-defined ones always */
    assert_string_equal(SPELLED(t, "x[  ]y", false, false), "x|[  ]|y");
    size_t n;
    assert_string_equal(st_tokenizer_bytes(t, 256, false, &n), "");
    assert_string_equal(st_tokenizer_bytes(t, 256, true, &n), "<s>");
    assert_string_equal(st_tokenizer_bytes(t, 258, false, &n), "[  ]");
    assert_string_equal(st_tokenizer_bytes(t, -1, true, &n), "");
    assert_string_equal(st_tokenizer_bytes(t, 260, true, &n), "");
    assert_true(st_tokenizer_ends(t, 257) && !st_tokenizer_ends(t, 256) && !st_tokenizer_ends(t, -1));
    assert_int_equal(st_tokenizer_ids(t).eot, 257);
    st_tokenizer_free(t);
}

static void content_within_a_frame_has_no_control_tokens(void **state)
{
    (void)state;
    meta_file m = {0};
    gpt2_file(&m, "gpt-2", (const char *[]){"<s>", "</s>", NULL}, NULL, control_in_brackets);
    st_tokenizer *t = must_make(&m);
    const char *text = "<s><s></s></s><s>";
    const st_text_span plain[] = {{3, 10}, {16, 17}};
    int32_t *ids = NULL;
    int64_t capacity = 0, count = 0;
    assert_int_equal(st_tokenizer_encode_framed(t, text, strlen(text), plain, 2, false, &ids, &capacity, &count, &err),
                     SOTTO_OK);
    /* <s> then "<s></s>" as text, </s>, and "<s>" that ends in content is no token */
    assert_int_equal(count, 1 + 7 + 1 + 3);
    assert_true(ids[0] == 256 && ids[8] == 257 && ids[1] == '<' && ids[9] == '<' && ids[11] == '>');
    st_free(ids);
    st_tokenizer_free(t);
}

static void no_text_joins_to_a_control_token(void **state)
{
    (void)state;
    const char *const ways[] = {"gpt-2", "llama-bpe"};
    meta_file m = {0};
    for (int i = 0; i < 2; i++) {
        gpt2_file(&m, ways[i], (const char *[]){"<s", "<s>", "stop", NULL}, (const char *[]){"< s", "<s >", NULL},
                  control_in_brackets);
        st_tokenizer *t = must_make(&m);
        assert_string_equal(SPELLED(t, "<s>", false, true), "<s>");
        assert_string_equal(SPELLED(t, "<s>", false, false), i ? "<s|>" : "<|s|>");
        st_tokenizer_free(t);
    }
    meta_string(&m, "tokenizer.ggml.model", "llama");
    meta_bool(&m, "tokenizer.ggml.add_space_prefix", false);
    meta_strings(&m, "tokenizer.ggml.tokens", (const char *[]){"<unk>", "<s>", "</s>", "<", "s", ">", "<s", "@"}, 8);
    meta_floats(&m, "tokenizer.ggml.scores", (const float[]){0, 0, 0, -1, -2, -3, -4, 0}, 8);
    meta_ints(&m, "tokenizer.ggml.token_type", (const int32_t[]){2, 3, 3, 1, 1, 1, 1, 1}, 8);
    st_tokenizer *t = must_make(&m);
    assert_string_equal(SPELLED(t, "@<s>", false, false), "@|<s|>");
    assert_string_equal(SPELLED(t, "@<s>", false, true), "@|<s>");
    st_tokenizer_free(t);
}

static void white_space_after_special_tokens_of_phi3_is_dropped(void **state)
{
    (void)state;
    meta_file m = {0};
    gpt2_file(&m, "gpt-2", (const char *[]){"<|end|>", "<s>", NULL}, NULL, control_in_brackets);
    meta_string(&m, "general.name", "Phi-3 Mini");
    st_tokenizer *t = must_make(&m);
    assert_string_equal(SPELLED(t, "<|end|> \n a<s> b", false, true), "<|end|>|a|<s>|\u0120|b");
    st_tokenizer_free(t);
}

static void ends_are_known_by_name(void **state)
{
    (void)state;
    meta_file m = {0};
    gpt2_file(&m, "gpt-2",
              (const char *[]){"<|endoftext|>", "<|eot_id|>", "<end_of_turn>", "<|fim_pad|>", "<|start|>", "</s>",
                               "x</s>", NULL},
              NULL, NULL);
    meta_int(&m, "tokenizer.ggml.eos_token_id", 97);
    st_tokenizer *t = must_make(&m);
    size_t n;
    const bool want[] = {true, true, true, true, false, true, false};
    for (int i = 0; i < 7; i++)
        assert_int_equal(st_tokenizer_ends(t, 256 + i), want[i]);
    assert_true(st_tokenizer_ends(t, 97));
    assert_int_equal(st_tokenizer_ids(t).eot, 257);
    /* they are control tokens whatever the file says */
    assert_string_equal(st_tokenizer_bytes(t, 257, false, &n), "");
    assert_string_equal(SPELLED(t, "<|eot_id|>", false, true), "<|eot_id|>");
    st_tokenizer_free(t);
    /* with tool calls "<|end|>" ends only a part */
    gpt2_file(&m, "gpt-4o", (const char *[]){"<|end|>", "<|return|>", "<|call|>", NULL}, NULL, control_in_brackets);
    t = must_make(&m);
    assert_true(!st_tokenizer_ends(t, 256) && st_tokenizer_ends(t, 257) && st_tokenizer_ends(t, 258));
    st_tokenizer_free(t);
}

/* ---- llama ---- */

#define SP "\u2581"

static void llama_file(meta_file *m)
{
    static const char *const tokens[] = {"<unk>", "<s>", "</s>", "<0x0A>", "<0xE4>",  "<0xBD>",
                                         SP,      "a",   "b",    "c",      "ab",      "bc",
                                         SP "a",  SP SP, "\n",   "<x>",    SP "abcd", "\u4f60"};
    static const int32_t kinds[] = {2, 3, 3, 6, 6, 6, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4, 1, 1};
    static const float scores[] = {0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -3, -2, -4, -5, -1, 0, -9, -1};
    meta_string(m, "tokenizer.ggml.model", "llama");
    meta_strings(m, "tokenizer.ggml.tokens", tokens, sizeof tokens / sizeof *tokens);
    meta_ints(m, "tokenizer.ggml.token_type", kinds, sizeof kinds / sizeof *kinds);
    meta_floats(m, "tokenizer.ggml.scores", scores, sizeof scores / sizeof *scores);
}

static void pairs_join_by_score_and_bytes_are_the_rest(void **state)
{
    (void)state;
    meta_file m = {0};
    llama_file(&m);
    st_tokenizer *t = must_make(&m);
    const st_token_ids ids = st_tokenizer_ids(t);
    assert_true(ids.bos == 1 && ids.eos == 2 && ids.unk == 0 && ids.pad == -1 && ids.newline == 3);
    assert_true(ids.add_bos && !ids.add_eos && ids.add_space_prefix);
    /* "bc" (-2) before "ab" (-3) before " a" (-4) */
    assert_string_equal(SPELLED(t, "abc", false, false), SP "a|bc");
    assert_string_equal(SPELLED(t, "ab", true, false), "<s>|" SP "|ab");
    assert_string_equal(SPELLED(t, "  a", false, false), SP SP "|" SP "a");
    assert_string_equal(SPELLED(t, "\n", false, false), SP "|\n");
    /* bytes of what has no token, and the unknown token for a byte that has none */
    assert_string_equal(SPELLED(t, "\xe4\xbd", false, false), SP "|<0xE4>|<0xBD>");
    assert_string_equal(SPELLED(t, "\xe4\xbd\xa0z", false, false), SP "|\u4f60|<unk>");
    /* a space comes before every text that follows a token found in the raw text */
    assert_string_equal(SPELLED(t, "a<x>b<s>", false, true), SP "a|<x>|" SP "|b|<s>");
    size_t n;
    assert_string_equal(st_tokenizer_bytes(t, 3, false, &n), "\n");
    assert_string_equal(st_tokenizer_bytes(t, 16, false, &n), " abcd");
    assert_int_equal((unsigned char)st_tokenizer_bytes(t, 4, false, &n)[0], 0xe4);
    assert_string_equal(st_tokenizer_bytes(t, 15, false, &n), "<x>");
    assert_string_equal(st_tokenizer_bytes(t, 0, false, &n), "");
    st_tokenizer_free(t);
    llama_file(&m);
    meta_bool(&m, "tokenizer.ggml.add_space_prefix", false);
    t = must_make(&m);
    assert_string_equal(SPELLED(t, "abc", false, false), "a|bc");
    assert_string_equal(SPELLED(t, "", false, false), "");
    st_tokenizer_free(t);
}

static void equal_scores_join_from_the_left_and_negative_zero_is_zero(void **state)
{
    (void)state;
    meta_file m = {0};
    meta_string(&m, "tokenizer.ggml.model", "llama");
    meta_bool(&m, "tokenizer.ggml.add_space_prefix", false);
    meta_strings(&m, "tokenizer.ggml.tokens", (const char *[]){"<unk>", "<s>", "</s>", "a", "aa", "b", "ab", "bb"}, 8);
    meta_floats(&m, "tokenizer.ggml.scores", (const float[]){0, 0, 0, 0, 0.0f, 0, -0.0f, 1e-45f}, 8);
    st_tokenizer *t = must_make(&m);
    assert_string_equal(SPELLED(t, "aaaaa", false, false), "aa|aa|a");
    assert_string_equal(SPELLED(t, "aab", false, false), "aa|b");
    assert_string_equal(SPELLED(t, "abb", false, false), "a|bb");
    st_tokenizer_free(t);
}

/* ---- long texts ---- */

static void long_runs_take_no_long_time(void **state)
{
    (void)state;
    enum { N = 1 << 18 };
    char *text = malloc(N);
    assert_non_null(text);
    meta_file m = {0};
    const char *const tokens[] = {"aa", "aaaa", "aaaaaaaa", "\u0120\u0120", "\u0120\u0120\u0120\u0120", NULL};
    const char *const joins[] = {"a a", "aa aa", "aaaa aaaa", "\u0120 \u0120", "\u0120\u0120 \u0120\u0120", NULL};
    const char *const ways[] = {"gpt-2",        "llama-bpe",   "tekken",  "gpt-4o",
                                "deepseek-llm", "deepseek-v3", "default", "exaone-moe"};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        gpt2_file(&m, ways[w], tokens, joins, NULL);
        st_tokenizer *t = must_make(&m);
        for (const char *c = "a \nA"; *c; c++) {
            memset(text, *c, N);
            text[N - 1] = 'x';
            int32_t *ids = NULL;
            int64_t capacity = 0, count = 0;
            if (st_tokenizer_encode(t, text, N, true, true, &ids, &capacity, &count, &err) != SOTTO_OK)
                fail_msg("%s, a run of \"%c\": %s", ways[w], *c, err.text);
            assert_true(count > N / 16);
            st_free(ids);
        }
        st_tokenizer_free(t);
    }
    free(text);
}

static void texts_that_are_too_long_are_refused(void **state)
{
    (void)state;
    meta_file m = {0};
    gpt2_file(&m, "gpt-2", NULL, NULL, NULL);
    st_tokenizer *t = must_make(&m);
    int32_t *ids = NULL;
    int64_t capacity = 0, count = 7;
    expect(st_tokenizer_encode(t, "", (size_t)1 << 29, true, true, &ids, &capacity, &count, &err), &err,
           SOTTO_E_ARGUMENT, "a text of 536870912 bytes", "length");
    assert_int_equal(count, 7);
    st_tokenizer_free(t);
}

/* ---- files that are wrong ---- */

static void refused(meta_file *m, sotto_status want, const char *part)
{
    st_tokenizer *t;
    const sotto_status got = meta_tokenizer(m, &t, &err);
    assert_null(t);
    expect(got, &err, want, part, part);
}

static void wrong_files_are_refused(void **state)
{
    (void)state;
    const char *const ab[] = {"a", "b"};
    meta_file m = {0};
    meta_string(&m, "general.architecture", "llama");
    refused(&m, SOTTO_E_FORMAT, "tokenizer.ggml.model is missing");
    meta_string(&m, "tokenizer.ggml.model", "rwkv");
    refused(&m, SOTTO_E_UNSUPPORTED, "tokenizer.ggml.model is \"rwkv\", expected gpt2, llama or t5");
    meta_int(&m, "tokenizer.ggml.model", 3);
    refused(&m, SOTTO_E_FORMAT, "tokenizer.ggml.model");
    meta_string(&m, "tokenizer.ggml.model", "llama");
    refused(&m, SOTTO_E_FORMAT, "tokenizer.ggml.tokens is missing");
    meta_string(&m, "tokenizer.ggml.model", "llama");
    meta_ints(&m, "tokenizer.ggml.tokens", (const int32_t[]){1}, 1);
    refused(&m, SOTTO_E_FORMAT, "tokenizer.ggml.tokens: expected an array of strings");
    meta_string(&m, "tokenizer.ggml.model", "llama");
    meta_strings(&m, "tokenizer.ggml.tokens", ab, 0);
    refused(&m, SOTTO_E_FORMAT, "no tokens, expected at least one");
    meta_string(&m, "tokenizer.ggml.model", "llama");
    meta_strings(&m, "tokenizer.ggml.tokens", (const char *[]){"a", "b", "a"}, 3);
    refused(&m, SOTTO_E_FORMAT, "tokens 0 and 2 are both \"a\"");
    meta_string(&m, "tokenizer.ggml.model", "llama");
    meta_strings(&m, "tokenizer.ggml.tokens", ab, 2);
    meta_floats(&m, "tokenizer.ggml.scores", (const float[]){1}, 1);
    refused(&m, SOTTO_E_FORMAT, "tokenizer.ggml.scores: 1 entries for 2 tokens");
    meta_string(&m, "tokenizer.ggml.model", "llama");
    meta_strings(&m, "tokenizer.ggml.tokens", ab, 2);
    meta_floats(&m, "tokenizer.ggml.scores", (const float[]){1, 0.0f / 0.0f}, 2);
    refused(&m, SOTTO_E_FORMAT, "the score of token 1 is not a number");
    meta_string(&m, "tokenizer.ggml.model", "llama");
    meta_strings(&m, "tokenizer.ggml.tokens", ab, 2);
    meta_strings(&m, "tokenizer.ggml.scores", ab, 2);
    refused(&m, SOTTO_E_FORMAT, "tokenizer.ggml.scores");
    meta_string(&m, "tokenizer.ggml.model", "llama");
    meta_strings(&m, "tokenizer.ggml.tokens", ab, 2);
    meta_ints(&m, "tokenizer.ggml.token_type", (const int32_t[]){1}, 1);
    refused(&m, SOTTO_E_FORMAT, "tokenizer.ggml.token_type: 1 entries for 2 tokens");
    meta_string(&m, "tokenizer.ggml.model", "gpt2");
    meta_strings(&m, "tokenizer.ggml.tokens", ab, 2);
    refused(&m, SOTTO_E_FORMAT, "tokenizer.ggml.merges is missing");
    gpt2_file(&m, "some-future-way", NULL, NULL, NULL);
    refused(&m, SOTTO_E_UNSUPPORTED, "tokenizer.ggml.pre is \"some-future-way\"");
    gpt2_file(&m, "gpt-2", NULL, NULL, NULL);
    meta_string(&m, "tokenizer.ggml.bos_token_id", "a");
    refused(&m, SOTTO_E_FORMAT, "tokenizer.ggml.bos_token_id");
}

static void doubtful_files_are_taken(void **state)
{
    (void)state;
    meta_file m = {0};
    meta_string(&m, "tokenizer.ggml.model", "llama");
    meta_strings(&m, "tokenizer.ggml.tokens", (const char *[]){"a", "", "b"}, 3);
    meta_ints(&m, "tokenizer.ggml.token_type", (const int32_t[]){99, -1, 5, 7}, 4);
    meta_ints(&m, "tokenizer.ggml.scores", (const int32_t[]){1, 2, 3}, 3);
    meta_int(&m, "tokenizer.ggml.eos_token_id", 4000000000);
    meta_int(&m, "tokenizer.ggml.padding_token_id", 2);
    st_tokenizer *t = must_make(&m);
    assert_string_equal(st_tokenizer_warning(t),
                        "tokenizer.ggml.eos_token_id is 4000000000 of 3 tokens and was not taken");
    const st_token_ids ids = st_tokenizer_ids(t);
    assert_true(ids.bos == 1 && ids.eos == 2 && ids.unk == 0 && ids.pad == 2 && ids.newline == 2);
    assert_int_equal(st_tokenizer_find(t, "[EMPTY_1]", 9), 1);
    size_t n;
    assert_string_equal(st_tokenizer_bytes(t, 0, true, &n), "");
    st_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_go_by_the_order_of_the_list),
        cmocka_unit_test(joins_of_what_is_no_token_are_left_out),
        cmocka_unit_test(whole_words_go_before_joins_where_the_model_wants_it),
        cmocka_unit_test(bytes_that_are_not_utf8_count_as_one_replacement_each),
        cmocka_unit_test(bytes_without_a_token_are_left_out),
        cmocka_unit_test(control_tokens_are_found_only_where_that_is_asked_for),
        cmocka_unit_test(content_within_a_frame_has_no_control_tokens),
        cmocka_unit_test(no_text_joins_to_a_control_token),
        cmocka_unit_test(white_space_after_special_tokens_of_phi3_is_dropped),
        cmocka_unit_test(ends_are_known_by_name),
        cmocka_unit_test(pairs_join_by_score_and_bytes_are_the_rest),
        cmocka_unit_test(equal_scores_join_from_the_left_and_negative_zero_is_zero),
        cmocka_unit_test(long_runs_take_no_long_time),
        cmocka_unit_test(texts_that_are_too_long_are_refused),
        cmocka_unit_test(wrong_files_are_refused),
        cmocka_unit_test(doubtful_files_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
