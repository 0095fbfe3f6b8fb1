/* tok_gpt2.c: byte-level pair encoding: a text is cut into words, the bytes of a word are tokens, and neighbours are joined
 * in the order of the file's list of joins. Tokens are spelled in GPT-2's printable characters. */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "models/common/pretokenizers.h"
#include "formats/meta_texts.h"
#include "models/common/tokenizer_impl.h"

/* Two tokens that may be joined, in the order of the list: the earlier first. */
typedef struct merge_slot {
    int32_t left, right, rank, id; /* id -1: free */
} merge_slot;

typedef struct gpt2_data {
    merge_slot *slots;
    uint32_t mask;
    int32_t byte[256]; /* -1: none */
    st_splitter *splitter;
    bool whole_words; /* a word that is a token is that token, whatever the joins make of it */
} gpt2_data;

static uint32_t hash_pair(int32_t left, int32_t right)
{
    uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9u;
    return (uint32_t)(h >> 32);
}

/* The slot of the pair, or the free one where it belongs. */
static merge_slot *slot_of(const gpt2_data *d, int32_t left, int32_t right)
{
    uint32_t i = hash_pair(left, right) & d->mask;
    while (d->slots[i].id >= 0 && (d->slots[i].left != left || d->slots[i].right != right))
        i = (i + 1) & d->mask;
    return &d->slots[i];
}

static bool join(const void *user, const char *bytes, size_t n, int32_t left, int32_t right, int32_t *rank, int32_t *id)
{
    (void)bytes;
    (void)n;
    if (left < 0 || right < 0)
        return false;
    const st_tokenizer *t = user;
    const merge_slot *slot = slot_of(t->data, left, right);
    *rank = slot->rank;
    *id = slot->id;
    return slot->id >= 0 && !(t->flags[slot->id] & ST_TOK_APART);
}

/* A join is "left right"; the space between them is not the first byte, which may be one itself. Joins of or to what is no
 * token are left out: no text could have their result. */
static sotto_status add_merge(const st_tokenizer *t, gpt2_data *d, const char *text, size_t n, int32_t rank,
                              char **joined, int64_t *capacity, sotto_error *err)
{
    const char *space = n > 1 ? memchr(text + 1, ' ', n - 1) : NULL;
    if (!space)
        return SOTTO_OK;
    const size_t length = (size_t)(space - text);
    const int32_t left = st_tok_table_find(&t->spelling, text, length);
    const int32_t right = st_tok_table_find(&t->spelling, space + 1, n - length - 1);
    if (left < 0 || right < 0)
        return SOTTO_OK;
    if (!st_grow(joined, capacity, (int64_t)n, 1))
        return st_fail_memory(err, n, "the joins of tokens");
    memcpy(*joined, text, length);
    memcpy(*joined + length, space + 1, n - length - 1);
    const int32_t id = st_tok_table_find(&t->spelling, *joined, n - 1);
    merge_slot *slot = slot_of(d, left, right);
    if (id >= 0 && slot->id < 0)
        *slot = (merge_slot){left, right, rank, id};
    return SOTTO_OK;
}

static sotto_status read_merges(const st_tokenizer *t, gpt2_data *d, const sotto_model_file *file, sotto_error *err)
{
    const char *key = "tokenizer.ggml.merges";
    const st_text *texts;
    int64_t count;
    int32_t n;
    ST_TRY(st_tok_count_strings(file, key, &n, err));
    ST_TRY(st_meta_texts(file, key, &texts, &count, err));
    const uint32_t n_slots = st_tok_slots(n);
    d->mask = n_slots - 1;
    d->slots = st_alloc(n_slots, sizeof *d->slots);
    if (!d->slots)
        return st_fail_memory(err, n_slots * sizeof *d->slots, "the joins of tokens");
    for (uint32_t i = 0; i < n_slots; i++)
        d->slots[i].id = -1;
    char *joined = NULL;
    int64_t capacity = 0;
    sotto_status status = SOTTO_OK;
    for (int32_t i = 0; i < n && status == SOTTO_OK; i++) {
        status = add_merge(t, d, texts[i].data, texts[i].n, i, &joined, &capacity, err);
    }
    st_free(joined);
    return status;
}

static sotto_status choose_splitter(st_tokenizer *t, gpt2_data *d, const sotto_model_file *file, sotto_error *err)
{
    const char *key = "tokenizer.ggml.pre", *name = "default";
    size_t n = strlen(name);
    const sotto_status status = sotto_meta_string(file, key, &name, &n, err);
    if (status == SOTTO_E_NOT_FOUND) {
        name = "default";
        n = strlen(name);
        snprintf(t->warning, sizeof t->warning,
                 "%s is missing: texts are cut into words the way that is called default", key);
    } else if (status != SOTTO_OK) {
        return status;
    }
    const st_pretokenizer *p = st_pretokenizer_find(name, n);
    if (!p)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%s is \"%.*s\", which is not one of the known ones (%s, ...)", key,
                       (int)(n < 60 ? n : 60), name, "llama-bpe, qwen2, gpt-2, smollm, tekken, gpt-4o, deepseek-v3");
    d->whole_words = p->whole_words;
    t->add_bos = p->add_bos;
    return st_splitter_create(p->patterns, st_pretokenizer_count(p), &d->splitter, err);
}

static sotto_status find_newline(st_tokenizer *t, sotto_error *err)
{
    int32_t *ids = NULL;
    int64_t capacity = 0, count = 0;
    st_tok_scratch s = {0};
    const st_id_list list = {&ids, &capacity, &count};
    const sotto_status status = t->type->encode(t, &s, "\n", 1, true, &list, err);
    t->newline = count > 0 ? ids[0] : -1;
    st_free(ids);
    st_tok_scratch_free(&s);
    return status;
}

static sotto_status create(st_tokenizer *t, const sotto_model_file *file, sotto_error *err)
{
    gpt2_data *d = st_calloc(1, sizeof *d);
    if (!d)
        return st_fail_memory(err, sizeof *d, "the tokenizer");
    t->data = d;
    for (int i = 0; i < 256; i++) {
        char spelled[4];
        d->byte[i] = st_tok_table_find(&t->spelling, spelled, st_utf8_put(st_byte_to_code((uint8_t)i), spelled));
    }
    ST_TRY(choose_splitter(t, d, file, err));
    ST_TRY(read_merges(t, d, file, err));
    return find_newline(t, err);
}

static void free_data(void *data)
{
    gpt2_data *d = data;
    if (!d)
        return;
    st_splitter_free(d->splitter);
    st_free(d->slots);
    st_free(d);
}

/* ---- encoding ---- */

/* The token that is spelled like the word, -1: none. *ok: there was memory. */
static int32_t find_word(const st_tokenizer *t, st_tok_scratch *s, const char *word, size_t n, bool *ok)
{
    *ok = true;
    if (n > t->spelling.longest)
        return -1;
    *ok = st_grow(&s->spelled, &s->spelled_capacity, 2 * (int64_t)n, 1);
    if (!*ok)
        return -1;
    size_t length = 0;
    for (size_t i = 0; i < n; i++)
        length += st_utf8_put(st_byte_to_code((uint8_t)word[i]), s->spelled + length);
    const int32_t id = st_tok_table_find(&t->spelling, s->spelled, length);
    return id >= 0 && t->flags[id] & ST_TOK_APART ? -1 : id;
}

static bool encode_word(const st_tokenizer *t, st_tok_scratch *s, const char *word, size_t n, const st_id_list *out)
{
    const gpt2_data *d = t->data;
    if (d->whole_words) {
        bool ok;
        const int32_t id = find_word(t, s, word, n, &ok);
        if (id >= 0 || !ok)
            return ok && st_id_add(out, id);
    }
    if (!st_merge_begin(&s->merge, n))
        return false;
    st_merge_part *parts = s->merge.parts;
    for (int32_t i = 0; i < (int32_t)n; i++)
        parts[i] = (st_merge_part){d->byte[(uint8_t)word[i]], 1, i - 1, i + 1 < (int32_t)n ? i + 1 : -1};
    if (!st_merge_run(&s->merge, &(st_merge_rule){join, t}, word))
        return false;
    for (int32_t i = 0; i >= 0; i = parts[i].next)
        if (parts[i].id >= 0 && !st_id_add(out, parts[i].id))
            return false;
    return true;
}

static sotto_status encode(const st_tokenizer *t, st_tok_scratch *s, const char *text, size_t n, bool first,
                           const st_id_list *out, sotto_error *err)
{
    const gpt2_data *d = t->data;
    (void)first;
    if (!st_utf8_valid(text, n)) {
        if (!st_grow(&s->buffer, &s->buffer_capacity, 3 * (int64_t)n, 1))
            return st_fail_memory(err, 3 * n, "repairing a text");
        n = st_repair_bytes(text, n, s->buffer);
        text = s->buffer;
    }
    ST_TRY(st_splitter_cut(d->splitter, text, n, &s->pieces, err));
    size_t begin = 0;
    for (int64_t i = 0; i < s->pieces.n; i++) {
        const size_t length = s->pieces.end[i] - begin;
        if (!encode_word(t, s, text + begin, length, out))
            return st_fail_memory(err, length * sizeof(st_merge_part), "encoding a text");
        begin += length;
    }
    return SOTTO_OK;
}

/* Characters that spell no byte are kept. */
static size_t unspell(const char *spelling, size_t n, char *out)
{
    size_t at = 0;
    for (size_t i = 0; i < n;) {
        uint32_t code;
        const int length = st_utf8_next((const uint8_t *)spelling + i, n - i, &code);
        const int byte = length > 0 ? st_code_to_byte(code) : -1;
        const size_t used = length > 0 ? (size_t)length : 1;
        if (byte >= 0) {
            out[at++] = (char)byte;
        } else {
            memcpy(out + at, spelling + i, used);
            at += used;
        }
        i += used;
    }
    return at;
}

const st_tok_type st_tok_gpt2 = {
    .name = "gpt2",
    .bos = -1,
    .eos = -1,
    .unk = -1,
    .pad = -1,
    .create = create,
    .free = free_data,
    .encode = encode,
    .unspell = unspell,
};
