/* A grammar and a text from any bytes: up to the first byte 0 it is GBNF, behind it the text. What must hold: a matcher never
 * fails but for too much ambiguity; a place is dead for good; places that were moved to another matcher go on alike; and the
 * mask of the vocabulary of all bytes and of the text's pieces says what walking says. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "models/common/grammar_filter.h"

enum { MAX_GRAMMAR = 2000, MAX_TEXT = 200, N_PIECES = 60 };

typedef struct pieces {
    const char *text;
    size_t n;
    char byte[256];
} pieces;

/* Tokens 0 to 255 are the bytes, 256 ends the text, then pieces of it from every place. */
static const char *bytes_of(void *user, int32_t id, size_t *n)
{
    pieces *p = user;
    if (id < 256) {
        p->byte[id] = (char)id;
        *n = 1;
        return &p->byte[id];
    }
    const size_t at = (size_t)(id - 257) * 3, length = 1 + (size_t)id % 5;
    *n = at < p->n ? (at + length <= p->n ? length : p->n - at) : 0;
    return p->text + (at < p->n ? at : 0);
}

static bool ends(void *user, int32_t id)
{
    (void)user;
    return id == 256;
}

static void check_mask(const sotto_grammar *g, pieces *p, const char *text, size_t n)
{
    const st_token_texts texts = {bytes_of, ends, p, 257 + N_PIECES};
    st_grammar_filter *f, *clone;
    sotto_error err;
    if (st_grammar_filter_create(g, &texts, NULL, &f, &err) != SOTTO_OK)
        return;
    st_grammar_place at = st_grammar_filter_start(f);
    for (size_t i = 0; i < n && i < 12; i++) {
        const uint32_t *mask;
        if (st_grammar_filter_mask(f, at, &mask, &err) != SOTTO_OK)
            break;
        for (int32_t t = 0; t < texts.n_vocab; t += i == 0 ? 1 : 7) {
            bool allowed;
            if (st_grammar_filter_allows(f, at, t, &allowed, &err) == SOTTO_OK)
                FUZZ_CHECK(allowed == (mask[t / 32] >> (t % 32) & 1));
        }
        st_grammar_place moved = at;
        if (st_grammar_filter_clone(f, &moved, &clone, &err) == SOTTO_OK) {
            FUZZ_CHECK(st_grammar_filter_may_end(clone, moved) == st_grammar_filter_may_end(f, at));
            st_grammar_filter_free(f);
            f = clone;
            at = moved;
        }
        if (st_grammar_filter_accept(f, &at, (uint8_t)text[i], &err) != SOTTO_OK || at.state < 0)
            break;
    }
    st_grammar_filter_free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    const size_t n = zero ? (size_t)(zero - data) : size;
    const char *text = zero ? (const char *)zero + 1 : "";
    size_t n_text = zero ? size - n - 1 : 0;
    sotto_grammar *g;
    sotto_error err = {0};
    if (n > MAX_GRAMMAR)
        return 0;
    n_text = n_text < MAX_TEXT ? n_text : MAX_TEXT;
    const sotto_status status = sotto_grammar_create((const char *)data, n, NULL, &g, &err);
    if (status != SOTTO_OK) {
        FUZZ_CHECK(!g && (status == SOTTO_E_FORMAT || status == SOTTO_E_NOT_FOUND) && err.text[0]);
        return 0;
    }
    size_t fits, part;
    bool whole, end;
    const sotto_status matched = sotto_grammar_match(g, text, n_text, &fits, &whole, &err);
    FUZZ_CHECK(matched == SOTTO_OK || matched == SOTTO_E_UNSUPPORTED);
    if (matched == SOTTO_OK) {
        FUZZ_CHECK(fits <= n_text && (!whole || fits == n_text));
        FUZZ_CHECK(sotto_grammar_match(g, text, fits / 2, &part, &end, &err) == SOTTO_OK && part == fits / 2);
        pieces p = {.text = text, .n = n_text};
        check_mask(g, &p, text, n_text);
    }
    sotto_grammar_free(g);
    return 0;
}
