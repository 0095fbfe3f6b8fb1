#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "tensor/buffer.h"
#include "tensor/tensor_impl.h"

static const char *const op_names[] = {
#define OP(constant, name, n_src) name,
#include "tensor/ops.inc"
#undef OP
};

const char *st_op_name(st_op op)
{
    return (unsigned)op < ST_OP_COUNT ? op_names[op] : "unknown";
}

const char *sotto_tensor_name(const sotto_tensor *t)
{
    return t ? t->name : "";
}

sotto_dtype sotto_tensor_dtype(const sotto_tensor *t)
{
    return t ? t->dtype : SOTTO_F32;
}

int64_t sotto_tensor_dim(const sotto_tensor *t, int axis)
{
    return t && axis >= 0 && axis < SOTTO_MAX_DIMS ? t->dim[axis] : 0;
}

int64_t sotto_tensor_count(const sotto_tensor *t)
{
    return t ? t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3] : 0;
}

size_t sotto_tensor_bytes(const sotto_tensor *t)
{
    return t ? sotto_dtype_row_bytes(t->dtype, t->dim[0]) * (size_t)st_tensor_n_rows(t) : 0;
}

int64_t st_tensor_n_rows(const sotto_tensor *t)
{
    return t->dim[1] * t->dim[2] * t->dim[3];
}

bool st_tensor_init(sotto_tensor *t, sotto_dtype dtype, int n_dims, const int64_t *dim)
{
    memset(t, 0, sizeof *t);
    t->dtype = dtype;
    t->id = -1;
    if (n_dims < 1 || n_dims > SOTTO_MAX_DIMS || sotto_dtype_block(dtype) == 0)
        return false;
    int64_t count = 1;
    for (int a = 0; a < SOTTO_MAX_DIMS; a++) {
        t->dim[a] = a < n_dims ? dim[a] : 1;
        /* a dimension of 0 counts as 1 here, so that no product of some of the dimensions overflows either */
        if (t->dim[a] < 0 || !st_mul_i64(count, t->dim[a] > 0 ? t->dim[a] : 1, &count))
            return false;
    }
    const size_t row = sotto_dtype_row_bytes(dtype, t->dim[0]);
    if (row == 0 && t->dim[0] != 0)
        return false;
    t->stride[0] = sotto_dtype_bytes(dtype);
    t->stride[1] = row;
    size_t total;
    for (int a = 2; a < SOTTO_MAX_DIMS; a++)
        if (!st_mul_size(t->stride[a - 1], (size_t)t->dim[a - 1], &t->stride[a]))
            return false;
    return st_mul_size(t->stride[3], (size_t)t->dim[3], &total) && total <= (size_t)INT64_MAX;
}

bool st_tensor_has_rows(const sotto_tensor *t)
{
    return t->stride[0] == sotto_dtype_bytes(t->dtype) || t->dim[0] <= 1;
}

bool st_tensor_is_contiguous(const sotto_tensor *t)
{
    if (!st_tensor_has_rows(t))
        return false;
    size_t expected = sotto_dtype_row_bytes(t->dtype, t->dim[0]);
    for (int a = 1; a < SOTTO_MAX_DIMS; a++) {
        if (t->dim[a] != 1 && t->stride[a] != expected)
            return false;
        expected *= (size_t)t->dim[a];
    }
    return true;
}

void *st_tensor_data(const sotto_tensor *t)
{
    const sotto_tensor *home = t->view_of ? t->view_of : t;
    if (!home->buffer || !home->buffer->host)
        return NULL;
    return (char *)home->buffer->host + home->offset + (t->view_of ? t->view_offset : 0);
}

char *st_tensor_shape_text(const sotto_tensor *t, char *out, size_t size)
{
    int n = SOTTO_MAX_DIMS;
    while (n > 1 && t->dim[n - 1] == 1)
        n--;
    size_t at = 0;
    for (int a = n - 1; a >= 0 && at < size; a--) {
        const int k =
            snprintf(out + at, size - at, "%s%lld%s", a == n - 1 ? "[" : ", ", (long long)t->dim[a], a == 0 ? "]" : "");
        at += k > 0 ? (size_t)k : 0;
    }
    return out;
}
