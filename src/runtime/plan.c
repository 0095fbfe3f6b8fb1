/* plan.c: a graph placed in memory, and its runs. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "runtime/plan_impl.h"

static sotto_status prepare(sotto_plan *plan, sotto_error *err)
{
    const size_t n = (size_t)plan->graph->n_node;
    plan->seconds = st_calloc(n + 1, sizeof *plan->seconds);
    plan->trace = st_calloc(n + 1, sizeof *plan->trace);
    if (!plan->seconds || !plan->trace)
        return st_fail_memory(err, n * sizeof *plan->trace, "the trace of a plan");
    size_t at = 0;
    for (int i = 0; i < plan->n_segments; i++) {
        st_segment *s = &plan->segments[i];
        size_t scratch = 0;
        ST_TRY(s->runner.impl->prepare(s->runner.state, &s->exec, &s->prepared, &scratch, err));
        s->is_prepared = true;
        plan->scratch_bytes += scratch;
        for (int k = 0; k < s->exec.n_node; k++) {
            const sotto_tensor *t = s->exec.node[k];
            sotto_trace_node *row = &plan->trace[at++];
            *row = (sotto_trace_node){
                .op = st_op_name(t->op), .name = t->name, .backend = s->runner.impl->name, .dtype = t->dtype};
            memcpy(row->dim, t->dim, sizeof row->dim);
        }
    }
    return SOTTO_OK;
}

sotto_status sotto_plan_create_take(sotto_backend *backend, sotto_arena *arena, sotto_graph *graph, sotto_plan **out,
                                    sotto_error *err)
{
    if (out)
        *out = NULL;
    if (!backend || !arena || !graph || !out || arena->backend != backend || !graph->finished) {
        sotto_graph_free(graph);
        return st_fail(err, SOTTO_E_ARGUMENT, "a plan needs a backend, an arena of it, a finished graph and out");
    }
    sotto_plan *plan = st_calloc(1, sizeof *plan);
    if (!plan) {
        sotto_graph_free(graph);
        return st_fail_memory(err, sizeof *plan, "a plan");
    }
    plan->backend = backend;
    plan->arena = arena;
    plan->graph = graph;
    sotto_status status =
        graph->error.code != SOTTO_OK ? st_fail(err, graph->error.code, "%s", graph->error.text) : SOTTO_OK;
    if (status == SOTTO_OK)
        status = st_plan_straighten(plan, err);
    if (status == SOTTO_OK)
        status = st_plan_layout(plan, err);
    if (status == SOTTO_OK)
        status = st_plan_split(plan, err);
    if (status == SOTTO_OK)
        status = prepare(plan, err);
    if (status != SOTTO_OK) {
        sotto_plan_free(plan);
        return status;
    }
    *out = plan;
    return SOTTO_OK;
}

void sotto_plan_free(sotto_plan *plan)
{
    if (!plan)
        return;
    for (int i = 0; i < plan->n_segments; i++)
        if (plan->segments[i].is_prepared)
            plan->segments[i].runner.impl->release(plan->segments[i].runner.state, plan->segments[i].prepared);
    sotto_graph_free(plan->graph);
    st_free(plan->segments);
    st_free(plan->seconds);
    st_free(plan->trace);
    st_free(plan);
}

uint64_t sotto_plan_bytes(const sotto_plan *plan)
{
    return plan ? (uint64_t)plan->compute_bytes + plan->scratch_bytes : 0;
}

sotto_status sotto_plan_allocate(sotto_plan *plan, sotto_error *err)
{
    if (!plan)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_plan_allocate: plan is NULL");
    return st_arena_reserve(plan->arena, plan->compute_bytes, err);
}

/* Where a contiguous tensor of the plan's graph lies in its buffer. */
static sotto_status locate(const sotto_plan *plan, const sotto_tensor *t, size_t offset, size_t bytes, size_t *at,
                           sotto_error *err)
{
    const sotto_tensor *home = t && t->view_of ? t->view_of : t;
    const bool stored = home && (home->flags & ST_TENSOR_STORED);
    if (!plan || !t || (!stored && home->buffer != &plan->arena->buffer) || (stored && !home->buffer->impl) ||
        (home->flags & ST_TENSOR_MATRIX) || !st_tensor_is_contiguous(t))
        return st_fail(err, SOTTO_E_ARGUMENT, "%s: not a contiguous tensor of this plan", t ? t->name : "NULL");
    if (!(home->flags & (ST_TENSOR_STORED | ST_TENSOR_INPUT | ST_TENSOR_OUTPUT)))
        return st_fail(err, SOTTO_E_ARGUMENT, "%s: neither an input nor an output: its memory is used again", t->name);
    const size_t size = sotto_tensor_bytes(t);
    if (offset > size || bytes > size - offset)
        return st_fail(err, SOTTO_E_ARGUMENT, "%s: bytes %zu to %zu of %zu", t->name, offset, offset + bytes, size);
    *at = home->offset + (t->view_of ? t->view_offset : 0) + offset;
    return SOTTO_OK;
}

sotto_status sotto_plan_set(sotto_plan *plan, sotto_tensor *t, size_t offset, const void *data, size_t bytes,
                            sotto_error *err)
{
    size_t at;
    ST_TRY(locate(plan, t, offset, bytes, &at, err));
    ST_TRY(sotto_plan_allocate(plan, err));
    sotto_tensor *home = t->view_of ? t->view_of : t;
    const st_runner r = plan->backend->main;
    return r.impl->set(r.state, home->buffer, at, data, bytes, err);
}

sotto_status sotto_plan_get(sotto_plan *plan, const sotto_tensor *t, size_t offset, void *out, size_t bytes,
                            sotto_error *err)
{
    size_t at;
    ST_TRY(locate(plan, t, offset, bytes, &at, err));
    ST_TRY(sotto_plan_allocate(plan, err));
    const sotto_tensor *home = t->view_of ? t->view_of : t;
    const st_runner r = plan->backend->main;
    return r.impl->get(r.state, home->buffer, at, out, bytes, err);
}

sotto_status sotto_plan_run(sotto_plan *plan, const sotto_run_options *options, sotto_error *err)
{
    static const sotto_run_options none = {0};
    const sotto_run_options *o = options ? options : &none;
    if (!plan)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_plan_run: plan is NULL");
    for (int i = 0; i < plan->graph->n_leaf; i++) {
        const sotto_tensor *leaf = plan->graph->leaf[i];
        if ((leaf->flags & ST_TENSOR_STORED) && !leaf->buffer->impl)
            return st_fail(err, SOTTO_E_ARGUMENT, "%s: its store has not been allocated", leaf->name);
    }
    ST_TRY(sotto_plan_allocate(plan, err));
    size_t at = 0;
    for (int i = 0; i < plan->n_segments; i++) {
        st_segment *s = &plan->segments[i];
        const st_exec_hooks hooks = {
            .abort = o->abort, .abort_user = o->abort_user, .node_seconds = o->trace ? plan->seconds + at : NULL};
        if (o->abort && o->abort(o->abort_user))
            return st_fail(err, SOTTO_E_ABORTED, "stopped by the caller");
        ST_TRY(s->runner.impl->run(s->runner.state, &s->exec, s->prepared, &hooks, err));
        if (s->runner.impl->sync)
            ST_TRY(s->runner.impl->sync(s->runner.state, err));
        at += (size_t)s->exec.n_node;
    }
    for (size_t i = 0; o->trace && i < at; i++) {
        plan->trace[i].seconds = plan->seconds[i];
        o->trace(o->trace_user, &plan->trace[i]);
    }
    return SOTTO_OK;
}
