/* sample_pick.h: candidates for the next token, and the ways to leave the unlikely ones out.
 * A row has up to 262,144 of them, of which a few matter: nothing here sorts more than what is kept.
 * Definitions follow llama.cpp's samplers of the same names; typical: C. Meister et al., "Locally Typical Sampling", 2022;
 * mirostat 2: S. Basu et al., "Mirostat", 2021. */
#ifndef SOTTO_SRC_MODELS_COMMON_SAMPLE_PICK_H
#define SOTTO_SRC_MODELS_COMMON_SAMPLE_PICK_H

#include "models/common/logits.h"

typedef struct st_candidate {
    double key; /* by which it is ordered: larger first, then the lower id */
    float logit;
    int32_t id;
} st_candidate;

typedef struct st_candidates {
    st_candidate *list;
    int32_t n;
    bool sorted; /* by logit, largest first */
    float max;   /* largest logit */
    double total; /* sum of exp(logit - max) of all that the next step shall take for the whole: may be more than the list */
} st_candidates;

/* The k largest finite entries of a scanned row, sorted; total is theirs. list must hold k entries, or n if that is less. */
void st_pick_top_k(const float *x, int32_t n, const float *block_max, int32_t k, st_candidates *c);
/* All entries of at least bar above -infinity, not sorted; total is that of the whole row. list must hold n entries. */
void st_pick_above(const float *x, int32_t n, const float *block_max, double bar, st_candidates *c);

/* Makes total and max those of the list, which is sorted. */
void st_pick_whole(st_candidates *c);

/* Those nearest to the expected information that together pass p; total is then theirs. The order is lost. */
void st_pick_typical(st_candidates *c, double p);
/* The likeliest that together reach p of total, sorted. */
void st_pick_top_p(st_candidates *c, double p);
/* Those with at least p times the probability of the likeliest. */
void st_pick_min_p(st_candidates *c, double p);
/* The list index of a candidate, drawn with probability proportional to exp(logit / temperature); *p (may be NULL) is that
 * probability. u is uniform in 0 <= u < 1. */
int32_t st_pick_draw(const st_candidates *c, double temperature, double u, double *p);

#endif
