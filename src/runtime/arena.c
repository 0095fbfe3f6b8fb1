/* arena.c: compute memory that plans share, for each space of a backend. */
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "runtime/runtime_impl.h"

/* Parts of a space begin at multiples of this, so that every alignment that a device may ask for holds across them. */
enum { PART_STEP = 1 << 16 };

static size_t chunk_size(const st_runner *r)
{
    const st_buffer_traits traits = r->impl->buffer_traits(r->state, ST_BUFFER_COMPUTE);
    const size_t step = traits.max_size > PART_STEP ? PART_STEP : traits.alignment;
    return traits.max_size / step * step;
}

sotto_status sotto_arena_create(sotto_backend *backend, sotto_arena **out, sotto_error *err)
{
    if (!backend || !out)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_arena_create: backend or out is NULL");
    *out = NULL;
    sotto_arena *a = st_calloc(1, sizeof *a);
    if (a)
        a->space = st_calloc((size_t)backend->n_device, sizeof *a->space);
    if (!a || !a->space) {
        st_free(a);
        return st_fail_memory(err, sizeof *a, "an arena");
    }
    a->backend = backend;
    for (int i = 0; i < backend->n_device; i++)
        a->space[i].chunk = chunk_size(&backend->device[i]);
    *out = a;
    return SOTTO_OK;
}

static void release(st_buffer *buffer)
{
    if (buffer->size == 0)
        return;
    buffer->impl->buffer_free(buffer);
    *buffer = (st_buffer){.impl = buffer->impl, .device = buffer->device, .usage = buffer->usage};
}

void sotto_arena_free(sotto_arena *arena)
{
    if (!arena)
        return;
    for (int i = 0; i < arena->backend->n_device; i++) {
        st_space *s = &arena->space[i];
        for (int64_t k = 0; k < s->n_part; k++) {
            release(s->part[k]);
            st_free(s->part[k]);
        }
        st_free(s->part);
    }
    st_free(arena->space);
    st_free(arena);
}

uint64_t sotto_arena_bytes(const sotto_arena *arena)
{
    uint64_t n = 0;
    for (int i = 0; arena && i < arena->backend->n_device; i++)
        for (int64_t k = 0; k < arena->space[i].n_part; k++)
            n += arena->space[i].part[k]->size;
    return n;
}

st_buffer *st_arena_part(sotto_arena *arena, int space, int64_t part)
{
    st_space *s = &arena->space[space];
    const st_runner *r = &arena->backend->device[space];
    while (s->n_part <= part) {
        if (!st_grow(&s->part, &s->cap_part, s->n_part + 1, sizeof *s->part))
            return NULL;
        st_buffer *b = st_calloc(1, sizeof *b);
        if (!b)
            return NULL;
        *b = (st_buffer){.impl = r->impl, .device = r->index, .usage = ST_BUFFER_COMPUTE};
        s->part[s->n_part++] = b;
    }
    return s->part[part];
}

sotto_status st_buffer_allocate(const st_runner *r, st_buffer_usage usage, size_t size, st_buffer *buffer,
                                sotto_error *err)
{
    st_buffer fresh = {0};
    ST_TRY(r->impl->buffer_alloc(r->state, usage, size > 0 ? size : 1, &fresh, err));
    fresh.impl = r->impl;
    fresh.device = r->index;
    fresh.usage = usage;
    fresh.size = size > 0 ? size : 1;
    *buffer = fresh;
    return SOTTO_OK;
}

sotto_status st_arena_reserve(sotto_arena *arena, int space, size_t size, sotto_error *err)
{
    st_space *s = &arena->space[space];
    st_runner *r = &arena->backend->device[space];
    int64_t k = 0;
    for (size_t at = 0; at < size || (size == 0 && k == 0); at += s->chunk, k++) {
        const size_t need = size - at < s->chunk ? size - at : s->chunk;
        st_buffer *b = st_arena_part(arena, space, k);
        if (!b)
            return st_fail_memory(err, sizeof *b, "a part of an arena");
        if (b->size >= need && b->size > 0)
            continue;
        ST_TRY(st_runner_sync(r, err));
        release(b); /* first: the old contents are not wanted, and both at once may not fit */
        arena->epoch++;
        ST_TRY(st_buffer_allocate(r, ST_BUFFER_COMPUTE, need, b, err));
        if (at + need == size)
            break; /* no overflow of `at` where a chunk is all there can be */
    }
    return SOTTO_OK;
}

sotto_status st_arena_poison(sotto_arena *arena, sotto_error *err)
{
    enum { PIECE = 4096 };
    char bytes[PIECE];
    memset(bytes, 0xff, sizeof bytes);
    for (int i = 0; i < arena->backend->n_device; i++) {
        const st_runner *r = &arena->backend->device[i];
        for (int64_t k = 0; k < arena->space[i].n_part; k++) {
            st_buffer *b = arena->space[i].part[k];
            for (size_t at = 0; at < b->size; at += PIECE)
                ST_TRY(r->impl->set(r->state, b, at, bytes, b->size - at < PIECE ? b->size - at : PIECE, err));
        }
    }
    return SOTTO_OK;
}
