#include "models/common/tok_table.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"

static uint32_t hash_bytes(const char *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (uint8_t)p[i]) * 0x100000001b3u;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    return (uint32_t)(h >> 32);
}

int32_t st_tok_table_find(const st_tok_table *t, const char *bytes, size_t n)
{
    if (n == 0 || n > t->longest)
        return -1;
    for (uint32_t i = hash_bytes(bytes, n) & t->mask; t->slots[i]; i = (i + 1) & t->mask) {
        size_t length;
        const char *other = st_tok_table_get(t, (int32_t)(t->slots[i] - 1), &length);
        if (length == n && memcmp(other, bytes, n) == 0)
            return (int32_t)(t->slots[i] - 1);
    }
    return -1;
}

sotto_status st_tok_table_build(st_tok_table *t, const char *blob, const uint32_t *offset, int32_t n, sotto_error *err)
{
    *t = (st_tok_table){.blob = blob, .offset = offset, .n = n, .twice = -1};
    const uint32_t n_slots = st_tok_slots(n);
    t->mask = n_slots - 1;
    t->slots = st_calloc(n_slots, sizeof *t->slots);
    if (!t->slots)
        return st_fail_memory(err, n_slots * sizeof *t->slots, "the table of tokens");
    for (int32_t id = 0; id < n; id++) {
        size_t length;
        (void)st_tok_table_get(t, id, &length);
        if (length > t->longest)
            t->longest = length;
    }
    for (int32_t id = 0; id < n; id++) {
        size_t length;
        const char *bytes = st_tok_table_get(t, id, &length);
        if (length == 0)
            continue;
        if (st_tok_table_find(t, bytes, length) >= 0) {
            if (t->twice < 0)
                t->twice = id;
            continue;
        }
        uint32_t i = hash_bytes(bytes, length) & t->mask;
        while (t->slots[i])
            i = (i + 1) & t->mask;
        t->slots[i] = (uint32_t)id + 1;
    }
    return SOTTO_OK;
}

void st_tok_table_free(st_tok_table *t)
{
    st_free(t->slots);
    *t = (st_tok_table){0};
}
