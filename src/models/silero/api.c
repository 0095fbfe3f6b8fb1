/* api.c: models and streams of include/sotto/vad.h: samples are collected to blocks, which go through the network, whose
 * probabilities go to the spans. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "models/common/model_error.h"
#include "models/silero/net.h"
#include "models/silero/spans.h"
#include "models/silero/stream.h"

enum { BLOCK_SAMPLES = ST_VAD_BLOCK * SOTTO_VAD_CHUNK };

struct sotto_vad_stream {
    st_vad_net *net;
    sotto_vad_options options;
    st_vad_spans spans;
    float *pending; /* [BLOCK_SAMPLES], not yet computed */
    int n_pending;
    int64_t n_samples;
    float *probabilities; /* [n] */
    int64_t n, cap;
    bool finished, failed;
};

/* ---- model ---- */

static sotto_status open_file(sotto_model_file *file, const sotto_backend_options *backend, sotto_vad_model **out,
                              sotto_error *err)
{
    const sotto_status status = st_vad_model_load(file, backend, out, err);
    sotto_model_file_free(file);
    return status;
}

sotto_status sotto_vad_model_open(const char *path, const sotto_backend_options *backend, sotto_vad_model **out,
                                  sotto_error *err)
{
    if (!out || !path)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_vad_model_open: %s is NULL", out ? "path" : "out");
    *out = NULL;
    sotto_model_file *file;
    ST_TRY(sotto_model_file_open(path, &file, err));
    const sotto_status status = open_file(file, backend, out, err);
    return st_fail_model(err, status, path);
}

sotto_status sotto_vad_model_open_memory(const void *data, size_t size, const sotto_backend_options *backend,
                                         sotto_vad_model **out, sotto_error *err)
{
    if (!out || (!data && size > 0))
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_vad_model_open_memory: %s is NULL", out ? "data" : "out");
    *out = NULL;
    sotto_model_file *file;
    ST_TRY(sotto_model_file_open_memory(data, size, "model in memory", &file, err));
    return open_file(file, backend, out, err);
}

/* ---- stream ---- */

static sotto_status create(sotto_vad_stream *s, const sotto_vad_model *model, const sotto_vad_options *options,
                           sotto_error *err)
{
    sotto_vad_options_default(&s->options);
    s->pending = st_alloc(BLOCK_SAMPLES, sizeof *s->pending);
    if (!s->pending)
        return st_fail_memory(err, BLOCK_SAMPLES * sizeof *s->pending, "voice activity detection");
    ST_TRY(st_vad_net_create(model, &s->net, err));
    return sotto_vad_reset(s, options, err);
}

sotto_status sotto_vad_stream_create(const sotto_vad_model *model, const sotto_vad_options *options,
                                     sotto_vad_stream **out, sotto_error *err)
{
    if (!out || !model)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_vad_stream_create: %s is NULL", out ? "model" : "out");
    *out = NULL;
    sotto_vad_stream *s = st_calloc(1, sizeof *s);
    if (!s)
        return st_fail_memory(err, sizeof *s, "voice activity detection");
    const sotto_status status = create(s, model, options, err);
    if (status != SOTTO_OK) {
        sotto_vad_stream_free(s);
        return status;
    }
    *out = s;
    return SOTTO_OK;
}

void sotto_vad_stream_free(sotto_vad_stream *stream)
{
    if (!stream)
        return;
    st_vad_net_free(stream->net);
    st_vad_spans_free(&stream->spans);
    st_free(stream->pending);
    st_free(stream->probabilities);
    st_free(stream);
}

sotto_status sotto_vad_reset(sotto_vad_stream *stream, const sotto_vad_options *options, sotto_error *err)
{
    if (!stream)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_vad_reset: stream is NULL");
    ST_TRY(st_vad_spans_begin(&stream->spans, options ? options : &stream->options, err));
    if (options)
        stream->options = *options;
    st_vad_net_reset(stream->net);
    stream->n_pending = 0;
    stream->n_samples = stream->n = 0;
    stream->finished = stream->failed = false;
    return SOTTO_OK;
}

/* The pending samples, with silence up to a block; their chunks' probabilities are kept. */
static sotto_status run_block(sotto_vad_stream *s, sotto_error *err)
{
    float p[ST_VAD_BLOCK];
    const int n = (s->n_pending + SOTTO_VAD_CHUNK - 1) / SOTTO_VAD_CHUNK;
    memset(s->pending + s->n_pending, 0, (size_t)(BLOCK_SAMPLES - s->n_pending) * sizeof *s->pending);
    s->n_pending = 0;
    if (!st_grow(&s->probabilities, &s->cap, s->n + n, sizeof *s->probabilities))
        return st_fail_memory(err, (uint64_t)(s->n + n) * sizeof *s->probabilities, "probabilities of speech");
    ST_TRY(st_vad_net_run(s->net, s->pending, p, err));
    for (int i = 0; i < n; i++) {
        s->probabilities[s->n++] = p[i];
        ST_TRY(st_vad_spans_add(&s->spans, p[i], err));
    }
    return SOTTO_OK;
}

static sotto_status push(sotto_vad_stream *s, const float *pcm, int64_t n, sotto_error *err)
{
    while (n > 0) {
        const int64_t room = BLOCK_SAMPLES - s->n_pending, take = n < room ? n : room;
        for (int64_t i = 0; i < take; i++)
            s->pending[s->n_pending + i] = isfinite(pcm[i]) ? pcm[i] : 0.0f;
        s->n_pending += (int)take;
        s->n_samples += take;
        pcm += take;
        n -= take;
        if (s->n_pending == BLOCK_SAMPLES)
            ST_TRY(run_block(s, err));
    }
    return SOTTO_OK;
}

static sotto_status check_open(const char *call, const sotto_vad_stream *s, sotto_error *err)
{
    if (!s)
        return st_fail(err, SOTTO_E_ARGUMENT, "%s: stream is NULL", call);
    if (s->finished || s->failed)
        return st_fail(err, SOTTO_E_ARGUMENT, "%s: the recording is finished, or an error ended it: reset the stream",
                       call);
    return SOTTO_OK;
}

sotto_status sotto_vad_push(sotto_vad_stream *stream, const float *pcm, int64_t n, sotto_error *err)
{
    ST_TRY(check_open("sotto_vad_push", stream, err));
    if (n < 0 || (!pcm && n > 0))
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_vad_push: pcm is NULL, or n is %lld", (long long)n);
    const sotto_status status = push(stream, pcm, n, err);
    stream->failed = status != SOTTO_OK;
    return status;
}

sotto_status sotto_vad_finish(sotto_vad_stream *stream, sotto_error *err)
{
    ST_TRY(check_open("sotto_vad_finish", stream, err));
    sotto_status status = stream->n_pending > 0 ? run_block(stream, err) : SOTTO_OK;
    if (status == SOTTO_OK)
        status = st_vad_spans_finish(&stream->spans, stream->n_samples, err);
    stream->finished = true;
    return status;
}

/* ---- results ---- */

int64_t sotto_vad_span_count(const sotto_vad_stream *stream)
{
    return stream ? stream->spans.n_final : 0;
}

sotto_status sotto_vad_span_get(const sotto_vad_stream *stream, int64_t index, sotto_vad_span *out)
{
    if (!stream || !out || index < 0 || index >= stream->spans.n_final)
        return SOTTO_E_ARGUMENT;
    const st_vad_range r = stream->spans.spans[index];
    *out = (sotto_vad_span){(double)r.first / SOTTO_VAD_SAMPLE_RATE, (double)r.end / SOTTO_VAD_SAMPLE_RATE};
    return SOTTO_OK;
}

const float *sotto_vad_probabilities(const sotto_vad_stream *stream, int64_t *count)
{
    if (count)
        *count = stream ? stream->n : 0;
    return stream && stream->n > 0 ? stream->probabilities : NULL;
}

const st_vad_spans *st_vad_stream_spans(const sotto_vad_stream *stream)
{
    return &stream->spans;
}
