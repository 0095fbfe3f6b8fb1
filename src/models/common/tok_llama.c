/* tok_llama.c: SentencePiece's pair encoding: characters are joined to the token of the best score, over all of a text, which
 * has U+2581 for each space. What is no token in the end is spelled in byte tokens. */
#include <string.h>

#include "models/common/tokenizer_impl.h"

typedef struct llama_data {
    int32_t byte[256]; /* -1: none */
} llama_data;

/* Higher scores have lower ranks. Scores are finite. */
static int32_t rank_of(float score)
{
    uint32_t bits;
    score += 0.0f; /* -0 is 0 */
    memcpy(&bits, &score, sizeof bits);
    /* negative numbers grow with their magnitude: as a signed number the complement of the rest orders them */
    const int32_t order = bits >> 31 ? (int32_t) ~(bits & 0x7fffffffu) : (int32_t)bits;
    return ~order;
}

static bool join(const void *user, const char *bytes, size_t n, int32_t left, int32_t right, int32_t *rank, int32_t *id)
{
    const st_tokenizer *t = user;
    (void)left;
    (void)right;
    *id = st_tok_table_find(&t->spelling, bytes, n);
    if (*id < 0 || t->flags[*id] & (ST_TOK_APART | ST_TOK_BYTE))
        return false;
    *rank = rank_of(t->score[*id]);
    return true;
}

static sotto_status create(st_tokenizer *t, const sotto_model_file *file, sotto_error *err)
{
    llama_data *d = st_alloc(1, sizeof *d);
    if (!d)
        return st_fail_memory(err, sizeof *d, "the tokenizer");
    t->data = d;
    for (int i = 0; i < 256; i++) {
        const char *digit = "0123456789ABCDEF", alone = (char)i;
        const char name[6] = {'<', '0', 'x', digit[i >> 4], digit[i & 15], '>'};
        d->byte[i] = st_tok_table_find(&t->spelling, name, sizeof name);
        if (d->byte[i] < 0)
            d->byte[i] = st_tok_table_find(&t->spelling, &alone, 1);
    }
    t->newline = d->byte['\n'];
    return st_tok_get_bool(file, "tokenizer.ggml.add_space_prefix", &t->add_space_prefix, err);
}

static bool add_bytes(const st_tokenizer *t, const char *bytes, size_t n, const st_id_list *out)
{
    const llama_data *d = t->data;
    for (size_t i = 0; i < n; i++) {
        const int32_t byte = d->byte[(uint8_t)bytes[i]], id = byte >= 0 ? byte : t->id[ST_ID_UNK];
        if (id >= 0 && !st_id_add(out, id))
            return false;
    }
    return true;
}

static bool encode_escaped(const st_tokenizer *t, st_merge *m, const char *text, size_t n, const st_id_list *out)
{
    if (!st_merge_begin(m, n))
        return false;
    int32_t previous = -1;
    for (size_t i = 0; i < n;) {
        size_t length = st_lead_length(text[i]);
        if (length > n - i)
            length = n - i;
        const int32_t next = i + length < n ? (int32_t)(i + length) : -1;
        int32_t id = st_tok_table_find(&t->spelling, text + i, length);
        if (id >= 0 && t->flags[id] & ST_TOK_APART)
            id = -1;
        m->parts[i] = (st_merge_part){id, (int32_t)length, previous, next};
        previous = (int32_t)i;
        i += length;
    }
    if (!st_merge_run(m, &(st_merge_rule){join, t}, text))
        return false;
    for (int32_t i = 0; i >= 0; i = m->parts[i].next)
        if (m->parts[i].id >= 0 ? !st_id_add(out, m->parts[i].id)
                                : !add_bytes(t, text + i, (size_t)m->parts[i].length, out))
            return false;
    return true;
}

static sotto_status encode(const st_tokenizer *t, st_tok_scratch *s, const char *text, size_t n, bool first,
                           const st_id_list *out, sotto_error *err)
{
    if (!st_grow(&s->buffer, &s->buffer_capacity, 3 * (int64_t)n + 3, 1))
        return st_fail_memory(err, 3 * n + 3, "encoding a text");
    const size_t prefix = first && t->add_space_prefix ? st_escape_spaces(" ", 1, s->buffer) : 0;
    const size_t length = prefix + st_escape_spaces(text, n, s->buffer + prefix);
    if (!encode_escaped(t, &s->merge, s->buffer, length, out))
        return st_fail_memory(err, length * sizeof(st_merge_part), "encoding a text");
    return SOTTO_OK;
}

const st_tok_type st_tok_llama = {
    .name = "llama",
    .bos = 1,
    .eos = 2,
    .unk = 0,
    .pad = -1,
    .add_bos = true,
    .add_space_prefix = true,
    .create = create,
    .free = st_free,
    .encode = encode,
    .unspell = st_unescape_spaces,
};
