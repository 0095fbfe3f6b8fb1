#include "models/whisper/frontend.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/thread.h"

enum { CHUNK_FRAMES = 500, CHUNK_SAMPLES = (CHUNK_FRAMES - 1) * ST_HOP + ST_N_FFT, HALF = ST_N_FFT / 2 };

/* log10 of the floor of the mel energies */
#define SILENCE (-10.0f)

struct st_frontend {
    int n_mels;
    sotto_plan *plan;
    sotto_tensor *pcm, *mel;
    /* samples not yet turned into frames: pending[0] is sample next_frame * HOP - HALF of the recording */
    float *pending; /* [CHUNK_SAMPLES] */
    int64_t n_pending;
    bool reflected; /* the 200 samples before the first are in place */
    int64_t n_samples;
    /* frames [first, first + n) as log10 of mel energies, [n, n_mels] */
    float *frames;
    int64_t first, n, cap;
    float loudest;
    bool finished;
    double seconds;
};

static sotto_status build(st_frontend *f, const sotto_whisper_model *m, sotto_backend *backend, sotto_arena *arena,
                          sotto_error *err)
{
    sotto_graph *g;
    ST_TRY(sotto_graph_create("mel", &g, err));
    f->pcm = sotto_graph_input(g, "pcm", SOTTO_F32, 1, (const int64_t[]){CHUNK_SAMPLES});
    sotto_tensor *x = sotto_view_frames(g, f->pcm, CHUNK_FRAMES, ST_HOP, ST_N_FFT); /* [500, 400], overlapping */
    x = sotto_linear(g, x, sotto_graph_use(g, m->dft), NULL, SOTTO_ACT_NONE, NULL); /* [500, 402] */
    x = sotto_power(g, x);                                                          /* [500, 201] */
    x = sotto_linear(g, x, sotto_graph_use(g, m->mel_filters), NULL, SOTTO_ACT_NONE, NULL); /* [500, n_mels] */
    f->mel = sotto_log10(g, x, 1e-10f);
    sotto_graph_output(g, f->mel, "log_mel");
    const sotto_status status = sotto_graph_finish(g, err);
    if (status != SOTTO_OK) {
        sotto_graph_free(g);
        return status;
    }
    return sotto_plan_create_take(backend, arena, g, &f->plan, err);
}

sotto_status st_frontend_create(const sotto_whisper_model *model, sotto_backend *backend, sotto_arena *arena,
                                st_frontend **out, sotto_error *err)
{
    *out = NULL;
    st_frontend *f = st_calloc(1, sizeof *f);
    if (!f)
        return st_fail_memory(err, sizeof *f, "the log-mel front end");
    f->n_mels = model->h.n_mels;
    f->pending = st_alloc(CHUNK_SAMPLES, sizeof *f->pending);
    sotto_status status =
        f->pending ? SOTTO_OK : st_fail_memory(err, CHUNK_SAMPLES * sizeof *f->pending, "the log-mel front end");
    if (status == SOTTO_OK)
        status = build(f, model, backend, arena, err);
    if (status != SOTTO_OK) {
        st_frontend_free(f);
        return status;
    }
    st_frontend_reset(f);
    *out = f;
    return SOTTO_OK;
}

void st_frontend_free(st_frontend *f)
{
    if (!f)
        return;
    sotto_plan_free(f->plan);
    st_free(f->pending);
    st_free(f->frames);
    st_free(f);
}

void st_frontend_reset(st_frontend *f)
{
    memset(f->pending, 0, HALF * sizeof *f->pending);
    f->n_pending = HALF;
    f->reflected = false;
    f->n_samples = 0;
    f->first = f->n = 0;
    f->loudest = SILENCE;
    f->finished = false;
}

/* x[-i] = x[i]; what has not been heard counts as silence */
static void reflect_start(st_frontend *f)
{
    for (int i = 1; i <= HALF; i++)
        f->pending[HALF - i] = HALF + i < f->n_pending ? f->pending[HALF + i] : 0;
    f->reflected = true;
}

static bool reserve(st_frontend *f, int64_t more)
{
    return st_grow(&f->frames, &f->cap, (f->n + more) * f->n_mels, sizeof *f->frames);
}

/* Turns the pending samples, padded with zeros to a chunk, into frames and keeps the first n_frames of them. */
static sotto_status run_chunk(st_frontend *f, int64_t n_frames, const sotto_run_options *run, sotto_error *err)
{
    const double start = st_time_now();
    if (!f->reflected)
        reflect_start(f);
    memset(f->pending + f->n_pending, 0, (size_t)(CHUNK_SAMPLES - f->n_pending) * sizeof *f->pending);
    ST_TRY(sotto_plan_set(f->plan, f->pcm, 0, f->pending, CHUNK_SAMPLES * sizeof *f->pending, err));
    ST_TRY(sotto_plan_run(f->plan, run, err));
    if (!reserve(f, n_frames))
        return st_fail_memory(err, (uint64_t)(f->n + n_frames) * (uint64_t)f->n_mels * sizeof *f->frames,
                              "log-mel frames");
    float *to = f->frames + f->n * f->n_mels;
    ST_TRY(sotto_plan_get(f->plan, f->mel, 0, to, (size_t)(n_frames * f->n_mels) * sizeof *to, err));
    for (int64_t i = 0; i < n_frames * f->n_mels; i++)
        f->loudest = to[i] > f->loudest ? to[i] : f->loudest;
    f->n += n_frames;
    const int64_t used = n_frames * ST_HOP;
    if (used < f->n_pending) {
        memmove(f->pending, f->pending + used, (size_t)(f->n_pending - used) * sizeof *f->pending);
        f->n_pending -= used;
    } else
        f->n_pending = 0;
    f->seconds += st_time_now() - start;
    return SOTTO_OK;
}

sotto_status st_frontend_feed(st_frontend *f, const float *pcm, int64_t n, const sotto_run_options *run,
                              sotto_error *err)
{
    while (n > 0) {
        const int64_t room = CHUNK_SAMPLES - f->n_pending, take = n < room ? n : room;
        float *to = f->pending + f->n_pending;
        for (int64_t i = 0; i < take; i++)
            to[i] = isfinite(pcm[i]) ? pcm[i] : 0.0f;
        f->n_pending += take;
        f->n_samples += take;
        pcm += take;
        n -= take;
        if (f->n_pending == CHUNK_SAMPLES)
            ST_TRY(run_chunk(f, CHUNK_FRAMES, run, err));
    }
    return SOTTO_OK;
}

sotto_status st_frontend_finish(st_frontend *f, const sotto_run_options *run, sotto_error *err)
{
    if (f->finished)
        return SOTTO_OK;
    f->finished = true;
    for (;;) {
        const int64_t left = f->n_samples / ST_HOP - st_frontend_frames(f);
        if (left <= 0)
            return SOTTO_OK;
        ST_TRY(run_chunk(f, left < CHUNK_FRAMES ? left : CHUNK_FRAMES, run, err));
    }
}

int64_t st_frontend_samples(const st_frontend *f)
{
    return f->n_samples;
}

int64_t st_frontend_frames(const st_frontend *f)
{
    return f->first + f->n;
}

void st_frontend_drop(st_frontend *f, int64_t frame)
{
    int64_t drop = frame - f->first;
    drop = drop < f->n ? drop : f->n;
    /* moving only when half is gone keeps the cost of dropping linear */
    if (drop <= 0 || drop * 2 < f->n)
        return;
    f->n -= drop;
    f->first += drop;
    memmove(f->frames, f->frames + drop * f->n_mels, (size_t)(f->n * f->n_mels) * sizeof *f->frames);
}

void st_frontend_window(const st_frontend *f, int64_t first, int64_t end, float *out)
{
    const int64_t ready = st_frontend_frames(f), last = end < ready ? end : ready;
    const float floor = f->loudest - 8.0f;
    int64_t n = last - first < ST_WINDOW_FRAMES ? last - first : ST_WINDOW_FRAMES;
    n = n > 0 && first >= f->first ? n : 0;
    const float *from = f->frames + (first - f->first) * f->n_mels;
    for (int64_t i = 0; i < n * f->n_mels; i++)
        out[i] = ((from[i] > floor ? from[i] : floor) + 4.0f) / 4.0f;
    memset(out + n * f->n_mels, 0, (size_t)((ST_WINDOW_FRAMES - n) * f->n_mels) * sizeof *out);
}

const sotto_plan *st_frontend_plan(const st_frontend *f)
{
    return f->plan;
}

uint64_t st_frontend_plan_bytes(const st_frontend *f)
{
    return sotto_plan_bytes(f->plan);
}

double st_frontend_seconds(const st_frontend *f)
{
    return f->seconds;
}
