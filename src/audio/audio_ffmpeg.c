/* audio_ffmpeg.c: every container and codec that the FFmpeg libraries read, decoded, mixed to mono and resampled by
 * libswresample to 16-bit samples at 16 kHz: what the original gets from the ffmpeg program. Packets that cannot be
 * decoded are left out with a warning. */
#include "audio_impl.h"
#include "base/status.h"
#include "ffmpeg_library.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { IO_BUFFER = 1 << 15, OUT_SAMPLES = 8192 };

typedef struct ff_state {
    st_ffmpeg ff;
    st_audio_context context;
    AVIOContext *io;
    AVFormatContext *format;
    AVCodecContext *codec;
    SwrContext *swr;
    AVPacket *packet;
    AVFrame *frame;
    int stream;
    int in_format, in_rate; /* what swr was made for */
    AVChannelLayout in_layout;
    int16_t out[OUT_SAMPLES];
    size_t n_out, at_out;
    int64_t n_bad, n_decoded, n_not_finite;
    bool packets_over, frames_over, drained;
} ff_state;

static int io_read(void *opaque, uint8_t *buffer, int n)
{
    st_stream *s = opaque;
    /* What is there at once, so that a pipe is not waited for longer than needed. */
    size_t want = (size_t)n < 4096 ? (size_t)n : 4096;
    const size_t got = st_stream_read(s, buffer, want);
    return got ? (int)got : s->failed ? AVERROR(EIO) : AVERROR_EOF;
}

static int64_t io_seek(void *opaque, int64_t offset, int whence)
{
    st_stream *s = opaque;
    if (whence & AVSEEK_SIZE)
        return s->source.size >= 0 ? s->source.size : AVERROR(ENOSYS);
    whence &= ~AVSEEK_FORCE;
    int64_t to = offset;
    if (whence == SEEK_CUR)
        to += s->position;
    else if (whence == SEEK_END)
        to += s->source.size;
    if (to < 0)
        return AVERROR(EINVAL);
    if (to == s->position)
        return to;
    s->n_head = 0; /* from here on all comes from the source */
    if (s->source.seek(s->source.user, to) < 0)
        return AVERROR(EIO);
    return s->position = to;
}

static void ff_close(void *state)
{
    ff_state *f = state;
    if (!f)
        return;
    f->ff.swr_free(&f->swr);
    f->ff.av_channel_layout_uninit(&f->in_layout);
    f->ff.av_frame_free(&f->frame);
    f->ff.av_packet_free(&f->packet);
    f->ff.avcodec_free_context(&f->codec);
    f->ff.avformat_close_input(&f->format);
    if (f->io) {
        f->ff.av_freep(&f->io->buffer);
        f->ff.avio_context_free(&f->io);
    }
    free(f);
}

static sotto_status ff_fail(const ff_state *f, sotto_error *err, int code, const char *what)
{
    char text[AV_ERROR_MAX_STRING_SIZE];
    f->ff.av_strerror(code, text, sizeof text);
    if (code == AVERROR(ENOMEM))
        return st_fail(err, SOTTO_E_MEMORY, "%s: out of memory", what);
    return st_fail(err, SOTTO_E_FORMAT, "%s: %s", what, text);
}

/* The converter follows the frames: a stream may change its rate or channels on the way. */
static sotto_status make_converter(ff_state *f, sotto_error *err)
{
    const AVFrame *frame = f->frame;
    /* the converter's filter grows with the ratio of the rates: a few bytes must not ask for gigabytes */
    if (frame->sample_rate < (int)ST_PCM_MIN_RATE || frame->sample_rate > (int)ST_PCM_MAX_RATE)
        return st_fail(err, SOTTO_E_FORMAT, "%d samples a second, expected %u to %u", frame->sample_rate,
                       ST_PCM_MIN_RATE, ST_PCM_MAX_RATE);
    AVChannelLayout layout = {0}, mono = AV_CHANNEL_LAYOUT_MONO;
    if (frame->ch_layout.order == AV_CHANNEL_ORDER_UNSPEC)
        f->ff.av_channel_layout_default(&layout, frame->ch_layout.nb_channels);
    else if (f->ff.av_channel_layout_copy(&layout, &frame->ch_layout) < 0)
        return st_fail(err, SOTTO_E_MEMORY, "out of memory");
    f->ff.swr_free(&f->swr);
    int code = f->ff.swr_alloc_set_opts2(&f->swr, &mono, AV_SAMPLE_FMT_S16, ST_AUDIO_RATE, &layout, frame->format,
                                         frame->sample_rate, 0, NULL);
    if (code >= 0)
        code = f->ff.swr_init(f->swr);
    f->ff.av_channel_layout_uninit(&layout);
    if (code < 0)
        return ff_fail(f, err, code, "cannot convert the audio to 16 kHz mono");
    f->in_format = frame->format;
    f->in_rate = frame->sample_rate;
    f->ff.av_channel_layout_uninit(&f->in_layout);
    if (f->ff.av_channel_layout_copy(&f->in_layout, &frame->ch_layout) < 0)
        return st_fail(err, SOTTO_E_MEMORY, "out of memory");
    return SOTTO_OK;
}

/* One NaN would spread through the resampler. */
static int64_t clean(const ff_state *f)
{
    AVFrame *const frame = f->frame;
    const bool is_double = frame->format == AV_SAMPLE_FMT_DBL || frame->format == AV_SAMPLE_FMT_DBLP;
    if (!is_double && frame->format != AV_SAMPLE_FMT_FLT && frame->format != AV_SAMPLE_FMT_FLTP)
        return 0;
    const int planes = f->ff.av_sample_fmt_is_planar(frame->format) ? frame->ch_layout.nb_channels : 1;
    const int64_t n = (int64_t)frame->nb_samples * (planes == 1 ? frame->ch_layout.nb_channels : 1);
    int64_t bad = 0;
    for (int p = 0; p < planes; p++)
        for (int64_t i = 0; i < n; i++) {
            if (is_double) {
                double *v = (double *)(void *)frame->extended_data[p] + i;
                if (!isfinite(*v) || fabs(*v) > 1e6)
                    bad++, *v = 0;
            } else {
                float *v = (float *)(void *)frame->extended_data[p] + i;
                if (!isfinite(*v) || fabsf(*v) > 1e6f)
                    bad++, *v = 0;
            }
        }
    return bad;
}

/* Next decoded frame; *over when there is none. */
static sotto_status next_frame(ff_state *f, bool *over, sotto_error *err)
{
    *over = false;
    for (;;) {
        int code = f->ff.avcodec_receive_frame(f->codec, f->frame);
        if (code >= 0) {
            f->n_decoded++;
            return SOTTO_OK;
        }
        if (code == AVERROR_EOF) {
            *over = true;
            return SOTTO_OK;
        }
        if (code == AVERROR(ENOMEM))
            return ff_fail(f, err, code, "decoding");
        if (code != AVERROR(EAGAIN)) {
            f->n_bad++;
            if (f->packets_over) {
                *over = true;
                return SOTTO_OK;
            }
        }
        if (f->packets_over) {
            code = f->ff.avcodec_send_packet(f->codec, NULL);
            if (code < 0) {
                *over = true;
                return SOTTO_OK;
            }
            continue;
        }
        code = f->ff.av_read_frame(f->format, f->packet);
        if (code < 0) {
            if (f->context.stream->failed)
                return st_fail(err, SOTTO_E_IO, "reading failed");
            f->packets_over = true;
            (void)f->ff.avcodec_send_packet(f->codec, NULL);
            continue;
        }
        if (f->packet->stream_index == f->stream && f->ff.avcodec_send_packet(f->codec, f->packet) < 0)
            f->n_bad++;
        f->ff.av_packet_unref(f->packet);
    }
}

/* Some more samples into f->out; none at the end. */
static sotto_status ff_fill(ff_state *f, sotto_error *err)
{
    uint8_t *out[1] = {(uint8_t *)f->out};
    f->n_out = f->at_out = 0;
    while (f->n_out == 0 && !f->drained) {
        int got = 0;
        if (f->swr && f->ff.swr_get_out_samples(f->swr, 0) >= OUT_SAMPLES) {
            got = f->ff.swr_convert(f->swr, out, OUT_SAMPLES, NULL, 0); /* what it holds from the last frame */
        } else if (!f->frames_over) {
            ST_TRY(next_frame(f, &f->frames_over, err));
            if (f->frames_over)
                continue;
            if (!f->swr || f->in_format != f->frame->format || f->in_rate != f->frame->sample_rate ||
                f->ff.av_channel_layout_compare(&f->in_layout, &f->frame->ch_layout) != 0)
                ST_TRY(make_converter(f, err));
            f->n_not_finite += clean(f);
            got = f->ff.swr_convert(f->swr, out, OUT_SAMPLES, (const uint8_t **)(void *)f->frame->extended_data,
                                    f->frame->nb_samples);
            f->ff.av_frame_unref(f->frame);
        } else {
            got = f->swr ? f->ff.swr_convert(f->swr, out, OUT_SAMPLES, NULL, 0) : 0;
            f->drained = got <= 0;
        }
        if (got < 0)
            return ff_fail(f, err, got, "converting the audio");
        f->n_out = (size_t)got;
    }
    if (f->drained && f->n_bad)
        st_log(f->context.logger, SOTTO_LOG_WARNING, "%s: %lld damaged pieces were left out", f->context.name,
               (long long)f->n_bad);
    if (f->drained)
        st_audio_warn_zeroed(&f->context, f->n_not_finite);
    f->n_not_finite = f->drained ? 0 : f->n_not_finite;
    if (f->drained && f->n_decoded == 0)
        return st_fail(err, SOTTO_E_FORMAT, "%s: nothing of its %s audio could be decoded",
                       f->format->iformat->long_name, f->codec->codec->name);
    f->n_bad = f->drained ? 0 : f->n_bad;
    return SOTTO_OK;
}

static sotto_status ff_read(void *state, float *out, size_t cap, size_t *n, sotto_error *err)
{
    ff_state *f = state;
    *n = 0;
    while (*n < cap) {
        if (f->at_out == f->n_out)
            ST_TRY(ff_fill(f, err));
        if (f->at_out == f->n_out)
            break;
        while (*n < cap && f->at_out < f->n_out)
            out[(*n)++] = (float)f->out[f->at_out++] / 32768.0f;
    }
    return SOTTO_OK;
}

static sotto_status open_streams(ff_state *f, sotto_error *err)
{
    st_stream *s = f->context.stream;
    unsigned char *buffer = f->ff.av_malloc(IO_BUFFER);
    f->format = f->ff.avformat_alloc_context();
    f->packet = f->ff.av_packet_alloc();
    f->frame = f->ff.av_frame_alloc();
    if (buffer && f->format && f->packet && f->frame)
        f->io = f->ff.avio_alloc_context(buffer, IO_BUFFER, 0, s, io_read, NULL, s->source.seek ? io_seek : NULL);
    if (!f->io) {
        f->ff.av_free(buffer);
        return st_fail(err, SOTTO_E_MEMORY, "out of memory");
    }
    f->io->seekable = s->source.seek ? AVIO_SEEKABLE_NORMAL : 0;
    f->format->pb = f->io;
    const char *looks = st_audio_sniff(s->head, s->n_head);
    int code = f->ff.avformat_open_input(&f->format, NULL, NULL, NULL);
    if (s->failed)
        return st_fail(err, SOTTO_E_IO, "reading failed: %s", strerror(errno));
    if (code == AVERROR(ENOMEM))
        return ff_fail(f, err, code, looks);
    if (code < 0)
        return st_fail(err, SOTTO_E_FORMAT, "not a recording that can be read: looks like %s", looks);
    code = f->ff.avformat_find_stream_info(f->format, NULL);
    if (code < 0)
        return ff_fail(f, err, code, f->format->iformat->long_name);
    const AVCodec *codec = NULL;
    f->stream = f->ff.av_find_best_stream(f->format, AVMEDIA_TYPE_AUDIO, -1, -1, &codec, 0);
    if (f->stream < 0 && f->stream != AVERROR_DECODER_NOT_FOUND)
        return st_fail(err, SOTTO_E_FORMAT, "%s: has no audio stream (%u others)", f->format->iformat->long_name,
                       f->format->nb_streams);
    if (f->stream < 0 || !codec)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%s: no decoder for its audio", f->format->iformat->long_name);
    for (unsigned i = 0; i < f->format->nb_streams; i++)
        if ((int)i != f->stream)
            f->format->streams[i]->discard = AVDISCARD_ALL;
    f->codec = f->ff.avcodec_alloc_context3(codec);
    if (!f->codec)
        return st_fail(err, SOTTO_E_MEMORY, "out of memory");
    code = f->ff.avcodec_parameters_to_context(f->codec, f->format->streams[f->stream]->codecpar);
    if (code >= 0) {
        f->codec->pkt_timebase = f->format->streams[f->stream]->time_base;
        f->codec->thread_count = 1;
        code = f->ff.avcodec_open2(f->codec, codec, NULL);
    }
    return code < 0 ? ff_fail(f, err, code, codec->long_name) : SOTTO_OK;
}

sotto_status st_audio_open_ffmpeg(const st_audio_context *context, st_audio_decoder *out, sotto_error *err)
{
    ff_state *f = calloc(1, sizeof *f);
    if (!f)
        return st_fail_memory(err, sizeof *f, "the audio decoder");
    f->context = *context;
    const sotto_status loaded = st_ffmpeg_load(&f->ff, err);
    if (loaded != SOTTO_OK) {
        free(f);
        return st_fail_context(err, loaded, "looks like %s",
                               st_audio_sniff(context->stream->head, context->stream->n_head));
    }
    f->ff.av_log_set_level(AV_LOG_QUIET); /* what matters is reported by us, with the file's name */
    const sotto_status status = open_streams(f, err);
    if (status != SOTTO_OK) {
        ff_close(f);
        return status;
    }
    *out = (st_audio_decoder){.read = ff_read, .close = ff_close, .state = f, .format = f->format->iformat->name};
    if (f->format->duration > 0)
        out->duration = (double)f->format->duration / AV_TIME_BASE;
    return SOTTO_OK;
}
