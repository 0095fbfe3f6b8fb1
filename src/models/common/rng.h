/* rng.h: a small seeded random generator, xoshiro256** started by splitmix64 (D. Blackman, S. Vigna, 2018).
 * The same numbers on every machine; state belongs to the caller. */
#ifndef SOTTO_SRC_MODELS_COMMON_RNG_H
#define SOTTO_SRC_MODELS_COMMON_RNG_H

#include <stdint.h>

typedef struct st_rng {
    uint64_t s[4];
} st_rng;

static inline void st_rng_seed(st_rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        seed += 0x9e3779b97f4a7c15u;
        uint64_t z = seed;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        r->s[i] = z ^ (z >> 31);
    }
}

static inline uint64_t st_rng_next(st_rng *r)
{
    uint64_t *s = r->s;
    const uint64_t m = s[1] * 5, result = ((m << 7) | (m >> 57)) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = (s[3] << 45) | (s[3] >> 19);
    return result;
}

/* 0 <= u < 1, 53 bits. */
static inline double st_rng_uniform(st_rng *r)
{
    return (double)(st_rng_next(r) >> 11) * 0x1p-53;
}

#endif
