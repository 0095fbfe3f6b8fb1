/* missed.h: how much of the voice in a window its text leaves out. The model sometimes ends a window after its first sentence,
 * as if the rest were silence, or goes from one sentence to a much later one: more so when the text before has the same
 * words. No score tells, since what is written was really said; the sound does.
 * Where it
 * begins tells, too: timestamps are often whole seconds, and a window that follows one starts behind the first word.
 * Pure functions. Not in the original, which passes over such a window whole, and begins the next where the text says. */
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

enum {
    ST_VOICE_PAUSE = 20, /* frames without voice that are more than a consonant */
    ST_VOICE_REACH = 80, /* frames by which a timestamp is late, at most */
    ST_VOICE_TAIL = 15   /* frames of a last word that a timestamp may cut off */
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

/* Frame where what is spoken at frame `at` begins: in the pause before it, if `at` is in the midst of voice and a pause ended
 * shortly before; else `at`. A window that begins behind the first word of a sentence tends to leave out much of it. */
int64_t st_voice_begin(const st_voice *v, int64_t at, int64_t size);

typedef struct st_missed {
    int64_t inside; /* frames of voice between timestamps, beyond what the tokens between them may stand for */
    int64_t rest;   /* frames of voice behind the last timestamp, when nothing but the end of the text follows it */
    int64_t last;   /* frame of that timestamp; -1: there is none */
} st_missed;

/* tokens: of a window of `size` frames, as decoded; timestamp: id of the first one, in steps of 20 ms. */
st_missed st_missed_count(const st_voice *v, const int32_t *tokens, int n, int32_t timestamp, int64_t size);

#endif
