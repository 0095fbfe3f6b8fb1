#include "models/common/tok_merge.h"

#include "base/alloc.h"

static bool pair_before(const st_merge_pair *a, const st_merge_pair *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->left < b->left;
}

static bool heap_push(st_merge *m, st_merge_pair p)
{
    if (!st_grow(&m->heap, &m->heap_capacity, m->n_heap + 1, sizeof *m->heap))
        return false;
    int64_t i = m->n_heap++;
    for (; i > 0 && pair_before(&p, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
        m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = p;
    return true;
}

static st_merge_pair heap_pop(st_merge *m)
{
    const st_merge_pair top = m->heap[0], p = m->heap[--m->n_heap];
    int64_t i = 0;
    for (;;) {
        int64_t child = 2 * i + 1;
        if (child >= m->n_heap)
            break;
        if (child + 1 < m->n_heap && pair_before(&m->heap[child + 1], &m->heap[child]))
            child++;
        if (!pair_before(&m->heap[child], &p))
            break;
        m->heap[i] = m->heap[child];
        i = child;
    }
    m->heap[i] = p;
    return top;
}

static bool push_pair(st_merge *m, const st_merge_rule *rule, const char *piece, int32_t left)
{
    if (left < 0 || m->parts[left].next < 0)
        return true;
    const st_merge_part *l = &m->parts[left], *r = &m->parts[l->next];
    st_merge_pair p = {0, left, l->length + r->length, -1};
    if (!rule->join(rule->user, piece + left, (size_t)p.length, l->id, r->id, &p.rank, &p.id))
        return true;
    return heap_push(m, p);
}

static bool join(st_merge *m, const st_merge_rule *rule, const char *piece, const st_merge_pair *p)
{
    st_merge_part *l = &m->parts[p->left], *r = &m->parts[l->next];
    l->id = p->id;
    l->length += r->length;
    r->length = 0;
    l->next = r->next;
    if (l->next >= 0)
        m->parts[l->next].previous = p->left;
    return push_pair(m, rule, piece, l->previous) && push_pair(m, rule, piece, p->left);
}

bool st_merge_begin(st_merge *m, size_t n)
{
    m->n_heap = 0;
    return st_grow(&m->parts, &m->parts_capacity, (int64_t)n, sizeof *m->parts);
}

bool st_merge_run(st_merge *m, const st_merge_rule *rule, const char *piece)
{
    for (int32_t i = 0; i >= 0; i = m->parts[i].next)
        if (!push_pair(m, rule, piece, i))
            return false;
    while (m->n_heap > 0) {
        const st_merge_pair p = heap_pop(m);
        const st_merge_part *l = &m->parts[p.left];
        if (l->length > 0 && l->next >= 0 && l->length + m->parts[l->next].length == p.length &&
            !join(m, rule, piece, &p))
            return false;
    }
    return true;
}

void st_merge_free(st_merge *m)
{
    st_free(m->parts);
    st_free(m->heap);
    *m = (st_merge){0};
}
