#include "models/whisper/chunker.h"

#include "base/alloc.h"
#include "base/status.h"

enum { WINDOW_FRAMES = 3000, SMOOTH = 20 /* frames: what is less than a fifth of a second is no pause */ };

void st_chunker_begin(st_chunker *c, const st_window_source *audio, const st_speech *speech, const st_settings *settings)
{
    c->speech = speech;
    c->audio = *audio;
    c->from = settings->first;
    c->end = settings->end;
    c->window = settings->window < WINDOW_FRAMES ? settings->window : WINDOW_FRAMES;
}

void st_chunker_free(st_chunker *c)
{
    st_free(c->log_mel);
    *c = (st_chunker){0};
}

static double energy(const float *frame, int n_mels)
{
    double sum = 0;
    for (int i = 0; i < n_mels; i++)
        sum += (double)frame[i];
    return sum;
}

int64_t st_cut_quiet(const float *log_mel, int n_mels, int64_t from, int64_t to)
{
    int64_t best = to;
    double least = 0, sum = 0;
    for (int64_t f = from; f < to; f++) {
        sum += energy(log_mel + f * n_mels, n_mels);
        if (f - from >= SMOOTH)
            sum -= energy(log_mel + (f - SMOOTH) * n_mels, n_mels);
        if (f - from < SMOOTH - 1)
            continue;
        if (best == to || sum <= least) {
            least = sum;
            best = f + 1 - SMOOTH / 2;
        }
    }
    return best;
}

static st_chunk_rules rules_of(const st_chunker *c)
{
    return (st_chunk_rules){c->window, ST_CHUNK_PAD};
}

static bool next_speech(st_chunker *c, int64_t frames, bool final, st_chunk *out)
{
    const st_chunk_rules rules = rules_of(c);
    if (!st_chunk_next(c->speech, &rules, c->from, out) || out->first >= c->end)
        return false;
    out->end = out->end < c->end ? out->end : c->end;
    if (final && out->end > frames)
        out->end = frames; /* a part of a frame is none */
    return out->end <= frames && out->first < out->end;
}

static sotto_status next_piece(st_chunker *c, int64_t frames, bool final, st_chunk *out, bool *have, sotto_error *err)
{
    const int64_t end = frames < c->end ? frames : c->end;
    const bool all = final || end == c->end;
    *out = (st_chunk){c->from, end};
    if (end - c->from <= c->window) {
        *have = all && end > c->from;
        return SOTTO_OK;
    }
    const size_t n = (size_t)WINDOW_FRAMES * (size_t)c->audio.n_mels;
    if (!c->log_mel)
        c->log_mel = st_alloc(n, sizeof *c->log_mel);
    if (!c->log_mel)
        return st_fail_memory(err, n * sizeof *c->log_mel, "a window");
    ST_TRY(c->audio.window(c->audio.ctx, c->from, c->from + c->window, c->log_mel, err));
    out->end = c->from + st_cut_quiet(c->log_mel, c->audio.n_mels, c->window - c->window / 3, c->window);
    *have = true;
    return SOTTO_OK;
}

sotto_status st_chunker_next(void *ctx, int64_t frames, bool final, st_chunk *out, bool *have, sotto_error *err)
{
    st_chunker *c = ctx;
    *have = false;
    if (c->speech)
        *have = next_speech(c, frames, final, out);
    else
        ST_TRY(next_piece(c, frames, final, out, have, err));
    if (*have)
        c->from = out->end;
    return SOTTO_OK;
}

int64_t st_chunker_earliest(const st_chunker *c)
{
    const st_chunk_rules rules = rules_of(c);
    return c->speech ? st_chunk_earliest(c->speech, &rules, c->from) : c->from;
}
