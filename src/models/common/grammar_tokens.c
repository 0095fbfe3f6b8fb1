#include "models/common/grammar_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"

/* ---- building ---- */

typedef struct text {
    uint64_t key; /* the first 8 bytes, as a number that compares alike */
    const char *bytes;
    size_t n;
    int32_t token;
} text;

static int by_bytes(const void *a, const void *b)
{
    const text *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    const int order = memcmp(x->bytes, y->bytes, x->n < y->n ? x->n : y->n);
    if (order != 0 || x->n != y->n)
        return order != 0 ? order : x->n < y->n ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

static uint64_t key_of(const char *bytes, size_t n)
{
    uint64_t key = 0;
    for (size_t i = 0; i < 8; i++)
        key = key << 8 | (i < n ? (uint8_t)bytes[i] : 0);
    return key;
}

/* Sorts by keys a byte at a time, from the last one, then the few of equal keys by what follows. */
static void sort_texts(text *texts, text *other, int64_t n)
{
    for (int shift = 0; shift < 64; shift += 8) {
        int64_t start[256] = {0}, sum = 0;
        for (int64_t i = 0; i < n; i++)
            start[(texts[i].key >> shift) & 255]++;
        for (int b = 0; b < 256; b++) {
            const int64_t count = start[b];
            start[b] = sum;
            sum += count;
        }
        for (int64_t i = 0; i < n; i++)
            other[start[(texts[i].key >> shift) & 255]++] = texts[i];
        text *const t = texts;
        texts = other;
        other = t;
    } /* after an even number of rounds all is where it was */
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && texts[end].key == texts[i].key;)
            end++;
        if (end > i + 1)
            qsort(texts + i, (size_t)(end - i), sizeof *texts, by_bytes);
    }
}

static size_t common(const text *a, const text *b)
{
    size_t n = 0;
    while (n < a->n && n < b->n && a->bytes[n] == b->bytes[n])
        n++;
    return n;
}

static sotto_status no_memory(uint64_t bytes, sotto_error *err)
{
    return st_fail_memory(err, bytes, "the texts of a vocabulary");
}

static int64_t list_texts(const st_token_texts *source, st_token_tree *t, text *texts)
{
    int64_t n_texts = 0;
    for (int32_t id = 0; id < source->n_vocab; id++) {
        if (source->ends(source->user, id)) {
            t->ending[t->n_ending++] = id;
            continue;
        }
        size_t n = 0;
        const char *bytes = source->bytes(source->user, id, &n);
        if (bytes && n > 0)
            texts[n_texts++] = (text){key_of(bytes, n), bytes, n, id};
    }
    return n_texts;
}

static sotto_status allocate_nodes(st_token_tree *t, const text *texts, int64_t n_texts, sotto_error *err)
{
    int64_t n = 0;
    for (int64_t i = 0; i < n_texts; i++) {
        const size_t added = texts[i].n - (i > 0 ? common(&texts[i - 1], &texts[i]) : 0);
        if (added > INT32_MAX || n + (int64_t)added > INT32_MAX - 1)
            return st_fail(err, SOTTO_E_UNSUPPORTED, "a vocabulary of more than %d bytes", INT32_MAX);
        n += (int64_t)added;
        t->deepest = (int64_t)texts[i].n > t->deepest ? (int64_t)texts[i].n : t->deepest;
    }
    const size_t count = (size_t)n;
    t->byte = st_alloc(count, sizeof *t->byte);
    t->depth = st_alloc(count, sizeof *t->depth);
    t->skip = st_alloc(count, sizeof *t->skip);
    t->first = st_alloc(count + 1, sizeof *t->first);
    if (!t->byte || !t->depth || !t->skip || !t->first)
        return no_memory(count * 13, err);
    return SOTTO_OK;
}

/* path[d]: the node at depth d above the one being made. */
static void build_nodes(st_token_tree *t, const text *texts, int64_t n_texts, int32_t *path)
{
    size_t open = 0;
    int32_t n = 0;
    for (int64_t i = 0; i < n_texts; i++) {
        const size_t shared = i > 0 ? common(&texts[i - 1], &texts[i]) : 0;
        for (; open > shared; open--)
            t->skip[path[open]] = n;
        for (; open < texts[i].n; n++) {
            t->byte[n] = (uint8_t)texts[i].bytes[open++];
            t->depth[n] = (int32_t)open;
            t->first[n] = (int32_t)i;
            path[open] = n;
        }
        t->tokens[i] = texts[i].token;
    }
    for (; open > 0; open--)
        t->skip[path[open]] = n;
    t->n_nodes = n;
    t->first[n] = (int32_t)n_texts;
}

static sotto_status build(const st_token_texts *source, st_token_tree *t, sotto_error *err)
{
    const size_t n_vocab = (size_t)source->n_vocab;
    int64_t n_texts = 0;
    t->n_vocab = source->n_vocab;
    t->tokens = st_alloc(n_vocab, sizeof *t->tokens);
    t->ending = st_alloc(n_vocab, sizeof *t->ending);
    text *texts = st_alloc(2 * n_vocab, sizeof *texts);
    int32_t *path = NULL;
    sotto_status status = t->tokens && t->ending && texts ? SOTTO_OK : no_memory(2 * n_vocab * sizeof *texts, err);
    if (status == SOTTO_OK) {
        n_texts = list_texts(source, t, texts);
        sort_texts(texts, texts + n_texts, n_texts);
        status = allocate_nodes(t, texts, n_texts, err);
    }
    if (status == SOTTO_OK) {
        path = st_alloc((size_t)t->deepest + 1, sizeof *path);
        if (path)
            build_nodes(t, texts, n_texts, path);
        else
            status = no_memory((uint64_t)t->deepest * sizeof *path, err);
    }
    st_free(path);
    st_free(texts);
    return status;
}

sotto_status st_token_tree_create(const st_token_texts *texts, st_token_tree **out, sotto_error *err)
{
    *out = NULL;
    st_token_tree *t = st_calloc(1, sizeof *t);
    if (!t)
        return no_memory(sizeof *t, err);
    const sotto_status status = build(texts, t, err);
    if (status != SOTTO_OK) {
        st_token_tree_free(t);
        return status;
    }
    *out = t;
    return SOTTO_OK;
}

void st_token_tree_free(st_token_tree *t)
{
    if (!t)
        return;
    void *const blocks[] = {t->tokens, t->byte, t->depth, t->skip, t->first, t->ending};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        st_free(blocks[i]);
    st_free(t);
}

/* ---- going over it ---- */

static void set_bit(uint32_t *mask, int32_t token)
{
    mask[token / 32] |= 1u << (token % 32);
}

sotto_status st_token_tree_mask(const st_token_tree *t, st_matcher *m, st_grammar_place at, uint32_t *mask,
                                sotto_error *err)
{
    memset(mask, 0, ((size_t)t->n_vocab + 31) / 32 * sizeof *mask);
    if (st_matcher_may_end(m, at))
        for (int32_t i = 0; i < t->n_ending; i++)
            set_bit(mask, t->ending[i]);
    st_grammar_place *places = st_alloc((size_t)t->deepest + 1, sizeof *places); /* [depth] of the node above */
    if (!places)
        return no_memory((uint64_t)t->deepest * sizeof *places, err);
    places[0] = at;
    sotto_status status = SOTTO_OK;
    for (int32_t i = 0; i < t->n_nodes && status == SOTTO_OK;) {
        st_grammar_place *place = &places[t->depth[i]];
        *place = place[-1];
        status = st_matcher_step(m, place, t->byte[i], err);
        if (place->state < 0) {
            i = t->skip[i];
            continue;
        }
        for (int32_t k = t->first[i]; k < t->first[i + 1]; k++)
            set_bit(mask, t->tokens[k]);
        i++;
    }
    st_free(places);
    return status;
}
