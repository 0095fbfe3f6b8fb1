/* split.c: which backend runs which node. One main backend for now: what it lacks goes to the reference, when all the
 * memory is the host's. A backend that lacks an operation loses that node, never the run. */
#include "base/alloc.h"
#include "base/status.h"
#include "runtime/plan_impl.h"

/* Readable by the reference. A plan may be made before its stores are allocated; theirs will then be as the backend's. */
static bool on_host(const sotto_backend *b, const sotto_tensor *t)
{
    const sotto_tensor *home = t->view_of ? t->view_of : t;
    const bool stored = home->flags & ST_TENSOR_STORED, host_backend = b->main.impl->kind != SOTTO_DEVICE_GPU;
    if (t->flags & ST_TENSOR_MATRIX)
        return false;
    return stored && home->buffer->impl ? home->buffer->host != NULL : host_backend;
}

/* Stored tensors must lie where the runner reads: in a buffer of its own backend, or plainly in host memory. */
static bool reaches(const sotto_backend *b, const sotto_tensor *node)
{
    for (int i = 0; i < ST_MAX_SRC; i++) {
        const sotto_tensor *s = node->src[i];
        if (!s)
            continue;
        const sotto_tensor *home = s->view_of ? s->view_of : s;
        if ((home->flags & ST_TENSOR_STORED) && home->buffer->impl && home->buffer->impl != b->main.impl &&
            !on_host(b, s))
            return false;
    }
    return true;
}

static sotto_status choose(sotto_backend *b, const sotto_tensor *node, st_runner *out, sotto_error *err)
{
    char shape[96];
    if (reaches(b, node) && b->main.impl->supports(node)) {
        *out = b->main;
        return SOTTO_OK;
    }
    bool host = on_host(b, node);
    for (int i = 0; i < ST_MAX_SRC; i++)
        host = host && (!node->src[i] || on_host(b, node->src[i]));
    if (host) {
        ST_TRY(st_backend_fallback(b, out, err));
        if (out->impl->supports(node))
            return SOTTO_OK;
    }
    return st_fail(err, SOTTO_E_UNSUPPORTED, "%s (%s %s): %s has no such operation", node->name, st_op_name(node->op),
                   st_tensor_shape_text(node, shape, sizeof shape), b->description);
}

sotto_status st_plan_split(sotto_plan *plan, sotto_error *err)
{
    const sotto_graph *g = plan->graph;
    plan->segments = st_calloc((size_t)g->n_node + 1, sizeof *plan->segments);
    if (!plan->segments)
        return st_fail_memory(err, (uint64_t)g->n_node * sizeof *plan->segments, "the segments of a plan");
    for (int i = 0; i < g->n_node; i++) {
        st_runner r;
        ST_TRY(choose(plan->backend, g->node[i], &r, err));
        st_segment *last = plan->n_segments > 0 ? &plan->segments[plan->n_segments - 1] : NULL;
        if (last && last->runner.impl == r.impl) {
            last->exec.n_node++;
            continue;
        }
        plan->segments[plan->n_segments++] = (st_segment){.runner = r, .exec = {.node = g->node + i, .n_node = 1}};
    }
    return SOTTO_OK;
}
