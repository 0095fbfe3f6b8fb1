/* cuda.c: NVIDIA devices through the driver's interface: devices, kernels, replay. A recorded list is a graph of explicit
 * kernel nodes, one after another: nothing is captured, so that no call of another thread can disturb it. Where kernels can
 * wait by themselves, each is started while the one in front of it is still at work. */
#include <stdio.h>
#include <string.h>

#include "backends/gpu/api/cuda/cuda_device.h"
#include "backends/gpu/api/cuda/images.h"
#include "backends/gpu/gpu_backend.h"
#include "base/alloc.h"
#include "base/status.h"

enum { WRAP_PAGE = 4096 };

/* CUresult after which the context gives nothing but errors: the device, a kernel or the context broke. */
static bool is_final(int code)
{
    static const int final[] = {4,   46,  201, 214, 220, 226, 304, 700, 702, 709,
                                710, 714, 715, 716, 717, 718, 719, 721, 999};
    for (size_t i = 0; i < sizeof final / sizeof final[0]; i++)
        if (final[i] == code)
            return true;
    return false;
}

/* `index` is the device's. */
static sotto_status fail_call(const st_cuda_driver *d, int index, int code, const char *call, sotto_error *err)
{
    const char *name = NULL, *text = NULL;
    if (d->error_name(code, &name) != ST_CU_OK || !name)
        name = "an unknown error";
    if (d->error_text(code, &text) != ST_CU_OK || !text)
        text = "no description";
    const sotto_status status = code == ST_CU_NO_MEMORY ? SOTTO_E_MEMORY : SOTTO_E_DEVICE;
    return st_fail(err, status, "cuda:%d: %s gave error %d, %s: %s", index, call, code, name, text);
}

sotto_status st_cuda_check(st_cuda *c, int code, const char *call, sotto_error *err)
{
    if (code == ST_CU_OK)
        return SOTTO_OK;
    const sotto_status status = fail_call(c->d, c->index, code, call, err);
    if (is_final(code) && c->lost.code == SOTTO_OK)
        fail_call(c->d, c->index, code, call, &c->lost);
    return status;
}

sotto_status st_cuda_enter(st_cuda *c, sotto_error *err)
{
    if (c->lost.code != SOTTO_OK)
        return st_fail(err, SOTTO_E_DEVICE, "cuda:%d is lost: %.400s", c->index, c->lost.text);
    return st_cuda_check(c, c->d->push(c->context), "cuCtxPushCurrent", err);
}

void st_cuda_leave(st_cuda *c)
{
    st_cu_context previous;
    c->d->pop(&previous);
}

bool st_cuda_push(const st_cuda_driver *d, st_cu_context context)
{
    return d->push(context) == ST_CU_OK;
}

void st_cuda_pop(const st_cuda_driver *d, bool pushed)
{
    st_cu_context previous;
    if (pushed)
        d->pop(&previous);
}

static int cuda_count(void)
{
    return st_cuda_driver_get()->n_devices;
}

static void cuda_why_none(char *out, size_t size)
{
    snprintf(out, size, "%s", st_cuda_driver_get()->why_none);
}

static int attribute(const st_cuda_driver *d, st_cu_device device, int which)
{
    int value = 0;
    return d->attribute(&value, which, device) == ST_CU_OK ? value : 0;
}

static sotto_status find_device(int index, st_cu_device *device, sotto_error *err)
{
    const st_cuda_driver *d = st_cuda_driver_get();
    if (index < 0 || index >= d->n_devices)
        return st_fail(err, SOTTO_E_NOT_FOUND,
                       d->n_devices == 1 ? "cuda:%d: there is %d CUDA device" : "cuda:%d: there are %d CUDA devices",
                       index, d->n_devices);
    const int code = d->device(device, index);
    return code == ST_CU_OK ? SOTTO_OK : fail_call(d, index, code, "cuDeviceGet", err);
}

/* 86 for a device of compute capability 8.6; one below 7.5 has no kernels. */
static sotto_status read_arch(const st_cuda_driver *d, int index, st_cu_device device, int *arch, sotto_error *err)
{
    int major = 0, minor = 0;
    int code = d->attribute(&major, ST_CU_ATTR_MAJOR, device);
    if (code == ST_CU_OK)
        code = d->attribute(&minor, ST_CU_ATTR_MINOR, device);
    if (code != ST_CU_OK)
        return fail_call(d, index, code, "cuDeviceGetAttribute", err);
    *arch = major * 10 + minor;
    if (*arch < 75)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "cuda:%d is of compute capability %d.%d; 7.5 is the least", index,
                       major, minor);
    return SOTTO_OK;
}

/* What is free is known to a context only. */
static void read_memory(const st_cuda_driver *d, st_cu_device device, st_gpu_caps *out)
{
    size_t bytes = 0, total = 0;
    st_cu_context context, previous;
    if (d->device_bytes(&bytes, device) == ST_CU_OK)
        out->memory_total = bytes;
    if (d->retain(&context, device) != ST_CU_OK)
        return;
    if (d->push(context) == ST_CU_OK) {
        if (d->memory_info(&bytes, &total) == ST_CU_OK)
            out->memory_free = bytes;
        d->pop(&previous);
    }
    d->release(device);
}

static sotto_status cuda_caps(int index, st_gpu_caps *out, sotto_error *err)
{
    const st_cuda_driver *d = st_cuda_driver_get();
    st_cu_device device;
    *out = (st_gpu_caps){0};
    ST_TRY(find_device(index, &device, err));
    const int code = d->device_name(out->name, sizeof out->name, device);
    if (code != ST_CU_OK)
        return fail_call(d, index, code, "cuDeviceGetName", err);
    int arch = 0;
    ST_TRY(read_arch(d, index, device, &arch, err));
    int version = 0;
    d->version(&version);
    snprintf(out->id, sizeof out->id, "cuda:%d", index);
    read_memory(d, device, out);
    out->working_set = out->memory_total;
    out->max_buffer = (size_t)out->memory_total;
    out->alignment = 256;
    out->local_bytes = (size_t)attribute(d, device, ST_CU_ATTR_LOCAL_BYTES);
    out->max_group = attribute(d, device, ST_CU_ATTR_GROUP);
    out->subgroup = 32;
    out->n_units = attribute(d, device, ST_CU_ATTR_UNITS);
    out->has_mma = arch >= 80;
    out->has_dot4 = true;
    out->is_gpu = true;
    out->unified = attribute(d, device, ST_CU_ATTR_INTEGRATED) != 0;
    const bool wraps = out->unified && d->host_address && attribute(d, device, ST_CU_ATTR_REGISTERS_READ_ONLY);
    out->wrap_page = wraps ? WRAP_PAGE : 0;
    snprintf(out->features, sizeof out->features, "sm_%d driver-%d.%d dot4%s graphs%s", arch, version / 1000,
             version % 1000 / 10, out->has_mma ? " mma" : "", out->unified ? " unified" : "");
    return SOTTO_OK;
}

static void cuda_close(void *device)
{
    st_cuda *c = device;
    if (!c)
        return;
    if (c->context) {
        const bool pushed = st_cuda_push(c->d, c->context);
        if (c->stream)
            c->d->stream_sync(c->stream); /* of a lost device as well: its errors no longer matter */
        for (int i = 0; i < ST_GPU_KERNEL_COUNT; i++)
            if (c->module[i])
                c->d->module_unload(c->module[i]);
        st_cuda_staging_close(c);
        if (c->stream)
            c->d->stream_destroy(c->stream);
        st_cuda_pop(c->d, pushed);
        c->d->release(c->device);
    }
    st_free(c);
}

static sotto_status open_in(st_cuda *c, sotto_error *err)
{
    ST_TRY(st_cuda_check(c, c->d->retain(&c->context, c->device), "cuDevicePrimaryCtxRetain", err));
    ST_TRY(st_cuda_enter(c, err));
    sotto_status status =
        st_cuda_check(c, c->d->stream_create(&c->stream, ST_CU_STREAM_NON_BLOCKING), "cuStreamCreate", err);
    if (status == SOTTO_OK)
        status = st_cuda_staging_open(c, err);
    st_cuda_leave(c);
    return status;
}

static sotto_status cuda_open(int index, const sotto_logger *logger, void **device, sotto_error *err)
{
    *device = NULL;
    st_cuda *c = st_calloc(1, sizeof *c);
    if (!c)
        return st_fail_memory(err, sizeof *c, "a CUDA device");
    c->d = st_cuda_driver_get();
    c->index = index;
    if (logger)
        c->logger = *logger;
    sotto_status status = find_device(index, &c->device, err);
    if (status == SOTTO_OK)
        status = read_arch(c->d, index, c->device, &c->arch, err);
    if (status == SOTTO_OK)
        status = open_in(c, err);
    if (status != SOTTO_OK) {
        cuda_close(c);
        return status;
    }
    *device = c;
    return SOTTO_OK;
}

/* Machine code of exactly this architecture, or the PTX of the highest one that is not above it. NULL: none. */
static const st_cuda_image *image_of(const st_cuda *c, const char *module, bool machine_code)
{
    const st_cuda_image *best = NULL;
    for (int i = 0; i < st_cuda_n_images; i++) {
        const st_cuda_image *image = &st_cuda_images[i];
        if (image->machine_code != machine_code || strcmp(image->module, module) != 0)
            continue;
        if (machine_code ? image->arch == c->arch : image->arch <= c->arch && (!best || image->arch > best->arch))
            best = image;
    }
    return best;
}

static sotto_status load_module(st_cuda *c, const char *name, st_cu_module *module, bool *may_wait, sotto_error *err)
{
    *may_wait = false;
    const st_cuda_image *code = image_of(c, name, true), *ptx = image_of(c, name, false);
    if (!code && !ptx)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "cuda:%d: the library has no kernels of module %s for sm_%d", c->index,
                       name, c->arch);
    int result = ST_CU_NO_BINARY;
    if (code) {
        result = c->d->module_load(module, code->data);
        *may_wait = result == ST_CU_OK && code->arch >= 90;
    }
    if (result != ST_CU_OK && !is_final(result) && ptx) { /* an older driver may refuse the machine code */
        st_log(&c->logger, SOTTO_LOG_DEBUG, "cuda:%d: the driver compiles module %s for sm_%d", c->index, name, c->arch);
        result = c->d->module_load(module, ptx->data);
    }
    return st_cuda_check(c, result, "cuModuleLoadData", err);
}

/* A kernel whose group's memory may be over 48 KB says how much it is in a variable of its module. */
static sotto_status read_local_bytes(st_cuda *c, st_gpu_kernel kernel, st_cu_module module, st_cu_function function,
                                     sotto_error *err)
{
    char name[100];
    st_cu_address at = 0;
    size_t size = 0;
    int bytes = 0;
    snprintf(name, sizeof name, "%s_local_bytes", st_gpu_kernels[kernel].name);
    int code = c->d->global(&at, &size, module, name);
    if (code == ST_CU_NOT_FOUND)
        return SOTTO_OK;
    ST_TRY(st_cuda_check(c, code, "cuModuleGetGlobal", err));
    if (size != sizeof bytes)
        return st_fail(err, SOTTO_E_INTERNAL, "cuda:%d: %s is of %zu bytes, not %zu", c->index, name, size,
                       sizeof bytes);
    ST_TRY(st_cuda_check(c, c->d->to_host(&bytes, at, sizeof bytes, c->stream), "cuMemcpyDtoHAsync", err));
    ST_TRY(st_cuda_check(c, c->d->stream_sync(c->stream), "cuStreamSynchronize", err));
    code = c->d->function_set(function, ST_CU_FUNCTION_LOCAL_BYTES, bytes);
    if (code != ST_CU_OK && !is_final(code))
        return st_fail(err, SOTTO_E_UNSUPPORTED,
                       "cuda:%d: kernel %s needs %d bytes of a group's memory, more than sm_%d has", c->index,
                       st_gpu_kernels[kernel].name, bytes, c->arch);
    ST_TRY(st_cuda_check(c, code, "cuFuncSetAttribute", err));
    c->local_bytes[kernel] = (unsigned)bytes;
    return SOTTO_OK;
}

/* The first kernel of the module, at which it is kept. */
static int first_of(st_gpu_kernel kernel)
{
    int first = 0;
    while (strcmp(st_gpu_kernels[first].module, st_gpu_kernels[kernel].module) != 0)
        first++;
    return first;
}

/* Within enter and leave. */
static sotto_status find_function(st_cuda *c, st_gpu_kernel kernel, sotto_error *err)
{
    if (c->function[kernel])
        return SOTTO_OK;
    const int first = first_of(kernel);
    if (!c->module[first])
        ST_TRY(load_module(c, st_gpu_kernels[kernel].module, &c->module[first], &c->may_wait[first], err));
    st_cu_function function = NULL;
    ST_TRY(st_cuda_check(c, c->d->function(&function, c->module[first], st_gpu_kernels[kernel].name),
                         "cuModuleGetFunction", err));
    ST_TRY(read_local_bytes(c, kernel, c->module[first], function, err));
    c->function[kernel] = function;
    return SOTTO_OK;
}

static sotto_status cuda_ready(void *device, st_gpu_kernel kernel, sotto_error *err)
{
    st_cuda *c = device;
    ST_TRY(st_cuda_enter(c, err));
    const sotto_status status = find_function(c, kernel, err);
    st_cuda_leave(c);
    return status;
}

/* What the driver is given for a launch: pointers to the parameter struct and to each address. */
typedef struct call {
    st_cu_address address[ST_GPU_MAX_ARGS];
    void *param[1 + ST_GPU_MAX_ARGS];
} call;

static sotto_status make_call(st_cuda *c, const st_gpu_launch *l, call *out, sotto_error *err)
{
    const st_gpu_kernel_info *info = &st_gpu_kernels[l->kernel];
    if (l->n_param_bytes != info->param_bytes || l->n_args != info->n_args)
        return st_fail(err, SOTTO_E_INTERNAL, "kernel %s: %u bytes and %d buffers given, %zu and %d expected",
                       info->name, l->n_param_bytes, l->n_args, info->param_bytes, info->n_args);
    ST_TRY(find_function(c, l->kernel, err));
    out->param[0] = (void *)(uintptr_t)l->params; /* only read */
    for (int i = 0; i < l->n_args; i++) {
        const st_cuda_memory *memory = l->arg[i].buffer ? l->arg[i].buffer->handle : NULL;
        out->address[i] = memory ? memory->address + l->arg[i].offset : 0;
        out->param[1 + i] = &out->address[i];
    }
    return SOTTO_OK;
}

static sotto_status launch_list(st_cuda *c, const st_gpu_launch *list, int n, sotto_error *err)
{
    for (int i = 0; i < n; i++) {
        const st_gpu_launch *l = &list[i];
        call k;
        ST_TRY(make_call(c, l, &k, err));
        const int code = c->d->launch(c->function[l->kernel], l->grid[0], l->grid[1], l->grid[2],
                                      (unsigned)st_gpu_kernels[l->kernel].group, 1, 1, c->local_bytes[l->kernel],
                                      c->stream, k.param, NULL);
        if (code != ST_CU_OK) {
            char what[80];
            snprintf(what, sizeof what, "cuLaunchKernel of %s", st_gpu_kernels[l->kernel].name);
            return st_cuda_check(c, code, what, err);
        }
    }
    return SOTTO_OK;
}

static sotto_status cuda_launch(void *device, const st_gpu_launch *list, int n, sotto_error *err)
{
    st_cuda *c = device;
    ST_TRY(st_cuda_enter(c, err));
    const sotto_status status = launch_list(c, list, n, err);
    st_cuda_leave(c);
    return status;
}

static sotto_status add_nodes(st_cuda *c, st_cu_graph graph, const st_gpu_launch *list, int n, sotto_error *err)
{
    st_cu_node last = NULL;
    for (int i = 0; i < n; i++) {
        const st_gpu_launch *l = &list[i];
        call k;
        ST_TRY(make_call(c, l, &k, err));
        const st_cu_kernel_node node = {.function = c->function[l->kernel],
                                        .grid = {l->grid[0], l->grid[1], l->grid[2]},
                                        .block = {(unsigned)st_gpu_kernels[l->kernel].group, 1, 1},
                                        .shared_bytes = c->local_bytes[l->kernel],
                                        .params = k.param};
        st_cu_node fresh = NULL;
        const bool early = last && c->d->graph_depend && c->may_wait[first_of(l->kernel)];
        const bool after = last && !early;
        ST_TRY(st_cuda_check(c, c->d->graph_kernel(&fresh, graph, after ? &last : NULL, after ? 1 : 0, &node),
                             "cuGraphAddKernelNode", err));
        if (early) {
            const st_cu_edge edge = {.from_port = ST_CU_PROGRAMMATIC, .type = ST_CU_PROGRAMMATIC};
            ST_TRY(st_cuda_check(c, c->d->graph_depend(graph, &last, &fresh, &edge, 1), "cuGraphAddDependencies", err));
        }
        last = fresh;
    }
    return SOTTO_OK;
}

static sotto_status cuda_record(void *device, const st_gpu_launch *list, int n, void **record, sotto_error *err)
{
    st_cuda *c = device;
    st_cu_graph graph = NULL;
    st_cu_exec exec = NULL;
    *record = NULL;
    ST_TRY(st_cuda_enter(c, err));
    sotto_status status = st_cuda_check(c, c->d->graph_create(&graph, 0), "cuGraphCreate", err);
    if (status == SOTTO_OK) {
        status = add_nodes(c, graph, list, n, err);
        if (status == SOTTO_OK)
            status = st_cuda_check(c, c->d->graph_instantiate(&exec, graph, 0), "cuGraphInstantiateWithFlags", err);
        c->d->graph_destroy(graph);
    }
    st_cuda_leave(c);
    if (status == SOTTO_OK)
        *record = exec;
    return status;
}

static sotto_status cuda_replay(void *device, void *record, sotto_error *err)
{
    st_cuda *c = device;
    ST_TRY(st_cuda_enter(c, err));
    const sotto_status status = st_cuda_check(c, c->d->graph_launch(record, c->stream), "cuGraphLaunch", err);
    st_cuda_leave(c);
    return status;
}

static void cuda_forget(void *device, void *record)
{
    st_cuda *c = device;
    if (!record)
        return;
    const bool pushed = st_cuda_push(c->d, c->context);
    c->d->stream_sync(c->stream);
    c->d->graph_exec_destroy(record);
    st_cuda_pop(c->d, pushed);
}

static sotto_status cuda_sync(void *device, sotto_error *err)
{
    st_cuda *c = device;
    ST_TRY(st_cuda_enter(c, err));
    const sotto_status status = st_cuda_check(c, c->d->stream_sync(c->stream), "cuStreamSynchronize", err);
    st_cuda_leave(c);
    return status;
}

static void *cuda_map(void *memory)
{
    (void)memory;
    return NULL;
}

extern const st_gpu_api st_gpu_cuda;
const st_gpu_api st_gpu_cuda = {
    .name = "cuda",
    .device_count = cuda_count,
    .why_none = cuda_why_none,
    .device_caps = cuda_caps,
    .open = cuda_open,
    .close = cuda_close,
    .alloc = st_cuda_alloc,
    .free = st_cuda_free,
    .wrap = st_cuda_wrap,
    .map = cuda_map,
    .write = st_cuda_write,
    .read = st_cuda_read,
    .copy = st_cuda_copy,
    .fill_zero = st_cuda_fill_zero,
    .ready = cuda_ready,
    .launch = cuda_launch,
    .record = cuda_record,
    .replay = cuda_replay,
    .forget = cuda_forget,
    .sync = cuda_sync,
    .event_create = st_cuda_event_create,
    .event_record = st_cuda_event_record,
    .event_wait = st_cuda_event_wait,
    .event_seconds = st_cuda_event_seconds,
    .event_free = st_cuda_event_free,
    .pin = st_cuda_pin,
    .unpin = st_cuda_unpin,
};

ST_GPU_BACKEND(st_backend_cuda, "cuda", st_gpu_cuda, SOTTO_DEVICE_GPU);
