/* k_block.h: a block of a K type as numbers: what the dequantiser and every backend that lays weights out anew read. */
#ifndef SOTTO_SRC_QUANT_K_BLOCK_H
#define SOTTO_SRC_QUANT_K_BLOCK_H

#include <stdbool.h>

#include "quant/blocks.h"
#include "sotto/tensor.h"

/* Element i of group g: x = d * step[g] * (codes[i] - zero) - dmin * offset[g], zero being the type's. */
typedef struct st_k_block {
    uint16_t d, dmin; /* f16; dmin and offsets are 0 in types without them */
    int8_t step[16];  /* of as many groups as there are */
    uint8_t offset[16];
    uint8_t codes[ST_BLOCK_K];
} st_k_block;

typedef struct st_k_type {
    sotto_dtype dtype;
    uint8_t bytes; /* of a block in the file */
    uint8_t group; /* elements of a group */
    uint8_t bits;  /* of a code */
    uint8_t zero;
    bool has_offset;
    void (*read)(const void *block, st_k_block *out); /* block: any alignment */
} st_k_type;

extern const st_k_type st_q2_k_type, st_q3_k_type, st_q4_k_type, st_q5_k_type, st_q6_k_type;

/* NULL when it is no K type. */
const st_k_type *st_k_type_of(sotto_dtype dtype);

/* Steps and offsets as two bytes for 32 elements, as backends keep them: of a group of 32 its step and its offset; of two groups
 * of 16 a byte each, in q2_k with the offset above the step. */
enum { ST_K_GROUP_BYTES = 16 };
void st_k_get_groups(const st_k_type *type, const st_k_block *b, uint8_t bytes[ST_K_GROUP_BYTES]);
void st_k_put_groups(const st_k_type *type, const uint8_t bytes[ST_K_GROUP_BYTES], st_k_block *b);

/* Steps and offsets of the eight groups of q4_k and q5_k, from their twelve bytes. */
void st_k_read_scales(const uint8_t scales[12], st_k_block *out);

void st_k_values(const st_k_type *type, const st_k_block *b, float out[ST_BLOCK_K]);

/* n elements, a multiple of 256. */
void st_k_unpack(const st_k_type *type, const void *src, float *dst, int64_t n);

#endif
