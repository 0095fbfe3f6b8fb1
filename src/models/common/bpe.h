/* bpe.h: byte-level byte-pair encoding. A token's id is its rank: of the neighbours in a piece, the pair whose joined bytes
 * are the token of the lowest id is joined first, leftmost first, until no pair is a token. A piece that is a token as a
 * whole is that token. Immutable after creation, shared between threads.
 * Oracle: tiktoken's encode_ordinary (tests/golden/data/tokenizer.json). */
#ifndef SOTTO_SRC_MODELS_COMMON_BPE_H
#define SOTTO_SRC_MODELS_COMMON_BPE_H

#include "models/common/tok_split.h"
#include "sotto/base.h"

typedef struct st_bpe st_bpe;

/* How GPT-2's tokenizer cuts a text into pieces. */
#define ST_BPE_GPT2_PATTERN ST_SPLIT_GPT2

/* Token i is the bytes blob[offset[i]] .. blob[offset[i + 1] - 2]; one byte after each token belongs to nobody. Blob and
 * offsets must outlive the encoder. Where two tokens have the same bytes the lower id counts. */
sotto_status st_bpe_create(const char *blob, const uint32_t *offset, int32_t n_tokens, const char *pattern,
                           st_bpe **out, sotto_error *err);
void st_bpe_free(st_bpe *b);
/* Appends the ids of n bytes of text to *ids, which is grown with st_grow. Invalid UTF-8 counts as its repaired form; a
 * byte that no token has is left out. On failure *count is as before. */
sotto_status st_bpe_encode(const st_bpe *b, const char *text, size_t n, int32_t **ids, int64_t *capacity,
                           int64_t *count, sotto_error *err);
/* -1 when no token has these bytes. */
int32_t st_bpe_find(const st_bpe *b, const char *bytes, size_t n);

#endif
