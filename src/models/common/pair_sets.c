#include "models/common/pair_sets.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

bool st_pairs_add(st_pairs *p, int32_t a, int32_t b)
{
    if (!st_grow(&p->list, &p->capacity, p->n + 1, sizeof *p->list))
        return false;
    p->list[p->n++] = (st_pair){a, b};
    return true;
}

static int by_both(const void *x, const void *y)
{
    const st_pair *p = x, *q = y;
    return p->a != q->a ? (p->a > q->a) - (p->a < q->a) : (p->b > q->b) - (p->b < q->b);
}

void st_pairs_sort(st_pairs *p)
{
    int64_t n = 0;
    if (p->n > 16) {
        qsort(p->list, (size_t)p->n, sizeof *p->list, by_both);
    } else {
        for (int64_t i = 1; i < p->n; i++) {
            const st_pair moved = p->list[i];
            int64_t at = i;
            for (; at > 0 && by_both(&moved, &p->list[at - 1]) < 0; at--)
                p->list[at] = p->list[at - 1];
            p->list[at] = moved;
        }
    }
    for (int64_t i = 0; i < p->n; i++)
        if (n == 0 || by_both(&p->list[i], &p->list[n - 1]) != 0)
            p->list[n++] = p->list[i];
    p->n = n;
}

static uint64_t hash_pairs(const st_pair *p, int64_t n)
{
    uint64_t h = (uint64_t)n;
    for (int64_t i = 0; i < n; i++) {
        h ^= (uint64_t)(uint32_t)p[i].a << 32 | (uint32_t)p[i].b;
        h *= 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    h *= 0xd6e8feb86659fd93u;
    return h ^ h >> 32;
}

static void put(st_pair_sets *s, int64_t index)
{
    const uint64_t mask = (uint64_t)(s->n_slots - 1);
    uint64_t i = hash_pairs(s->members.list + s->first[index], s->first[index + 1] - s->first[index]) & mask;
    while (s->slots[i])
        i = (i + 1) & mask;
    s->slots[i] = (int32_t)index + 1;
}

static bool grow_slots(st_pair_sets *s)
{
    if (2 * (s->n + 1) <= s->n_slots)
        return true;
    const int64_t n = s->n_slots ? 2 * s->n_slots : 64;
    int32_t *slots = st_calloc((size_t)n, sizeof *slots);
    if (!slots)
        return false;
    st_free(s->slots);
    s->slots = slots;
    s->n_slots = n;
    for (int64_t i = 0; i < s->n; i++)
        put(s, i);
    return true;
}

int32_t st_pair_sets_index(st_pair_sets *s, const st_pair *pairs, int64_t n)
{
    const size_t bytes = (size_t)n * sizeof *pairs;
    if (s->n_slots > 0) {
        const uint64_t mask = (uint64_t)(s->n_slots - 1);
        for (uint64_t i = hash_pairs(pairs, n) & mask; s->slots[i]; i = (i + 1) & mask) {
            const int64_t index = s->slots[i] - 1, first = s->first[index];
            if (s->first[index + 1] - first == n && (n == 0 || memcmp(s->members.list + first, pairs, bytes) == 0))
                return (int32_t)index;
        }
    }
    if (s->n >= INT32_MAX - 1 || !grow_slots(s) || !st_grow(&s->first, &s->first_capacity, s->n + 2, sizeof *s->first) ||
        !st_grow(&s->members.list, &s->members.capacity, s->members.n + n, sizeof *pairs))
        return -1;
    if (n > 0)
        memcpy(s->members.list + s->members.n, pairs, bytes);
    s->first[s->n] = s->members.n;
    s->members.n += n;
    s->first[s->n + 1] = s->members.n;
    put(s, s->n);
    return (int32_t)s->n++;
}

const st_pair *st_pair_sets_get(const st_pair_sets *s, int32_t index, int64_t *n)
{
    *n = s->first[index + 1] - s->first[index];
    return s->members.list + s->first[index];
}

size_t st_pair_sets_size(const st_pair_sets *s)
{
    return (size_t)s->members.n * sizeof *s->members.list + (size_t)s->n * sizeof *s->first +
           (size_t)s->n_slots * sizeof *s->slots;
}

void st_pair_sets_free(st_pair_sets *s)
{
    st_free(s->members.list);
    st_free(s->first);
    st_free(s->slots);
    *s = (st_pair_sets){0};
}
