#include "models/common/bpe.h"

#include "base/alloc.h"
#include "base/status.h"
#include "base/utf8.h"
#include "models/common/tok_merge.h"
#include "models/common/tok_table.h"

struct st_bpe {
    st_tok_table table;
    st_splitter *splitter;
};

typedef struct scratch {
    st_merge merge;
    st_pieces pieces;
} scratch;

int32_t st_bpe_find(const st_bpe *b, const char *bytes, size_t n)
{
    return st_tok_table_find(&b->table, bytes, n);
}

sotto_status st_bpe_create(const char *blob, const uint32_t *offset, int32_t n_tokens, const char *pattern,
                           st_bpe **out, sotto_error *err)
{
    *out = NULL;
    st_bpe *b = st_calloc(1, sizeof *b);
    if (!b)
        return st_fail_memory(err, sizeof *b, "the tokenizer");
    sotto_status status = st_tok_table_build(&b->table, blob, offset, n_tokens, err);
    if (status == SOTTO_OK)
        status = st_splitter_create(&pattern, 1, &b->splitter, err);
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
    st_splitter_free(b->splitter);
    st_tok_table_free(&b->table);
    st_free(b);
}

/* The id of the joined bytes is their rank. */
static bool join(const void *user, const char *bytes, size_t n, int32_t left, int32_t right, int32_t *rank, int32_t *id)
{
    (void)left;
    (void)right;
    *rank = *id = st_tok_table_find(user, bytes, n);
    return *id >= 0;
}

static bool encode_piece(const st_bpe *b, st_merge *m, const char *piece, size_t n, int32_t **ids, int64_t *capacity,
                         int64_t *count)
{
    const int32_t whole = st_bpe_find(b, piece, n);
    if (!st_grow(ids, capacity, *count + (whole >= 0 ? 1 : (int64_t)n), sizeof **ids))
        return false;
    if (whole >= 0) {
        (*ids)[(*count)++] = whole;
        return true;
    }
    if (!st_merge_begin(m, n))
        return false;
    for (int32_t i = 0; i < (int32_t)n; i++)
        m->parts[i] = (st_merge_part){st_bpe_find(b, piece + i, 1), 1, i - 1, i + 1 < (int32_t)n ? i + 1 : -1};
    if (!st_merge_run(m, &(st_merge_rule){join, &b->table}, piece))
        return false;
    for (int32_t i = 0; i >= 0; i = m->parts[i].next)
        if (m->parts[i].id >= 0)
            (*ids)[(*count)++] = m->parts[i].id;
    return true;
}

static sotto_status encode_valid(const st_bpe *b, scratch *s, const char *text, size_t n, int32_t **ids,
                                 int64_t *capacity, int64_t *count, sotto_error *err)
{
    ST_TRY(st_splitter_cut(b->splitter, text, n, &s->pieces, err));
    size_t begin = 0;
    for (int64_t i = 0; i < s->pieces.n; i++) {
        const size_t length = s->pieces.end[i] - begin;
        if (!encode_piece(b, &s->merge, text + begin, length, ids, capacity, count))
            return st_fail_memory(err, 3 * length * sizeof(st_merge_pair), "encoding a text");
        begin += length;
    }
    return SOTTO_OK;
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
    st_merge_free(&s.merge);
    st_pieces_free(&s.pieces);
    st_free(repaired);
    return status;
}
