#include "models/common/tok_split.h"

#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/alloc.h"
#include "base/status.h"

/* Far above what a text needs (the patterns hardly backtrack); a hostile one then fails instead of taking for ever. */
enum { MATCH_LIMIT = 10000000, MATCHES_A_BYTE = 16, HEAP_LIMIT_KIB = 65536 };

struct st_splitter {
    pcre2_general_context *general;
    pcre2_match_context *match;
    int n;
    pcre2_code *code[];
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

static sotto_status compile(st_splitter *s, const char *pattern, pcre2_compile_context *context, sotto_error *err)
{
    int code = 0;
    PCRE2_SIZE at = 0;
    pcre2_code *made = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                     PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &code, &at, context);
    if (!made && code == PCRE2_ERROR_HEAP_FAILED)
        return st_fail_memory(err, strlen(pattern), "the tokenizer's pattern");
    if (!made)
        return st_fail(err, SOTTO_E_INTERNAL, "the tokenizer's pattern: PCRE2 error %d at byte %zu", code, (size_t)at);
    s->code[s->n++] = made;
    return SOTTO_OK;
}

sotto_status st_splitter_create(const char *const *patterns, int n, st_splitter **out, sotto_error *err)
{
    *out = NULL;
    st_splitter *s = st_calloc(1, sizeof *s + (size_t)n * sizeof *s->code);
    if (!s)
        return st_fail_memory(err, sizeof *s, "the tokenizer's patterns");
    s->general = pcre2_general_context_create(pcre_alloc, pcre_free, NULL);
    s->match = s->general ? pcre2_match_context_create(s->general) : NULL;
    pcre2_compile_context *context = s->match ? pcre2_compile_context_create(s->general) : NULL;
    sotto_status status = SOTTO_OK;
    if (!context)
        status = st_fail_memory(err, sizeof *s, "the tokenizer's patterns");
    for (int i = 0; i < n && status == SOTTO_OK; i++)
        status = compile(s, patterns[i], context, err);
    pcre2_compile_context_free(context);
    if (status != SOTTO_OK) {
        st_splitter_free(s);
        return status;
    }
    pcre2_set_heap_limit(s->match, HEAP_LIMIT_KIB);
    *out = s;
    return SOTTO_OK;
}

void st_splitter_free(st_splitter *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n; i++)
        pcre2_code_free(s->code[i]);
    pcre2_match_context_free(s->match);
    pcre2_general_context_free(s->general);
    st_free(s);
}

void st_pieces_free(st_pieces *p)
{
    st_free(p->end);
    st_free(p->other);
    *p = (st_pieces){0};
}

/* ---- cutting ---- */

typedef struct cutter {
    const pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *match;
    st_pieces *out;
} cutter;

static size_t character_length(uint8_t lead)
{
    return lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

static bool add_end(st_pieces *p, size_t end)
{
    if (p->n > 0 && p->end[p->n - 1] == end)
        return true;
    if (!st_grow(&p->end, &p->capacity, p->n + 1, sizeof *p->end))
        return false;
    p->end[p->n++] = (uint32_t)end;
    return true;
}

/* Cuts text[0 .. n), which lies at `base` of the whole text. */
static sotto_status cut_piece(const cutter *c, const char *text, size_t n, size_t base, sotto_error *err)
{
    for (size_t at = 0; at < n;) {
        const int found = pcre2_match(c->code, (PCRE2_SPTR)text, n, at, PCRE2_NO_UTF_CHECK, c->data, c->match);
        if (found == PCRE2_ERROR_NOMATCH)
            break;
        if (found == PCRE2_ERROR_NOMEMORY)
            return st_fail_memory(err, n, "cutting a text into pieces");
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(c->data);
        if (found < 1 || span[0] < at || span[1] < span[0] || span[1] > n)
            return st_fail(err, SOTTO_E_INTERNAL, "cutting a text into pieces: PCRE2 error %d at byte %zu", found,
                           base + at);
        if ((base + span[0] > 0 && !add_end(c->out, base + span[0])) ||
            (span[1] > span[0] && !add_end(c->out, base + span[1])))
            return st_fail_memory(err, n * sizeof *c->out->end, "the pieces of a text");
        /* a match of nothing cuts there, and is looked for again one character later */
        at = span[1] > span[0] ? span[1] : span[1] < n ? span[1] + character_length((uint8_t)text[span[1]]) : n;
    }
    if (!add_end(c->out, base + n))
        return st_fail_memory(err, n * sizeof *c->out->end, "the pieces of a text");
    return SOTTO_OK;
}

static sotto_status cut_all(const st_splitter *s, pcre2_match_context *match, const char *text, size_t n,
                            st_pieces *out, sotto_error *err)
{
    out->n = 0;
    if (n > 0 && !add_end(out, n))
        return st_fail_memory(err, sizeof *out->end, "the pieces of a text");
    for (int i = 0; i < s->n; i++) {
        st_pieces next = {.end = out->other, .capacity = out->other_capacity};
        out->other = NULL;
        out->other_capacity = 0;
        cutter c = {s->code[i], pcre2_match_data_create_from_pattern(s->code[i], s->general), match, &next};
        sotto_status status = SOTTO_OK;
        if (!c.data)
            status = st_fail_memory(err, n, "cutting a text into pieces");
        size_t begin = 0;
        for (int64_t k = 0; k < out->n && status == SOTTO_OK; k++) {
            status = cut_piece(&c, text + begin, out->end[k] - begin, begin, err);
            begin = out->end[k];
        }
        pcre2_match_data_free(c.data);
        next.other = out->end;
        next.other_capacity = out->capacity;
        *out = next;
        ST_TRY(status);
    }
    return SOTTO_OK;
}

sotto_status st_splitter_cut(const st_splitter *s, const char *text, size_t n, st_pieces *out, sotto_error *err)
{
    pcre2_match_context *match = pcre2_match_context_copy(s->match);
    if (!match)
        return st_fail_memory(err, n, "cutting a text into pieces");
    /* a run of letters may be gone through a few times */
    const uint64_t limit = MATCH_LIMIT + MATCHES_A_BYTE * (uint64_t)n;
    pcre2_set_match_limit(match, limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX);
    const sotto_status status = cut_all(s, match, text, n, out, err);
    pcre2_match_context_free(match);
    return status;
}
