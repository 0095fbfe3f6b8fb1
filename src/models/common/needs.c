#include "models/common/needs.h"

#include <string.h>

uint64_t st_needs_types(const sotto_model_file *file)
{
    uint64_t types = ST_NEEDS_TYPE(SOTTO_F32) | ST_NEEDS_TYPE(SOTTO_F16);
    for (int64_t i = 0; i < sotto_model_tensor_count(file); i++) {
        sotto_model_tensor t;
        if (sotto_model_tensor_get(file, i, &t) == SOTTO_OK && (unsigned)t.dtype < 64)
            types |= ST_NEEDS_TYPE(t.dtype);
    }
    return types;
}

bool st_needs_op(void *user, const char *op, sotto_dtype dtype)
{
    static const char *const products[] = {"linear", "conv_1d", NULL};
    const st_needs *needs = user;
    bool listed = false, multiplies = false;
    for (const char *const *name = needs->ops; *name; name++)
        listed = listed || strcmp(*name, op) == 0;
    for (const char *const *name = products; *name; name++)
        multiplies = multiplies || strcmp(*name, op) == 0;
    return listed && (!multiplies || ((unsigned)dtype < 64 && (needs->types & ST_NEEDS_TYPE(dtype))));
}
