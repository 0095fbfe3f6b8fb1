/* vocab.h: tokens of a Whisper model: text tokens, the special tokens behind them, and the lists made from both.
 * Immutable after creation, shared between threads. Oracle: whisper.tokenizer (tests/golden/data/tokenizer.json). */
#ifndef SOTTO_SRC_MODELS_WHISPER_VOCAB_H
#define SOTTO_SRC_MODELS_WHISPER_VOCAB_H

#include "models/common/bpe.h"
#include "models/common/grammar_filter.h"
#include "sotto/model.h"

enum { ST_N_TIMESTAMPS = 1501 }; /* 0.00 .. 30.00 by 0.02 s */

/* The order of ids: n_text text tokens, end of text, start of transcript, n_languages languages, translate, transcribe,
 * start of LM, start of previous text, no speech, no timestamps, timestamps. */
typedef struct st_vocab_layout {
    int32_t n_text, n_languages;
    bool multilingual; /* false: English only; its language tokens mean nothing */
} st_vocab_layout;

typedef struct st_vocab {
    int32_t n_vocab, n_text, n_languages;
    bool multilingual;
    int32_t eot, sot, language /* of index 0 */, translate, transcribe, sot_lm, sot_prev, no_speech, no_timestamps,
        timestamp;
    int32_t *non_speech; /* symbols and marks that nobody says */
    int64_t n_non_speech;
    int32_t *blank; /* " " */
    int64_t n_blank;
    char *blob;       /* bytes of token i at offset[i], with a zero behind */
    uint32_t *offset; /* [n_vocab + 1] */
    st_bpe *bpe;
    st_shared_tree *texts; /* of the tokens up to end of text, for grammars */
} st_vocab;

/* Text tokens as raw bytes, by id. */
typedef struct st_token_source {
    void *ctx;
    sotto_status (*get)(void *ctx, int64_t id, const char **bytes, size_t *n, sotto_error *err);
    int64_t count; /* more than layout.n_text are ignored */
} st_token_source;

/* The layout of the published models by their n_vocab; else what n_vocab leaves for languages behind n_tokens tokens.
 * SOTTO_E_FORMAT when that is not 1 to 100. */
sotto_status st_vocab_layout_find(int32_t n_vocab, int64_t n_tokens, st_vocab_layout *out, sotto_error *err);
sotto_status st_vocab_build(const st_token_source *source, const st_vocab_layout *layout, st_vocab **out,
                            sotto_error *err);
/* From "tokenizer.ggml.tokens". */
sotto_status st_vocab_create(const sotto_model_file *file, int32_t n_vocab, st_vocab **out, sotto_error *err);
void st_vocab_free(st_vocab *v);

/* As sotto_whisper_tokenize and sotto_whisper_token_bytes. */
sotto_status st_vocab_tokenize(const st_vocab *v, const char *text, int32_t *ids, int64_t cap, int64_t *count,
                               sotto_error *err);
/* Special tokens are spelled "<|0.02|>". */
const char *st_vocab_bytes(const st_vocab *v, int32_t id, size_t *length);

/* Bytes at both ends that Python's str.strip() takes off; text is valid UTF-8. Moves *text and *n. */
void st_strip(const char **text, size_t *n);

#endif
