/* tok_t5.c: SentencePiece's unigram model: of all ways to cut a text into tokens the one whose scores (logarithms of
 * probabilities) have the largest sum. Before that the text is normalised: characters replaced by a table in the file, runs of
 * spaces made one, U+2581 for each. */
#include <string.h>

#include "models/common/tok_charmap.h"
#include "models/common/tokenizer_impl.h"

typedef struct t5_data {
    int32_t *order;     /* tokens in the order of their bytes */
    int32_t first[257]; /* where those with this first byte begin */
    st_charmap charmap;
    double unknown; /* score of a character that no token has */
    bool merge_spaces;
} t5_data;

/* The best cut of what is before this byte: its last token and where that begins. */
typedef struct st_unigram_step {
    double score;
    int32_t id;
    uint32_t from;
} st_unigram_step;

/* ---- the order of tokens ---- */

static bool sorts_before(const st_tok_table *table, int32_t a, int32_t b)
{
    size_t n_a, n_b;
    const char *x = st_tok_table_get(table, a, &n_a), *y = st_tok_table_get(table, b, &n_b);
    const int order = memcmp(x, y, n_a < n_b ? n_a : n_b);
    return order != 0 ? order < 0 : n_a < n_b;
}

/* Heap sort: qsort's comparison would need to know the table. */
static void sift(const st_tok_table *table, int32_t *ids, int64_t at, int64_t n)
{
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && sorts_before(table, ids[child], ids[child + 1]))
            child++;
        if (!sorts_before(table, ids[at], ids[child]))
            return;
        const int32_t id = ids[at];
        ids[at] = ids[child];
        ids[child] = id;
    }
}

static void sort_tokens(const st_tok_table *table, int32_t *ids, int64_t n)
{
    for (int64_t i = n / 2; i-- > 0;)
        sift(table, ids, i, n);
    for (int64_t end = n; end-- > 1;) {
        const int32_t id = ids[0];
        ids[0] = ids[end];
        ids[end] = id;
        sift(table, ids, 0, end);
    }
}

static sotto_status order_tokens(const st_tokenizer *t, t5_data *d, sotto_error *err)
{
    int32_t n = 0;
    d->order = st_alloc((size_t)t->spelling.n, sizeof *d->order);
    if (!d->order)
        return st_fail_memory(err, (size_t)t->spelling.n * sizeof *d->order, "the order of tokens");
    double least = 0;
    bool any = false;
    for (int32_t id = 0; id < t->spelling.n; id++) {
        if (!(t->flags[id] & (ST_TOK_NORMAL | ST_TOK_USER)))
            continue;
        d->order[n++] = id;
        if (t->flags[id] & ST_TOK_NORMAL && (!any || (double)t->score[id] < least)) {
            least = (double)t->score[id];
            any = true;
        }
    }
    const double penalty = 10;
    d->unknown = least - penalty;
    sort_tokens(&t->spelling, d->order, n);
    int32_t at = 0;
    for (int c = 0; c < 256; c++) {
        d->first[c] = at;
        while (at < n && (uint8_t)t->spelling.blob[t->spelling.offset[d->order[at]]] == c)
            at++;
    }
    d->first[256] = n;
    return SOTTO_OK;
}

static sotto_status create(st_tokenizer *t, const sotto_model_file *file, sotto_error *err)
{
    t5_data *d = st_calloc(1, sizeof *d);
    if (!d)
        return st_fail_memory(err, sizeof *d, "the tokenizer");
    t->data = d;
    ST_TRY(order_tokens(t, d, err));
    ST_TRY(st_charmap_read(&d->charmap, file, "tokenizer.ggml.precompiled_charsmap", err));
    ST_TRY(st_tok_get_bool(file, "tokenizer.ggml.remove_extra_whitespaces", &d->merge_spaces, err));
    ST_TRY(st_tok_get_bool(file, "tokenizer.ggml.add_space_prefix", &t->add_space_prefix, err));
    t->newline = st_tok_table_find(&t->spelling, "\n", 1);
    return SOTTO_OK;
}

static void free_data(void *data)
{
    t5_data *d = data;
    if (!d)
        return;
    st_charmap_free(&d->charmap);
    st_free(d->order);
    st_free(d);
}

/* ---- normalising ---- */

static bool put(st_tok_scratch *s, int64_t *at, const char *bytes, size_t n)
{
    if (!st_grow(&s->buffer, &s->buffer_capacity, *at + (int64_t)n, 1))
        return false;
    memcpy(s->buffer + *at, bytes, n);
    *at += (int64_t)n;
    return true;
}

/* Into s->buffer; *length gets its bytes. False without memory. */
static bool normalize(const st_tokenizer *t, st_tok_scratch *s, const char *text, size_t n, int64_t *length)
{
    static const char space[] = "\u2581";
    const t5_data *d = t->data;
    bool after_space = d->merge_spaces, begun = !t->add_space_prefix;
    *length = 0;
    for (size_t i = 0; i < n;) {
        size_t used, got;
        const char *is = st_charmap_at(&d->charmap, text + i, n - i, &used, &got);
        i += used;
        for (size_t k = 0; k < got; k++) {
            const bool blank = is[k] == ' ';
            if (blank && after_space)
                continue;
            if (!begun && !put(s, length, space, 3))
                return false;
            begun = true;
            if (blank ? !put(s, length, space, 3) : !put(s, length, is + k, 1))
                return false;
            after_space = blank && d->merge_spaces;
        }
    }
    if (d->merge_spaces && after_space && *length >= 3)
        *length -= 3;
    return true;
}

/* ---- the best cut ---- */

/* Of the tokens [*low, *high), which agree up to `depth`, those that go on with c. */
static void narrow(const st_tokenizer *t, const t5_data *d, int32_t *low, int32_t *high, size_t depth, uint8_t c)
{
    for (int above = 0; above < 2; above++) { /* the first that goes on with c, then the first with more than c */
        int32_t from = *low, to = *high;
        while (from < to) {
            const int32_t middle = from + (to - from) / 2;
            size_t n;
            const char *bytes = st_tok_table_get(&t->spelling, d->order[middle], &n);
            const int next = n > depth ? (uint8_t)bytes[depth] : -1;
            if (next < c + above)
                from = middle + 1;
            else
                to = middle;
        }
        *(above ? high : low) = from;
    }
}

/* Tokens that begin at byte `at` become ends of cuts. True when one of them is exactly the character there. */
static bool extend(const st_tokenizer *t, const char *text, size_t n, size_t at, size_t character,
                   st_unigram_step *steps)
{
    const t5_data *d = t->data;
    const uint8_t lead = (uint8_t)text[at];
    int32_t low = d->first[lead], high = d->first[lead + 1];
    bool found = false;
    for (size_t depth = 1; low < high; depth++) {
        size_t length;
        const int32_t id = d->order[low];
        (void)st_tok_table_get(&t->spelling, id, &length);
        if (length == depth) { /* the shortest of those left */
            const double score = steps[at].score + (t->flags[id] & ST_TOK_USER ? 0.0 : (double)t->score[id]);
            st_unigram_step *step = &steps[at + depth];
            if (score > step->score)
                *step = (st_unigram_step){score, id, (uint32_t)at};
            found |= depth == character;
        }
        if (at + depth == n)
            break;
        narrow(t, d, &low, &high, depth, (uint8_t)text[at + depth]);
    }
    return found;
}

static bool collect(const st_tokenizer *t, const st_unigram_step *steps, size_t n, const st_id_list *out)
{
    const int64_t begin = *out->count;
    int32_t after = -1;
    for (size_t at = n; at > 0; at = steps[at].from) {
        const int32_t id = steps[at].id;
        /* neighbours that no token has are one unknown token */
        if (id >= 0 && !(id == t->id[ST_ID_UNK] && after == id) && !st_id_add(out, id))
            return false;
        after = id;
    }
    int32_t *ids = *out->ids;
    for (int64_t i = begin, k = *out->count - 1; i < k; i++, k--) {
        const int32_t id = ids[i];
        ids[i] = ids[k];
        ids[k] = id;
    }
    return true;
}

static sotto_status encode(const st_tokenizer *t, st_tok_scratch *s, const char *text, size_t n, bool first,
                           const st_id_list *out, sotto_error *err)
{
    const t5_data *d = t->data;
    int64_t length;
    (void)first;
    if (!normalize(t, s, text, n, &length))
        return st_fail_memory(err, 3 * n, "normalising a text");
    if (length > ST_TOK_MAX_TEXT)
        return st_fail(err, SOTTO_E_ARGUMENT, "a text of %lld bytes when normalised, at most %d can be encoded",
                       (long long)length, ST_TOK_MAX_TEXT);
    if (!st_grow(&s->steps, &s->steps_capacity, length + 1, sizeof *s->steps))
        return st_fail_memory(err, (uint64_t)(length + 1) * sizeof *s->steps, "encoding a text");
    const double none = -1e300;
    for (int64_t i = 0; i <= length; i++)
        s->steps[i] = (st_unigram_step){none, -1, 0};
    s->steps[0].score = 0;
    const size_t end = (size_t)length;
    for (size_t at = 0; at < end;) {
        size_t character = st_lead_length(s->buffer[at]);
        if (character > end - at)
            character = end - at;
        if (!extend(t, s->buffer, end, at, character, s->steps)) {
            st_unigram_step *step = &s->steps[at + character];
            if (s->steps[at].score + d->unknown > step->score)
                *step = (st_unigram_step){s->steps[at].score + d->unknown, t->id[ST_ID_UNK], (uint32_t)at};
        }
        at += character;
    }
    if (!collect(t, s->steps, end, out))
        return st_fail_memory(err, (uint64_t)length * sizeof(int32_t), "encoding a text");
    return SOTTO_OK;
}

const st_tok_type st_tok_t5 = {
    .name = "t5",
    .bos = -1,
    .eos = 1,
    .unk = 2,
    .pad = 0,
    .add_eos = true,
    .create = create,
    .free = free_data,
    .encode = encode,
    .unspell = st_unescape_spaces,
};
