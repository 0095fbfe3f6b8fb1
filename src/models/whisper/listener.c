#include "models/whisper/listener.h"

#include "base/alloc.h"
#include "base/status.h"
#include "models/silero/stream.h"

enum { SAMPLES_PER_FRAME = SOTTO_VAD_SAMPLE_RATE / 100 };

sotto_status st_listener_begin(st_listener *l, const sotto_vad_model *model, const sotto_vad_options *options,
                               sotto_error *err)
{
    l->on = false;
    l->speech = (st_speech){.open = -1};
    if (!model)
        return SOTTO_OK;
    if (l->model != model) {
        sotto_vad_stream_free(l->stream);
        l->stream = NULL;
        l->model = NULL;
        ST_TRY(sotto_vad_stream_create(model, options, &l->stream, err));
        l->model = model;
    } else
        ST_TRY(sotto_vad_reset(l->stream, options, err));
    l->on = true;
    return SOTTO_OK;
}

void st_listener_free(st_listener *l)
{
    sotto_vad_stream_free(l->stream);
    st_free(l->spans);
    *l = (st_listener){0};
}

/* The nearest frame, so that spans which touch do not overlap. */
static int64_t frame(int64_t sample)
{
    return (sample + SAMPLES_PER_FRAME / 2) / SAMPLES_PER_FRAME;
}

static sotto_status update(st_listener *l, sotto_error *err)
{
    const st_vad_spans *s = st_vad_stream_spans(l->stream);
    st_speech *to = &l->speech;
    if (!st_grow(&l->spans, &l->cap, s->n_final, sizeof *l->spans))
        return st_fail_memory(err, (uint64_t)s->n_final * sizeof *l->spans, "spans of speech");
    for (; to->n_spans < s->n_final; to->n_spans++)
        l->spans[to->n_spans] = (st_chunk){frame(s->spans[to->n_spans].first), frame(s->spans[to->n_spans].end)};
    to->spans = l->spans;
    const int64_t open = st_vad_spans_open(s);
    to->open = open < 0 ? -1 : frame(open);
    to->reaches = st_vad_spans_reaches(s) / SAMPLES_PER_FRAME;
    to->heard = st_vad_spans_heard(s) / SAMPLES_PER_FRAME;
    to->level = sotto_vad_probabilities(l->stream, &to->n_level);
    return SOTTO_OK;
}

sotto_status st_listener_feed(st_listener *l, const float *pcm, int64_t n, sotto_error *err)
{
    if (!l->on)
        return SOTTO_OK;
    ST_TRY(sotto_vad_push(l->stream, pcm, n, err));
    return update(l, err);
}

sotto_status st_listener_finish(st_listener *l, sotto_error *err)
{
    if (!l->on)
        return SOTTO_OK;
    ST_TRY(sotto_vad_finish(l->stream, err));
    l->speech.final = true;
    return update(l, err);
}
