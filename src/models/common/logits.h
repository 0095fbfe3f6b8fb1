/* logits.h: one row of a network's output over the vocabulary: maximum, normaliser, largest entries, sampling.
 * Rows are long (51,866) and read at every step for every beam, so each question is one pass without sorting. Sums are
 * made in a fixed order of lanes: the same bits on every machine with IEEE arithmetic. */
#ifndef SOTTO_SRC_MODELS_COMMON_LOGITS_H
#define SOTTO_SRC_MODELS_COMMON_LOGITS_H

#include <stdbool.h>
#include <stdint.h>

#include "models/common/rng.h"

enum { ST_LOGITS_BLOCK = 64 };

static inline int32_t st_logits_blocks(int32_t n)
{
    return (n + ST_LOGITS_BLOCK - 1) / ST_LOGITS_BLOCK;
}

/* Entries lo <= i < hi. */
typedef struct st_range {
    int32_t lo, hi;
} st_range;

typedef struct st_scored {
    int32_t id;
    float logit;
} st_scored;

/* block_max[i] = largest of entries 64 i .. 64 i + 63. False when an entry is NaN or +infinity. */
bool st_logits_scan(const float *x, int32_t n, float *block_max);
/* Largest entry of the range, -infinity when it is empty. */
float st_logits_max(const float *x, const float *block_max, st_range r);
/* Sum of exp(x - max) over the range, whose largest entry is max; 0 when that is -infinity. Relative error below 1e-6:
 * blocks whose every entry is 27 below max are left out, 100,000 entries of which are 2e-7 of the sum.
 * block_sum[i] = sum of exp(x - block_max[i]) over entries 64 i .. 64 i + 63, or NULL: they are not known. */
double st_logits_sum_exp(const float *x, const float *block_max, const float *block_sum, st_range r, float max);
/* False when an entry of the row is NaN or +infinity, going by the sums of its blocks. */
bool st_logits_are_numbers(const float *block_sum, int32_t n_blocks);
/* Makes entry t of a row of n -infinity. Of its block the largest and the sum follow. */
void st_logits_forbid(float *x, int32_t n, float *block_max, float *block_sum, int32_t t);
/* The k largest entries above -infinity of the ranges, largest first, the lower id first among equals. Returns how many. */
int st_logits_top(const float *x, const float *block_max, const st_range *ranges, int n_ranges, int k, st_scored *out);
/* An entry of the ranges with probability proportional to exp(x / temperature); max is the largest of them.
 * -1 when all are -infinity. No range may be empty. block_sum is scratch of st_logits_blocks(n) + n_ranges entries. */
int32_t st_logits_sample(const float *x, const st_range *ranges, int n_ranges, float max, float temperature,
                         st_rng *rng, double *block_sum);

#endif
