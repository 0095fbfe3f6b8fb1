/* cuda_device.h: an opened device, shared by cuda.c (devices, kernels, replay) and cuda_memory.c (memory, copies, events). */
#ifndef SOTTO_SRC_BACKENDS_GPU_API_CUDA_CUDA_DEVICE_H
#define SOTTO_SRC_BACKENDS_GPU_API_CUDA_CUDA_DEVICE_H

#include "backends/gpu/api/cuda/driver.h"
#include "backends/gpu/gpu_api.h"

enum { ST_CUDA_SLOTS = 4, ST_CUDA_SLOT_BYTES = 1 << 20, ST_CUDA_READS = 2 };

/* Pinned host memory through which writes go, so that write() need not wait: a slot is filled from its start, its event says
 * when the copies out of it are done. */
typedef struct st_cuda_slot {
    unsigned char *memory;
    st_cu_event done;
    bool used; /* `done` was recorded */
} st_cuda_slot;

typedef struct st_cuda_range {
    const unsigned char *begin, *end;
} st_cuda_range;

typedef struct st_cuda {
    const st_cuda_driver *d;
    int index, arch;
    st_cu_device device;
    st_cu_context context; /* the primary one, shared with every other user of the device in this process */
    st_cu_stream stream;
    sotto_logger logger;
    sotto_error lost; /* code is set when the device failed for good: the sentence of the first failure */
    st_cu_module module[ST_GPU_KERNEL_COUNT]; /* at the first kernel of each module */
    bool may_wait[ST_GPU_KERNEL_COUNT]; /* of the same: its kernels wait for what is in front of them (AFTER_ of the prelude) */
    st_cu_function function[ST_GPU_KERNEL_COUNT];
    unsigned local_bytes[ST_GPU_KERNEL_COUNT]; /* of a group's memory of any size: DYNAMIC_LOCAL of the dialect */
    unsigned char *staging;                    /* slots, then areas for reading; NULL: the driver stages by itself */
    st_cuda_slot slot[ST_CUDA_SLOTS];
    int slot_now;
    size_t slot_used;
    st_cu_event read_done[ST_CUDA_READS];
    st_cuda_range *pinned;
    int64_t n_pinned, pinned_capacity;
} st_cuda;

/* A block of device memory. It keeps the context, so that it may outlive the opened device that made it. */
typedef struct st_cuda_memory {
    const st_cuda_driver *d;
    st_cu_device device;
    st_cu_context context;
    st_cu_address address;
    size_t bytes;
    void *host; /* NULL, or the registered memory of the host that this is */
} st_cuda_memory;

/* SOTTO_OK for 0; else the sentence names the call, number and name. Notes when the device is lost. */
sotto_status st_cuda_check(st_cuda *c, int code, const char *call, sotto_error *err);
/* Makes the context current; refuses when the device is lost. Leave when it gave SOTTO_OK. */
sotto_status st_cuda_enter(st_cuda *c, sotto_error *err);
void st_cuda_leave(st_cuda *c);
/* For giving back, which is tried in any case: whether `context` is current now and has to be popped. */
bool st_cuda_push(const st_cuda_driver *d, st_cu_context context);
void st_cuda_pop(const st_cuda_driver *d, bool pushed);

/* cuda_memory.c */
sotto_status st_cuda_staging_open(st_cuda *c, sotto_error *err);
void st_cuda_staging_close(st_cuda *c);
sotto_status st_cuda_alloc(void *device, size_t bytes, void **memory, sotto_error *err);
void st_cuda_free(void *memory);
sotto_status st_cuda_wrap(void *device, void *host, size_t bytes, void **memory, sotto_error *err);
sotto_status st_cuda_write(void *device, void *memory, size_t offset, const void *data, size_t bytes, sotto_error *err);
sotto_status st_cuda_read(void *device, void *memory, size_t offset, void *out, size_t bytes, sotto_error *err);
sotto_status st_cuda_copy(void *device, void *to, size_t to_offset, void *from, size_t from_offset, size_t bytes,
                          sotto_error *err);
sotto_status st_cuda_fill_zero(void *device, void *memory, size_t offset, size_t bytes, sotto_error *err);
sotto_status st_cuda_pin(void *device, void *host, size_t bytes, sotto_error *err);
void st_cuda_unpin(void *device, void *host);
sotto_status st_cuda_event_create(void *device, void **event, sotto_error *err);
sotto_status st_cuda_event_record(void *device, void *event, sotto_error *err);
sotto_status st_cuda_event_wait(void *device, void *event, sotto_error *err);
sotto_status st_cuda_event_seconds(void *device, void *from, void *to, double *seconds, sotto_error *err);
void st_cuda_event_free(void *device, void *event);

#endif
