/* dot.c: a plan's graph in Graphviz's language. */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "runtime/plan_impl.h"
#include "runtime/sink.h"

/* Names come from model files: whatever would end or break a quoted string is dropped. */
static const char *plain(const char *name, char *out, size_t size)
{
    size_t n = 0;
    for (; *name && n + 1 < size; name++)
        if (*name != '"' && *name != '\\' && (unsigned char)*name >= 0x20)
            out[n++] = *name;
    out[n] = 0;
    return out;
}

static void put_node(const st_sink *s, const sotto_tensor *t, const char *backend)
{
    char name[ST_NAME_SIZE], shape[96];
    st_put(s, "  t%p [label=\"%s\\n%s %s %s%s%s\"%s];\n", (const void *)t, plain(t->name, name, sizeof name),
           st_op_name(t->op), sotto_dtype_name(t->dtype), st_tensor_shape_text(t, shape, sizeof shape),
           *backend ? "\\n" : "", backend, *backend ? "" : " shape=box");
}

sotto_status sotto_plan_dot(const sotto_plan *plan, void (*write)(void *user, const char *text, size_t n), void *user,
                            sotto_error *err)
{
    if (!plan || !write)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_plan_dot: plan or write is NULL");
    const st_sink s = {write, user};
    const sotto_graph *g = plan->graph;
    char name[ST_NAME_SIZE];
    st_put(&s, "digraph \"%s\" {\n", plain(g->name, name, sizeof name));
    for (int i = 0; i < g->n_leaf; i++)
        put_node(&s, g->leaf[i], "");
    size_t at = 0;
    for (int64_t i = 0; i < plan->n_segments; i++)
        for (int k = 0; k < plan->segments[i].exec.n_node; k++, at++)
            put_node(&s, plan->segments[i].exec.node[k], plan->trace[at].backend);
    for (int i = 0; i < g->n_node; i++)
        for (int k = 0; k < ST_MAX_SRC; k++) {
            const sotto_tensor *from = g->node[i]->src[k];
            /* a view is drawn as the tensor that it looks at */
            while (from && from->id < 0 && from->op == ST_OP_NONE && from->src[0])
                from = from->src[0];
            if (from)
                st_put(&s, "  t%p -> t%p;\n", (const void *)from, (const void *)g->node[i]);
        }
    st_put(&s, "}\n");
    return SOTTO_OK;
}
