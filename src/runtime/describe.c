/* describe.c: what the passes have decided, as text. */
#include <stdio.h>

#include "base/status.h"
#include "runtime/plan_impl.h"
#include "runtime/sink.h"

static const char *const reasons[ST_REASONS] = {
    [ST_REASON_NONE] = "open",           [ST_REASON_WRITES] = "writes there",
    [ST_REASON_WEIGHTS] = "its weights", [ST_REASON_STORED] = "what it reads",
    [ST_REASON_OFFLOAD] = "many rows",   [ST_REASON_NEXT] = "its neighbours",
    [ST_REASON_MAIN] = "main device",    [ST_REASON_FALLBACK] = "no other has it"};

static void put_nodes(const st_sink *s, const sotto_plan *p)
{
    char shape[96];
    st_put(s, "assigned:\n");
    for (int i = 0; i < p->graph->n_node; i++) {
        const sotto_tensor *t = p->graph->node[i];
        st_put(s, "  %4d %-16s %-20s %s %-12s %-16s %s\n", i, st_op_name(t->op),
               st_tensor_shape_text(t, shape, sizeof shape), sotto_dtype_name(t->dtype),
               p->backend->device[p->device[i]].id, reasons[p->reason[i]], t->name);
    }
}

static void put_copies(const st_sink *s, const sotto_plan *p, int first, int n, const char *when)
{
    for (int i = first; i < first + n; i++) {
        const st_copy *c = &p->copies[i];
        st_put(s, "       %s %s%s: %zu bytes, %s to %s\n", when, c->kind == ST_COPY_WEIGHTS ? "weights " : "",
               c->from->name, c->bytes, p->backend->device[c->from_device].id, p->backend->device[c->to_device].id);
    }
}

static void put_splits(const st_sink *s, const sotto_plan *p)
{
    int at = 0;
    st_put(s, "splits:\n");
    for (int64_t i = 0; i < p->n_segments; i++) {
        const st_segment *g = &p->segments[i];
        st_put(s, "  %4lld %-12s nodes %d to %d\n", (long long)i, p->backend->device[g->device].id, at,
               at + g->exec.n_node - 1);
        put_copies(s, p, g->first_in, g->n_in, "before:");
        put_copies(s, p, g->first_out, g->n_out, "after:");
        at += g->exec.n_node;
    }
    for (int64_t i = 0; i < p->n_inputs; i++)
        st_put(s, "  input %s: %zu bytes on %s%s\n", p->inputs[i].t->name, sotto_tensor_bytes(p->inputs[i].t),
               p->backend->device[p->inputs[i].space].id, p->inputs[i].staging != SIZE_MAX ? ", sent with the run" : "");
}

static void put_memory(const st_sink *s, const sotto_plan *p)
{
    st_put(s, "memory:\n");
    for (int d = 0; d < p->backend->n_device; d++)
        st_put(s, "  %-12s %zu bytes of tensors, %zu of scratch, %zu of weights on a visit\n", p->backend->device[d].id,
               p->space_bytes[d], p->scratch_bytes[d], p->visitors[d].size);
    st_put(s, "  %-12s %zu bytes of inputs and %zu of copies on their way\n", "host", 2 * p->staging_bytes,
           p->bounce_bytes);
}

sotto_status sotto_plan_describe(const sotto_plan *plan, void (*write)(void *user, const char *text, size_t n),
                                 void *user, sotto_error *err)
{
    if (!plan || !write)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_plan_describe: plan or write is NULL");
    const st_sink s = {write, user};
    st_put(&s, "plan of graph \"%s\": %d nodes in %lld splits on %s\n", plan->graph->name, plan->graph->n_node,
           (long long)plan->n_segments, plan->backend->description);
    put_nodes(&s, plan);
    put_splits(&s, plan);
    put_memory(&s, plan);
    return SOTTO_OK;
}
