/* token_files.h: base tokens as bytes from the vocabulary files of CTranslate2 and Hugging Face folders. */
#ifndef SOTTO_SRC_FORMATS_TOKEN_FILES_H
#define SOTTO_SRC_FORMATS_TOKEN_FILES_H

#include "formats/model_file_impl.h"

/* Bytes of a word in GPT-2's printable spelling, where every byte is one character. Writes at most n bytes to out and
 * gives their number; -1 when a character spells no byte. */
int64_t st_unspell(const char *word, size_t n, char *out);

/* Number of tokens before "<|endoftext|>", n when there is none. */
int64_t st_count_base_tokens(const st_text *tokens, int64_t n);

/* Puts "tokenizer.ggml.tokens" from the first of vocabulary.json (an array), vocabulary.txt (a line a token), vocab.json
 * (an object) and tokenizer.json that the folder has: all words before "<|endoftext|>". */
sotto_status st_put_tokens(sotto_model_file *file, sotto_error *err);

#endif
