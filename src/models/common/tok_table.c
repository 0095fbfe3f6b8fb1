#include "models/common/tok_table.h"

#include <string.h>

#include "base/alloc.h"
#include "base/prefetch.h"
#include "base/status.h"

/* Eight bytes at a time. */
static uint32_t hash_bytes(const char *p, size_t n)
{
    uint64_t h = 0x9e3779b97f4a7c15u * (n + 1), word;
    for (; n >= 8; p += 8, n -= 8) {
        memcpy(&word, p, 8);
        h = (h ^ word) * 0xd6e8feb86659fd93u;
        h ^= h >> 32;
    }
    word = 0;
    for (size_t i = 0; i < n; i++)
        word = word << 8 | (uint8_t)p[i];
    h = (h ^ word) * 0xd6e8feb86659fd93u;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    return (uint32_t)(h >> 32);
}

/* The slot of a string, or the empty one where it belongs. */
static uint32_t slot_of(const st_tok_table *t, const char *bytes, size_t n, uint32_t hash)
{
    uint32_t i = hash & t->mask;
    for (; t->slots[i].number; i = (i + 1) & t->mask) {
        size_t length;
        if (t->slots[i].hash != hash)
            continue;
        const char *other = st_tok_table_get(t, (int32_t)(t->slots[i].number - 1), &length);
        if (length == n && memcmp(other, bytes, n) == 0)
            break;
    }
    return i;
}

int32_t st_tok_table_find(const st_tok_table *t, const char *bytes, size_t n)
{
    if (n == 0 || n > t->longest)
        return -1;
    return (int32_t)t->slots[slot_of(t, bytes, n, hash_bytes(bytes, n))].number - 1;
}

sotto_status st_tok_table_build(st_tok_table *t, const char *blob, const uint32_t *offset, int32_t n, sotto_error *err)
{
    *t = (st_tok_table){.blob = blob, .offset = offset, .n = n, .twice = -1};
    const uint32_t n_slots = st_tok_slots(n);
    t->mask = n_slots - 1;
    t->slots = st_calloc(n_slots, sizeof *t->slots);
    if (!t->slots)
        return st_fail_memory(err, n_slots * sizeof *t->slots, "the table of tokens");
    enum { AHEAD = 16 }; /* strings whose slots are on their way from memory */
    uint32_t hashes[AHEAD] = {0};
    for (int32_t next = 0; next < n + AHEAD; next++) {
        const int32_t id = next - AHEAD;
        size_t length;
        if (id >= 0) {
            const char *bytes = st_tok_table_get(t, id, &length);
            const uint32_t hash = hashes[id % AHEAD], i = length > 0 ? slot_of(t, bytes, length, hash) : 0;
            if (length > 0 && t->slots[i].number == 0)
                t->slots[i] = (struct st_tok_slot){(uint32_t)id + 1, hash};
            else if (length > 0 && t->twice < 0)
                t->twice = id;
        }
        if (next < n) {
            const char *bytes = st_tok_table_get(t, next, &length);
            t->longest = length > t->longest ? length : t->longest;
            hashes[next % AHEAD] = hash_bytes(bytes, length);
            st_prefetch(&t->slots[hashes[next % AHEAD] & t->mask]);
        }
    }
    return SOTTO_OK;
}

void st_tok_table_free(st_tok_table *t)
{
    st_free(t->slots);
    *t = (st_tok_table){0};
}
