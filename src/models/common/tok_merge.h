/* tok_merge.h: joining neighbours, the best pair of a piece first and the leftmost of equals, until nothing joins. What joins
 * to what is a function. A piece of n bytes takes n log n steps. */
#ifndef SOTTO_SRC_MODELS_COMMON_TOK_MERGE_H
#define SOTTO_SRC_MODELS_COMMON_TOK_MERGE_H

#include <stdbool.h>

#include "sotto/base.h"

/* A part starts at the byte of its index; bytes inside a part, and parts that were joined to the left, have length 0. */
typedef struct st_merge_part {
    int32_t id, length, previous, next; /* next, previous: -1 at the ends */
} st_merge_part;

typedef struct st_merge_pair {
    int32_t rank, left, length, id; /* length of both parts together: an entry of another length is out of date */
} st_merge_pair;

/* Memory that is used again from piece to piece; zero before the first. */
typedef struct st_merge {
    st_merge_part *parts;
    st_merge_pair *heap;
    int64_t parts_capacity, heap_capacity, n_heap;
} st_merge;

/* What the parts `left` and `right`, together the n bytes at `bytes`, join to; lower ranks are joined first. */
typedef struct st_merge_rule {
    bool (*join)(const void *user, const char *bytes, size_t n, int32_t left, int32_t right, int32_t *rank, int32_t *id);
    const void *user;
} st_merge_rule;

/* Room for parts of n bytes; false without memory. The caller then fills in parts, linked from part 0 on. */
bool st_merge_begin(st_merge *m, size_t n);
/* False without memory. */
bool st_merge_run(st_merge *m, const st_merge_rule *rule, const char *piece);
void st_merge_free(st_merge *m);

#endif
