/* beam.c: beam search. Each step extends every beam by its group + 1 likeliest tokens; going down the ranking of all of them,
 * those that end the text are finished candidates and the first `group` others are the next beams. Over when
 * round(group * patience) candidates are finished. Forbidden tokens are never taken, so there may be fewer beams than asked. */
#include <math.h>

#include "base/status.h"

#include "models/whisper/follow.h"

typedef struct candidate {
    double sum;
    float logprob;
    int32_t token;
    int parent;
} candidate;

typedef struct beams {
    candidate candidates[ST_MAX_SEQUENCES * (ST_MAX_SEQUENCES + 1)];
    int n_candidates, n_live;
    int64_t n_finished, max_finished;
    double best_score;
    bool have_best;
} beams;

static void offer(st_decoder *d, const st_decode_options *o, beams *b, const st_sequence *s)
{
    const double score = st_sequence_score(s, o->length_penalty);
    if (!b->have_best || score > b->best_score) {
        b->have_best = true;
        b->best_score = score;
        st_sequence_copy(&d->best, s);
    }
    b->n_finished++;
}

static sotto_status extend(st_decoder *d, const st_decode_options *o, beams *b, int parent, int row, sotto_error *err)
{
    st_sequence *s = &d->sequences[parent];
    const float *logits = d->logits[row].logits;
    st_allowed allowed;
    st_scored top[ST_MAX_SEQUENCES + 1];
    ST_TRY(st_decoder_filter(d, o, row, s, &allowed, err));
    const int n = st_logits_top(logits, allowed.block_max, allowed.ranges, allowed.n_ranges, o->group + 1, top);
    for (int i = 0; i < n; i++) {
        const double logprob = (double)top[i].logit - allowed.log_sum;
        b->candidates[b->n_candidates++] = (candidate){s->sum + logprob, (float)logprob, top[i].id, parent};
    }
    return SOTTO_OK;
}

/* The best candidate not taken yet, the earlier one among equals. */
static int take_best(beams *b)
{
    int best = -1;
    for (int i = 0; i < b->n_candidates; i++)
        if (b->candidates[i].parent >= 0 && (best < 0 || b->candidates[i].sum > b->candidates[best].sum))
            best = i;
    return best;
}

static void select_beams(st_decoder *d, const st_decode_options *o, beams *b, int length)
{
    int32_t dst[ST_MAX_SEQUENCES], src[ST_MAX_SEQUENCES];
    int n = 0;
    bool moved = false;
    if (b->n_candidates == 0) { /* everything is suppressed: the texts end here */
        for (int i = 0; i < b->n_live; i++) {
            d->sequences[i].done = true;
            offer(d, o, b, &d->sequences[i]);
        }
        b->n_live = 0;
        return;
    }
    while (n < o->group) {
        const int i = take_best(b);
        if (i < 0)
            break;
        const candidate c = b->candidates[i];
        b->candidates[i].parent = -1;
        if (c.token == d->vocab->eot && b->n_finished >= b->max_finished)
            continue;
        st_sequence *s = &d->others[n];
        st_sequence_copy(s, &d->sequences[c.parent]);
        s->sum = c.sum;
        if (c.token == d->vocab->eot) {
            s->done = true;
            offer(d, o, b, s);
            continue;
        }
        s->tokens[s->n] = c.token;
        s->logprobs[s->n] = c.logprob;
        s->n++;
        dst[n] = n;
        src[n] = c.parent;
        moved = moved || c.parent != n;
        n++;
    }
    for (int i = 0; i < n; i++) {
        const st_sequence t = d->sequences[i];
        d->sequences[i] = d->others[i];
        d->others[i] = t;
    }
    b->n_live = n;
    b->n_candidates = 0;
    if (moved)
        d->engine.reorder(d->engine.ctx, dst, src, n, length);
}

/* When too few are finished the likeliest unfinished ones count as if they had ended. */
static void finish(st_decoder *d, const st_decode_options *o, beams *b)
{
    bool used[ST_MAX_SEQUENCES] = {false};
    while (b->n_finished < o->group) {
        int best = -1;
        for (int i = 0; i < b->n_live; i++)
            if (!used[i] && (best < 0 || d->sequences[i].sum > d->sequences[best].sum))
                best = i;
        if (best < 0)
            break;
        used[best] = true;
        offer(d, o, b, &d->sequences[best]);
    }
}

sotto_status st_search_beam(st_decoder *d, const st_decode_options *o, sotto_error *err)
{
    beams b = {.n_live = 1, .max_finished = (int64_t)rint((double)o->group * (double)o->patience)};
    static const int32_t order[ST_MAX_SEQUENCES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    st_sequence *s = d->sequences;
    st_follow_begin(o, &s[0]);
    st_sequence_copy(&d->best, &s[0]);
    ST_TRY(extend(d, o, &b, 0, 0, err));
    select_beams(d, o, &b, d->n_initial);
    while (b.n_live > 0 && b.n_finished < b.max_finished && st_decoder_has_room(d, o, s[0].n)) {
        ST_TRY(st_decoder_step(d, s, order, b.n_live, err));
        const int length = d->n_initial + s[0].n;
        for (int i = 0; i < b.n_live; i++)
            ST_TRY(extend(d, o, &b, i, i, err));
        select_beams(d, o, &b, length);
    }
    finish(d, o, &b);
    return SOTTO_OK;
}
