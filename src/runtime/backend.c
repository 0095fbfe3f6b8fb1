/* backend.c: the registry of compiled-in backends, and opening one of their devices. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "runtime/runtime_impl.h"

enum { MAX_THREADS = 1024 };

#define BACKEND(symbol) extern const st_backend_impl symbol;
#include "runtime/backends.inc"
#undef BACKEND

static const st_backend_impl *const backends[] = {
#define BACKEND(symbol) &symbol,
#include "runtime/backends.inc"
#undef BACKEND
};
enum { N_BACKENDS = sizeof backends / sizeof *backends };

/* Device `index` counted over all backends of this interface version. */
static const st_backend_impl *find_index(int index, int *own)
{
    for (int b = 0; index >= 0 && b < N_BACKENDS; b++) {
        if (backends[b]->api_version != ST_BACKEND_API_VERSION)
            continue;
        const int n = backends[b]->device_count();
        if (index < n) {
            *own = index;
            return backends[b];
        }
        index -= n;
    }
    return NULL;
}

int sotto_device_count(void)
{
    int n = 0;
    for (int b = 0; b < N_BACKENDS; b++)
        if (backends[b]->api_version == ST_BACKEND_API_VERSION)
            n += backends[b]->device_count();
    return n;
}

sotto_status sotto_device_get(int index, sotto_device_info *out, sotto_error *err)
{
    if (!out)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_device_get: out is NULL");
    memset(out, 0, sizeof *out);
    int own;
    const st_backend_impl *impl = find_index(index, &own);
    if (!impl)
        return st_fail(err, SOTTO_E_NOT_FOUND, "device %d: expected 0 to %d", index, sotto_device_count() - 1);
    ST_TRY(impl->device_info(own, out, err));
    out->api_version = impl->api_version;
    return SOTTO_OK;
}

static sotto_status find_device(const char *id, const st_backend_impl **impl, int *own, sotto_error *err)
{
    const int n = sotto_device_count();
    const bool any = !id || !*id || strcmp(id, "auto") == 0;
    char known[256] = "";
    for (int i = 0; i < n; i++) {
        sotto_device_info info;
        ST_TRY(sotto_device_get(i, &info, err));
        if (any || strcmp(id, info.id) == 0) {
            *impl = find_index(i, own);
            return SOTTO_OK;
        }
        const size_t at = strlen(known);
        snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "", info.id);
    }
    return st_fail(err, SOTTO_E_NOT_FOUND, "device \"%s\": expected auto or one of %s", any ? "auto" : id, known);
}

sotto_status sotto_backend_open(const sotto_backend_options *options, sotto_backend **out, sotto_error *err)
{
    static const sotto_backend_options defaults = {0};
    if (!out)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_backend_open: out is NULL");
    *out = NULL;
    const sotto_backend_options *o = options ? options : &defaults;
    if (o->n_threads < 0 || o->n_threads > MAX_THREADS)
        return st_fail(err, SOTTO_E_ARGUMENT, "n_threads: %d, expected 0 (all cores) to %d", o->n_threads,
                       (int)MAX_THREADS);
    const st_backend_impl *impl;
    int own;
    ST_TRY(find_device(o->device, &impl, &own, err));
    sotto_backend *b = st_calloc(1, sizeof *b);
    if (!b)
        return st_fail_memory(err, sizeof *b, "a backend");
    const sotto_status status = impl->open(own, o, &b->main.state, err);
    if (status != SOTTO_OK) {
        st_free(b);
        return status;
    }
    b->main.impl = impl;
    b->logger = o->logger;
    impl->describe(b->main.state, b->description, sizeof b->description);
    *out = b;
    return SOTTO_OK;
}

sotto_status st_backend_fallback(sotto_backend *backend, st_runner *out, sotto_error *err)
{
    if (!backend->fallback.impl) {
        const st_backend_impl *last = backends[N_BACKENDS - 1]; /* the reference has every operation */
        const sotto_backend_options o = {.logger = backend->logger};
        ST_TRY(last->open(0, &o, &backend->fallback.state, err));
        backend->fallback.impl = last;
    }
    *out = backend->fallback;
    return SOTTO_OK;
}

void sotto_backend_free(sotto_backend *backend)
{
    if (!backend)
        return;
    if (backend->fallback.impl)
        backend->fallback.impl->close(backend->fallback.state);
    backend->main.impl->close(backend->main.state);
    st_free(backend);
}

const char *sotto_backend_description(const sotto_backend *backend)
{
    return backend ? backend->description : "";
}

sotto_dtype sotto_backend_preferred_weights(const sotto_backend *backend)
{
    const st_runner *r = backend ? &backend->main : NULL;
    return r && r->impl->preferred_weights ? r->impl->preferred_weights(r->state) : SOTTO_F32;
}

sotto_status sotto_arena_create(sotto_backend *backend, sotto_arena **out, sotto_error *err)
{
    if (!backend || !out)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_arena_create: backend or out is NULL");
    *out = st_calloc(1, sizeof **out);
    if (!*out)
        return st_fail_memory(err, sizeof **out, "an arena");
    (*out)->backend = backend;
    return SOTTO_OK;
}

void sotto_arena_free(sotto_arena *arena)
{
    if (!arena)
        return;
    if (arena->buffer.impl)
        arena->buffer.impl->buffer_free(&arena->buffer);
    st_free(arena);
}

uint64_t sotto_arena_bytes(const sotto_arena *arena)
{
    return arena ? arena->buffer.size : 0;
}

sotto_status st_arena_reserve(sotto_arena *arena, size_t size, sotto_error *err)
{
    if (arena->buffer.impl && arena->buffer.size >= size)
        return SOTTO_OK;
    const st_runner r = arena->backend->main;
    const size_t max = r.impl->buffer_traits(r.state, ST_BUFFER_COMPUTE).max_size;
    if (size > max)
        return st_fail(err, SOTTO_E_MEMORY, "compute memory: %zu bytes, the device's buffers hold at most %zu", size,
                       max);
    st_buffer fresh = {0};
    if (arena->buffer.impl) { /* freed first: the old contents are not wanted, and both at once may not fit */
        arena->buffer.impl->buffer_free(&arena->buffer);
        memset(&arena->buffer, 0, sizeof arena->buffer);
    }
    ST_TRY(r.impl->buffer_alloc(r.state, ST_BUFFER_COMPUTE, size > 0 ? size : 1, &fresh, err));
    fresh.impl = r.impl;
    fresh.usage = ST_BUFFER_COMPUTE;
    arena->buffer = fresh;
    return SOTTO_OK;
}
