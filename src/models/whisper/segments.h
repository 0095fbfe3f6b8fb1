/* segments.h: from the tokens of a window to segments with times and whole characters, and to where the next window starts.
 * Source: the loop of openai-whisper's transcribe.py, with these differences, so that no speech is lost or text broken:
 * a window that stopped at the token limit is not passed over when its last timestamp says where it stopped; a character split over two segments goes to the first; segments without text are left out. */
#ifndef SOTTO_SRC_MODELS_WHISPER_SEGMENTS_H
#define SOTTO_SRC_MODELS_WHISPER_SEGMENTS_H

#include "models/whisper/vocab.h"

typedef struct st_slice {
    int first, end;              /* tokens */
    size_t text_first, text_end; /* of st_slicer.bytes */
    double start, stop;          /* seconds, as the timestamps say: maybe behind the end of the audio */
} st_slice;

typedef struct st_window {
    const int32_t *tokens;
    int n_tokens;
    bool complete;      /* ended by end of text */
    int64_t seek, size; /* frames of 10 ms */
    bool whole;         /* one segment of all of it */
    int max_tokens; /* text tokens of a segment, 0 = no limit: longer ones are cut, their times shared out by tokens */
} st_window;

typedef struct st_slicer {
    const st_vocab *vocab;
    st_slice *slices;
    int n_slices;
    int64_t advance; /* frames to the next window, 1 .. size */
    bool truncated;  /* text may be missing: the limit was reached and no timestamp says where */
    char *bytes;     /* of the text tokens, not repaired */
    size_t *offset;  /* [n_tokens + 1]: of each token in bytes */
    uint8_t *inside; /* [bytes + 1]: 1 between the bytes of one character */
    int64_t slice_capacity, byte_capacity, offset_capacity, inside_capacity;
} st_slicer;

void st_slicer_init(st_slicer *s, const st_vocab *vocab);
void st_slicer_free(st_slicer *s);
sotto_status st_slicer_run(st_slicer *s, const st_window *w, sotto_error *err);

#endif
