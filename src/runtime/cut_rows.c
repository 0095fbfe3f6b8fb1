/* cut_rows.c: products with a matrix that is kept in pieces by rows. Each piece gives some columns of the result; the result
 * is memory that the columns are copied into, on the device of the pieces when that is one, else on the main device. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/status.h"
#include "runtime/plan_impl.h"

typedef struct list {
    sotto_tensor **node;
    int n;
} list;

static const st_split *split_of(const sotto_tensor *node)
{
    const sotto_tensor *w = node->src[1];
    return w && (w->flags & ST_TENSOR_SPLIT) ? w->extra : NULL;
}

/* Columns [first, first + n) of a tensor whose innermost dimension is cut. */
static sotto_tensor *columns(sotto_plan *plan, sotto_tensor *t, int64_t first, int64_t n)
{
    sotto_tensor *v = st_plan_new_tensor(plan, t->dtype, t->dim, t->name);
    if (!v)
        return NULL;
    const sotto_tensor fresh = *v;
    *v = *t;
    v->op = ST_OP_NONE;
    v->flags = t->flags & ST_TENSOR_STORED;
    for (int i = 0; i < ST_MAX_SRC; i++)
        v->src[i] = NULL;
    v->src[0] = t;
    v->view_of = st_home(t);
    v->view_offset = (t->view_of ? t->view_offset : 0) + (size_t)first * t->stride[0];
    v->dim[0] = n;
    v->id = -1;
    v->offset = fresh.offset;
    return v;
}

static bool cut_node(sotto_plan *plan, sotto_tensor *node, const st_split *split, list *out)
{
    const sotto_tensor whole = *node;
    node->op = ST_OP_NONE; /* memory that nodes write into */
    node->id = -1;
    for (int i = 0; i < ST_MAX_SRC; i++)
        node->src[i] = NULL;
    for (int i = 0; i < split->n; i++) {
        sotto_tensor *piece = split->piece[i].t;
        const int64_t n = piece->dim[1], row = split->piece[i].row;
        const int64_t dim[SOTTO_MAX_DIMS] = {n, whole.dim[1], whole.dim[2], whole.dim[3]};
        char name[ST_NAME_SIZE];
        snprintf(name, sizeof name, "%.48s/%d", whole.name, i);
        sotto_tensor *part = st_plan_new_tensor(plan, whole.dtype, dim, name);
        sotto_tensor *copy = columns(plan, node, row, n);
        sotto_tensor *target = columns(plan, node, row, n);
        if (!part || !copy || !target)
            return false;
        part->op = whole.op;
        part->params = whole.params;
        part->group = copy->group = whole.group;
        part->src[0] = whole.src[0];
        part->src[1] = piece;
        for (int k = 2; k < 4; k++)
            if (whole.src[k] && !(part->src[k] = columns(plan, whole.src[k], row, n)))
                return false;
        copy->op = ST_OP_COPY;
        copy->flags = 0;
        copy->src[0] = part;
        copy->src[1] = target;
        snprintf(copy->name, sizeof copy->name, "%.40s (columns)", name);
        out->node[out->n++] = part;
        out->node[out->n++] = copy;
    }
    return true;
}

/* The space of the result: the pieces' when they are together. */
static int space_of_result(const sotto_backend *b, const st_split *split)
{
    const int first = st_backend_space_of(b, split->piece[0].t->buffer);
    for (int i = 1; i < split->n; i++)
        if (st_backend_space_of(b, split->piece[i].t->buffer) != first)
            return st_backend_space(b, b->main);
    return first >= 0 ? first : st_backend_space(b, b->main);
}

static bool is_cut(const sotto_tensor *node)
{
    return (node->op == ST_OP_LINEAR || node->op == ST_OP_CONV_1D || node->op == ST_OP_CONV_2D) && split_of(node);
}

sotto_status st_plan_cut_rows(sotto_plan *plan, sotto_error *err)
{
    sotto_graph *g = plan->graph;
    size_t n = 0;
    bool any = false;
    for (int i = 0; i < g->n_node; i++) {
        sotto_tensor *node = g->node[i];
        const bool cut = is_cut(node);
        for (int k = 0; k < ST_MAX_SRC; k++)
            if (node->src[k] && (node->src[k]->flags & ST_TENSOR_SPLIT) && !(cut && k == 1))
                return st_fail(err, SOTTO_E_UNSUPPORTED, "%s (%s): %s is kept in pieces, which only products read",
                               node->name, st_op_name(node->op), node->src[k]->name);
        n += cut ? 2 * (size_t)split_of(node)->n : 1;
        any = any || cut;
    }
    if (!any)
        return SOTTO_OK;
    list out = {.node = st_calloc(n + 1, sizeof *out.node)};
    bool good = out.node != NULL;
    for (int i = 0; i < g->n_node && good; i++) {
        sotto_tensor *node = g->node[i];
        const st_split *split = is_cut(node) ? split_of(node) : NULL;
        if (!split) {
            out.node[out.n++] = node;
            continue;
        }
        const int space = space_of_result(plan->backend, split);
        const sotto_status status = st_plan_settle(plan, node, space, err);
        good = status == SOTTO_OK && cut_node(plan, node, split, &out);
    }
    if (!good) {
        st_free(out.node);
        return st_fail_memory(err, n * sizeof(sotto_tensor), "the pieces of products");
    }
    for (int i = 0; i < out.n; i++)
        out.node[i]->id = i;
    st_free(g->node);
    g->node = out.node;
    g->n_node = out.n;
    g->cap_node = (int)n + 1;
    return SOTTO_OK;
}
