#include "models/whisper/vocab.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/utf8.h"
#include "models/whisper/languages.h"
#include "sotto/whisper.h"

/* Special tokens that are neither text, language nor timestamp: eot, sot and six after the languages. */
enum { N_PLAIN_SPECIALS = 8, MAX_TOKEN_BYTES = 65535 };

static const char tokens_key[] = "tokenizer.ggml.tokens";

sotto_status st_vocab_layout_find(int32_t n_vocab, int64_t n_tokens, st_vocab_layout *out, sotto_error *err)
{
    static const struct {
        int32_t n_vocab;
        st_vocab_layout layout;
    } published[] = {
        {51864, {50256, 99, false}},
        {51865, {50257, 99, true}},
        {51866, {50257, 100, true}},
    };
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        if (published[i].n_vocab == n_vocab) {
            *out = published[i].layout;
            return SOTTO_OK;
        }
    const int64_t left = (int64_t)n_vocab - n_tokens - N_PLAIN_SPECIALS - ST_N_TIMESTAMPS;
    if (n_tokens < 1 || left < 1 || left > ST_MAX_LANGUAGES)
        return st_fail(
            err, SOTTO_E_FORMAT,
            "whisper.n_vocab: %d with %lld text tokens leaves %lld languages, expected 51864, 51865, 51866 or 1 to %d "
            "languages",
            (int)n_vocab, (long long)n_tokens, (long long)left, (int)ST_MAX_LANGUAGES);
    *out = (st_vocab_layout){(int32_t)n_tokens, (int32_t)left, true};
    return SOTTO_OK;
}

static void set_ids(st_vocab *v, const st_vocab_layout *layout)
{
    v->n_text = layout->n_text;
    v->n_languages = layout->n_languages;
    v->multilingual = layout->multilingual;
    v->eot = v->n_text;
    v->sot = v->eot + 1;
    v->language = v->sot + 1;
    v->translate = v->language + v->n_languages;
    v->transcribe = v->translate + 1;
    v->sot_lm = v->translate + 2;
    v->sot_prev = v->translate + 3;
    v->no_speech = v->translate + 4;
    v->no_timestamps = v->translate + 5;
    v->timestamp = v->translate + 6;
    v->n_vocab = v->timestamp + ST_N_TIMESTAMPS;
}

static void spell_special(const st_vocab *v, int32_t id, char out[32])
{
    static const char *const behind_languages[] = {"translate",   "transcribe", "startoflm",
                                                   "startofprev", "nospeech",   "notimestamps"};
    if (id >= v->timestamp)
        snprintf(out, 32, "<|%d.%02d|>", (int)(id - v->timestamp) / 50, (int)(id - v->timestamp) % 50 * 2);
    else if (id >= v->translate)
        snprintf(out, 32, "<|%s|>", behind_languages[id - v->translate]);
    else if (id >= v->language)
        snprintf(out, 32, "<|%s|>", sotto_language_code(id - v->language));
    else
        snprintf(out, 32, "<|%s|>", id == v->eot ? "endoftext" : "startoftranscript");
}

/* A missing last text token is the empty one of the multilingual vocabulary, which some files leave out. */
static sotto_status token_text(const st_vocab *v, const st_token_source *source, int32_t id, char special[32],
                               const char **bytes, size_t *n, sotto_error *err)
{
    if (id >= v->n_text) {
        spell_special(v, id, special);
        *bytes = special;
        *n = strlen(special);
        return SOTTO_OK;
    }
    *bytes = "";
    *n = 0;
    if (id >= source->count)
        return SOTTO_OK;
    ST_TRY(source->get(source->ctx, id, bytes, n, err));
    if (*n > MAX_TOKEN_BYTES)
        return st_fail(err, SOTTO_E_FORMAT, "%s: token %d has %zu bytes, expected at most %d", tokens_key, (int)id, *n,
                       (int)MAX_TOKEN_BYTES);
    return SOTTO_OK;
}

static sotto_status copy_tokens(st_vocab *v, const st_token_source *source, sotto_error *err)
{
    char special[32];
    const char *bytes;
    size_t n;
    uint64_t total = 0;
    for (int32_t id = 0; id < v->n_vocab; id++) {
        ST_TRY(token_text(v, source, id, special, &bytes, &n, err));
        total += n + 1;
    }
    if (total > INT32_MAX)
        return st_fail(err, SOTTO_E_FORMAT, "%s: %llu bytes, expected less than 2 GiB", tokens_key,
                       (unsigned long long)total);
    v->blob = st_alloc(1, (size_t)total);
    v->offset = st_alloc((size_t)v->n_vocab + 1, sizeof *v->offset);
    if (!v->blob || !v->offset)
        return st_fail_memory(err, total, "the vocabulary");
    uint32_t at = 0;
    for (int32_t id = 0; id < v->n_vocab; id++) {
        ST_TRY(token_text(v, source, id, special, &bytes, &n, err));
        v->offset[id] = at;
        if (n)
            memcpy(v->blob + at, bytes, n);
        v->blob[at + n] = '\0';
        at += (uint32_t)n + 1;
    }
    v->offset[v->n_vocab] = at;
    return SOTTO_OK;
}

/* ---- symbols that are not spoken ---- */

static const char *const symbols[] = {
    "\"",  "#",  "(",  ")",  "*",   "+",  "/",  ":",   ";",   "<",  "=",  ">",  "@",  "[",   "\\",  "]",
    "^",   "_",  "`",  "{",  "|",   "}",  "~",  "「",  "」",  "『", "』", "<<", ">>", "<<<", ">>>", "--",
    "---", "-(", "-[", "('", "(\"", "((", "))", "(((", ")))", "[[", "]]", "{{", "}}", "♪♪",  "♪♪♪",
};
/* Notes and signs that may be one token or several: then the first, which only such signs share. */
static const char *const musical[] = {"♩", "♪", "♫", "♬", "♭", "♮", "♯"};

typedef struct id_list {
    int32_t *ids;
    int64_t capacity, count;
} id_list;

static sotto_status note_first(st_vocab *v, const char *before, const char *symbol, bool also_parts, id_list *found,
                               id_list *scratch, sotto_error *err)
{
    char text[16];
    snprintf(text, sizeof text, "%s%s", before, symbol);
    scratch->count = 0;
    ST_TRY(st_bpe_encode(v->bpe, text, strlen(text), &scratch->ids, &scratch->capacity, &scratch->count, err));
    if (scratch->count == 0 || (scratch->count > 1 && !also_parts))
        return SOTTO_OK;
    int64_t at = 0;
    while (at < found->count && found->ids[at] < scratch->ids[0])
        at++;
    if (at < found->count && found->ids[at] == scratch->ids[0])
        return SOTTO_OK;
    if (!st_grow(&found->ids, &found->capacity, found->count + 1, sizeof *found->ids))
        return st_fail_memory(err, 4 * (uint64_t)(found->count + 1), "the list of symbols");
    memmove(found->ids + at + 1, found->ids + at, (size_t)(found->count - at) * sizeof *found->ids);
    found->ids[at] = scratch->ids[0];
    found->count++;
    return SOTTO_OK;
}

static sotto_status find_symbols(st_vocab *v, id_list *found, id_list *scratch, sotto_error *err)
{
    ST_TRY(note_first(v, " ", "-", true, found, scratch, err));
    ST_TRY(note_first(v, " ", "'", true, found, scratch, err));
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        ST_TRY(note_first(v, "", symbols[i], false, found, scratch, err));
        ST_TRY(note_first(v, " ", symbols[i], false, found, scratch, err));
    }
    for (size_t i = 0; i < sizeof musical / sizeof *musical; i++) {
        ST_TRY(note_first(v, "", musical[i], true, found, scratch, err));
        ST_TRY(note_first(v, " ", musical[i], true, found, scratch, err));
    }
    return SOTTO_OK;
}

static sotto_status make_lists(st_vocab *v, sotto_error *err)
{
    id_list found = {0}, scratch = {0};
    sotto_status status = find_symbols(v, &found, &scratch, err);
    v->non_speech = found.ids;
    v->n_non_speech = found.count;
    st_free(scratch.ids);
    id_list blank = {0};
    if (status == SOTTO_OK)
        status = st_bpe_encode(v->bpe, " ", 1, &blank.ids, &blank.capacity, &blank.count, err);
    v->blank = blank.ids;
    v->n_blank = blank.count;
    return status;
}

/* ---- making ---- */

sotto_status st_vocab_build(const st_token_source *source, const st_vocab_layout *layout, st_vocab **out,
                            sotto_error *err)
{
    *out = NULL;
    if (source->count < layout->n_text - 1)
        return st_fail(err, SOTTO_E_FORMAT, "%s: %lld tokens, expected %d", tokens_key, (long long)source->count,
                       (int)layout->n_text);
    st_vocab *v = st_calloc(1, sizeof *v);
    if (!v)
        return st_fail_memory(err, sizeof *v, "the vocabulary");
    set_ids(v, layout);
    sotto_status status = copy_tokens(v, source, err);
    if (status == SOTTO_OK)
        status = st_bpe_create(v->blob, v->offset, v->n_text, ST_BPE_GPT2_PATTERN, &v->bpe, err);
    if (status == SOTTO_OK)
        status = make_lists(v, err);
    if (status == SOTTO_OK)
        status = st_shared_tree_create(&v->texts, err);
    if (status != SOTTO_OK) {
        st_vocab_free(v);
        return status;
    }
    *out = v;
    return SOTTO_OK;
}

static sotto_status file_token(void *ctx, int64_t id, const char **bytes, size_t *n, sotto_error *err)
{
    return sotto_meta_string_at(ctx, tokens_key, id, bytes, n, err);
}

sotto_status st_vocab_create(const sotto_model_file *file, int32_t n_vocab, st_vocab **out, sotto_error *err)
{
    *out = NULL;
    int64_t count = -1;
    for (int64_t i = 0; i < sotto_meta_count(file) && count < 0; i++) {
        sotto_meta meta;
        ST_TRY(sotto_meta_get(file, i, &meta));
        if (strcmp(meta.key, tokens_key) == 0 && meta.kind == SOTTO_META_STRINGS)
            count = meta.count;
    }
    if (count < 0)
        return st_fail(err, SOTTO_E_FORMAT, "%s: missing, expected an array of strings", tokens_key);
    st_vocab_layout layout;
    ST_TRY(st_vocab_layout_find(n_vocab, count, &layout, err));
    /* The getter never writes to the file. */
    const st_token_source source = {(void *)(uintptr_t)file, file_token, count};
    return st_vocab_build(&source, &layout, out, err);
}

void st_vocab_free(st_vocab *v)
{
    if (!v)
        return;
    st_bpe_free(v->bpe);
    st_shared_tree_release(v->texts);
    st_free(v->non_speech);
    st_free(v->blank);
    st_free(v->offset);
    st_free(v->blob);
    st_free(v);
}

/* ---- using ---- */

sotto_status st_vocab_tokenize(const st_vocab *v, const char *text, int32_t *ids, int64_t cap, int64_t *count,
                               sotto_error *err)
{
    if (!count || !text || cap < 0 || (cap > 0 && !ids))
        return st_fail(err, SOTTO_E_ARGUMENT, "tokenize: text, count or ids is NULL, or cap is negative (%lld)",
                       (long long)cap);
    *count = 0;
    id_list list = {0};
    const sotto_status status = st_bpe_encode(v->bpe, text, strlen(text), &list.ids, &list.capacity, &list.count, err);
    if (status == SOTTO_OK) {
        *count = list.count;
        const int64_t n = list.count < cap ? list.count : cap;
        if (n > 0)
            memcpy(ids, list.ids, (size_t)n * sizeof *ids);
    }
    st_free(list.ids);
    return status;
}

const char *st_vocab_bytes(const st_vocab *v, int32_t id, size_t *length)
{
    const bool known = id >= 0 && id < v->n_vocab;
    if (length)
        *length = known ? v->offset[id + 1] - v->offset[id] - 1 : 0;
    return known ? v->blob + v->offset[id] : "";
}

static bool is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

void st_strip(const char **text, size_t *n)
{
    const uint8_t *p = (const uint8_t *)*text;
    size_t first = 0, end = 0;
    for (size_t i = 0; i < *n;) {
        uint32_t c = 0;
        const int length = st_utf8_next(p + i, *n - i, &c);
        const size_t step = length > 0 ? (size_t)length : 1;
        if (length > 0 && is_space(c)) {
            if (end == 0)
                first = i + step;
        } else {
            end = i + step;
        }
        i += step;
    }
    *text += first;
    *n = end > first ? end - first : 0;
}
