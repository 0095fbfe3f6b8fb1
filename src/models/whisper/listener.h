/* listener.h: voice activity detection beside the front end: hears the same samples and tells the spans in frames. */
#ifndef SOTTO_SRC_MODELS_WHISPER_LISTENER_H
#define SOTTO_SRC_MODELS_WHISPER_LISTENER_H

#include "models/whisper/chunks.h"
#include "sotto/vad.h"

typedef struct st_listener {
    const sotto_vad_model *model; /* of the stream */
    sotto_vad_stream *stream;     /* NULL: never used */
    bool on;
    st_chunk *spans;
    int64_t cap;
    st_speech speech;
} st_listener;

/* *l is zeroed or from an earlier call. model NULL: off, and all that follows does nothing. */
sotto_status st_listener_begin(st_listener *l, const sotto_vad_model *model, const sotto_vad_options *options,
                               sotto_error *err);
void st_listener_free(st_listener *l);
sotto_status st_listener_feed(st_listener *l, const float *pcm, int64_t n, sotto_error *err);
sotto_status st_listener_finish(st_listener *l, sotto_error *err);

#endif
