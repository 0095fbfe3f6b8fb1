/* audio_raw.c: PCM without a header, described by the user: "s16le:16000:1". */
#include <stdlib.h>
#include <string.h>

#include "audio_impl.h"
#include "base/status.h"

static sotto_status parse(const char *spec, st_pcm_format *out, sotto_error *err)
{
    char name[16];
    const size_t n = strcspn(spec, ":");
    if (n >= sizeof name)
        return st_fail(err, SOTTO_E_ARGUMENT, "raw format \"%s\": expected ENCODING:RATE:CHANNELS, as s16le:16000:1",
                       spec);
    memcpy(name, spec, n);
    name[n] = 0;
    *out = (st_pcm_format){.encoding = st_pcm_encoding_find(name), .rate = ST_AUDIO_RATE, .channels = 1};
    if (!out->encoding)
        return st_fail(
            err, SOTTO_E_ARGUMENT,
            "raw format \"%s\": unknown encoding \"%s\", expected s8, u8, s16le, s16be, s24le, s24be, s32le, s32be, "
            "f32le, f32be, f64le, f64be, alaw or mulaw",
            spec, name);
    const char *p = spec + n;
    uint32_t *const field[] = {&out->rate, &out->channels};
    const uint32_t low[] = {ST_PCM_MIN_RATE, 1}, high[] = {ST_PCM_MAX_RATE, ST_PCM_MAX_CHANNELS};
    static const char *const what[] = {"rate", "channels"};
    for (int i = 0; i < 2 && *p == ':'; i++) {
        p++;
        const size_t digits = strspn(p, "0123456789");
        const unsigned long v = digits > 0 && digits < 8 ? strtoul(p, NULL, 10) : 0;
        if (v < low[i] || v > high[i])
            return st_fail(err, SOTTO_E_ARGUMENT, "raw format \"%s\": %s must be %u to %u", spec, what[i], low[i],
                           high[i]);
        *field[i] = (uint32_t)v;
        p += digits;
    }
    if (*p)
        return st_fail(err, SOTTO_E_ARGUMENT, "raw format \"%s\": unexpected \"%s\", expected ENCODING:RATE:CHANNELS",
                       spec, p);
    out->frame_bytes = (uint32_t)out->encoding->bytes * out->channels;
    return SOTTO_OK;
}

sotto_status st_audio_raw_check(const char *raw, sotto_error *err)
{
    st_pcm_format format;
    return parse(raw, &format, err);
}

sotto_status st_audio_open_raw(const st_audio_context *context, const char *spec, st_audio_decoder *out,
                               sotto_error *err)
{
    st_pcm_format format;
    ST_TRY(parse(spec, &format, err));
    ST_TRY(st_pcm_open(context, &format, UINT64_MAX, out, err));
    out->format = "raw PCM";
    return SOTTO_OK;
}
