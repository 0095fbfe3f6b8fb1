#include "reference/ref_device.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "reference/ref_backend.h"

typedef struct device device;

typedef enum task_kind { TASK_RUN, TASK_SET, TASK_GET, TASK_COPY, TASK_RECORD, TASK_WAIT } task_kind;

/* What an asynchronous device has been asked to do and has not done yet. */
typedef struct task {
    task_kind kind;
    const st_exec_plan *plan;
    void *prepared;
    char *to;
    const char *from;
    size_t bytes;
    device *other; /* of the event waited for */
    int64_t until; /* tasks of it that must be done */
} task;

struct device {
    void *inner; /* state of the reference */
    st_ref_device_config config;
    st_ref_device_counts counts;
    task *queue;
    int64_t n_queue, cap_queue;
    int64_t n_done; /* since the beginning; the first of the queue is number n_done */
};

typedef struct event {
    device *recorder;
    int64_t until;
} event;

static const st_backend_impl *const inner = &st_backend_reference;

st_ref_device_config *st_ref_device_configure(void *state)
{
    return &((device *)state)->config;
}

st_ref_device_counts *st_ref_device_count(void *state)
{
    return &((device *)state)->counts;
}

/* Every call passes here. */
static sotto_status called(device *d, sotto_status code, const char *what, sotto_error *err)
{
    d->counts.calls++;
    if (d->config.fail_at > 0 && --d->config.fail_at == 0)
        return st_fail(err, code, "%s failed, as asked to", what);
    return SOTTO_OK;
}

/* ---- device ---- */

static int device_count(void)
{
    return 0;
}

static sotto_status device_info(int index, sotto_device_info *out, sotto_error *err)
{
    (void)err;
    snprintf(out->id, sizeof out->id, "private:%d", index);
    snprintf(out->name, sizeof out->name, "Scalar reference with memory of its own");
    out->kind = SOTTO_DEVICE_REFERENCE;
    return SOTTO_OK;
}

static sotto_status open_device(int index, const sotto_backend_options *options, void **state, sotto_error *err)
{
    (void)index;
    device *d = st_calloc(1, sizeof *d);
    *state = d;
    if (!d)
        return st_fail_memory(err, sizeof *d, "a device");
    const sotto_status status = inner->open(0, options, &d->inner, err);
    if (status != SOTTO_OK)
        st_free(d);
    return status;
}

static sotto_status open_sibling(void *base, const sotto_backend_options *options, void **state, sotto_error *err)
{
    ST_TRY(open_device(0, options, state, err));
    ((device *)*state)->config = ((device *)base)->config;
    return SOTTO_OK;
}

static void close_device(void *state)
{
    device *d = state;
    inner->close(d->inner);
    st_free(d->queue);
    st_free(d);
}

static void describe(void *state, char *out, size_t size)
{
    (void)state;
    snprintf(out, size, "private reference");
}

static st_device_traits traits(void *state)
{
    const device *d = state;
    return (st_device_traits){.asynchronous = d->config.asynchronous, .offload_rows = d->config.offload_rows};
}

/* ---- tensors as the reference wants them: in buffers with an address ---- */

typedef struct shadow {
    st_buffer buffer;
    const st_buffer *real;
} shadow;

typedef struct prepared {
    st_arena *arena;
    sotto_tensor **node;
    shadow **shadows;
    int64_t n_shadows, cap_shadows;
    st_exec_plan plan;
    void *inner;
} prepared;

static st_buffer *shadow_of(prepared *p, st_buffer *real)
{
    for (int64_t i = 0; i < p->n_shadows; i++)
        if (p->shadows[i]->real == real)
            return &p->shadows[i]->buffer;
    shadow *s = st_arena_alloc(p->arena, sizeof *s);
    if (!s || !st_grow(&p->shadows, &p->cap_shadows, p->n_shadows + 1, sizeof *p->shadows))
        return NULL;
    s->real = real;
    p->shadows[p->n_shadows++] = s;
    return &s->buffer;
}

static sotto_tensor *shadow_tensor(prepared *p, const sotto_tensor *t)
{
    sotto_tensor *copy = st_arena_alloc(p->arena, sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *t;
    if (t->view_of)
        return (copy->view_of = shadow_tensor(p, t->view_of)) ? copy : NULL;
    return (copy->buffer = shadow_of(p, t->buffer)) ? copy : NULL;
}

static bool shadow_nodes(prepared *p, const st_exec_plan *plan)
{
    p->node = st_calloc((size_t)plan->n_node + 1, sizeof *p->node);
    for (int i = 0; p->node && i < plan->n_node; i++) {
        p->node[i] = shadow_tensor(p, plan->node[i]);
        for (int k = 0; p->node[i] && k < ST_MAX_SRC; k++)
            if (plan->node[i]->src[k] && !(p->node[i]->src[k] = shadow_tensor(p, plan->node[i]->src[k])))
                return false;
        if (!p->node[i])
            return false;
    }
    p->plan = (st_exec_plan){.node = p->node, .n_node = plan->n_node};
    return p->node != NULL;
}

static void release(void *state, void *prepared_plan)
{
    device *d = state;
    prepared *p = prepared_plan;
    if (!p)
        return;
    if (p->inner)
        inner->release(d->inner, p->inner);
    st_arena_free(p->arena);
    st_free(p->node);
    st_free(p->shadows);
    st_free(p);
}

static sotto_status prepare(void *state, const st_exec_plan *plan, void **out, size_t *scratch_bytes, sotto_error *err)
{
    device *d = state;
    *out = NULL;
    ST_TRY(called(d, SOTTO_E_MEMORY, "prepare", err));
    prepared *p = st_calloc(1, sizeof *p);
    if (p)
        p->arena = st_arena_create();
    if (!p || !p->arena || !shadow_nodes(p, plan)) {
        release(d, p);
        return st_fail_memory(err, sizeof *p, "a plan of a device");
    }
    const sotto_status status = inner->prepare(d->inner, &p->plan, &p->inner, scratch_bytes, err);
    if (status == SOTTO_OK)
        *out = p;
    else
        release(d, p);
    return status;
}

static sotto_status run_now(device *d, prepared *p, const st_exec_hooks *hooks, sotto_error *err)
{
    for (int64_t i = 0; i < p->n_shadows; i++) {
        p->shadows[i]->buffer = *p->shadows[i]->real;
        if (!p->shadows[i]->buffer.handle)
            return st_fail(err, SOTTO_E_INTERNAL, "a tensor in memory of another device");
        p->shadows[i]->buffer.host = p->shadows[i]->buffer.handle;
    }
    return inner->run(d->inner, &p->plan, p->inner, hooks, err);
}

/* ---- the queue ---- */

static sotto_status drain(device *d, int64_t until, sotto_error *err)
{
    sotto_status first = SOTTO_OK;
    while (d->n_queue > 0 && d->n_done < until) {
        const task t = d->queue[0];
        d->n_queue--;
        d->n_done++;
        memmove(d->queue, d->queue + 1, (size_t)d->n_queue * sizeof *d->queue);
        sotto_status status = SOTTO_OK;
        if (t.kind == TASK_RUN)
            status = run_now(d, t.prepared, NULL, err);
        else if (t.kind == TASK_WAIT)
            status = drain(t.other, t.until, err);
        else if (t.kind != TASK_RECORD)
            memcpy(t.to, t.from, t.bytes);
        first = first == SOTTO_OK ? status : first;
    }
    return first;
}

static sotto_status drain_all(device *d, sotto_error *err)
{
    return drain(d, INT64_MAX, err);
}

static sotto_status queue(device *d, const task *t, sotto_error *err)
{
    if (!st_grow(&d->queue, &d->cap_queue, d->n_queue + 1, sizeof *d->queue))
        return st_fail_memory(err, sizeof *t, "a queue");
    d->queue[d->n_queue++] = *t;
    return d->config.asynchronous ? SOTTO_OK : drain_all(d, err);
}

static sotto_status run(void *state, const st_exec_plan *plan, void *prepared_plan, const st_exec_hooks *hooks,
                        sotto_error *err)
{
    device *d = state;
    ST_TRY(called(d, SOTTO_E_DEVICE, "run", err));
    if (!d->config.asynchronous || (hooks && hooks->node_seconds)) {
        ST_TRY(drain_all(d, err));
        return run_now(d, prepared_plan, hooks, err);
    }
    return queue(d, &(task){.kind = TASK_RUN, .plan = plan, .prepared = prepared_plan}, err);
}

static sotto_status sync_device(void *state, sotto_error *err)
{
    device *d = state;
    const sotto_status status = drain_all(d, err);
    const sotto_status injected = called(d, SOTTO_E_DEVICE, "sync", err);
    return status != SOTTO_OK ? status : injected;
}

static sotto_status event_create(void *state, void **out, sotto_error *err)
{
    ST_TRY(called(state, SOTTO_E_MEMORY, "event_create", err));
    *out = st_calloc(1, sizeof(event));
    return *out ? SOTTO_OK : st_fail_memory(err, sizeof(event), "an event");
}

static sotto_status event_record(void *state, void *e, sotto_error *err)
{
    device *d = state;
    ST_TRY(called(d, SOTTO_E_DEVICE, "event_record", err));
    ST_TRY(queue(d, &(task){.kind = TASK_RECORD}, err));
    *(event *)e = (event){d, d->n_done + d->n_queue};
    return SOTTO_OK;
}

static sotto_status event_wait(void *state, void *e, sotto_error *err)
{
    device *d = state;
    const event *recorded = e;
    ST_TRY(called(d, SOTTO_E_DEVICE, "event_wait", err));
    d->counts.waits++;
    return queue(d, &(task){.kind = TASK_WAIT, .other = recorded->recorder, .until = recorded->until}, err);
}

static void event_free(void *state, void *e)
{
    (void)state;
    st_free(e);
}

/* ---- buffers ---- */

static st_buffer_traits buffer_traits(void *state, st_buffer_usage usage)
{
    const device *d = state;
    (void)usage;
    return (st_buffer_traits){.alignment = 256,
                              .max_size = d->config.max_size > 0 ? d->config.max_size : SIZE_MAX / 4,
                              .recommended = d->config.recommended};
}

static size_t stored_bytes(void *state, st_buffer_usage usage, sotto_tensor *t)
{
    return inner->stored_bytes(((device *)state)->inner, usage, t);
}

static void buffer_free(st_buffer *buffer)
{
    device *const *owner = (device *const *)buffer->handle - 8; /* a cache line before the bytes */
    (*owner)->counts.buffers--;
    (*owner)->counts.bytes -= buffer->size;
    st_free_pages((void *)(uintptr_t)owner, buffer->size + 64);
    buffer->handle = NULL;
}

static sotto_status buffer_alloc(void *state, st_buffer_usage usage, size_t size, st_buffer *out, sotto_error *err)
{
    device *d = state;
    ST_TRY(called(d, SOTTO_E_MEMORY, "buffer_alloc", err));
    if (size > buffer_traits(d, usage).max_size || (d->config.memory > 0 && d->counts.bytes + size > d->config.memory))
        return st_fail_memory(err, size, "a buffer");
    device **memory = st_alloc_pages(size + 64);
    if (!memory)
        return st_fail_memory(err, size, "a buffer");
    *memory = d;
    d->counts.buffers++;
    d->counts.bytes += size;
    *out = (st_buffer){.usage = usage, .size = size, .handle = memory + 8};
    return SOTTO_OK;
}

/* A tensor with its home in a buffer with an address. */
static sotto_tensor with_address(const sotto_tensor *t, st_buffer *buffer)
{
    sotto_tensor copy = *t;
    *buffer = *t->buffer;
    buffer->host = buffer->handle;
    copy.buffer = buffer;
    return copy;
}

static sotto_status upload(void *state, sotto_tensor *t, int64_t row, int64_t n_rows, sotto_dtype dtype,
                           const void *data, sotto_error *err)
{
    device *d = state;
    ST_TRY(called(d, SOTTO_E_MEMORY, "upload", err));
    st_buffer buffer;
    sotto_tensor copy = with_address(t, &buffer);
    ST_TRY(drain_all(d, err));
    return inner->upload(d->inner, &copy, row, n_rows, dtype, data, err);
}

static sotto_status download_f32(void *state, const sotto_tensor *t, float *out, sotto_error *err)
{
    device *d = state;
    ST_TRY(called(d, SOTTO_E_DEVICE, "download", err));
    st_buffer buffer;
    const sotto_tensor copy = with_address(t, &buffer);
    ST_TRY(drain_all(d, err));
    return inner->download_f32(d->inner, &copy, out, err);
}

static sotto_status move(device *d, const char *what, task_kind kind, char *to, const char *from, size_t bytes,
                         bool wait, sotto_error *err)
{
    ST_TRY(called(d, SOTTO_E_DEVICE, what, err));
    d->counts.copied += bytes;
    if (bytes > 0)
        ST_TRY(queue(d, &(task){.kind = kind, .to = to, .from = from, .bytes = bytes}, err));
    return wait ? drain_all(d, err) : SOTTO_OK;
}

static sotto_status set_bytes(void *state, st_buffer *buffer, size_t offset, const void *data, size_t bytes,
                              sotto_error *err)
{
    return move(state, "set", TASK_SET, (char *)buffer->handle + offset, data, bytes, true, err);
}

static sotto_status get_bytes(void *state, const st_buffer *buffer, size_t offset, void *out, size_t bytes,
                              sotto_error *err)
{
    return move(state, "get", TASK_GET, out, (const char *)buffer->handle + offset, bytes, true, err);
}

static sotto_status set_async(void *state, st_buffer *buffer, size_t offset, const void *data, size_t bytes,
                              sotto_error *err)
{
    return move(state, "set_async", TASK_SET, (char *)buffer->handle + offset, data, bytes, false, err);
}

static sotto_status get_async(void *state, const st_buffer *buffer, size_t offset, void *out, size_t bytes,
                              sotto_error *err)
{
    return move(state, "get_async", TASK_GET, out, (const char *)buffer->handle + offset, bytes, false, err);
}

static sotto_status copy_peer(void *dst_state, st_buffer *dst, size_t dst_offset, void *src_state, const st_buffer *src,
                              size_t src_offset, size_t bytes, sotto_error *err)
{
    device *d = dst_state;
    if (d->config.no_peer || ((device *)src_state)->config.no_peer)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "these two devices copy through the host");
    d->counts.peer_bytes += bytes;
    return move(d, "copy_peer", TASK_COPY, (char *)dst->handle + dst_offset, (const char *)src->handle + src_offset,
                bytes, false, err);
}

static sotto_status fill_zero(void *state, st_buffer *buffer, sotto_error *err)
{
    device *d = state;
    ST_TRY(called(d, SOTTO_E_DEVICE, "fill_zero", err));
    ST_TRY(drain_all(d, err));
    memset(buffer->handle, 0, buffer->size);
    return SOTTO_OK;
}

/* ---- operations ---- */

static bool supports(const sotto_tensor *node)
{
    return inner->supports(node);
}

static bool can_run(void *state, const sotto_tensor *node)
{
    const device *d = state;
    if (d->config.lacks >> node->op & 1)
        return false;
    for (int i = 0; i < ST_MAX_SRC && (d->config.straight >> node->op & 1); i++)
        if (node->src[i] && !st_tensor_is_contiguous(node->src[i]))
            return false;
    return supports(node);
}

const st_backend_impl st_backend_ref_device = {
    .api_version = ST_BACKEND_API_VERSION,
    .name = "private",
    .kind = SOTTO_DEVICE_REFERENCE,
    .device_count = device_count,
    .device_info = device_info,
    .open = open_device,
    .open_sibling = open_sibling,
    .close = close_device,
    .describe = describe,
    .traits = traits,
    .buffer_traits = buffer_traits,
    .stored_bytes = stored_bytes,
    .buffer_alloc = buffer_alloc,
    .buffer_free = buffer_free,
    .upload = upload,
    .download_f32 = download_f32,
    .set = set_bytes,
    .get = get_bytes,
    .set_async = set_async,
    .get_async = get_async,
    .copy_peer = copy_peer,
    .fill_zero = fill_zero,
    .supports = supports,
    .can_run = can_run,
    .prepare = prepare,
    .release = release,
    .run = run,
    .sync = sync_device,
    .event_create = event_create,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_free = event_free,
};
