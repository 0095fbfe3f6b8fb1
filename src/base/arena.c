/* arena.c: a list of chunks that double up to 1 MiB. A block larger than a quarter of the next chunk gets a chunk of its
 * own, so that little is wasted at the end of the current one. */
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"

enum { ALIGNMENT = 16, FIRST_CHUNK = 4096, LARGEST_CHUNK = 1 << 20 };

typedef struct chunk {
    struct chunk *next;
    _Alignas(ALIGNMENT) uint8_t bytes[];
} chunk;

struct st_arena {
    chunk *chunks;
    uint8_t *at; /* free part of the newest shared chunk */
    size_t left, next_size;
};

_Static_assert(offsetof(chunk, bytes) == ALIGNMENT && sizeof(chunk) == ALIGNMENT, "a chunk's bytes begin aligned");

st_arena *st_arena_create(void)
{
    st_arena *const arena = st_calloc(1, sizeof *arena);
    if (arena)
        arena->next_size = FIRST_CHUNK;
    return arena;
}

void st_arena_free(st_arena *arena)
{
    if (!arena)
        return;
    for (chunk *c = arena->chunks; c;) {
        chunk *const next = c->next;
        st_free(c);
        c = next;
    }
    st_free(arena);
}

/* Zeroed bytes of a new chunk; NULL without memory. */
static uint8_t *add_chunk(st_arena *arena, size_t size)
{
    size_t total;
    if (!st_add_size(size, sizeof(chunk), &total))
        return NULL;
    chunk *const c = st_calloc(1, total);
    if (!c)
        return NULL;
    c->next = arena->chunks;
    arena->chunks = c;
    return c->bytes;
}

void *st_arena_alloc(st_arena *arena, size_t size)
{
    if (!st_align_size(size ? size : 1, ALIGNMENT, &size))
        return NULL;
    if (size > arena->left) {
        if (size > arena->next_size / 4)
            return add_chunk(arena, size);
        uint8_t *const bytes = add_chunk(arena, arena->next_size);
        if (!bytes)
            return NULL;
        arena->at = bytes;
        arena->left = arena->next_size;
        if (arena->next_size < LARGEST_CHUNK)
            arena->next_size *= 2;
    }
    void *const block = arena->at;
    arena->at += size;
    arena->left -= size;
    return block;
}

char *st_arena_strdup(st_arena *arena, const char *text, size_t n)
{
    size_t size;
    char *const copy = st_add_size(n, 1, &size) ? st_arena_alloc(arena, size) : NULL;
    if (copy && n)
        memcpy(copy, text, n);
    return copy;
}
