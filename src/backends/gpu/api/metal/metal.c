/* metal.c: GPUs of Apple through Metal, in plain C (see objc.h). Kernels are compiled from their text when a module is
 * first used. One serial queue a device; lists of launches go out in groups of command buffers, so that the GPU begins
 * while the rest is being encoded. */
#include "backends/gpu/api/metal/metal.h"

#include <stdio.h>
#include <string.h>

#include "backends/gpu/gpu_backend.h"
#include "base/alloc.h"
#include "base/status.h"
#include "base/thread.h"

enum {
    FAMILY_APPLE7 = 1007, /* M1: matrices, reductions of subgroups */
    FAMILY_LAST = 1012,
    LANGUAGE_2_4 = (2 << 16) + 4,
    MATH_MODE_SAFE = 0,
    MAX_GROUP = 1024,
    LANES = 32,
    CAPTURE_TO_FILE = 2,
    UNITS = 16,      /* Metal does not tell; 8 to 80 are sold */
    MIN_LAUNCHES = 8 /* of a command buffer */
};

/* ---- devices ---- */

st_metal_gpu *st_metal_gpu_retain(st_metal_gpu *gpu)
{
    atomic_fetch_add(&gpu->references, 1);
    return gpu;
}

void st_metal_gpu_release(st_metal_gpu *gpu)
{
    if (atomic_fetch_sub(&gpu->references, 1) > 1)
        return;
    mtl_release(&gpu->objc, gpu->device);
    st_free(gpu);
}

/* How many devices can be used; *wanted, which may be NULL, becomes the index-th of them, which the caller releases. */
static int usable_devices(const st_objc *o, int index, mtl_id *wanted)
{
    const mtl_id all = o->all_devices();
    const mtl_uint n = all ? mtl_count(o, all) : 0;
    int usable = 0;
    for (mtl_uint i = 0; i < n; i++) {
        const mtl_id device = mtl_object_at(o, all, i);
        if (!mtl_supports_family(o, device, FAMILY_APPLE7))
            continue;
        if (wanted && usable == index)
            *wanted = mtl_retain(o, device);
        usable++;
    }
    if (all)
        mtl_release(o, all);
    return usable;
}

static int metal_device_count(void)
{
    st_objc o;
    if (!st_objc_load(&o))
        return 0;
    void *const pool = o.pool_push();
    const int n = usable_devices(&o, 0, NULL);
    o.pool_pop(pool);
    return n;
}

static sotto_status find_device(const st_objc *o, int index, mtl_id *device, sotto_error *err)
{
    *device = NULL;
    const int n = usable_devices(o, index, device);
    if (*device)
        return SOTTO_OK;
    return st_fail(err, SOTTO_E_NOT_FOUND,
                   n == 1 ? "metal:%d: there is %d device of the family Apple7 or later"
                          : "metal:%d: there are %d devices of the family Apple7 or later",
                   index, n);
}

static void read_caps(const st_objc *o, mtl_id device, int index, st_gpu_caps *out)
{
    memset(out, 0, sizeof *out);
    const mtl_id name = mtl_name(o, device);
    const char *const text = name ? mtl_utf8(o, name) : NULL;
    int family = FAMILY_APPLE7;
    while (family < FAMILY_LAST && mtl_supports_family(o, device, family + 1))
        family++;
    out->unified = mtl_has_unified_memory(o, device);
    snprintf(out->id, sizeof out->id, "metal:%d", index);
    snprintf(out->name, sizeof out->name, "%s", text ? text : "a GPU without a name");
    snprintf(out->features, sizeof out->features, "apple%d simdgroup-matrix%s", family - FAMILY_APPLE7 + 7,
             out->unified ? " unified-memory" : "");
    /* Metal does not tell how much memory there is, but how much of it is best used at most. */
    const uint64_t allocated = mtl_allocated(o, device);
    out->working_set = out->memory_total = mtl_working_set(o, device);
    out->memory_free = out->memory_total > allocated ? out->memory_total - allocated : 0;
    out->max_buffer = mtl_max_buffer(o, device);
    out->alignment = 256;
    out->wrap_page = out->unified ? ST_METAL_PAGE : 0;
    out->local_bytes = mtl_max_group_memory(o, device);
    out->max_group = MAX_GROUP;
    out->n_units = UNITS;
    out->subgroup = LANES;
    out->has_mma = true;
    out->is_gpu = true;
}

static sotto_status caps_of(const st_objc *o, int index, st_gpu_caps *out, sotto_error *err)
{
    mtl_id device;
    ST_TRY(find_device(o, index, &device, err));
    read_caps(o, device, index, out);
    mtl_release(o, device);
    return SOTTO_OK;
}

static sotto_status metal_device_caps(int index, st_gpu_caps *out, sotto_error *err)
{
    st_objc o;
    memset(out, 0, sizeof *out);
    if (!st_objc_load(&o))
        return st_fail(err, SOTTO_E_NOT_FOUND, "metal:%d: there is no Metal on this system", index);
    ST_METAL_IN_POOL(&o, caps_of(&o, index, out, err));
}

/* ---- opening ---- */

st_metal_options st_metal_default_options(void)
{
    return (st_metal_options){.groups = 2};
}

void st_metal_set_options(void *device, const st_metal_options *options)
{
    st_metal *m = device;
    m->options = *options;
}

/* No fast mathematics: setMathMode: where there is it, which is macOS 15, else the older word. */
static mtl_id make_compile_options(const st_objc *o)
{
    const mtl_id options = mtl_new_object(o, o->class_named("MTLCompileOptions"));
    if (!options)
        return NULL;
    mtl_set_language(o, options, LANGUAGE_2_4);
    if (mtl_responds(o, options, o->sel.set_math_mode))
        mtl_set_math_mode(o, options, MATH_MODE_SAFE);
    else
        mtl_set_fast_math(o, options, false);
    return options;
}

static sotto_status open_device(st_metal *m, int index, sotto_error *err)
{
    const st_objc *o = &m->gpu->objc;
    st_gpu_caps caps;
    ST_TRY(find_device(o, index, &m->gpu->device, err));
    read_caps(o, m->gpu->device, index, &caps);
    memcpy(m->id, caps.id, sizeof m->id);
    m->unified = caps.unified;
    m->max_buffer = caps.max_buffer;
    m->options = st_metal_default_options();
    m->queue = mtl_new_queue(o, m->gpu->device);
    m->compile_options = make_compile_options(o);
    if (!m->queue || !m->compile_options)
        return st_metal_fail(m, NULL, m->queue ? "no compile options" : "no command queue", err);
    return SOTTO_OK;
}

static sotto_status close_device(st_metal *m)
{
    const st_objc *o = &m->gpu->objc;
    sotto_error ignored;
    (void)st_metal_finish(m, &ignored);
    for (int i = 0; i < ST_GPU_KERNEL_COUNT; i++) {
        mtl_release(o, m->pipeline[i]); /* messages to nil do nothing */
        mtl_release(o, m->library[i]);
    }
    mtl_release(o, m->compile_options);
    mtl_release(o, m->queue);
    return SOTTO_OK;
}

static sotto_status close_in_pool(st_metal *m)
{
    ST_METAL_IN_POOL(&m->gpu->objc, close_device(m));
}

static void metal_close(void *device)
{
    st_metal *m = device;
    if (!m)
        return;
    (void)close_in_pool(m);
    st_metal_gpu_release(m->gpu);
    st_free(m);
}

static sotto_status open_in_pool(st_metal *m, int index, sotto_error *err)
{
    ST_METAL_IN_POOL(&m->gpu->objc, open_device(m, index, err));
}

static void metal_why_none(char *out, size_t size)
{
    snprintf(out, size, "there is no Metal on this system");
}

static sotto_status metal_open(int index, const sotto_logger *logger, void **device, sotto_error *err)
{
    *device = NULL;
    st_metal *m = st_calloc(1, sizeof *m);
    st_metal_gpu *gpu = st_calloc(1, sizeof *gpu);
    if (!m || !gpu || !st_objc_load(&gpu->objc)) {
        const bool memory = !m || !gpu;
        st_free(m);
        st_free(gpu);
        return memory ? st_fail_memory(err, sizeof *m + sizeof *gpu, "a Metal device")
                      : st_fail(err, SOTTO_E_NOT_FOUND, "metal:%d: there is no Metal on this system", index);
    }
    atomic_init(&gpu->references, 1);
    m->gpu = gpu;
    if (logger)
        m->logger = *logger;
    const sotto_status status = open_in_pool(m, index, err);
    if (status != SOTTO_OK) {
        metal_close(m);
        return status;
    }
    *device = m;
    return SOTTO_OK;
}

/* ---- kernels ---- */

static sotto_status compile_module(st_metal *m, const char *module, mtl_id *library, sotto_error *err)
{
    const st_objc *o = &m->gpu->objc;
    char what[64];
    snprintf(what, sizeof what, "%s.krn does not compile", module);
    char *source = st_gpu_source("metal/prelude.h", module);
    if (!source)
        return st_fail(err, SOTTO_E_MEMORY, "%s: no memory for the text of %s.krn", m->id, module);
    const double start = st_time_now();
    const mtl_id text = mtl_string(o, o->class_named("NSString"), source);
    st_free(source);
    mtl_id error = NULL; /* also set by warnings */
    *library = text ? mtl_new_library(o, m->gpu->device, text, m->compile_options, &error) : NULL;
    if (!*library)
        return st_metal_fail(m, error, what, err);
    st_log(&m->logger, SOTTO_LOG_DEBUG, "%s: compiled %s.krn in %.0f ms", m->id, module, (st_time_now() - start) * 1000);
    return SOTTO_OK;
}

static sotto_status make_pipeline(st_metal *m, st_gpu_kernel kernel, sotto_error *err)
{
    const st_objc *o = &m->gpu->objc;
    const st_gpu_kernel_info *info = &st_gpu_kernels[kernel];
    int home = 0;
    while (strcmp(st_gpu_kernels[home].module, info->module) != 0)
        home++;
    if (!m->library[home])
        ST_TRY(compile_module(m, info->module, &m->library[home], err));
    const mtl_id name = mtl_string(o, o->class_named("NSString"), info->name);
    const mtl_id function = name ? mtl_new_function(o, m->library[home], name) : NULL;
    if (!function)
        return st_metal_fail(m, NULL, info->name, err);
    mtl_id error = NULL;
    const mtl_id pipeline = mtl_new_pipeline(o, m->gpu->device, function, &error);
    mtl_release(o, function);
    if (!pipeline)
        return st_metal_fail(m, error, info->name, err);
    const mtl_uint lanes = mtl_lanes(o, pipeline), most = mtl_max_group(o, pipeline);
    if (lanes != LANES || most < (mtl_uint)info->group) {
        mtl_release(o, pipeline);
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%s: %s gets subgroups of %lu and groups of %lu, and needs %d and %d",
                       m->id, info->name, lanes, most, LANES, info->group);
    }
    m->pipeline[kernel] = pipeline;
    return SOTTO_OK;
}

static sotto_status get_ready(st_metal *m, st_gpu_kernel kernel, sotto_error *err)
{
    return m->pipeline[kernel] ? SOTTO_OK : make_pipeline(m, kernel, err);
}

static sotto_status metal_ready(void *device, st_gpu_kernel kernel, sotto_error *err)
{
    st_metal *m = device;
    ST_METAL_IN_POOL(&m->gpu->objc, get_ready(m, kernel, err));
}

/* ---- launches ---- */

static sotto_status check_launch(const st_metal *m, const st_gpu_launch *l, sotto_error *err)
{
    const st_gpu_kernel_info *info = &st_gpu_kernels[l->kernel];
    if (l->n_args != info->n_args || l->n_param_bytes != info->param_bytes)
        return st_fail(err, SOTTO_E_INTERNAL, "%s: %s with %d buffers and %u bytes of parameters, it has %d and %zu",
                       m->id, info->name, l->n_args, (unsigned)l->n_param_bytes, info->n_args, info->param_bytes);
    for (int i = 0; i < l->n_args; i++) {
        const st_metal_memory *own = l->arg[i].buffer ? l->arg[i].buffer->handle : NULL;
        if (!own || l->arg[i].offset > own->bytes)
            return st_fail(err, SOTTO_E_INTERNAL, "%s: %s: buffer %d is missing or ends before byte %llu", m->id,
                           info->name, i, (unsigned long long)l->arg[i].offset);
    }
    return SOTTO_OK;
}

static sotto_status encode_launch(st_metal *m, const st_gpu_launch *l, sotto_error *err)
{
    const st_objc *o = &m->gpu->objc;
    ST_TRY(check_launch(m, l, err));
    ST_TRY(get_ready(m, l->kernel, err));
    ST_TRY(st_metal_encode(m, ST_METAL_COMPUTE, err));
    mtl_set_pipeline(o, m->encoder, m->pipeline[l->kernel]);
    mtl_set_bytes(o, m->encoder, l->params, l->n_param_bytes, 0);
    for (int i = 0; i < l->n_args; i++) {
        const st_metal_memory *own = l->arg[i].buffer->handle;
        mtl_set_buffer(o, m->encoder, own->buffer, l->arg[i].offset, (mtl_uint)i + 1);
    }
    mtl_dispatch(o, m->encoder, (mtl_size){l->grid[0], l->grid[1], l->grid[2]},
                 (mtl_size){(mtl_uint)st_gpu_kernels[l->kernel].group, 1, 1});
    return SOTTO_OK;
}

/* The next launches go to a file that Xcode opens. */
static sotto_status start_capture(st_metal *m, sotto_error *err)
{
    const st_objc *o = &m->gpu->objc;
    const mtl_id manager = mtl_shared_capture(o, o->class_named("MTLCaptureManager"));
    const mtl_id path = mtl_string(o, o->class_named("NSString"), m->options.capture);
    const mtl_id url = path ? mtl_file_url(o, o->class_named("NSURL"), path) : NULL;
    m->options.capture = NULL;
    if (!manager || !url || !mtl_supports_destination(o, manager, CAPTURE_TO_FILE))
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%s: no captures to files; is METAL_CAPTURE_ENABLED=1 set?", m->id);
    const mtl_id descriptor = mtl_new_object(o, o->class_named("MTLCaptureDescriptor"));
    if (!descriptor)
        return st_metal_fail(m, NULL, "no capture descriptor", err);
    mtl_set_capture_object(o, descriptor, m->queue);
    mtl_set_destination(o, descriptor, CAPTURE_TO_FILE);
    mtl_set_output_url(o, descriptor, url);
    mtl_id error = NULL;
    m->capturing = mtl_start_capture(o, manager, descriptor, &error);
    mtl_release(o, descriptor);
    return m->capturing ? SOTTO_OK : st_metal_fail(m, error, "the capture does not start", err);
}

static sotto_status launch_group(st_metal *m, const st_gpu_launch *list, int n, sotto_error *err)
{
    if (m->options.abort) {
        if (m->options.abort(m->options.abort_user))
            return st_fail(err, SOTTO_E_ABORTED, "%s: asked to stop", m->id);
        ST_TRY(st_metal_wait_until(m, 1, err));
    }
    sotto_status status = SOTTO_OK;
    for (int i = 0; i < n && status == SOTTO_OK; i++)
        status = encode_launch(m, &list[i], err);
    st_metal_commit(m); /* also what was encoded before a failure: it may be waited for */
    return status;
}

static sotto_status launch_list(st_metal *m, const st_gpu_launch *list, int n, sotto_error *err)
{
    if (m->options.capture)
        ST_TRY(start_capture(m, err));
    const int groups = m->options.groups > 1 ? m->options.groups : 1;
    int step = (n + groups - 1) / groups;
    if (step < MIN_LAUNCHES && !m->options.abort)
        step = MIN_LAUNCHES;
    for (int i = 0; i < n; i += step)
        ST_TRY(launch_group(m, list + i, n - i < step ? n - i : step, err));
    return SOTTO_OK;
}

static sotto_status metal_launch(void *device, const st_gpu_launch *list, int n, sotto_error *err)
{
    st_metal *m = device;
    ST_METAL_IN_POOL(&m->gpu->objc, launch_list(m, list, n, err));
}

static sotto_status metal_sync(void *device, sotto_error *err)
{
    st_metal *m = device;
    ST_METAL_IN_POOL(&m->gpu->objc, st_metal_finish(m, err));
}

/* ---- replay: command buffers run once, so the list is encoded again ---- */

typedef struct record {
    const st_gpu_launch *list;
    int n;
} record;

static sotto_status metal_record(void *device, const st_gpu_launch *list, int n, void **out, sotto_error *err)
{
    const st_metal *m = device;
    *out = NULL;
    for (int i = 0; i < n; i++)
        ST_TRY(check_launch(m, &list[i], err));
    for (int i = 0; i < n; i++)
        ST_TRY(metal_ready(device, list[i].kernel, err));
    record *made = st_alloc(1, sizeof *made);
    if (!made)
        return st_fail_memory(err, sizeof *made, "a list of launches");
    *made = (record){list, n};
    *out = made;
    return SOTTO_OK;
}

static sotto_status metal_replay(void *device, void *kept, sotto_error *err)
{
    const record *r = kept;
    return metal_launch(device, r->list, r->n, err);
}

static void metal_forget(void *device, void *kept)
{
    (void)device;
    st_free(kept);
}

/* ---- events ---- */

typedef struct event {
    mtl_id shared; /* any queue of the process can wait for it */
    uint64_t value;
    mtl_id commands; /* that signalled last: its end is the event's time */
} event;

static sotto_status create_event(st_metal *m, void **out, sotto_error *err)
{
    const st_objc *o = &m->gpu->objc;
    const mtl_id shared = mtl_new_shared_event(o, m->gpu->device);
    if (!shared)
        return st_metal_fail(m, NULL, "no shared event", err);
    event *e = st_calloc(1, sizeof *e);
    if (!e) {
        mtl_release(o, shared);
        return st_fail_memory(err, sizeof *e, "an event");
    }
    e->shared = shared;
    *out = e;
    return SOTTO_OK;
}

static sotto_status metal_event_create(void *device, void **out, sotto_error *err)
{
    st_metal *m = device;
    *out = NULL;
    ST_METAL_IN_POOL(&m->gpu->objc, create_event(m, out, err));
}

static sotto_status record_event(st_metal *m, event *e, sotto_error *err)
{
    const st_objc *o = &m->gpu->objc;
    st_metal_end(m);
    ST_TRY(st_metal_current(m, err));
    mtl_signal_event(o, m->current, e->shared, ++e->value);
    mtl_release(o, e->commands);
    e->commands = mtl_retain(o, m->current);
    st_metal_commit(m);
    return SOTTO_OK;
}

static sotto_status metal_event_record(void *device, void *e, sotto_error *err)
{
    st_metal *m = device;
    ST_METAL_IN_POOL(&m->gpu->objc, record_event(m, e, err));
}

static sotto_status wait_event(st_metal *m, const event *e, sotto_error *err)
{
    if (e->value == 0)
        return SOTTO_OK;
    st_metal_end(m);
    ST_TRY(st_metal_current(m, err));
    mtl_wait_event(&m->gpu->objc, m->current, e->shared, e->value);
    return SOTTO_OK;
}

static sotto_status metal_event_wait(void *device, void *e, sotto_error *err)
{
    st_metal *m = device;
    ST_METAL_IN_POOL(&m->gpu->objc, wait_event(m, e, err));
}

static sotto_status time_between(st_metal *m, const event *from, const event *to, double *seconds, sotto_error *err)
{
    const st_objc *o = &m->gpu->objc;
    if (!from->commands || !to->commands)
        return st_fail(err, SOTTO_E_ARGUMENT, "%s: the time between events that were not recorded", m->id);
    mtl_wait(o, from->commands);
    mtl_wait(o, to->commands);
    *seconds = mtl_end_time(o, to->commands) - mtl_end_time(o, from->commands);
    return SOTTO_OK;
}

static sotto_status metal_event_seconds(void *device, void *from, void *to, double *seconds, sotto_error *err)
{
    st_metal *m = device;
    *seconds = 0;
    ST_METAL_IN_POOL(&m->gpu->objc, time_between(m, from, to, seconds, err));
}

static void metal_event_free(void *device, void *out)
{
    const st_metal *m = device;
    event *e = out;
    if (!e)
        return;
    mtl_release(&m->gpu->objc, e->commands);
    mtl_release(&m->gpu->objc, e->shared);
    st_free(e);
}

const st_gpu_api st_gpu_metal = {
    .name = "metal",
    .device_count = metal_device_count,
    .device_caps = metal_device_caps,
    .open = metal_open,
    .close = metal_close,
    .why_none = metal_why_none,
    .alloc = st_metal_alloc,
    .free = st_metal_free,
    .wrap = st_metal_wrap,
    .map = st_metal_map,
    .write = st_metal_write,
    .read = st_metal_read,
    .copy = st_metal_copy,
    .fill_zero = st_metal_fill_zero,
    .ready = metal_ready,
    .launch = metal_launch,
    .record = metal_record,
    .replay = metal_replay,
    .forget = metal_forget,
    .sync = metal_sync,
    .event_create = metal_event_create,
    .event_record = metal_event_record,
    .event_wait = metal_event_wait,
    .event_seconds = metal_event_seconds,
    .event_free = metal_event_free,
};

ST_GPU_BACKEND(st_backend_metal, "metal", st_gpu_metal, SOTTO_DEVICE_GPU);
