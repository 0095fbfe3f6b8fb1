#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "tensor/tensor_impl.h"

sotto_status sotto_graph_create(const char *name, sotto_graph **out, sotto_error *err)
{
    if (!out)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_graph_create: out is NULL");
    *out = NULL;
    sotto_graph *g = st_calloc(1, sizeof *g);
    if (!g)
        return st_fail_memory(err, sizeof *g, "a graph");
    g->arena = st_arena_create();
    if (!g->arena) {
        st_free(g);
        return st_fail_memory(err, sizeof *g, "a graph");
    }
    snprintf(g->name, sizeof g->name, "%s", name ? name : "graph");
    *out = g;
    return SOTTO_OK;
}

void sotto_graph_free(sotto_graph *g)
{
    if (!g)
        return;
    st_arena_free(g->arena);
    st_free(g->node);
    st_free(g->leaf);
    st_free(g);
}

static void note(sotto_graph *g, sotto_status code, const char *fmt, va_list args)
{
    if (g->error.code == SOTTO_OK)
        (void)st_vfail(&g->error, code, fmt, args);
}

/* Poison lives inside the graph, so that every failure has somewhere to point, also without memory. */
static sotto_tensor *poison(sotto_graph *g)
{
    sotto_tensor *t = &g->poison;
    const int64_t one = 1;
    (void)st_tensor_init(t, SOTTO_F32, 1, &one);
    t->flags = ST_TENSOR_POISON;
    return t;
}

sotto_tensor *st_graph_fail(sotto_graph *g, sotto_status code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    note(g, code, fmt, args);
    va_end(args);
    return poison(g);
}

bool st_graph_poisoned(sotto_graph *g, sotto_tensor *const *src, int n_src)
{
    for (int i = 0; i < n_src; i++)
        if (src[i] && (src[i]->flags & ST_TENSOR_POISON))
            return true;
    return g->error.code != SOTTO_OK;
}

static bool append(sotto_tensor ***list, int *n, int *cap, sotto_tensor *t)
{
    int64_t c = *cap;
    if (!st_grow(list, &c, *n + 1, sizeof **list))
        return false;
    *cap = (int)c;
    (*list)[(*n)++] = t;
    return true;
}

sotto_tensor *st_graph_new_node(sotto_graph *g, st_op op, sotto_dtype dtype, int n_dims, const int64_t *dim)
{
    if (g->finished)
        return st_graph_fail(g, SOTTO_E_ARGUMENT, "%s: the graph \"%s\" is finished", st_op_name(op), g->name);
    sotto_tensor *t = st_arena_alloc(g->arena, sizeof *t);
    if (!t || !append(&g->node, &g->n_node, &g->cap_node, t))
        return st_graph_fail(g, SOTTO_E_MEMORY, "%s: no memory for a node of graph \"%s\"", st_op_name(op), g->name);
    if (!st_tensor_init(t, dtype, n_dims, dim)) {
        g->n_node--;
        return st_graph_fail(g, SOTTO_E_ARGUMENT, "%s: the result's shape is out of range", st_op_name(op));
    }
    t->op = op;
    t->group = g->group;
    t->params.compute = g->compute;
    t->id = g->n_node - 1;
    snprintf(t->name, sizeof t->name, "%s_%d", st_op_name(op), t->id);
    return t;
}

void sotto_graph_set_compute(sotto_graph *g, sotto_compute compute)
{
    g->compute = compute;
}

sotto_tensor *sotto_graph_input(sotto_graph *g, const char *name, sotto_dtype dtype, int n_dims, const int64_t *dim)
{
    if (g->finished || !name || !dim)
        return st_graph_fail(g, SOTTO_E_ARGUMENT, "input %s: %s", name ? name : "NULL",
                             g->finished ? "the graph is finished" : "name or shape is NULL");
    sotto_tensor *t = st_arena_alloc(g->arena, sizeof *t);
    if (!t || !append(&g->leaf, &g->n_leaf, &g->cap_leaf, t))
        return st_graph_fail(g, SOTTO_E_MEMORY, "input %s: no memory", name);
    if (!st_tensor_init(t, dtype, n_dims, dim)) {
        g->n_leaf--;
        return st_graph_fail(g, SOTTO_E_ARGUMENT, "input %s: shape or type out of range", name);
    }
    t->flags = ST_TENSOR_INPUT;
    t->group = g->group;
    snprintf(t->name, sizeof t->name, "%s", name);
    return t;
}

sotto_tensor *sotto_graph_use(sotto_graph *g, sotto_tensor *stored)
{
    if (!stored || !(stored->flags & ST_TENSOR_STORED))
        return st_graph_fail(g, SOTTO_E_ARGUMENT, "graph \"%s\": %s is not a tensor of a store", g->name,
                             stored ? stored->name : "NULL");
    for (int i = 0; i < g->n_leaf; i++)
        if (g->leaf[i] == stored)
            return stored;
    if (!append(&g->leaf, &g->n_leaf, &g->cap_leaf, stored))
        return st_graph_fail(g, SOTTO_E_MEMORY, "graph \"%s\": no memory", g->name);
    return stored;
}

void sotto_graph_output(sotto_graph *g, sotto_tensor *t, const char *name)
{
    if (g->finished || !t || !name) {
        (void)st_graph_fail(g, SOTTO_E_ARGUMENT, "output %s: %s", name ? name : "NULL",
                            g->finished ? "the graph is finished" : "tensor or name is NULL");
        return;
    }
    /* what lies in a store can be read anyway, and is shared with other graphs */
    if (st_graph_poisoned(g, &t, 1) || ((t->flags & ST_TENSOR_STORED) && !t->view_of))
        return;
    t->flags |= ST_TENSOR_OUTPUT;
    if (t->view_of && !(t->view_of->flags & ST_TENSOR_STORED))
        t->view_of->flags |= ST_TENSOR_OUTPUT;
    snprintf(t->name, sizeof t->name, "%s", name);
}

void sotto_graph_barrier(sotto_graph *g)
{
    g->group++;
}

sotto_status sotto_graph_finish(sotto_graph *g, sotto_error *err)
{
    g->finished = true;
    if (g->error.code == SOTTO_OK)
        return SOTTO_OK;
    return st_fail(err, g->error.code, "graph \"%s\": %s", g->name, g->error.text);
}
