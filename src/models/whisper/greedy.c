/* greedy.c: the likeliest token at every step, or at a temperature above 0 candidates drawn independently, of which the one
 * with the best score is kept. */
#include <math.h>

#include "models/whisper/follow.h"

/* Nothing may come (everything is suppressed): the text ends here, at no cost. */
static void append(st_decoder *d, st_sequence *s, int32_t token, const float *logits, const st_allowed *allowed)
{
    const float logprob = token < 0 ? 0.0f : (float)((double)logits[token] - allowed->log_sum);
    s->sum += (double)logprob;
    s->done = token < 0 || token == d->vocab->eot;
    if (s->done)
        return;
    s->tokens[s->n] = token;
    s->logprobs[s->n] = logprob;
    s->n++;
}

static void choose(st_decoder *d, const st_decode_options *o, st_sequence *s, const float *logits,
                   const st_allowed *allowed)
{
    int32_t token = -1;
    st_scored top;
    if (o->temperature > 0.0f)
        token = st_logits_sample(logits, allowed->ranges, allowed->n_ranges, allowed->max, o->temperature, &d->rng,
                                 d->block_sum);
    else if (st_logits_top(logits, allowed->block_max, allowed->ranges, allowed->n_ranges, 1, &top) == 1)
        token = top.id;
    append(d, s, token, logits, allowed);
}

sotto_status st_search_greedy(st_decoder *d, const st_decode_options *o, sotto_error *err)
{
    st_sequence *s = d->sequences;
    st_allowed allowed;
    int32_t live[ST_MAX_SEQUENCES];
    for (int i = 0; i < o->group; i++)
        st_follow_begin(o, &s[i]);
    sotto_status status = st_decoder_filter(d, o, 0, &s[0], &allowed, err);
    for (int i = 1; i < o->group; i++)
        s[i].forced = s[0].forced;
    for (int i = 0; i < o->group && status == SOTTO_OK; i++)
        choose(d, o, &s[i], d->logits[0].logits, &allowed);
    while (status == SOTTO_OK) {
        int n_live = 0;
        for (int i = 0; i < o->group; i++)
            if (!s[i].done && st_decoder_has_room(d, o, s[i].n))
                live[n_live++] = i;
        if (n_live == 0)
            break;
        status = st_decoder_step(d, s, live, n_live, err);
        for (int i = 0; i < n_live && status == SOTTO_OK; i++) {
            status = st_decoder_filter(d, o, i, &s[live[i]], &allowed, err);
            if (status == SOTTO_OK)
                choose(d, o, &s[live[i]], d->logits[i].logits, &allowed);
        }
    }
    int best = 0;
    for (int i = 1; i < o->group; i++)
        if (st_sequence_score(&s[i], o->length_penalty) > st_sequence_score(&s[best], o->length_penalty))
            best = i;
    st_sequence_copy(&d->best, &s[best]);
    return status;
}
