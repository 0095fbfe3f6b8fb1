/* sampler.h: choosing the next token from a network's logits.
 *
 * A sotto_sampler is the state of one sequence and belongs to one thread at a time. Same options, logits and accepted tokens,
 * same choices: on every machine. In this order a row is changed: bias, grammar, penalties, top_k, typical_p, top_p, min_p,
 * temperature; then a token is drawn. With mirostat 2 the steps from top_k to min_p are replaced by its own. */
#ifndef SOTTO_SAMPLER_H
#define SOTTO_SAMPLER_H

#include "grammar.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sotto_sampler sotto_sampler;

/* Added to a token's logit; -INFINITY bans it. */
typedef struct sotto_logit_bias {
    int32_t token;
    float bias;
} sotto_logit_bias;

typedef struct sotto_sampler_options {
    size_t size; /* of this struct, set by _default; lets it grow */

    float temperature; /* 0 or less: greedy, the largest logit after bias, grammar and penalties, the lowest id among equals;
                          what truncates is then left out. Default 0.8 */
    int top_k;         /* only so many of the likeliest; 0 = all. Default 40 */
    float top_p;       /* only the likeliest that together have this probability, 0 .. 1; 1 = all. Default 0.95 */
    float min_p;       /* only those with this part of the likeliest one's probability, 0 .. 1; 0 = all. Default 0.05 */
    float typical_p; /* only those nearest to the expected information, together of this probability; 1 = all. Default 1 */

    /* Penalties count the last penalty_last accepted tokens: 0 = none, -1 = all. Default 64 */
    int penalty_last;
    float repeat_penalty;    /* of tokens among them a positive logit is divided, another multiplied by it. Default 1 */
    float frequency_penalty; /* subtracted for each time. Default 0 */
    float presence_penalty;  /* subtracted once. Default 0 */

    int mirostat;                     /* 0 or 2. Default 0 */
    float mirostat_tau, mirostat_eta; /* information aimed at, in bits, and the rate of learning. Default 5 and 0.1 */

    const sotto_logit_bias *bias; /* n_bias of them, copied; of one token they add up */
    int n_bias;

    uint64_t seed; /* Default 0 */

    /* Only tokens that continue a text of the grammar, and those that end the text only where it may end. NULL = none; must
     * outlive the sampler. token_bytes gives the bytes of a token, valid as long as the sampler (parts of a character are
     * possible; *n = 0: a token that is no text and that no grammar allows); token_ends says whether it ends the text, its
     * bytes then do not count. Both are needed with a grammar, and are asked again at any time. */
    const sotto_grammar *grammar;
    const char *(*token_bytes)(void *user, int32_t id, size_t *n);
    bool (*token_ends)(void *user, int32_t id);
    void *token_user;
} sotto_sampler_options;

SOTTO_API void sotto_sampler_options_default(sotto_sampler_options *options);

/* A sampler for a vocabulary of n_vocab tokens. options may be NULL.
 * Returns SOTTO_E_ARGUMENT with the field that is out of its range, SOTTO_E_MEMORY. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_sampler_create(int32_t n_vocab, const sotto_sampler_options *options,
                                                            sotto_sampler **out, sotto_error *err);
/* A sampler that goes on as this one would, for a sequence that branches. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_sampler_clone(const sotto_sampler *sampler, sotto_sampler **out,
                                                           sotto_error *err);
/* As after creation: what was accepted is forgotten, random numbers and grammar begin anew. */
SOTTO_API void sotto_sampler_reset(sotto_sampler *sampler);
SOTTO_API void sotto_sampler_free(sotto_sampler *sampler);

/* Choose a token for logits [n_vocab], which are not changed. Each call draws anew; nothing else advances until the token is
 * accepted. Returns SOTTO_E_ARGUMENT when a logit is NaN or +infinity, or when no token is left, SOTTO_E_MEMORY. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_sampler_sample(sotto_sampler *sampler, const float *logits, int32_t *token,
                                                            sotto_error *err);
/* The token becomes part of the text: penalties, grammar and mirostat advance. Returns SOTTO_E_ARGUMENT when the token is
 * outside the vocabulary or not allowed by the grammar (nothing has changed then), SOTTO_E_MEMORY. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_sampler_accept(sotto_sampler *sampler, int32_t token, sotto_error *err);
/* Tokens of a prompt: they count for the penalties only. Returns SOTTO_E_ARGUMENT, SOTTO_E_MEMORY. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_sampler_accept_prompt(sotto_sampler *sampler, const int32_t *tokens,
                                                                   int64_t n, sotto_error *err);
/* Whether what was accepted is a whole text of the grammar, so that it may end here; true without a grammar. */
SOTTO_API bool sotto_sampler_may_end(const sotto_sampler *sampler);

/* ---- probabilities of a row as the network gave it, for those who want to show them ---- */

typedef struct sotto_token_logprob {
    int32_t token;
    float logprob; /* natural logarithm of the probability */
} sotto_token_logprob;

/* The k likeliest tokens of logits [n_vocab], likeliest first, the lower id first among equals; *count is less than k when
 * fewer are possible. Returns SOTTO_E_ARGUMENT for k < 1, NaN or +infinity. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_sampler_top(sotto_sampler *sampler, const float *logits, int k,
                                                         sotto_token_logprob *top, int *count, sotto_error *err);
/* The log-probability of one token. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_sampler_logprob(sotto_sampler *sampler, const float *logits, int32_t token,
                                                             float *logprob, sotto_error *err);

#ifdef __cplusplus
}
#endif
#endif
