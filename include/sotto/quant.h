/* quant.h: rows of numbers to and from every element type. Block layouts are those of GGUF files; packing is bit-exact
 * with the formats' reference. All functions are pure and thread-safe. */
#ifndef SOTTO_QUANT_H
#define SOTTO_QUANT_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* n elements of `dtype` at src to f32. n must be a multiple of the block. False for a type without values (i8, i32 are
 * converted as numbers) or a bad n. */
SOTTO_API bool sotto_row_to_f32(sotto_dtype dtype, const void *src, float *dst, int64_t n);
/* f32 to `dtype` (f32 f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0). False for other types or a bad n. */
SOTTO_API bool sotto_row_from_f32(sotto_dtype dtype, const float *src, void *dst, int64_t n);
/* True when sotto_row_from_f32 can write the type. */
SOTTO_API bool sotto_dtype_can_pack(sotto_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
