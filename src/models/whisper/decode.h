/* decode.h: one window whose audio is encoded already: options in, the best token sequence out.
 * Source: DecodingTask, GreedyDecoder, BeamSearchDecoder and MaximumLikelihoodRanker of openai-whisper's decoding.py.
 * The prompt goes through the network once, for one sequence; the others begin as its copies, and so do later attempts. */
#ifndef SOTTO_SRC_MODELS_WHISPER_DECODE_H
#define SOTTO_SRC_MODELS_WHISPER_DECODE_H

#include "models/common/grammar_filter.h"
#include "models/whisper/engine.h"
#include "models/whisper/filters.h"

enum { ST_MAX_SEQUENCES = 16 };

typedef struct st_decode_options {
    int language; /* index; ignored for English-only models */
    bool translate, timestamps;
    int group;                      /* beams at temperature 0 (1 = greedy), candidates above; 1 .. engine.n_seq */
    float patience, length_penalty; /* negative penalty: divide by the length */
    float temperature;
    int sample_len;        /* tokens at most */
    const int32_t *prompt; /* previous text, only its last n_text_ctx / 2 - 1 tokens are used */
    int64_t n_prompt;
    const int32_t *prefix; /* the window's text is to begin with these */
    int n_prefix;
    st_filters filters;
    st_grammar_filter *grammar; /* that the text is to follow, NULL = none; see follow.h */
    float grammar_penalty;
    bool again;      /* window and prompt are those of the decoder's last st_decode, and nothing was decoded since */
    int32_t n_steps; /* of 0.02 s that the window holds, 0 = as many as there are timestamps; of use to the grammar only */
} st_decode_options;

typedef struct st_decode_result {
    const int32_t *tokens; /* without the end of text; valid until the decoder's next call */
    const float *logprobs; /* of each, under the filtered distribution at temperature 1 */
    int n_tokens;
    bool complete;         /* ended by end of text, not by a limit */
    bool off_grammar;      /* the text is not one of the grammar */
    float grammar_logprob; /* log of the share of the network's expectations that the grammar let be, mean of all tokens */
    double sum_logprob;
    float avg_logprob, no_speech_prob, temperature, compression_ratio;
} st_decode_result;

typedef struct st_decode_counters {
    int64_t n_encode, n_prompt, n_decode, n_fallback; /* windows, prompt passes, steps, repeated windows */
    double encode_s, prompt_s, decode_s;
} st_decode_counters;

typedef struct st_decoder st_decoder;

/* The engine is copied; its ctx and the vocabulary must outlive the decoder. */
sotto_status st_decoder_create(const st_vocab *vocab, const st_engine *engine, st_decoder **out, sotto_error *err);
void st_decoder_free(st_decoder *d);
/* For the whole recording: random numbers start at seed, counters at zero. abort may be NULL. */
void st_decoder_begin(st_decoder *d, uint64_t seed, bool (*abort)(void *user), void *user);
st_decode_counters *st_decoder_counters(st_decoder *d);

/* SOTTO_E_ABORTED when abort said so, SOTTO_E_DEVICE when the network gave NaN, else what the engine returned. */
sotto_status st_decode(st_decoder *d, const st_decode_options *options, st_decode_result *out, sotto_error *err);
/* Probabilities [n_languages] of the window's language; *no_speech (may be NULL) is the probability of no speech.
 * SOTTO_E_UNSUPPORTED for English-only models. */
sotto_status st_decode_language(st_decoder *d, float *probabilities, int *best, float *no_speech, sotto_error *err);

/* The text of the tokens below `end_id`: bytes joined, repaired as UTF-8. *text lies in the decoder, until the next call. */
sotto_status st_decode_text(st_decoder *d, const int32_t *tokens, int n, int32_t end_id, const char **text,
                            size_t *length, sotto_error *err);
/* Bytes of a text by the bytes that zlib makes of it. */
sotto_status st_compression_ratio(const char *text, size_t n, float *out, sotto_error *err);

#endif
