/* split.c: cuts the list of nodes into segments of one device each, and finds what has to be copied before a segment so that
 * it reads from its own space, and what has to be brought back after it. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "quant/quant.h"
#include "runtime/plan_impl.h"

/* Bytes of a tensor in another space than its own, as they are between two writes to it. */
typedef struct replica {
    const sotto_tensor *home;
    sotto_tensor *t;
    int space, version;
    size_t low, high; /* of home's bytes; t begins at low */
} replica;

typedef struct write_count {
    const sotto_tensor *home;
    int version;
} write_count;

typedef struct splitter {
    sotto_plan *plan;
    replica *replicas;
    int64_t n_replicas, cap_replicas;
    write_count *writes;
    int64_t n_writes, cap_writes;
    bool ended; /* the next node begins a segment */
} splitter;

static int device_of(const sotto_plan *plan, const sotto_tensor *home)
{
    const int d = st_backend_device_of(plan->backend, home->buffer);
    return d < plan->backend->n_device ? d : plan->backend->host;
}

static int space_of(const sotto_plan *plan, const sotto_tensor *home)
{
    return home->buffer ? st_backend_space_of(plan->backend, home->buffer) : -1;
}

static int space_of_node(const sotto_plan *plan, int i)
{
    const int d = plan->device[i];
    return d < plan->backend->n_device ? st_backend_space(plan->backend, d) : plan->backend->host;
}

static write_count *find_written(splitter *s, const sotto_tensor *home)
{
    for (int64_t i = 0; i < s->n_writes; i++)
        if (s->writes[i].home == home)
            return &s->writes[i];
    return NULL;
}

static int version_of(splitter *s, const sotto_tensor *home)
{
    const write_count *w = find_written(s, home);
    return w ? w->version : 0;
}

static bool note_write(splitter *s, const sotto_tensor *home)
{
    write_count *w = find_written(s, home);
    if (!w) {
        if (!st_grow(&s->writes, &s->cap_writes, s->n_writes + 1, sizeof *s->writes))
            return false;
        w = &s->writes[s->n_writes++];
        *w = (write_count){.home = home};
    }
    w->version++;
    return true;
}

static sotto_status no_memory(sotto_error *err)
{
    return st_fail_memory(err, sizeof(st_copy), "the copies of a plan");
}

static st_segment *last_segment(splitter *s)
{
    return s->plan->n_segments > 0 ? &s->plan->segments[s->plan->n_segments - 1] : NULL;
}

/* The segment that node i belongs to. */
static sotto_status enter(splitter *s, int i, sotto_error *err)
{
    sotto_plan *p = s->plan;
    st_segment *last = last_segment(s);
    if (last && !s->ended && last->device == p->device[i])
        return SOTTO_OK;
    s->ended = false;
    if (!st_grow(&p->segments, &p->cap_segments, p->n_segments + 1, sizeof *p->segments))
        return no_memory(err);
    p->segments[p->n_segments++] = (st_segment){.device = p->device[i],
                                                .exec.node = p->graph->node + i,
                                                .first_in = (int)p->n_copies,
                                                .first_out = (int)p->n_copies};
    return SOTTO_OK;
}

/* A segment that has nodes takes no weights: those of another node may be in their place, nor what must be fresh. */
static sotto_status enter_anew(splitter *s, int i, sotto_error *err)
{
    const st_segment *last = last_segment(s);
    if (last && last->exec.n_node > 0)
        s->ended = true;
    return enter(s, i, err);
}

static sotto_status add_copy(splitter *s, const st_copy *copy, bool before, sotto_error *err)
{
    sotto_plan *p = s->plan;
    st_segment *segment = last_segment(s);
    if (!st_grow(&p->copies, &p->cap_copies, p->n_copies + 1, sizeof *p->copies))
        return no_memory(err);
    p->copies[p->n_copies++] = *copy;
    if (before) {
        segment->n_in++;
        segment->first_out = (int)p->n_copies;
    } else
        segment->n_out++;
    return SOTTO_OK;
}

/* First and last byte + 1 of a tensor in its home. */
static void span_of(const sotto_tensor *t, size_t *low, size_t *high)
{
    size_t length = t->stride[0] == sotto_dtype_bytes(t->dtype) || sotto_dtype_block(t->dtype) > 1
                        ? sotto_dtype_row_bytes(t->dtype, t->dim[0])
                        : (size_t)(t->dim[0] - 1) * t->stride[0] + sotto_dtype_bytes(t->dtype);
    for (int a = 1; a < SOTTO_MAX_DIMS; a++)
        length += (size_t)(t->dim[a] > 0 ? t->dim[a] - 1 : 0) * t->stride[a];
    *low = t->view_of ? t->view_offset : 0;
    *high = *low + (sotto_tensor_count(t) > 0 ? length : 0);
}

/* What node i and those after it read of home in this space, until it is written to. */
static void span_of_readers(const splitter *s, int i, const sotto_tensor *home, int space, size_t *low, size_t *high)
{
    const sotto_graph *g = s->plan->graph;
    *low = SIZE_MAX;
    *high = 0;
    for (int n = i; n < g->n_node; n++) {
        const int written = st_written_source(g->node[n]);
        for (int k = 0; k < ST_MAX_SRC && space_of_node(s->plan, n) == space; k++) {
            sotto_tensor *t = g->node[n]->src[k];
            if (!t || st_home(t) != home)
                continue;
            size_t from, to;
            span_of(t, &from, &to);
            if (from < to) {
                *low = from < *low ? from : *low;
                *high = to > *high ? to : *high;
            }
        }
        if (written >= 0 && st_home(g->node[n]->src[written]) == home)
            break;
    }
    const size_t step = 256; /* so that what was aligned stays so */
    *low = *low < *high ? *low / step * step : 0;
}

static bool holds(const sotto_tensor *home, size_t low, size_t high)
{
    return low == 0 && high == sotto_tensor_bytes(home) && st_tensor_is_contiguous(home);
}

/* Memory for the bytes [low, high) of home in the space. */
static sotto_status add_replica(splitter *s, const sotto_tensor *home, int space, size_t low, size_t high,
                                replica **out, sotto_error *err)
{
    sotto_plan *p = s->plan;
    char name[ST_NAME_SIZE];
    snprintf(name, sizeof name, "%.30s@%.30s", home->name, p->backend->device[space].id);
    const int64_t bytes[SOTTO_MAX_DIMS] = {(int64_t)(high - low), 1, 1, 1};
    const bool whole = holds(home, low, high);
    sotto_tensor *t = st_plan_new_tensor(p, whole ? home->dtype : SOTTO_I8, whole ? home->dim : bytes, name);
    if (!t || !st_grow(&s->replicas, &s->cap_replicas, s->n_replicas + 1, sizeof *s->replicas))
        return no_memory(err);
    t->flags = ST_TENSOR_SHARED;
    ST_TRY(st_plan_settle(p, t, space, err));
    *out = &s->replicas[s->n_replicas++];
    **out = (replica){.home = home, .t = t, .space = space, .version = version_of(s, home), .low = low, .high = high};
    return SOTTO_OK;
}

/* The source as a view of the replica. Sources that are views belong to one use; others are exchanged. */
static sotto_tensor *redirect(sotto_plan *plan, sotto_tensor *t, const replica *r)
{
    size_t low, high;
    span_of(t, &low, &high);
    if (!t->view_of && r->low == 0 && r->t->dtype == t->dtype && st_tensor_is_contiguous(t) &&
        sotto_tensor_bytes(r->t) == sotto_tensor_bytes(t) && r->t->dim[0] == t->dim[0])
        return r->t;
    sotto_tensor *v = st_plan_new_tensor(plan, t->dtype, t->dim, t->name);
    if (!v)
        return NULL;
    memcpy(v->stride, t->stride, sizeof v->stride);
    v->src[0] = r->t;
    v->view_of = r->t;
    v->view_offset = low < high ? low - r->low : 0;
    return v;
}

static replica *find_replica(splitter *s, const sotto_tensor *home, int space, size_t low, size_t high)
{
    const int version = version_of(s, home);
    for (int64_t i = s->n_replicas - 1; i >= 0; i--) {
        replica *r = &s->replicas[i];
        if (r->home == home && r->space == space && r->version == version && r->low <= low && r->high >= high)
            return r;
    }
    return NULL;
}

/* An input that nobody writes to is set in each space that reads it, so nothing is copied in a run. */
static sotto_status add_input_copy(splitter *s, const sotto_tensor *home, int space, int64_t of, replica **out,
                                   sotto_error *err)
{
    sotto_plan *p = s->plan;
    ST_TRY(add_replica(s, home, space, 0, sotto_tensor_bytes(home), out, err));
    (*out)->t->flags = ST_TENSOR_INPUT;
    if (!st_grow(&p->inputs, &p->cap_inputs, p->n_inputs + 1, sizeof *p->inputs))
        return no_memory(err);
    p->inputs[p->n_inputs++] = (st_input){.t = (*out)->t, .of = (int)of, .space = space, .staging = SIZE_MAX};
    return SOTTO_OK;
}

/* Number of the input that this is and that nobody writes to; -1: none. */
static int64_t find_input(const sotto_plan *p, const sotto_tensor *home)
{
    for (int64_t i = 0; (home->flags & ST_TENSOR_INPUT) && i < p->n_inputs; i++)
        if (p->inputs[i].t == home)
            return p->inputs[i].written ? -1 : i;
    return -1;
}

static sotto_status bring(splitter *s, int i, int k, int space, sotto_error *err)
{
    sotto_plan *p = s->plan;
    sotto_tensor *t = p->graph->node[i]->src[k], *home = st_home(t);
    size_t low, high;
    span_of(t, &low, &high);
    replica *r = find_replica(s, home, space, low, high);
    const int64_t input = r ? -1 : find_input(p, home);
    if (input >= 0)
        ST_TRY(add_input_copy(s, home, space, input, &r, err));
    if (!r) {
        span_of_readers(s, i, home, space, &low, &high);
        ST_TRY(add_replica(s, home, space, low, high, &r, err));
        const st_copy copy = {.from = home,
                              .to = r->t,
                              .from_offset = low,
                              .bytes = high - low,
                              .from_device = device_of(p, home),
                              .to_device = space,
                              .bounce = SIZE_MAX};
        if (!(home->flags & ST_TENSOR_STORED))
            home->flags |= ST_TENSOR_SHARED;
        ST_TRY(add_copy(s, &copy, true, err));
    }
    sotto_tensor *v = redirect(p, t, r);
    if (!v)
        return no_memory(err);
    p->graph->node[i]->src[k] = v;
    return SOTTO_OK;
}

/* They come as f32. */
sotto_dtype st_visiting_type(const sotto_tensor *node, sotto_dtype dtype)
{
    if (dtype == SOTTO_I8 || st_repacks_exactly(dtype))
        return dtype;
    return node->params.compute == SOTTO_COMPUTE_F16 ? SOTTO_F16 : SOTTO_F32;
}

/* Weights that only their own backend reads come along for this one segment. */
static sotto_status bring_weights(splitter *s, int i, int k, sotto_error *err)
{
    sotto_plan *p = s->plan;
    sotto_tensor *w = p->graph->node[i]->src[k];
    const int d = p->device[i];
    const st_runner *r = &p->backend->device[d];
    if (st_backend_device_of(p->backend, w->buffer) < 0)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%s: %s lives on a device that is not in use here",
                       p->graph->node[i]->name, w->name);
    sotto_tensor *t = st_plan_new_tensor(p, st_visiting_type(p->graph->node[i], w->dtype), w->dim, w->name);
    if (!t)
        return no_memory(err);
    t->flags = ST_TENSOR_STORED | ST_TENSOR_MATRIX;
    t->buffer = &p->visitors[d].buffer;
    t->offset = 0;
    const size_t bytes =
        r->impl->stored_bytes ? r->impl->stored_bytes(r->state, ST_BUFFER_WEIGHTS, t) : sotto_tensor_bytes(t);
    const size_t n = (size_t)sotto_tensor_count(t);
    if (bytes > r->impl->buffer_traits(r->state, ST_BUFFER_WEIGHTS).max_size)
        return st_fail(err, SOTTO_E_MEMORY, "%s: %zu bytes are more than a buffer of %s holds", w->name, bytes, r->id);
    p->visitors[d].buffer.impl = r->impl;
    p->visitors[d].buffer.device = r->index;
    p->visitors[d].buffer.usage = ST_BUFFER_WEIGHTS;
    p->visitors[d].size = bytes > p->visitors[d].size ? bytes : p->visitors[d].size;
    p->n_rows = n > p->n_rows ? n : p->n_rows;
    ST_TRY(enter_anew(s, i, err));
    const st_copy copy = {.kind = ST_COPY_WEIGHTS,
                          .from = w,
                          .to = t,
                          .bytes = sotto_tensor_bytes(w),
                          .from_device = st_backend_device_of(p->backend, w->buffer),
                          .to_device = d,
                          .bounce = SIZE_MAX};
    ST_TRY(add_copy(s, &copy, true, err));
    p->graph->node[i]->src[k] = t;
    return SOTTO_OK;
}

/* The node cannot run where the memory is that it writes into: the bytes come, are written to, and go back. */
static sotto_status write_away(splitter *s, int i, int k, int space, sotto_error *err)
{
    sotto_plan *p = s->plan;
    sotto_tensor *node = p->graph->node[i], *target = node->src[k], *home = st_home(target);
    size_t low, high;
    span_of(target, &low, &high);
    low = low / 256 * 256;
    replica *r;
    ST_TRY(enter_anew(s, i, err));
    ST_TRY(add_replica(s, home, space, low, high, &r, err));
    r->version = -1; /* nobody else's */
    const st_copy in = {.from = home,
                        .to = r->t,
                        .from_offset = low,
                        .bytes = high - low,
                        .from_device = device_of(p, home),
                        .to_device = space,
                        .bounce = SIZE_MAX};
    const st_copy out = {.from = r->t,
                         .to = home,
                         .to_offset = low,
                         .bytes = high - low,
                         .from_device = space,
                         .to_device = device_of(p, home),
                         .bounce = SIZE_MAX};
    if (!(home->flags & ST_TENSOR_STORED))
        home->flags |= ST_TENSOR_SHARED;
    ST_TRY(add_copy(s, &in, true, err));
    ST_TRY(add_copy(s, &out, false, err));
    sotto_tensor *v = redirect(p, target, r);
    if (!v)
        return no_memory(err);
    node->src[k] = v;
    node->view_offset = node->view_offset - low;
    node->view_of = r->t;
    node->flags &= ~(uint32_t)ST_TENSOR_STORED;
    s->ended = true;
    return note_write(s, home) ? SOTTO_OK : no_memory(err);
}

static sotto_status split_node(splitter *s, int i, sotto_error *err)
{
    sotto_plan *p = s->plan;
    sotto_tensor *node = p->graph->node[i];
    const int space = space_of_node(p, i), target = st_written_source(node);
    const st_runner *r = &p->backend->device[p->device[i]];
    bool away = false;
    ST_TRY(enter(s, i, err));
    for (int k = 0; k < ST_MAX_SRC; k++) {
        sotto_tensor *t = node->src[k];
        if (!t)
            continue;
        sotto_tensor *home = st_home(t);
        if (!home->buffer) /* an input that nobody has read yet */
            ST_TRY(st_plan_settle(p, home, space, err));
        const int from = space_of(p, home);
        if (home->flags & ST_TENSOR_MATRIX) {
            if (from != space || home->buffer->impl != r->impl)
                ST_TRY(bring_weights(s, i, k, err));
            continue;
        }
        if (from < 0)
            return st_fail(err, SOTTO_E_UNSUPPORTED, "%s: %s lives on a device that is not in use here", node->name,
                           t->name);
        if (from == space)
            continue;
        if (k == target) {
            away = true;
            continue;
        }
        ST_TRY(bring(s, i, k, space, err));
    }
    if (away)
        ST_TRY(write_away(s, i, target, space, err));
    else if (target >= 0 && !note_write(s, st_home(node->src[target])))
        return no_memory(err);
    last_segment(s)->exec.n_node++;
    return SOTTO_OK;
}

static bool is_written(const sotto_graph *g, const sotto_tensor *home)
{
    for (int i = 0; i < g->n_node; i++)
        if (g->node[i]->view_of == home)
            return true;
    return false;
}

static sotto_status split_all(splitter *s, sotto_error *err)
{
    sotto_plan *p = s->plan;
    sotto_graph *g = p->graph;
    for (int i = 0; i < g->n_leaf; i++) {
        if (g->leaf[i]->flags & ST_TENSOR_STORED)
            continue;
        if (!st_grow(&p->inputs, &p->cap_inputs, p->n_inputs + 1, sizeof *p->inputs))
            return no_memory(err);
        p->inputs[p->n_inputs] = (st_input){
            .t = g->leaf[i], .of = (int)p->n_inputs, .written = is_written(g, g->leaf[i]), .staging = SIZE_MAX};
        p->n_inputs++;
    }
    for (int i = 0; i < g->n_node; i++)
        ST_TRY(split_node(s, i, err));
    for (int64_t i = 0; i < p->n_inputs; i++) {
        st_input *in = &p->inputs[i];
        if (!in->t->buffer) /* nobody reads it */
            ST_TRY(st_plan_settle(p, in->t, p->backend->host >= 0 ? p->backend->host : 0, err));
        in->space = space_of(p, in->t);
    }
    return SOTTO_OK;
}

/* A segment's nodes follow one another in the graph, and are numbered by it. */
static bool is_of(const st_segment *segment, const sotto_tensor *home)
{
    const int first = segment->exec.node[0]->id;
    return home->id >= first && home->id - first < segment->exec.n_node;
}

/* A device prepares its segments one by one, so what another one has made must be there as the graph says. */
static void share_between_segments(sotto_plan *plan)
{
    for (int64_t i = 0; i < plan->n_segments; i++) {
        const st_segment *segment = &plan->segments[i];
        for (int n = 0; n < segment->exec.n_node; n++)
            for (int k = 0; k < ST_MAX_SRC; k++) {
                sotto_tensor *source = segment->exec.node[n]->src[k];
                sotto_tensor *home = source ? st_home(source) : NULL;
                if (home && !(home->flags & ST_TENSOR_STORED) && !is_of(segment, home))
                    home->flags |= ST_TENSOR_SHARED;
            }
    }
}

sotto_status st_plan_split(sotto_plan *plan, sotto_error *err)
{
    splitter s = {.plan = plan};
    const sotto_status status = split_all(&s, err);
    if (status == SOTTO_OK)
        share_between_segments(plan);
    st_free(s.replicas);
    st_free(s.writes);
    return status;
}
