/* pcm.c: uncompressed and companded samples of any width to f32 mono at 16 kHz. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audio_impl.h"
#include "base/status.h"

static void from_u8(const unsigned char *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float)((int)in[i] - 128) / 128.0f;
}

static void from_s8(const unsigned char *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float)(in[i] < 128 ? (int)in[i] : (int)in[i] - 256) / 128.0f;
}

/* Bytes to the top of a signed 32-bit number, so that one division serves every width. */
static float from_top(uint32_t top)
{
    const int64_t v = top < 0x80000000u ? (int64_t)top : (int64_t)top - 0x100000000;
    return (float)v / 2147483648.0f;
}

static void from_s16le(const unsigned char *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++, in += 2)
        out[i] = from_top((uint32_t)in[1] << 24 | (uint32_t)in[0] << 16);
}

static void from_s16be(const unsigned char *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++, in += 2)
        out[i] = from_top((uint32_t)in[0] << 24 | (uint32_t)in[1] << 16);
}

static void from_s24le(const unsigned char *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++, in += 3)
        out[i] = from_top((uint32_t)in[2] << 24 | (uint32_t)in[1] << 16 | (uint32_t)in[0] << 8);
}

static void from_s24be(const unsigned char *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++, in += 3)
        out[i] = from_top((uint32_t)in[0] << 24 | (uint32_t)in[1] << 16 | (uint32_t)in[2] << 8);
}

static uint32_t le32(const unsigned char *p)
{
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static uint32_t be32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void from_s32le(const unsigned char *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++, in += 4)
        out[i] = from_top(le32(in));
}

static void from_s32be(const unsigned char *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++, in += 4)
        out[i] = from_top(be32(in));
}

static float f32_of(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static float f64_of(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return fabs(v) <= 3.0e38 ? (float)v : isnan(v) ? NAN : INFINITY;
}

static void from_f32le(const unsigned char *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++, in += 4)
        out[i] = f32_of(le32(in));
}

static void from_f32be(const unsigned char *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++, in += 4)
        out[i] = f32_of(be32(in));
}

static void from_f64le(const unsigned char *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++, in += 8)
        out[i] = f64_of((uint64_t)le32(in + 4) << 32 | le32(in));
}

static void from_f64be(const unsigned char *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++, in += 8)
        out[i] = f64_of((uint64_t)be32(in) << 32 | be32(in + 4));
}

/* ITU-T G.711: sign, 3 bits of segment, 4 of mantissa, with the bits of the code inverted. */
static void from_alaw(const unsigned char *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned c = in[i] ^ 0x55u, segment = c >> 4 & 7u;
        int v = (int)((c & 15u) << 4) + 8;
        if (segment)
            v = (v + 256) << (segment - 1);
        out[i] = (float)(c & 0x80u ? v : -v) / 32768.0f;
    }
}

static void from_mulaw(const unsigned char *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned c = ~(unsigned)in[i] & 0xFFu;
        const int v = (int)((((c & 15u) << 3) + 132u) << (c >> 4 & 7u)) - 132;
        out[i] = (float)(c & 0x80u ? -v : v) / 32768.0f;
    }
}

static const st_pcm_encoding encodings[] = {
    {"s16le", 2, from_s16le, false}, {"s16be", 2, from_s16be, false}, {"u8", 1, from_u8, false},
    {"s8", 1, from_s8, false},       {"s24le", 3, from_s24le, false}, {"s24be", 3, from_s24be, false},
    {"s32le", 4, from_s32le, false}, {"s32be", 4, from_s32be, false}, {"f32le", 4, from_f32le, true},
    {"f32be", 4, from_f32be, true},  {"f64le", 8, from_f64le, true},  {"f64be", 8, from_f64be, true},
    {"alaw", 1, from_alaw, false},   {"mulaw", 1, from_mulaw, false},
};

const st_pcm_encoding *st_pcm_encoding_find(const char *name)
{
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++)
        if (strcmp(encodings[i].name, name) == 0)
            return &encodings[i];
    return NULL;
}

enum { FRAMES = 1024 };

typedef struct pcm_state {
    st_audio_context context;
    st_pcm_format format;
    uint64_t left; /* bytes that still belong to the samples; UINT64_MAX = until the end */
    bool declared; /* left was given, so its end is expected */
    bool ended;
    unsigned char *bytes;    /* FRAMES frames */
    float *samples;          /* FRAMES * channels */
    st_resampler *resampler; /* NULL at 16 kHz */
    float mono[FRAMES];
    size_t n_mono, at_mono;
    int64_t n_not_finite;
} pcm_state;

static void pcm_close(void *state)
{
    pcm_state *p = state;
    if (!p)
        return;
    st_resampler_free(p->resampler);
    free(p->bytes);
    free(p->samples);
    free(p);
}

/* The next frames as mono samples in p->mono. */
static sotto_status pcm_fill(pcm_state *p, sotto_error *err)
{
    const size_t frame = p->format.frame_bytes, channels = p->format.channels;
    uint64_t want = (uint64_t)FRAMES * frame;
    if (want > p->left)
        want = p->left - p->left % frame;
    const size_t got = want ? st_stream_read(p->context.stream, p->bytes, (size_t)want) : 0;
    p->at_mono = p->n_mono = 0;
    if (p->context.stream->failed)
        return st_fail(err, SOTTO_E_IO, "reading failed: %s", strerror(errno));
    if (p->left != UINT64_MAX)
        p->left -= got;
    if (got < want || want == 0) {
        p->ended = true;
        if (p->declared && got < want)
            st_log(p->context.logger, SOTTO_LOG_WARNING,
                   "%s: the data ends %llu bytes before the size in its header; what is there is used", p->context.name,
                   (unsigned long long)p->left);
        else if (got % frame || (p->declared && p->left))
            st_log(p->context.logger, SOTTO_LOG_WARNING, "%s: the last frame is cut and left out", p->context.name);
        st_audio_warn_zeroed(&p->context, p->n_not_finite);
    }
    const size_t n = got / frame, width = (size_t)p->format.encoding->bytes;
    if (frame == width * channels)
        p->format.encoding->to_f32(p->bytes, p->samples, n * channels);
    else
        for (size_t i = 0; i < n; i++)
            p->format.encoding->to_f32(p->bytes + i * frame, p->samples + i * channels, channels);
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t c = 0; c < channels; c++) {
            const float v = p->samples[i * channels + c];
            if (isfinite(v) && fabsf(v) <= 1e6f) /* far beyond full scale is no sound either */
                sum += (double)v;
            else
                p->n_not_finite++;
        }
        p->mono[i] = (float)(sum / (double)channels);
    }
    p->n_mono = n;
    return SOTTO_OK;
}

static sotto_status pcm_read(void *state, float *out, size_t cap, size_t *n, sotto_error *err)
{
    pcm_state *p = state;
    *n = 0;
    while (*n < cap) {
        if (p->at_mono == p->n_mono && !p->ended)
            ST_TRY(pcm_fill(p, err));
        const size_t have = p->n_mono - p->at_mono;
        if (!p->resampler) {
            if (have == 0)
                break;
            const size_t take = have < cap - *n ? have : cap - *n;
            memcpy(out + *n, p->mono + p->at_mono, take * sizeof *out);
            p->at_mono += take;
            *n += take;
            continue;
        }
        const size_t room = st_resampler_room(p->resampler), take = have < room ? have : room;
        st_resampler_feed(p->resampler, p->mono + p->at_mono, take);
        p->at_mono += take;
        if (p->ended && p->at_mono == p->n_mono)
            st_resampler_finish(p->resampler);
        const size_t got = st_resampler_read(p->resampler, out + *n, cap - *n);
        *n += got;
        if (got == 0 && take == 0 && p->ended)
            break;
    }
    return SOTTO_OK;
}

sotto_status st_pcm_open(const st_audio_context *context, const st_pcm_format *format, uint64_t bytes,
                         st_audio_decoder *out, sotto_error *err)
{
    if (format->channels < 1 || format->channels > ST_PCM_MAX_CHANNELS)
        return st_fail(err, SOTTO_E_FORMAT, "%u channels, expected 1 to %u", format->channels, ST_PCM_MAX_CHANNELS);
    if (format->rate < ST_PCM_MIN_RATE || format->rate > ST_PCM_MAX_RATE)
        return st_fail(err, SOTTO_E_FORMAT, "%u samples a second, expected %u to %u", format->rate, ST_PCM_MIN_RATE,
                       ST_PCM_MAX_RATE);
    pcm_state *p = calloc(1, sizeof *p);
    if (!p)
        return st_fail_memory(err, sizeof *p, "PCM audio");
    p->context = *context;
    p->format = *format;
    p->left = bytes;
    p->declared = bytes != UINT64_MAX;
    p->bytes = malloc((size_t)FRAMES * format->frame_bytes);
    p->samples = malloc((size_t)FRAMES * format->channels * sizeof *p->samples);
    sotto_status status = SOTTO_OK;
    if (!p->bytes || !p->samples)
        status = st_fail_memory(err, (uint64_t)FRAMES * format->frame_bytes, "PCM audio");
    else if (format->rate != ST_AUDIO_RATE)
        status = st_resampler_create(format->rate, &p->resampler, err);
    if (status != SOTTO_OK) {
        pcm_close(p);
        return status;
    }
    const int64_t size = context->stream->source.size, at = context->stream->position;
    uint64_t there = size > at ? (uint64_t)(size - at) : 0;
    if (p->declared && (size < 0 || bytes < there))
        there = bytes;
    *out = (st_audio_decoder){.read = pcm_read,
                              .close = pcm_close,
                              .state = p,
                              .format = format->encoding->name,
                              .duration = (double)(there / format->frame_bytes) / format->rate};
    return SOTTO_OK;
}
