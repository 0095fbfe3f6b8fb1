/* tok_split.h: cutting a text into the pieces that are encoded apart. Patterns are applied one after the other, each to the
 * pieces that those before it left: what matches is a piece, and so is what lies between two matches. */
#ifndef SOTTO_SRC_MODELS_COMMON_TOK_SPLIT_H
#define SOTTO_SRC_MODELS_COMMON_TOK_SPLIT_H

#include "sotto/base.h"

/* White space of Rust's and Python's `regex`, for use within brackets. PCRE2's own \s has U+180E besides. */
#define ST_SPLIT_SPACE \
    "\\x09-\\x0d\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
/* How GPT-2's tokenizer cuts. */
#define ST_SPLIT_GPT2                                                                                   \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" ST_SPLIT_SPACE "\\p{L}\\p{N}]+|[" ST_SPLIT_SPACE \
    "]+(?![^" ST_SPLIT_SPACE "])|[" ST_SPLIT_SPACE "]+"

typedef struct st_splitter st_splitter;

/* n patterns of PCRE2. Immutable, shared between threads. */
sotto_status st_splitter_create(const char *const *patterns, int n, st_splitter **out, sotto_error *err);
void st_splitter_free(st_splitter *s);

/* Where the pieces end; zero before the first use. */
typedef struct st_pieces {
    uint32_t *end, *other;
    int64_t n, capacity, other_capacity;
} st_pieces;
void st_pieces_free(st_pieces *p);

/* text is valid UTF-8 of less than 2^31 bytes. */
sotto_status st_splitter_cut(const st_splitter *s, const char *text, size_t n, st_pieces *out, sotto_error *err);

#endif
