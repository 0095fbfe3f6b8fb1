/* sample_math.h: e^x and the natural logarithm by additions and multiplications in a fixed order: the same bits on every
 * machine, which the C library's do not promise. Relative error below 1e-14. */
#ifndef SOTTO_SRC_MODELS_COMMON_SAMPLE_MATH_H
#define SOTTO_SRC_MODELS_COMMON_SAMPLE_MATH_H

#include <stdint.h>
#include <string.h>

#define ST_LN2 0.693147180559945309417

static inline double st_bits_f64(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline uint64_t st_f64_bits(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

/* x <= 0; what is below e^-700 becomes 0. */
static inline double st_exp_negative(double x)
{
    if (!(x >= -700.0))
        return 0.0;
    const double shifted = x * 1.44269504088896340736 + 0x1.8p52; /* the low bits become the nearest integer */
    const double n = shifted - 0x1.8p52;
    const double r = (x - n * 0x1.62e42fee00000p-1) - n * 0x1.a39ef35793c76p-33; /* ln 2 in two parts */
    double p = 1.0 / 6227020800.0;                                               /* 1 / 13! and on to 1 / 0! */
    static const double inverse_factorials[] = {
        1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0,
        1.0 / 120.0,       1.0 / 24.0,       1.0 / 6.0,       1.0 / 2.0,      1.0,           1.0};
    for (int i = 0; i < 13; i++)
        p = p * r + inverse_factorials[i];
    return p * st_bits_f64((uint64_t)(1023 + (int64_t)n) << 52);
}

/* x > 0, normal and finite. */
static inline double st_ln(double x)
{
    const uint64_t u = st_f64_bits(x);
    int64_t e = (int64_t)(u >> 52) - 1023;
    double m = st_bits_f64((u & 0x000fffffffffffffu) | 0x3ff0000000000000u); /* 1 <= m < 2 */
    if (m > 1.41421356237309504880) {
        m *= 0.5;
        e++;
    }
    const double s = (m - 1.0) / (m + 1.0), q = s * s; /* ln m = 2 atanh s, |s| <= 0.172 */
    double p = 0;
    for (int k = 21; k >= 1; k -= 2)
        p = p * q + 1.0 / (double)k;
    return 2.0 * s * p + (double)e * ST_LN2;
}

#endif
