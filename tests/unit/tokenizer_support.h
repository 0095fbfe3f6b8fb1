/* tokenizer_support.h: GGUF files that are nothing but a vocabulary, made in memory. */
#ifndef SOTTO_TESTS_UNIT_TOKENIZER_SUPPORT_H
#define SOTTO_TESTS_UNIT_TOKENIZER_SUPPORT_H

#include "formats_support.h"
#include "models/common/tokenizer.h"

/* Metadata key by key; zero before the first. */
typedef struct meta_file {
    blob body;
    uint64_t n;
} meta_file;

void meta_string(meta_file *m, const char *key, const char *value);
void meta_int(meta_file *m, const char *key, int64_t value); /* u32 */
void meta_bool(meta_file *m, const char *key, bool value);
/* `value` are n strings; n -1: until NULL. */
void meta_strings(meta_file *m, const char *key, const char *const *value, int64_t n);
void meta_ints(meta_file *m, const char *key, const int32_t *value, int64_t n);
void meta_floats(meta_file *m, const char *key, const float *value, int64_t n);
void meta_bytes(meta_file *m, const char *key, const uint8_t *value, int64_t n);
/* The whole file; frees what was collected. */
blob meta_finish(meta_file *m);

/* Opens, makes the tokenizer, closes. */
sotto_status meta_tokenizer(meta_file *m, st_tokenizer **out, sotto_error *err);
st_tokenizer *must_make(meta_file *m);

/* A file of type gpt2 with the 256 bytes, the tokens given (until NULL, as texts in the file) as normal ones and the joins
 * given (until NULL). Tokens and joins may be NULL. The types of tokens can be changed: `kind_of` (may be NULL) is asked. */
void gpt2_file(meta_file *m, const char *pre, const char *const *tokens, const char *const *joins,
               int32_t (*kind_of)(const char *token));

/* What encoding gives, as the tokens' spellings with '|' between them; valid until the next call. */
const char *spelled(const st_tokenizer *t, const char *text, size_t n, bool add_special, bool parse_special);
/* The bytes of the tokens, '|' between them. */
const char *pieces(const st_tokenizer *t, const char *text, size_t n);

#endif
