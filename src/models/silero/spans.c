#include "models/silero/spans.h"

#include <math.h>

#include "base/alloc.h"
#include "base/status.h"

enum {
    PER_MS = SOTTO_VAD_SAMPLE_RATE / 1000,
    CUT_PAUSE = 98 * PER_MS, /* a pause must be longer to be chosen for a cut */
    MAX_MS = 3600 * 1000
};

void sotto_vad_options_default(sotto_vad_options *options)
{
    *options = (sotto_vad_options){
        .size = sizeof *options,
        .threshold = 0.5f,
        .neg_threshold = -1.0f,
        .min_speech_ms = 250,
        .min_silence_ms = 100,
        .max_speech_s = INFINITY,
        .pad_ms = 30,
    };
}

static sotto_status check(const sotto_vad_options *o, sotto_error *err)
{
    if (o->size != sizeof *o)
        return st_fail(err, SOTTO_E_ARGUMENT, "vad: size %zu, expected %zu, set by sotto_vad_options_default()",
                       o->size, sizeof *o);
    const struct {
        const char *field;
        double value, min, max;
    } checks[] = {
        {"threshold", (double)o->threshold, 0, 1},        {"neg_threshold", (double)o->neg_threshold, -INFINITY, 1},
        {"min_speech_ms", o->min_speech_ms, 0, MAX_MS},   {"min_silence_ms", o->min_silence_ms, 0, MAX_MS},
        {"max_speech_s", o->max_speech_s, 0.1, INFINITY}, {"pad_ms", o->pad_ms, 0, MAX_MS},
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (!(checks[i].value >= checks[i].min && checks[i].value <= checks[i].max))
            return st_fail(err, SOTTO_E_ARGUMENT, "vad: %s: %g, expected %g to %g", checks[i].field, checks[i].value,
                           checks[i].min, checks[i].max);
    return SOTTO_OK;
}

sotto_status st_vad_spans_begin(st_vad_spans *s, const sotto_vad_options *options, sotto_error *err)
{
    ST_TRY(check(options, err));
    const sotto_vad_options *o = options;
    const int64_t pad = (int64_t)o->pad_ms * PER_MS;
    *s = (st_vad_spans){
        .threshold = o->threshold,
        .neg_threshold = o->neg_threshold >= 0 ? o->neg_threshold : fmaxf(o->threshold - 0.15f, 0.01f),
        .min_speech = (int64_t)o->min_speech_ms * PER_MS,
        .min_silence = (int64_t)o->min_silence_ms * PER_MS,
        .pad = pad,
        .max_speech = o->max_speech_s * SOTTO_VAD_SAMPLE_RATE - SOTTO_VAD_CHUNK - 2.0 * (double)pad,
        .quiet = -1,
        .open = -1,
        .spans = s->spans,
        .cap = s->cap,
    };
    return SOTTO_OK;
}

void st_vad_spans_free(st_vad_spans *s)
{
    st_free(s->spans);
    *s = (st_vad_spans){0};
}

/* ---- padding ---- */

/* The last span is followed by one that starts at `next`: both are widened, by half of the pause at most. Returns where
 * the next one starts then. */
static int64_t settle(st_vad_spans *s, int64_t next)
{
    if (s->n == s->n_final) /* before the first one there is only the start of the recording */
        return s->n > 0 || next > s->pad ? next - s->pad : 0;
    st_vad_range *last = &s->spans[s->n_final++];
    const int64_t pause = next - last->end, by = pause < 2 * s->pad ? pause / 2 : s->pad;
    last->end += by;
    return next - by;
}

/* Nothing begins before `next`: enough to widen the last span by all of the padding? */
static void settle_early(st_vad_spans *s, int64_t next)
{
    if (s->n > s->n_final && next - s->spans[s->n_final].end >= 2 * s->pad)
        s->spans[s->n_final++].end += s->pad;
}

static void certain(st_vad_spans *s)
{
    if (s->open < 0)
        s->open = settle(s, s->start);
}

/* ---- speech ---- */

static sotto_status emit(st_vad_spans *s, int64_t end, sotto_error *err)
{
    certain(s);
    if (!st_grow(&s->spans, &s->cap, s->n + 1, sizeof *s->spans))
        return st_fail_memory(err, (uint64_t)(s->n + 1) * sizeof *s->spans, "spans of speech");
    s->spans[s->n++] = (st_vad_range){s->open, end};
    s->open = -1;
    return SOTTO_OK;
}

static void be_silent(st_vad_spans *s)
{
    s->speaking = false;
    s->quiet = -1;
    s->pause = (st_vad_range){0, 0};
}

/* Too long: up to the longest pause, speech going on behind it; without one up to here. *over: the chunk is dealt with. */
static sotto_status cut(st_vad_spans *s, bool *over, sotto_error *err)
{
    const st_vad_range pause = s->pause;
    *over = pause.end == pause.first;
    ST_TRY(emit(s, *over ? s->at : pause.first, err));
    be_silent(s);
    if (!*over) {
        s->speaking = true;
        s->start = pause.end;
    }
    return SOTTO_OK;
}

static sotto_status hear(st_vad_spans *s, float p, sotto_error *err)
{
    if (p >= s->threshold) {
        const int64_t pause = s->quiet >= 0 ? s->at - s->quiet : 0;
        if (pause > CUT_PAUSE && pause > s->pause.end - s->pause.first)
            s->pause = (st_vad_range){s->quiet, s->at};
        s->quiet = -1;
        if (!s->speaking) {
            s->speaking = true;
            s->start = s->at;
            return SOTTO_OK;
        }
    }
    if (s->speaking && (double)(s->at - s->start) > s->max_speech) {
        bool over;
        ST_TRY(cut(s, &over, err));
        if (over)
            return SOTTO_OK;
    }
    if (!s->speaking || !(p < s->neg_threshold))
        return SOTTO_OK;
    if (s->quiet < 0)
        s->quiet = s->at;
    if (s->at - s->quiet < s->min_silence)
        return SOTTO_OK;
    if (s->quiet - s->start > s->min_speech)
        ST_TRY(emit(s, s->quiet, err));
    be_silent(s);
    return SOTTO_OK;
}

sotto_status st_vad_spans_add(st_vad_spans *s, float probability, sotto_error *err)
{
    ST_TRY(hear(s, probability, err));
    s->at += SOTTO_VAD_CHUNK;
    /* whatever comes, the span reaches to the pause or to here */
    if (s->speaking && (s->quiet >= 0 ? s->quiet : s->at) - s->start > s->min_speech)
        certain(s);
    settle_early(s, s->speaking ? s->start : s->at);
    return SOTTO_OK;
}

sotto_status st_vad_spans_finish(st_vad_spans *s, int64_t n_samples, sotto_error *err)
{
    if (s->speaking && n_samples - s->start > s->min_speech)
        ST_TRY(emit(s, n_samples, err));
    be_silent(s);
    s->open = -1;
    for (; s->n_final < s->n; s->n_final++) {
        const int64_t end = s->spans[s->n_final].end + s->pad;
        s->spans[s->n_final].end = end < n_samples ? end : n_samples;
    }
    return SOTTO_OK;
}

int64_t st_vad_spans_open(const st_vad_spans *s)
{
    return s->n > s->n_final ? s->spans[s->n_final].first : s->open;
}

int64_t st_vad_spans_reaches(const st_vad_spans *s)
{
    if (s->n > s->n_final)
        return s->spans[s->n_final].end;
    if (s->pause.end > s->pause.first && s->max_speech < INFINITY) /* where it may be cut */
        return s->pause.first;
    return s->quiet >= 0 ? s->quiet : s->at;
}

int64_t st_vad_spans_heard(const st_vad_spans *s)
{
    const int64_t next = (s->speaking ? s->start : s->at) - s->pad;
    return next > 0 ? next : 0;
}
