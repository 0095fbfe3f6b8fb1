/* decode_impl.h: what decode.c shares with the searches, greedy.c and beam.c. */
#ifndef SOTTO_SRC_MODELS_WHISPER_DECODE_IMPL_H
#define SOTTO_SRC_MODELS_WHISPER_DECODE_IMPL_H

#include "models/whisper/decode.h"

typedef struct st_sequence {
    int32_t *tokens;        /* [n_text_ctx + 1] after the prompt */
    float *logprobs;        /* [n_text_ctx + 1] */
    int n;                  /* without end of text */
    bool done;              /* ended by end of text */
    double sum;             /* of logprobs, that of end of text included */
    st_grammar_place place; /* in the grammar, after the first n_placed tokens */
    int n_placed;
    double forced; /* log of the probability that the grammar left to what it allows, summed over the steps; 0: all of it */
} st_sequence;

struct st_decoder {
    const st_vocab *vocab;
    st_engine engine;
    bool (*abort)(void *user);
    void *abort_user;
    st_rng rng;
    st_decode_counters counters;
    float *room; /* [max(n_seq, 2), n_vocab]: of logits that the engine cannot show where they are */
    st_logits_row logits[ST_MAX_SEQUENCES]; /* of each row of the last step */
    float *block_max;                       /* [blocks of n_vocab]: scratch */
    double *block_sum;                      /* [blocks of n_vocab + 2]: scratch */
    float *first; /* [n_vocab] and 2 [blocks of n_vocab]: the logits that the prompt ended with, and their blocks */
    bool first_has_blocks;
    float no_speech;  /* probability, from the same pass */
    st_row *rows;     /* [max(n_text_ctx, n_seq)] */
    int32_t *initial; /* [n_text_ctx]: prompt, start of transcript, language, task, prefix */
    int n_initial, sot_index;
    int32_t *token_store;
    float *logprob_store;
    st_sequence sequences[ST_MAX_SEQUENCES], others[ST_MAX_SEQUENCES], best;
    char *text;
    int64_t text_capacity;
    char *repaired;
    int64_t repaired_capacity;
};

/* Filter row `row` of the logits for a sequence. */
sotto_status st_decoder_filter(st_decoder *d, const st_decode_options *o, int row, st_sequence *s, st_allowed *allowed,
                               sotto_error *err);
/* Feed the last token of the listed sequences; row i of the logits is then that of list[i]. */
sotto_status st_decoder_step(st_decoder *d, const st_sequence *sequences, const int32_t *list, int n, sotto_error *err);
/* Whether a sequence of n tokens may get another one. */
bool st_decoder_has_room(const st_decoder *d, const st_decode_options *o, int n);
void st_sequence_copy(st_sequence *dst, const st_sequence *src);
/* Score by which candidates are compared. */
double st_sequence_score(const st_sequence *s, float length_penalty);

/* From the logits of the prompt's last token (row 0) to d->best. */
sotto_status st_search_greedy(st_decoder *d, const st_decode_options *o, sotto_error *err);
sotto_status st_search_beam(st_decoder *d, const st_decode_options *o, sotto_error *err);

#endif
