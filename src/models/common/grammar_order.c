/* grammar_order.c: which rules may be empty, and in what order they can begin one another. */
#include "base/alloc.h"
#include "models/common/grammar_impl.h"

typedef struct walker {
    sotto_grammar *g;
    int32_t *seen; /* [n_positions], number of the walk that was last there */
    int32_t walk;
    int32_t *stack; /* [n_positions + 1] */
    int32_t *calls; /* rules that the last walk found, n_calls of them; more behind each other while ordering */
    int64_t n_calls, calls_capacity;
} walker;

/* From the start of a rule over all that takes no character. *empty: the end can be reached so. Appends to calls if wanted. */
static bool walk_beginning(walker *w, int32_t rule, bool want_calls, bool *empty)
{
    const st_position *positions = w->g->positions;
    int64_t n = 0;
    *empty = false;
    w->walk++;
    w->stack[n++] = w->g->rules[rule].start;
    w->seen[w->stack[0]] = w->walk;
    while (n > 0) {
        const st_position *p = &positions[w->stack[--n]];
        int32_t next[2], n_next = 0;
        if (p->kind == ST_POSITION_END) {
            *empty = true;
        } else if (p->kind == ST_POSITION_FORK) {
            next[n_next++] = p->a;
            next[n_next++] = p->next;
        } else if (p->kind == ST_POSITION_CALL) {
            if (want_calls) {
                if (!st_grow(&w->calls, &w->calls_capacity, w->n_calls + 1, sizeof *w->calls))
                    return false;
                w->calls[w->n_calls++] = p->a;
            }
            if (w->g->rules[p->a].nullable)
                next[n_next++] = p->next;
        }
        for (int32_t i = 0; i < n_next; i++)
            if (w->seen[next[i]] != w->walk) {
                w->seen[next[i]] = w->walk;
                w->stack[n++] = next[i];
            }
    }
    return true;
}

/* ---- empty rules ---- */

/* callers[first[r]] .. callers[first[r + 1] - 1] are the rules with a call of r. */
static void list_callers(const sotto_grammar *g, int64_t *first, int32_t *callers)
{
    for (int64_t i = 0; i < g->n_positions; i++)
        if (g->positions[i].kind == ST_POSITION_CALL)
            first[g->positions[i].a + 1]++;
    for (int64_t r = 0; r < g->n_rules; r++)
        first[r + 1] += first[r];
    int64_t end = g->n_positions;
    for (int64_t r = g->n_rules; r-- > 0; end = g->rules[r].first)
        for (int64_t i = g->rules[r].first; i < end; i++)
            if (g->positions[i].kind == ST_POSITION_CALL)
                callers[--first[g->positions[i].a + 1]] = (int32_t)r;
    for (int64_t r = 0; r < g->n_rules; r++) /* each is now one too far ahead */
        first[r] = first[r + 1];
    first[g->n_rules] = 0;
    for (int64_t i = 0; i < g->n_positions; i++)
        first[g->n_rules] += g->positions[i].kind == ST_POSITION_CALL;
}

static bool find_empty_rules(walker *w)
{
    sotto_grammar *g = w->g;
    const size_t n = (size_t)g->n_rules;
    int64_t *first = st_calloc(n + 1, sizeof *first);
    int32_t *callers = st_alloc((size_t)g->n_positions, sizeof *callers), *queue = st_alloc(n, sizeof *queue);
    bool *queued = st_calloc(n, sizeof *queued), ok = first && callers && queue && queued;
    if (ok) {
        list_callers(g, first, callers);
        int64_t n_queue = 0;
        for (int64_t r = 0; r < g->n_rules; r++) {
            queue[n_queue++] = (int32_t)r;
            queued[r] = true;
        }
        while (n_queue > 0) {
            const int32_t r = queue[--n_queue];
            bool empty;
            queued[r] = false;
            walk_beginning(w, r, false, &empty);
            if (!empty || g->rules[r].nullable)
                continue;
            g->rules[r].nullable = true;
            for (int64_t i = first[r]; i < first[r + 1]; i++)
                if (!queued[callers[i]] && !g->rules[callers[i]].nullable) {
                    queued[callers[i]] = true;
                    queue[n_queue++] = callers[i];
                }
        }
    }
    st_free(first);
    st_free(callers);
    st_free(queue);
    st_free(queued);
    return ok;
}

/* ---- order ---- */

typedef struct visit {
    int32_t rule;
    int64_t at, from; /* next call to look at, first of this rule's calls */
} visit;

/* Depth first; a rule is numbered when all that can begin it are, from the highest order down. */
static bool order_from(walker *w, int32_t root, visit *visits, uint8_t *state, int32_t *left, int32_t *culprit)
{
    enum { NEW, OPEN, DONE };
    sotto_grammar *g = w->g;
    int64_t depth = 0;
    bool unused;
    *culprit = -1;
    if (state[root] != NEW)
        return true;
    w->n_calls = 0;
    for (int32_t enter = root;;) {
        if (enter >= 0) {
            state[enter] = OPEN;
            visits[depth++] = (visit){enter, w->n_calls, w->n_calls};
            if (!walk_beginning(w, enter, true, &unused))
                return false;
            enter = -1;
        }
        visit *v = &visits[depth - 1];
        if (v->at < w->n_calls) {
            const int32_t callee = w->calls[v->at++];
            if (state[callee] == NEW) {
                enter = callee;
            } else if (state[callee] == OPEN) {
                *culprit = callee;
                for (int64_t i = depth; visits[--i].rule != callee;)
                    *culprit = visits[i].rule < *culprit ? visits[i].rule : *culprit;
                return false;
            }
            continue;
        }
        state[v->rule] = DONE;
        g->rules[v->rule].order = --*left;
        g->rules[*left].by_order = v->rule;
        w->n_calls = v->from;
        if (--depth == 0)
            return true;
    }
}

static bool order_all(walker *w, int32_t *culprit)
{
    const size_t n = (size_t)w->g->n_rules;
    visit *visits = st_alloc(n, sizeof *visits);
    uint8_t *state = st_calloc(n, sizeof *state);
    bool ok = visits && state;
    int32_t left = (int32_t)n;
    for (int64_t r = 0; r < w->g->n_rules && ok; r++)
        ok = order_from(w, (int32_t)r, visits, state, &left, culprit);
    st_free(visits);
    st_free(state);
    return ok;
}

bool st_grammar_order_rules(sotto_grammar *g, int32_t *culprit)
{
    const size_t n = (size_t)g->n_positions;
    walker w = {.g = g, .seen = st_calloc(n, sizeof *w.seen), .stack = st_alloc(n + 1, sizeof *w.stack)};
    *culprit = -1;
    const bool ok = w.seen && w.stack && find_empty_rules(&w) && order_all(&w, culprit);
    st_free(w.seen);
    st_free(w.stack);
    st_free(w.calls);
    return ok;
}
