/* driver.h: the functions of NVIDIA's driver that the CUDA interface uses, found at run time. The prototypes are our own, so
 * that neither building nor starting the library needs anything of CUDA. */
#ifndef SOTTO_SRC_BACKENDS_GPU_API_CUDA_DRIVER_H
#define SOTTO_SRC_BACKENDS_GPU_API_CUDA_DRIVER_H

#include <stddef.h>

#if defined(_WIN32)
#define ST_CUDA_CALL __stdcall
#else
#define ST_CUDA_CALL
#endif

typedef int st_cu_device;
typedef unsigned long long st_cu_address;
typedef struct st_cu_context *st_cu_context;
typedef struct st_cu_stream *st_cu_stream;
typedef struct st_cu_event *st_cu_event;
typedef struct st_cu_module *st_cu_module;
typedef struct st_cu_function *st_cu_function;
typedef struct st_cu_graph *st_cu_graph;
typedef struct st_cu_node *st_cu_node;
typedef struct st_cu_exec *st_cu_exec;

/* CUDA_KERNEL_NODE_PARAMS_v1 */
typedef struct st_cu_kernel_node {
    st_cu_function function;
    unsigned grid[3], block[3], shared_bytes;
    void **params, **extra;
} st_cu_kernel_node;

/* CUgraphEdgeData */
typedef struct st_cu_edge {
    unsigned char from_port, to_port, type, reserved[5];
} st_cu_edge;
enum { ST_CU_PROGRAMMATIC = 1 }; /* both as a port and as a type */

enum { /* CUresult */
       ST_CU_OK = 0,
       ST_CU_NO_MEMORY = 2,
       ST_CU_STUB = 34,
       ST_CU_NO_DEVICE = 100,
       ST_CU_INVALID_IMAGE = 200,
       ST_CU_NO_BINARY = 209,
       ST_CU_UNSUPPORTED_PTX = 222,
       ST_CU_NOT_FOUND = 500,
       ST_CU_PEER_ENABLED = 704,
};
enum { /* CUdevice_attribute */
       ST_CU_ATTR_GROUP = 1,
       ST_CU_ATTR_LOCAL_BYTES = 8,
       ST_CU_ATTR_UNITS = 16,
       ST_CU_ATTR_INTEGRATED = 18,
       ST_CU_ATTR_MAJOR = 75,
       ST_CU_ATTR_MINOR = 76,
       ST_CU_ATTR_REGISTERS_READ_ONLY = 113,
};
enum { ST_CU_FUNCTION_LOCAL_BYTES = 8 }; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
enum { ST_CU_STREAM_NON_BLOCKING = 1, ST_CU_HOST_PORTABLE = 1, ST_CU_HOST_MAPPED = 2, ST_CU_HOST_READ_ONLY = 8 };

/* FUNCTION(field, name in the library, parameters) */
#define ST_CUDA_FUNCTIONS(FUNCTION)                                                                               \
    FUNCTION(init, cuInit, (unsigned))                                                                            \
    FUNCTION(version, cuDriverGetVersion, (int *))                                                                \
    FUNCTION(error_name, cuGetErrorName, (int, const char **))                                                    \
    FUNCTION(error_text, cuGetErrorString, (int, const char **))                                                  \
    FUNCTION(count, cuDeviceGetCount, (int *))                                                                    \
    FUNCTION(device, cuDeviceGet, (st_cu_device *, int))                                                          \
    FUNCTION(device_name, cuDeviceGetName, (char *, int, st_cu_device))                                           \
    FUNCTION(device_bytes, cuDeviceTotalMem_v2, (size_t *, st_cu_device))                                         \
    FUNCTION(attribute, cuDeviceGetAttribute, (int *, int, st_cu_device))                                         \
    FUNCTION(retain, cuDevicePrimaryCtxRetain, (st_cu_context *, st_cu_device))                                   \
    FUNCTION(release, cuDevicePrimaryCtxRelease_v2, (st_cu_device))                                               \
    FUNCTION(push, cuCtxPushCurrent_v2, (st_cu_context))                                                          \
    FUNCTION(pop, cuCtxPopCurrent_v2, (st_cu_context *))                                                          \
    FUNCTION(memory_info, cuMemGetInfo_v2, (size_t *, size_t *))                                                  \
    FUNCTION(alloc, cuMemAlloc_v2, (st_cu_address *, size_t))                                                     \
    FUNCTION(free, cuMemFree_v2, (st_cu_address))                                                                 \
    FUNCTION(host_alloc, cuMemAllocHost_v2, (void **, size_t))                                                    \
    FUNCTION(host_free, cuMemFreeHost, (void *))                                                                  \
    FUNCTION(host_register, cuMemHostRegister_v2, (void *, size_t, unsigned))                                     \
    FUNCTION(host_unregister, cuMemHostUnregister, (void *))                                                      \
    FUNCTION(to_device, cuMemcpyHtoDAsync_v2, (st_cu_address, const void *, size_t, st_cu_stream))                \
    FUNCTION(to_host, cuMemcpyDtoHAsync_v2, (void *, st_cu_address, size_t, st_cu_stream))                        \
    FUNCTION(copy, cuMemcpyDtoDAsync_v2, (st_cu_address, st_cu_address, size_t, st_cu_stream))                    \
    FUNCTION(copy_peer, cuMemcpyPeerAsync,                                                                        \
             (st_cu_address, st_cu_context, st_cu_address, st_cu_context, size_t, st_cu_stream))                  \
    FUNCTION(fill, cuMemsetD8Async, (st_cu_address, unsigned char, size_t, st_cu_stream))                         \
    FUNCTION(stream_create, cuStreamCreate, (st_cu_stream *, unsigned))                                           \
    FUNCTION(stream_destroy, cuStreamDestroy_v2, (st_cu_stream))                                                  \
    FUNCTION(stream_sync, cuStreamSynchronize, (st_cu_stream))                                                    \
    FUNCTION(stream_wait, cuStreamWaitEvent, (st_cu_stream, st_cu_event, unsigned))                               \
    FUNCTION(event_create, cuEventCreate, (st_cu_event *, unsigned))                                              \
    FUNCTION(event_destroy, cuEventDestroy_v2, (st_cu_event))                                                     \
    FUNCTION(event_record, cuEventRecord, (st_cu_event, st_cu_stream))                                            \
    FUNCTION(event_sync, cuEventSynchronize, (st_cu_event))                                                       \
    FUNCTION(event_elapsed, cuEventElapsedTime, (float *, st_cu_event, st_cu_event))                              \
    FUNCTION(module_load, cuModuleLoadData, (st_cu_module *, const void *))                                       \
    FUNCTION(module_unload, cuModuleUnload, (st_cu_module))                                                       \
    FUNCTION(function, cuModuleGetFunction, (st_cu_function *, st_cu_module, const char *))                       \
    FUNCTION(function_set, cuFuncSetAttribute, (st_cu_function, int, int))                                        \
    FUNCTION(global, cuModuleGetGlobal_v2, (st_cu_address *, size_t *, st_cu_module, const char *))               \
    FUNCTION(launch, cuLaunchKernel,                                                                              \
             (st_cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, st_cu_stream, \
              void **, void **))                                                                                  \
    FUNCTION(graph_create, cuGraphCreate, (st_cu_graph *, unsigned))                                              \
    FUNCTION(graph_kernel, cuGraphAddKernelNode,                                                                  \
             (st_cu_node *, st_cu_graph, const st_cu_node *, size_t, const st_cu_kernel_node *))                  \
    FUNCTION(graph_instantiate, cuGraphInstantiateWithFlags, (st_cu_exec *, st_cu_graph, unsigned long long))     \
    FUNCTION(graph_launch, cuGraphLaunch, (st_cu_exec, st_cu_stream))                                             \
    FUNCTION(graph_exec_destroy, cuGraphExecDestroy, (st_cu_exec))                                                \
    FUNCTION(graph_destroy, cuGraphDestroy, (st_cu_graph))

/* Of newer drivers; NULL elsewhere. */
#define ST_CUDA_OPTIONAL(FUNCTION)                                                              \
    FUNCTION(graph_depend, cuGraphAddDependencies_v2,                                           \
             (st_cu_graph, const st_cu_node *, const st_cu_node *, const st_cu_edge *, size_t)) \
    FUNCTION(host_address, cuMemHostGetDevicePointer_v2, (st_cu_address *, void *, unsigned))

typedef struct st_cuda_driver {
#define FUNCTION(field, name, params) int(ST_CUDA_CALL * field) params;
    ST_CUDA_FUNCTIONS(FUNCTION)
    ST_CUDA_OPTIONAL(FUNCTION)
#undef FUNCTION
    int n_devices; /* 0: no driver, or one that does not start */
    char why_none[160];
} st_cuda_driver;

/* The driver is opened once a process and stays. Never NULL. */
const st_cuda_driver *st_cuda_driver_get(void);

#endif
