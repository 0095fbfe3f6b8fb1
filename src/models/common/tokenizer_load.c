/* tokenizer_load.c: the lists of tokens in a file's metadata. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formats/meta_texts.h"
#include "models/common/tokenizer_impl.h"

#define KEY "tokenizer.ggml."

/* Is there such a key, whatever its kind? */
static bool has_key(const sotto_model_file *file, const char *key)
{
    int64_t value;
    return sotto_meta_int(file, key, &value, NULL) != SOTTO_E_NOT_FOUND;
}

sotto_status st_tok_get_int(const sotto_model_file *file, const char *key, int64_t *out, sotto_error *err)
{
    return has_key(file, key) ? sotto_meta_int(file, key, out, err) : SOTTO_OK;
}

sotto_status st_tok_get_bool(const sotto_model_file *file, const char *key, bool *out, sotto_error *err)
{
    int64_t value = *out;
    ST_TRY(st_tok_get_int(file, key, &value, err));
    *out = value != 0;
    return SOTTO_OK;
}

/* A token without a spelling gets one, as llama.cpp has it, so that each number is a token. */
static st_text spelling_of(const st_text *texts, int32_t id, char name[32])
{
    if (texts[id].n > 0)
        return texts[id];
    return (st_text){name, (size_t)snprintf(name, 32, "[EMPTY_%lld]", (long long)id)};
}

sotto_status st_tok_count_strings(const sotto_model_file *file, const char *key, int32_t *out, sotto_error *err)
{
    *out = 0;
    for (int64_t i = 0; i < sotto_meta_count(file); i++) {
        sotto_meta about;
        ST_TRY(sotto_meta_get(file, i, &about));
        if (strcmp(about.key, key) != 0)
            continue;
        if (about.kind != SOTTO_META_STRINGS)
            return st_fail(err, SOTTO_E_FORMAT, "%s: expected an array of strings", key);
        if (about.count > INT32_MAX / 4)
            return st_fail(err, SOTTO_E_FORMAT, "%s: %lld entries, expected at most %d", key, (long long)about.count,
                           INT32_MAX / 4);
        *out = (int32_t)about.count;
        return SOTTO_OK;
    }
    return st_fail(err, SOTTO_E_FORMAT, "%s is missing", key);
}

static sotto_status list_tokens(const sotto_model_file *file, const st_text **out, int32_t *n, size_t *bytes,
                                sotto_error *err)
{
    char name[32];
    int64_t count;
    ST_TRY(st_tok_count_strings(file, KEY "tokens", n, err));
    if (*n < 1)
        return st_fail(err, SOTTO_E_FORMAT, KEY "tokens: no tokens, expected at least one");
    ST_TRY(st_meta_texts(file, KEY "tokens", out, &count, err));
    uint64_t total = 1;
    for (int32_t id = 0; id < *n; id++)
        total += spelling_of(*out, id, name).n + 1;
    if (total > UINT32_MAX)
        return st_fail(err, SOTTO_E_FORMAT, KEY "tokens: %llu bytes of text, expected less than 4 GiB",
                       (unsigned long long)total);
    *bytes = (size_t)total;
    return SOTTO_OK;
}

static sotto_status read_spellings(st_tokenizer *t, const sotto_model_file *file, sotto_error *err)
{
    const st_text *texts;
    int32_t n = 0;
    size_t bytes = 0, at = 0, length;
    char name[32];
    ST_TRY(list_tokens(file, &texts, &n, &bytes, err));
    t->blob = st_alloc(bytes, 1);
    t->offset = st_alloc((size_t)n + 1, sizeof *t->offset);
    if (!t->blob || !t->offset)
        return st_fail_memory(err, bytes + ((size_t)n + 1) * sizeof *t->offset, "the texts of tokens");
    for (int32_t id = 0; id < n; id++) {
        const st_text spelling = spelling_of(texts, id, name);
        t->offset[id] = (uint32_t)at;
        memcpy(t->blob + at, spelling.data, spelling.n);
        t->blob[at + spelling.n] = 0;
        at += spelling.n + 1;
    }
    t->offset[n] = (uint32_t)at;
    ST_TRY(st_tok_table_build(&t->spelling, t->blob, t->offset, n, err));
    if (t->spelling.twice < 0)
        return SOTTO_OK;
    const char *text = st_tok_table_get(&t->spelling, t->spelling.twice, &length);
    return st_fail(err, SOTTO_E_FORMAT, KEY "tokens: tokens %d and %d are both \"%.40s\"",
                   st_tok_table_find(&t->spelling, text, length), t->spelling.twice, text);
}

/* An array beside the tokens that may be longer than they are, not shorter. */
static sotto_status check_count(const char *key, int64_t count, int32_t n, sotto_error *err)
{
    if (count >= n)
        return SOTTO_OK;
    return st_fail(err, SOTTO_E_FORMAT, "%s: %lld entries for %d tokens", key, (long long)count, n);
}

static sotto_status read_scores(st_tokenizer *t, const sotto_model_file *file, sotto_error *err)
{
    const int32_t n = t->spelling.n;
    const float *floats;
    const int64_t *ints;
    int64_t count;
    t->score = st_calloc((size_t)n, sizeof *t->score);
    if (!t->score)
        return st_fail_memory(err, (size_t)n * sizeof *t->score, "the scores of tokens");
    if (!has_key(file, KEY "scores"))
        return SOTTO_OK;
    if (sotto_meta_ints(file, KEY "scores", &ints, &count, NULL) == SOTTO_OK) {
        ST_TRY(check_count(KEY "scores", count, n, err));
        for (int32_t i = 0; i < n; i++)
            t->score[i] = (float)ints[i];
        return SOTTO_OK;
    }
    ST_TRY(sotto_meta_floats(file, KEY "scores", &floats, &count, err));
    ST_TRY(check_count(KEY "scores", count, n, err));
    for (int32_t i = 0; i < n; i++)
        if (isfinite(floats[i]))
            t->score[i] = floats[i];
        else
            return st_fail(err, SOTTO_E_FORMAT, KEY "scores: the score of token %d is not a number", i);
    return SOTTO_OK;
}

static sotto_status read_flags(st_tokenizer *t, const sotto_model_file *file, sotto_error *err)
{
    /* by the number in the file; another number is nothing at all */
    static const uint16_t meaning[] = {0,
                                       ST_TOK_NORMAL,
                                       ST_TOK_UNKNOWN | ST_TOK_APART,
                                       ST_TOK_CONTROL | ST_TOK_APART,
                                       ST_TOK_USER,
                                       ST_TOK_UNUSED,
                                       ST_TOK_BYTE};
    const int32_t n = t->spelling.n;
    const int64_t *kinds = NULL;
    int64_t count;
    if (has_key(file, KEY "token_type")) {
        ST_TRY(sotto_meta_ints(file, KEY "token_type", &kinds, &count, err));
        ST_TRY(check_count(KEY "token_type", count, n, err));
    }
    t->flags = st_alloc((size_t)n, sizeof *t->flags);
    if (!t->flags)
        return st_fail_memory(err, (size_t)n * sizeof *t->flags, "the types of tokens");
    for (int32_t i = 0; i < n; i++) {
        const int64_t kind = kinds ? kinds[i] : 1;
        t->flags[i] = kind >= 0 && kind < (int64_t)(sizeof meaning / sizeof *meaning) ? meaning[kind] : 0;
    }
    return SOTTO_OK;
}

/* ---- tokens by the model's name ---- */

static void set_flag(st_tokenizer *t, const char *name, unsigned flag, bool on)
{
    const int32_t id = st_tok_table_find(&t->spelling, name, strlen(name));
    if (id >= 0)
        t->flags[id] = (uint16_t)(on ? t->flags[id] | flag : t->flags[id] & ~flag);
}

static bool contains(const sotto_model_file *file, const char *key, const char *part)
{
    const char *text;
    size_t n;
    const size_t length = strlen(part);
    if (sotto_meta_string(file, key, &text, &n, NULL) != SOTTO_OK)
        return false;
    for (size_t i = 0; i + length <= n; i++) {
        size_t k = 0;
        while (k < length &&
               (text[i + k] == part[k] || (text[i + k] >= 'A' && text[i + k] <= 'Z' && text[i + k] + 32 == part[k])))
            k++;
        if (k == length)
            return true;
    }
    return false;
}

/* White space around special tokens that the tokenizers of some models drop; files do not say so. */
static void set_stripping(st_tokenizer *t, const sotto_model_file *file)
{
    static const struct {
        const char *key, *part, *token;
    } left[] = {
        {KEY "pre", "jina-v2-de", "<mask>"},
        {KEY "pre", "jina-v2-es", "<mask>"},
        {KEY "pre", "jina-v2-code", "<mask>"},
        {"general.architecture", "nomic-bert-moe", "<mask>"},
        {"general.architecture", "jina-bert-v3", "<mask>"},
        {"general.name", "modern-bert", "[MASK]"},
    };
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        if (contains(file, left[i].key, left[i].part))
            set_flag(t, left[i].token, ST_TOK_STRIP_LEFT, true);
    if (!contains(file, "general.name", "phi-3") && !contains(file, "general.name", "phi3"))
        return;
    for (int32_t id = 0; id < t->spelling.n; id++)
        if (t->flags[id] & (ST_TOK_HIDDEN | ST_TOK_USER))
            t->flags[id] |= ST_TOK_STRIP_RIGHT;
    set_flag(t, "</s>", ST_TOK_STRIP_RIGHT, true);
    set_flag(t, "<unk>", ST_TOK_STRIP_RIGHT, false);
    set_flag(t, "<s>", ST_TOK_STRIP_RIGHT, false);
    set_flag(t, "<|endoftext|>", ST_TOK_STRIP_RIGHT, false);
}

/* What tokens add to a text, for all of them. */
static sotto_status build_bytes(st_tokenizer *t, sotto_error *err)
{
    const int32_t n = t->spelling.n;
    t->bytes = st_alloc(t->offset[n], 1);
    t->bytes_offset = st_alloc((size_t)n + 1, sizeof *t->bytes_offset);
    if (!t->bytes || !t->bytes_offset)
        return st_fail_memory(err, t->offset[n], "the texts of tokens");
    size_t at = 0;
    for (int32_t id = 0; id < n; id++) {
        size_t length;
        const char *spelling = st_tok_table_get(&t->spelling, id, &length);
        const unsigned flags = t->flags[id];
        const int byte = flags & ST_TOK_BYTE ? st_byte_token(spelling, length) : -1;
        t->bytes_offset[id] = (uint32_t)at;
        if (flags & (ST_TOK_HIDDEN | ST_TOK_USER)) {
            memcpy(t->bytes + at, spelling, length);
            at += length;
        } else if (flags & ST_TOK_NORMAL) {
            at += t->type->unspell(spelling, length, t->bytes + at);
        } else if (byte >= 0) {
            t->bytes[at++] = (char)byte;
        }
        t->bytes[at++] = 0;
    }
    t->bytes_offset[n] = (uint32_t)at;
    return SOTTO_OK;
}

sotto_status st_tok_load(st_tokenizer *t, const sotto_model_file *file, sotto_error *err)
{
    ST_TRY(read_spellings(t, file, err));
    ST_TRY(read_scores(t, file, err));
    ST_TRY(read_flags(t, file, err));
    ST_TRY(t->type->create(t, file, err));
    ST_TRY(st_tok_name_ids(t, file, err));
    ST_TRY(st_tok_get_bool(file, KEY "add_bos_token", &t->add_bos, err));
    ST_TRY(st_tok_get_bool(file, KEY "add_eos_token", &t->add_eos, err));
    ST_TRY(build_bytes(t, err));
    set_stripping(t, file);
    return st_specials_build(t, err);
}
