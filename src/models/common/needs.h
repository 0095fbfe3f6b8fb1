/* needs.h: what a model's graphs need of a device, which is tried with that alone: its kernels for other types of number
 * may take a minute to compile. */
#ifndef SOTTO_SRC_MODELS_COMMON_NEEDS_H
#define SOTTO_SRC_MODELS_COMMON_NEEDS_H

#include "sotto/backend.h"
#include "sotto/model.h"

typedef struct st_needs {
    const char *const *ops; /* names, NULL at the end */
    uint64_t types;         /* of the matrices that are multiplied with; bit n: the sotto_dtype n */
} st_needs;

#define ST_NEEDS_TYPE(dtype) (1ull << (unsigned)(dtype))

/* The types of the file's tensors and those that any of them may be brought to. */
uint64_t st_needs_types(const sotto_model_file *file);
/* For sotto_backend_options; user is a st_needs. */
bool st_needs_op(void *user, const char *op, sotto_dtype dtype);

#endif
