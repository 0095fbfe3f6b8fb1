#include "models/whisper/follow.h"

#include "base/status.h"

static const char *bytes_of(void *user, int32_t id, size_t *n)
{
    return st_vocab_bytes(user, id, n);
}

static bool ends(void *user, int32_t id)
{
    return id == ((const st_vocab *)user)->eot;
}

sotto_status st_follow_create(const sotto_grammar *grammar, const st_vocab *vocab, st_grammar_filter **out,
                              sotto_error *err)
{
    const st_token_texts texts = {bytes_of, ends, (void *)vocab, vocab->eot + 1};
    return st_grammar_filter_create(grammar, &texts, out, err);
}

void st_follow_begin(const st_decode_options *o, st_sequence *s)
{
    s->n = 0;
    s->done = false;
    s->sum = 0;
    s->n_placed = 0;
    if (o->grammar)
        s->place = st_grammar_filter_start(o->grammar);
}

static sotto_status advance(const st_decoder *d, const st_decode_options *o, st_sequence *s, sotto_error *err)
{
    for (; s->n_placed < s->n; s->n_placed++)
        if (s->tokens[s->n_placed] < d->vocab->eot)
            ST_TRY(st_grammar_filter_accept(o->grammar, &s->place, s->tokens[s->n_placed], err));
    return SOTTO_OK;
}

sotto_status st_follow_penalise(const st_decoder *d, const st_decode_options *o, st_sequence *s, float *logits,
                                st_allowed *allowed, sotto_error *err)
{
    const uint32_t *mask;
    ST_TRY(advance(d, o, s, err));
    if (s->place.state < 0 || allowed->n_ranges == 0 || allowed->ranges[0].lo > d->vocab->eot)
        return SOTTO_OK;
    ST_TRY(st_grammar_filter_mask(o->grammar, s->place, &mask, err));
    for (int32_t t = 0; t <= d->vocab->eot; t++)
        logits[t] -= (mask[t / 32] >> (t % 32)) & 1 ? 0.0f : o->grammar_penalty;
    st_filters_recount(logits, d->vocab->n_vocab, d->block_max, allowed);
    return SOTTO_OK;
}

sotto_status st_follow_check(const st_decoder *d, const st_decode_options *o, st_sequence *s, bool *whole,
                             sotto_error *err)
{
    ST_TRY(advance(d, o, s, err));
    *whole = st_grammar_filter_may_end(o->grammar, s->place);
    return SOTTO_OK;
}
