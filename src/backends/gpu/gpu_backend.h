/* gpu_backend.h: a backend from a table of a GPU interface. */
#ifndef SOTTO_SRC_BACKENDS_GPU_GPU_BACKEND_H
#define SOTTO_SRC_BACKENDS_GPU_GPU_BACKEND_H

#include "backends/gpu/gpu_plan.h"

sotto_status st_gpu_device_info(const st_gpu_api *api, int index, sotto_device_info *out, sotto_error *err);
sotto_status st_gpu_open(const st_gpu_api *api, const st_backend_impl *impl, int index,
                         const sotto_backend_options *options, void **state, sotto_error *err);
void st_gpu_close(void *state);
void st_gpu_describe(void *state, char *out, size_t size);
sotto_dtype st_gpu_preferred_weights(void *state);
st_device_traits st_gpu_traits(void *state);
st_buffer_traits st_gpu_buffer_traits(void *state, st_buffer_usage usage);
size_t st_gpu_stored_bytes(void *state, st_buffer_usage usage, sotto_tensor *t);
bool st_gpu_stored_as_rows(void *state, st_buffer_usage usage, const sotto_tensor *t);
sotto_status st_gpu_wrap_host(void *state, st_buffer_usage usage, void *memory, size_t bytes, st_buffer *out,
                              sotto_error *err);
sotto_status st_gpu_buffer_alloc(void *state, st_buffer_usage usage, size_t size, st_buffer *out, sotto_error *err);
sotto_status st_gpu_upload(void *state, sotto_tensor *t, int64_t row, int64_t n_rows, sotto_dtype dtype,
                           const void *data, sotto_error *err);
sotto_status st_gpu_download(void *state, const sotto_tensor *t, float *out, sotto_error *err);
sotto_status st_gpu_set(void *state, st_buffer *buffer, size_t offset, const void *data, size_t bytes, sotto_error *err);
sotto_status st_gpu_get(void *state, const st_buffer *buffer, size_t offset, void *out, size_t bytes, sotto_error *err);
sotto_status st_gpu_fill_zero(void *state, st_buffer *buffer, sotto_error *err);
sotto_status st_gpu_copy_peer(void *to_state, st_buffer *to, size_t to_offset, void *from_state, const st_buffer *from,
                              size_t from_offset, size_t bytes, sotto_error *err);
bool st_gpu_pin(void *state, void *memory, size_t bytes);
void st_gpu_unpin(void *state, void *memory, size_t bytes);
sotto_status st_gpu_sync(void *state, sotto_error *err);
sotto_status st_gpu_event_create(void *state, void **event, sotto_error *err);
sotto_status st_gpu_event_record(void *state, void *event, sotto_error *err);
sotto_status st_gpu_event_wait(void *state, void *event, sotto_error *err);
void st_gpu_event_free(void *state, void *event);

/* Defines `symbol`, the st_backend_impl over the table `api`; once, in the file of the table. */
#define ST_GPU_BACKEND(symbol, api_name, api, device_kind)                                                             \
    extern const st_backend_impl symbol;                                                                               \
    static int symbol##_device_count(void)                                                                             \
    {                                                                                                                  \
        return (api).device_count();                                                                                   \
    }                                                                                                                  \
    static bool symbol##_no_gpu(void)                                                                                  \
    {                                                                                                                  \
        return (api).no_gpu && (api).no_gpu();                                                                         \
    }                                                                                                                  \
    static void symbol##_why_none(char *out, size_t size)                                                              \
    {                                                                                                                  \
        out[0] = 0;                                                                                                    \
        if ((api).why_none)                                                                                            \
            (api).why_none(out, size);                                                                                 \
    }                                                                                                                  \
    static sotto_status symbol##_device_info(int index, sotto_device_info *out, sotto_error *err)                      \
    {                                                                                                                  \
        return st_gpu_device_info(&(api), index, out, err);                                                            \
    }                                                                                                                  \
    static sotto_status symbol##_open(int index, const sotto_backend_options *options, void **state, sotto_error *err) \
    {                                                                                                                  \
        return st_gpu_open(&(api), &symbol, index, options, state, err);                                               \
    }                                                                                                                  \
    static void symbol##_buffer_free(st_buffer *buffer)                                                                \
    {                                                                                                                  \
        (api).free(buffer->handle);                                                                                    \
        buffer->handle = NULL;                                                                                         \
    }                                                                                                                  \
    const st_backend_impl symbol = {                                                                                   \
        .api_version = ST_BACKEND_API_VERSION,                                                                         \
        .name = api_name,                                                                                              \
        .kind = device_kind,                                                                                           \
        .device_count = symbol##_device_count,                                                                         \
        .no_gpu = symbol##_no_gpu,                                                                                     \
        .why_none = symbol##_why_none,                                                                                 \
        .device_info = symbol##_device_info,                                                                           \
        .open = symbol##_open,                                                                                         \
        .close = st_gpu_close,                                                                                         \
        .describe = st_gpu_describe,                                                                                   \
        .preferred_weights = st_gpu_preferred_weights,                                                                 \
        .traits = st_gpu_traits,                                                                                       \
        .buffer_traits = st_gpu_buffer_traits,                                                                         \
        .stored_bytes = st_gpu_stored_bytes,                                                                           \
        .stored_as_rows = st_gpu_stored_as_rows,                                                                       \
        .wrap_host = st_gpu_wrap_host,                                                                                 \
        .buffer_alloc = st_gpu_buffer_alloc,                                                                           \
        .buffer_free = symbol##_buffer_free,                                                                           \
        .upload = st_gpu_upload,                                                                                       \
        .download_f32 = st_gpu_download,                                                                               \
        .set = st_gpu_set,                                                                                             \
        .get = st_gpu_get,                                                                                             \
        .fill_zero = st_gpu_fill_zero,                                                                                 \
        .set_async = st_gpu_set,                                                                                       \
        .copy_peer = st_gpu_copy_peer,                                                                                 \
        .pin_host = st_gpu_pin,                                                                                        \
        .unpin_host = st_gpu_unpin,                                                                                    \
        .supports = st_gpu_supports,                                                                                   \
        .prepare = st_gpu_prepare,                                                                                     \
        .release = st_gpu_release,                                                                                     \
        .run = st_gpu_run,                                                                                             \
        .sync = st_gpu_sync,                                                                                           \
        .event_create = st_gpu_event_create,                                                                           \
        .event_record = st_gpu_event_record,                                                                           \
        .event_wait = st_gpu_event_wait,                                                                               \
        .event_free = st_gpu_event_free,                                                                               \
    }

#endif
