/* plan.c: a graph placed in memory, and its runs. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/thread.h"
#include "runtime/plan_impl.h"

/* ---- making ---- */

static sotto_status prepare_segments(sotto_plan *plan, sotto_error *err)
{
    const size_t n = (size_t)plan->graph->n_node;
    plan->seconds = st_calloc(n + 1, sizeof *plan->seconds);
    plan->trace = st_calloc(n + 1, sizeof *plan->trace);
    if (!plan->seconds || !plan->trace)
        return st_fail_memory(err, n * sizeof *plan->trace, "the trace of a plan");
    size_t at = 0;
    for (int64_t i = 0; i < plan->n_segments; i++) {
        st_segment *s = &plan->segments[i];
        const st_runner *r = &plan->backend->device[s->device];
        size_t scratch = 0;
        ST_TRY(r->impl->prepare(r->state, &s->exec, &s->prepared, &scratch, err));
        s->is_prepared = true;
        if (scratch > plan->scratch_bytes[s->device]) /* segments follow each other */
            plan->scratch_bytes[s->device] = scratch;
        for (int k = 0; k < s->exec.n_node; k++) {
            const sotto_tensor *t = s->exec.node[k];
            sotto_trace_node *row = &plan->trace[at++];
            *row = (sotto_trace_node){.op = st_op_name(t->op), .name = t->name, .backend = r->id, .dtype = t->dtype};
            memcpy(row->dim, t->dim, sizeof row->dim);
        }
    }
    return SOTTO_OK;
}

static sotto_status make(sotto_plan *plan, const sotto_graph *graph, sotto_error *err)
{
    const size_t n = (size_t)plan->backend->n_device + 1;
    if (graph->error.code != SOTTO_OK)
        return st_fail(err, graph->error.code, "%s", graph->error.text);
    plan->space_bytes = st_calloc(n, sizeof *plan->space_bytes);
    plan->space_used = st_calloc(n, sizeof *plan->space_used);
    plan->scratch_bytes = st_calloc(n, sizeof *plan->scratch_bytes);
    plan->visitors = st_calloc(n, sizeof *plan->visitors);
    plan->events = st_calloc(n, sizeof *plan->events);
    plan->pinned = st_calloc(n, sizeof *plan->pinned);
    if (!plan->space_bytes || !plan->space_used || !plan->scratch_bytes || !plan->visitors || !plan->events ||
        !plan->pinned)
        return st_fail_memory(err, n * sizeof *plan->visitors, "a plan");
    ST_TRY(st_plan_clone(plan, graph, err));
    ST_TRY(st_plan_cut_rows(plan, err));
    ST_TRY(st_plan_assign(plan, err));
    ST_TRY(st_plan_straighten(plan, err));
    ST_TRY(st_plan_split(plan, err));
    ST_TRY(st_plan_layout(plan, err));
    return prepare_segments(plan, err);
}

static sotto_status create(sotto_backend *backend, sotto_arena *arena, const sotto_graph *graph, sotto_plan **out,
                           sotto_error *err)
{
    if (out)
        *out = NULL;
    if (!backend || !arena || !graph || !out || arena->backend != backend || !graph->finished)
        return st_fail(err, SOTTO_E_ARGUMENT, "a plan needs a backend, an arena of it, a finished graph and out");
    sotto_plan *plan = st_calloc(1, sizeof *plan);
    if (!plan)
        return st_fail_memory(err, sizeof *plan, "a plan");
    plan->backend = backend;
    plan->arena = arena;
    const sotto_status status = make(plan, graph, err);
    if (status != SOTTO_OK) {
        sotto_plan_free(plan);
        return status;
    }
    *out = plan;
    return SOTTO_OK;
}

sotto_status sotto_plan_create(sotto_backend *backend, sotto_arena *arena, const sotto_graph *graph, sotto_plan **out,
                               sotto_error *err)
{
    return create(backend, arena, graph, out, err);
}

sotto_status sotto_plan_create_take(sotto_backend *backend, sotto_arena *arena, sotto_graph *graph, sotto_plan **out,
                                    sotto_error *err)
{
    const sotto_status status = create(backend, arena, graph, out, err);
    if (status == SOTTO_OK)
        (*out)->source = graph;
    else
        sotto_graph_free(graph);
    return status;
}

void sotto_plan_free(sotto_plan *plan)
{
    if (!plan)
        return;
    (void)st_plan_sync(plan, NULL);
    for (int64_t i = 0; i < plan->n_segments; i++) {
        const st_runner *r = &plan->backend->device[plan->segments[i].device];
        if (plan->segments[i].is_prepared)
            r->impl->release(r->state, plan->segments[i].prepared);
    }
    st_plan_release_copies(plan);
    sotto_graph_free(plan->graph);
    sotto_graph_free(plan->source);
    void *const lists[] = {plan->map.key,       plan->map.value,  plan->device, plan->reason,  plan->copies,
                           plan->segments,      plan->inputs,     plan->events, plan->pinned,  plan->space_bytes,
                           plan->scratch_bytes, plan->space_used, plan->trace,  plan->seconds, plan->visitors};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        st_free(lists[i]);
    st_free(plan);
}

/* ---- sizes and memory ---- */

uint64_t sotto_plan_device_bytes(const sotto_plan *plan, int device)
{
    if (!plan || device < 0 || device >= plan->backend->n_device)
        return 0;
    const int n = plan->backend->n_device, host = plan->backend->host;
    uint64_t bytes = (uint64_t)plan->space_bytes[device] + plan->scratch_bytes[device] + plan->visitors[device].size;
    if (device == host) /* the reference computes there as well, and bytes are on their way */
        bytes += plan->scratch_bytes[n] + plan->visitors[n].size + 2 * plan->staging_bytes + plan->bounce_bytes +
                 2 * plan->n_rows * sizeof *plan->rows;
    return bytes;
}

uint64_t sotto_plan_bytes(const sotto_plan *plan)
{
    uint64_t bytes = 0;
    for (int d = 0; plan && d < plan->backend->n_device; d++)
        bytes += sotto_plan_device_bytes(plan, d);
    return bytes;
}

sotto_status sotto_plan_allocate(sotto_plan *plan, sotto_error *err)
{
    if (!plan)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_plan_allocate: plan is NULL");
    for (int d = 0; d < plan->backend->n_device; d++)
        if (plan->space_used[d]) {
            const sotto_status status = st_arena_reserve(plan->arena, d, plan->space_bytes[d], err);
            if (status != SOTTO_OK)
                return st_fail_context(err, status, "%s", plan->backend->device[d].id);
        }
    return st_plan_prepare_copies(plan, err);
}

/* ---- bytes in and out ---- */

/* The plan's tensor that holds the caller's, and where it begins in there. */
static sotto_status locate(const sotto_plan *plan, const sotto_tensor *t, size_t offset, size_t bytes,
                           sotto_tensor **home, size_t *at, sotto_error *err)
{
    const sotto_tensor *given = t && t->view_of ? t->view_of : t;
    const bool stored = given && (given->flags & ST_TENSOR_STORED);
    *home = !plan || !given ? NULL : stored ? (sotto_tensor *)(uintptr_t)given : st_map_find(&plan->map, given);
    if (!*home || (stored && (*home)->buffer->size == 0) || (given->flags & ST_TENSOR_MATRIX) ||
        !st_tensor_is_contiguous(t))
        return st_fail(err, SOTTO_E_ARGUMENT, "%s: not a contiguous tensor of this plan", t ? t->name : "NULL");
    if (!(given->flags & (ST_TENSOR_STORED | ST_TENSOR_INPUT | ST_TENSOR_OUTPUT)))
        return st_fail(err, SOTTO_E_ARGUMENT, "%s: neither an input nor an output: its memory is used again", t->name);
    const size_t size = sotto_tensor_bytes(t);
    if (offset > size || bytes > size - offset)
        return st_fail(err, SOTTO_E_ARGUMENT, "%s: bytes %zu to %zu of %zu", t->name, offset, offset + bytes, size);
    *at = (t->view_of ? t->view_offset : 0) + offset;
    return SOTTO_OK;
}

static st_runner *runner_of(const sotto_plan *plan, const sotto_tensor *home)
{
    const int d = st_backend_device_of(plan->backend, home->buffer);
    return d >= 0 ? &plan->backend->device[d] : home->buffer->host ? &plan->backend->device[plan->backend->host] : NULL;
}

static sotto_status set_input(sotto_plan *plan, st_input *in, size_t at, const void *data, size_t bytes,
                              sotto_error *err)
{
    if (in->staging == SIZE_MAX) {
        const st_runner *r = &plan->backend->device[in->space];
        return r->impl->set(r->state, in->t->buffer, in->t->offset + at, data, bytes, err);
    }
    if (bytes > 0) {
        memcpy(plan->host + in->staging + at, data, bytes);
        in->low = in->low < in->high && in->low < at ? in->low : at;
        in->high = in->high > at + bytes ? in->high : at + bytes;
    }
    return SOTTO_OK;
}

sotto_status sotto_plan_set(sotto_plan *plan, sotto_tensor *t, size_t offset, const void *data, size_t bytes,
                            sotto_error *err)
{
    sotto_tensor *home;
    size_t at;
    ST_TRY(locate(plan, t, offset, bytes, &home, &at, err));
    ST_TRY(sotto_plan_allocate(plan, err));
    if (home->flags & ST_TENSOR_INPUT) {
        for (int64_t i = 0; i < plan->n_inputs; i++)
            if (plan->inputs[plan->inputs[i].of].t == home)
                ST_TRY(set_input(plan, &plan->inputs[i], at, data, bytes, err));
        return SOTTO_OK;
    }
    const st_runner *r = runner_of(plan, home);
    if (!r)
        return st_fail(err, SOTTO_E_ARGUMENT, "%s lives on a device that is not in use here", t->name);
    if (home->buffer->wrapped)
        return st_fail(err, SOTTO_E_ARGUMENT, "%s: is read at its place in memory of the host", t->name);
    return r->impl->set(r->state, home->buffer, home->offset + at, data, bytes, err);
}

sotto_status sotto_plan_get(sotto_plan *plan, const sotto_tensor *t, size_t offset, void *out, size_t bytes,
                            sotto_error *err)
{
    sotto_tensor *home;
    size_t at;
    ST_TRY(locate(plan, t, offset, bytes, &home, &at, err));
    ST_TRY(sotto_plan_allocate(plan, err));
    if (home->flags & ST_TENSOR_INPUT)
        ST_TRY(st_plan_flush(plan, err));
    const st_runner *r = runner_of(plan, home);
    if (!r)
        return st_fail(err, SOTTO_E_ARGUMENT, "%s lives on a device that is not in use here", t->name);
    return r->impl->get(r->state, home->buffer, home->offset + at, out, bytes, err);
}

void *sotto_plan_view(sotto_plan *plan, const sotto_tensor *t)
{
    sotto_tensor *home;
    size_t at;
    if (locate(plan, t, 0, 0, &home, &at, NULL) != SOTTO_OK || !(home->flags & ST_TENSOR_OUTPUT) ||
        !home->buffer->host || home->offset + at + sotto_tensor_bytes(t) > home->buffer->size)
        return NULL;
    const st_runner *r = runner_of(plan, home);
    return r == &plan->backend->device[plan->backend->host] ? (char *)home->buffer->host + home->offset + at : NULL;
}

/* ---- running ---- */

static sotto_status check_stores(sotto_plan *plan, sotto_error *err)
{
    for (int i = 0; i < plan->graph->n_leaf && !plan->stores_seen; i++) {
        const sotto_tensor *leaf = plan->graph->leaf[i];
        if ((leaf->flags & ST_TENSOR_STORED) && leaf->buffer->size == 0)
            return st_fail(err, SOTTO_E_ARGUMENT, "%s: its store has not been allocated", leaf->name);
    }
    plan->stores_seen = true;
    return SOTTO_OK;
}

static sotto_status run_segment(sotto_plan *plan, st_segment *s, const st_exec_hooks *hooks, bool timed,
                                sotto_error *err)
{
    st_runner *r = &plan->backend->device[s->device];
    const double start = timed ? st_time_now() : 0;
    for (int k = 0; k < s->n_in; k++)
        ST_TRY(st_plan_copy(plan, &plan->copies[s->first_in + k], err));
    if (timed)
        ST_TRY(st_plan_sync(plan, err));
    const double copied = timed ? st_time_now() : 0;
    s->exec.epoch = plan->arena->epoch;
    r->busy = r->busy || st_runner_traits(r).asynchronous || r->impl->sync;
    ST_TRY(r->impl->run(r->state, &s->exec, s->prepared, hooks, err));
    if (timed)
        ST_TRY(st_plan_sync(plan, err));
    const double computed = timed ? st_time_now() : 0;
    for (int k = 0; k < s->n_out; k++)
        ST_TRY(st_plan_copy(plan, &plan->copies[s->first_out + k], err));
    if (timed) {
        ST_TRY(st_plan_sync(plan, err));
        s->compute_seconds = computed - copied;
        s->copy_seconds = st_time_now() - computed + copied - start;
    }
    return SOTTO_OK;
}

static sotto_status run_all(sotto_plan *plan, const sotto_run_options *o, sotto_error *err)
{
    size_t at = 0;
    for (int64_t i = 0; i < plan->n_segments; i++) {
        st_segment *s = &plan->segments[i];
        const st_exec_hooks hooks = {
            .abort = o->abort, .abort_user = o->abort_user, .node_seconds = o->trace ? plan->seconds + at : NULL};
        if (o->abort && o->abort(o->abort_user))
            return st_fail(err, SOTTO_E_ABORTED, "stopped by the caller");
        ST_TRY(run_segment(plan, s, &hooks, o->trace_split != NULL, err));
        at += (size_t)s->exec.n_node;
    }
    return SOTTO_OK;
}

static void tell(sotto_plan *plan, const sotto_run_options *o)
{
    for (int i = 0; o->trace && i < plan->graph->n_node; i++) {
        plan->trace[i].seconds = plan->seconds[i];
        o->trace(o->trace_user, &plan->trace[i]);
    }
    for (int64_t i = 0; o->trace_split && i < plan->n_segments; i++) {
        const st_segment *s = &plan->segments[i];
        sotto_trace_split split = {.graph = plan->graph->name,
                                   .device = plan->backend->device[s->device].id,
                                   .index = (int)i,
                                   .n_nodes = s->exec.n_node,
                                   .n_copies = s->n_in + s->n_out,
                                   .copy_seconds = s->copy_seconds,
                                   .compute_seconds = s->compute_seconds};
        for (int k = 0; k < s->n_in + s->n_out; k++)
            split.copied_bytes += plan->copies[s->first_in + k].bytes;
        o->trace_split(o->trace_user, &split);
    }
}

static sotto_status start(sotto_plan *plan, const sotto_run_options *o, sotto_error *err)
{
    if (plan->in_flight)
        ST_TRY(sotto_plan_wait(plan, err));
    ST_TRY(check_stores(plan, err));
    ST_TRY(sotto_plan_allocate(plan, err));
    sotto_status status = st_plan_flush(plan, err);
    if (status == SOTTO_OK)
        status = run_all(plan, o, err);
    if (status != SOTTO_OK)
        (void)st_plan_sync(plan, NULL); /* nothing is under way when the caller hears of it */
    return status;
}

sotto_status sotto_plan_submit(sotto_plan *plan, const sotto_run_options *options, sotto_error *err)
{
    static const sotto_run_options none = {0};
    if (!plan)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_plan_submit: plan is NULL");
    ST_TRY(start(plan, options ? options : &none, err));
    plan->in_flight = true;
    return SOTTO_OK;
}

sotto_status sotto_plan_wait(sotto_plan *plan, sotto_error *err)
{
    if (!plan)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_plan_wait: plan is NULL");
    plan->in_flight = false;
    return st_plan_sync(plan, err);
}

sotto_status sotto_plan_run(sotto_plan *plan, const sotto_run_options *options, sotto_error *err)
{
    static const sotto_run_options none = {0};
    const sotto_run_options *o = options ? options : &none;
    if (!plan)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_plan_run: plan is NULL");
    ST_TRY(start(plan, o, err));
    ST_TRY(sotto_plan_wait(plan, err));
    tell(plan, o);
    return SOTTO_OK;
}
