#include "models/whisper/follow.h"

#include <math.h>

#include "base/status.h"
#include "base/utf8.h"

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
    return st_grammar_filter_create(grammar, &texts, vocab->texts, out, err);
}

void st_follow_begin(const st_decode_options *o, st_sequence *s)
{
    s->n = 0;
    s->done = false;
    s->sum = 0;
    s->n_placed = 0;
    s->forced = 0;
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

/* Characters of scripts that write words without spaces between them. */
static bool is_word_alone(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } scripts[] = {{0x0e00, 0x0eff}, {0x0f00, 0x0fff}, {0x1000, 0x109f}, {0x1780, 0x17ff},  {0x2e80, 0xa4cf},
                   {0xf900, 0xfaff}, {0xfe30, 0xfe4f}, {0xff00, 0xffef}, {0x20000, 0x3ffff}};
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (c >= scripts[i].first && c <= scripts[i].last)
            return true;
    return false;
}

/* Whether a word can end behind a token though no space follows, going by its last character. */
static bool ends_word(const st_vocab *v, int32_t token)
{
    size_t n;
    const uint8_t *p = (const uint8_t *)st_vocab_bytes(v, token, &n);
    if (n == 0)
        return false;
    size_t first = n - 1;
    while (first > 0 && (p[first] & 0xc0) == 0x80)
        first--;
    uint32_t c;
    return st_utf8_next(p + first, n - first, &c) == (int)(n - first) && is_word_alone(c);
}

static sotto_status is_boundary(const st_decode_options *o, st_grammar_place at, bool *out, sotto_error *err)
{
    *out = st_grammar_filter_may_end(o->grammar, at);
    for (const char *space = " \n\t"; *space && !*out; space++)
        ST_TRY(st_grammar_filter_goes_on(o->grammar, at, (uint8_t)*space, out, err));
    return SOTTO_OK;
}

sotto_status st_follow_time(const st_decoder *d, const st_decode_options *o, st_sequence *s, float *logits,
                            sotto_error *err)
{
    const st_vocab *v = d->vocab;
    ST_TRY(advance(d, o, s, err));
    if (!o->filters.timestamps || s->place.state < 0)
        return SOTTO_OK;
    int32_t from = o->n_steps > 0 ? v->timestamp + o->n_steps : v->n_vocab;
    bool whole = true; /* a timestamp cuts nothing apart */
    if (s->n > 0 && s->tokens[s->n - 1] < v->timestamp) {
        ST_TRY(is_boundary(o, s->place, &whole, err));
        whole = whole || ends_word(v, s->tokens[s->n - 1]);
        if (st_grammar_filter_may_end(o->grammar, s->place))
            from = v->n_vocab; /* what is the last segment may end where it likes */
    }
    for (int32_t t = whole ? from : v->timestamp; t < v->n_vocab; t++)
        logits[t] -= o->grammar_penalty;
    return SOTTO_OK;
}

static bool begins_with_space(const st_vocab *v, int32_t token)
{
    size_t n;
    const char *p = st_vocab_bytes(v, token, &n);
    return n > 0 && (p[0] == ' ' || p[0] == '\n' || p[0] == '\t');
}

/* Whether the next segment would go on with the word of the one before it unless it begins with a space. */
static bool begins_inside_word(const st_vocab *v, const st_sequence *s)
{
    int i = s->n - 1;
    if (i < 0 || s->tokens[i] < v->timestamp)
        return false;
    while (i >= 0 && s->tokens[i] >= v->eot)
        i--;
    return i >= 0 && !ends_word(v, s->tokens[i]);
}

sotto_status st_follow_penalise(const st_decoder *d, const st_decode_options *o, st_sequence *s,
                                const st_logits_row *row, st_allowed *allowed, sotto_error *err)
{
    float *logits = row->logits;
    const uint32_t *mask;
    ST_TRY(advance(d, o, s, err));
    if (s->place.state < 0 || allowed->n_ranges == 0 || allowed->ranges[0].lo > d->vocab->eot)
        return SOTTO_OK;
    ST_TRY(st_grammar_filter_mask(o->grammar, s->place, &mask, err));
    for (int32_t t = 0; t <= d->vocab->eot; t++)
        logits[t] -= (mask[t / 32] >> (t % 32)) & 1 ? 0.0f : o->grammar_penalty;
    if (begins_inside_word(d->vocab, s))
        for (int32_t t = 0; t < d->vocab->n_text; t++)
            logits[t] -= begins_with_space(d->vocab, t) ? 0.0f : o->grammar_penalty;
    for (int32_t t = d->vocab->eot + 1; t < d->vocab->timestamp; t++)
        logits[t] -= o->grammar_penalty; /* languages and tasks: they are no text */
    const double before = allowed->log_sum;
    st_filters_recount(row, d->vocab->n_vocab, allowed);
    if (before > -INFINITY && allowed->log_sum > -INFINITY)
        s->forced += allowed->log_sum - before;
    return SOTTO_OK;
}

sotto_status st_follow_check(const st_decoder *d, const st_decode_options *o, st_sequence *s, bool *whole,
                             sotto_error *err)
{
    ST_TRY(advance(d, o, s, err));
    *whole = st_grammar_filter_may_end(o->grammar, s->place);
    return SOTTO_OK;
}
