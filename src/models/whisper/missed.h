/* missed.h: how much of the voice in a window its text leaves out. The model sometimes ends a window after its first sentence,
 * as if the rest were silence, or goes from one sentence to a much later one: more so when the text before has the same
 * words. No score tells, since what is written was really said; the sound does.
 * Pure functions. Not in the original, which passes over such a window whole. */
#ifndef SOTTO_SRC_MODELS_WHISPER_MISSED_H
#define SOTTO_SRC_MODELS_WHISPER_MISSED_H

#include "models/whisper/chunks.h"

enum {
    ST_MISSED_FRAMES = 3000,
    ST_MISSED_INSIDE = 300, /* frames of voice left out that are more than chance */
    ST_MISSED_REST = 200,
    ST_MISSED_PER_TOKEN = 60, /* frames of voice that one token may stand for: half of what slow speech needs */
    ST_MISSED_PER_TOKEN_OF_SPEECH = 100 /* the same where voice is spans of speech, with the pauses between words */
};

typedef struct st_voice {
    int per_token;
    int32_t before[ST_MISSED_FRAMES + 1];                       /* [i]: frames of voice in [0, i) of a window */
    float loudness[ST_MISSED_FRAMES], sorted[ST_MISSED_FRAMES]; /* scratch */
} st_voice;

/* From log_mel [3000, n_mels], of which n frames are of the recording. Voice is nearly as loud as the loudest and rises and
 * falls with the syllables: noise as loud as speech is none, nor is what noise covers. */
void st_voice_from_mel(st_voice *v, const float *log_mel, int n_mels, int64_t n);
/* From spans of speech; the window begins at frame seek. */
void st_voice_from_speech(st_voice *v, const st_speech *speech, int64_t seek, int64_t n);

typedef struct st_missed {
    int64_t inside; /* frames of voice between timestamps, beyond what the tokens between them may stand for */
    int64_t rest;   /* frames of voice behind the last timestamp, when nothing but the end of the text follows it */
    int64_t last;   /* frame of that timestamp; -1: there is none */
} st_missed;

/* tokens: of a window of `size` frames, as decoded; timestamp: id of the first one, in steps of 20 ms. */
st_missed st_missed_count(const st_voice *v, const int32_t *tokens, int n, int32_t timestamp, int64_t size);

#endif
