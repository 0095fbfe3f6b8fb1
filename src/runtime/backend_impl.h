/* backend_impl.h: what a backend implements. Arguments are checked by the runtime before any of these is called; `?`
 * marks entries that may be NULL and get a default. A backend sees base, tensor, quant and this header, nothing else. */
#ifndef SOTTO_SRC_RUNTIME_BACKEND_IMPL_H
#define SOTTO_SRC_RUNTIME_BACKEND_IMPL_H

#include "sotto/backend.h"
#include "tensor/buffer.h"
#include "tensor/tensor_impl.h"

#define ST_BACKEND_API_VERSION 1u

typedef struct st_buffer_traits {
    size_t alignment; /* of every tensor's offset; power of two */
    size_t max_size;  /* of one buffer */
} st_buffer_traits;

/* What prepare() is given: nodes in order, each placed. Views have been resolved (st_tensor_data works on host memory
 * after the arena is allocated); nodes of equal `group` have no barrier between them. */
typedef struct st_exec_plan {
    sotto_tensor *const *node;
    int n_node;
} st_exec_plan;

typedef struct st_exec_hooks {
    bool (*abort)(void *user); /* may be NULL */
    void *abort_user;
    double *node_seconds; /* NULL, or n_node entries to fill */
} st_exec_hooks;

typedef struct st_backend_impl {
    uint32_t api_version; /* ST_BACKEND_API_VERSION */
    const char *name;
    sotto_device_kind kind;

    /* devices */
    int (*device_count)(void);
    sotto_status (*device_info)(int index, sotto_device_info *out, sotto_error *err);
    sotto_status (*open)(int index, const sotto_backend_options *options, void **state, sotto_error *err);
    void (*close)(void *state);
    void (*describe)(void *state, char *out, size_t size);
    sotto_dtype (*preferred_weights)(void *state); /* ? = SOTTO_F32 */

    /* buffers */
    st_buffer_traits (*buffer_traits)(void *state, st_buffer_usage usage);
    /* Bytes that a stored tensor takes, with whatever layout the backend gives it (may set t->extra to a static table or
     * number; no allocation). ? = its contiguous size. */
    size_t (*stored_bytes)(void *state, st_buffer_usage usage, sotto_tensor *t);
    sotto_status (*buffer_alloc)(void *state, st_buffer_usage usage, size_t size, st_buffer *out, sotto_error *err);
    void (*buffer_free)(st_buffer *buffer);
    /* Rows [row, row + n_rows) of a stored tensor from contiguous host rows of type dtype (see sotto_store_upload). */
    sotto_status (*upload)(void *state, sotto_tensor *t, int64_t row, int64_t n_rows, sotto_dtype dtype,
                           const void *data, sotto_error *err);
    /* All rows as f32, whatever the layout. */
    sotto_status (*download_f32)(void *state, const sotto_tensor *t, float *out, sotto_error *err);
    /* Bytes of compute or cache memory, contiguous tensors only. */
    sotto_status (*set)(void *state, st_buffer *buffer, size_t offset, const void *data, size_t bytes, sotto_error *err);
    sotto_status (*get)(void *state, const st_buffer *buffer, size_t offset, void *out, size_t bytes, sotto_error *err);
    sotto_status (*fill_zero)(void *state, st_buffer *buffer, sotto_error *err);

    /* execution */
    bool (*supports)(const sotto_tensor *node); /* a pure function of op, types, shapes and strides */
    /* Scratch, tables, choice of kernels. Called when the plan is made, before memory exists; must not touch data.
     * scratch_bytes: what the backend will hold for the plan. */
    sotto_status (*prepare)(void *state, const st_exec_plan *plan, void **prepared, size_t *scratch_bytes,
                            sotto_error *err);
    void (*release)(void *state, void *prepared);
    /* Runs all nodes; returns when done or, for an asynchronous backend, when queued (then sync waits). */
    sotto_status (*run)(void *state, const st_exec_plan *plan, void *prepared, const st_exec_hooks *hooks,
                        sotto_error *err);
    sotto_status (*sync)(void *state, sotto_error *err);                       /* ? */
    sotto_status (*event_record)(void *state, void **event, sotto_error *err); /* ? */
    sotto_status (*event_wait)(void *state, void *event, sotto_error *err);    /* ? */
} st_backend_impl;

#endif
