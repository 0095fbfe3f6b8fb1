/* tok_specials.c: finding tokens by their names in a text. Longer ones are looked for first in all of the text, then shorter
 * ones in what is left, as llama.cpp does; one pass over the text for each length there is. */
#include <stdlib.h>
#include <string.h>

#include "models/common/tokenizer_impl.h"

static bool has_bit(const uint8_t bits[32], char c)
{
    return bits[(uint8_t)c >> 3] >> ((uint8_t)c & 7) & 1;
}

static void set_bit(uint8_t bits[32], char c)
{
    bits[(uint8_t)c >> 3] |= (uint8_t)(1u << ((uint8_t)c & 7));
}

static int longest_first(const void *a, const void *b)
{
    const size_t left = ((const st_special_class *)a)->length, right = ((const st_special_class *)b)->length;
    return left < right ? 1 : left > right ? -1 : 0;
}

sotto_status st_specials_build(st_tokenizer *t, sotto_error *err)
{
    /* number + 1 of the class of each length */
    int32_t *of_length = st_calloc(t->spelling.longest + 1, sizeof *of_length);
    if (!of_length)
        return st_fail_memory(err, (t->spelling.longest + 1) * sizeof *of_length, "the special tokens");
    bool ok = true;
    for (int32_t id = 0; id < t->spelling.n && ok; id++) {
        if (!(t->flags[id] & (ST_TOK_HIDDEN | ST_TOK_USER)))
            continue;
        size_t n;
        const char *name = st_tok_table_get(&t->spelling, id, &n);
        if (of_length[n] == 0) {
            ok = st_grow(&t->classes, &t->classes_capacity, t->n_classes + 1, sizeof *t->classes);
            if (!ok)
                break;
            t->classes[t->n_classes++] = (st_special_class){.length = n};
            of_length[n] = (int32_t)t->n_classes;
        }
        st_special_class *class = &t->classes[of_length[n] - 1];
        set_bit(class->any, name[0]);
        if (!(t->flags[id] & ST_TOK_HIDDEN))
            set_bit(class->user, name[0]);
    }
    st_free(of_length);
    if (!ok)
        return st_fail_memory(err, (uint64_t)(t->n_classes + 1) * sizeof *t->classes, "the special tokens");
    if (t->n_classes > 0)
        qsort(t->classes, (size_t)t->n_classes, sizeof *t->classes, longest_first);
    return SOTTO_OK;
}

void st_fragments_free(st_fragments *f)
{
    st_free(f->at);
    st_free(f->other);
    *f = (st_fragments){0};
}

/* White space as C's isspace has it without a locale. */
static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Does any of the spans have a byte in common with [begin, end)? */
static bool touches(const st_text_span *span, int64_t n, size_t begin, size_t end)
{
    int64_t low = 0, high = n; /* the first span that ends after begin */
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (span[middle].end <= begin)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && span[low].begin < end;
}

static bool add(st_fragments *f, size_t begin, size_t end, int32_t id)
{
    if (id < 0 && begin == end)
        return true;
    if (!st_grow(&f->other, &f->other_capacity, f->n_other + 1, sizeof *f->other))
        return false;
    f->other[f->n_other++] = (st_fragment){begin, end, id};
    return true;
}

typedef struct search {
    const st_tokenizer *t;
    const char *text;
    const st_text_span *plain;
    int64_t n_plain;
    bool all_plain;
} search;

/* The token of this class that begins at `at`, -1: none. */
static int32_t token_at(const search *s, const st_special_class *class, size_t at)
{
    const int32_t id = st_tok_table_find(&s->t->spelling, s->text + at, class->length);
    if (id < 0)
        return -1;
    const unsigned flags = s->t->flags[id];
    if (flags & ST_TOK_HIDDEN)
        return touches(s->plain, s->n_plain, at, at + class->length) ? -1 : id;
    return flags & ST_TOK_USER ? id : -1;
}

static bool cut_fragment(const search *s, const st_special_class *class, st_fragment f, st_fragments *out)
{
    const uint8_t *bits = s->all_plain ? class->user : class->any;
    const size_t n = class->length;
    size_t begin = f.begin;
    for (size_t at = f.begin; f.end - at >= n;) {
        const int32_t id = has_bit(bits, s->text[at]) ? token_at(s, class, at) : -1;
        if (id < 0) {
            at++;
            continue;
        }
        size_t left = at, right = at + n;
        if (s->t->flags[id] & ST_TOK_STRIP_LEFT)
            while (left > begin && is_space(s->text[left - 1]))
                left--;
        if (s->t->flags[id] & ST_TOK_STRIP_RIGHT)
            while (right < f.end && is_space(s->text[right]))
                right++;
        if (!add(out, begin, left, -1) || !add(out, at, at + n, id))
            return false;
        begin = at = right;
    }
    return add(out, begin, f.end, -1);
}

bool st_specials_find(const st_tokenizer *t, const char *text, size_t n, const st_text_span *plain, int64_t n_plain,
                      st_fragments *out)
{
    const search s = {t, text, plain, n_plain, n_plain == 1 && plain[0].begin == 0 && plain[0].end >= n};
    out->n = out->n_other = 0;
    if (!add(out, 0, n, -1))
        return false;
    for (int64_t c = -1; c < t->n_classes; c++) {
        /* what was written becomes what is read */
        st_fragment *at = out->other;
        const int64_t capacity = out->other_capacity;
        out->other = out->at;
        out->other_capacity = out->capacity;
        out->at = at;
        out->capacity = capacity;
        out->n = out->n_other;
        out->n_other = 0;
        if (c + 1 == t->n_classes)
            break;
        for (int64_t i = 0; i < out->n; i++) {
            const st_fragment f = out->at[i];
            if (f.id >= 0 ? !add(out, f.begin, f.end, f.id) : !cut_fragment(&s, &t->classes[c + 1], f, out))
                return false;
        }
    }
    return true;
}
