/* audio_impl.h: what a decoder implements and what it may use. */
#ifndef SOTTO_SRC_AUDIO_AUDIO_IMPL_H
#define SOTTO_SRC_AUDIO_AUDIO_IMPL_H

#include "audio.h"

/* Bytes with a look at the first ones: peeking never loses anything. */
typedef struct st_stream {
    st_audio_source source;
    unsigned char head[256]; /* the first bytes, read for sniffing */
    size_t n_head;
    int64_t position; /* of the next byte that st_stream_read gives */
    bool failed;      /* the source reported an error */
} st_stream;

/* Fills up to n bytes, short only at the end or on an error (then s->failed). */
size_t st_stream_read(st_stream *s, void *buffer, size_t n);
/* Skips n bytes by reading; false when the stream ends before. */
bool st_stream_skip(st_stream *s, uint64_t n);

typedef struct st_audio_context {
    st_stream *stream;
    const char *name;
    const sotto_logger *logger;
} st_audio_context;

/* Tells that n samples count as zero; nothing when there are none. */
void st_audio_warn_zeroed(const st_audio_context *context, int64_t n);

typedef struct st_audio_decoder {
    const char *format;
    double duration; /* 0 = unknown */
    /* Up to cap f32 mono samples at 16 kHz; *n 0 at the end. */
    sotto_status (*read)(void *state, float *out, size_t cap, size_t *n, sotto_error *err);
    void (*close)(void *state);
    void *state;
} st_audio_decoder;

/* Each returns SOTTO_E_UNSUPPORTED only before it has consumed more than the stream's head or sought; see audio.c. */
sotto_status st_audio_open_wav(const st_audio_context *context, st_audio_decoder *out, sotto_error *err);
sotto_status st_audio_open_raw(const st_audio_context *context, const char *spec, st_audio_decoder *out,
                               sotto_error *err);
sotto_status st_audio_open_ffmpeg(const st_audio_context *context, st_audio_decoder *out, sotto_error *err);

/* ---- PCM: bytes of samples to mono at 16 kHz; shared by WAV and raw ---- */

typedef struct st_pcm_encoding {
    const char *name;
    int bytes;
    void (*to_f32)(const unsigned char *in, float *out, size_t n);
    bool is_float;
} st_pcm_encoding;

/* NULL when there is none of that name. */
const st_pcm_encoding *st_pcm_encoding_find(const char *name);

typedef struct st_pcm_format {
    const st_pcm_encoding *encoding;
    uint32_t rate, channels;
    uint32_t frame_bytes; /* at least channels * encoding->bytes; what is beyond is skipped */
} st_pcm_format;

#define ST_PCM_MIN_RATE 1000u
#define ST_PCM_MAX_RATE 768000u
#define ST_PCM_MAX_CHANNELS 256u

/* Frames of the stream from where it stands: `bytes` of them, or UINT64_MAX = until the end. */
sotto_status st_pcm_open(const st_audio_context *context, const st_pcm_format *format, uint64_t bytes,
                         st_audio_decoder *out, sotto_error *err);

/* ---- resampler: windowed sinc, any rate to 16 kHz ---- */

typedef struct st_resampler st_resampler;
sotto_status st_resampler_create(uint32_t rate, st_resampler **out, sotto_error *err);
void st_resampler_free(st_resampler *r);
/* How many input samples it takes at once. */
size_t st_resampler_room(const st_resampler *r);
/* n <= room. */
void st_resampler_feed(st_resampler *r, const float *in, size_t n);
/* No more input: what is missing after the end counts as zero. */
void st_resampler_finish(st_resampler *r);
/* The output that the input so far allows, up to cap; in all ceil(n_in * 16000 / rate) samples after finish. */
size_t st_resampler_read(st_resampler *r, float *out, size_t cap);

/* "FLAC", "an MP3", ... what the first bytes look like; never NULL. */
const char *st_audio_sniff(const unsigned char *head, size_t n);

#endif
