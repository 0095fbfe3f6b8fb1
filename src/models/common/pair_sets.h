/* pair_sets.h: sets of pairs of numbers, each kept once and known by its index. */
#ifndef SOTTO_SRC_MODELS_COMMON_PAIR_SETS_H
#define SOTTO_SRC_MODELS_COMMON_PAIR_SETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct st_pair {
    int32_t a, b;
} st_pair;

/* A list that grows. */
typedef struct st_pairs {
    st_pair *list;
    int64_t n, capacity;
} st_pairs;

/* All zero: no sets. */
typedef struct st_pair_sets {
    st_pairs members; /* of set i: members.list[first[i]] .. members.list[first[i + 1] - 1], in order */
    int64_t *first;
    int64_t n, first_capacity;
    int32_t *slots; /* index + 1 by hash */
    int64_t n_slots;
} st_pair_sets;

bool st_pairs_add(st_pairs *p, int32_t a, int32_t b);
/* In order, each once. */
void st_pairs_sort(st_pairs *p);

/* Index of the set of n sorted pairs, which is copied when it is new; -1 without memory. */
int32_t st_pair_sets_index(st_pair_sets *s, const st_pair *pairs, int64_t n);
const st_pair *st_pair_sets_get(const st_pair_sets *s, int32_t index, int64_t *n);
size_t st_pair_sets_size(const st_pair_sets *s);
void st_pair_sets_free(st_pair_sets *s);

#endif
