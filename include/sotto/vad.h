/* vad.h: voice activity detection: where in a recording somebody speaks.
 *
 * A sotto_vad_model never changes after loading: share it between threads. A sotto_vad_stream hears one recording at a time
 * and belongs to one thread at a time. Audio is f32 mono at 16,000 samples a second, nominally in -1..1; samples that are not
 * finite count as zero. It may be pushed in pieces of any size: spans and probabilities do not depend on them.
 * Source: Silero VAD 6 (https://github.com/snakers4/silero-vad); spans follow its get_speech_timestamps(). */
#ifndef SOTTO_VAD_H
#define SOTTO_VAD_H

#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SOTTO_VAD_SAMPLE_RATE 16000
#define SOTTO_VAD_CHUNK 512 /* samples that one probability stands for: 32 ms */

typedef struct sotto_vad_model sotto_vad_model;
typedef struct sotto_vad_stream sotto_vad_stream;

/* Open a model: a folder or a .safetensors file with the tensors of Silero VAD. The file need not be trusted. backend says
 * where it runs: NULL, or device NULL, is the CPU; n_threads 0 is one thread, more are hardly of use.
 * Returns SOTTO_E_NOT_FOUND, SOTTO_E_IO, SOTTO_E_FORMAT, SOTTO_E_UNSUPPORTED, SOTTO_E_MEMORY, SOTTO_E_DEVICE. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_vad_model_open(const char *path, const sotto_backend_options *backend,
                                                            sotto_vad_model **out, sotto_error *err);
/* From memory, which is not needed after the call. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_vad_model_open_memory(const void *data, size_t size,
                                                                   const sotto_backend_options *backend,
                                                                   sotto_vad_model **out, sotto_error *err);
/* The model must outlive its streams, and sessions of Whisper that were given it. */
SOTTO_API void sotto_vad_model_free(sotto_vad_model *model);

typedef struct sotto_vad_options {
    size_t size;         /* of this struct, set by _default */
    float threshold;     /* speech begins where the probability is at least this. Default 0.5 */
    float neg_threshold; /* and may end where it is below this; negative: threshold - 0.15, at least 0.01. Default -1 */
    int min_speech_ms;   /* spans that are not longer are dropped. Default 250 */
    int min_silence_ms;  /* a pause as long ends a span. Default 100 */
    double max_speech_s; /* longer spans are cut, at the longest pause in them if there is one. Default INFINITY */
    int pad_ms;          /* added before and behind each span, at most half of the pause. Default 30 */
} sotto_vad_options;

SOTTO_API void sotto_vad_options_default(sotto_vad_options *options);

/* A stream with its own compute memory, ready for a recording. options may be NULL and are copied.
 * Returns SOTTO_E_ARGUMENT with the field that is out of its range, SOTTO_E_MEMORY, SOTTO_E_DEVICE. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_vad_stream_create(const sotto_vad_model *model,
                                                               const sotto_vad_options *options, sotto_vad_stream **out,
                                                               sotto_error *err);
SOTTO_API void sotto_vad_stream_free(sotto_vad_stream *stream);
/* Forget the recording and begin another; options NULL: as before. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_vad_reset(sotto_vad_stream *stream, const sotto_vad_options *options,
                                                       sotto_error *err);
/* Hear n more samples. They are computed about a second at a time. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_vad_push(sotto_vad_stream *stream, const float *pcm, int64_t n,
                                                      sotto_error *err);
/* The recording is over: what is left is computed and the last span ends. Only sotto_vad_reset() goes on. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_vad_finish(sotto_vad_stream *stream, sotto_error *err);

/* Seconds from the first sample. */
typedef struct sotto_vad_span {
    double start, end;
} sotto_vad_span;

/* Spans that will not change any more, in order. */
SOTTO_API int64_t sotto_vad_span_count(const sotto_vad_stream *stream);
/* SOTTO_E_ARGUMENT outside 0 .. count - 1. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_vad_span_get(const sotto_vad_stream *stream, int64_t index,
                                                          sotto_vad_span *out);
/* How likely speech is in each SOTTO_VAD_CHUNK samples heard so far, *count of them; NULL when there are none. Valid until
 * the next call on the stream. */
SOTTO_API const float *sotto_vad_probabilities(const sotto_vad_stream *stream, int64_t *count);

#ifdef __cplusplus
}
#endif
#endif
