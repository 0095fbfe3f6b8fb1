#include "backends/gpu/gpu_backend.h"

#include <stdio.h>
#include <string.h>

#include "backends/gpu/gpu_pack.h"
#include "base/alloc.h"
#include "base/status.h"
#include "sotto/quant.h"

enum { OFFLOAD_ROWS = 32, STRIP_BYTES = 4 << 20, WRAP_ALIGN = 16 /* the widest load of a kernel */ };

sotto_status st_gpu_device_info(const st_gpu_api *api, int index, sotto_device_info *out, sotto_error *err)
{
    st_gpu_caps caps;
    memset(&caps, 0, sizeof caps);
    ST_TRY(api->device_caps(index, &caps, err));
    memset(out, 0, sizeof *out);
    snprintf(out->id, sizeof out->id, "%s", caps.id);
    snprintf(out->name, sizeof out->name, "%s", caps.name);
    snprintf(out->features, sizeof out->features, "%s", caps.features);
    out->kind = caps.is_gpu ? SOTTO_DEVICE_GPU : SOTTO_DEVICE_SIMULATOR;
    out->memory_total = caps.memory_total;
    out->memory_free = caps.memory_free;
    out->max_buffer = caps.max_buffer;
    out->wraps_host_memory = api->wrap && caps.wrap_page > 0;
    out->unified = caps.unified;
    out->asynchronous = true;
    out->events = api->event_create != NULL;
    out->f16 = caps.has_mma;
    out->matrix_units = caps.has_mma;
    /* of several GPUs the one with matrix units and more memory */
    out->rank = caps.is_gpu ? 10 + (caps.has_mma ? 100 : 0) + (int)(caps.memory_total >> 31) : 0;
    out->api_version = ST_BACKEND_API_VERSION;
    return SOTTO_OK;
}

sotto_status st_gpu_open(const st_gpu_api *api, const st_backend_impl *impl, int index,
                         const sotto_backend_options *options, void **state, sotto_error *err)
{
    *state = NULL;
    st_gpu *gpu = st_calloc(1, sizeof *gpu);
    if (!gpu)
        return st_fail_memory(err, sizeof *gpu, "a GPU backend");
    gpu->api = api;
    if (options) {
        gpu->logger = options->logger;
        gpu->abort = options->abort;
        gpu->abort_user = options->abort_user;
    }
    gpu->scratch.impl = impl;
    gpu->scratch.usage = ST_BUFFER_COMPUTE;
    sotto_status status = api->device_caps(index, &gpu->caps, err);
    if (status == SOTTO_OK)
        status = api->open(index, &gpu->logger, &gpu->device, err);
    if (status != SOTTO_OK) {
        st_free(gpu);
        return status;
    }
    *state = gpu;
    return SOTTO_OK;
}

void st_gpu_close(void *state)
{
    st_gpu *gpu = state;
    if (!gpu)
        return;
    if (gpu->scratch.handle) {
        sotto_error ignored;
        (void)gpu->api->sync(gpu->device, &ignored);
        gpu->api->free(gpu->scratch.handle);
    }
    gpu->api->close(gpu->device);
    st_free(gpu);
}

void st_gpu_describe(void *state, char *out, size_t size)
{
    const st_gpu *gpu = state;
    snprintf(out, size, "%s (%s)", gpu->caps.id, gpu->caps.name);
}

sotto_dtype st_gpu_preferred_weights(void *state)
{
    return ((const st_gpu *)state)->caps.has_mma ? SOTTO_F16 : SOTTO_F32;
}

st_device_traits st_gpu_traits(void *state)
{
    const st_gpu *gpu = state;
    return (st_device_traits){.asynchronous = true, .offload_rows = gpu->caps.is_gpu ? OFFLOAD_ROWS : 0};
}

/* ---- buffers ---- */

st_buffer_traits st_gpu_buffer_traits(void *state, st_buffer_usage usage)
{
    (void)usage;
    const st_gpu *gpu = state;
    const size_t alignment = gpu->caps.alignment > 256 ? gpu->caps.alignment : 256;
    return (st_buffer_traits){.alignment = alignment,
                              .max_size = gpu->caps.max_buffer,
                              .recommended = (size_t)gpu->caps.working_set,
                              .wrap_page = gpu->api->wrap ? gpu->caps.wrap_page : 0,
                              .wrap_align = WRAP_ALIGN};
}

/* A matrix has a layout of its own. */
static bool layout_of(const sotto_tensor *t, st_gpu_layout *out)
{
    return (t->flags & ST_TENSOR_MATRIX) && st_gpu_layout_of(t->dtype, t->dim[0], st_tensor_n_rows(t), out);
}

size_t st_gpu_stored_bytes(void *state, st_buffer_usage usage, sotto_tensor *t)
{
    (void)state;
    (void)usage;
    st_gpu_layout l;
    return layout_of(t, &l) ? l.bytes : sotto_tensor_bytes(t);
}

sotto_status st_gpu_buffer_alloc(void *state, st_buffer_usage usage, size_t size, st_buffer *out, sotto_error *err)
{
    st_gpu *gpu = state;
    memset(out, 0, sizeof *out);
    void *memory;
    ST_TRY(gpu->api->alloc(gpu->device, size > 0 ? size : 1, &memory, err));
    out->usage = usage;
    out->size = size;
    out->handle = memory;
    return SOTTO_OK;
}

/* Matrices of plain floats are their rows; all other types become planes. */
bool st_gpu_stored_as_rows(void *state, st_buffer_usage usage, const sotto_tensor *t)
{
    (void)state;
    (void)usage;
    st_gpu_layout l;
    return !layout_of(t, &l) || l.as_rows;
}

sotto_status st_gpu_wrap_host(void *state, st_buffer_usage usage, void *memory, size_t bytes, st_buffer *out,
                              sotto_error *err)
{
    st_gpu *gpu = state;
    (void)usage;
    return gpu->api->wrap(gpu->device, memory, bytes, &out->handle, err);
}

/* In strips, so that the host's temporary memory is bounded. */
static sotto_status upload_packed(st_gpu *gpu, const sotto_tensor *t, const st_gpu_layout *l, int64_t row,
                                  int64_t n_rows, sotto_dtype dtype, const void *data, sotto_error *err)
{
    const size_t from = sotto_dtype_row_bytes(dtype, l->k), width = l->number_row + l->scale_row;
    int64_t step = (int64_t)(STRIP_BYTES / width) + 1;
    step = step < n_rows ? step : n_rows;
    uint8_t *strip = st_alloc((size_t)step * width + 16, 1);
    if (!strip)
        return st_fail_memory(err, (uint64_t)step * width, t->name);
    sotto_status status = SOTTO_OK;
    for (int64_t r = 0; r < n_rows && status == SOTTO_OK; r += step) {
        const int64_t n = n_rows - r < step ? n_rows - r : step;
        const size_t at = (size_t)(row + r);
        uint8_t *scales = strip + ((size_t)n * l->number_row + 15) / 16 * 16;
        status = st_gpu_pack_rows(l, t->name, dtype, (const uint8_t *)data + (size_t)r * from, n, strip, scales, err);
        if (status == SOTTO_OK)
            status = gpu->api->write(gpu->device, t->buffer->handle, t->offset + at * l->number_row, strip,
                                     (size_t)n * l->number_row, err);
        if (status == SOTTO_OK && l->scale_row > 0)
            status = gpu->api->write(gpu->device, t->buffer->handle, t->offset + l->scale_offset + at * l->scale_row,
                                     scales, (size_t)n * l->scale_row, err);
    }
    st_free(strip);
    return status;
}

static sotto_status upload_plain(st_gpu *gpu, const sotto_tensor *t, int64_t row, int64_t n_rows, sotto_dtype dtype,
                                 const void *data, sotto_error *err)
{
    const int64_t k = t->dim[0];
    const size_t from = sotto_dtype_row_bytes(dtype, k), to = sotto_dtype_row_bytes(t->dtype, k);
    const size_t at = t->offset + (size_t)row * to;
    if (dtype == t->dtype)
        return gpu->api->write(gpu->device, t->buffer->handle, at, data, (size_t)n_rows * to, err);
    float *line = st_alloc((size_t)k, sizeof *line);
    uint8_t *rows = st_alloc((size_t)n_rows, to);
    bool good = line && rows;
    sotto_status status = good ? SOTTO_OK : st_fail_memory(err, (uint64_t)n_rows * to, t->name);
    for (int64_t r = 0; r < n_rows && good; r++)
        good = sotto_row_to_f32(dtype, (const uint8_t *)data + (size_t)r * from, line, k) &&
               sotto_row_from_f32(t->dtype, line, rows + (size_t)r * to, k);
    if (good)
        status = gpu->api->write(gpu->device, t->buffer->handle, at, rows, (size_t)n_rows * to, err);
    else if (status == SOTTO_OK)
        status = st_fail(err, SOTTO_E_UNSUPPORTED, "%s: rows of %s cannot be stored as %s", t->name,
                         sotto_dtype_name(dtype), sotto_dtype_name(t->dtype));
    st_free(line);
    st_free(rows);
    return status;
}

sotto_status st_gpu_upload(void *state, sotto_tensor *t, int64_t row, int64_t n_rows, sotto_dtype dtype,
                           const void *data, sotto_error *err)
{
    st_gpu *gpu = state;
    st_gpu_layout l;
    if (n_rows <= 0 || t->dim[0] <= 0)
        return SOTTO_OK;
    ST_TRY(layout_of(t, &l) ? upload_packed(gpu, t, &l, row, n_rows, dtype, data, err)
                            : upload_plain(gpu, t, row, n_rows, dtype, data, err));
    /* other backends of the device may read it as soon as this returns */
    return gpu->api->sync(gpu->device, err);
}

sotto_status st_gpu_download(void *state, const sotto_tensor *t, float *out, sotto_error *err)
{
    st_gpu *gpu = state;
    const int64_t k = t->dim[0], rows = st_tensor_n_rows(t);
    if (k <= 0 || rows <= 0)
        return SOTTO_OK;
    st_gpu_layout l;
    const bool packed = layout_of(t, &l);
    const size_t bytes = packed ? l.bytes : sotto_tensor_bytes(t);
    uint8_t *raw = st_alloc(bytes, 1);
    if (!raw)
        return st_fail_memory(err, bytes, t->name);
    sotto_status status = gpu->api->read(gpu->device, t->buffer->handle, t->offset, raw, bytes, err);
    if (status == SOTTO_OK && packed)
        st_gpu_unpack_rows(&l, raw, raw + l.scale_offset, rows, out);
    else if (status == SOTTO_OK && !sotto_row_to_f32(t->dtype, raw, out, k * rows))
        status = st_fail(err, SOTTO_E_UNSUPPORTED, "%s: %s has no numbers to read", t->name, sotto_dtype_name(t->dtype));
    st_free(raw);
    return status;
}

sotto_status st_gpu_set(void *state, st_buffer *buffer, size_t offset, const void *data, size_t bytes, sotto_error *err)
{
    st_gpu *gpu = state;
    return bytes > 0 ? gpu->api->write(gpu->device, buffer->handle, offset, data, bytes, err) : SOTTO_OK;
}

sotto_status st_gpu_get(void *state, const st_buffer *buffer, size_t offset, void *out, size_t bytes, sotto_error *err)
{
    st_gpu *gpu = state;
    return bytes > 0 ? gpu->api->read(gpu->device, buffer->handle, offset, out, bytes, err) : SOTTO_OK;
}

sotto_status st_gpu_fill_zero(void *state, st_buffer *buffer, sotto_error *err)
{
    st_gpu *gpu = state;
    if (buffer->size == 0)
        return SOTTO_OK;
    ST_TRY(gpu->api->fill_zero(gpu->device, buffer->handle, 0, buffer->size, err));
    return gpu->api->sync(gpu->device, err);
}

sotto_status st_gpu_copy_peer(void *to_state, st_buffer *to, size_t to_offset, void *from_state, const st_buffer *from,
                              size_t from_offset, size_t bytes, sotto_error *err)
{
    st_gpu *gpu = to_state;
    (void)from_state;
    if (bytes == 0)
        return SOTTO_OK;
    return gpu->api->copy(gpu->device, to->handle, to_offset, from->handle, from_offset, bytes, err);
}

bool st_gpu_pin(void *state, void *memory, size_t bytes)
{
    const st_gpu *gpu = state;
    sotto_error ignored;
    return gpu->api->pin && gpu->api->pin(gpu->device, memory, bytes, &ignored) == SOTTO_OK;
}

void st_gpu_unpin(void *state, void *memory, size_t bytes)
{
    const st_gpu *gpu = state;
    (void)bytes;
    if (gpu->api->unpin)
        gpu->api->unpin(gpu->device, memory);
}

sotto_status st_gpu_sync(void *state, sotto_error *err)
{
    const st_gpu *gpu = state;
    return gpu->api->sync(gpu->device, err);
}

/* ---- events ---- */

sotto_status st_gpu_event_create(void *state, void **event, sotto_error *err)
{
    const st_gpu *gpu = state;
    *event = NULL;
    if (!gpu->api->event_create)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%s has no events", gpu->caps.id);
    return gpu->api->event_create(gpu->device, event, err);
}

sotto_status st_gpu_event_record(void *state, void *event, sotto_error *err)
{
    const st_gpu *gpu = state;
    return gpu->api->event_record(gpu->device, event, err);
}

sotto_status st_gpu_event_wait(void *state, void *event, sotto_error *err)
{
    const st_gpu *gpu = state;
    return gpu->api->event_wait(gpu->device, event, err);
}

void st_gpu_event_free(void *state, void *event)
{
    const st_gpu *gpu = state;
    if (event)
        gpu->api->event_free(gpu->device, event);
}
