/* op_impl.h: what the builders (op_<family>.c) share. */
#ifndef SOTTO_SRC_TENSOR_OP_IMPL_H
#define SOTTO_SRC_TENSOR_OP_IMPL_H

#include "base/alloc.h"
#include "base/status.h"
#include "tensor/tensor_impl.h"

/* Reports a misuse with the shapes of up to two tensors: "add: what ([3, 5] and [4])". */
sotto_tensor *st_op_fail(sotto_graph *g, st_op op, const char *what, const sotto_tensor *a, const sotto_tensor *b);
/* NULL when a builder may go on; else the poison to return: a source that is poisoned, or missing though bit i of `optional`
 * does not excuse source i, or an earlier error of the graph. */
sotto_tensor *st_op_bad(sotto_graph *g, st_op op, sotto_tensor *const *src, int n_src, unsigned optional);
/* A node of op over the sources; NULL entries of src are absent. */
sotto_tensor *st_op_node(sotto_graph *g, st_op op, sotto_dtype dtype, int n_dims, const int64_t *dim,
                         sotto_tensor *const *src, int n_src);
/* f32, not a packed matrix, rows contiguous */
bool st_op_is_rows_f32(const sotto_tensor *t);
/* f32 [n], contiguous */
bool st_op_is_vector(const sotto_tensor *t, int64_t n);
/* What a weight matrix or a table of rows may hold. */
bool st_op_is_weight_type(sotto_dtype dtype);
/* What a cache may hold: a table that is written row by row. */
bool st_op_is_cache_type(sotto_dtype dtype);
bool st_op_same_shape(const sotto_tensor *a, const sotto_tensor *b);
/* Every dimension of b equals a's or is 1. */
bool st_op_broadcasts(const sotto_tensor *a, const sotto_tensor *b);
/* A node that writes into dst's memory: the result is a view of dst. */
sotto_tensor *st_op_write_view(sotto_graph *g, st_op op, sotto_tensor *dst, sotto_tensor *const *src, int n_src);

#endif
