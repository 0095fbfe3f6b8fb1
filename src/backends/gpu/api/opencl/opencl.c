/* opencl.c: the table of the OpenCL interface: queues, memory, launches, events. */
#include <string.h>

#include "backends/gpu/api/opencl/opencl.h"
#include "backends/gpu/gpu_backend.h"
#include "base/alloc.h"
#include "base/status.h"

enum { STAGING_BYTES = 1 << 20, STAGED_AT_MOST = 64 << 10 };

/* An opened device: an ordered queue, and kernel objects of its own, for setting their arguments is not thread-safe. */
typedef struct queue {
    st_opencl_device *device;
    sotto_logger logger;
    cl_command_queue commands;
    cl_kernel kernel[ST_GPU_KERNEL_COUNT];
    cl_mem staging; /* host memory that the device reads fast; small writes are put there and need not be waited for */
    char *staged;   /* its address; NULL when there is none */
    size_t used;    /* bytes of it that the queue may still read */
    bool staging_failed;
} queue;

typedef struct memory {
    st_opencl_device *device;
    cl_mem mem;
} memory;

typedef struct event {
    st_opencl_device *device;
    cl_event happened; /* NULL: never recorded */
} event;

typedef struct record {
    int n;
    struct prepared {
        cl_kernel kernel; /* all arguments set */
        size_t first[3], global[3], group[3];
    } launch[];
} record;

static sotto_status device_caps(int index, st_gpu_caps *out, sotto_error *err)
{
    const st_opencl_device *const d = st_opencl_device_at(index, err);
    if (!d)
        return SOTTO_E_NOT_FOUND;
    *out = d->caps;
    return SOTTO_OK;
}

/* ---- queues ---- */

static void close_queue(void *device)
{
    queue *const q = device;
    if (!q)
        return;
    const st_opencl_functions *const cl = q->device->cl;
    if (q->commands) {
        cl->clFinish(q->commands);
        for (int i = 0; i < ST_GPU_KERNEL_COUNT; i++)
            if (q->kernel[i])
                cl->clReleaseKernel(q->kernel[i]);
        if (q->staged) {
            cl->clEnqueueUnmapMemObject(q->commands, q->staging, q->staged, 0, NULL, NULL);
            cl->clFinish(q->commands);
        }
        if (q->staging)
            cl->clReleaseMemObject(q->staging);
        cl->clReleaseCommandQueue(q->commands);
    }
    st_opencl_release(q->device);
    st_free(q);
}

static sotto_status open_queue(int index, const sotto_logger *logger, void **device, sotto_error *err)
{
    *device = NULL;
    st_opencl_device *const d = st_opencl_device_at(index, err);
    if (!d)
        return SOTTO_E_NOT_FOUND;
    queue *const q = st_calloc(1, sizeof *q);
    if (!q)
        return st_fail_memory(err, sizeof *q, "a queue of OpenCL");
    q->device = d;
    if (logger)
        q->logger = *logger;
    const sotto_status status = st_opencl_retain(d, err);
    if (status != SOTTO_OK) {
        st_free(q);
        return status;
    }
    cl_int code = CL_SUCCESS;
    q->commands = d->cl->clCreateCommandQueue(d->context, d->id, CL_QUEUE_PROFILING_ENABLE, &code);
    if (!q->commands) {
        close_queue(q);
        return st_opencl_fail(err, d, "clCreateCommandQueue", code);
    }
    *device = q;
    return SOTTO_OK;
}

static sotto_status sync_queue(void *device, sotto_error *err)
{
    queue *const q = device;
    OPENCL_TRY(err, q->device, clFinish, q->commands);
    q->used = 0;
    return SOTTO_OK;
}

/* ---- memory ---- */

/* host NULL: memory of the device. */
static sotto_status create_memory(void *device, size_t bytes, void *host, void **out, sotto_error *err)
{
    const queue *const q = device;
    st_opencl_device *const d = q->device;
    *out = NULL;
    memory *const m = st_calloc(1, sizeof *m);
    if (!m)
        return st_fail_memory(err, sizeof *m, "a buffer of OpenCL");
    cl_int code = CL_SUCCESS;
    m->device = d;
    const cl_bitfield flags = host ? CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR : CL_MEM_READ_WRITE;
    m->mem = d->cl->clCreateBuffer(d->context, flags, bytes ? bytes : 1, host, &code);
    sotto_status status = SOTTO_OK;
    if (!m->mem) {
        status = st_opencl_fail(err, d, "clCreateBuffer", code);
        (void)st_fail_context(err, status, "%zu bytes", bytes);
    } else if ((status = st_opencl_retain(d, err)) != SOTTO_OK) { /* it may outlive the queue */
        d->cl->clReleaseMemObject(m->mem);
    }
    if (status != SOTTO_OK) {
        st_free(m);
        return status;
    }
    *out = m;
    return SOTTO_OK;
}

static sotto_status alloc_memory(void *device, size_t bytes, void **out, sotto_error *err)
{
    return create_memory(device, bytes, NULL, out, err);
}

static sotto_status wrap_memory(void *device, void *host, size_t bytes, void **out, sotto_error *err)
{
    return create_memory(device, bytes, host, out, err);
}

static void free_memory(void *p)
{
    memory *const m = p;
    if (!m)
        return;
    m->device->cl->clReleaseMemObject(m->mem);
    st_opencl_release(m->device);
    st_free(m);
}

static void *map_memory(void *p)
{
    (void)p; /* OpenCL 1.2 hands memory back and forth, it never shares it */
    return NULL;
}

static void make_staging(queue *q)
{
    const st_opencl_functions *const cl = q->device->cl;
    cl_int code = CL_SUCCESS;
    q->staging =
        cl->clCreateBuffer(q->device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, STAGING_BYTES, NULL, &code);
    if (q->staging)
        q->staged =
            cl->clEnqueueMapBuffer(q->commands, q->staging, 1, CL_MAP_WRITE, 0, STAGING_BYTES, 0, NULL, NULL, &code);
    q->staging_failed = !q->staged;
}

static sotto_status write_memory(void *device, void *to, size_t offset, const void *data, size_t bytes, sotto_error *err)
{
    queue *const q = device;
    const memory *const m = to;
    if (bytes == 0)
        return SOTTO_OK;
    if (bytes <= STAGED_AT_MOST && !q->staged && !q->staging_failed)
        make_staging(q);
    if (bytes > STAGED_AT_MOST || !q->staged) {
        OPENCL_TRY(err, q->device, clEnqueueWriteBuffer, q->commands, m->mem, 1, offset, bytes, data, 0, NULL, NULL);
        q->used = 0; /* the queue is in order, so it is through with what came before */
        return SOTTO_OK;
    }
    if (bytes > STAGING_BYTES - q->used)
        ST_TRY(sync_queue(q, err));
    char *const place = q->staged + q->used;
    memcpy(place, data, bytes);
    q->used += (bytes + 63) / 64 * 64;
    OPENCL_TRY(err, q->device, clEnqueueWriteBuffer, q->commands, m->mem, 0, offset, bytes, place, 0, NULL, NULL);
    return SOTTO_OK;
}

static sotto_status read_memory(void *device, void *from, size_t offset, void *out, size_t bytes, sotto_error *err)
{
    queue *const q = device;
    const memory *const m = from;
    if (bytes == 0)
        return SOTTO_OK;
    OPENCL_TRY(err, q->device, clEnqueueReadBuffer, q->commands, m->mem, 1, offset, bytes, out, 0, NULL, NULL);
    q->used = 0;
    return SOTTO_OK;
}

static sotto_status copy_memory(void *device, void *to, size_t to_offset, void *from, size_t from_offset, size_t bytes,
                                sotto_error *err)
{
    const queue *const q = device;
    const memory *const t = to, *const f = from;
    if (bytes == 0)
        return SOTTO_OK;
    if (t->device != q->device || f->device != q->device)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%s: cannot copy from %s to %s", q->device->caps.id,
                       f->device->caps.id, t->device->caps.id);
    OPENCL_TRY(err, q->device, clEnqueueCopyBuffer, q->commands, f->mem, t->mem, from_offset, to_offset, bytes, 0, NULL,
               NULL);
    OPENCL_TRY(err, q->device, clFlush, q->commands);
    return SOTTO_OK;
}

static sotto_status fill_zero(void *device, void *to, size_t offset, size_t bytes, sotto_error *err)
{
    static const uint32_t zero = 0;
    const queue *const q = device;
    const memory *const m = to;
    const size_t pattern = offset % sizeof zero == 0 && bytes % sizeof zero == 0 ? sizeof zero : 1;
    if (bytes == 0)
        return SOTTO_OK;
    OPENCL_TRY(err, q->device, clEnqueueFillBuffer, q->commands, m->mem, &zero, pattern, offset, bytes, 0, NULL, NULL);
    return SOTTO_OK;
}

/* ---- launches ---- */

static sotto_status ready(void *device, st_gpu_kernel kernel, sotto_error *err)
{
    queue *const q = device;
    if (q->kernel[kernel])
        return SOTTO_OK;
    return st_opencl_kernel(q->device, kernel, &q->logger, &q->kernel[kernel], err);
}

static sotto_status set_arguments(const queue *q, cl_kernel kernel, const st_gpu_launch *l, sotto_error *err)
{
    const st_gpu_kernel_info *const info = &st_gpu_kernels[l->kernel];
    if (l->n_param_bytes != info->param_bytes || l->n_args != info->n_args)
        return st_fail(err, SOTTO_E_INTERNAL, "%s: %u bytes of parameters and %d buffers, expected %zu and %d",
                       info->name, l->n_param_bytes, l->n_args, info->param_bytes, info->n_args);
    OPENCL_TRY(err, q->device, clSetKernelArg, kernel, 0, l->n_param_bytes, l->params);
    for (int i = 0; i < l->n_args; i++) {
        const memory *const m = l->arg[i].buffer ? l->arg[i].buffer->handle : NULL;
        const cl_mem mem = m ? m->mem : NULL;
        const cl_ulong offset = l->arg[i].offset;
        OPENCL_TRY(err, q->device, clSetKernelArg, kernel, (cl_uint)(1 + 2 * i), sizeof mem, &mem);
        OPENCL_TRY(err, q->device, clSetKernelArg, kernel, (cl_uint)(2 + 2 * i), sizeof offset, &offset);
    }
    return SOTTO_OK;
}

static struct prepared prepare(cl_kernel kernel, const st_gpu_launch *l)
{
    const size_t group = (size_t)st_gpu_kernels[l->kernel].group;
    return (struct prepared){
        kernel, {l->first * group, 0, 0}, {l->grid[0] * group, l->grid[1], l->grid[2]}, {group, 1, 1}};
}

static sotto_status enqueue(const queue *q, const struct prepared *p, sotto_error *err)
{
    OPENCL_TRY(err, q->device, clEnqueueNDRangeKernel, q->commands, p->kernel, 3, p->first, p->global, p->group, 0,
               NULL, NULL);
    return SOTTO_OK;
}

/* Puts the kernel's name before a failure of one launch. */
static sotto_status name_launch(sotto_status status, const st_gpu_launch *l, sotto_error *err)
{
    return status == SOTTO_OK ? status : st_fail_context(err, status, "kernel %s", st_gpu_kernels[l->kernel].name);
}

static sotto_status launch(void *device, const st_gpu_launch *list, int n, sotto_error *err)
{
    queue *const q = device;
    for (int i = 0; i < n; i++) {
        ST_TRY(ready(q, list[i].kernel, err));
        const struct prepared p = prepare(q->kernel[list[i].kernel], &list[i]);
        sotto_status status = set_arguments(q, p.kernel, &list[i], err);
        if (status == SOTTO_OK)
            status = enqueue(q, &p, err);
        ST_TRY(name_launch(status, &list[i], err));
    }
    OPENCL_TRY(err, q->device, clFlush, q->commands);
    return SOTTO_OK;
}

static void forget(void *device, void *p)
{
    const queue *const q = device;
    record *const r = p;
    for (int i = 0; r && i < r->n; i++)
        q->device->cl->clReleaseKernel(r->launch[i].kernel);
    st_free(r);
}

/* A kernel object a launch, so that a replay sets no arguments. (Command buffers are a provisional extension whose calls
 * have changed between versions.) */
static sotto_status record_list(void *device, const st_gpu_launch *list, int n, void **out, sotto_error *err)
{
    queue *const q = device;
    *out = NULL;
    record *const r = n < 0 || (size_t)n > SIZE_MAX / sizeof *r->launch / 2
                          ? NULL
                          : st_calloc(1, sizeof *r + (size_t)n * sizeof *r->launch);
    if (!r)
        return st_fail_memory(err, (uint64_t)n * sizeof *r->launch, "a recorded list of launches");
    for (int i = 0; i < n; i++) {
        cl_kernel kernel;
        sotto_status status = st_opencl_kernel(q->device, list[i].kernel, &q->logger, &kernel, err);
        if (status == SOTTO_OK) {
            r->launch[r->n++] = prepare(kernel, &list[i]);
            status = name_launch(set_arguments(q, kernel, &list[i], err), &list[i], err);
        }
        if (status != SOTTO_OK) {
            forget(q, r);
            return status;
        }
    }
    *out = r;
    return SOTTO_OK;
}

static sotto_status replay(void *device, void *p, sotto_error *err)
{
    const queue *const q = device;
    const record *const r = p;
    for (int i = 0; i < r->n; i++)
        ST_TRY(enqueue(q, &r->launch[i], err));
    OPENCL_TRY(err, q->device, clFlush, q->commands);
    return SOTTO_OK;
}

/* ---- events ---- */

static sotto_status event_create(void *device, void **out, sotto_error *err)
{
    const queue *const q = device;
    event *const e = st_calloc(1, sizeof *e);
    *out = e;
    if (!e)
        return st_fail_memory(err, sizeof *e, "an event");
    e->device = q->device;
    return SOTTO_OK;
}

static sotto_status event_record(void *device, void *p, sotto_error *err)
{
    const queue *const q = device;
    event *const e = p;
    cl_event marker = NULL;
    OPENCL_TRY(err, q->device, clEnqueueMarkerWithWaitList, q->commands, 0, NULL, &marker);
    if (e->happened)
        e->device->cl->clReleaseEvent(e->happened);
    e->happened = marker;
    e->device = q->device;
    OPENCL_TRY(err, q->device, clFlush, q->commands); /* another queue may wait for it */
    return SOTTO_OK;
}

static sotto_status event_wait(void *device, void *p, sotto_error *err)
{
    const queue *const q = device;
    const event *const e = p;
    if (!e->happened)
        return SOTTO_OK;
    if (e->device != q->device) { /* of another context, which this queue cannot wait for */
        OPENCL_TRY(err, e->device, clWaitForEvents, 1, &e->happened);
        return SOTTO_OK;
    }
    OPENCL_TRY(err, q->device, clEnqueueBarrierWithWaitList, q->commands, 1, &e->happened, NULL);
    return SOTTO_OK;
}

static sotto_status event_seconds(void *device, void *from, void *to, double *seconds, sotto_error *err)
{
    const queue *const q = device;
    const event *const e[2] = {from, to};
    cl_ulong at[2] = {0, 0};
    *seconds = 0;
    for (int i = 0; i < 2; i++) {
        if (!e[i]->happened)
            return st_fail(err, SOTTO_E_ARGUMENT, "%s: the time of an event that was never recorded",
                           q->device->caps.id);
        OPENCL_TRY(err, q->device, clWaitForEvents, 1, &e[i]->happened);
        OPENCL_TRY(err, q->device, clGetEventProfilingInfo, e[i]->happened, CL_PROFILING_COMMAND_END, sizeof at[i],
                   &at[i], NULL);
    }
    *seconds = at[1] > at[0] ? (double)(at[1] - at[0]) * 1e-9 : 0;
    return SOTTO_OK;
}

static void event_free(void *device, void *p)
{
    (void)device;
    event *const e = p;
    if (e && e->happened)
        e->device->cl->clReleaseEvent(e->happened);
    st_free(e);
}

const st_gpu_api st_gpu_opencl = {
    .name = "opencl",
    .device_count = st_opencl_count,
    .no_gpu = st_opencl_no_gpu,
    .why_none = st_opencl_why_none,
    .device_caps = device_caps,
    .open = open_queue,
    .close = close_queue,
    .alloc = alloc_memory,
    .free = free_memory,
    .wrap = wrap_memory,
    .map = map_memory,
    .write = write_memory,
    .read = read_memory,
    .copy = copy_memory,
    .fill_zero = fill_zero,
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
};

ST_GPU_BACKEND(st_backend_opencl, "opencl", st_gpu_opencl, SOTTO_DEVICE_GPU);
