/* filters.h: which tokens may come next, and how likely they are.
 * Source: SuppressBlank, SuppressTokens and ApplyTimestampRules of openai-whisper's decoding.py. */
#ifndef SOTTO_SRC_MODELS_WHISPER_FILTERS_H
#define SOTTO_SRC_MODELS_WHISPER_FILTERS_H

#include "models/common/logits.h"
#include "models/whisper/vocab.h"

typedef struct st_filters {
    const st_vocab *vocab;
    const int32_t *suppress; /* ids inside the vocabulary */
    int64_t n_suppress;
    bool suppress_blank;
    bool timestamps;     /* apply the rules of timestamps */
    int32_t max_initial; /* first timestamp at most this many steps of 0.02 s; negative = off */
} st_filters;

/* What is left of a row. Entries outside the ranges are forbidden, as are those of -infinity inside. */
typedef struct st_allowed {
    st_range ranges[2]; /* none is empty */
    int n_ranges;
    float max;              /* largest allowed logit; -infinity: nothing may come */
    double log_sum;         /* log of the sum of exp(logit): logprob of token t = logits[t] - log_sum */
    const float *block_max; /* of the row, as in logits.h */
} st_allowed;

/* A row of the network's output. */
typedef struct st_logits_row {
    float *logits;    /* [n_vocab] */
    float *block_max; /* [st_logits_blocks(n_vocab)]: of the row when block_sum is given, else scratch */
    float *block_sum; /* the same, or NULL: not known */
} st_logits_row;

/* Writes -infinity to suppressed entries of the logits, and to the row's blocks what follows; sampled are the window's tokens
 * so far. False when logits hold NaN or +infinity. */
bool st_filters_apply(const st_filters *f, const st_logits_row *row, const int32_t *sampled, int n_sampled,
                      st_allowed *out);
/* Logits inside the ranges have become less: the row's block_max, and max and log_sum, are made anew. */
void st_filters_recount(const st_logits_row *row, int32_t n_vocab, st_allowed *allowed);

#endif
