/* cuda_memory.c: device memory, copies through pinned memory, events. */
#include <string.h>

#include "backends/gpu/api/cuda/cuda_device.h"
#include "base/alloc.h"
#include "base/status.h"

enum { NO_TIMING = 2 }; /* CU_EVENT_DISABLE_TIMING */

/* Within enter and leave. */
static sotto_status get_memory(st_cuda *c, st_cuda_memory *m, sotto_error *err)
{
    const int code = c->d->alloc(&m->address, m->bytes ? m->bytes : 1);
    if (code == ST_CU_NO_MEMORY)
        return st_fail(err, SOTTO_E_MEMORY, "cuda:%d has no %zu bytes (cuMemAlloc: error %d)", c->index, m->bytes, code);
    return st_cuda_check(c, code, "cuMemAlloc", err);
}

static sotto_status map_host(st_cuda *c, st_cuda_memory *m, sotto_error *err)
{
    const unsigned flags = ST_CU_HOST_PORTABLE | ST_CU_HOST_MAPPED | ST_CU_HOST_READ_ONLY;
    ST_TRY(st_cuda_check(c, c->d->host_register(m->host, m->bytes, flags), "cuMemHostRegister", err));
    const sotto_status status =
        st_cuda_check(c, c->d->host_address(&m->address, m->host, 0), "cuMemHostGetDevicePointer", err);
    if (status != SOTTO_OK)
        c->d->host_unregister(m->host);
    return status;
}

/* host NULL: memory of the device. */
static sotto_status make_memory(st_cuda *c, void *host, size_t bytes, void **memory, sotto_error *err)
{
    *memory = NULL;
    st_cuda_memory *m = st_calloc(1, sizeof *m);
    if (!m)
        return st_fail_memory(err, sizeof *m, "a buffer of device memory");
    *m = (st_cuda_memory){.d = c->d, .device = c->device, .bytes = bytes, .host = host};
    sotto_status status = st_cuda_enter(c, err);
    if (status == SOTTO_OK) {
        status = st_cuda_check(c, c->d->retain(&m->context, c->device), "cuDevicePrimaryCtxRetain", err);
        if (status == SOTTO_OK) {
            status = host ? map_host(c, m, err) : get_memory(c, m, err);
            if (status != SOTTO_OK)
                c->d->release(c->device);
        }
        st_cuda_leave(c);
    }
    if (status != SOTTO_OK) {
        st_free(m);
        return status;
    }
    *memory = m;
    return SOTTO_OK;
}

sotto_status st_cuda_alloc(void *device, size_t bytes, void **memory, sotto_error *err)
{
    return make_memory(device, NULL, bytes, memory, err);
}

sotto_status st_cuda_wrap(void *device, void *host, size_t bytes, void **memory, sotto_error *err)
{
    return make_memory(device, host, bytes, memory, err);
}

void st_cuda_free(void *memory)
{
    st_cuda_memory *m = memory;
    if (!m)
        return;
    const bool pushed = st_cuda_push(m->d, m->context);
    if (m->host)
        m->d->host_unregister(m->host);
    else
        m->d->free(m->address); /* waits for what is queued; nothing can be done about a failure */
    st_cuda_pop(m->d, pushed);
    m->d->release(m->device);
    st_free(m);
}

sotto_status st_cuda_staging_open(st_cuda *c, sotto_error *err)
{
    void *memory = NULL;
    if (c->d->host_alloc(&memory, (size_t)ST_CUDA_SLOT_BYTES * (ST_CUDA_SLOTS + ST_CUDA_READS)) != ST_CU_OK) {
        st_log(&c->logger, SOTTO_LOG_WARNING, "cuda:%d: no pinned memory for copies; they will be slower", c->index);
        return SOTTO_OK;
    }
    c->staging = memory;
    for (int i = 0; i < ST_CUDA_SLOTS; i++) {
        c->slot[i].memory = c->staging + (size_t)i * ST_CUDA_SLOT_BYTES;
        ST_TRY(st_cuda_check(c, c->d->event_create(&c->slot[i].done, NO_TIMING), "cuEventCreate", err));
    }
    for (int i = 0; i < ST_CUDA_READS; i++)
        ST_TRY(st_cuda_check(c, c->d->event_create(&c->read_done[i], NO_TIMING), "cuEventCreate", err));
    return SOTTO_OK;
}

void st_cuda_staging_close(st_cuda *c)
{
    for (int i = 0; i < ST_CUDA_SLOTS; i++)
        if (c->slot[i].done)
            c->d->event_destroy(c->slot[i].done);
    for (int i = 0; i < ST_CUDA_READS; i++)
        if (c->read_done[i])
            c->d->event_destroy(c->read_done[i]);
    if (c->staging)
        c->d->host_free(c->staging);
    st_free(c->pinned);
}

static bool is_pinned(const st_cuda *c, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (int64_t i = 0; i < c->n_pinned; i++)
        if (p >= c->pinned[i].begin && p < c->pinned[i].end && bytes <= (size_t)(c->pinned[i].end - p))
            return true;
    return false;
}

/* The next slot, empty: waits until the copies out of it are done. */
static sotto_status next_slot(st_cuda *c, sotto_error *err)
{
    st_cuda_slot *full = &c->slot[c->slot_now];
    ST_TRY(st_cuda_check(c, c->d->event_record(full->done, c->stream), "cuEventRecord", err));
    full->used = true;
    c->slot_now = (c->slot_now + 1) % ST_CUDA_SLOTS;
    c->slot_used = 0;
    st_cuda_slot *slot = &c->slot[c->slot_now];
    if (!slot->used)
        return SOTTO_OK;
    slot->used = false;
    return st_cuda_check(c, c->d->event_sync(slot->done), "cuEventSynchronize", err);
}

static sotto_status write_staged(st_cuda *c, st_cu_address to, const unsigned char *data, size_t bytes, sotto_error *err)
{
    while (bytes > 0) {
        if (c->slot_used == ST_CUDA_SLOT_BYTES ||
            (bytes <= ST_CUDA_SLOT_BYTES && bytes > ST_CUDA_SLOT_BYTES - c->slot_used))
            ST_TRY(next_slot(c, err));
        const size_t room = ST_CUDA_SLOT_BYTES - c->slot_used, n = bytes < room ? bytes : room;
        unsigned char *from = c->slot[c->slot_now].memory + c->slot_used;
        memcpy(from, data, n);
        ST_TRY(st_cuda_check(c, c->d->to_device(to, from, n, c->stream), "cuMemcpyHtoDAsync", err));
        const size_t aligned = (n + 63) & ~(size_t)63;
        c->slot_used = aligned < room ? c->slot_used + aligned : ST_CUDA_SLOT_BYTES;
        to += n, data += n, bytes -= n;
    }
    return SOTTO_OK;
}

sotto_status st_cuda_write(void *device, void *memory, size_t offset, const void *data, size_t bytes, sotto_error *err)
{
    st_cuda *c = device;
    const st_cu_address to = ((st_cuda_memory *)memory)->address + offset;
    if (bytes == 0)
        return SOTTO_OK;
    ST_TRY(st_cuda_enter(c, err));
    sotto_status status;
    if (c->staging && (bytes <= ST_CUDA_SLOT_BYTES || !is_pinned(c, data, bytes)))
        status = write_staged(c, to, data, bytes, err);
    else {
        /* From ordinary memory the driver stages before it returns; from pinned memory it must be waited for. */
        status = st_cuda_check(c, c->d->to_device(to, data, bytes, c->stream), "cuMemcpyHtoDAsync", err);
        if (status == SOTTO_OK)
            status = st_cuda_check(c, c->d->stream_sync(c->stream), "cuStreamSynchronize", err);
    }
    st_cuda_leave(c);
    return status;
}

/* One area is emptied while the other is filled. */
static sotto_status read_staged(st_cuda *c, st_cu_address from, unsigned char *out, size_t bytes, sotto_error *err)
{
    const size_t n_part = (bytes + ST_CUDA_SLOT_BYTES - 1) / ST_CUDA_SLOT_BYTES;
    unsigned char *areas = c->staging + (size_t)ST_CUDA_SLOTS * ST_CUDA_SLOT_BYTES;
    for (size_t i = 0; i <= n_part; i++) {
        if (i < n_part) {
            const size_t begin = i * ST_CUDA_SLOT_BYTES, n = i + 1 < n_part ? ST_CUDA_SLOT_BYTES : bytes - begin;
            const int area = (int)(i % ST_CUDA_READS);
            ST_TRY(st_cuda_check(c, c->d->to_host(areas + (size_t)area * ST_CUDA_SLOT_BYTES, from + begin, n, c->stream),
                                 "cuMemcpyDtoHAsync", err));
            ST_TRY(st_cuda_check(c, c->d->event_record(c->read_done[area], c->stream), "cuEventRecord", err));
        }
        if (i > 0) {
            const size_t begin = (i - 1) * ST_CUDA_SLOT_BYTES, n = i < n_part ? ST_CUDA_SLOT_BYTES : bytes - begin;
            const int area = (int)((i - 1) % ST_CUDA_READS);
            ST_TRY(st_cuda_check(c, c->d->event_sync(c->read_done[area]), "cuEventSynchronize", err));
            memcpy(out + begin, areas + (size_t)area * ST_CUDA_SLOT_BYTES, n);
        }
    }
    return SOTTO_OK;
}

sotto_status st_cuda_read(void *device, void *memory, size_t offset, void *out, size_t bytes, sotto_error *err)
{
    st_cuda *c = device;
    const st_cu_address from = ((st_cuda_memory *)memory)->address + offset;
    if (bytes == 0)
        return SOTTO_OK;
    ST_TRY(st_cuda_enter(c, err));
    sotto_status status;
    if (c->staging && !is_pinned(c, out, bytes))
        status = read_staged(c, from, out, bytes, err);
    else {
        status = st_cuda_check(c, c->d->to_host(out, from, bytes, c->stream), "cuMemcpyDtoHAsync", err);
        if (status == SOTTO_OK)
            status = st_cuda_check(c, c->d->stream_sync(c->stream), "cuStreamSynchronize", err);
    }
    st_cuda_leave(c);
    return status;
}

sotto_status st_cuda_copy(void *device, void *to, size_t to_offset, void *from, size_t from_offset, size_t bytes,
                          sotto_error *err)
{
    st_cuda *c = device;
    const st_cuda_memory *t = to, *f = from;
    const st_cu_address t_at = t->address + to_offset, f_at = f->address + from_offset;
    if (bytes == 0)
        return SOTTO_OK;
    ST_TRY(st_cuda_enter(c, err));
    const sotto_status status =
        t->context == f->context
            ? st_cuda_check(c, c->d->copy(t_at, f_at, bytes, c->stream), "cuMemcpyDtoDAsync", err)
            : st_cuda_check(c, c->d->copy_peer(t_at, t->context, f_at, f->context, bytes, c->stream),
                            "cuMemcpyPeerAsync", err);
    st_cuda_leave(c);
    return status;
}

sotto_status st_cuda_fill_zero(void *device, void *memory, size_t offset, size_t bytes, sotto_error *err)
{
    st_cuda *c = device;
    if (bytes == 0)
        return SOTTO_OK;
    ST_TRY(st_cuda_enter(c, err));
    const st_cu_address at = ((st_cuda_memory *)memory)->address + offset;
    const sotto_status status = st_cuda_check(c, c->d->fill(at, 0, bytes, c->stream), "cuMemsetD8Async", err);
    st_cuda_leave(c);
    return status;
}

sotto_status st_cuda_pin(void *device, void *host, size_t bytes, sotto_error *err)
{
    st_cuda *c = device;
    if (!st_grow(&c->pinned, &c->pinned_capacity, c->n_pinned + 1, sizeof *c->pinned))
        return st_fail_memory(err, sizeof *c->pinned, "the list of pinned memory");
    ST_TRY(st_cuda_enter(c, err));
    const sotto_status status =
        st_cuda_check(c, c->d->host_register(host, bytes, ST_CU_HOST_PORTABLE), "cuMemHostRegister", err);
    if (status == SOTTO_OK)
        c->pinned[c->n_pinned++] = (st_cuda_range){host, (unsigned char *)host + bytes};
    st_cuda_leave(c);
    return status;
}

void st_cuda_unpin(void *device, void *host)
{
    st_cuda *c = device;
    for (int64_t i = 0; i < c->n_pinned; i++)
        if (c->pinned[i].begin == (unsigned char *)host) {
            c->pinned[i] = c->pinned[--c->n_pinned];
            const bool pushed = st_cuda_push(c->d, c->context); /* also on a lost device */
            c->d->host_unregister(host);
            st_cuda_pop(c->d, pushed);
            return;
        }
}

sotto_status st_cuda_event_create(void *device, void **event, sotto_error *err)
{
    st_cuda *c = device;
    st_cu_event e = NULL;
    *event = NULL;
    ST_TRY(st_cuda_enter(c, err));
    const sotto_status status = st_cuda_check(c, c->d->event_create(&e, 0), "cuEventCreate", err);
    st_cuda_leave(c);
    if (status == SOTTO_OK)
        *event = e;
    return status;
}

sotto_status st_cuda_event_record(void *device, void *event, sotto_error *err)
{
    st_cuda *c = device;
    ST_TRY(st_cuda_enter(c, err));
    const sotto_status status = st_cuda_check(c, c->d->event_record(event, c->stream), "cuEventRecord", err);
    st_cuda_leave(c);
    return status;
}

sotto_status st_cuda_event_wait(void *device, void *event, sotto_error *err)
{
    st_cuda *c = device;
    ST_TRY(st_cuda_enter(c, err));
    const sotto_status status = st_cuda_check(c, c->d->stream_wait(c->stream, event, 0), "cuStreamWaitEvent", err);
    st_cuda_leave(c);
    return status;
}

sotto_status st_cuda_event_seconds(void *device, void *from, void *to, double *seconds, sotto_error *err)
{
    st_cuda *c = device;
    float ms = 0;
    *seconds = 0;
    ST_TRY(st_cuda_enter(c, err));
    sotto_status status = st_cuda_check(c, c->d->event_sync(to), "cuEventSynchronize", err);
    if (status == SOTTO_OK)
        status = st_cuda_check(c, c->d->event_elapsed(&ms, from, to), "cuEventElapsedTime", err);
    st_cuda_leave(c);
    *seconds = ms * 1e-3;
    return status;
}

void st_cuda_event_free(void *device, void *event)
{
    st_cuda *c = device;
    if (!event)
        return;
    const bool pushed = st_cuda_push(c->d, c->context);
    c->d->event_destroy(event);
    st_cuda_pop(c->d, pushed);
}
