/* planner_check.h: what must hold of any placement; shared by the planner's unit tests and its fuzz target. */
#ifndef SOTTO_TESTS_PLANNER_CHECK_H
#define SOTTO_TESTS_PLANNER_CHECK_H

#include "runtime/planner.h"

static inline bool planner_live_together(const st_plan_item *a, const st_plan_item *b)
{
    return a->pinned || b->pinned || (a->first <= b->last && b->first <= a->last);
}

/* The child lies exactly where its parent did, and they meet in one step only. */
static inline bool planner_took_over(const st_plan_item *items, int child, int parent)
{
    const st_plan_item *c = &items[child], *p = &items[parent];
    return c->reuse == parent && !c->pinned && !p->pinned && p->last == c->first && p->first < c->first &&
           c->size == p->size && c->offset == p->offset;
}

/* NULL, or which rule is broken: items that live together do not overlap, offsets are aligned, the total holds every item and
 * is no more than all of them side by side. */
static inline const char *planner_broken_rule(const st_plan_item *items, int n, size_t total)
{
    size_t sum = 0;
    for (int i = 0; i < n; i++) {
        const st_plan_item *a = &items[i];
        if (a->size == 0)
            continue;
        const size_t most = a->size + a->alignment - 1;
        sum = most < a->size || sum > SIZE_MAX - most ? SIZE_MAX : sum + most;
        if (a->offset % a->alignment != 0)
            return "alignment";
        if (a->offset + a->size > total)
            return "total too small";
        for (int k = 0; k < i; k++) {
            const st_plan_item *b = &items[k];
            const bool apart = a->offset + a->size <= b->offset || b->offset + b->size <= a->offset;
            if (b->size > 0 && !apart && planner_live_together(a, b) && !planner_took_over(items, i, k))
                return "overlap";
        }
    }
    return total <= sum ? NULL : "total larger than the sum";
}

#endif
