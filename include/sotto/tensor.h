/* tensor.h: element types and what can be asked of a tensor. */
#ifndef SOTTO_TENSOR_H
#define SOTTO_TENSOR_H

#include <stdbool.h>

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Element types. The numbers are those of GGUF, so they may be stored in files. */
typedef enum sotto_dtype {
    SOTTO_F32 = 0,
    SOTTO_F16 = 1,
    SOTTO_Q4_0 = 2,
    SOTTO_Q4_1 = 3,
    SOTTO_Q5_0 = 6,
    SOTTO_Q5_1 = 7,
    SOTTO_Q8_0 = 8,
    SOTTO_Q2_K = 10,
    SOTTO_Q3_K = 11,
    SOTTO_Q4_K = 12,
    SOTTO_Q5_K = 13,
    SOTTO_Q6_K = 14,
    SOTTO_IQ4_NL = 20,
    SOTTO_I8 = 24, /* a stored matrix of it has one f32 scale for each row: value = scale * number */
    SOTTO_I32 = 26,
    SOTTO_BF16 = 30
} sotto_dtype;

/* Facts about a type: name as in "q4_0", elements of a block (1 for plain types) and bytes of a block.
 * sotto_dtype_name returns NULL and the sizes return 0 for a number that is no known type. */
SOTTO_API const char *sotto_dtype_name(sotto_dtype dtype);
SOTTO_API int64_t sotto_dtype_block(sotto_dtype dtype);
SOTTO_API size_t sotto_dtype_bytes(sotto_dtype dtype);

/* The type of that name ("f16", "q5_1", case ignored). Returns SOTTO_E_NOT_FOUND for any other text. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_dtype_find(const char *name, sotto_dtype *out);

/* Bytes of one row of n elements, 0 when n is negative, not a whole number of blocks, or the size overflows. */
SOTTO_API size_t sotto_dtype_row_bytes(sotto_dtype dtype, int64_t n);

#define SOTTO_MAX_DIMS 4

/* A tensor belongs to the graph or the buffer that made it and is valid as long as that lives.
 * dim[0] is the innermost (contiguous) dimension, as in GGUF; unused dimensions are 1. Comments and messages write shapes
 * outermost first, as papers do: a matrix of 3 rows of 5 elements is [3, 5] and has dim {5, 3, 1, 1}. */
typedef struct sotto_tensor sotto_tensor;

SOTTO_API const char *sotto_tensor_name(const sotto_tensor *t);
SOTTO_API sotto_dtype sotto_tensor_dtype(const sotto_tensor *t);
SOTTO_API int64_t sotto_tensor_dim(const sotto_tensor *t, int axis);
/* Number of elements; 0 for an empty tensor. */
SOTTO_API int64_t sotto_tensor_count(const sotto_tensor *t);
/* Bytes of the tensor's elements stored contiguously. */
SOTTO_API size_t sotto_tensor_bytes(const sotto_tensor *t);

#ifdef __cplusplus
}
#endif
#endif
