/* spans.h: from probabilities, chunk by chunk, to spans of speech. Knows no network.
 * Source: get_speech_timestamps() of Silero VAD. Speech begins with a chunk at or above the threshold; it ends where a pause
 * begins (below the lower threshold) that lasts long enough; too short spans are dropped, too long ones are cut at their
 * longest pause; what is left is widened by the padding. Here the same is told as early as it is certain. */
#ifndef SOTTO_SRC_MODELS_SILERO_SPANS_H
#define SOTTO_SRC_MODELS_SILERO_SPANS_H

#include <stdbool.h>

#include "sotto/vad.h"

/* Samples: [first, end). */
typedef struct st_vad_range {
    int64_t first, end;
} st_vad_range;

typedef struct st_vad_spans {
    float threshold, neg_threshold;
    int64_t min_speech, min_silence, pad; /* samples */
    double max_speech;                    /* samples without the padding */
    /* the chunk at hand */
    int64_t at; /* its first sample */
    bool speaking;
    int64_t start;      /* of the speech */
    int64_t quiet;      /* where a pause in it began; -1: none */
    st_vad_range pause; /* the longest pause in it that would do for a cut; empty: none */
    /* spans */
    st_vad_range *spans; /* n_final that do not change any more, then perhaps one whose end is not widened yet */
    int64_t n, n_final, cap;
    int64_t open; /* widened start of the speech when it is certain to become a span, else -1 */
} st_vad_spans;

/* SOTTO_E_ARGUMENT with the field and its range. *s is zeroed or from an earlier call: spans are forgotten. */
sotto_status st_vad_spans_begin(st_vad_spans *s, const sotto_vad_options *options, sotto_error *err);
void st_vad_spans_free(st_vad_spans *s);
/* The probability of the next chunk. */
sotto_status st_vad_spans_add(st_vad_spans *s, float probability, sotto_error *err);
/* The recording has n_samples, which end in the last chunk. */
sotto_status st_vad_spans_finish(st_vad_spans *s, int64_t n_samples, sotto_error *err);
/* First sample of a span that has begun for certain and is not final, or -1. */
int64_t st_vad_spans_open(const st_vad_spans *s);
/* Which ends at this sample or later. */
int64_t st_vad_spans_reaches(const st_vad_spans *s);
/* No span that is neither final nor open begins before this sample. */
int64_t st_vad_spans_heard(const st_vad_spans *s);

#endif
