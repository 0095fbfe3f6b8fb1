/* sampler_penalty.h: which tokens were accepted lately and how often. */
#ifndef SOTTO_SRC_MODELS_COMMON_SAMPLER_PENALTY_H
#define SOTTO_SRC_MODELS_COMMON_SAMPLER_PENALTY_H

#include "sotto/sampler.h"

typedef struct st_counted {
    int32_t token, count;
} st_counted;

/* All zero: nothing is counted. */
typedef struct st_recent {
    int32_t last;  /* how many count; -1 = all; 0 = off */
    int32_t *ring; /* [last], the oldest at `at` once it is full; none when all count */
    int32_t n_ring, at;
    int32_t *slot;       /* [n_vocab], index in counted + 1 */
    st_counted *counted; /* in no order, none with a count of 0 */
    int64_t n, capacity;
} st_recent;

sotto_status st_recent_create(st_recent *r, int32_t n_vocab, int32_t last, sotto_error *err);
sotto_status st_recent_copy(st_recent *dst, const st_recent *src, int32_t n_vocab, sotto_error *err);
void st_recent_free(st_recent *r);
void st_recent_clear(st_recent *r);
/* The token is inside the vocabulary. Without memory nothing has changed. */
sotto_status st_recent_add(st_recent *r, int32_t token, sotto_error *err);
void st_recent_penalise(const st_recent *r, const sotto_sampler_options *o, float *logits);

#endif
