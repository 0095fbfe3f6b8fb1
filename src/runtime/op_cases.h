/* op_cases.h: one small case of each operation for each type of number that it may meet: what a device is asked whether it
 * has, and tried with before it is used. */
#ifndef SOTTO_SRC_RUNTIME_OP_CASES_H
#define SOTTO_SRC_RUNTIME_OP_CASES_H

#include "runtime/runtime_impl.h"

/* How a case gets its stored tensor: a matrix of weights, or cells of a cache. NULL when that failed. */
typedef struct st_case_source {
    sotto_tensor *(*stored)(void *user, sotto_dtype dtype, int n_dims, const int64_t *dim, bool matrix);
    void *user;
} st_case_source;

typedef struct st_op_case {
    st_op op;
    sotto_dtype dtype; /* of the weights, the cache or the data */
} st_op_case;

int st_op_case_count(void);
st_op_case st_op_case_get(int index);
/* Adds the case to a graph; its inputs are x (f32) and rows (i32, numbers from 0 to 7 in ascending order), which may stay
 * unused. Returns the node. */
sotto_tensor *st_op_case_build(int index, sotto_graph *g, const st_case_source *source, sotto_tensor **x,
                               sotto_tensor **rows);

#endif
