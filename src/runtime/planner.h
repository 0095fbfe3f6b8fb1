/* planner.h: places tensors of limited life in one range of memory. A pure function: no device, no tensor, no allocation
 * that outlives the call. */
#ifndef SOTTO_SRC_RUNTIME_PLANNER_H
#define SOTTO_SRC_RUNTIME_PLANNER_H

#include <stdbool.h>

#include "sotto/base.h"

typedef struct st_plan_item {
    size_t size;      /* bytes; 0 takes no room */
    size_t alignment; /* power of two */
    int first, last; /* steps in which the item is written first and used last, first <= last; steps that may overlap in
                         time have one number */
    int reuse;   /* item whose memory this one may take over, -1 = none: it dies in step `first`, and the two may be the
                         same memory during that step */
    bool pinned; /* lives from before the first step to after the last */
    size_t offset; /* out */
} st_plan_item;

/* Sets the offsets and the total size. Items in order of `first`. SOTTO_E_MEMORY when the bookkeeping does not fit or the
 * total overflows, SOTTO_E_ARGUMENT for an item out of order. */
sotto_status st_plan_place(st_plan_item *items, int n_items, size_t *total, sotto_error *err);
/* The same in memory that is cut at every multiple of `chunk` bytes, which no item may lie across. Items larger than that are
 * refused with SOTTO_E_MEMORY; alignments divide the chunk. */
sotto_status st_plan_place_chunked(st_plan_item *items, int n_items, size_t chunk, size_t *total, sotto_error *err);

#endif
