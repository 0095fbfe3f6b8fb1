/* gbnf.h: the text of a grammar as a tree.
 * GBNF is the notation of llama.cpp's grammars; docs/grammars.md describes it as it is read here. */
#ifndef SOTTO_SRC_MODELS_COMMON_GBNF_H
#define SOTTO_SRC_MODELS_COMMON_GBNF_H

#include <stdbool.h>

#include "sotto/grammar.h"

enum {
    ST_GBNF_MAX_TEXT = 1 << 24,
    ST_GBNF_MAX_REPEAT = 100000,
    ST_GBNF_MAX_DEPTH = 200, /* of parentheses */
    ST_GBNF_MAX_STACKED = 4, /* x+?* */
    ST_GBNF_INFINITY = -1
};

/* Characters lo <= c <= hi. */
typedef struct st_char_range {
    uint32_t lo, hi;
} st_char_range;

/* A set of characters: ranges[first] .. ranges[first + n - 1], in order, none touching the next, at least one. */
typedef struct st_char_set {
    int32_t first, n;
} st_char_set;

typedef enum st_gbnf_kind {
    ST_GBNF_SET,      /* a: index of the set */
    ST_GBNF_RULE,     /* a: index of the rule */
    ST_GBNF_SEQUENCE, /* a: first part, -1 when there is none */
    ST_GBNF_CHOICE,   /* a: first alternative */
    ST_GBNF_REPEAT    /* a: what, min to max times */
} st_gbnf_kind;

typedef struct st_gbnf_node {
    st_gbnf_kind kind;
    int32_t a, next; /* next part or alternative, -1 at the end */
    int32_t min, max;
} st_gbnf_node;

typedef struct st_gbnf_rule {
    size_t name, length; /* in the text */
    int32_t body;        /* -1: not defined */
} st_gbnf_rule;

typedef struct st_gbnf {
    const char *text;
    size_t n;
    st_gbnf_node *nodes;
    int64_t n_nodes, nodes_capacity;
    st_gbnf_rule *rules;
    int64_t n_rules, rules_capacity;
    int32_t *rule_slots; /* by hash of the name, index + 1 */
    int64_t n_rule_slots;
    st_char_range *ranges;
    int64_t n_ranges, ranges_capacity;
    st_char_set *sets; /* none twice */
    int64_t n_sets, sets_capacity;
    int32_t *set_slots;
    int64_t n_set_slots;
} st_gbnf;

/* The text must outlive the tree. Every rule that is used is defined. st_gbnf_free() also after a failure. */
sotto_status st_gbnf_parse(const char *text, size_t n, st_gbnf *out, sotto_error *err);
void st_gbnf_free(st_gbnf *g);
/* Index of the rule of that name, -1 when there is none. */
int32_t st_gbnf_find(const st_gbnf *g, const char *name, size_t length);
/* SOTTO_E_FORMAT: "line L, column C: " and the sentence. */
sotto_status st_gbnf_fail(const st_gbnf *g, size_t at, sotto_error *err, const char *fmt, ...) SOTTO_PRINTF(4, 5);

#endif
