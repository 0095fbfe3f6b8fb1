/* layout.c: from the segments of a plan to the planner's items, space by space, and back. */
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "runtime/plan_impl.h"
#include "runtime/planner.h"

/* Source that the result may overwrite, plus one; the op then reads element i of that source before it writes element i
 * of the result, and nothing else of it. */
static const uint8_t in_place[ST_OP_COUNT] = {
    [ST_OP_LINEAR] = 4, [ST_OP_CONV_1D] = 4, [ST_OP_ADD] = 1,  [ST_OP_MUL] = 1,     [ST_OP_SCALE] = 1,
    [ST_OP_GELU] = 1,   [ST_OP_SILU] = 1,    [ST_OP_RELU] = 1, [ST_OP_SIGMOID] = 1, [ST_OP_TANH] = 1,
    [ST_OP_LOG10] = 1,  [ST_OP_SQRT] = 1,    [ST_OP_GLU] = 1,
};

int st_op_in_place_source(const sotto_tensor *node)
{
    const int s = in_place[node->op] - 1;
    if (s < 0 || !node->src[s])
        return -1;
    sotto_tensor *parent = node->src[s];
    const sotto_tensor *home = st_home(parent);
    if ((home->flags & (ST_TENSOR_STORED | ST_TENSOR_INPUT | ST_TENSOR_OUTPUT)) || parent->dtype != node->dtype ||
        !st_tensor_is_contiguous(parent) || sotto_tensor_bytes(home) != sotto_tensor_bytes(node))
        return -1;
    for (int a = 0; a < SOTTO_MAX_DIMS; a++)
        if (parent->dim[a] != node->dim[a])
            return -1;
    for (int i = 0; i < ST_MAX_SRC; i++)
        if (i != s && node->src[i] && st_home(node->src[i]) == home)
            return -1;
    return s;
}

typedef struct layout {
    const sotto_plan *plan;
    int space;
    st_plan_item *items;
    sotto_tensor **owner; /* of each item */
    int n;
    size_t alignment;
} layout;

static bool is_here(const layout *l, const sotto_tensor *home)
{
    const sotto_plan *p = l->plan;
    return !(home->flags & ST_TENSOR_STORED) && st_backend_space_of(p->backend, home->buffer) == l->space;
}

/* The tensor is there in this step. Until offsets are known, a tensor's offset holds the number of its item. */
static st_plan_item *touch(layout *l, sotto_tensor *home, int step)
{
    if (!is_here(l, home))
        return NULL;
    if (home->offset == SIZE_MAX) {
        home->offset = (size_t)l->n;
        l->owner[l->n] = home;
        l->items[l->n++] = (st_plan_item){.size = sotto_tensor_bytes(home),
                                          .alignment = l->alignment,
                                          .first = step,
                                          .last = step,
                                          .reuse = -1,
                                          .pinned = (home->flags & (ST_TENSOR_INPUT | ST_TENSOR_OUTPUT)) != 0};
    }
    st_plan_item *item = &l->items[home->offset];
    item->last = step > item->last ? step : item->last;
    return item;
}

static void touch_node(layout *l, sotto_tensor *node, int step, bool by_group)
{
    for (int k = 0; k < ST_MAX_SRC; k++)
        if (node->src[k])
            touch(l, st_home(node->src[k]), step);
    sotto_tensor *home = st_home(node);
    const bool fresh = home == node && node->offset == SIZE_MAX;
    st_plan_item *item = touch(l, home, step);
    const int s = !item || !fresh || by_group ? -1 : st_op_in_place_source(node);
    if (s >= 0 && st_home(node->src[s])->offset != SIZE_MAX && is_here(l, st_home(node->src[s])))
        item->reuse = (int)st_home(node->src[s])->offset;
}

/* Nodes that may overlap in time have one step: those of a group, in one segment. */
static void collect(layout *l)
{
    const sotto_plan *p = l->plan;
    const bool by_group = p->graph->group > 0;
    int step = 0;
    for (int64_t i = 0; i < p->n_inputs; i++)
        touch(l, p->inputs[i].t, 0);
    for (int64_t i = 0; i < p->n_segments; i++) {
        const st_segment *s = &p->segments[i];
        step += i > 0;
        for (int k = 0; k < s->n_in; k++) {
            touch(l, p->copies[s->first_in + k].from, step);
            touch(l, p->copies[s->first_in + k].to, step);
        }
        for (int k = 0; k < s->exec.n_node; k++) {
            step += k > 0 && (!by_group || s->exec.node[k]->group != s->exec.node[k - 1]->group);
            touch_node(l, s->exec.node[k], step, by_group);
        }
        for (int k = 0; k < s->n_out; k++) {
            touch(l, p->copies[s->first_out + k].from, step);
            touch(l, p->copies[s->first_out + k].to, step);
        }
    }
}

static sotto_status name_the_item(const layout *l, size_t chunk, sotto_status status, sotto_error *err)
{
    for (int i = 0; i < l->n; i++)
        if (l->items[i].size > chunk)
            return st_fail(err, SOTTO_E_MEMORY, "%s: %zu bytes, buffers of %s hold at most %zu", l->owner[i]->name,
                           l->items[i].size, l->plan->backend->device[l->space].id, chunk);
    return status;
}

static sotto_status lay_out(sotto_plan *plan, layout *l, sotto_error *err)
{
    const size_t chunk = plan->arena->space[l->space].chunk;
    l->n = 0;
    collect(l);
    plan->space_used[l->space] = l->n > 0;
    sotto_status status = st_plan_place_chunked(l->items, l->n, chunk, &plan->space_bytes[l->space], err);
    if (status != SOTTO_OK)
        return name_the_item(l, chunk, status, err);
    for (int i = 0; i < l->n && status == SOTTO_OK; i++) {
        l->owner[i]->offset = l->items[i].offset % chunk;
        l->owner[i]->buffer = st_arena_part(plan->arena, l->space, (int64_t)(l->items[i].offset / chunk));
        if (!l->owner[i]->buffer)
            status = st_fail_memory(err, sizeof(st_buffer), "a part of an arena");
    }
    return status;
}

/* Inputs that the host cannot write to directly have a place in its memory, at the distances they have there. */
static void stage_inputs(sotto_plan *plan, int space)
{
    const size_t base = plan->staging_bytes;
    const st_buffer *first = st_arena_part(plan->arena, space, 0);
    for (int64_t i = 0; i < plan->n_inputs; i++) {
        st_input *in = &plan->inputs[i];
        if (in->space != space)
            continue;
        in->staging = in->t->buffer == first ? base + in->t->offset : plan->staging_bytes;
        const size_t end = in->staging + sotto_tensor_bytes(in->t);
        plan->staging_bytes = end > plan->staging_bytes ? (end + 255) / 256 * 256 : plan->staging_bytes;
    }
}

static void add_bounces(sotto_plan *plan)
{
    for (int64_t i = 0; i < plan->n_copies; i++) {
        st_copy *c = &plan->copies[i];
        const int host = plan->backend->host;
        if (c->kind != ST_COPY_BYTES || st_backend_space_of(plan->backend, c->to->buffer) == host)
            continue; /* straight to where it is read */
        c->bounce = plan->bounce_bytes;
        plan->bounce_bytes += (c->bytes + 255) / 256 * 256;
    }
}

sotto_status st_plan_layout(sotto_plan *plan, sotto_error *err)
{
    const sotto_backend *b = plan->backend;
    const size_t max = (size_t)plan->graph->n_node * 2 + (size_t)plan->n_inputs + 2 * (size_t)plan->n_copies + 1;
    layout l = {.plan = plan};
    l.items = st_calloc(max, sizeof *l.items);
    l.owner = st_calloc(max, sizeof *l.owner);
    sotto_status status = SOTTO_OK;
    if (!l.items || !l.owner)
        status = st_fail_memory(err, max * sizeof *l.items, "the layout of a plan");
    for (int i = 0; i < b->n_device && status == SOTTO_OK; i++) {
        if (st_backend_space(b, i) != i)
            continue;
        l.space = i;
        l.alignment = b->device[i].impl->buffer_traits(b->device[i].state, ST_BUFFER_COMPUTE).alignment;
        status = lay_out(plan, &l, err);
    }
    for (int i = 0; i < b->n_device && status == SOTTO_OK; i++)
        if (i != b->host && st_backend_space(b, i) == i)
            stage_inputs(plan, i);
    if (status == SOTTO_OK)
        add_bounces(plan);
    st_free(l.items);
    st_free(l.owner);
    return status;
}
