/* gpu_api.h: what each GPU interface (api/sim, api/opencl, api/cuda, api/metal) supplies: a table of memory, launches and
 * replay. Everything above it, from operations to kernels, is shared.
 *
 * A device is opened once a backend and has one ordered queue; memory made through one opened device is usable by every
 * other one of the same index, from any thread. Calls on one opened device come from one thread at a time. */
#ifndef SOTTO_SRC_BACKENDS_GPU_GPU_API_H
#define SOTTO_SRC_BACKENDS_GPU_GPU_API_H

#include "runtime/backend_impl.h"

enum { ST_GPU_MAX_ARGS = 8, ST_GPU_PARAM_BYTES = 192 };

/* Kernels by number; the rows of kernels/kernels.inc. */
typedef enum st_gpu_kernel {
#define KERNEL(module, name, group, params, n_args) ST_GPU_##name,
#include "backends/gpu/kernels/kernels.inc"
#undef KERNEL
    ST_GPU_KERNEL_COUNT
} st_gpu_kernel;

/* What the host knows of a kernel before any launch; checked against every launch. */
typedef struct st_gpu_kernel_info {
    const char *module; /* the file of kernels/ without its suffix */
    const char *name;
    int group;          /* work items of a group, one dimension */
    size_t param_bytes; /* of its parameter struct in kernels/params.h */
    int n_args;         /* buffers */
} st_gpu_kernel_info;

extern const st_gpu_kernel_info st_gpu_kernels[ST_GPU_KERNEL_COUNT];

typedef struct st_gpu_caps {
    char id[32];                                     /* "opencl:0" */
    char name[128];                                  /* the device */
    char features[256];                              /* space-separated, for people */
    uint64_t memory_total, memory_free, working_set; /* bytes, 0 = unknown */
    size_t max_buffer, alignment;
    size_t local_bytes; /* of a group */
    int max_group;
    int subgroup;     /* lanes of sg_sum() and its like */
    int n_units;      /* compute units; 0 = unknown */
    bool has_mma;     /* the tile operations of kernels/README.md */
    bool has_dot4;    /* dot4_i8 is one instruction */
    bool unified;     /* device memory is host memory */
    bool cuts;        /* launches that take long may be cut: they may begin at any group along x */
    size_t wrap_page; /* both ends of memory that wrap() takes are multiples of it; 0 = it takes none */
    bool is_gpu;      /* false: an OpenCL device that is a processor, the simulator */
} st_gpu_caps;

/* A buffer argument. The memory behind a buffer may be exchanged between runs (an arena that grew). */
typedef struct st_gpu_arg {
    const st_buffer *buffer; /* handle: what alloc() gave */
    uint64_t offset;         /* bytes */
} st_gpu_arg;

typedef struct st_gpu_launch {
    st_gpu_kernel kernel;
    uint32_t grid[3]; /* groups; none is 0. y and z stay below 65536. */
    uint32_t first;   /* number of the first along x; other than 0 only where the device cuts launches */
    uint32_t n_param_bytes;
    uint32_t params[ST_GPU_PARAM_BYTES / 4];
    int n_args;
    st_gpu_arg arg[ST_GPU_MAX_ARGS];
    int node; /* index in the plan, for tracing */
} st_gpu_launch;

/* Every function that can fail gives SOTTO_E_MEMORY (device or host), SOTTO_E_DEVICE (driver call, number and text in the
 * sentence) or SOTTO_E_UNSUPPORTED. `?` may be NULL. */
typedef struct st_gpu_api {
    const char *name; /* "cuda"; device i is "cuda:i" */

    /* 0 when there is no driver; never prints. The list is read once a process. */
    int (*device_count)(void);
    bool (*no_gpu)(void); /* ? As of st_backend_impl, as is the next */
    void (*why_none)(char *out, size_t size);
    sotto_status (*device_caps)(int index, st_gpu_caps *out, sotto_error *err);
    sotto_status (*open)(int index, const sotto_logger *logger, void **device, sotto_error *err);
    void (*close)(void *device);

    /* memory */
    sotto_status (*alloc)(void *device, size_t bytes, void **memory, sotto_error *err);
    void (*free)(void *memory);
    /* ? Memory over the host's, which stays as it is until it is freed, and which kernels only read. */
    sotto_status (*wrap)(void *device, void *host, size_t bytes, void **memory, sotto_error *err);
    void *(*map)(void *memory); /* ? host address when the memory is the host's as well, else NULL */
    /* In the order of the queue. write() may return before the copy is done, but `data` may be used again at once;
     * read() waits for it. */
    sotto_status (*write)(void *device, void *memory, size_t offset, const void *data, size_t bytes, sotto_error *err);
    sotto_status (*read)(void *device, void *memory, size_t offset, void *out, size_t bytes, sotto_error *err);
    sotto_status (*copy)(void *device, void *to, size_t to_offset, void *from, size_t from_offset, size_t bytes,
                         sotto_error *err);
    sotto_status (*fill_zero)(void *device, void *memory, size_t offset, size_t bytes, sotto_error *err);

    /* launches: queued in order; a later launch sees what earlier ones wrote */
    sotto_status (*ready)(void *device, st_gpu_kernel kernel, sotto_error *err); /* compiles or loads it */
    sotto_status (*launch)(void *device, const st_gpu_launch *list, int n, sotto_error *err);
    /* ? A list kept by the driver (a graph, a command buffer). The memory of its arguments stays where it is while it is
     * used; the list lives as long as the record. Without it launch() is called each time. */
    sotto_status (*record)(void *device, const st_gpu_launch *list, int n, void **record, sotto_error *err);
    sotto_status (*replay)(void *device, void *record, sotto_error *err);
    void (*forget)(void *device, void *record);
    sotto_status (*sync)(void *device, sotto_error *err);

    /* ? events */
    sotto_status (*event_create)(void *device, void **event, sotto_error *err);
    sotto_status (*event_record)(void *device, void *event, sotto_error *err);
    sotto_status (*event_wait)(void *device, void *event, sotto_error *err); /* the queue waits, not the caller */
    sotto_status (*event_seconds)(void *device, void *from, void *to, double *seconds, sotto_error *err);
    void (*event_free)(void *device, void *event);
    /* ? host memory that the device copies from and to faster */
    sotto_status (*pin)(void *device, void *host, size_t bytes, sotto_error *err);
    void (*unpin)(void *device, void *host);
} st_gpu_api;

/* The text of the kernels for interfaces that compile at run time: every #include "..." line of `module`.krn replaced by
 * that file's text, after `prelude` ("opencl/prelude.h") and params.h. The caller frees it with st_free. NULL when there
 * is no memory, or no such file. */
char *st_gpu_source(const char *prelude, const char *module);

#endif
