/* batch.h: several chunks of a recording decoded at once, so that the network's weights are read once for all of them.
 *
 * Each slot is a longform.h with a thread of its own, for which a chunk is a recording. Its engine is a facade: encode and
 * decode wait until every slot wants something of the network or has no chunk left; then the caller's thread, which alone
 * touches the network and calls back, gives out chunks, encodes window after window and decodes the rows of all slots in one
 * call. What is computed thus depends on neither time nor luck, and a chunk's text not on the others: it is that of the chunk
 * alone.
 *
 * Different from a recording in one piece: prompts, previous text and thresholds act inside a chunk. A language that is not
 * given is detected once, in the first chunk. Without timestamps the last window of each chunk is asked for text only. */
#ifndef SOTTO_SRC_MODELS_WHISPER_BATCH_H
#define SOTTO_SRC_MODELS_WHISPER_BATCH_H

#include "models/whisper/chunks.h"
#include "models/whisper/longform.h"

typedef struct st_batch_source {
    st_window_source audio; /* asked for the windows of chunks, from the caller's thread */
    void *ctx;
    /* The chunk after the last one, at most a window of the settings long, of the frames before `frames`; *have false: there
     * is none yet, or with `final` none any more. */
    sotto_status (*next)(void *ctx, int64_t frames, bool final, st_chunk *out, bool *have, sotto_error *err);
} st_batch_source;

typedef struct st_batch st_batch;

/* As many slots as the engine has windows. Engine and source are copied; what they point to and the vocabulary must outlive
 * it. */
sotto_status st_batch_create(const st_vocab *vocab, const st_engine *engine, const st_batch_source *source,
                             st_batch **out, sotto_error *err);
void st_batch_free(st_batch *b);
/* As the functions of longform.h. Segments, progress and logs come from the thread that calls run(), segments in the order of
 * speech. */
sotto_status st_batch_begin(st_batch *b, const sotto_whisper_options *options, sotto_error *err);
void st_batch_set_total(st_batch *b, int64_t frames);
void st_batch_set_duration(st_batch *b, double seconds);
/* Goes on while every slot has a chunk, so that the result does not depend on the pieces in which audio came; with `final` to
 * the end. */
sotto_status st_batch_run(st_batch *b, int64_t frames, bool final, sotto_error *err);
/* As the last begin() read the options. */
const st_settings *st_batch_settings(const st_batch *b);
/* See st_part; NULL: there is none to know. Until the next begin. */
void st_batch_set_speech(st_batch *b, const st_speech *speech);
int64_t st_batch_count(const st_batch *b);
const sotto_whisper_segment *st_batch_segment(const st_batch *b, int64_t index);
const char *st_batch_language(const st_batch *b, float *probability);
st_decode_counters st_batch_counters(const st_batch *b);
/* Seed of the random numbers of chunk 0, 1, ... */
uint64_t st_batch_seed(uint64_t seed, int64_t chunk);

#endif
