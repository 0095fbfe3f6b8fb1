/* store.c: named tensors that outlive graphs, in buffers of one or several devices. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/status.h"
#include "quant/quant.h"
#include "runtime/runtime_impl.h"

enum { ROW_STEP = 32 }; /* matrices are cut between rows of such numbers: kernels work in tiles of 32 */
enum { GAP = 1 << 16 }; /* that may lie between two tensors of one view */

typedef struct store_buffer {
    st_buffer buffer; /* first: tensors point at it */
    int device;
    size_t size;     /* declared */
    uintptr_t begin; /* of a view of the host's memory; 0 = memory of its own */
} store_buffer;

/* A tensor whose rows are at their place. */
typedef struct placed {
    sotto_tensor *t;
    store_buffer *view;
    uintptr_t rows;
    sotto_tensor *whole; /* NULL, or the matrix of which it is the first piece */
} placed;

struct sotto_store {
    sotto_backend *backend;
    st_buffer_usage usage;
    st_arena *arena; /* of the tensors */
    int64_t n;       /* tensors */
    store_buffer **buffers;
    int64_t n_buffers, cap_buffers;
    placed *placed;
    int64_t n_placed, cap_placed;
    int device; /* of the tensors to come */
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
    s->device = usage == SOTTO_USAGE_CACHE && backend->kv >= 0 ? backend->kv : backend->main;
    *out = s;
    return SOTTO_OK;
}

void sotto_store_free(sotto_store *store)
{
    if (!store)
        return;
    for (int64_t i = 0; i < store->n_buffers; i++) {
        if (store->buffers[i]->buffer.size > 0)
            store->buffers[i]->buffer.impl->buffer_free(&store->buffers[i]->buffer);
        st_free(store->buffers[i]);
    }
    st_free(store->buffers);
    st_free(store->placed);
    st_arena_free(store->arena);
    st_free(store);
}

static sotto_tensor *refuse(sotto_store *s, sotto_status code, const char *name, const char *why)
{
    if (s->error.code == SOTTO_OK)
        (void)st_fail(&s->error, code, "%s: %s", name, why);
    return NULL;
}

void sotto_store_set_device(sotto_store *store, int device)
{
    if (!store)
        return;
    if (device >= 0 && device < store->backend->n_device)
        store->device = device;
    else
        (void)refuse(store, SOTTO_E_ARGUMENT, "sotto_store_set_device", "there is no device of this number");
}

/* ---- declaring ---- */

static store_buffer *new_buffer(sotto_store *s, int device)
{
    const st_runner *r = &s->backend->device[device];
    store_buffer *b = NULL;
    if (st_grow(&s->buffers, &s->cap_buffers, s->n_buffers + 1, sizeof *s->buffers))
        b = st_calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->device = device;
    b->buffer = (st_buffer){.impl = r->impl, .device = r->index, .usage = s->usage};
    s->buffers[s->n_buffers++] = b;
    return b;
}

static size_t stored_bytes(const sotto_store *s, int device, sotto_tensor *t)
{
    const st_runner *r = &s->backend->device[device];
    return r->impl->stored_bytes ? r->impl->stored_bytes(r->state, s->usage, t) : sotto_tensor_bytes(t);
}

/* Room for a tensor at the end of the device's last buffer, or in a new one. */
static bool place(sotto_store *s, int device, sotto_tensor *t, const char *name)
{
    const st_runner *r = &s->backend->device[device];
    const st_buffer_traits traits = r->impl->buffer_traits(r->state, s->usage);
    const size_t bytes = stored_bytes(s, device, t);
    size_t offset = 0, end = 0;
    if (bytes > traits.max_size) {
        char why[128];
        snprintf(why, sizeof why, "%zu bytes: buffers of %s hold at most %zu", bytes, r->id, traits.max_size);
        (void)refuse(s, SOTTO_E_MEMORY, name, why);
        return false;
    }
    store_buffer *b = NULL;
    for (int64_t i = s->n_buffers - 1; i >= 0 && !b; i--)
        b = s->buffers[i]->device == device && !s->buffers[i]->begin ? s->buffers[i] : NULL;
    if (!b || !st_align_size(b->size, traits.alignment, &offset) || !st_add_size(offset, bytes, &end) ||
        end > traits.max_size) {
        b = new_buffer(s, device);
        offset = 0;
        end = bytes;
    }
    if (!b) {
        (void)refuse(s, SOTTO_E_MEMORY, name, "no memory");
        return false;
    }
    t->buffer = &b->buffer;
    t->offset = offset;
    b->size = end;
    return true;
}

/* The pages around a tensor's rows, when the device may read them there. */
static bool pages_of(const sotto_store *s, int device, const sotto_tensor *t, const sotto_host_rows *at,
                     uintptr_t *begin, uintptr_t *end)
{
    const st_runner *r = &s->backend->device[device];
    const st_buffer_traits traits = r->impl->buffer_traits(r->state, s->usage);
    const uintptr_t rows = (uintptr_t)at->rows, memory = (uintptr_t)at->memory, page = traits.wrap_page;
    const size_t bytes = sotto_tensor_bytes(t);
    if (!r->impl->wrap_host || page == 0 || bytes < page || rows % traits.wrap_align != 0 || rows < memory ||
        at->bytes < bytes || rows - memory > at->bytes - bytes)
        return false;
    *begin = rows / page * page;
    *end = (rows + bytes + page - 1) / page * page;
    return *begin >= memory && *end - memory <= at->bytes && *end - *begin <= traits.max_size &&
           (!r->impl->stored_as_rows || r->impl->stored_as_rows(r->state, s->usage, t));
}

/* Into a view that it borders on, or one of its own: views overlap by a page where tensors share it. False: not possible. */
static bool place_over(sotto_store *s, int device, sotto_tensor *t, const sotto_host_rows *at)
{
    const st_runner *r = &s->backend->device[device];
    uintptr_t begin, end;
    if (!pages_of(s, device, t, at, &begin, &end) ||
        !st_grow(&s->placed, &s->cap_placed, s->n_placed + 1, sizeof *s->placed))
        return false;
    const size_t most = r->impl->buffer_traits(r->state, s->usage).max_size;
    store_buffer *view = NULL;
    for (int64_t i = s->n_buffers - 1; i >= 0 && !view; i--) {
        store_buffer *b = s->buffers[i];
        const uintptr_t first = b->begin < begin ? b->begin : begin,
                        last = b->begin + b->size > end ? b->begin + b->size : end;
        const bool near = b->begin && b->device == device && begin <= b->begin + b->size + GAP && b->begin <= end + GAP;
        if (near && last - first <= most) {
            b->begin = first;
            b->size = last - first;
            view = b;
        }
    }
    if (!view && !(view = new_buffer(s, device)))
        return false;
    if (!view->begin) {
        view->begin = begin;
        view->size = end - begin;
    }
    s->placed[s->n_placed++] = (placed){.t = t, .view = view, .rows = (uintptr_t)at->rows};
    t->buffer = &view->buffer;
    return true;
}

static sotto_tensor *declare(sotto_store *s, int device, const char *name, sotto_dtype dtype, int n_dims,
                             const int64_t *dim, uint32_t flags, const sotto_host_rows *at)
{
    sotto_tensor *t = st_arena_alloc(s->arena, sizeof *t);
    if (!t)
        return refuse(s, SOTTO_E_MEMORY, name, "no memory");
    if (!st_tensor_init(t, dtype, n_dims, dim))
        return refuse(s, SOTTO_E_ARGUMENT, name, "shape or type out of range");
    t->flags = ST_TENSOR_STORED | flags;
    snprintf(t->name, sizeof t->name, "%s", name);
    return (at && place_over(s, device, t, at)) || place(s, device, t, name) ? t : NULL;
}

/* ---- matrices in pieces ---- */

/* Rows that one buffer of the device takes of such a matrix, all of them when they fit. */
static int64_t rows_that_fit(const sotto_store *s, int device, const sotto_tensor *shape, int64_t n_rows)
{
    const st_runner *r = &s->backend->device[device];
    const size_t max = r->impl->buffer_traits(r->state, s->usage).max_size;
    for (int64_t rows = n_rows;;) {
        sotto_tensor t = *shape;
        const int64_t dim[2] = {shape->dim[0], rows};
        if (!st_tensor_init(&t, shape->dtype, 2, dim))
            return n_rows;
        t.flags = shape->flags;
        if (stored_bytes(s, device, &t) <= max || rows <= ROW_STEP)
            return rows;
        rows = (rows / 2 + ROW_STEP - 1) / ROW_STEP * ROW_STEP;
    }
}

/* Rows [from, to) that device `d` gets of n. */
static void share_of(const sotto_store *s, int d, int64_t n, int64_t *from, int64_t *to)
{
    const sotto_backend *b = s->backend;
    const bool by_row = b->split == SOTTO_SPLIT_ROW && b->device[s->device].share > 0;
    double before = 0;
    *from = 0;
    *to = d == s->device ? n : 0;
    if (!by_row)
        return;
    bool last = true;
    for (int i = 0; i < b->n_device; i++) {
        before += i < d ? b->device[i].share : 0;
        last = last && (i <= d || !(b->device[i].share > 0));
    }
    const double upto = before + b->device[d].share;
    *from = (int64_t)(before * (double)n / ROW_STEP + 0.5) * ROW_STEP;
    *to = last && b->device[d].share > 0 ? n : (int64_t)(upto * (double)n / ROW_STEP + 0.5) * ROW_STEP;
    *from = *from < n ? *from : n;
    *to = *to < n ? *to : n;
}

static int count_pieces(const sotto_store *s, const sotto_tensor *shape)
{
    int n = 0;
    for (int d = 0; d < s->backend->n_device; d++) {
        int64_t from, to;
        share_of(s, d, shape->dim[1], &from, &to);
        if (from < to) {
            const int64_t step = rows_that_fit(s, d, shape, to - from);
            n += (int)((to - from + step - 1) / step);
        }
    }
    return n;
}

/* Shape of a matrix to be; its dims 2 and 3 are 1, or it is no matrix to cut. */
static bool matrix_shape(const sotto_store *s, sotto_dtype dtype, int n_dims, const int64_t *dim, sotto_tensor *out)
{
    if (s->usage != ST_BUFFER_WEIGHTS || !st_tensor_init(out, dtype, n_dims, dim))
        return false;
    out->flags = ST_TENSOR_STORED | ST_TENSOR_MATRIX;
    return out->dim[2] == 1 && out->dim[3] == 1 && out->dim[1] > ROW_STEP && out->dim[0] > 0;
}

bool sotto_store_would_split(const sotto_store *store, sotto_dtype dtype, int n_dims, const int64_t *dim)
{
    sotto_tensor shape;
    return store && dim && matrix_shape(store, dtype, n_dims, dim, &shape) && count_pieces(store, &shape) > 1;
}

static sotto_tensor *declare_pieces(sotto_store *s, const char *name, const sotto_tensor *shape, int n,
                                    const sotto_host_rows *at)
{
    sotto_tensor *t = st_arena_alloc(s->arena, sizeof *t);
    st_split *split = st_arena_alloc(s->arena, sizeof *split);
    if (t && split)
        split->piece = st_arena_alloc(s->arena, (size_t)n * sizeof *split->piece);
    if (!t || !split || !split->piece)
        return refuse(s, SOTTO_E_MEMORY, name, "no memory");
    *t = *shape;
    t->flags |= ST_TENSOR_SPLIT;
    t->extra = split;
    snprintf(t->name, sizeof t->name, "%s", name);
    for (int d = 0; d < s->backend->n_device; d++) {
        int64_t from, to;
        share_of(s, d, shape->dim[1], &from, &to);
        const int64_t step = from < to ? rows_that_fit(s, d, shape, to - from) : 1;
        for (int64_t row = from; row < to; row += step) {
            char piece[ST_NAME_SIZE];
            snprintf(piece, sizeof piece, "%.40s/%d", name, split->n);
            const int64_t dim[2] = {shape->dim[0], to - row < step ? to - row : step};
            sotto_host_rows part = {0};
            if (at) {
                part = *at;
                part.rows = (const char *)at->rows + (size_t)row * sotto_dtype_row_bytes(shape->dtype, shape->dim[0]);
            }
            split->piece[split->n].row = row;
            split->piece[split->n].t = declare(s, d, piece, shape->dtype, 2, dim, ST_TENSOR_MATRIX, at ? &part : NULL);
            if (!split->piece[split->n].t)
                return NULL;
            split->n++;
        }
    }
    t->buffer = split->piece[0].t->buffer;
    for (int64_t i = 0; i < s->n_placed; i++)
        if (s->placed[i].t == split->piece[0].t)
            s->placed[i].whole = t;
    s->n++;
    return t;
}

sotto_tensor *sotto_store_add(sotto_store *store, const char *name, sotto_dtype dtype, int n_dims, const int64_t *dim,
                              bool matrix)
{
    return sotto_store_add_over(store, name, dtype, n_dims, dim, matrix, NULL);
}

sotto_tensor *sotto_store_add_over(sotto_store *store, const char *name, sotto_dtype dtype, int n_dims,
                                   const int64_t *dim, bool matrix, const sotto_host_rows *at)
{
    if (!store)
        return NULL;
    if (!name || !dim)
        return refuse(store, SOTTO_E_ARGUMENT, name ? name : "a tensor", "name or shape is NULL");
    if (store->allocated)
        return refuse(store, SOTTO_E_ARGUMENT, name, "declared after the store was allocated");
    if (at && (!at->rows || !at->memory || store->usage != ST_BUFFER_WEIGHTS))
        return refuse(store, SOTTO_E_ARGUMENT, name, "rows at their place are for weights, and not NULL");
    sotto_tensor shape;
    if (matrix && matrix_shape(store, dtype, n_dims, dim, &shape)) {
        const int n = count_pieces(store, &shape);
        if (n > 1)
            return declare_pieces(store, name, &shape, n, at);
    }
    sotto_tensor *t = declare(store, store->device, name, dtype, n_dims, dim,
                              matrix && store->usage == ST_BUFFER_WEIGHTS ? ST_TENSOR_MATRIX : 0u, at);
    store->n += t != NULL;
    return t;
}

uint64_t sotto_store_bytes(const sotto_store *store)
{
    uint64_t n = 0;
    for (int64_t i = 0; store && i < store->n_buffers; i++)
        n += store->buffers[i]->begin ? 0 : store->buffers[i]->size;
    return n;
}

uint64_t sotto_store_device_bytes(const sotto_store *store, int device)
{
    uint64_t n = 0;
    for (int64_t i = 0; store && i < store->n_buffers; i++)
        n += store->buffers[i]->device == device && !store->buffers[i]->begin ? store->buffers[i]->size : 0;
    return n;
}

uint64_t sotto_store_in_place_bytes(const sotto_store *store, int device)
{
    uint64_t n = 0;
    for (int64_t i = 0; store && i < store->n_placed; i++)
        n += device < 0 || store->placed[i].view->device == device ? sotto_tensor_bytes(store->placed[i].t) : 0;
    return n;
}

static bool is_placed(const sotto_store *store, const sotto_tensor *t)
{
    for (int64_t i = 0; i < store->n_placed; i++)
        if (store->placed[i].t == t)
            return true;
    return false;
}

bool sotto_store_in_place(const sotto_store *store, const sotto_tensor *t)
{
    bool any = store && t && is_placed(store, t);
    if (store && t && (t->flags & ST_TENSOR_SPLIT)) {
        const st_split *split = t->extra;
        for (int i = 0; i < split->n && !any; i++)
            any = is_placed(store, split->piece[i].t);
    }
    return any;
}

/* ---- memory ---- */

/* More than the device likes works, but slowly. */
static void warn_about_size(const sotto_store *s)
{
    for (int d = 0; d < s->backend->n_device; d++) {
        const st_runner *r = &s->backend->device[d];
        const size_t most = r->impl->buffer_traits(r->state, s->usage).recommended;
        const uint64_t need = sotto_store_device_bytes(s, d) + sotto_store_in_place_bytes(s, d);
        if (most > 0 && need > most)
            st_log(&s->backend->logger, SOTTO_LOG_WARNING,
                   "%s: %llu bytes of %s are more than the %zu that the device works well with", r->id,
                   (unsigned long long)need, s->usage == ST_BUFFER_WEIGHTS ? "weights" : "caches", most);
    }
}

sotto_status sotto_store_check(const sotto_store *store, sotto_error *err)
{
    if (!store)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_store_check: store is NULL");
    return store->error.code == SOTTO_OK ? SOTTO_OK : st_fail(err, store->error.code, "%s", store->error.text);
}

/* Its tensors get memory as if they had never been at their place. */
static sotto_status give_up_view(sotto_store *s, store_buffer *view, sotto_error *err)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < s->n_placed; i++) {
        const placed p = s->placed[i];
        if (p.view != view)
            s->placed[kept++] = p;
        else if (!place(s, view->device, p.t, p.t->name))
            return sotto_store_check(s, err);
        else if (p.whole)
            p.whole->buffer = p.t->buffer;
    }
    s->n_placed = kept;
    view->size = 0;
    return SOTTO_OK;
}

static sotto_status make_views(sotto_store *s, sotto_error *err)
{
    for (int64_t i = 0; i < s->n_buffers; i++) {
        store_buffer *b = s->buffers[i];
        const st_runner *r = &s->backend->device[b->device];
        if (!b->begin || b->size == 0 || b->buffer.size > 0)
            continue;
        st_buffer fresh = {0};
        sotto_error why = {0};
        const sotto_status status =
            r->impl->wrap_host(r->state, s->usage, (void *)b->begin, b->size, &fresh, &why); /* only read */
        if (status != SOTTO_OK) {
            st_log(&s->backend->logger, SOTTO_LOG_DEBUG, "%s: %zu bytes of weights are copied: %s", r->id, b->size,
                   why.text);
            ST_TRY(give_up_view(s, b, err));
            continue;
        }
        b->buffer = (st_buffer){.impl = r->impl,
                                .device = r->index,
                                .usage = s->usage,
                                .size = b->size,
                                .host = fresh.host,
                                .handle = fresh.handle,
                                .wrapped = true};
    }
    for (int64_t i = 0; i < s->n_placed; i++)
        s->placed[i].t->offset = s->placed[i].rows - s->placed[i].view->begin;
    return SOTTO_OK;
}

sotto_status sotto_store_allocate(sotto_store *store, sotto_error *err)
{
    ST_TRY(sotto_store_check(store, err));
    if (store->allocated)
        return SOTTO_OK;
    warn_about_size(store);
    ST_TRY(make_views(store, err));
    for (int64_t i = 0; i < store->n_buffers; i++) {
        store_buffer *b = store->buffers[i];
        st_runner *r = &store->backend->device[b->device];
        if (b->begin)
            continue;
        if (b->buffer.size == 0) { /* else kept from a call that failed later */
            const sotto_status status = st_buffer_allocate(r, store->usage, b->size, &b->buffer, err);
            if (status != SOTTO_OK)
                return st_fail_context(err, status, "%s", r->id);
        }
        if (store->usage == ST_BUFFER_CACHE)
            ST_TRY(r->impl->fill_zero(r->state, &b->buffer, err));
    }
    store->allocated = true;
    return SOTTO_OK;
}

static int device_of(const sotto_store *store, const sotto_tensor *t)
{
    for (int64_t i = 0; t && i < store->n_buffers; i++)
        if (t->buffer == &store->buffers[i]->buffer)
            return store->buffers[i]->device;
    return -1;
}

static bool owns(const sotto_store *store, const sotto_tensor *t)
{
    return device_of(store, t) >= 0 && (t->flags & ST_TENSOR_STORED) && !t->view_of;
}

static sotto_status upload(sotto_store *store, sotto_tensor *t, int64_t row, int64_t n_rows, sotto_dtype dtype,
                           const void *data, sotto_error *err)
{
    const st_runner *r = &store->backend->device[device_of(store, t)];
    return is_placed(store, t) ? SOTTO_OK : r->impl->upload(r->state, t, row, n_rows, dtype, data, err);
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
    const bool from_any = st_is_plain_float(dtype) || sotto_dtype_block(dtype) > 1;
    const bool convertible = (scaled ? from_any : dtype == t->dtype) ||
                             (st_is_plain_float(dtype) && st_is_plain_float(t->dtype)) ||
                             (sotto_dtype_block(dtype) > 1 && t->dtype == SOTTO_F32);
    const size_t row_bytes = sotto_dtype_row_bytes(dtype, t->dim[0]);
    if (!convertible || (t->dim[0] > 0 && row_bytes == 0))
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%s: rows of %s cannot be stored as %s", t->name,
                       sotto_dtype_name(dtype) ? sotto_dtype_name(dtype) : "an unknown type",
                       sotto_dtype_name(t->dtype));
    if (!(t->flags & ST_TENSOR_SPLIT))
        return upload(store, t, row, n_rows, dtype, data, err);
    const st_split *split = t->extra;
    for (int i = 0; i < split->n; i++) {
        sotto_tensor *piece = split->piece[i].t;
        const int64_t first = split->piece[i].row, end = first + piece->dim[1];
        const int64_t from = row > first ? row : first, to = row + n_rows < end ? row + n_rows : end;
        if (from < to)
            ST_TRY(upload(store, piece, from - first, to - from, dtype,
                          (const char *)data + (size_t)(from - row) * row_bytes, err));
    }
    return SOTTO_OK;
}

sotto_status sotto_store_download(sotto_store *store, const sotto_tensor *t, float *out, sotto_error *err)
{
    if (!store || !store->allocated || !owns(store, t) || !out)
        return st_fail(err, SOTTO_E_ARGUMENT,
                       "download: the store is not allocated, or the tensor is not of it, or out is NULL");
    if (!(t->flags & ST_TENSOR_SPLIT)) {
        const st_runner *r = &store->backend->device[device_of(store, t)];
        return r->impl->download_f32(r->state, t, out, err);
    }
    const st_split *split = t->extra;
    for (int i = 0; i < split->n; i++)
        ST_TRY(sotto_store_download(store, split->piece[i].t, out + split->piece[i].row * t->dim[0], err));
    return SOTTO_OK;
}

sotto_status sotto_store_clear(sotto_store *store, sotto_error *err)
{
    if (!store || !store->allocated || store->usage != ST_BUFFER_CACHE)
        return st_fail(err, SOTTO_E_ARGUMENT, "clear: expected an allocated cache store");
    for (int64_t i = 0; i < store->n_buffers; i++) {
        const st_runner *r = &store->backend->device[store->buffers[i]->device];
        ST_TRY(r->impl->fill_zero(r->state, &store->buffers[i]->buffer, err));
    }
    return SOTTO_OK;
}
