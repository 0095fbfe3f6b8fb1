/* Vocabulary and byte-pair encoding on small made-up vocabularies: layouts, hostile tokens and texts, joins against a plain
 * quadratic encoder. Real vocabularies: tests/golden/test_tokenizer.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "speech_support.h"

static sotto_error err;

static void published_layouts_are_known_and_others_computed(void **state)
{
    (void)state;
    st_vocab_layout l;
    assert_int_equal(st_vocab_layout_find(51864, 50257, &l, &err), SOTTO_OK);
    assert_true(l.n_text == 50256 && l.n_languages == 99 && !l.multilingual);
    assert_int_equal(st_vocab_layout_find(51865, 51865, &l, &err), SOTTO_OK);
    assert_true(l.n_text == 50257 && l.n_languages == 99 && l.multilingual);
    assert_int_equal(st_vocab_layout_find(51866, 1, &l, &err), SOTTO_OK);
    assert_true(l.n_text == 50257 && l.n_languages == 100 && l.multilingual);
    assert_int_equal(st_vocab_layout_find(300 + 8 + 7 + 1501, 300, &l, &err), SOTTO_OK);
    assert_true(l.n_text == 300 && l.n_languages == 7 && l.multilingual);
    /* B60: numbers of tokens that leave no room for the special ones */
    static const int32_t wrong[] = {0, 1, 2, 50257, 50258, 50363, 50364, 51766, 51867, 999999999, INT32_MAX, -1};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(st_vocab_layout_find(wrong[i], 50257, &l, &err), SOTTO_E_FORMAT);
        assert_non_null(strstr(err.text, "whisper.n_vocab"));
    }
    assert_int_equal(st_vocab_layout_find(2000, 0, &l, &err), SOTTO_E_FORMAT);
}

static void special_tokens_have_their_spelling(void **state)
{
    (void)state;
    st_vocab *v = fake_vocab(2, true);
    assert_int_equal(v->n_vocab, N_TEXT + 8 + 2 + 1501);
    size_t n;
    assert_string_equal(st_vocab_bytes(v, v->eot, &n), "<|endoftext|>");
    assert_int_equal(n, 13);
    assert_string_equal(st_vocab_bytes(v, v->sot, NULL), "<|startoftranscript|>");
    assert_string_equal(st_vocab_bytes(v, v->language + 1, NULL), "<|zh|>");
    assert_string_equal(st_vocab_bytes(v, v->translate, NULL), "<|translate|>");
    assert_string_equal(st_vocab_bytes(v, v->no_timestamps, NULL), "<|notimestamps|>");
    assert_string_equal(st_vocab_bytes(v, v->timestamp, NULL), "<|0.00|>");
    assert_string_equal(st_vocab_bytes(v, v->timestamp + 51, NULL), "<|1.02|>");
    assert_string_equal(st_vocab_bytes(v, v->n_vocab - 1, NULL), "<|30.00|>");
    static const int32_t outside[] = {-1, INT32_MIN, INT32_MAX};
    for (int i = 0; i < 3; i++) {
        assert_string_equal(st_vocab_bytes(v, outside[i], &n), "");
        assert_int_equal(n, 0);
    }
    assert_string_equal(st_vocab_bytes(v, v->n_vocab, &n), "");
    /* a byte that is zero is a token of one byte */
    st_vocab_bytes(v, 0, &n);
    assert_int_equal(n, 1);
    st_vocab_free(v);
}

static void counting_needs_no_room(void **state)
{
    (void)state;
    st_vocab *v = fake_vocab(1, true);
    int32_t ids[2] = {-7, -7};
    int64_t n;
    assert_int_equal(st_vocab_tokenize(v, " a the b", NULL, 0, &n, &err), SOTTO_OK);
    assert_int_equal(n, 5); /* " a", " t", "h", "e", " b": " t" has a lower id than "th" */
    assert_int_equal(st_vocab_tokenize(v, " a the b", ids, 1, &n, &err), SOTTO_OK);
    assert_int_equal(n, 5);
    assert_int_equal(ids[0], WORD_A);
    assert_int_equal(ids[1], -7);
    assert_int_equal(st_vocab_tokenize(v, NULL, ids, 1, &n, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(st_vocab_tokenize(v, "a", NULL, 1, &n, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(st_vocab_tokenize(v, "a", ids, -1, &n, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(st_vocab_tokenize(v, "", ids, 1, &n, &err), SOTTO_OK);
    assert_int_equal(n, 0);
    /* broken UTF-8 counts as U+FFFD, three bytes */
    assert_int_equal(st_vocab_tokenize(v, "\xff", ids, 2, &n, &err), SOTTO_OK);
    assert_int_equal(n, 3);
    assert_int_equal(ids[0], 0xef);
    st_vocab_free(v);
}

static void stripping_is_that_of_python(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", ""},
        {"   ", ""},
        {" a b ", "a b"},
        {"\t\n\v\f\r\x1c\x1d\x1e\x1f x\xc2\x85\xc2\xa0", "x"},
        {"\xe1\x9a\x80\xe2\x80\x80\xe2\x80\x8a\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaf\xe2\x81\x9f\xe3\x80\x80y", "y"},
        {"\xe2\x80\x8b", "\xe2\x80\x8b"}, /* zero width space is none */
        {"\xe1\xa0\x8e", "\xe1\xa0\x8e"}, /* nor is U+180E */
        {"\xff ", "\xff"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].text;
        size_t n = strlen(text);
        st_strip(&text, &n);
        assert_int_equal(n, strlen(cases[i].want));
        assert_memory_equal(text, cases[i].want, n);
    }
}

/* ---- joins ---- */

typedef struct small {
    char blob[4096];
    uint32_t offset[200];
    int n;
} small;

static void add(small *s, const char *bytes, size_t n)
{
    if (s->n == 0)
        s->offset[0] = 0;
    memcpy(s->blob + s->offset[s->n], bytes, n);
    s->offset[s->n + 1] = s->offset[s->n] + (uint32_t)n + 1;
    s->n++;
}

static int32_t rank(const small *s, const char *p, size_t n)
{
    for (int i = 0; i < s->n; i++)
        if (s->offset[i + 1] - s->offset[i] - 1 == n && n > 0 && memcmp(s->blob + s->offset[i], p, n) == 0)
            return i;
    return -1;
}

/* As the definition says: look at all pairs, join the lowest, again. */
static int64_t plain_encode(const small *s, const char *text, size_t n, int32_t *out)
{
    size_t start[300], parts = n;
    int64_t count = 0;
    for (size_t i = 0; i <= n; i++)
        start[i] = i;
    if (rank(s, text, n) >= 0) {
        out[0] = rank(s, text, n);
        return 1;
    }
    for (;;) {
        int32_t best = -1;
        size_t at = 0;
        for (size_t i = 0; i + 1 < parts; i++) {
            const int32_t r = rank(s, text + start[i], start[i + 2] - start[i]);
            if (r >= 0 && (best < 0 || r < best)) {
                best = r;
                at = i;
            }
        }
        if (best < 0)
            break;
        memmove(start + at + 1, start + at + 2, (parts - at - 1) * sizeof *start);
        parts--;
    }
    for (size_t i = 0; i < parts; i++) {
        const int32_t r = rank(s, text + start[i], start[i + 1] - start[i]);
        if (r >= 0)
            out[count++] = r;
    }
    return count;
}

static void random_vocabularies_join_as_defined(void **state)
{
    (void)state;
    const unsigned seed = 20261129;
    printf("seed %u\n", seed);
    srand(seed);
    for (int round = 0; round < 300; round++) {
        small s = {.n = 0};
        /* letters a, b, c (sometimes without c), and words of them in any order; duplicates happen */
        for (int i = 0; i < (round % 5 == 0 ? 2 : 3); i++)
            add(&s, (const char[]){(char)('a' + i)}, 1);
        for (int i = 0; i < 30; i++) {
            char word[8];
            const size_t n = (size_t)(rand() % 6);
            for (size_t k = 0; k < n; k++)
                word[k] = (char)('a' + rand() % 3);
            add(&s, word, n);
        }
        st_bpe *b;
        assert_int_equal(st_bpe_create(s.blob, s.offset, s.n, "[a-z]+", &b, &err), SOTTO_OK);
        for (int k = 0; k < 30; k++) {
            char text[200];
            const size_t n = 1 + (size_t)(rand() % 199);
            for (size_t i = 0; i < n; i++)
                text[i] = (char)('a' + rand() % 3);
            int32_t want_ids[200], *ids = NULL;
            int64_t capacity = 0, count = 0;
            const int64_t expected = plain_encode(&s, text, n, want_ids);
            assert_int_equal(st_bpe_encode(b, text, n, &ids, &capacity, &count, &err), SOTTO_OK);
            assert_int_equal(count, expected);
            assert_memory_equal(ids, want_ids, (size_t)count * sizeof *ids);
            st_free(ids);
        }
        st_bpe_free(b);
    }
}

/* A quarter of a megabyte without a border, of one letter and of white space, with a vocabulary where everything joins. */
static void long_words_take_no_quadratic_time(void **state)
{
    (void)state;
    small s = {.n = 0};
    char word[64];
    memset(word, 'a', sizeof word);
    add(&s, " ", 1);
    for (size_t n = 1; n <= 32; n *= 2)
        add(&s, word, n);
    st_bpe *b;
    assert_int_equal(st_bpe_create(s.blob, s.offset, s.n, ST_BPE_GPT2_PATTERN, &b, &err), SOTTO_OK);
    const size_t n = 1 << 18;
    char *text = malloc(n);
    for (int kind = 0; kind < 3; kind++) {
        memset(text, kind == 1 ? ' ' : 'a', n);
        for (size_t i = 0; kind == 2 && i < n; i++)
            text[i] = i % 3 == 0 ? '\'' : i % 3 == 1 ? '\n' : ' ';
        int32_t *ids = NULL;
        int64_t capacity = 0, count = 0;
        assert_int_equal(st_bpe_encode(b, text, n, &ids, &capacity, &count, &err), SOTTO_OK);
        if (kind < 2)
            assert_int_equal(count, kind == 0 ? (int64_t)(n / 32) : (int64_t)n);
        st_free(ids);
    }
    free(text);
    st_bpe_free(b);
}

/* ---- broken vocabularies ---- */

static sotto_status broken(void *ctx, int64_t id, const char **bytes, size_t *n, sotto_error *e)
{
    static char big[70000];
    const int kind = *(int *)ctx;
    (void)e;
    *bytes = big;
    *n = kind == 0 ? (id == 100 ? 65536 : 1) : 0;
    return kind == 2 && id == 50 ? SOTTO_E_FORMAT : SOTTO_OK;
}

static void broken_tokens_are_refused_or_harmless(void **state)
{
    (void)state;
    const st_vocab_layout layout = {300, 1, true};
    for (int kind = 0; kind < 3; kind++) {
        const st_token_source source = {&kind, broken, 300};
        st_vocab *v;
        const sotto_status status = st_vocab_build(&source, &layout, &v, &err);
        assert_int_equal(status, kind == 1 ? SOTTO_OK : SOTTO_E_FORMAT);
        if (kind == 1) { /* only empty tokens: no text has any */
            int64_t n;
            assert_int_equal(st_vocab_tokenize(v, "the cat", NULL, 0, &n, &err), SOTTO_OK);
            assert_int_equal(n, 0);
            assert_int_equal(v->n_blank, 0);
        } else {
            assert_null(v);
        }
        st_vocab_free(v);
    }
    int kind = 1;
    const st_token_source few = {&kind, broken, 298};
    st_vocab *v;
    assert_int_equal(st_vocab_build(&few, &layout, &v, &err), SOTTO_E_FORMAT);
    assert_non_null(strstr(err.text, "298"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_layouts_are_known_and_others_computed),
        cmocka_unit_test(special_tokens_have_their_spelling),
        cmocka_unit_test(counting_needs_no_room),
        cmocka_unit_test(stripping_is_that_of_python),
        cmocka_unit_test(random_vocabularies_join_as_defined),
        cmocka_unit_test(long_words_take_no_quadratic_time),
        cmocka_unit_test(broken_tokens_are_refused_or_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
