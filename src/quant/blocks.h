/* blocks.h: the blocks of quantised rows, byte for byte as in GGUF files. Numbers are little-endian; an f16 is kept as its
 * bits. A block of 32 (or 256, the K types) elements has no alignment beyond 2. */
#ifndef SOTTO_SRC_QUANT_BLOCKS_H
#define SOTTO_SRC_QUANT_BLOCKS_H

#include <stdint.h>

enum { ST_BLOCK = 32, ST_BLOCK_K = 256 };

/* x[i] = d * (q - 8). Nibbles: byte i holds element i below and element i + 16 above; so for all 4-bit and 5-bit types of 32. */
typedef struct st_q4_0 {
    uint16_t d;
    uint8_t qs[16];
} st_q4_0;

/* x[i] = d * q + m */
typedef struct st_q4_1 {
    uint16_t d, m;
    uint8_t qs[16];
} st_q4_1;

/* x[i] = d * (q - 16); bit i of qh (little-endian) is element i's fifth bit */
typedef struct st_q5_0 {
    uint16_t d;
    uint8_t qh[4];
    uint8_t qs[16];
} st_q5_0;

/* x[i] = d * q + m */
typedef struct st_q5_1 {
    uint16_t d, m;
    uint8_t qh[4];
    uint8_t qs[16];
} st_q5_1;

/* x[i] = d * q */
typedef struct st_q8_0 {
    uint16_t d;
    int8_t qs[32];
} st_q8_0;

/* x[i] = d * st_iq4_nl_values[q] */
typedef struct st_iq4_nl {
    uint16_t d;
    uint8_t qs[16];
} st_iq4_nl;

/* What the nibbles of iq4_nl stand for, ascending. */
extern const int8_t st_iq4_nl_values[16];

/* 16 groups of 16: x = d * (scales & 15) * q - dmin * (scales >> 4), q of 2 bits */
typedef struct st_q2_k {
    uint8_t scales[16];
    uint8_t qs[64];
    uint16_t d, dmin;
} st_q2_k;

/* 16 groups of 16: x = d * (scale - 32) * (q - 4), q of 2 bits in qs and 1 in hmask, scales of 6 bits */
typedef struct st_q3_k {
    uint8_t hmask[32];
    uint8_t qs[64];
    uint8_t scales[12];
    uint16_t d;
} st_q3_k;

/* 8 groups of 32: x = d * scale * q - dmin * min, scales and minima of 6 bits (st_k_scale) */
typedef struct st_q4_k {
    uint16_t d, dmin;
    uint8_t scales[12];
    uint8_t qs[128];
} st_q4_k;

typedef struct st_q5_k {
    uint16_t d, dmin;
    uint8_t scales[12];
    uint8_t qh[32];
    uint8_t qs[128];
} st_q5_k;

/* 16 groups of 16: x = d * scale * (q - 32), q of 4 bits in ql and 2 in qh */
typedef struct st_q6_k {
    uint8_t ql[128];
    uint8_t qh[64];
    int8_t scales[16];
    uint16_t d;
} st_q6_k;

_Static_assert(sizeof(st_q4_0) == 18, "q4_0 block");
_Static_assert(sizeof(st_q4_1) == 20, "q4_1 block");
_Static_assert(sizeof(st_q5_0) == 22, "q5_0 block");
_Static_assert(sizeof(st_q5_1) == 24, "q5_1 block");
_Static_assert(sizeof(st_q8_0) == 34, "q8_0 block");
_Static_assert(sizeof(st_iq4_nl) == 18, "iq4_nl block");
_Static_assert(sizeof(st_q2_k) == 84, "q2_k block");
_Static_assert(sizeof(st_q3_k) == 110, "q3_k block");
_Static_assert(sizeof(st_q4_k) == 144, "q4_k block");
_Static_assert(sizeof(st_q5_k) == 176, "q5_k block");
_Static_assert(sizeof(st_q6_k) == 210, "q6_k block");

/* Scale and minimum of group j (0..7) of q4_k and q5_k: groups 0..3 in the low 6 bits of bytes 0..3 and 4..7; the low 4 bits
 * of groups 4..7 in bytes 8..11, their high 2 bits on top of bytes 0..7. */
static inline void st_k_scale(const uint8_t scales[12], int j, uint8_t *scale, uint8_t *min)
{
    if (j < 4) {
        *scale = scales[j] & 63;
        *min = scales[j + 4] & 63;
    } else {
        *scale = (uint8_t)((scales[j + 4] & 15) | (scales[j - 4] >> 6) << 4);
        *min = (uint8_t)((scales[j + 4] >> 4) | (scales[j] >> 6) << 4);
    }
}

/* The other way round, for groups in ascending order, into bytes that are zero before the first. */
static inline void st_k_put_scale(uint8_t scales[12], int j, uint8_t scale, uint8_t min)
{
    if (j < 4) {
        scales[j] = scale;
        scales[j + 4] = min;
    } else {
        scales[j + 4] = (uint8_t)((scale & 15) | (min & 15) << 4);
        scales[j - 4] |= (uint8_t)(scale >> 4 << 6);
        scales[j] |= (uint8_t)(min >> 4 << 6);
    }
}

#endif
