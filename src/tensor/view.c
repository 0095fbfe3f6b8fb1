/* view.c: tensors that share memory. A view is not a node: it has a source (for the order of things) and an offset. */
#include <stdio.h>

#include "base/checked.h"
#include "tensor/op_impl.h"

static sotto_tensor *new_view(sotto_graph *g, sotto_tensor *x, const char *op)
{
    sotto_tensor *v = st_arena_alloc(g->arena, sizeof *v);
    if (!v)
        return st_graph_fail(g, SOTTO_E_MEMORY, "%s: no memory", op);
    *v = *x;
    v->op = ST_OP_NONE;
    v->flags = x->flags & (ST_TENSOR_STORED | ST_TENSOR_MATRIX);
    v->src[0] = x;
    for (int i = 1; i < ST_MAX_SRC; i++)
        v->src[i] = NULL;
    if (!x->view_of) {
        v->view_of = x;
        v->view_offset = 0;
    }
    v->id = -1;
    v->group = g->group;
    snprintf(v->name, sizeof v->name, "%.40s (%s)", x->name, op);
    return v;
}

static bool cannot_view(sotto_graph *g, sotto_tensor *x, const char *op)
{
    if (!x)
        (void)st_graph_fail(g, SOTTO_E_ARGUMENT, "%s: the source is NULL", op);
    else if (x->flags & ST_TENSOR_MATRIX)
        (void)st_graph_fail(g, SOTTO_E_ARGUMENT, "%s: %s is a weight matrix, which has no views", op, x->name);
    return st_graph_poisoned(g, &x, 1);
}

sotto_tensor *sotto_view_slice(sotto_graph *g, sotto_tensor *x, int axis, int64_t start, int64_t length)
{
    char shape[96];
    if (cannot_view(g, x, "slice"))
        return st_graph_fail(g, SOTTO_E_ARGUMENT, "slice: bad source");
    const int64_t block = axis == 0 ? sotto_dtype_block(x->dtype) : 1;
    if (axis < 0 || axis >= SOTTO_MAX_DIMS || start < 0 || length < 0 || start > x->dim[axis] ||
        length > x->dim[axis] - start || start % block != 0 || length % block != 0)
        return st_graph_fail(g, SOTTO_E_ARGUMENT, "slice: %lld elements from %lld on along axis %d of %s",
                             (long long)length, (long long)start, axis, st_tensor_shape_text(x, shape, sizeof shape));
    sotto_tensor *v = new_view(g, x, "slice");
    if (v->flags & ST_TENSOR_POISON)
        return v;
    v->dim[axis] = length;
    v->view_offset += (size_t)(start / block) * x->stride[axis];
    return v;
}

/* Fits the new dimensions onto the old strides: old dimensions that follow on without a gap form a run, which may be cut
 * anew at will. False when a new dimension would cross a gap. There is at least one element. */
static bool fit_strides(const sotto_tensor *x, const int64_t *dim, size_t *stride)
{
    int64_t count[SOTTO_MAX_DIMS];
    size_t step[SOTTO_MAX_DIMS];
    int n = 0, to = 0;
    for (int a = 0; a < SOTTO_MAX_DIMS; a++) {
        if (x->dim[a] == 1)
            continue;
        if (n > 0 && x->stride[a] == step[n - 1] * (size_t)count[n - 1]) {
            count[n - 1] *= x->dim[a];
            continue;
        }
        count[n] = x->dim[a];
        step[n++] = x->stride[a];
    }
    size_t next = x->stride[0];
    for (int r = 0; r < n; r++) {
        next = step[r];
        for (int64_t left = count[r]; left > 1; to++) {
            if (to == SOTTO_MAX_DIMS || left % dim[to] != 0)
                return false;
            stride[to] = next;
            next *= (size_t)dim[to];
            left /= dim[to];
        }
    }
    for (; to < SOTTO_MAX_DIMS; to++)
        stride[to] = next;
    return true;
}

sotto_tensor *sotto_view_reshape(sotto_graph *g, sotto_tensor *x, int n_dims, const int64_t *dim)
{
    char have[96], want[96];
    if (cannot_view(g, x, "reshape"))
        return st_graph_fail(g, SOTTO_E_ARGUMENT, "reshape: bad source");
    sotto_tensor shaped;
    if (!st_tensor_init(&shaped, x->dtype, n_dims, dim) || sotto_tensor_count(&shaped) != sotto_tensor_count(x))
        return st_graph_fail(g, SOTTO_E_ARGUMENT, "reshape: %s to %d dimensions of another number of elements",
                             st_tensor_shape_text(x, have, sizeof have), n_dims);
    sotto_tensor *v = new_view(g, x, "reshape");
    if (v->flags & ST_TENSOR_POISON)
        return v;
    for (int a = 0; a < SOTTO_MAX_DIMS; a++) {
        v->dim[a] = shaped.dim[a];
        v->stride[a] = shaped.stride[a];
    }
    const bool empty = sotto_tensor_count(x) == 0;
    if (!empty && !st_tensor_is_contiguous(x) && (sotto_dtype_block(x->dtype) != 1 || !fit_strides(x, v->dim, v->stride)))
        return st_graph_fail(g, SOTTO_E_ARGUMENT, "reshape: %s is strided and cannot be seen as %s",
                             st_tensor_shape_text(x, have, sizeof have),
                             st_tensor_shape_text(&shaped, want, sizeof want));
    return v;
}

sotto_tensor *sotto_view_permute(sotto_graph *g, sotto_tensor *x, const int axis[4])
{
    if (cannot_view(g, x, "permute"))
        return st_graph_fail(g, SOTTO_E_ARGUMENT, "permute: bad source");
    unsigned seen = 0;
    for (int a = 0; a < SOTTO_MAX_DIMS; a++)
        if (axis[a] >= 0 && axis[a] < SOTTO_MAX_DIMS)
            seen |= 1u << axis[a];
    if (seen != 15 || (sotto_dtype_block(x->dtype) != 1 && axis[0] != 0))
        return st_graph_fail(g, SOTTO_E_ARGUMENT, "permute: %d %d %d %d, expected each of 0 1 2 3 once", axis[0],
                             axis[1], axis[2], axis[3]);
    sotto_tensor *v = new_view(g, x, "permute");
    if (v->flags & ST_TENSOR_POISON)
        return v;
    for (int a = 0; a < SOTTO_MAX_DIMS; a++) {
        v->dim[a] = x->dim[axis[a]];
        v->stride[a] = x->stride[axis[a]];
    }
    return v;
}

sotto_tensor *sotto_view_frames(sotto_graph *g, sotto_tensor *x, int64_t n_frames, int64_t step, int64_t length)
{
    char shape[96];
    if (cannot_view(g, x, "frames"))
        return st_graph_fail(g, SOTTO_E_ARGUMENT, "frames: bad source");
    int64_t last;
    if (x->dtype != SOTTO_F32 || !st_tensor_is_contiguous(x) || n_frames < 1 || step < 1 || length < 1 ||
        !st_mul_i64(n_frames - 1, step, &last) || last > sotto_tensor_count(x) - length)
        return st_graph_fail(g, SOTTO_E_ARGUMENT, "frames: %lld of %lld elements every %lld from %s %s",
                             (long long)n_frames, (long long)length, (long long)step, sotto_dtype_name(x->dtype),
                             st_tensor_shape_text(x, shape, sizeof shape));
    sotto_tensor *v = new_view(g, x, "frames");
    if (v->flags & ST_TENSOR_POISON)
        return v;
    const int64_t dim[SOTTO_MAX_DIMS] = {length, n_frames, 1, 1};
    for (int a = 0; a < SOTTO_MAX_DIMS; a++) {
        v->dim[a] = dim[a];
        v->stride[a] = a == 0 ? sizeof(float) : (size_t)step * sizeof(float) * (a == 1 ? 1 : (size_t)n_frames);
    }
    return v;
}
