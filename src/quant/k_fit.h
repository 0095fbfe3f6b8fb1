/* k_fit.h: what the packers of the K types share: a block of 256 numbers as groups, each with a code for its step (and one
 * for its offset) in units that the block stores. */
#ifndef SOTTO_SRC_QUANT_K_FIT_H
#define SOTTO_SRC_QUANT_K_FIT_H

#include "quant/blocks.h"
#include "quant/fit.h"

typedef struct st_k_offset_shape {
    int group, most; /* elements of a group; their greatest code */
    int most_step;   /* greatest code of steps and offsets */
    st_fit_range range;
} st_k_offset_shape;

/* x = d * step * code - dmin * offset */
typedef struct st_k_offset_block {
    uint16_t d, dmin; /* f16 */
    uint8_t step[16], offset[16];
    uint8_t codes[ST_BLOCK_K];
} st_k_offset_block;

/* importance: NULL, or one number for each element. */
void st_k_fit_offset(const float *x, const float *importance, const st_k_offset_shape *shape, st_k_offset_block *out);

/* 16 groups of 16: x = d * (step - most_step) * (code - levels) */
typedef struct st_k_signed_block {
    uint16_t d;
    uint8_t step[16];
    uint8_t codes[ST_BLOCK_K];
} st_k_signed_block;

void st_k_fit_signed(const float *x, const float *importance, int levels, int most_step, st_k_signed_block *out);

#endif
