/* straighten.c: copies of strided sources for operations that a device has only over contiguous ones. Weights that a
 * backend has packed are read by others at great cost only, so such a node must not be lost over strides. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/status.h"
#include "runtime/plan_impl.h"

/* Source i may be exchanged for a copy: it is read only, strided and of a type that copies. */
static bool can_copy(const sotto_tensor *node, int i)
{
    const sotto_tensor *s = node->src[i];
    return s && i != st_written_source(node) && !(s->flags & ST_TENSOR_MATRIX) && !st_tensor_is_contiguous(s) &&
           (s->dtype == SOTTO_F32 || s->dtype == SOTTO_F16 || s->dtype == SOTTO_BF16 || s->dtype == SOTTO_I32);
}

static bool make_copy(const sotto_tensor *node, sotto_tensor *s, sotto_tensor *copy)
{
    if (!st_tensor_init(copy, s->dtype, SOTTO_MAX_DIMS, s->dim))
        return false;
    copy->op = ST_OP_COPY;
    copy->src[0] = s;
    copy->group = node->group;
    snprintf(copy->name, sizeof copy->name, "%.50s (copy)", s->name);
    return true;
}

bool st_plan_can_run(const st_runner *r, const sotto_tensor *node, bool *straighten)
{
    *straighten = false;
    if (st_runner_supports(r, node))
        return true;
    sotto_tensor copies[ST_MAX_SRC], straight = *node;
    for (int i = 0; i < ST_MAX_SRC; i++) {
        if (!can_copy(node, i))
            continue;
        if (!make_copy(node, node->src[i], &copies[i]) || !st_runner_supports(r, &copies[i]))
            return false;
        straight.src[i] = &copies[i];
        *straighten = true;
    }
    return *straighten && st_runner_supports(r, &straight);
}

static sotto_status grow_lists(sotto_plan *plan, size_t cap, sotto_tensor ***node, int **device, uint8_t **reason,
                               sotto_error *err)
{
    (void)plan;
    *node = st_calloc(cap, sizeof **node);
    *device = st_calloc(cap, sizeof **device);
    *reason = st_calloc(cap, sizeof **reason);
    if (*node && *device && *reason)
        return SOTTO_OK;
    st_free(*node);
    st_free(*device);
    st_free(*reason);
    return st_fail_memory(err, cap * sizeof **node, "the copies of a plan");
}

sotto_status st_plan_straighten(sotto_plan *plan, sotto_error *err)
{
    sotto_graph *g = plan->graph;
    size_t n_odd = 0;
    for (int i = 0; i < g->n_node; i++)
        n_odd += !st_runner_supports(&plan->backend->device[plan->device[i]], g->node[i]);
    if (n_odd == 0)
        return SOTTO_OK;
    const size_t cap = (size_t)g->n_node + n_odd * ST_MAX_SRC + 1;
    sotto_tensor **node;
    int *device, n = 0;
    uint8_t *reason;
    ST_TRY(grow_lists(plan, cap, &node, &device, &reason, err));
    sotto_status status = SOTTO_OK;
    for (int i = 0; i < g->n_node && status == SOTTO_OK; i++) {
        const int d = plan->device[i];
        const bool odd = !st_runner_supports(&plan->backend->device[d], g->node[i]);
        for (int k = 0; odd && k < ST_MAX_SRC && status == SOTTO_OK; k++) {
            sotto_tensor *s = g->node[i]->src[k];
            if (!can_copy(g->node[i], k))
                continue;
            sotto_tensor *copy = st_plan_new_tensor(plan, s->dtype, s->dim, s->name);
            if (!copy) {
                status = st_fail_memory(err, sizeof *copy, "the copies of a plan");
                break;
            }
            const size_t offset = copy->offset;
            (void)make_copy(g->node[i], s, copy);
            copy->offset = offset;
            status = st_plan_settle(plan, copy, st_backend_space(plan->backend, d), err);
            g->node[i]->src[k] = copy;
            node[n] = copy;
            device[n] = d;
            reason[n++] = ST_REASON_NEXT;
        }
        node[n] = g->node[i];
        device[n] = d;
        reason[n++] = plan->reason[i];
    }
    for (int i = 0; i < n; i++)
        node[i]->id = i;
    st_free(g->node);
    st_free(plan->device);
    st_free(plan->reason);
    g->node = node;
    g->n_node = n;
    g->cap_node = (int)cap;
    plan->device = device;
    plan->reason = reason;
    return status;
}
