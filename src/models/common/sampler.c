#include "models/common/sampler_impl.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "models/common/sample_math.h"
#include "models/common/sample_pick.h"
#include "models/common/sampler_penalty.h"

enum { MAX_PENALTY_LAST = 1 << 20, MAX_BIAS = 1 << 20, FEW = 32 };

struct sotto_sampler {
    sotto_sampler_options options; /* top_k is 0 when it is at least n_vocab; bias is ours */
    int32_t n_vocab;
    bool penalises;
    st_rng rng;
    st_recent recent;
    double mu;      /* mirostat: information allowed, in bits */
    int32_t drawn;  /* token last drawn, -1 before */
    double drawn_p; /* and its probability among those that were left */
    st_grammar_filter *filter;
    st_grammar_place place;

    float *row;         /* [n_vocab], what became of the logits */
    float *block_max;   /* [blocks] */
    double *block_sum;  /* [blocks + 1] */
    st_candidate *list; /* candidates */
    int64_t list_capacity;
};

/* ---- options ---- */

void sotto_sampler_options_default(sotto_sampler_options *options)
{
    *options = (sotto_sampler_options){
        .size = sizeof *options,
        .temperature = 0.8f,
        .top_k = 40,
        .top_p = 0.95f,
        .min_p = 0.05f,
        .typical_p = 1.0f,
        .penalty_last = 64,
        .repeat_penalty = 1.0f,
        .mirostat_tau = 5.0f,
        .mirostat_eta = 0.1f,
    };
}

static sotto_status check_options(int32_t n_vocab, const sotto_sampler_options *o, sotto_error *err)
{
    const struct {
        const char *field;
        double value, min, max;
    } checks[] = {
        {"n_vocab", n_vocab, 1, INT32_MAX - 64},
        {"temperature", (double)o->temperature, -1e6, 1e6},
        {"top_k", o->top_k, 0, INT32_MAX},
        {"top_p", (double)o->top_p, 0, 1},
        {"min_p", (double)o->min_p, 0, 1},
        {"typical_p", (double)o->typical_p, 0, 1},
        {"penalty_last", o->penalty_last, -1, MAX_PENALTY_LAST},
        {"repeat_penalty", (double)o->repeat_penalty, 1e-3, 1e3},
        {"frequency_penalty", (double)o->frequency_penalty, -1e3, 1e3},
        {"presence_penalty", (double)o->presence_penalty, -1e3, 1e3},
        {"mirostat_tau", (double)o->mirostat_tau, 0, 1e3},
        {"mirostat_eta", (double)o->mirostat_eta, 0, 1},
        {"n_bias", o->n_bias, 0, MAX_BIAS},
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (!(checks[i].value >= checks[i].min && checks[i].value <= checks[i].max))
            return st_fail(err, SOTTO_E_ARGUMENT, "%s: %g, expected %g to %g", checks[i].field, checks[i].value,
                           checks[i].min, checks[i].max);
    if (o->mirostat != 0 && o->mirostat != 2)
        return st_fail(err, SOTTO_E_ARGUMENT, "mirostat: %d, expected 0 or 2", o->mirostat);
    if (o->n_bias > 0 && !o->bias)
        return st_fail(err, SOTTO_E_ARGUMENT, "bias: NULL, expected the %d of n_bias", o->n_bias);
    for (int i = 0; i < o->n_bias; i++) {
        if (o->bias[i].token < 0 || o->bias[i].token >= n_vocab)
            return st_fail(err, SOTTO_E_ARGUMENT, "bias[%d].token: %d, expected 0 to %d", i, (int)o->bias[i].token,
                           (int)n_vocab - 1);
        if (!(o->bias[i].bias < INFINITY))
            return st_fail(err, SOTTO_E_ARGUMENT, "bias[%d].bias: %g, expected a number or -infinity", i,
                           (double)o->bias[i].bias);
    }
    if (o->grammar && (!o->token_bytes || !o->token_ends))
        return st_fail(err, SOTTO_E_ARGUMENT, "%s: NULL, expected a function since there is a grammar",
                       o->token_bytes ? "token_ends" : "token_bytes");
    return SOTTO_OK;
}

/* ---- making ---- */

static sotto_status allocate(sotto_sampler *s, const sotto_sampler_options *o, sotto_error *err)
{
    const size_t n = (size_t)s->n_vocab, blocks = (size_t)st_logits_blocks(s->n_vocab);
    s->options = *o;
    s->options.bias = NULL;
    if (s->options.top_k >= s->n_vocab)
        s->options.top_k = 0;
    sotto_logit_bias *bias = st_alloc((size_t)o->n_bias, sizeof *bias);
    s->options.bias = bias;
    s->row = st_alloc(n, sizeof *s->row);
    s->block_max = st_alloc(blocks, sizeof *s->block_max);
    s->block_sum = st_alloc(blocks + 1, sizeof *s->block_sum);
    if (!bias || !s->row || !s->block_max || !s->block_sum)
        return st_fail_memory(err, n * sizeof *s->row, "a sampler");
    if (o->n_bias > 0)
        memcpy(bias, o->bias, (size_t)o->n_bias * sizeof *bias);
    s->penalises = o->penalty_last != 0 &&
                   (o->repeat_penalty != 1.0f || o->frequency_penalty != 0.0f || o->presence_penalty != 0.0f);
    return SOTTO_OK;
}

static void begin(sotto_sampler *s)
{
    st_rng_seed(&s->rng, s->options.seed);
    s->mu = 2.0 * (double)s->options.mirostat_tau;
    s->drawn = -1;
    if (s->filter)
        s->place = st_grammar_filter_start(s->filter);
}

sotto_status sotto_sampler_create(int32_t n_vocab, const sotto_sampler_options *options, sotto_sampler **out,
                                  sotto_error *err)
{
    return st_sampler_create(n_vocab, options, NULL, out, err);
}

sotto_status st_sampler_create(int32_t n_vocab, const sotto_sampler_options *options, st_shared_tree *tree,
                               sotto_sampler **out, sotto_error *err)
{
    *out = NULL;
    sotto_sampler_options o;
    sotto_sampler_options_default(&o);
    if (options && options->size != sizeof o)
        return st_fail(err, SOTTO_E_ARGUMENT, "options: size %zu, expected %zu, set by sotto_sampler_options_default()",
                       options->size, sizeof o);
    if (options)
        o = *options;
    ST_TRY(check_options(n_vocab, &o, err));
    sotto_sampler *s = st_calloc(1, sizeof *s);
    if (!s)
        return st_fail_memory(err, sizeof *s, "a sampler");
    s->n_vocab = n_vocab;
    sotto_status status = allocate(s, &o, err);
    if (status == SOTTO_OK)
        status = st_recent_create(&s->recent, n_vocab, s->penalises ? o.penalty_last : 0, err);
    if (status == SOTTO_OK && o.grammar) {
        const st_token_texts texts = {o.token_bytes, o.token_ends, o.token_user, n_vocab};
        status = st_grammar_filter_create(o.grammar, &texts, tree, &s->filter, err);
    }
    if (status != SOTTO_OK) {
        sotto_sampler_free(s);
        return status;
    }
    begin(s);
    *out = s;
    return SOTTO_OK;
}

sotto_status sotto_sampler_clone(const sotto_sampler *sampler, sotto_sampler **out, sotto_error *err)
{
    *out = NULL;
    sotto_sampler *s = st_calloc(1, sizeof *s);
    if (!s)
        return st_fail_memory(err, sizeof *s, "a sampler");
    s->n_vocab = sampler->n_vocab;
    s->rng = sampler->rng;
    s->mu = sampler->mu;
    s->drawn = sampler->drawn;
    s->drawn_p = sampler->drawn_p;
    s->place = sampler->place;
    sotto_status status = allocate(s, &sampler->options, err);
    if (status == SOTTO_OK)
        status = st_recent_copy(&s->recent, &sampler->recent, s->n_vocab, err);
    if (status == SOTTO_OK && sampler->filter)
        status = st_grammar_filter_clone(sampler->filter, &s->place, &s->filter, err);
    if (status != SOTTO_OK) {
        sotto_sampler_free(s);
        return status;
    }
    *out = s;
    return SOTTO_OK;
}

void sotto_sampler_reset(sotto_sampler *s)
{
    st_recent_clear(&s->recent);
    begin(s);
}

void sotto_sampler_free(sotto_sampler *s)
{
    if (!s)
        return;
    st_grammar_filter_free(s->filter);
    st_recent_free(&s->recent);
    st_free((void *)s->options.bias);
    st_free(s->row);
    st_free(s->block_max);
    st_free(s->block_sum);
    st_free(s->list);
    st_free(s);
}

/* ---- the row ---- */

static sotto_status scan(sotto_sampler *s, const float *x, sotto_error *err)
{
    if (st_logits_scan(x, s->n_vocab, s->block_max))
        return SOTTO_OK;
    int32_t at = 0;
    while (at < s->n_vocab - 1 && x[at] < INFINITY)
        at++;
    return st_fail(err, SOTTO_E_ARGUMENT, "logits[%d]: %g, expected a number or -infinity", (int)at, (double)x[at]);
}

static float *own_row(sotto_sampler *s, const float **x)
{
    if (*x != s->row)
        memcpy(s->row, *x, (size_t)s->n_vocab * sizeof *s->row);
    *x = s->row;
    return s->row;
}

/* Bias and penalties. The grammar, which only forbids, comes later: it looks at likely tokens first. */
static sotto_status edit(sotto_sampler *s, const float **x, sotto_error *err)
{
    if (s->options.n_bias > 0) {
        float *row = own_row(s, x);
        for (int i = 0; i < s->options.n_bias; i++)
            row[s->options.bias[i].token] += s->options.bias[i].bias;
    }
    if (s->recent.n > 0)
        st_recent_penalise(&s->recent, &s->options, own_row(s, x));
    return scan(s, *x, err);
}

static sotto_status nothing_left(const sotto_sampler *s, bool by_grammar, sotto_error *err)
{
    return st_fail(err, SOTTO_E_ARGUMENT, "no token is left: each of %d is impossible%s%s", (int)s->n_vocab,
                   s->options.n_bias > 0 ? " or banned by a bias" : "",
                   by_grammar ? ", or the grammar does not allow it here" : "");
}

/* Writes -infinity over all that the grammar forbids. */
static sotto_status forbid(sotto_sampler *s, const float **x, sotto_error *err)
{
    const uint32_t *mask;
    ST_TRY(st_grammar_filter_mask(s->filter, s->place, &mask, err));
    float *row = own_row(s, x);
    for (int32_t t = 0; t < s->n_vocab; t++)
        row[t] = (mask[t / 32] >> (t % 32)) & 1 ? row[t] : -INFINITY;
    return scan(s, row, err);
}

static sotto_status grow_list(sotto_sampler *s, int32_t n, sotto_error *err)
{
    if (!st_grow(&s->list, &s->list_capacity, n, sizeof *s->list))
        return st_fail_memory(err, (uint64_t)n * sizeof *s->list, "candidates");
    return SOTTO_OK;
}

/* The k likeliest that are allowed. With a grammar a few more are looked at one by one, and only when those are not enough
 * is the whole vocabulary. */
static sotto_status top_k(sotto_sampler *s, const float **x, int32_t k, st_candidates *c, sotto_error *err)
{
    const int32_t more = s->n_vocab - k < FEW ? s->n_vocab : k + FEW;
    ST_TRY(grow_list(s, s->filter ? more : k, err));
    *c = (st_candidates){.list = s->list};
    if (s->filter && k == 1) { /* nearly always the likeliest will do */
        bool allowed = false;
        st_pick_top_k(*x, s->n_vocab, s->block_max, 1, c);
        if (c->n == 1)
            ST_TRY(st_grammar_filter_allows(s->filter, s->place, c->list[0].id, &allowed, err));
        if (allowed)
            return SOTTO_OK;
    }
    if (s->filter) {
        st_pick_top_k(*x, s->n_vocab, s->block_max, more, c);
        int32_t n = 0;
        const bool all = c->n < more || more == s->n_vocab;
        for (int32_t i = 0; i < c->n && n < k; i++) {
            bool allowed;
            ST_TRY(st_grammar_filter_allows(s->filter, s->place, c->list[i].id, &allowed, err));
            if (allowed)
                c->list[n++] = c->list[i];
        }
        if (n == k || all) {
            c->n = n;
            st_pick_whole(c);
            return SOTTO_OK;
        }
        ST_TRY(forbid(s, x, err));
    }
    st_pick_top_k(*x, s->n_vocab, s->block_max, k, c);
    return SOTTO_OK;
}

/* ---- choosing ---- */

static int32_t first_of_largest(const sotto_sampler *s, const float *x)
{
    const int32_t blocks = st_logits_blocks(s->n_vocab);
    int32_t best = 0;
    for (int32_t b = 1; b < blocks; b++)
        best = s->block_max[b] > s->block_max[best] ? b : best;
    int32_t t = best * ST_LOGITS_BLOCK;
    while (x[t] < s->block_max[best])
        t++;
    return s->block_max[best] == -INFINITY ? -1 : t;
}

static sotto_status greedy(sotto_sampler *s, const float *x, int32_t *token, sotto_error *err)
{
    if (!s->filter) {
        *token = first_of_largest(s, x);
        return *token < 0 ? nothing_left(s, false, err) : SOTTO_OK;
    }
    st_candidates c;
    ST_TRY(top_k(s, &x, 1, &c, err));
    if (c.n == 0)
        return nothing_left(s, true, err);
    *token = c.list[0].id;
    return SOTTO_OK;
}

/* Tokens of more information than mu are left out, all but the likeliest. */
static sotto_status mirostat(sotto_sampler *s, const float *x, int32_t *token, sotto_error *err)
{
    if (s->filter)
        ST_TRY(forbid(s, &x, err));
    if (s->options.temperature != 1.0f) {
        float *row = own_row(s, &x);
        for (int32_t t = 0; t < s->n_vocab; t++)
            row[t] /= s->options.temperature;
        ST_TRY(scan(s, row, err));
    }
    ST_TRY(grow_list(s, s->n_vocab, err));
    st_candidates c = {.list = s->list};
    const st_range all = {0, s->n_vocab};
    const float max = st_logits_max(x, s->block_max, all);
    if (max == -INFINITY)
        return nothing_left(s, s->filter != NULL, err);
    const double log_total = st_ln(st_logits_sum_exp(x, s->block_max, NULL, all, max));
    const double bar = (double)max + log_total - s->mu * ST_LN2;
    st_pick_above(x, s->n_vocab, s->block_max, bar < (double)max ? bar : (double)max, &c);
    if (bar > (double)max)
        c.n = 1; /* of equals the first */
    *token = c.list[st_pick_draw(&c, 1.0, st_rng_uniform(&s->rng), &s->drawn_p)].id;
    return SOTTO_OK;
}

static sotto_status chain(sotto_sampler *s, const float *x, int32_t *token, sotto_error *err)
{
    const sotto_sampler_options *o = &s->options;
    st_candidates c = {0};
    if (o->top_k > 0) {
        ST_TRY(top_k(s, &x, o->top_k, &c, err));
    } else {
        if (s->filter)
            ST_TRY(forbid(s, &x, err));
        const st_range all = {0, s->n_vocab};
        const float max = st_logits_max(x, s->block_max, all);
        if (max != -INFINITY && o->typical_p >= 1.0f && o->top_p >= 1.0f && o->min_p <= 0.0f) {
            *token = st_logits_sample(x, &all, 1, max, o->temperature, &s->rng, s->block_sum);
            return SOTTO_OK;
        }
        ST_TRY(grow_list(s, s->n_vocab, err));
        c.list = s->list;
        /* What min_p would leave out at the end need not be sorted before. */
        const double bar = o->typical_p >= 1.0f && o->min_p > 0.0f ? (double)max + st_ln((double)o->min_p) : -INFINITY;
        st_pick_above(x, s->n_vocab, s->block_max, bar, &c);
    }
    if (c.n == 0)
        return nothing_left(s, s->filter != NULL, err);
    if (o->typical_p < 1.0f)
        st_pick_typical(&c, (double)o->typical_p);
    if (o->top_p < 1.0f)
        st_pick_top_p(&c, (double)o->top_p);
    if (o->min_p > 0.0f)
        st_pick_min_p(&c, (double)o->min_p);
    *token = c.list[st_pick_draw(&c, (double)o->temperature, st_rng_uniform(&s->rng), NULL)].id;
    return SOTTO_OK;
}

sotto_status sotto_sampler_sample(sotto_sampler *s, const float *logits, int32_t *token, sotto_error *err)
{
    *token = 0;
    int32_t chosen = -1;
    const float *x = logits;
    ST_TRY(edit(s, &x, err));
    if (s->options.temperature <= 0.0f)
        ST_TRY(greedy(s, x, &chosen, err));
    else if (s->options.mirostat == 2)
        ST_TRY(mirostat(s, x, &chosen, err));
    else
        ST_TRY(chain(s, x, &chosen, err));
    s->drawn = chosen;
    *token = chosen;
    return SOTTO_OK;
}

/* ---- accepting ---- */

static sotto_status check_token(const sotto_sampler *s, int32_t token, sotto_error *err)
{
    if (token < 0 || token >= s->n_vocab)
        return st_fail(err, SOTTO_E_ARGUMENT, "token %d, expected 0 to %d", (int)token, (int)s->n_vocab - 1);
    return SOTTO_OK;
}

sotto_status sotto_sampler_accept(sotto_sampler *s, int32_t token, sotto_error *err)
{
    ST_TRY(check_token(s, token, err));
    st_grammar_place place = s->place;
    if (s->filter) {
        st_grammar_place *const kept[] = {&s->place};
        ST_TRY(st_grammar_filter_tidy(s->filter, kept, 1, err));
        place = s->place;
        ST_TRY(st_grammar_filter_accept(s->filter, &place, token, err));
        if (place.state < 0)
            return st_fail(err, SOTTO_E_ARGUMENT, "token %d is not allowed by the grammar here", (int)token);
    }
    ST_TRY(st_recent_add(&s->recent, token, err));
    s->place = place;
    if (s->options.mirostat == 2 && s->options.temperature > 0.0f && token == s->drawn) {
        const double information = -st_ln(s->drawn_p) / ST_LN2;
        s->mu -= (double)s->options.mirostat_eta * (information - (double)s->options.mirostat_tau);
    }
    s->drawn = -1;
    return SOTTO_OK;
}

sotto_status sotto_sampler_accept_prompt(sotto_sampler *s, const int32_t *tokens, int64_t n, sotto_error *err)
{
    for (int64_t i = 0; i < n; i++)
        ST_TRY(check_token(s, tokens[i], err));
    for (int64_t i = 0; i < n; i++)
        ST_TRY(st_recent_add(&s->recent, tokens[i], err));
    return SOTTO_OK;
}

bool sotto_sampler_may_end(const sotto_sampler *s)
{
    return !s->filter || st_grammar_filter_may_end(s->filter, s->place);
}

/* ---- probabilities ---- */

static sotto_status normaliser(sotto_sampler *s, const float *logits, double *log_sum, sotto_error *err)
{
    const st_range all = {0, s->n_vocab};
    ST_TRY(scan(s, logits, err));
    const float max = st_logits_max(logits, s->block_max, all);
    if (max == -INFINITY)
        return st_fail(err, SOTTO_E_ARGUMENT, "logits: each of %d is -infinity", (int)s->n_vocab);
    *log_sum = (double)max + st_ln(st_logits_sum_exp(logits, s->block_max, NULL, all, max));
    return SOTTO_OK;
}

sotto_status sotto_sampler_top(sotto_sampler *s, const float *logits, int k, sotto_token_logprob *top, int *count,
                               sotto_error *err)
{
    *count = 0;
    if (k < 1)
        return st_fail(err, SOTTO_E_ARGUMENT, "k: %d, expected at least 1", k);
    const int32_t most = k < s->n_vocab ? k : s->n_vocab;
    double log_sum;
    ST_TRY(normaliser(s, logits, &log_sum, err));
    ST_TRY(grow_list(s, most, err));
    st_candidates c = {.list = s->list};
    st_pick_top_k(logits, s->n_vocab, s->block_max, most, &c);
    for (int32_t i = 0; i < c.n; i++)
        top[i] = (sotto_token_logprob){c.list[i].id, (float)((double)c.list[i].logit - log_sum)};
    *count = (int)c.n;
    return SOTTO_OK;
}

sotto_status sotto_sampler_logprob(sotto_sampler *s, const float *logits, int32_t token, float *logprob,
                                   sotto_error *err)
{
    *logprob = 0;
    double log_sum;
    ST_TRY(check_token(s, token, err));
    ST_TRY(normaliser(s, logits, &log_sum, err));
    *logprob = (float)((double)logits[token] - log_sum);
    return SOTTO_OK;
}
