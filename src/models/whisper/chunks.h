/* chunks.h: from spans of speech to the pieces of a recording that are decoded one by one: each no longer than a window, cut
 * at pauses, and in the middle of speech only where it goes on for longer than a window, at the most silent place. A chunk
 * takes all spans that fit; when the next one begins inside the window and does not fit, the chunk ends in the longest
 * pause of the window's later half instead, which is more often the end of a sentence.
 * Pure functions. A chunk depends on nothing that is heard later, so audio may still be arriving. */
#ifndef SOTTO_SRC_MODELS_WHISPER_CHUNKS_H
#define SOTTO_SRC_MODELS_WHISPER_CHUNKS_H

#include "sotto/base.h"

#include <stdbool.h>

/* Frames of 10 ms of the recording: [first, end). */
typedef struct st_chunk {
    int64_t first, end;
} st_chunk;

/* What is known of the speech in a recording. */
typedef struct st_speech {
    const st_chunk *spans; /* that have ended, in order, not overlapping */
    int64_t n_spans;
    int64_t open;       /* first frame of a span that has not ended; negative: there is none */
    int64_t reaches;    /* which ends at this frame or later */
    int64_t heard;      /* every span that begins before this frame is known */
    bool final;         /* there is no more audio */
    const float *level; /* how likely speech is, in each 512 samples (3.2 frames) */
    int64_t n_level;
} st_speech;

enum { ST_CHUNK_PAD = 60 }; /* what recordings are decoded with */

typedef struct st_chunk_rules {
    int64_t window; /* frames of a chunk at most */
    int64_t pad;    /* frames of pause kept before and behind, at most half of the pause */
} st_chunk_rules;

/* The first chunk of the speech at or after frame `from`, which is the end of the chunk before (or where to begin). Returns
 * false when there is none, or when audio that has not been heard may yet belong to it. */
bool st_chunk_next(const st_speech *speech, const st_chunk_rules *rules, int64_t from, st_chunk *out);

/* Frames of speech in [first, end). */
int64_t st_chunk_speech(const st_speech *speech, int64_t first, int64_t end);

/* No chunk that st_chunk_next() will give for `from` begins before this frame; at least `from`. */
int64_t st_chunk_earliest(const st_speech *speech, const st_chunk_rules *rules, int64_t from);

#endif
