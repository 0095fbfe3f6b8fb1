#include "runtime/planner.h"

#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/status.h"

/* Free ranges, sorted by offset, never touching each other. The last one may grow: memory is free without end, and
 * `total` is how far it has been used. */
typedef struct range {
    size_t offset, size;
} range;

typedef struct pool {
    range *free;
    int64_t n, cap;
    size_t total, chunk;
} pool;

/* Where an item begins that may begin at `start`; false when that overflows. */
static bool fit(const pool *p, size_t start, const st_plan_item *item, size_t *offset)
{
    if (!st_align_size(start, item->alignment, offset))
        return false;
    const size_t left = p->chunk - *offset % p->chunk;
    return left >= item->size || st_add_size(*offset, left, offset);
}

static bool insert(pool *p, int64_t at, size_t offset, size_t size)
{
    if (!st_grow(&p->free, &p->cap, p->n + 1, sizeof *p->free))
        return false;
    memmove(p->free + at + 1, p->free + at, (size_t)(p->n - at) * sizeof *p->free);
    p->free[at] = (range){offset, size};
    p->n++;
    return true;
}

static void erase(pool *p, int64_t at)
{
    p->n--;
    memmove(p->free + at, p->free + at + 1, (size_t)(p->n - at) * sizeof *p->free);
}

/* Gives [offset, offset + size) back, merged with its neighbours. */
static bool give_back(pool *p, size_t offset, size_t size)
{
    if (size == 0)
        return true;
    int64_t at = 0;
    while (at < p->n && p->free[at].offset < offset)
        at++;
    const bool left = at > 0 && p->free[at - 1].offset + p->free[at - 1].size == offset;
    const bool right = at < p->n && offset + size == p->free[at].offset;
    if (left && right) {
        p->free[at - 1].size += size + p->free[at].size;
        erase(p, at);
    } else if (left)
        p->free[at - 1].size += size;
    else if (right) {
        p->free[at].offset = offset;
        p->free[at].size += size;
    } else
        return insert(p, at, offset, size);
    return true;
}

/* Cuts [offset, offset + size) out of free range `at`, which holds it. */
static bool cut(pool *p, int64_t at, size_t offset, size_t size)
{
    const range r = p->free[at];
    const size_t before = offset - r.offset, after = r.offset + r.size - (offset + size);
    if (before > 0 && after > 0) {
        p->free[at].size = before;
        return insert(p, at + 1, offset + size, after);
    }
    if (before > 0)
        p->free[at].size = before;
    else if (after > 0)
        p->free[at] = (range){offset + size, after};
    else
        erase(p, at);
    return true;
}

/* Best fit: the smallest free range that holds the item; else the end of memory, grown (from the last range if that is free). */
static sotto_status take(pool *p, st_plan_item *item, sotto_error *err)
{
    int64_t best = -1;
    size_t best_offset = 0, offset;
    for (int64_t i = 0; i < p->n; i++) {
        const range r = p->free[i];
        if (!fit(p, r.offset, item, &offset) || offset - r.offset > r.size || r.size - (offset - r.offset) < item->size)
            continue;
        if (best < 0 || r.size < p->free[best].size) {
            best = i;
            best_offset = offset;
        }
    }
    if (best < 0) {
        const bool open = p->n > 0 && p->free[p->n - 1].offset + p->free[p->n - 1].size == p->total;
        const size_t start = open ? p->free[p->n - 1].offset : p->total;
        size_t end;
        if (!fit(p, start, item, &offset) || !st_add_size(offset, item->size, &end))
            return st_fail(err, SOTTO_E_MEMORY, "planner: the total of %zu bytes and %zu more overflows", p->total,
                           item->size);
        if (open)
            p->n--;
        if (offset > start && !insert(p, p->n, start, offset - start))
            return st_fail_memory(err, sizeof(range), "the planner");
        p->total = end;
        item->offset = offset;
        return SOTTO_OK;
    }
    item->offset = best_offset;
    return cut(p, best, best_offset, item->size) ? SOTTO_OK : st_fail_memory(err, sizeof(range), "the planner");
}

static bool can_reuse(const st_plan_item *items, int i, const bool *taken)
{
    const st_plan_item *item = &items[i];
    if (item->reuse < 0 || item->pinned)
        return false;
    const st_plan_item *parent = &items[item->reuse];
    return !parent->pinned && !taken[item->reuse] && parent->last == item->first && parent->first < item->first &&
           parent->size == item->size && parent->offset % item->alignment == 0;
}

static sotto_status check(const st_plan_item *items, int n_items, sotto_error *err)
{
    for (int i = 0; i < n_items; i++) {
        const st_plan_item *t = &items[i];
        const bool power = t->alignment != 0 && (t->alignment & (t->alignment - 1)) == 0;
        if (!power || t->first < 0 || t->last < t->first || t->reuse >= i || t->reuse < -1 ||
            (i > 0 && t->first < items[i - 1].first))
            return st_fail(err, SOTTO_E_ARGUMENT,
                           "planner: item %d: steps %d to %d, alignment %zu, reuse %d: out of order", i, t->first,
                           t->last, t->alignment, t->reuse);
    }
    return SOTTO_OK;
}

static sotto_status place(pool *p, st_plan_item *items, int n_items, bool *gone, bool *taken, sotto_error *err)
{
    for (int i = 0; i < n_items; i++)
        if (items[i].pinned && items[i].size > 0)
            ST_TRY(take(p, &items[i], err));
    for (int i = 0; i < n_items; i++) {
        st_plan_item *item = &items[i];
        if (item->pinned || item->size == 0)
            continue;
        /* what died in an earlier step; a parent that was taken over lives on as its child */
        for (int k = 0; k < i; k++) {
            if (gone[k] || taken[k] || items[k].pinned || items[k].last >= item->first)
                continue;
            gone[k] = true;
            if (!give_back(p, items[k].offset, items[k].size))
                return st_fail_memory(err, sizeof(range), "the planner");
        }
        if (can_reuse(items, i, taken)) {
            taken[item->reuse] = true;
            item->offset = items[item->reuse].offset;
        } else
            ST_TRY(take(p, item, err));
    }
    return SOTTO_OK;
}

sotto_status st_plan_place(st_plan_item *items, int n_items, size_t *total, sotto_error *err)
{
    return st_plan_place_chunked(items, n_items, SIZE_MAX, total, err);
}

sotto_status st_plan_place_chunked(st_plan_item *items, int n_items, size_t chunk, size_t *total, sotto_error *err)
{
    *total = 0;
    ST_TRY(check(items, n_items, err));
    for (int i = 0; i < n_items; i++)
        if (items[i].size > chunk)
            return st_fail(err, SOTTO_E_MEMORY, "planner: item %d of %zu bytes: a buffer holds at most %zu", i,
                           items[i].size, chunk);
    bool *marks = st_calloc(2 * (size_t)n_items + 1, sizeof *marks);
    if (!marks)
        return st_fail_memory(err, 2 * (size_t)n_items, "the planner");
    for (int i = 0; i < n_items; i++)
        items[i].offset = 0;
    pool p = {.chunk = chunk};
    const sotto_status status = place(&p, items, n_items, marks, marks + n_items, err);
    st_free(p.free);
    st_free(marks);
    if (status == SOTTO_OK)
        *total = p.total;
    return status;
}
