/* audio_wav.c: RIFF/WAVE and RF64 files, from files and pipes. Sizes in the header are hints: data runs until the size or
 * the end of the stream, whichever is first, and 0 or 0xFFFFFFFF (written by programs that could not seek back) until the
 * end. Chunks before `data` may come in any order. Oracle: the same samples written by other programs (tests). */
#include <errno.h>
#include <string.h>

#include "audio_impl.h"
#include "base/status.h"

enum {
    TAG_PCM = 1,
    TAG_FLOAT = 3,
    TAG_ALAW = 6,
    TAG_MULAW = 7,
    TAG_EXTENSIBLE = 0xFFFE,
    MAX_FMT = 4096,
    MAX_CHUNKS = 1000
};

static uint32_t u16(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t u32(const unsigned char *p)
{
    return u16(p) | u16(p + 2) << 16;
}

static const struct {
    uint32_t tag, bits;
    const char *encoding;
} codings[] = {
    {TAG_PCM, 8, "u8"},       {TAG_PCM, 16, "s16le"},   {TAG_PCM, 24, "s24le"}, {TAG_PCM, 32, "s32le"},
    {TAG_FLOAT, 32, "f32le"}, {TAG_FLOAT, 64, "f64le"}, {TAG_ALAW, 8, "alaw"},  {TAG_MULAW, 8, "mulaw"},
};

/* Common names of the codecs that people meet inside WAV files. */
static const char *codec_name(uint32_t tag)
{
    static const struct {
        uint32_t tag;
        const char *name;
    } names[] = {{0x02, "Microsoft ADPCM"},
                 {0x11, "IMA ADPCM"},
                 {0x31, "GSM 6.10"},
                 {0x50, "MPEG audio"},
                 {0x55, "MP3"},
                 {0xFF, "AAC"},
                 {0x161, "WMA"},
                 {0x2000, "AC-3"},
                 {0xF1AC, "FLAC"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].tag == tag)
            return names[i].name;
    return "unknown";
}

static sotto_status parse_fmt(const unsigned char *p, size_t n, st_pcm_format *out, sotto_error *err)
{
    if (n < 16)
        return st_fail(err, SOTTO_E_FORMAT, "WAV: the fmt chunk has %zu bytes, expected at least 16", n);
    uint32_t tag = u16(p);
    const uint32_t channels = u16(p + 2), rate = u32(p + 4), align = u16(p + 12), bits = u16(p + 14);
    if (tag == TAG_EXTENSIBLE) {
        static const unsigned char rest[14] = {0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71};
        if (n < 40)
            return st_fail(err, SOTTO_E_FORMAT, "WAV: extensible format without its extension (%zu bytes, expected 40)",
                           n);
        if (memcmp(p + 26, rest, sizeof rest) != 0)
            return st_fail(err, SOTTO_E_UNSUPPORTED, "WAV: extensible format with an unknown sub-format");
        tag = u16(p + 24);
    }
    if (channels < 1 || channels > ST_PCM_MAX_CHANNELS)
        return st_fail(err, SOTTO_E_FORMAT, "WAV: %u channels, expected 1 to %u", channels, ST_PCM_MAX_CHANNELS);
    for (size_t i = 0; i < sizeof codings / sizeof *codings; i++) {
        /* A depth between bytes (12, 20) lies left-justified in its container. */
        const bool odd_depth =
            tag == TAG_PCM && bits > 8 && codings[i].tag == tag && (bits + 7) / 8 * 8 == codings[i].bits;
        if (codings[i].tag != tag || (codings[i].bits != bits && !odd_depth))
            continue;
        const uint32_t frame = channels * codings[i].bits / 8;
        if (align != frame)
            return st_fail(err, SOTTO_E_FORMAT, "WAV: blocks of %u bytes, expected %u for %u channels of %u bits",
                           align, frame, channels, bits);
        *out = (st_pcm_format){.encoding = st_pcm_encoding_find(codings[i].encoding),
                               .rate = rate,
                               .channels = channels,
                               .frame_bytes = frame};
        return SOTTO_OK;
    }
    if (tag == TAG_PCM || tag == TAG_FLOAT)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "WAV: %u bits of %s, expected %s", bits,
                       tag == TAG_PCM ? "PCM" : "float", tag == TAG_PCM ? "8, 16, 24 or 32" : "32 or 64");
    return st_fail(err, SOTTO_E_UNSUPPORTED, "WAV: codec 0x%04x (%s), expected PCM, float, A-law or mu-law", tag,
                   codec_name(tag));
}

static bool is_printable(const unsigned char *id)
{
    for (int i = 0; i < 4; i++)
        if (id[i] < 0x20 || id[i] > 0x7E)
            return false;
    return true;
}

/* Reads a chunk's id and size. After a chunk of odd size a pad byte is due, which some writers leave out: an id begins
 * with a printable character, a pad byte is zero. */
static bool next_chunk(st_stream *s, bool pad_due, unsigned char header[8])
{
    unsigned char b[9];
    if (st_stream_read(s, b, 8) < 8)
        return false;
    const bool padded = pad_due && !is_printable(b);
    if (padded && st_stream_read(s, b + 8, 1) < 1)
        return false;
    memcpy(header, b + (padded ? 1 : 0), 8);
    return true;
}

sotto_status st_audio_open_wav(const st_audio_context *context, st_audio_decoder *out, sotto_error *err)
{
    st_stream *s = context->stream;
    unsigned char header[12];
    if (st_stream_read(s, header, 12) < 12)
        return st_fail(err, SOTTO_E_FORMAT, "WAV: the header is cut, %lld bytes in all", (long long)s->position);
    st_pcm_format format = {0};
    bool have_format = false, pad_due = false;
    for (int i = 0; i < MAX_CHUNKS; i++) {
        if (!next_chunk(s, pad_due, header))
            break;
        const uint32_t size = u32(header + 4);
        pad_due = size & 1;
        if (memcmp(header, "data", 4) == 0) {
            if (!have_format)
                return st_fail(err, SOTTO_E_FORMAT, "WAV: data without a fmt chunk before it");
            /* Sizes that writers to pipes leave: zero, or near the largest number. A header that is right about zero
             * samples has nothing after it, so reading to the end gives zero samples too. */
            const bool open_end = size == 0 || size >= 0x7FFFF000u;
            ST_TRY(st_pcm_open(context, &format, open_end ? UINT64_MAX : size, out, err));
            out->format = "WAV";
            return SOTTO_OK;
        }
        if (memcmp(header, "fmt ", 4) == 0) {
            unsigned char fmt[MAX_FMT];
            const size_t n = size < sizeof fmt ? size : sizeof fmt;
            if (st_stream_read(s, fmt, n) < n)
                return st_fail(err, SOTTO_E_FORMAT, "WAV: the fmt chunk is cut");
            ST_TRY(parse_fmt(fmt, n, &format, err));
            have_format = true;
            if (size > n && !st_stream_skip(s, size - n))
                break;
        } else if (!st_stream_skip(s, size)) {
            break;
        }
    }
    if (s->failed)
        return st_fail(err, SOTTO_E_IO, "reading failed: %s", strerror(errno));
    return st_fail(err, SOTTO_E_FORMAT, have_format ? "WAV: no data chunk" : "WAV: neither fmt nor data chunk");
}
