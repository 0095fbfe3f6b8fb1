#include "models/common/gbnf_sets.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { LAST_CHARACTER = 0x10ffff };

static uint64_t hash_bytes(const void *data, size_t n)
{
    const uint8_t *p = data;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    h ^= h >> 32;
    return h * 0xd6e8feb86659fd93u >> 16;
}

/* Makes room for one more in a table of index + 1 by hash, at most half full. *empty: the table is new and empty. */
static bool grow_slots(int32_t **slots, int64_t *n_slots, int64_t used, bool *empty)
{
    *empty = false;
    if (2 * (used + 1) <= *n_slots)
        return true;
    const int64_t n = *n_slots ? 2 * *n_slots : 64;
    int32_t *grown = st_calloc((size_t)n, sizeof *grown);
    if (!grown)
        return false;
    st_free(*slots);
    *slots = grown;
    *n_slots = n;
    *empty = true;
    return true;
}

static void put_slot(int32_t *slots, int64_t n_slots, uint64_t hash, int64_t index)
{
    uint64_t i = hash & (uint64_t)(n_slots - 1);
    while (slots[i])
        i = (i + 1) & (uint64_t)(n_slots - 1);
    slots[i] = (int32_t)index + 1;
}

/* ---- rules ---- */

int32_t st_gbnf_find(const st_gbnf *g, const char *name, size_t length)
{
    if (g->n_rule_slots == 0)
        return -1;
    const uint64_t mask = (uint64_t)(g->n_rule_slots - 1);
    for (uint64_t i = hash_bytes(name, length) & mask; g->rule_slots[i]; i = (i + 1) & mask) {
        const st_gbnf_rule *r = &g->rules[g->rule_slots[i] - 1];
        if (r->length == length && memcmp(g->text + r->name, name, length) == 0)
            return g->rule_slots[i] - 1;
    }
    return -1;
}

int32_t st_gbnf_rule_index(st_gbnf *g, size_t name, size_t length)
{
    const int32_t found = st_gbnf_find(g, g->text + name, length);
    bool empty;
    if (found >= 0)
        return found;
    if (!st_grow(&g->rules, &g->rules_capacity, g->n_rules + 1, sizeof *g->rules) ||
        !grow_slots(&g->rule_slots, &g->n_rule_slots, g->n_rules, &empty))
        return -1;
    g->rules[g->n_rules] = (st_gbnf_rule){name, length, -1};
    for (int64_t i = empty ? 0 : g->n_rules; i <= g->n_rules; i++)
        put_slot(g->rule_slots, g->n_rule_slots, hash_bytes(g->text + g->rules[i].name, g->rules[i].length), i);
    return (int32_t)g->n_rules++;
}

/* ---- sets ---- */

static int by_lo(const void *a, const void *b)
{
    const st_char_range *p = a, *q = b;
    return (p->lo > q->lo) - (p->lo < q->lo);
}

int64_t st_char_ranges_normalise(st_char_range *r, int64_t n, bool negated)
{
    int64_t m = 0;
    if (n > 1)
        qsort(r, (size_t)n, sizeof *r, by_lo);
    for (int64_t i = 0; i < n; i++) {
        if (m > 0 && r[i].lo <= r[m - 1].hi + 1)
            r[m - 1].hi = r[i].hi > r[m - 1].hi ? r[i].hi : r[m - 1].hi;
        else
            r[m++] = r[i];
    }
    if (!negated)
        return m;
    uint32_t from = 0;
    int64_t k = 0;
    for (int64_t i = 0; i < m; i++) { /* the gap before range i never lies behind it in the array */
        const st_char_range range = r[i];
        if (range.lo > from)
            r[k++] = (st_char_range){from, range.lo - 1};
        from = range.hi + 1;
    }
    if (from <= LAST_CHARACTER)
        r[k++] = (st_char_range){from, LAST_CHARACTER};
    return k;
}

int32_t st_gbnf_set_index(st_gbnf *g, const st_char_range *ranges, int64_t n)
{
    const size_t bytes = (size_t)n * sizeof *ranges;
    const uint64_t mask = (uint64_t)(g->n_set_slots - 1);
    bool empty;
    if (g->n_set_slots > 0)
        for (uint64_t i = hash_bytes(ranges, bytes) & mask; g->set_slots[i]; i = (i + 1) & mask) {
            const st_char_set *s = &g->sets[g->set_slots[i] - 1];
            if (s->n == n && memcmp(g->ranges + s->first, ranges, bytes) == 0)
                return g->set_slots[i] - 1;
        }
    if (!st_grow(&g->sets, &g->sets_capacity, g->n_sets + 1, sizeof *g->sets) ||
        !st_grow(&g->ranges, &g->ranges_capacity, g->n_ranges + n, sizeof *g->ranges) ||
        !grow_slots(&g->set_slots, &g->n_set_slots, g->n_sets, &empty))
        return -1;
    memcpy(g->ranges + g->n_ranges, ranges, bytes);
    g->sets[g->n_sets] = (st_char_set){(int32_t)g->n_ranges, (int32_t)n};
    g->n_ranges += n;
    for (int64_t i = empty ? 0 : g->n_sets; i <= g->n_sets; i++)
        put_slot(g->set_slots, g->n_set_slots,
                 hash_bytes(g->ranges + g->sets[i].first, (size_t)g->sets[i].n * sizeof *ranges), i);
    return (int32_t)g->n_sets++;
}
