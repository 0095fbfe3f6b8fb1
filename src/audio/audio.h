/* audio.h: any recording as a stream of f32 mono samples at 16 kHz, nominally in -1..1, all finite.
 *
 * Content is told by its first bytes, never by its name. WAV (RIFF, RF64) goes through our own reader and resampler in
 * every build, so that builds agree to the bit; everything else goes through the FFmpeg libraries where the build has
 * them, with 16-bit output as the original's loader asks of ffmpeg. Memory does not grow with the length. Nothing needs
 * seeking, so pipes work. A stream belongs to one thread at a time. */
#ifndef SOTTO_SRC_AUDIO_AUDIO_H
#define SOTTO_SRC_AUDIO_AUDIO_H

#include <stdbool.h>

#include "sotto/base.h"

#define ST_AUDIO_RATE 16000

typedef struct st_audio st_audio;

/* Where bytes come from. read() gives up to n bytes, 0 at the end, negative on error. seek() is NULL for a pipe; it
 * takes a position from the start and returns 0 or negative. size is -1 when unknown. close() may be NULL. */
typedef struct st_audio_source {
    int64_t (*read)(void *user, void *buffer, size_t n);
    int64_t (*seek)(void *user, int64_t position);
    void (*close)(void *user);
    void *user;
    int64_t size;
} st_audio_source;

/* path "-" is the standard input. raw NULL: sniff; else "s16le:16000:1" = encoding:rate:channels of headerless PCM.
 * Encodings: s8 u8 s16le s16be s24le s24be s32le s32be f32le f32be f64le f64be alaw mulaw.
 * The logger gets warnings (cut data, samples that are not finite). Returns SOTTO_E_NOT_FOUND, SOTTO_E_IO,
 * SOTTO_E_FORMAT, SOTTO_E_UNSUPPORTED, SOTTO_E_ARGUMENT (raw) or SOTTO_E_MEMORY; messages begin with the name. */
SOTTO_NODISCARD sotto_status st_audio_open(const char *path, const char *raw, const sotto_logger *logger,
                                           st_audio **out, sotto_error *err);
/* The same from any source; takes the source, also on failure. `name` is for messages and is copied. */
SOTTO_NODISCARD sotto_status st_audio_open_source_take(const st_audio_source *source, const char *name, const char *raw,
                                                       const sotto_logger *logger, st_audio **out, sotto_error *err);
/* Checks a raw specification without opening anything: SOTTO_OK or SOTTO_E_ARGUMENT. */
SOTTO_NODISCARD sotto_status st_audio_raw_check(const char *raw, sotto_error *err);
void st_audio_close(st_audio *audio);

/* Up to cap samples; *n 0 is the end. */
SOTTO_NODISCARD sotto_status st_audio_read(st_audio *audio, float *out, size_t cap, size_t *n, sotto_error *err);
/* Seconds as the file says, 0 when unknown; an estimate. */
double st_audio_duration(const st_audio *audio);
/* True for a regular file: all of it is there and reading does not wait. */
bool st_audio_is_file(const st_audio *audio);
/* "WAV", "mp3", "raw": what was found. Valid as long as the stream. */
const char *st_audio_format(const st_audio *audio);

#endif
