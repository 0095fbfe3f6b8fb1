#include "models/common/bpe.h"

#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/utf8.h"

/* Far above what a text needs (the pattern hardly backtracks); a hostile one then fails instead of taking for ever. */
enum { MATCH_LIMIT = 10000000, HEAP_LIMIT_KIB = 65536 };

struct st_bpe {
    const char *blob;
    const uint32_t *offset;
    int32_t n_tokens;
    size_t longest;
    uint32_t *slots; /* id + 1 by hash, 0 = empty */
    uint32_t mask;
    pcre2_general_context *general;
    pcre2_code *code;
    pcre2_match_context *match;
};

static void *pcre_alloc(size_t n, void *user)
{
    (void)user;
    return st_alloc(1, n);
}

static void pcre_free(void *block, void *user)
{
    (void)user;
    st_free(block);
}

static uint32_t hash_bytes(const char *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (uint8_t)p[i]) * 0x100000001b3u;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    return (uint32_t)(h >> 32);
}

static size_t token_length(const st_bpe *b, uint32_t id)
{
    return b->offset[id + 1] - b->offset[id] - 1;
}

int32_t st_bpe_find(const st_bpe *b, const char *bytes, size_t n)
{
    if (n == 0 || n > b->longest)
        return -1;
    for (uint32_t i = hash_bytes(bytes, n) & b->mask; b->slots[i]; i = (i + 1) & b->mask) {
        const uint32_t id = b->slots[i] - 1;
        if (token_length(b, id) == n && memcmp(b->blob + b->offset[id], bytes, n) == 0)
            return (int32_t)id;
    }
    return -1;
}

static sotto_status build_slots(st_bpe *b, sotto_error *err)
{
    uint32_t n_slots = 16;
    while (n_slots < 2u * (uint32_t)b->n_tokens)
        n_slots *= 2;
    b->mask = n_slots - 1;
    b->slots = st_calloc(n_slots, sizeof *b->slots);
    if (!b->slots)
        return st_fail_memory(err, n_slots * sizeof *b->slots, "the table of tokens");
    for (uint32_t id = 0; id < (uint32_t)b->n_tokens; id++)
        if (token_length(b, id) > b->longest)
            b->longest = token_length(b, id);
    for (uint32_t id = 0; id < (uint32_t)b->n_tokens; id++) {
        const size_t n = token_length(b, id);
        const char *bytes = b->blob + b->offset[id];
        if (n == 0 || st_bpe_find(b, bytes, n) >= 0)
            continue;
        uint32_t i = hash_bytes(bytes, n) & b->mask;
        while (b->slots[i])
            i = (i + 1) & b->mask;
        b->slots[i] = id + 1;
    }
    return SOTTO_OK;
}

static sotto_status build_pattern(st_bpe *b, const char *pattern, sotto_error *err)
{
    int code = 0;
    PCRE2_SIZE at = 0;
    b->general = pcre2_general_context_create(pcre_alloc, pcre_free, NULL);
    pcre2_compile_context *compile = b->general ? pcre2_compile_context_create(b->general) : NULL;
    if (!compile)
        return st_fail_memory(err, strlen(pattern), "the tokenizer's pattern");
    b->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP, &code, &at, compile);
    pcre2_compile_context_free(compile);
    if (!b->code && code == PCRE2_ERROR_HEAP_FAILED)
        return st_fail_memory(err, strlen(pattern), "the tokenizer's pattern");
    if (!b->code)
        return st_fail(err, SOTTO_E_INTERNAL, "the tokenizer's pattern: PCRE2 error %d at byte %zu", code, (size_t)at);
    b->match = pcre2_match_context_create(b->general);
    if (!b->match)
        return st_fail_memory(err, strlen(pattern), "the tokenizer's pattern");
    pcre2_set_match_limit(b->match, MATCH_LIMIT);
    pcre2_set_heap_limit(b->match, HEAP_LIMIT_KIB);
    return SOTTO_OK;
}

sotto_status st_bpe_create(const char *blob, const uint32_t *offset, int32_t n_tokens, const char *pattern,
                           st_bpe **out, sotto_error *err)
{
    *out = NULL;
    st_bpe *b = st_calloc(1, sizeof *b);
    if (!b)
        return st_fail_memory(err, sizeof *b, "the tokenizer");
    b->blob = blob;
    b->offset = offset;
    b->n_tokens = n_tokens;
    sotto_status status = build_slots(b, err);
    if (status == SOTTO_OK)
        status = build_pattern(b, pattern, err);
    if (status != SOTTO_OK) {
        st_bpe_free(b);
        return status;
    }
    *out = b;
    return SOTTO_OK;
}

void st_bpe_free(st_bpe *b)
{
    if (!b)
        return;
    pcre2_match_context_free(b->match);
    pcre2_code_free(b->code);
    pcre2_general_context_free(b->general);
    st_free(b->slots);
    st_free(b);
}

/* ---- one piece ---- */

/* A part starts at the byte of its index; parts that were joined to the left have length 0. */
typedef struct part {
    int32_t length, previous, next; /* next, previous: -1 at the ends */
} part;

typedef struct pair {
    int32_t rank, left, length; /* of both parts together: an entry of another length is out of date */
} pair;

typedef struct scratch {
    part *parts;
    pair *heap;
    int64_t parts_capacity, heap_capacity, n_heap;
} scratch;

static bool pair_before(const pair *a, const pair *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->left < b->left;
}

static void heap_push(scratch *s, pair p)
{
    int64_t i = s->n_heap++;
    for (; i > 0 && pair_before(&p, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = p;
}

static pair heap_pop(scratch *s)
{
    const pair top = s->heap[0], p = s->heap[--s->n_heap];
    int64_t i = 0;
    for (;;) {
        int64_t child = 2 * i + 1;
        if (child >= s->n_heap)
            break;
        if (child + 1 < s->n_heap && pair_before(&s->heap[child + 1], &s->heap[child]))
            child++;
        if (!pair_before(&s->heap[child], &p))
            break;
        s->heap[i] = s->heap[child];
        i = child;
    }
    s->heap[i] = p;
    return top;
}

static void push_pair(const st_bpe *b, scratch *s, const char *piece, int32_t left)
{
    if (left < 0 || s->parts[left].next < 0)
        return;
    const int32_t length = s->parts[left].length + s->parts[s->parts[left].next].length;
    const int32_t rank = st_bpe_find(b, piece + left, (size_t)length);
    if (rank >= 0)
        heap_push(s, (pair){rank, left, length});
}

static void join(const st_bpe *b, scratch *s, const char *piece, int32_t left)
{
    part *l = &s->parts[left], *r = &s->parts[l->next];
    l->length += r->length;
    r->length = 0;
    l->next = r->next;
    if (l->next >= 0)
        s->parts[l->next].previous = left;
    push_pair(b, s, piece, l->previous);
    push_pair(b, s, piece, left);
}

static bool encode_piece(const st_bpe *b, scratch *s, const char *piece, size_t n, int32_t **ids, int64_t *capacity,
                         int64_t *count)
{
    const int32_t whole = st_bpe_find(b, piece, n);
    if (!st_grow(ids, capacity, *count + (whole >= 0 ? 1 : (int64_t)n), sizeof **ids))
        return false;
    if (whole >= 0) {
        (*ids)[(*count)++] = whole;
        return true;
    }
    /* n - 1 pairs at first, and each of at most n - 1 joins brings two. */
    if (!st_grow(&s->parts, &s->parts_capacity, (int64_t)n, sizeof *s->parts) ||
        !st_grow(&s->heap, &s->heap_capacity, 3 * (int64_t)n, sizeof *s->heap))
        return false;
    s->n_heap = 0;
    for (int32_t i = 0; i < (int32_t)n; i++)
        s->parts[i] = (part){1, i - 1, i + 1 < (int32_t)n ? i + 1 : -1};
    for (int32_t i = 0; i < (int32_t)n; i++)
        push_pair(b, s, piece, i);
    while (s->n_heap > 0) {
        const pair p = heap_pop(s);
        const part *l = &s->parts[p.left];
        if (l->length > 0 && l->next >= 0 && l->length + s->parts[l->next].length == p.length)
            join(b, s, piece, p.left);
    }
    for (int32_t i = 0; i >= 0; i = s->parts[i].next) {
        const int32_t id = st_bpe_find(b, piece + i, (size_t)s->parts[i].length);
        if (id >= 0)
            (*ids)[(*count)++] = id;
    }
    return true;
}

/* ---- a text ---- */

static sotto_status encode_valid(const st_bpe *b, scratch *s, const char *text, size_t n, int32_t **ids,
                                 int64_t *capacity, int64_t *count, sotto_error *err)
{
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(b->code, b->general);
    if (!data)
        return st_fail_memory(err, n, "cutting a text into pieces");
    sotto_status status = SOTTO_OK;
    for (size_t at = 0; at < n && status == SOTTO_OK;) {
        const int found =
            pcre2_match(b->code, (PCRE2_SPTR)text, n, at, PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED, data, b->match);
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(data);
        if (found == PCRE2_ERROR_NOMEMORY) {
            status = st_fail_memory(err, n, "cutting a text into pieces");
        } else if (found < 1 || span[1] <= at || span[1] > n) {
            status = st_fail(err, SOTTO_E_INTERNAL, "cutting a text into pieces: PCRE2 error %d at byte %zu", found, at);
        } else {
            if (!encode_piece(b, s, text + at, span[1] - at, ids, capacity, count))
                status = st_fail_memory(err, 3 * (span[1] - at) * sizeof(pair), "encoding a text");
            at = span[1];
        }
    }
    pcre2_match_data_free(data);
    return status;
}

sotto_status st_bpe_encode(const st_bpe *b, const char *text, size_t n, int32_t **ids, int64_t *capacity,
                           int64_t *count, sotto_error *err)
{
    if (n > INT32_MAX / 8)
        return st_fail(err, SOTTO_E_ARGUMENT, "a text of %zu bytes, at most %d can be encoded", n, INT32_MAX / 8);
    char *repaired = NULL;
    if (!st_utf8_valid(text, n)) {
        repaired = st_alloc(1, 3 * n + 1);
        if (!repaired)
            return st_fail_memory(err, 3 * n + 1, "repairing a text");
        n = st_utf8_repair(text, n, repaired);
        text = repaired;
    }
    const int64_t before = *count;
    scratch s = {0};
    const sotto_status status = encode_valid(b, &s, text, n, ids, capacity, count, err);
    if (status != SOTTO_OK)
        *count = before;
    st_free(s.parts);
    st_free(s.heap);
    st_free(repaired);
    return status;
}
