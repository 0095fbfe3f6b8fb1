/* audio.c: sources of bytes, telling content by its first bytes, and the choice of a decoder. Contract: audio.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "audio_impl.h"
#include "base/file.h"
#include "base/status.h"

struct st_audio {
    st_stream stream;
    st_audio_context context;
    st_audio_decoder decoder;
    sotto_logger logger;
    char *name;
};

size_t st_stream_read(st_stream *s, void *buffer, size_t n)
{
    size_t done = 0;
    if (s->position < (int64_t)s->n_head) {
        const size_t left = s->n_head - (size_t)s->position;
        done = n < left ? n : left;
        memcpy(buffer, s->head + s->position, done);
        s->position += (int64_t)done;
    }
    while (done < n && !s->failed) {
        const int64_t got = s->source.read(s->source.user, (char *)buffer + done, n - done);
        if (got < 0)
            s->failed = true;
        if (got <= 0)
            break;
        done += (size_t)got;
        s->position += got;
    }
    return done;
}

bool st_stream_skip(st_stream *s, uint64_t n)
{
    unsigned char scratch[4096];
    while (n) {
        const size_t want = n < sizeof scratch ? (size_t)n : sizeof scratch;
        if (st_stream_read(s, scratch, want) < want)
            return false;
        n -= want;
    }
    return true;
}

void st_audio_warn_zeroed(const st_audio_context *context, int64_t n)
{
    if (n > 0)
        st_log(context->logger, SOTTO_LOG_WARNING,
               "%s: %lld samples are no numbers, or above 10^6 in size, and count as zero", context->name, (long long)n);
}

static const struct {
    const char *magic;
    size_t at, n;
    const char *what;
} kinds[] = {
    {"WAVE", 8, 4, "WAV"},
    {"AIFF", 8, 4, "AIFF"},
    {"AIFC", 8, 4, "AIFF-C"},
    {"AVI ", 8, 4, "AVI"},
    {"fLaC", 0, 4, "FLAC"},
    {"OggS", 0, 4, "Ogg"},
    {"ID3", 0, 3, "MP3"},
    {"ftyp", 4, 4, "MP4"},
    {"\x1A\x45\xDF\xA3", 0, 4, "Matroska or WebM"},
    {"caff", 0, 4, "CAF"},
    {".snd", 0, 4, "AU"},
    {"#!AMR", 0, 5, "AMR"},
    {"\x30\x26\xB2\x75", 0, 4, "ASF or WMA"},
    {"RIFX", 0, 4, "big-endian WAV"},
    {"riff", 0, 4, "Wave64"},
    {"\xFF\xFB", 0, 2, "MP3"},
    {"\xFF\xF3", 0, 2, "MP3"},
    {"\xFF\xF1", 0, 2, "AAC"},
    {"\xFF\xF9", 0, 2, "AAC"},
    {"FLV", 0, 3, "FLV"},
    {"%PDF", 0, 4, "a PDF"},
    {"PK\x03\x04", 0, 4, "a zip archive"},
    {"GGUF", 0, 4, "a GGUF model"},
    {"lmgg", 0, 4, "a ggml model"},
    {"\x1F\x8B", 0, 2, "gzip"},
    {"\x89PNG", 0, 4, "a PNG image"},
    {"\xFF\xD8\xFF", 0, 3, "a JPEG image"},
};

const char *st_audio_sniff(const unsigned char *head, size_t n)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].at + kinds[i].n <= n && memcmp(head + kinds[i].at, kinds[i].magic, kinds[i].n) == 0)
            return kinds[i].what;
    if (n == 0)
        return "nothing";
    for (size_t i = 0; i < n; i++)
        if ((head[i] < 0x20 && !strchr("\t\n\r\f", head[i])) || head[i] == 0)
            return "data of an unknown kind";
    return "text";
}

static bool is_wav(const unsigned char *head, size_t n)
{
    /* "RIFF" alone is a WAV that was cut, for the WAV reader to say so. */
    if (n < 4 || (memcmp(head, "RIFF", 4) != 0 && memcmp(head, "RF64", 4) != 0 && memcmp(head, "BW64", 4) != 0))
        return false;
    return n < 12 || memcmp(head + 8, "WAVE", 4) == 0;
}

static int64_t file_read(void *user, void *buffer, size_t n)
{
    FILE *f = user;
    /* Small requests, so that a slow pipe is decoded while it is written. */
    const size_t want = n < 4096 ? n : 4096;
    const size_t got = fread(buffer, 1, want, f);
    return got == 0 && ferror(f) ? -1 : (int64_t)got;
}

static int64_t file_seek(void *user, int64_t position)
{
    return fseeko(user, (off_t)position, SEEK_SET) == 0 ? 0 : -1;
}

static void file_close(void *user)
{
    fclose(user);
}

/* An MP4 file often has its index at the end, so one from a pipe goes through a temporary file. */
static sotto_status spool(st_stream *s, sotto_error *err)
{
    unsigned char buffer[4096];
    FILE *f = tmpfile();
    size_t n;
    if (!f)
        return st_fail(err, SOTTO_E_IO, "cannot make a temporary file: %s", strerror(errno));
    while ((n = st_stream_read(s, buffer, sizeof buffer)) > 0)
        if (fwrite(buffer, 1, n, f) != n) {
            st_fail(err, SOTTO_E_IO, "cannot write a temporary file: %s", strerror(errno));
            fclose(f);
            return SOTTO_E_IO;
        }
    const int64_t size = s->position;
    if (s->failed || fseeko(f, (off_t)s->n_head, SEEK_SET) != 0) {
        fclose(f);
        return st_fail(err, SOTTO_E_IO, "reading failed: %s", strerror(errno));
    }
    if (s->source.close)
        s->source.close(s->source.user);
    s->source = (st_audio_source){.read = file_read, .seek = file_seek, .close = file_close, .user = f, .size = size};
    s->position = 0;
    return SOTTO_OK;
}

static sotto_status choose(st_audio *a, const char *raw, sotto_error *err)
{
    st_stream *s = &a->stream;
    if (raw)
        return st_audio_open_raw(&a->context, raw, &a->decoder, err);
    unsigned char head[sizeof s->head];
    const size_t n = st_stream_read(s, head, sizeof head);
    if (s->failed)
        return st_fail(err, SOTTO_E_IO, "reading failed: %s", strerror(errno));
    memcpy(s->head, head, n);
    s->n_head = n;
    s->position = 0;
    if (n == 0)
        return st_fail(err, SOTTO_E_FORMAT, "is empty, expected a recording");
    if (is_wav(head, n)) {
        const sotto_status status = st_audio_open_wav(&a->context, &a->decoder, err);
        /* A codec that we do not read lies inside: the other decoder may, when the stream can start again. */
        if (status != SOTTO_E_UNSUPPORTED || (s->position > (int64_t)s->n_head && !s->source.seek))
            return status;
        sotto_error second;
        if (s->source.seek && s->source.seek(s->source.user, (int64_t)s->n_head) < 0)
            return status;
        s->position = 0;
        return st_audio_open_ffmpeg(&a->context, &a->decoder, &second) == SOTTO_OK ? SOTTO_OK : status;
    }
    if (!s->source.seek && n >= 8 && memcmp(head + 4, "ftyp", 4) == 0)
        ST_TRY(spool(s, err));
    return st_audio_open_ffmpeg(&a->context, &a->decoder, err);
}

sotto_status st_audio_open_source_take(const st_audio_source *source, const char *name, const char *raw,
                                       const sotto_logger *logger, st_audio **out, sotto_error *err)
{
    *out = NULL;
    st_audio *a = calloc(1, sizeof *a);
    char *copy = malloc(strlen(name) + 1);
    if (!a || !copy) {
        free(a);
        free(copy);
        if (source->close)
            source->close(source->user);
        return st_fail_memory(err, sizeof *a + strlen(name) + 1, "an audio stream");
    }
    a->name = memcpy(copy, name, strlen(name) + 1);
    if (logger)
        a->logger = *logger;
    a->stream.source = *source;
    a->context = (st_audio_context){.stream = &a->stream, .name = a->name, .logger = &a->logger};
    const sotto_status status = choose(a, raw, err);
    if (status != SOTTO_OK) {
        st_fail_context(err, status, "%s", a->name);
        st_audio_close(a);
        return status;
    }
    *out = a;
    return SOTTO_OK;
}

/* A regular file, read from its start. */
static void give_seek(st_audio_source *source, FILE *f)
{
    struct stat st;
    if (fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode) && ftello(f) == 0) {
        source->size = (int64_t)st.st_size;
        source->seek = file_seek;
    }
}

sotto_status st_audio_open(const char *path, const char *raw, const sotto_logger *logger, st_audio **out,
                           sotto_error *err)
{
    *out = NULL;
    st_audio_source source = {.read = file_read, .size = -1};
    if (strcmp(path, "-") == 0) {
        source.user = stdin;
        give_seek(&source, stdin);
        return st_audio_open_source_take(&source, "standard input", raw, logger, out, err);
    }
    if (st_path_kind_of(path) == ST_PATH_FOLDER)
        return st_fail(err, SOTTO_E_IO, "%s: is a folder, expected a recording", path);
    FILE *f = fopen(path, "rb");
    if (!f)
        return st_fail(err, errno == ENOENT ? SOTTO_E_NOT_FOUND : SOTTO_E_IO, "%s: %s", path, strerror(errno));
    source.user = f;
    source.close = file_close;
    give_seek(&source, f);
    return st_audio_open_source_take(&source, path, raw, logger, out, err);
}

void st_audio_close(st_audio *a)
{
    if (!a)
        return;
    if (a->decoder.close)
        a->decoder.close(a->decoder.state);
    if (a->stream.source.close)
        a->stream.source.close(a->stream.source.user);
    free(a->name);
    free(a);
}

sotto_status st_audio_read(st_audio *a, float *out, size_t cap, size_t *n, sotto_error *err)
{
    *n = 0;
    const sotto_status status = a->decoder.read(a->decoder.state, out, cap, n, err);
    if (status != SOTTO_OK)
        return st_fail_context(err, status, "%s", a->name);
    return SOTTO_OK;
}

double st_audio_duration(const st_audio *a)
{
    return a->decoder.duration;
}

bool st_audio_is_file(const st_audio *a)
{
    return a->stream.source.seek != NULL;
}

const char *st_audio_format(const st_audio *a)
{
    return a->decoder.format;
}
