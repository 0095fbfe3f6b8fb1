/* grammar_impl.h: a grammar made ready for matching: a network of positions for each rule. */
#ifndef SOTTO_SRC_MODELS_COMMON_GRAMMAR_IMPL_H
#define SOTTO_SRC_MODELS_COMMON_GRAMMAR_IMPL_H

#include <stdbool.h>

#include "sotto/grammar.h"

typedef enum st_position_kind {
    ST_POSITION_END,    /* of the rule: what follows it is next */
    ST_POSITION_ACCEPT, /* of the text */
    ST_POSITION_SET,    /* a: a character of this set, then next */
    ST_POSITION_CALL,   /* a: this rule, then next */
    ST_POSITION_FORK    /* a or next */
} st_position_kind;

typedef struct st_position {
    st_position_kind kind;
    int32_t a, next;
} st_position;

/* The first two positions of every grammar. */
enum { ST_END = 0, ST_ACCEPT = 1 };

typedef struct st_network_rule {
    int32_t start;    /* position */
    int32_t first;    /* its positions are those from here to the next rule's first */
    bool nullable;    /* it may be empty */
    int32_t order;    /* a rule has a lower one than the rules that can stand at its very beginning */
    int32_t by_order; /* the rule whose order is this index */
} st_network_rule;

/* Characters are told apart only as far as the grammar does: interval i holds bounds[i] .. bounds[i + 1] - 1. */
typedef struct st_interval_range {
    int32_t lo, hi;
} st_interval_range;

typedef struct st_interval_set {
    int32_t first, n; /* of interval_ranges, in order */
} st_interval_set;

struct sotto_grammar {
    st_position *positions;
    int64_t n_positions, positions_capacity;
    st_network_rule *rules;
    int64_t n_rules, rules_capacity;
    int32_t root;
    uint32_t *bounds; /* [n_intervals + 1] */
    int32_t n_intervals;
    int32_t ascii[128]; /* interval of each */
    st_interval_set *sets;
    int64_t n_sets;
    st_interval_range *ranges;
};

/* Interval of a character. */
int32_t st_grammar_interval(const sotto_grammar *g, uint32_t code);
/* Whether the set has a character in intervals lo .. hi. */
bool st_grammar_set_meets(const sotto_grammar *g, int32_t set, int32_t lo, int32_t hi);

/* Fills nullable, order and by_order. False when a rule, *culprit, can begin with itself; or without memory: -1. */
bool st_grammar_order_rules(sotto_grammar *g, int32_t *culprit);

#endif
