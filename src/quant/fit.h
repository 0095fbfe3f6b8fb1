/* fit.h: searches for the step (and offset) of a group of numbers that are stored as small whole codes: the ones with the
 * least sum of w * (x - what the codes give)^2 among some candidates. Numbers need not be finite; codes are within their
 * range then, and the step is whatever comes out. */
#ifndef SOTTO_SRC_QUANT_FIT_H
#define SOTTO_SRC_QUANT_FIT_H

#include <stdint.h>

enum { ST_FIT_MOST = 32 }; /* numbers of a group */

/* The whole number next to v (even at halves), within low..high; high for NaN. Exact below 2^22. */
static inline float st_fit_round(float v, float low, float high)
{
    v = v < high ? v : high;
    v = v > low ? v : low;
    const float shifted = v + 12582912.0f; /* 1.5 * 2^23: the sum has no room for a fraction */
    return shifted - 12582912.0f;
}

/* Sum of squares divided by n, added up from the first to the last. */
float st_fit_mean_square(const float *x, int64_t n);

/* w = importance * sqrt(mean_square + x^2): what counts, and large numbers more than small ones. */
void st_fit_weights(const float *x, const float *importance, float mean_square, int n, float *w);

/* x = step * (code - levels), codes of 0 to 2 * levels - 1. Returns the step, whose sign may be negative. */
float st_fit_signed(const float *x, const float *w, int n, int levels, uint8_t *codes);

/* Scales that are tried for st_fit_offset: the one that makes the spread of the numbers most + first, + first + step, ... */
typedef struct st_fit_range {
    float first, step;
    int n;
} st_fit_range;

/* For searches with importance. */
extern const st_fit_range st_fit_fine;

/* x = step * code - *offset, codes of 0 to most, *offset at least 0. Returns the step, at least 0. */
float st_fit_offset(const float *x, const float *w, int n, int most, st_fit_range range, uint8_t *codes, float *offset);

/* x = step * code for numbers that are at least 0, codes of 0 to most. */
float st_fit_positive(const float *x, const float *w, int n, int most, uint8_t *codes);

#endif
