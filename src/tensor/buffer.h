/* buffer.h: the memory that tensors lie in. Buffers are made by backends (runtime/backend_impl.h). */
#ifndef SOTTO_SRC_TENSOR_BUFFER_H
#define SOTTO_SRC_TENSOR_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct st_backend_impl; /* runtime/backend_impl.h */

typedef enum st_buffer_usage { ST_BUFFER_WEIGHTS = 0, ST_BUFFER_CACHE = 1, ST_BUFFER_COMPUTE = 2 } st_buffer_usage;

/* A range of device memory. Shared by the backends of one device that agree on its layout. */
typedef struct st_buffer {
    const struct st_backend_impl *impl;
    int device; /* of impl, counted by it; set by the runtime */
    st_buffer_usage usage;
    size_t size;  /* 0 = not allocated yet */
    void *host;   /* address when the memory is the host's, else NULL */
    void *handle; /* the backend's own */
    bool wrapped; /* memory of somebody else, which is only read */
} st_buffer;

#endif
