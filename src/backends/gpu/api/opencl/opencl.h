/* opencl.h: what the files of the OpenCL interface share. */
#ifndef SOTTO_SRC_BACKENDS_GPU_API_OPENCL_OPENCL_H
#define SOTTO_SRC_BACKENDS_GPU_API_OPENCL_OPENCL_H

#include "backends/gpu/api/opencl/opencl_abi.h"
#include "backends/gpu/gpu_api.h"
#include "base/thread.h"

typedef struct st_opencl_functions {
#define F(result, name, arguments) result(CL_CALL *name) arguments;
    OPENCL_FUNCTIONS(F)
#undef F
    cl_kernel_sub_group_info sub_group_info; /* NULL where there is none */
} st_opencl_functions;

/* One device of the process. What lies below the lock is there while somebody uses it: opened queues and memory. */
typedef struct st_opencl_device {
    const st_opencl_functions *cl;
    cl_device_id id;
    st_gpu_caps caps;
    char identity[512]; /* of the device and its driver, for the disk cache */
    int version;        /* of OpenCL, 12 for 1.2 */
    bool intel_sizes;   /* the size of subgroups can be asked for */
    bool exact_division, fp16, dot4;

    st_mutex lock;
    int users;
    bool real_subgroups; /* the device's own; false once a kernel turned out to have others than asked for */
    cl_context context;
    cl_program program[ST_GPU_KERNEL_COUNT]; /* at the first kernel of its module */
    bool said;                               /* that kernels are compiled */
    int cache_hits, builds;                  /* programs from the disk cache and from the source, for tests */
} st_opencl_device;

extern const st_gpu_api st_gpu_opencl;

/* The number of devices; the list is made at the first call and stays. */
int st_opencl_count(void);
/* True on Linux where no file of a GPU's driver is. */
bool st_opencl_no_gpu(void);
/* Why the list is empty. */
void st_opencl_why_none(char *out, size_t size);
st_opencl_device *st_opencl_device_at(int index, sotto_error *err);
/* For tests, while nobody uses the device: another size, or with `real` false a subgroup played in the group's memory.
 * False when the device cannot. */
bool st_opencl_set_subgroup(int index, int size, bool real);

/* "opencl:0 (name): clBuildProgram: CL_OUT_OF_HOST_MEMORY (-6)" as SOTTO_E_MEMORY or SOTTO_E_DEVICE */
sotto_status st_opencl_fail(sotto_error *err, const st_opencl_device *d, const char *call, cl_int code);

#define OPENCL_TRY(err, d, call, ...)                    \
    do {                                                 \
        const cl_int code_ = (d)->cl->call(__VA_ARGS__); \
        if (code_ != CL_SUCCESS)                         \
            return st_opencl_fail(err, d, #call, code_); \
    } while (0)

/* The first user makes the context, the last one ends it. */
sotto_status st_opencl_retain(st_opencl_device *d, sotto_error *err);
void st_opencl_release(st_opencl_device *d);
/* A kernel object of its own for the caller, from the program of its module, which is built when it is not there. */
sotto_status st_opencl_kernel(st_opencl_device *d, st_gpu_kernel kernel, const sotto_logger *logger, cl_kernel *out,
                              sotto_error *err);

/* ---- binaries on disk; nothing here fails loudly ---- */

typedef struct st_opencl_key {
    uint64_t hash[2];
} st_opencl_key;

st_opencl_key st_opencl_cache_key(const char *const *texts, int n);
/* Allocated with st_alloc; NULL when there is none or it is damaged. */
unsigned char *st_opencl_cache_load(const st_opencl_key *key, size_t *size);
bool st_opencl_cache_save(const st_opencl_key *key, const unsigned char *binary, size_t size);

#endif
