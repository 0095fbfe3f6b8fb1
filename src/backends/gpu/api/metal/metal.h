/* metal.h: the state of the Metal interface, and what it can do beyond the table st_gpu_api. */
#ifndef SOTTO_SRC_BACKENDS_GPU_API_METAL_METAL_H
#define SOTTO_SRC_BACKENDS_GPU_API_METAL_METAL_H

#include <stdatomic.h>

#include "backends/gpu/api/metal/objc.h"
#include "backends/gpu/gpu_api.h"

extern const st_gpu_api st_gpu_metal;

enum { ST_METAL_MAX_SENT = 32, ST_METAL_PAGE = 16384 };

/* How an opened device works; for tests and for people who look into it. */
typedef struct st_metal_options {
    int groups;                /* command buffers that a list of launches is spread over */
    bool private_memory;       /* memory of the GPU's own even where it could be the host's */
    bool (*abort)(void *user); /* NULL, or asked before each group; then at most two groups are on their way */
    void *abort_user;
    const char *capture; /* NULL, or the .gputrace file that the next launches are written to, up to the next sync; once */
} st_metal_options;

/* What an opened device and the memory made by it share. */
typedef struct st_metal_gpu {
    atomic_int references;
    st_objc objc;
    mtl_id device;
} st_metal_gpu;

typedef struct st_metal_memory {
    st_metal_gpu *gpu;
    mtl_id buffer;
    size_t bytes;
    void *host; /* NULL: the GPU's own */
} st_metal_memory;

typedef enum st_metal_work { ST_METAL_NOTHING, ST_METAL_COMPUTE, ST_METAL_BLIT } st_metal_work;

typedef struct st_metal {
    st_metal_gpu *gpu;
    char id[32];
    bool unified;
    size_t max_buffer;
    sotto_logger logger;
    st_metal_options options;
    mtl_id queue, compile_options;
    mtl_id library[ST_GPU_KERNEL_COUNT]; /* at the first kernel of its module */
    mtl_id pipeline[ST_GPU_KERNEL_COUNT];
    mtl_id current; /* command buffer that is being filled */
    mtl_id encoder; /* of current; ended before an entry point is left */
    st_metal_work work;
    mtl_id sent[ST_METAL_MAX_SENT]; /* committed and not yet seen to be done, oldest first */
    int n_sent;
    size_t staged; /* bytes of temporary buffers that they hold */
    bool capturing;
} st_metal;

st_metal_options st_metal_default_options(void);
void st_metal_set_options(void *device, const st_metal_options *options);
/* Memory over whole pages of the host (ST_METAL_PAGE), which stay until it is freed. SOTTO_E_UNSUPPORTED: not these. */
sotto_status st_metal_wrap(void *device, void *host, size_t bytes, void **memory, sotto_error *err);

/* metal_queue.c: command buffers. All of these are called inside a pool. */
sotto_status st_metal_current(st_metal *m, sotto_error *err);
sotto_status st_metal_encode(st_metal *m, st_metal_work work, sotto_error *err);
void st_metal_end(st_metal *m);
void st_metal_commit(st_metal *m);
sotto_status st_metal_wait_until(st_metal *m, int n_left, sotto_error *err);
sotto_status st_metal_finish(st_metal *m, sotto_error *err);
/* SOTTO_E_DEVICE with Metal's own words, or SOTTO_E_MEMORY. */
sotto_status st_metal_fail(const st_metal *m, mtl_id error, const char *what, sotto_error *err);

/* metal_memory.c: entries of the table */
sotto_status st_metal_alloc(void *device, size_t bytes, void **memory, sotto_error *err);
void st_metal_free(void *memory);
void *st_metal_map(void *memory);
sotto_status st_metal_write(void *device, void *memory, size_t offset, const void *data, size_t bytes, sotto_error *err);
sotto_status st_metal_read(void *device, void *memory, size_t offset, void *out, size_t bytes, sotto_error *err);
sotto_status st_metal_copy(void *device, void *to, size_t to_offset, void *from, size_t from_offset, size_t bytes,
                           sotto_error *err);
sotto_status st_metal_fill_zero(void *device, void *memory, size_t offset, size_t bytes, sotto_error *err);

st_metal_gpu *st_metal_gpu_retain(st_metal_gpu *gpu);
void st_metal_gpu_release(st_metal_gpu *gpu);

/* Returns what `call` gives, in a pool of its own. */
#define ST_METAL_IN_POOL(objc, call)             \
    do {                                         \
        void *const pool_ = (objc)->pool_push(); \
        const sotto_status status_ = (call);     \
        (objc)->pool_pop(pool_);                 \
        return status_;                          \
    } while (0)

#endif
