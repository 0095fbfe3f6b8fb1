/* store.c: named tensors that outlive graphs. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/status.h"
#include "runtime/runtime_impl.h"

struct sotto_store {
    sotto_backend *backend;
    st_buffer_usage usage;
    st_arena *arena; /* of the tensors */
    sotto_tensor **tensors;
    int64_t n, cap;
    size_t size;
    st_buffer buffer;
    bool allocated;
    sotto_error error; /* first error of declaring */
};

sotto_status sotto_store_create(sotto_backend *backend, sotto_usage usage, sotto_store **out, sotto_error *err)
{
    if (!backend || !out)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_store_create: backend or out is NULL");
    *out = NULL;
    sotto_store *s = st_calloc(1, sizeof *s);
    if (s)
        s->arena = st_arena_create();
    if (!s || !s->arena) {
        st_free(s);
        return st_fail_memory(err, sizeof *s, "a store");
    }
    s->backend = backend;
    s->usage = usage == SOTTO_USAGE_WEIGHTS ? ST_BUFFER_WEIGHTS : ST_BUFFER_CACHE;
    *out = s;
    return SOTTO_OK;
}

void sotto_store_free(sotto_store *store)
{
    if (!store)
        return;
    if (store->buffer.impl)
        store->buffer.impl->buffer_free(&store->buffer);
    st_arena_free(store->arena);
    st_free(store->tensors);
    st_free(store);
}

static sotto_tensor *refuse(sotto_store *s, sotto_status code, const char *name, const char *why)
{
    if (s->error.code == SOTTO_OK)
        (void)st_fail(&s->error, code, "%s: %s", name, why);
    return NULL;
}

sotto_tensor *sotto_store_add(sotto_store *store, const char *name, sotto_dtype dtype, int n_dims, const int64_t *dim,
                              bool matrix)
{
    if (!store)
        return NULL;
    if (!name || !dim)
        return refuse(store, SOTTO_E_ARGUMENT, name ? name : "a tensor", "name or shape is NULL");
    if (store->allocated)
        return refuse(store, SOTTO_E_ARGUMENT, name, "declared after the store was allocated");
    sotto_tensor *t = st_arena_alloc(store->arena, sizeof *t);
    if (!t || !st_grow(&store->tensors, &store->cap, store->n + 1, sizeof *store->tensors))
        return refuse(store, SOTTO_E_MEMORY, name, "no memory");
    if (!st_tensor_init(t, dtype, n_dims, dim))
        return refuse(store, SOTTO_E_ARGUMENT, name, "shape or type out of range");
    t->flags = ST_TENSOR_STORED | (matrix && store->usage == ST_BUFFER_WEIGHTS ? ST_TENSOR_MATRIX : 0u);
    t->buffer = &store->buffer;
    snprintf(t->name, sizeof t->name, "%s", name);
    const st_runner r = store->backend->main;
    const size_t bytes = r.impl->stored_bytes ? r.impl->stored_bytes(r.state, store->usage, t) : sotto_tensor_bytes(t);
    size_t offset, end;
    if (!st_align_size(store->size, r.impl->buffer_traits(r.state, store->usage).alignment, &offset) ||
        !st_add_size(offset, bytes, &end))
        return refuse(store, SOTTO_E_MEMORY, name, "the store's size overflows");
    t->offset = offset;
    store->size = end;
    store->tensors[store->n++] = t;
    return t;
}

uint64_t sotto_store_bytes(const sotto_store *store)
{
    return store ? store->size : 0;
}

sotto_status sotto_store_allocate(sotto_store *store, sotto_error *err)
{
    if (!store)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_store_allocate: store is NULL");
    if (store->error.code != SOTTO_OK)
        return st_fail(err, store->error.code, "%s", store->error.text);
    if (store->allocated)
        return SOTTO_OK;
    const st_runner r = store->backend->main;
    const size_t max = r.impl->buffer_traits(r.state, store->usage).max_size;
    if (store->size > max)
        return st_fail(err, SOTTO_E_MEMORY, "a store of %zu bytes: the device's buffers hold at most %zu", store->size,
                       max);
    ST_TRY(r.impl->buffer_alloc(r.state, store->usage, store->size > 0 ? store->size : 1, &store->buffer, err));
    store->buffer.impl = r.impl;
    store->buffer.usage = store->usage;
    store->allocated = true;
    return store->usage == ST_BUFFER_CACHE ? r.impl->fill_zero(r.state, &store->buffer, err) : SOTTO_OK;
}

static bool owns(const sotto_store *store, const sotto_tensor *t)
{
    return t && t->buffer == &store->buffer;
}

static bool is_plain_float(sotto_dtype t)
{
    return t == SOTTO_F32 || t == SOTTO_F16 || t == SOTTO_BF16;
}

sotto_status sotto_store_upload(sotto_store *store, sotto_tensor *t, int64_t row, int64_t n_rows, sotto_dtype dtype,
                                const void *data, sotto_error *err)
{
    if (!store || !store->allocated || !owns(store, t) || (!data && n_rows > 0))
        return st_fail(err, SOTTO_E_ARGUMENT,
                       "upload: the store is not allocated, or the tensor is not of it, or data is NULL");
    if (row < 0 || n_rows < 0 || row > st_tensor_n_rows(t) || n_rows > st_tensor_n_rows(t) - row)
        return st_fail(err, SOTTO_E_ARGUMENT, "%s: %lld rows from row %lld on, of %lld", t->name, (long long)n_rows,
                       (long long)row, (long long)st_tensor_n_rows(t));
    const bool scaled = t->dtype == SOTTO_I8 && (t->flags & ST_TENSOR_MATRIX);
    const bool from_any = is_plain_float(dtype) || sotto_dtype_block(dtype) > 1;
    const bool convertible = (scaled ? from_any : dtype == t->dtype) ||
                             (is_plain_float(dtype) && is_plain_float(t->dtype)) ||
                             (sotto_dtype_block(dtype) > 1 && t->dtype == SOTTO_F32);
    if (!convertible || (t->dim[0] > 0 && sotto_dtype_row_bytes(dtype, t->dim[0]) == 0))
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%s: rows of %s cannot be stored as %s", t->name,
                       sotto_dtype_name(dtype) ? sotto_dtype_name(dtype) : "an unknown type",
                       sotto_dtype_name(t->dtype));
    const st_runner r = store->backend->main;
    return r.impl->upload(r.state, t, row, n_rows, dtype, data, err);
}

sotto_status sotto_store_download(sotto_store *store, const sotto_tensor *t, float *out, sotto_error *err)
{
    if (!store || !store->allocated || !owns(store, t) || !out)
        return st_fail(err, SOTTO_E_ARGUMENT,
                       "download: the store is not allocated, or the tensor is not of it, or out is NULL");
    const st_runner r = store->backend->main;
    return r.impl->download_f32(r.state, t, out, err);
}

sotto_status sotto_store_clear(sotto_store *store, sotto_error *err)
{
    if (!store || !store->allocated || store->usage != ST_BUFFER_CACHE)
        return st_fail(err, SOTTO_E_ARGUMENT, "clear: expected an allocated cache store");
    const st_runner r = store->backend->main;
    return r.impl->fill_zero(r.state, &store->buffer, err);
}
