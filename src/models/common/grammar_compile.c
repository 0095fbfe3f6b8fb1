/* grammar_compile.c: from the tree of a grammar to its network. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/status.h"
#include "models/common/gbnf.h"
#include "models/common/grammar_impl.h"

enum { MAX_POSITIONS = 1 << 21 };

/* Rules beyond those of the text are bodies of counted repetitions. */
typedef struct compiler {
    const st_gbnf *tree;
    sotto_grammar *g;
    int32_t *bodies; /* of every rule */
    int64_t bodies_capacity;
    sotto_error *err;
} compiler;

/* ---- intervals ---- */

static int by_value(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

int32_t st_grammar_interval(const sotto_grammar *g, uint32_t code)
{
    if (code < 128)
        return g->ascii[code];
    int32_t lo = 0, hi = g->n_intervals;
    if (g->bounds[hi - 1] <= code) /* mostly so: few grammars tell foreign characters apart */
        return hi - 1;
    while (hi - lo > 1) {
        const int32_t middle = lo + (hi - lo) / 2;
        if (g->bounds[middle] <= code)
            lo = middle;
        else
            hi = middle;
    }
    return lo;
}

bool st_grammar_set_meets(const sotto_grammar *g, int32_t set, int32_t lo, int32_t hi)
{
    const st_interval_range *r = g->ranges + g->sets[set].first;
    int32_t from = 0, to = g->sets[set].n; /* the first range that ends at lo or later */
    while (from < to) {
        const int32_t middle = from + (to - from) / 2;
        if (r[middle].hi < lo)
            from = middle + 1;
        else
            to = middle;
    }
    return from < g->sets[set].n && r[from].lo <= hi;
}

static sotto_status build_intervals(compiler *c)
{
    const st_gbnf *t = c->tree;
    sotto_grammar *g = c->g;
    const size_t most = 2 * (size_t)t->n_ranges + 2;
    g->bounds = st_alloc(most, sizeof *g->bounds);
    g->sets = st_alloc((size_t)t->n_sets, sizeof *g->sets);
    g->ranges = st_alloc((size_t)t->n_ranges, sizeof *g->ranges);
    if (!g->bounds || !g->sets || !g->ranges)
        return st_fail_memory(c->err, most * sizeof *g->bounds, "a grammar");
    size_t n = 0, m = 0;
    g->bounds[n++] = 0;
    g->bounds[n++] = 0x110000;
    for (int64_t i = 0; i < t->n_ranges; i++) {
        g->bounds[n++] = t->ranges[i].lo;
        g->bounds[n++] = t->ranges[i].hi + 1;
    }
    qsort(g->bounds, n, sizeof *g->bounds, by_value);
    for (size_t i = 0; i < n; i++)
        if (m == 0 || g->bounds[i] != g->bounds[m - 1])
            g->bounds[m++] = g->bounds[i];
    g->n_intervals = (int32_t)m - 1;
    for (uint32_t code = 0, i = 0; code < 128; code++) {
        while (g->bounds[i + 1] <= code)
            i++;
        g->ascii[code] = (int32_t)i;
    }
    g->n_sets = t->n_sets;
    for (int64_t i = 0; i < t->n_sets; i++)
        g->sets[i] = (st_interval_set){t->sets[i].first, t->sets[i].n};
    for (int64_t i = 0; i < t->n_ranges; i++)
        g->ranges[i] =
            (st_interval_range){st_grammar_interval(g, t->ranges[i].lo), st_grammar_interval(g, t->ranges[i].hi)};
    return SOTTO_OK;
}

/* ---- positions, from the end of a rule to its beginning ---- */

static sotto_status add(compiler *c, st_position_kind kind, int32_t a, int32_t next, int32_t *out)
{
    sotto_grammar *g = c->g;
    if (g->n_positions >= MAX_POSITIONS)
        return st_fail(c->err, SOTTO_E_FORMAT, "grammar: more than %d positions, expected fewer repetitions",
                       (int)MAX_POSITIONS);
    if (!st_grow(&g->positions, &g->positions_capacity, g->n_positions + 1, sizeof *g->positions))
        return st_fail_memory(c->err, ((uint64_t)g->n_positions + 1) * sizeof *g->positions, "a grammar");
    g->positions[g->n_positions] = (st_position){kind, a, next};
    *out = (int32_t)g->n_positions++;
    return SOTTO_OK;
}

static sotto_status add_rule(compiler *c, int32_t body, int32_t *out)
{
    sotto_grammar *g = c->g;
    if (!st_grow(&g->rules, &g->rules_capacity, g->n_rules + 1, sizeof *g->rules) ||
        !st_grow(&c->bodies, &c->bodies_capacity, g->n_rules + 1, sizeof *c->bodies))
        return st_fail_memory(c->err, ((uint64_t)g->n_rules + 1) * sizeof *g->rules, "a grammar");
    c->bodies[g->n_rules] = body;
    g->rules[g->n_rules] = (st_network_rule){0};
    *out = (int32_t)g->n_rules++;
    return SOTTO_OK;
}

static sotto_status build(compiler *c, int32_t node, int32_t next, int32_t *out);

static sotto_status build_sequence(compiler *c, int32_t first, int32_t next, int32_t *out)
{
    const st_gbnf_node *nodes = c->tree->nodes;
    int32_t n = 0;
    for (int32_t i = first; i >= 0; i = nodes[i].next)
        n++;
    int32_t *parts = st_alloc((size_t)n, sizeof *parts);
    if (!parts)
        return st_fail_memory(c->err, (uint64_t)n * sizeof *parts, "a grammar");
    n = 0;
    for (int32_t i = first; i >= 0; i = nodes[i].next)
        parts[n++] = i;
    sotto_status status = SOTTO_OK;
    while (n > 0 && status == SOTTO_OK)
        status = build(c, parts[--n], next, &next);
    st_free(parts);
    *out = next;
    return status;
}

static sotto_status build_choice(compiler *c, int32_t first, int32_t next, int32_t *out)
{
    const st_gbnf_node *nodes = c->tree->nodes;
    int32_t fork = -1;
    for (int32_t i = first; i >= 0; i = nodes[i].next) {
        int32_t start;
        ST_TRY(build(c, i, next, &start));
        if (fork < 0)
            fork = start;
        else
            ST_TRY(add(c, ST_POSITION_FORK, fork, start, &fork));
    }
    *out = fork;
    return SOTTO_OK;
}

/* One position: nothing is gained by calling it as a rule. */
static bool is_small(const st_gbnf *t, int32_t node)
{
    while (t->nodes[node].kind == ST_GBNF_SEQUENCE && t->nodes[node].a >= 0 && t->nodes[t->nodes[node].a].next < 0)
        node = t->nodes[node].a;
    return t->nodes[node].kind == ST_GBNF_SET || t->nodes[node].kind == ST_GBNF_RULE;
}

static sotto_status build_repeat(compiler *c, const st_gbnf_node *repeat, int32_t next, int32_t *out)
{
    const int32_t min = repeat->min, max = repeat->max;
    const int32_t copies = max == ST_GBNF_INFINITY ? min : max;
    int32_t rule = -1, at = next, body;
    if (max == 0) {
        *out = next;
        return SOTTO_OK;
    }
    if (copies > 1 && !is_small(c->tree, repeat->a))
        ST_TRY(add_rule(c, repeat->a, &rule));
    const bool calls = rule >= 0;
    if (max == ST_GBNF_INFINITY) {
        int32_t loop;
        ST_TRY(add(c, ST_POSITION_FORK, next, next, &loop));
        ST_TRY(calls ? add(c, ST_POSITION_CALL, rule, loop, &body) : build(c, repeat->a, loop, &body));
        c->g->positions[loop].a = body;
        at = min > 0 ? body : loop; /* with at least one the first is a way into the loop */
    }
    const int32_t optional = max == ST_GBNF_INFINITY ? 0 : max - min; /* the last ones of the text, built first */
    for (int32_t i = max == ST_GBNF_INFINITY ? 1 : 0; i < copies; i++) {
        ST_TRY(calls ? add(c, ST_POSITION_CALL, rule, at, &at) : build(c, repeat->a, at, &at));
        if (i < optional)
            ST_TRY(add(c, ST_POSITION_FORK, at, next, &at));
    }
    *out = at;
    return SOTTO_OK;
}

/* Recursion is as deep as parentheses and repetitions are nested. */
static sotto_status build(compiler *c, int32_t node, int32_t next, int32_t *out)
{
    const st_gbnf_node *n = &c->tree->nodes[node];
    switch (n->kind) {
    case ST_GBNF_SET:
        return add(c, ST_POSITION_SET, n->a, next, out);
    case ST_GBNF_RULE:
        return add(c, ST_POSITION_CALL, n->a, next, out);
    case ST_GBNF_SEQUENCE:
        return build_sequence(c, n->a, next, out);
    case ST_GBNF_CHOICE:
        return build_choice(c, n->a, next, out);
    case ST_GBNF_REPEAT:
        return build_repeat(c, n, next, out);
    }
    return st_fail(c->err, SOTTO_E_INTERNAL, "grammar: a node of kind %d", (int)n->kind);
}

static sotto_status build_network(compiler *c)
{
    sotto_grammar *g = c->g;
    int32_t unused;
    ST_TRY(add(c, ST_POSITION_END, 0, 0, &unused));
    ST_TRY(add(c, ST_POSITION_ACCEPT, 0, 0, &unused));
    for (int64_t i = 0; i < c->tree->n_rules; i++)
        ST_TRY(add_rule(c, c->tree->rules[i].body, &unused));
    for (int64_t i = 0; i < g->n_rules; i++) { /* repetitions add to them */
        int32_t start;
        g->rules[i].first = (int32_t)g->n_positions;
        ST_TRY(build(c, c->bodies[i], ST_END, &start));
        g->rules[i].start = start;
    }
    return SOTTO_OK;
}

/* ---- */

static sotto_status compile(compiler *c, const char *root)
{
    const st_gbnf *t = c->tree;
    size_t length = 0;
    while (root[length])
        length++;
    c->g->root = st_gbnf_find(t, root, length);
    if (c->g->root < 0)
        return st_fail(c->err, SOTTO_E_NOT_FOUND, "grammar: there is no rule '%.100s' to begin with", root);
    ST_TRY(build_intervals(c));
    ST_TRY(build_network(c));
    int32_t culprit;
    if (st_grammar_order_rules(c->g, &culprit))
        return SOTTO_OK;
    if (culprit < 0)
        return st_fail_memory(c->err, (uint64_t)c->g->n_positions * sizeof(st_position), "a grammar");
    const st_gbnf_rule *r = &t->rules[culprit];
    return st_gbnf_fail(t, r->name, c->err, "rule '%.*s' can begin with itself, expected a character before",
                        (int)(r->length < 100 ? r->length : 100), t->text + r->name);
}

sotto_status sotto_grammar_create(const char *gbnf, size_t n, const char *root, sotto_grammar **out, sotto_error *err)
{
    *out = NULL;
    sotto_grammar *g = st_calloc(1, sizeof *g);
    if (!g)
        return st_fail_memory(err, sizeof *g, "a grammar");
    st_gbnf tree;
    sotto_status status = st_gbnf_parse(gbnf, n, &tree, err);
    if (status == SOTTO_OK) {
        compiler c = {.tree = &tree, .g = g, .err = err};
        status = compile(&c, root ? root : "root");
        st_free(c.bodies);
    }
    st_gbnf_free(&tree);
    if (status != SOTTO_OK) {
        sotto_grammar_free(g);
        return status;
    }
    *out = g;
    return SOTTO_OK;
}

void sotto_grammar_free(sotto_grammar *g)
{
    if (!g)
        return;
    st_free(g->positions);
    st_free(g->rules);
    st_free(g->bounds);
    st_free(g->sets);
    st_free(g->ranges);
    st_free(g);
}
