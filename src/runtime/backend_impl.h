/* backend_impl.h: what a backend implements. Arguments are checked by the runtime before any of these is called; `?`
 * marks entries that may be NULL and get a default. A backend sees base, tensor, quant and this header, nothing else. */
#ifndef SOTTO_SRC_RUNTIME_BACKEND_IMPL_H
#define SOTTO_SRC_RUNTIME_BACKEND_IMPL_H

#include "sotto/backend.h"
#include "tensor/buffer.h"
#include "tensor/tensor_impl.h"

#define ST_BACKEND_API_VERSION 2u

typedef struct st_buffer_traits {
    size_t alignment;   /* of every tensor's offset; power of two */
    size_t max_size;    /* of one buffer */
    size_t recommended; /* of all buffers of the device together, over which it gets slow; 0 = unknown */
    size_t wrap_page;   /* both ends of memory that wrap_host() takes are multiples of it; 0 = it takes none */
    size_t wrap_align;  /* of tensors in such memory; power of two */
} st_buffer_traits;

/* What the scheduler asks about an opened device. */
typedef struct st_device_traits {
    bool host_memory;  /* its buffers have host addresses, and run reads and writes any other host address as well */
    bool asynchronous; /* run, set_async, get_async and copy_peer put work into a queue and return; sync waits for it */
    int64_t offload_rows; /* a product of at least so many rows is worth the copying of weights that are at home in the
                             host's memory; 0 = never */
} st_device_traits;

/* What prepare() is given: nodes in order, each placed. A tensor's bytes begin at home->buffer (its `handle`, or `host`
 * when the memory is the host's) + home->offset + view_offset, where home is t->view_of or t itself (then view_offset is 0);
 * buffers are filled in when the plan's memory is allocated, before the first run, and may be replaced later: then `epoch`
 * has changed, and whatever was recorded with addresses is void. Nodes of equal `group` have no barrier between them.
 * Memory of nodes with none of ST_TENSOR_OUTPUT, ST_TENSOR_SHARED and ST_TENSOR_STORED is read by nodes of this plan
 * only, so a backend may keep narrower numbers in it. A plan may be run many times. */
typedef struct st_exec_plan {
    sotto_tensor *const *node;
    int n_node;
    uint64_t epoch;
} st_exec_plan;

typedef struct st_exec_hooks {
    bool (*abort)(void *user); /* may be NULL */
    void *abort_user;
    double *node_seconds; /* NULL, or n_node entries to fill */
} st_exec_hooks;

typedef struct st_backend_impl {
    uint32_t api_version; /* ST_BACKEND_API_VERSION */
    const char *name;     /* ids of devices are this, or this and ":number" */
    sotto_device_kind kind;

    /* devices */
    int (*device_count)(void);
    /* ? = unknown. True when there is surely no device that auto would take: asked before the driver is loaded for the count. */
    bool (*no_gpu)(void);
    void (*why_none)(char *out, size_t size); /* ? = unknown. Why there are no devices, "libcuda.so.1 is not there" */
    sotto_status (*device_info)(int index, sotto_device_info *out, sotto_error *err);
    /* One device; of the options only n_threads, cpu_level, logger and abort are for the backend. */
    sotto_status (*open)(int index, const sotto_backend_options *options, void **state, sotto_error *err);
    /* ? = open the same index. Another queue on the device of `base`, which outlives it and may be in use by another
     * thread: buffers of either are read by both. */
    sotto_status (*open_sibling)(void *base, const sotto_backend_options *options, void **state, sotto_error *err);
    void (*close)(void *state);
    void (*describe)(void *state, char *out, size_t size);
    sotto_dtype (*preferred_weights)(void *state); /* ? = SOTTO_F32 */
    sotto_dtype (*preferred_caches)(void *state);  /* ? = SOTTO_BF16 */
    bool (*prefers_words)(void *state);            /* ? = false */
    st_device_traits (*traits)(void *state);       /* ? = all zero */
    /* ? = the runtime's own. Every operation on a small case; the error names the first that is wrong. */
    sotto_status (*self_test)(void *state, sotto_error *err);

    /* buffers */
    st_buffer_traits (*buffer_traits)(void *state, st_buffer_usage usage);
    /* Bytes that a stored tensor takes, with whatever layout the backend gives it (may set t->extra to a static table or
     * number; no allocation). ? = its contiguous size. */
    size_t (*stored_bytes)(void *state, st_buffer_usage usage, sotto_tensor *t);
    /* ? = always. The bytes of such a stored tensor are its rows one after another, as in a file. */
    bool (*stored_as_rows)(void *state, st_buffer_usage usage, const sotto_tensor *t);
    sotto_status (*buffer_alloc)(void *state, st_buffer_usage usage, size_t size, st_buffer *out, sotto_error *err);
    void (*buffer_free)(st_buffer *buffer);
    /* Rows [row, row + n_rows) of a stored tensor from contiguous host rows of type dtype (see sotto_store_upload). */
    sotto_status (*upload)(void *state, sotto_tensor *t, int64_t row, int64_t n_rows, sotto_dtype dtype,
                           const void *data, sotto_error *err);
    /* All rows as f32, whatever the layout. */
    sotto_status (*download_f32)(void *state, const sotto_tensor *t, float *out, sotto_error *err);
    /* Bytes of any tensor but a matrix of a weights buffer. After all that is queued; done when they return. */
    sotto_status (*set)(void *state, st_buffer *buffer, size_t offset, const void *data, size_t bytes, sotto_error *err);
    sotto_status (*get)(void *state, const st_buffer *buffer, size_t offset, void *out, size_t bytes, sotto_error *err);
    sotto_status (*fill_zero)(void *state, st_buffer *buffer, sotto_error *err);
    /* ? = set, get. Queued: the host's bytes must stay until the queue has passed (sync or an event). */
    sotto_status (*set_async)(void *state, st_buffer *buffer, size_t offset, const void *data, size_t bytes,
                              sotto_error *err);
    sotto_status (*get_async)(void *state, const st_buffer *buffer, size_t offset, void *out, size_t bytes,
                              sotto_error *err);
    /* ? = through the host. Between two opened devices of this backend, in the queue of dst. SOTTO_E_UNSUPPORTED: these
     * two cannot; the host is asked from then on. */
    sotto_status (*copy_peer)(void *dst_state, st_buffer *dst, size_t dst_offset, void *src_state, const st_buffer *src,
                              size_t src_offset, size_t bytes, sotto_error *err);
    /* ? = memory is allocated and filled. A buffer over host memory (both ends on borders of wrap_page) that is only read,
     * and stays until buffer_free. After any failure the memory is copied instead. */
    sotto_status (*wrap_host)(void *state, st_buffer_usage usage, void *memory, size_t bytes, st_buffer *out,
                              sotto_error *err);
    /* ? = ordinary pages. Makes copies from and to this host memory faster; a failure is no matter. */
    bool (*pin_host)(void *state, void *memory, size_t bytes);
    void (*unpin_host)(void *state, void *memory, size_t bytes);

    /* ? = the caller does it alone. fn over the pieces of [0, n), by all threads of the device at once; returns when done. */
    void (*share_out)(void *state, int64_t n, void (*fn)(void *arg, int64_t from, int64_t to), void *arg);

    /* execution */
    bool (*supports)(const sotto_tensor *node);             /* a pure function of op, types, shapes and strides */
    bool (*can_run)(void *state, const sotto_tensor *node); /* ? = supports. The same for this device in particular */
    /* Scratch, tables, choice of kernels. Called when the plan is made, before memory exists; must not touch data.
     * scratch_bytes: what the backend will hold for the plan. */
    sotto_status (*prepare)(void *state, const st_exec_plan *plan, void **prepared, size_t *scratch_bytes,
                            sotto_error *err);
    void (*release)(void *state, void *prepared);
    /* Runs all nodes; returns when done or, for an asynchronous backend, when queued (then sync waits). */
    sotto_status (*run)(void *state, const st_exec_plan *plan, void *prepared, const st_exec_hooks *hooks,
                        sotto_error *err);
    sotto_status (*sync)(void *state, sotto_error *err); /* ? = run has waited */
    /* ? = sync; all four or none. record: the event has happened when all that is queued so far is done; again and again.
     * wait: what is queued later in this queue waits for an event recorded by this or another state of the backend. */
    sotto_status (*event_create)(void *state, void **event, sotto_error *err);
    sotto_status (*event_record)(void *state, void *event, sotto_error *err);
    sotto_status (*event_wait)(void *state, void *event, sotto_error *err);
    void (*event_free)(void *state, void *event);
} st_backend_impl;

#endif
