/* Tokens to text that can be shown: whole characters, stop strings, the space before a text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "models/common/text_stream.h"
#include "tokenizer_support.h"

static sotto_error err;
static st_tokenizer *bytes; /* token i < 256 is the byte i */

static int make(void **state)
{
    (void)state;
    meta_file m = {0};
    gpt2_file(&m, "gpt-2", (const char *[]){"<|im_end|>", "ab", NULL}, NULL, NULL);
    bytes = must_make(&m);
    return 0;
}

static int destroy(void **state)
{
    (void)state;
    st_tokenizer_free(bytes);
    return 0;
}

static st_text_stream *stream(const char *const *stop, int n)
{
    st_text_stream *s;
    const st_text_stream_options o = {.stop = stop, .n_stop = n};
    if (st_text_stream_create(bytes, &o, &s, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    return s;
}

/* What each byte of `in` shows, '|' after each, and what the end shows. */
static const char *shown(st_text_stream *s, const char *in, size_t n)
{
    static char out[1 << 12];
    size_t at = 0, length;
    const char *text;
    for (size_t i = 0; i <= n; i++) {
        const sotto_status status = i < n ? st_text_stream_push(s, (uint8_t)in[i], &text, &length, &err)
                                          : st_text_stream_finish(s, &text, &length, &err);
        assert_int_equal(status, SOTTO_OK);
        assert_int_equal(strlen(text), length);
        assert_true(st_utf8_valid(text, length));
        at += (size_t)snprintf(out + at, sizeof out - at, "%s%s", text, i < n ? "|" : "");
    }
    return out;
}

#define SHOWN(s, text) shown(s, text, sizeof(text) - 1)

static void characters_are_shown_whole(void **state)
{
    (void)state;
    st_text_stream *s = stream(NULL, 0);
    assert_string_equal(SHOWN(s, "a\u00e9\u20ac"), "a||\u00e9|||\u20ac|");
    assert_string_equal(SHOWN(s, "\xf0\x9f\x98\x80!"), "|||\U0001f600|!|");
    /* invalid bytes show as soon as they cannot become anything */
    assert_string_equal(SHOWN(s, "\xff"), "\ufffd|");
    assert_string_equal(SHOWN(s, "\xe2x"), "|\ufffdx|");
    assert_string_equal(SHOWN(s, "\xe2\x82\xe2\x82\xac"), "||\ufffd||\u20ac|");
    /* and what is incomplete at the end */
    assert_string_equal(SHOWN(s, "a\xf0\x9f\x98"), "a||||\ufffd");
    assert_string_equal(SHOWN(s, ""), "");
    assert_string_equal(SHOWN(s, "b"), "b|");
    st_text_stream_free(s);
}

static void a_whole_text_is_its_repaired_form(void **state)
{
    (void)state;
    unsigned seed = 7;
    printf("seed %u\n", seed);
    st_text_stream *s = stream(NULL, 0);
    for (int round = 0; round < 2000; round++) {
        char in[24], want[3 * sizeof in + 1], got[3 * sizeof in + 1];
        static const char often[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xff\xed\xa0";
        size_t n = 0, at = 0, length;
        const char *text;
        for (; n < sizeof in; n++)
            in[n] = often[(seed = seed * 1103515245u + 12345u) >> 16 & 0xffff ? (seed >> 16) % (sizeof often - 1) : 0];
        st_utf8_repair(in, n, want);
        for (size_t i = 0; i <= n; i++) {
            assert_int_equal(i < n ? st_text_stream_push(s, (uint8_t)in[i], &text, &length, &err)
                                   : st_text_stream_finish(s, &text, &length, &err),
                             SOTTO_OK);
            memcpy(got + at, text, length + 1);
            at += length;
        }
        assert_string_equal(got, want);
    }
    st_text_stream_free(s);
}

static void what_may_become_a_stop_string_is_held_back(void **state)
{
    (void)state;
    const char *const stop[] = {"User:", "\n\n", "Us!"};
    st_text_stream *s = stream(stop, 3);
    assert_string_equal(SHOWN(s, "a Use b"), "a| ||||Use |b|");
    assert_int_equal(st_text_stream_stopped(s), -1);
    assert_string_equal(SHOWN(s, "a User: b"), "a| ||||||||");
    assert_int_equal(st_text_stream_stopped(s), 0);
    assert_string_equal(SHOWN(s, "UUs!x"), "|U||||");
    assert_int_equal(st_text_stream_stopped(s), 2);
    assert_string_equal(SHOWN(s, "x\ny\n"), "x||\ny||\n");
    assert_int_equal(st_text_stream_stopped(s), -1);
    assert_string_equal(SHOWN(s, "\n\n\n"), "|||");
    assert_int_equal(st_text_stream_stopped(s), 1);
    /* a character that is not complete when the stop string is met belongs to nothing */
    assert_string_equal(SHOWN(s, "Us!\xe2"), "||||");
    st_text_stream_free(s);
}

static void stop_strings_within_a_token_and_across_tokens(void **state)
{
    (void)state;
    const char *const stop[] = {"b"};
    st_text_stream *s = stream(stop, 1);
    const char *text;
    size_t n;
    assert_int_equal(st_text_stream_push(s, 257, &text, &n, &err), SOTTO_OK);
    assert_string_equal(text, "a");
    assert_int_equal(st_text_stream_stopped(s), 0);
    assert_int_equal(st_text_stream_push(s, 257, &text, &n, &err), SOTTO_OK);
    assert_string_equal(text, "");
    assert_int_equal(st_text_stream_finish(s, &text, &n, &err), SOTTO_OK);
    assert_string_equal(text, "");
    assert_int_equal(st_text_stream_stopped(s), 0);
    assert_int_equal(st_text_stream_push(s, 'c', &text, &n, &err), SOTTO_OK);
    assert_string_equal(text, "c");
    assert_int_equal(st_text_stream_stopped(s), -1);
    st_text_stream_free(s);
}

static void wrong_stop_strings_are_refused(void **state)
{
    (void)state;
    st_text_stream *s;
    const char *const stop[] = {"a", "", NULL, "\xff"};
    for (int i = 1; i < 4; i++) {
        const st_text_stream_options o = {.stop = stop + i, .n_stop = 1};
        expect(st_text_stream_create(bytes, &o, &s, &err), &err, SOTTO_E_ARGUMENT, "stop string 1 is ", "stop");
        assert_null(s);
    }
}

static void control_tokens_show_only_when_asked_for(void **state)
{
    (void)state;
    for (int special = 0; special < 2; special++) {
        st_text_stream *s;
        const st_text_stream_options o = {.special = special};
        const char *text;
        size_t n;
        assert_int_equal(st_text_stream_create(bytes, &o, &s, &err), SOTTO_OK);
        assert_int_equal(st_text_stream_push(s, 256, &text, &n, &err), SOTTO_OK);
        assert_string_equal(text, special ? "<|im_end|>" : "");
        assert_int_equal(st_text_stream_push(s, 100000, &text, &n, &err), SOTTO_OK);
        assert_string_equal(text, "");
        st_text_stream_free(s);
    }
}

static void the_space_before_a_whole_text_is_taken_away(void **state)
{
    (void)state;
    meta_file m = {0};
    meta_string(&m, "tokenizer.ggml.model", "llama");
    meta_strings(&m, "tokenizer.ggml.tokens", (const char *[]){"<unk>", "<s>", "</s>", "\u2581", "\u2581a", "a"}, 6);
    st_tokenizer *t = must_make(&m);
    for (int whole = 0; whole < 2; whole++) {
        st_text_stream *s;
        const st_text_stream_options o = {.whole = whole};
        const char *text;
        size_t n;
        assert_int_equal(st_text_stream_create(t, &o, &s, &err), SOTTO_OK);
        for (int again = 0; again < 2; again++) {
            assert_int_equal(st_text_stream_push(s, 4, &text, &n, &err), SOTTO_OK);
            assert_string_equal(text, whole ? "a" : " a");
            assert_int_equal(st_text_stream_push(s, 4, &text, &n, &err), SOTTO_OK);
            assert_string_equal(text, " a");
            assert_int_equal(st_text_stream_finish(s, &text, &n, &err), SOTTO_OK);
        }
        assert_int_equal(st_text_stream_push(s, 3, &text, &n, &err), SOTTO_OK);
        assert_string_equal(text, whole ? "" : " ");
        assert_int_equal(st_text_stream_push(s, 3, &text, &n, &err), SOTTO_OK);
        assert_string_equal(text, " ");
        st_text_stream_free(s);
    }
    st_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_are_shown_whole),
        cmocka_unit_test(a_whole_text_is_its_repaired_form),
        cmocka_unit_test(what_may_become_a_stop_string_is_held_back),
        cmocka_unit_test(stop_strings_within_a_token_and_across_tokens),
        cmocka_unit_test(wrong_stop_strings_are_refused),
        cmocka_unit_test(control_tokens_show_only_when_asked_for),
        cmocka_unit_test(the_space_before_a_whole_text_is_taken_away),
    };
    return cmocka_run_group_tests(tests, make, destroy);
}
