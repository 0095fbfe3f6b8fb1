/* layout.c: from a graph to the planner's items and back. */
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "runtime/plan_impl.h"
#include "runtime/planner.h"

/* Source that the result may overwrite, plus one; the op then reads element i of that source before it writes element i
 * of the result, and nothing else of it. */
static const uint8_t in_place[ST_OP_COUNT] = {
    [ST_OP_LINEAR] = 4, [ST_OP_CONV_1D] = 4, [ST_OP_ADD] = 1,     [ST_OP_MUL] = 1,  [ST_OP_SCALE] = 1, [ST_OP_GELU] = 1,
    [ST_OP_SILU] = 1,   [ST_OP_RELU] = 1,    [ST_OP_SIGMOID] = 1, [ST_OP_TANH] = 1, [ST_OP_LOG10] = 1, [ST_OP_SQRT] = 1,
};

static sotto_tensor *home_of(sotto_tensor *t)
{
    return t->view_of ? t->view_of : t;
}

typedef struct layout {
    const sotto_graph *g;
    st_plan_item *items;
    sotto_tensor **owner; /* of each item */
    int n;
    bool by_group;
    size_t alignment;
} layout;

static int step_of(const layout *l, const sotto_tensor *node)
{
    return l->by_group ? node->group : node->id;
}

/* Until offsets are known, a tensor's offset holds the number of its item. */
static void add_item(layout *l, sotto_tensor *t, int step, bool pinned)
{
    t->offset = (size_t)l->n;
    l->owner[l->n] = t;
    l->items[l->n++] = (st_plan_item){.size = sotto_tensor_bytes(t),
                                      .alignment = l->alignment,
                                      .first = step,
                                      .last = step,
                                      .reuse = -1,
                                      .pinned = pinned};
}

int st_op_in_place_source(const sotto_tensor *node)
{
    const int s = in_place[node->op] - 1;
    if (s < 0 || !node->src[s])
        return -1;
    sotto_tensor *parent = node->src[s];
    const sotto_tensor *home = home_of(parent);
    if ((home->flags & (ST_TENSOR_STORED | ST_TENSOR_INPUT | ST_TENSOR_OUTPUT)) || parent->dtype != node->dtype ||
        !st_tensor_is_contiguous(parent) || sotto_tensor_bytes(home) != sotto_tensor_bytes(node))
        return -1;
    for (int a = 0; a < SOTTO_MAX_DIMS; a++)
        if (parent->dim[a] != node->dim[a])
            return -1;
    for (int i = 0; i < ST_MAX_SRC; i++)
        if (i != s && node->src[i] && home_of(node->src[i]) == home)
            return -1;
    return s;
}

static void collect(layout *l)
{
    const sotto_graph *g = l->g;
    for (int i = 0; i < g->n_leaf; i++)
        if (!(g->leaf[i]->flags & ST_TENSOR_STORED))
            add_item(l, g->leaf[i], 0, true);
    for (int i = 0; i < g->n_node; i++) {
        sotto_tensor *node = g->node[i];
        const int step = step_of(l, node);
        for (int k = 0; k < ST_MAX_SRC; k++) {
            if (!node->src[k] || (home_of(node->src[k])->flags & ST_TENSOR_STORED))
                continue;
            st_plan_item *item = &l->items[home_of(node->src[k])->offset];
            item->last = step > item->last ? step : item->last;
        }
        if (node->view_of)
            continue;
        add_item(l, node, step, (node->flags & ST_TENSOR_OUTPUT) != 0);
        const int s = l->by_group ? -1 : st_op_in_place_source(node);
        if (s >= 0)
            l->items[l->n - 1].reuse = (int)home_of(node->src[s])->offset;
    }
}

sotto_status st_plan_layout(sotto_plan *plan, sotto_error *err)
{
    const st_runner r = plan->backend->main;
    const sotto_graph *g = plan->graph;
    const size_t max = (size_t)g->n_leaf + (size_t)g->n_node;
    layout l = {.g = g, .by_group = g->group > 0};
    l.alignment = r.impl->buffer_traits(r.state, ST_BUFFER_COMPUTE).alignment;
    l.items = st_calloc(max + 1, sizeof *l.items);
    l.owner = st_calloc(max + 1, sizeof *l.owner);
    sotto_status status = SOTTO_OK;
    if (!l.items || !l.owner)
        status = st_fail_memory(err, max * sizeof *l.items, "the layout of a plan");
    else {
        collect(&l);
        status = st_plan_place(l.items, l.n, &plan->compute_bytes, err);
        for (int i = 0; i < l.n; i++) {
            l.owner[i]->offset = l.items[i].offset;
            l.owner[i]->buffer = &plan->arena->buffer;
        }
    }
    st_free(l.items);
    st_free(l.owner);
    return status;
}
