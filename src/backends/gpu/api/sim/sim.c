/* sim.c: the table of the simulator. Kernels run on the processor as fibers, and nothing begins before it is waited for. */
#include "backends/gpu/api/sim/sim.h"

#include <stdio.h>
#include <string.h>

#include "backends/gpu/api/sim/kernels.h"
#include "backends/gpu/api/sim/queue.h"
#include "backends/gpu/gpu_backend.h"
#include "base/alloc.h"
#include "base/status.h"

enum { PAGE = 4096 };

/* ---- devices ---- */

typedef struct device {
    int index;
    st_sim_queue *queue;
    sotto_logger logger;
    int n_pinned;
} device;

static int device_count(void)
{
    return ST_SIM_DEVICES;
}

static sotto_status injected(int index, const char *call, size_t bytes, sotto_error *err)
{
    const st_sim_settings *s = st_sim_settings_of(index);
    const sotto_status status = s->call ? s->call(index, call, bytes) : SOTTO_OK;
    return status == SOTTO_OK ? SOTTO_OK
                              : st_fail(err, status, "sim:%d: %s() failed because a test asked for it", index, call);
}

static sotto_status device_caps(int index, st_gpu_caps *out, sotto_error *err)
{
    static const char *const order[] = {"forward", "in reverse", "shuffled"};
    ST_TRY(injected(index, "device_caps", 0, err));
    const st_sim_settings *s = st_sim_settings_of(index);
    *out = (st_gpu_caps){.memory_total = s->memory_total,
                         .memory_free = s->memory_total,
                         .max_buffer = s->max_buffer,
                         .alignment = 256,
                         .wrap_page = s->unified ? PAGE : 0,
                         .cuts = s->cuts,
                         .local_bytes = s->local_bytes,
                         .max_group = ST_SIM_MAX_GROUP,
                         .subgroup = s->subgroup,
                         .n_units = s->has_mma ? 4 : 32, /* so that tiles of both sizes are chosen, and caches are cut */
                         .has_mma = s->has_mma && s->subgroup == 32,
                         .has_dot4 = true,
                         .unified = s->unified};
    snprintf(out->id, sizeof out->id, "sim:%d", index);
    snprintf(out->name, sizeof out->name, "simulated GPU, subgroups of %d, %s", s->subgroup, order[s->order]);
    snprintf(out->features, sizeof out->features, "subgroup=%d local=%zu dot4%s%s", s->subgroup, s->local_bytes,
             out->has_mma ? " mma" : "", s->unified ? " unified" : "");
    return SOTTO_OK;
}

static sotto_status device_open(int index, const sotto_logger *logger, void **out, sotto_error *err)
{
    *out = NULL;
    ST_TRY(injected(index, "open", 0, err));
    device *d = st_calloc(1, sizeof *d);
    if (!d)
        return st_fail_memory(err, sizeof *d, "a simulated device");
    d->index = index;
    if (logger)
        d->logger = *logger;
    const sotto_status status = st_sim_queue_create(index, &d->queue, err);
    if (status != SOTTO_OK) {
        st_free(d);
        return status;
    }
    *out = d;
    return SOTTO_OK;
}

static void device_close(void *state)
{
    device *d = state;
    if (!d)
        return;
    sotto_error err;
    if (st_sim_queue_run(d->queue, &err) != SOTTO_OK)
        st_log(&d->logger, SOTTO_LOG_WARNING, "sim:%d: %s", d->index, err.text);
    if (d->n_pinned != 0)
        st_log(&d->logger, SOTTO_LOG_WARNING, "sim:%d: %d pieces of host memory are still pinned", d->index,
               d->n_pinned);
    st_sim_queue_release(d->queue);
    st_free(d);
}

/* ---- memory ---- */

static sotto_status memory_alloc(void *state, size_t bytes, void **out, sotto_error *err)
{
    const device *d = state;
    *out = NULL;
    ST_TRY(injected(d->index, "alloc", bytes, err));
    const size_t most = st_sim_settings_of(d->index)->max_buffer;
    if (bytes > most)
        return st_fail(err, SOTTO_E_MEMORY, "sim:%d: a buffer of %zu bytes, at most %zu", d->index, bytes, most);
    *out = st_sim_memory_create(d->index, bytes);
    return *out ? SOTTO_OK : st_fail_memory(err, bytes, "a buffer of a simulated device");
}

static sotto_status memory_wrap(void *state, void *host, size_t bytes, void **out, sotto_error *err)
{
    const device *d = state;
    const st_sim_settings *s = st_sim_settings_of(d->index);
    *out = NULL;
    ST_TRY(injected(d->index, "wrap", 0, err));
    if (!s->unified || (uintptr_t)host % PAGE != 0 || bytes % PAGE != 0 || bytes > s->max_buffer)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "sim:%d: %zu bytes that are no pages, or too many", d->index, bytes);
    *out = st_sim_memory_over(d->index, host, bytes);
    return *out ? SOTTO_OK : st_fail_memory(err, bytes, "a buffer of a simulated device");
}

static void memory_free(void *memory)
{
    if (!memory)
        return;
    const int index = st_sim_memory_device(memory);
    const st_sim_settings *s = st_sim_settings_of(index);
    if (s->freed && !st_sim_memory_is_wrapped(memory))
        s->freed(index, st_sim_memory_size(memory));
    st_sim_memory_release(memory);
}

static void *memory_map(void *memory)
{
    return st_sim_settings_of(st_sim_memory_device(memory))->unified ? st_sim_memory_bytes(memory) : NULL;
}

static sotto_status check_range(const device *d, const st_sim_memory *m, size_t offset, size_t bytes, const char *call,
                                sotto_error *err)
{
    if (!m)
        return st_fail(err, SOTTO_E_DEVICE, "sim:%d: %s() without memory", d->index, call);
    if (st_sim_memory_device(m) != d->index)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "sim:%d: %s() of memory of sim:%d", d->index, call,
                       st_sim_memory_device(m));
    const size_t size = st_sim_memory_size(m);
    if (offset > size || bytes > size - offset)
        return st_fail(err, SOTTO_E_DEVICE, "sim:%d: %s() of %zu bytes at %zu in a buffer of %zu", d->index, call,
                       bytes, offset, size);
    return SOTTO_OK;
}

static sotto_status memory_write(void *state, void *memory, size_t offset, const void *data, size_t bytes,
                                 sotto_error *err)
{
    const device *d = state;
    ST_TRY(injected(d->index, "write", 0, err));
    ST_TRY(check_range(d, memory, offset, bytes, "write", err));
    if (st_sim_memory_is_wrapped(memory))
        return st_fail(err, SOTTO_E_DEVICE, "sim:%d: write() to memory of the host's", d->index);
    char *copy = st_alloc(bytes, 1);
    if (!copy)
        return st_fail_memory(err, bytes, "a write to a simulated device");
    memcpy(copy, data, bytes);
    return st_sim_queue_put(
        d->queue,
        &(st_sim_command){.kind = ST_SIM_WRITE, .memory = {memory}, .offset = {offset}, .bytes = bytes, .data = copy},
        err);
}

static sotto_status memory_read(void *state, void *memory, size_t offset, void *out, size_t bytes, sotto_error *err)
{
    const device *d = state;
    ST_TRY(injected(d->index, "read", 0, err));
    ST_TRY(check_range(d, memory, offset, bytes, "read", err));
    return st_sim_queue_read(d->queue, memory, offset, out, bytes, err);
}

static sotto_status memory_copy(void *state, void *to, size_t to_offset, void *from, size_t from_offset, size_t bytes,
                                sotto_error *err)
{
    const device *d = state;
    ST_TRY(injected(d->index, "copy", 0, err));
    ST_TRY(check_range(d, to, to_offset, bytes, "copy", err));
    ST_TRY(check_range(d, from, from_offset, bytes, "copy", err));
    return st_sim_queue_put(
        d->queue,
        &(st_sim_command){.kind = ST_SIM_COPY, .memory = {to, from}, .offset = {to_offset, from_offset}, .bytes = bytes},
        err);
}

static sotto_status memory_fill_zero(void *state, void *memory, size_t offset, size_t bytes, sotto_error *err)
{
    const device *d = state;
    ST_TRY(injected(d->index, "fill_zero", 0, err));
    ST_TRY(check_range(d, memory, offset, bytes, "fill_zero", err));
    return st_sim_queue_put(
        d->queue, &(st_sim_command){.kind = ST_SIM_ZERO, .memory = {memory}, .offset = {offset}, .bytes = bytes}, err);
}

/* ---- launches ---- */

static sotto_status check_kernel(const device *d, st_gpu_kernel kernel, sotto_error *err)
{
    const st_gpu_kernel_info *info = &st_gpu_kernels[kernel];
    const st_sim_settings *s = st_sim_settings_of(d->index);
    const size_t n = strlen(info->module);
    if (n > 4 && strcmp(info->module + n - 4, "_mma") == 0 && !(s->has_mma && s->subgroup == 32))
        return st_fail(err, SOTTO_E_UNSUPPORTED, "sim:%d: kernel %s needs matrix units", d->index, info->name);
    return SOTTO_OK;
}

static sotto_status ready(void *state, st_gpu_kernel kernel, sotto_error *err)
{
    const device *d = state;
    ST_TRY(injected(d->index, "ready", 0, err));
    return check_kernel(d, kernel, err);
}

/* With the memory that the buffers have now. */
static sotto_status resolve(const device *d, const st_gpu_launch *l, st_sim_command *out, sotto_error *err)
{
    ST_TRY(check_kernel(d, l->kernel, err));
    const st_sim_kernel *k = st_sim_kernels[l->kernel];
    memset(out, 0, sizeof *out);
    out->kind = ST_SIM_LAUNCH;
    out->work.kernel = k;
    memcpy(out->work.grid, l->grid, sizeof l->grid);
    out->work.first = l->first;
    memcpy(out->work.params, l->params, sizeof l->params);
    if (l->n_param_bytes != k->param_bytes || l->n_args != k->n_args)
        return st_fail(err, SOTTO_E_DEVICE, "kernel %s: %u bytes of parameters and %d buffers, expected %zu and %d",
                       k->name, l->n_param_bytes, l->n_args, k->param_bytes, k->n_args);
    if (l->grid[0] == 0 || l->grid[1] == 0 || l->grid[2] == 0 || l->grid[0] > INT32_MAX || l->grid[1] > 65535 ||
        l->grid[2] > 65535)
        return st_fail(err, SOTTO_E_DEVICE, "kernel %s: a grid of %u x %u x %u groups", k->name, l->grid[0], l->grid[1],
                       l->grid[2]);
    for (int i = 0; i < l->n_args; i++) {
        const st_gpu_arg *a = &l->arg[i];
        if (!a->buffer || !a->buffer->handle)
            return st_fail(err, SOTTO_E_DEVICE, "kernel %s: buffer %d has no memory", k->name, i);
        st_sim_memory *m = a->buffer->handle;
        ST_TRY(check_range(d, m, (size_t)a->offset, 0, "launch", err));
        if (a->offset % k->alignment[i] != 0)
            return st_fail(err, SOTTO_E_DEVICE, "kernel %s: buffer %d begins at byte %llu, not a multiple of %d",
                           k->name, i, (unsigned long long)a->offset, k->alignment[i]);
        out->memory[i] = m;
        out->work.arg[i] = st_sim_memory_bytes(m) + a->offset;
        out->work.arg_end[i] = st_sim_memory_bytes(m) + st_sim_memory_size(m);
    }
    return SOTTO_OK;
}

static sotto_status launch(void *state, const st_gpu_launch *list, int n, sotto_error *err)
{
    const device *d = state;
    ST_TRY(injected(d->index, "launch", 0, err));
    for (int i = 0; i < n; i++) {
        st_sim_command c;
        ST_TRY(resolve(d, &list[i], &c, err));
        ST_TRY(st_sim_queue_put(d->queue, &c, err));
    }
    return SOTTO_OK;
}

typedef struct record {
    const st_gpu_launch *list;
    int n;
    st_sim_command command[];
} record;

static sotto_status record_list(void *state, const st_gpu_launch *list, int n, void **out, sotto_error *err)
{
    const device *d = state;
    *out = NULL;
    ST_TRY(injected(d->index, "record", 0, err));
    record *r = st_calloc(1, sizeof *r + (size_t)n * sizeof r->command[0]);
    if (!r)
        return st_fail_memory(err, (uint64_t)n * sizeof r->command[0], "recorded launches");
    r->list = list;
    r->n = n;
    for (int i = 0; i < n; i++) {
        const sotto_status status = resolve(d, &list[i], &r->command[i], err);
        if (status != SOTTO_OK) {
            st_free(r);
            return status;
        }
    }
    *out = r;
    return SOTTO_OK;
}

/* Like a driver's list, it has the addresses of when it was made; unlike one, it says so when they are wrong by now. */
static sotto_status replay(void *state, void *recorded, sotto_error *err)
{
    const device *d = state;
    const record *r = recorded;
    ST_TRY(injected(d->index, "replay", 0, err));
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < r->list[i].n_args; k++)
            if (r->list[i].arg[k].buffer->handle != r->command[i].memory[k])
                return st_fail(err, SOTTO_E_DEVICE, "kernel %s: the memory of buffer %d is not that of the recording",
                               r->command[i].work.kernel->name, k);
    for (int i = 0; i < r->n; i++)
        ST_TRY(st_sim_queue_put(d->queue, &r->command[i], err));
    return SOTTO_OK;
}

static void forget(void *state, void *recorded)
{
    (void)state;
    st_free(recorded);
}

static sotto_status sync_queue(void *state, sotto_error *err)
{
    const device *d = state;
    ST_TRY(injected(d->index, "sync", 0, err));
    return st_sim_queue_run(d->queue, err);
}

/* ---- events ---- */

static sotto_status event_create(void *state, void **event, sotto_error *err)
{
    const device *d = state;
    *event = NULL;
    ST_TRY(injected(d->index, "event_create", 0, err));
    *event = st_sim_event_create();
    return *event ? SOTTO_OK : st_fail_memory(err, sizeof(st_sim_event), "an event of a simulated device");
}

static sotto_status event_record(void *state, void *event, sotto_error *err)
{
    const device *d = state;
    ST_TRY(injected(d->index, "event_record", 0, err));
    return st_sim_event_record(d->queue, event, err);
}

/* What was queued before the wait runs first: it must not see what the event stands for. */
static sotto_status event_wait(void *state, void *event, sotto_error *err)
{
    const device *d = state;
    ST_TRY(injected(d->index, "event_wait", 0, err));
    ST_TRY(st_sim_queue_run(d->queue, err));
    return st_sim_event_reach(event, err);
}

static sotto_status event_seconds(void *state, void *from, void *to, double *seconds, sotto_error *err)
{
    const device *d = state;
    ST_TRY(injected(d->index, "event_seconds", 0, err));
    ST_TRY(st_sim_event_reach(from, err));
    ST_TRY(st_sim_event_reach(to, err));
    *seconds = st_sim_event_seconds(to) - st_sim_event_seconds(from);
    return SOTTO_OK;
}

static void event_free(void *state, void *event)
{
    (void)state;
    st_sim_event_free(event);
}

/* ---- host memory ---- */

static sotto_status pin(void *state, void *host, size_t bytes, sotto_error *err)
{
    device *d = state;
    (void)host, (void)bytes;
    ST_TRY(injected(d->index, "pin", 0, err));
    d->n_pinned++;
    return SOTTO_OK;
}

static void unpin(void *state, void *host)
{
    (void)host;
    ((device *)state)->n_pinned--;
}

const st_gpu_api st_gpu_sim = {
    .name = "sim",
    .device_count = device_count,
    .device_caps = device_caps,
    .open = device_open,
    .close = device_close,
    .alloc = memory_alloc,
    .free = memory_free,
    .wrap = memory_wrap,
    .map = memory_map,
    .write = memory_write,
    .read = memory_read,
    .copy = memory_copy,
    .fill_zero = memory_fill_zero,
    .ready = ready,
    .launch = launch,
    .record = record_list,
    .replay = replay,
    .forget = forget,
    .sync = sync_queue,
    .event_create = event_create,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_seconds = event_seconds,
    .event_free = event_free,
    .pin = pin,
    .unpin = unpin,
};

ST_GPU_BACKEND(st_backend_sim, "sim", st_gpu_sim, SOTTO_DEVICE_SIMULATOR);
