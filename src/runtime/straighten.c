/* straighten.c: copies of strided sources for operations that the backend has only over contiguous ones. Weights that a
 * backend has packed can be read by nobody else, so such a node must not be lost to another backend over strides. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/status.h"
#include "runtime/plan_impl.h"

typedef struct list {
    sotto_tensor **node;
    int n;
} list;

/* Source i may be exchanged for a copy: it is read only, strided and of a type that copies. */
static bool can_copy(const sotto_tensor *node, int i)
{
    const sotto_tensor *s = node->src[i];
    const bool written = (node->op == ST_OP_SET_ROWS && i == 0) || (node->op == ST_OP_COPY && i == 1);
    return s && !written && !(s->flags & ST_TENSOR_MATRIX) && !st_tensor_is_contiguous(s) &&
           (s->dtype == SOTTO_F32 || s->dtype == SOTTO_F16 || s->dtype == SOTTO_BF16 || s->dtype == SOTTO_I32);
}

static sotto_tensor *copy_of(sotto_graph *g, const sotto_tensor *node, sotto_tensor *s)
{
    sotto_tensor *copy = st_arena_alloc(g->arena, sizeof *copy);
    if (!copy || !st_tensor_init(copy, s->dtype, SOTTO_MAX_DIMS, s->dim))
        return NULL;
    copy->op = ST_OP_COPY;
    copy->src[0] = s;
    copy->group = node->group;
    snprintf(copy->name, sizeof copy->name, "%.50s (copy)", s->name);
    return copy;
}

/* Appends the copies that make the node one that the backend has, if there are such. */
static bool straighten_node(const st_backend_impl *impl, sotto_graph *g, sotto_tensor *node, list *out)
{
    sotto_tensor *old[ST_MAX_SRC];
    const int before = out->n;
    for (int i = 0; i < ST_MAX_SRC; i++) {
        old[i] = node->src[i];
        if (!can_copy(node, i))
            continue;
        node->src[i] = copy_of(g, node, old[i]);
        if (!node->src[i])
            return false;
        out->node[out->n++] = node->src[i];
    }
    if (impl->supports(node))
        return true;
    for (int i = 0; i < ST_MAX_SRC; i++)
        node->src[i] = old[i];
    out->n = before;
    return true;
}

sotto_status st_plan_straighten(sotto_plan *plan, sotto_error *err)
{
    const st_backend_impl *impl = plan->backend->main.impl;
    sotto_graph *g = plan->graph;
    int n_odd = 0;
    for (int i = 0; i < g->n_node; i++)
        n_odd += !impl->supports(g->node[i]);
    if (n_odd == 0)
        return SOTTO_OK;
    const size_t cap = (size_t)g->n_node + (size_t)n_odd * ST_MAX_SRC;
    list out = {.node = st_calloc(cap, sizeof *out.node)};
    bool good = out.node != NULL;
    for (int i = 0; good && i < g->n_node; i++) {
        if (!impl->supports(g->node[i]))
            good = straighten_node(impl, g, g->node[i], &out);
        out.node[out.n++] = g->node[i];
    }
    if (!good) {
        st_free(out.node);
        return st_fail_memory(err, cap * sizeof *out.node, "the copies of a plan");
    }
    for (int i = 0; i < out.n; i++)
        out.node[i]->id = i;
    st_free(g->node);
    g->node = out.node;
    g->n_node = out.n;
    g->cap_node = (int)cap;
    return SOTTO_OK;
}
