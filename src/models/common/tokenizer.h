/* tokenizer.h: tokens of a text and back, as the metadata of a GGUF file says (tokenizer.ggml.*).
 *
 * Types: "gpt2" byte-level pair encoding by a list of joins, "llama" SentencePiece's pair encoding by scores with bytes for what
 * no token has, "t5" the most probable cut. A tokenizer keeps its own copies, never changes and is shared between threads.
 * Oracle: llama.cpp's llama-tokenize (tests/golden/data/llama_tokens.json), sentencepiece for "t5". */
#ifndef SOTTO_SRC_MODELS_COMMON_TOKENIZER_H
#define SOTTO_SRC_MODELS_COMMON_TOKENIZER_H

#include <stdbool.h>

#include "sotto/model.h"

typedef struct st_tokenizer st_tokenizer;

/* The file may be closed afterwards. SOTTO_E_UNSUPPORTED for a type or a way to cut texts into words that is not known here. */
sotto_status st_tokenizer_create(const sotto_model_file *file, st_tokenizer **out, sotto_error *err);
void st_tokenizer_free(st_tokenizer *t);
/* "gpt2", "llama" or "t5". */
const char *st_tokenizer_kind(const st_tokenizer *t);
/* What was doubtful about the file, a sentence for the log; NULL when nothing was. */
const char *st_tokenizer_warning(const st_tokenizer *t);

typedef struct st_token_ids {
    int32_t bos, eos, eot, unk, pad, newline; /* -1: none */
    bool add_bos, add_eos, add_space_prefix;
} st_token_ids;
st_token_ids st_tokenizer_ids(const st_tokenizer *t);
int32_t st_tokenizer_size(const st_tokenizer *t);
/* Nothing is to be generated after this token. */
bool st_tokenizer_ends(const st_tokenizer *t, int32_t id);
/* Bytes that a token adds to a text, possibly part of a character. Control tokens: their name when `special`, else nothing.
 * Valid as long as the tokenizer; "" for ids out of range. */
const char *st_tokenizer_bytes(const st_tokenizer *t, int32_t id, bool special, size_t *n);
/* The token that the file spells this way ("<|im_end|>", "<0x0A>", "\u2581the"); -1 when there is none. */
int32_t st_tokenizer_find(const st_tokenizer *t, const char *spelling, size_t n);

/* Appends the ids of n bytes of text to *ids, which is grown with st_grow. add_special: begin and end tokens as the file says.
 * parse_special: the names of control tokens in the text become these tokens; those of user-defined tokens always do.
 * Bytes that are not UTF-8 count as U+FFFD, one each ("llama": as they are). On failure *count is as before. */
sotto_status st_tokenizer_encode(const st_tokenizer *t, const char *text, size_t n, bool add_special,
                                 bool parse_special, int32_t **ids, int64_t *capacity, int64_t *count, sotto_error *err);

typedef struct st_text_span {
    size_t begin, end;
} st_text_span;
/* The same with parse_special outside of the given spans (in order, apart) and without it inside: a text from somebody
 * else within a frame of control tokens. */
sotto_status st_tokenizer_encode_framed(const st_tokenizer *t, const char *text, size_t n, const st_text_span *plain,
                                        int64_t n_plain, bool add_special, int32_t **ids, int64_t *capacity,
                                        int64_t *count, sotto_error *err);

#endif
