/* quant.h: rows of numbers to and from every element type. Block layouts are those of GGUF files. Packing the
 * types of 32 is bit-exact with the formats' reference; the K types and iq4_nl search for the steps of the least error. All functions are pure and thread-safe. */
#ifndef SOTTO_QUANT_H
#define SOTTO_QUANT_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* n elements of `dtype` at src to f32. n must be a multiple of the block. False for a type without values (i8, i32 are
 * converted as numbers) or a bad n. */
SOTTO_API bool sotto_row_to_f32(sotto_dtype dtype, const void *src, float *dst, int64_t n);
/* f32 to `dtype` (any but i8 and i32). False for other types or a bad n. */
SOTTO_API bool sotto_row_from_f32(sotto_dtype dtype, const float *src, void *dst, int64_t n);
/* The same for one row of a matrix, with how much each of its columns matters: importance[n], at least 0, or NULL. Makes a
 * difference for q4_0 q4_1 q5_0 q5_1, iq4_nl and the K types. */
SOTTO_API bool sotto_row_from_f32_weighted(sotto_dtype dtype, const float *src, const float *importance, void *dst,
                                           int64_t n);
/* True when sotto_row_from_f32 can write the type. */
SOTTO_API bool sotto_dtype_can_pack(sotto_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
