/* assign.c: a device for every node. First those that stored tensors hold to a place, then runs grow from them. A device that
 * lacks an operation loses the node to the next one: the last resort, the reference, then the others. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/status.h"
#include "runtime/plan_impl.h"

sotto_status st_plan_settle(sotto_plan *plan, sotto_tensor *home, int space, sotto_error *err)
{
    home->buffer = st_arena_part(plan->arena, space, 0);
    return home->buffer ? SOTTO_OK : st_fail_memory(err, sizeof *home->buffer, "a part of an arena");
}

/* Where a tensor's memory is, -1 while that is open. */
static int device_of(const sotto_plan *plan, sotto_tensor *t)
{
    const sotto_tensor *home = st_home(t);
    return home->buffer ? st_backend_device_of(plan->backend, home->buffer) : -1;
}

static bool is_stored(sotto_tensor *t)
{
    return (st_home(t)->flags & ST_TENSOR_STORED) != 0;
}

/* What the device would have to hold is within its limits. */
static bool fits(const sotto_backend *b, int d, const sotto_tensor *node)
{
    const st_runner *r = &b->device[d];
    const st_buffer_traits traits = r->impl->buffer_traits(r->state, ST_BUFFER_COMPUTE);
    if (!node->view_of && sotto_tensor_bytes(node) > traits.max_size)
        return false;
    for (int i = 0; i < ST_MAX_SRC; i++) {
        const sotto_tensor *s = node->src[i];
        const sotto_tensor *home = s && s->view_of ? s->view_of : s;
        if (s && sotto_tensor_bytes(home->flags & ST_TENSOR_INPUT ? home : s) > traits.max_size)
            return false; /* inputs are set as a whole */
    }
    return true;
}

static bool can_run(const sotto_plan *plan, int d, const sotto_tensor *node)
{
    bool straighten;
    const st_runner *r = &plan->backend->device[d];
    return r->impl && (plan->backend->n_device == 1 || fits(plan->backend, d < plan->backend->n_device ? d : 0, node)) &&
           st_plan_can_run(r, node, &straighten);
}

static sotto_status take(sotto_plan *plan, int i, int d, st_reason reason, sotto_error *err)
{
    sotto_tensor *node = plan->graph->node[i];
    plan->device[i] = d;
    plan->reason[i] = (uint8_t)reason;
    if (node->view_of)
        return SOTTO_OK;
    const int space = st_backend_space(plan->backend, d);
    return st_plan_settle(plan, node, space, err);
}

/* The node goes to `want`, or to the next that has it. */
static sotto_status choose(sotto_plan *plan, int i, int want, st_reason reason, sotto_error *err)
{
    sotto_backend *b = plan->backend;
    const sotto_tensor *node = plan->graph->node[i];
    if (can_run(plan, want, node))
        return take(plan, i, want, reason, err);
    const int last = b->n_device - 1;
    if (want != last && can_run(plan, last, node))
        return take(plan, i, last, ST_REASON_FALLBACK, err);
    if (b->host >= 0) {
        ST_TRY(st_backend_fallback(b, err));
        if (can_run(plan, b->n_device, node))
            return take(plan, i, b->n_device, ST_REASON_FALLBACK, err);
    }
    for (int d = 0; d < last; d++)
        if (d != want && can_run(plan, d, node))
            return take(plan, i, d, ST_REASON_FALLBACK, err);
    char shape[96];
    return st_fail(err, SOTTO_E_UNSUPPORTED, "%s (%s %s): %s has no such operation", node->name, st_op_name(node->op),
                   st_tensor_shape_text(node, shape, sizeof shape), b->description);
}

/* An accelerator for a product of many rows with weights that are at home on the host; -1: none. */
static int offload(const sotto_plan *plan, const sotto_tensor *node)
{
    const sotto_backend *b = plan->backend;
    const sotto_tensor *w = node->src[1];
    if (b->no_offload || (node->op != ST_OP_LINEAR && node->op != ST_OP_CONV_1D) || !w ||
        !(w->flags & ST_TENSOR_MATRIX) ||
        st_visiting_type(node, w->dtype) != w->dtype) /* far larger on the way than at home */
        return -1;
    const int64_t rows = st_tensor_n_rows(node);
    for (int i = 0; i < b->n_device; i++) { /* the main device first */
        const int d = (b->main + i) % b->n_device;
        const int64_t least = d == b->n_device - 1 ? 0 : st_runner_traits(&b->device[d]).offload_rows;
        if (least > 0 && rows >= least && can_run(plan, d, node))
            return d;
    }
    return -1;
}

/* The device that stored tensors ask for; -1: there are none. */
static int wanted(const sotto_plan *plan, sotto_tensor *node, st_reason *reason)
{
    const int written = st_written_source(node);
    int want = -1;
    if (written >= 0 && device_of(plan, node->src[written]) >= 0) {
        *reason = ST_REASON_WRITES;
        return device_of(plan, node->src[written]);
    }
    for (int k = 0; k < ST_MAX_SRC; k++) {
        sotto_tensor *s = node->src[k];
        if (!s || !is_stored(s) || device_of(plan, s) < 0)
            continue;
        if (st_home(s)->flags & ST_TENSOR_MATRIX) {
            *reason = ST_REASON_WEIGHTS;
            want = device_of(plan, s);
            if (want != plan->backend->n_device - 1)
                return want;
            const int d = offload(plan, node);
            *reason = d >= 0 ? ST_REASON_OFFLOAD : ST_REASON_WEIGHTS;
            return d >= 0 ? d : want;
        }
        if (want < 0 || st_home(s)->buffer->usage == ST_BUFFER_CACHE) {
            *reason = ST_REASON_STORED;
            want = device_of(plan, s);
        }
    }
    return want;
}

/* Of the largest source whose place is known. */
static int neighbour(const sotto_plan *plan, sotto_tensor *node)
{
    int best = -1;
    size_t most = 0;
    for (int k = 0; k < ST_MAX_SRC; k++) {
        sotto_tensor *s = node->src[k];
        const int d = s ? device_of(plan, s) : -1;
        if (d < 0)
            continue;
        if (k == st_written_source(node))
            return d;
        if (best < 0 || sotto_tensor_bytes(s) > most) {
            best = d;
            most = sotto_tensor_bytes(s);
        }
    }
    return best;
}

/* Backwards: a node goes where its result is read. */
static sotto_status grow_back(sotto_plan *plan, sotto_error *err)
{
    sotto_graph *g = plan->graph;
    int *reader = st_alloc((size_t)g->n_node + 1, sizeof *reader);
    if (!reader)
        return st_fail_memory(err, (uint64_t)g->n_node * sizeof *reader, "the readers of nodes");
    for (int i = 0; i < g->n_node; i++)
        reader[i] = -1;
    sotto_status status = SOTTO_OK;
    for (int i = g->n_node - 1; i >= 0 && status == SOTTO_OK; i--) {
        if (!plan->reason[i] && reader[i] >= 0)
            status = choose(plan, i, reader[i], ST_REASON_NEXT, err);
        for (int k = 0; k < ST_MAX_SRC && plan->reason[i]; k++) {
            const sotto_tensor *s = g->node[i]->src[k];
            const sotto_tensor *home = s && s->view_of ? s->view_of : s;
            if (home && home->id >= 0 && reader[home->id] < 0)
                reader[home->id] = plan->device[i] < plan->backend->n_device ? plan->device[i] : plan->backend->host;
        }
    }
    st_free(reader);
    return status;
}

sotto_status st_plan_assign(sotto_plan *plan, sotto_error *err)
{
    sotto_graph *g = plan->graph;
    plan->device = st_calloc((size_t)g->n_node + 1, sizeof *plan->device);
    plan->reason = st_calloc((size_t)g->n_node + 1, sizeof *plan->reason);
    if (!plan->device || !plan->reason)
        return st_fail_memory(err, (uint64_t)g->n_node * sizeof *plan->device, "the devices of nodes");
    const bool alone = plan->backend->n_device == 1;
    for (int i = 0; i < g->n_node && !alone; i++) {
        st_reason reason = ST_REASON_NONE;
        const int want = wanted(plan, g->node[i], &reason);
        if (want >= 0)
            ST_TRY(choose(plan, i, want, reason, err));
    }
    for (int i = 0; i < g->n_node && !alone; i++) {
        const int want = plan->reason[i] ? -1 : neighbour(plan, g->node[i]);
        if (want >= 0)
            ST_TRY(choose(plan, i, want < plan->backend->n_device ? want : plan->backend->host, ST_REASON_NEXT, err));
    }
    if (!alone)
        ST_TRY(grow_back(plan, err));
    for (int i = 0; i < g->n_node; i++)
        if (!plan->reason[i])
            ST_TRY(choose(plan, i, plan->backend->main, ST_REASON_MAIN, err));
    return SOTTO_OK;
}
