/* clone.c: the plan's own copy of a graph. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/status.h"
#include "runtime/plan_impl.h"

static size_t slot_of(const st_map *map, const sotto_tensor *t)
{
    size_t at = (size_t)(((uintptr_t)t >> 4) * (uintptr_t)0x9E3779B97F4A7C15u >> 20) & (map->n_slot - 1);
    while (map->key[at] && map->key[at] != t)
        at = (at + 1) & (map->n_slot - 1);
    return at;
}

sotto_tensor *st_map_find(const st_map *map, const sotto_tensor *t)
{
    return map->n_slot > 0 ? map->value[slot_of(map, t)] : NULL;
}

static void put(st_map *map, const sotto_tensor *key, sotto_tensor *value)
{
    const size_t at = slot_of(map, key);
    map->key[at] = key;
    map->value[at] = value;
}

sotto_tensor *st_plan_new_tensor(sotto_plan *plan, sotto_dtype dtype, const int64_t *dim, const char *name)
{
    sotto_tensor *t = st_arena_alloc(plan->graph->arena, sizeof *t);
    if (!t || !st_tensor_init(t, dtype, SOTTO_MAX_DIMS, dim))
        return NULL;
    t->offset = SIZE_MAX;
    snprintf(t->name, sizeof t->name, "%s", name);
    return t;
}

static sotto_tensor *copy_tensor(sotto_plan *plan, const sotto_tensor *t)
{
    sotto_tensor *copy = st_arena_alloc(plan->graph->arena, sizeof *copy);
    if (copy) {
        *copy = *t;
        copy->buffer = NULL;
        copy->offset = SIZE_MAX;
    }
    return copy;
}

/* The plan's tensor for a source: known when it is a node or a leaf; else a view, which is copied now. */
static sotto_tensor *translate(sotto_plan *plan, const sotto_tensor *t)
{
    if ((t->flags & ST_TENSOR_STORED) && !t->view_of && t->id < 0)
        return (sotto_tensor *)(uintptr_t)t; /* a stored tensor itself: shared, and never written to by passes */
    sotto_tensor *known = st_map_find(&plan->map, t);
    if (known || !t->view_of)
        return known;
    sotto_tensor *view = copy_tensor(plan, t);
    if (!view)
        return NULL;
    const sotto_tensor *from = t; /* the node or leaf that a chain of views begins with */
    while (from->op == ST_OP_NONE && from->src[0] && !st_map_find(&plan->map, from))
        from = from->src[0];
    view->view_of = translate(plan, t->view_of);
    view->src[0] = from != t && !from->view_of ? translate(plan, from) : st_map_find(&plan->map, from);
    return view->view_of ? view : NULL;
}

/* Views are found once for each use, so that passes may bend one without bending the others; only homes are in the map. */
static bool clone_all(sotto_plan *plan, const sotto_graph *source)
{
    sotto_graph *g = plan->graph;
    for (int i = 0; i < source->n_leaf; i++) {
        const sotto_tensor *t = source->leaf[i];
        const bool stored = t->flags & ST_TENSOR_STORED;
        sotto_tensor *copy = stored ? source->leaf[i] : copy_tensor(plan, t);
        if (!copy)
            return false;
        if (!stored)
            put(&plan->map, t, copy);
        g->leaf[g->n_leaf++] = copy;
    }
    for (int i = 0; i < source->n_node; i++) {
        const sotto_tensor *t = source->node[i];
        sotto_tensor *copy = copy_tensor(plan, t);
        if (!copy)
            return false;
        for (int k = 0; k < ST_MAX_SRC; k++)
            if (t->src[k] && !(copy->src[k] = translate(plan, t->src[k])))
                return false;
        if (t->view_of && !(copy->view_of = translate(plan, t->view_of)))
            return false;
        put(&plan->map, t, copy);
        g->node[g->n_node++] = copy;
    }
    return true;
}

sotto_status st_plan_clone(sotto_plan *plan, const sotto_graph *source, sotto_error *err)
{
    ST_TRY(sotto_graph_create(source->name, &plan->graph, err));
    sotto_graph *g = plan->graph;
    const size_t n = (size_t)source->n_leaf + (size_t)source->n_node;
    size_t n_slot = 16;
    while (n_slot < 2 * n)
        n_slot *= 2;
    plan->map.key = st_calloc(n_slot, sizeof *plan->map.key);
    plan->map.value = st_calloc(n_slot, sizeof *plan->map.value);
    g->node = st_calloc((size_t)source->n_node + 1, sizeof *g->node);
    g->leaf = st_calloc((size_t)source->n_leaf + 1, sizeof *g->leaf);
    if (plan->map.key && plan->map.value && g->node && g->leaf) {
        plan->map.n_slot = n_slot;
        g->cap_node = source->n_node + 1;
        g->cap_leaf = source->n_leaf + 1;
        g->group = source->group;
        g->finished = true;
        if (clone_all(plan, source))
            return SOTTO_OK;
    }
    return st_fail_memory(err, n * sizeof(sotto_tensor), "a plan's copy of its graph");
}
