#include "formats/token_files.h"

#include <string.h>

#include "base/utf8.h"
#include "formats/json_file.h"

enum { MAX_TOKENS = 1 << 20 };

static const char first_special[] = "<|endoftext|>";
static const char tokens_key[] = "tokenizer.ggml.tokens";

/* ---- spelling ---- */

static bool printable(uint32_t c)
{
    return (c >= 33 && c <= 126) || (c >= 161 && c <= 172) || (c >= 174 && c <= 255);
}

/* The bytes without a character of their own are spelt, in order, from U+0100 on: 0..32, 127..160 and 173. */
static int byte_of(uint32_t c)
{
    if (printable(c))
        return (int)c;
    if (c < 0x100 || c > 0x143)
        return -1;
    const int i = (int)(c - 0x100);
    return i <= 32 ? i : i <= 66 ? i - 33 + 127 : 173;
}

int64_t st_unspell(const char *word, size_t n, char *out)
{
    int64_t count = 0;
    for (size_t i = 0; i < n;) {
        uint32_t c = 0;
        const int length = st_utf8_next((const uint8_t *)word + i, n - i, &c);
        const int byte = length > 0 ? byte_of(c) : -1;
        if (byte < 0)
            return -1;
        out[count++] = (char)byte;
        i += (size_t)length;
    }
    return count;
}

/* A word that is not in the spelling (a foreign vocabulary) stays as it is. */
static sotto_status set_token(sotto_model_file *file, st_text *to, const char *word, size_t n, sotto_error *err)
{
    char *bytes = st_arena_alloc(file->arena, n + 1);
    if (!bytes)
        return st_fail_memory(err, n + 1, "a token");
    const int64_t count = st_unspell(word, n, bytes);
    if (count < 0)
        memcpy(bytes, word, n);
    *to = (st_text){bytes, count < 0 ? n : (size_t)count};
    return SOTTO_OK;
}

static bool is_first_special(const char *word, size_t n)
{
    return n == sizeof first_special - 1 && memcmp(word, first_special, n) == 0;
}

int64_t st_count_base_tokens(const st_text *tokens, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (is_first_special(tokens[i].data, tokens[i].n))
            return i;
    return n;
}

/* ---- files ---- */

static sotto_status from_array(sotto_model_file *file, const char *name, sotto_error *err)
{
    json_t *words;
    ST_TRY(st_json_sibling(file, name, &words, err));
    const size_t n = json_array_size(words);
    sotto_status status = SOTTO_OK;
    if (!json_is_array(words) || n > MAX_TOKENS)
        status = st_fail(err, SOTTO_E_FORMAT, "%s: expected an array of at most %d words", name, (int)MAX_TOKENS);
    st_text *tokens = status == SOTTO_OK ? st_model_array(file, (int64_t)n, sizeof *tokens, name, err) : NULL;
    if (!tokens && status == SOTTO_OK)
        status = SOTTO_E_MEMORY;
    int64_t count = 0;
    for (size_t i = 0; i < n && status == SOTTO_OK; i++) {
        const json_t *word = json_array_get(words, i);
        if (!json_is_string(word)) {
            status = st_fail(err, SOTTO_E_FORMAT, "%s: element %zu is no text", name, i);
        } else {
            if (is_first_special(json_string_value(word), json_string_length(word)))
                break;
            status = set_token(file, &tokens[count++], json_string_value(word), json_string_length(word), err);
        }
    }
    json_decref(words);
    return status == SOTTO_OK ? st_model_put_texts(file, tokens_key, tokens, count, err) : status;
}

static sotto_status lines_of(sotto_model_file *file, const st_file_map *map, sotto_error *err)
{
    int64_t n = 1;
    for (size_t i = 0; i < map->size; i++)
        n += map->data[i] == '\n';
    if (n > MAX_TOKENS)
        return st_fail(err, SOTTO_E_FORMAT, "vocabulary.txt: %lld lines, expected at most %d", (long long)n,
                       (int)MAX_TOKENS);
    st_text *tokens = st_model_array(file, n, sizeof *tokens, "vocabulary.txt", err);
    if (!tokens)
        return SOTTO_E_MEMORY;
    int64_t count = 0;
    for (size_t at = 0; at < map->size;) {
        const char *line = (const char *)map->data + at;
        const char *end = memchr(line, '\n', map->size - at);
        size_t length = end ? (size_t)(end - line) : map->size - at;
        at += length + 1;
        if (length > 0 && line[length - 1] == '\r')
            length--;
        if (is_first_special(line, length))
            break;
        ST_TRY(set_token(file, &tokens[count++], line, length, err));
    }
    return st_model_put_texts(file, tokens_key, tokens, count, err);
}

static sotto_status from_lines(sotto_model_file *file, const char *name, sotto_error *err)
{
    const char *path = st_model_sibling(file, name);
    if (!path)
        return st_fail_memory(err, 1, name);
    st_file_map map;
    ST_TRY(st_file_map_open(path, &map, err));
    const sotto_status status = lines_of(file, &map, err);
    st_file_map_close(&map);
    return status;
}

/* {word: id}; ids that no word has are empty tokens. */
static sotto_status from_ids(sotto_model_file *file, const char *name, json_t *ids, sotto_error *err)
{
    if (!json_is_object(ids))
        return st_fail(err, SOTTO_E_FORMAT, "%s: expected an object of words and ids", name);
    const json_t *end = json_object_get(ids, first_special);
    int64_t n = json_is_integer(end) ? json_integer_value(end) : -1;
    const char *word;
    json_t *id;
    if (n < 0) /* the special tokens are elsewhere */
        json_object_foreach(ids, word, id) if (json_integer_value(id) >= n) n = json_integer_value(id) + 1;
    if (n < 0 || n > MAX_TOKENS)
        return st_fail(err, SOTTO_E_FORMAT, "%s: id %lld, expected 0 to %d", name, (long long)n, (int)MAX_TOKENS);
    st_text *tokens = st_model_array(file, n, sizeof *tokens, name, err);
    if (!tokens)
        return SOTTO_E_MEMORY;
    for (int64_t i = 0; i < n; i++)
        tokens[i].data = "";
    json_object_foreach(ids, word,
                        id) if (json_is_integer(id) && json_integer_value(id) >= 0 && json_integer_value(id) < n)
        ST_TRY(set_token(file, &tokens[json_integer_value(id)], word, strlen(word), err));
    return st_model_put_texts(file, tokens_key, tokens, n, err);
}

static sotto_status from_object(sotto_model_file *file, const char *name, sotto_error *err)
{
    json_t *root;
    ST_TRY(st_json_sibling(file, name, &root, err));
    json_t *model = json_object_get(root, "model");
    json_t *vocab = json_is_object(model) ? json_object_get(model, "vocab") : root;
    const sotto_status status = from_ids(file, name, vocab, err);
    json_decref(root);
    return status;
}

sotto_status st_put_tokens(sotto_model_file *file, sotto_error *err)
{
    static const struct {
        const char *name;
        sotto_status (*read)(sotto_model_file *file, const char *name, sotto_error *err);
    } sources[] = {
        {"vocabulary.json", from_array},
        {"vocabulary.txt", from_lines},
        {"vocab.json", from_object},
        {"tokenizer.json", from_object},
    };
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        bool found;
        ST_TRY(st_model_has_sibling(file, sources[i].name, &found, err));
        if (found)
            return sources[i].read(file, sources[i].name, err);
    }
    if (!file->folder) /* in memory there is nothing beside the weights */
        return SOTTO_OK;
    return st_fail(err, SOTTO_E_NOT_FOUND,
                   "the folder has none of vocabulary.json, vocabulary.txt, vocab.json or tokenizer.json");
}
