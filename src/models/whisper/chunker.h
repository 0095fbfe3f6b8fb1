/* chunker.h: the chunks of a recording one after another, for batch.h: those of its speech, or without knowing of speech
 * pieces that end where the audio is most silent. */
#ifndef SOTTO_SRC_MODELS_WHISPER_CHUNKER_H
#define SOTTO_SRC_MODELS_WHISPER_CHUNKER_H

#include "models/whisper/batch.h"

typedef struct st_chunker {
    const st_speech *speech; /* NULL: not known */
    st_window_source audio;
    int64_t from, end; /* end of the last chunk; where nothing is heard any more */
    int64_t window;    /* frames of a chunk at most */
    float *log_mel;    /* [3000, n_mels], when it is needed */
} st_chunker;

/* *c is zeroed or from an earlier call. */
void st_chunker_begin(st_chunker *c, const st_window_source *audio, const st_speech *speech,
                      const st_settings *settings);
void st_chunker_free(st_chunker *c);
/* The `next` of st_batch_source; ctx is the st_chunker. */
sotto_status st_chunker_next(void *ctx, int64_t frames, bool final, st_chunk *out, bool *have, sotto_error *err);
/* No chunk to come begins before this frame. */
int64_t st_chunker_earliest(const st_chunker *c);

/* Where to cut between the frames `from` and `to` (at least 1 apart): in the middle of the fifth of a second with the least
 * energy, the latest of equals. log_mel [.., n_mels]. */
int64_t st_cut_quiet(const float *log_mel, int n_mels, int64_t from, int64_t to);

#endif
