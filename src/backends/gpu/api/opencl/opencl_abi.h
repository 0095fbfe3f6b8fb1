/* opencl_abi.h: what is used of OpenCL 1.2 and some extensions, so that no header of OpenCL is needed for building. The
 * names and numbers are those of the specification. */
#ifndef SOTTO_SRC_BACKENDS_GPU_API_OPENCL_OPENCL_ABI_H
#define SOTTO_SRC_BACKENDS_GPU_API_OPENCL_OPENCL_ABI_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define CL_CALL __stdcall
#else
#define CL_CALL
#endif

typedef int32_t cl_int;
typedef uint32_t cl_uint, cl_bool;
typedef uint64_t cl_ulong, cl_bitfield;
typedef intptr_t cl_context_properties;
typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_mem *cl_mem;
typedef struct _cl_program *cl_program;
typedef struct _cl_kernel *cl_kernel;
typedef struct _cl_event *cl_event;
typedef void(CL_CALL *cl_context_notify)(const char *text, const void *data, size_t size, void *user);
typedef void(CL_CALL *cl_program_notify)(cl_program program, void *user);

enum {
    CL_SUCCESS = 0,
    CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
    CL_OUT_OF_RESOURCES = -5,
    CL_OUT_OF_HOST_MEMORY = -6,
    CL_INVALID_BUFFER_SIZE = -61,

    CL_DEVICE_TYPE_CPU = 1 << 1,
    CL_DEVICE_TYPE_GPU = 1 << 2,

    CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
    CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
    CL_DEVICE_MEM_BASE_ADDR_ALIGN = 0x1019, /* bits */
    CL_DEVICE_SINGLE_FP_CONFIG = 0x101b,
    CL_DEVICE_TYPE = 0x1000,
    CL_DEVICE_GLOBAL_MEM_SIZE = 0x101f,
    CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
    CL_DEVICE_ENDIAN_LITTLE = 0x1026,
    CL_DEVICE_AVAILABLE = 0x1027,
    CL_DEVICE_COMPILER_AVAILABLE = 0x1028,
    CL_DEVICE_NAME = 0x102b,
    CL_DEVICE_VENDOR = 0x102c,
    CL_DRIVER_VERSION = 0x102d,
    CL_DEVICE_VERSION = 0x102f,
    CL_DEVICE_EXTENSIONS = 0x1030,
    CL_DEVICE_HOST_UNIFIED_MEMORY = 0x1035,
    CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PACKED = 0x1075,
    CL_DEVICE_WAVEFRONT_WIDTH_AMD = 0x4043,
    CL_DEVICE_SUB_GROUP_SIZES_INTEL = 0x4108,
    CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT = 1 << 7,

    CL_QUEUE_PROFILING_ENABLE = 1 << 1,
    CL_MEM_READ_WRITE = 1 << 0,
    CL_MEM_READ_ONLY = 1 << 2,
    CL_MEM_USE_HOST_PTR = 1 << 3,
    CL_MEM_ALLOC_HOST_PTR = 1 << 4,
    CL_MAP_WRITE = 1 << 1,

    CL_PROGRAM_BINARY_SIZES = 0x1165,
    CL_PROGRAM_BINARIES = 0x1166,
    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_KERNEL_WORK_GROUP_SIZE = 0x11b0,
    CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE = 0x2033,
    CL_PROFILING_COMMAND_END = 0x1283
};

/* F(result, name, (arguments)) */
#define OPENCL_FUNCTIONS(F)                                                                                              \
    F(cl_int, clGetPlatformIDs, (cl_uint, cl_platform_id *, cl_uint *))                                                  \
    F(cl_int, clGetDeviceIDs, (cl_platform_id, cl_bitfield, cl_uint, cl_device_id *, cl_uint *))                         \
    F(cl_int, clGetDeviceInfo, (cl_device_id, cl_uint, size_t, void *, size_t *))                                        \
    F(cl_context, clCreateContext,                                                                                       \
      (const cl_context_properties *, cl_uint, const cl_device_id *, cl_context_notify, void *, cl_int *))               \
    F(cl_int, clReleaseContext, (cl_context))                                                                            \
    F(cl_command_queue, clCreateCommandQueue, (cl_context, cl_device_id, cl_bitfield, cl_int *))                         \
    F(cl_int, clReleaseCommandQueue, (cl_command_queue))                                                                 \
    F(cl_int, clFlush, (cl_command_queue))                                                                               \
    F(cl_int, clFinish, (cl_command_queue))                                                                              \
    F(cl_mem, clCreateBuffer, (cl_context, cl_bitfield, size_t, void *, cl_int *))                                       \
    F(cl_int, clReleaseMemObject, (cl_mem))                                                                              \
    F(cl_int, clEnqueueReadBuffer,                                                                                       \
      (cl_command_queue, cl_mem, cl_bool, size_t, size_t, void *, cl_uint, const cl_event *, cl_event *))                \
    F(cl_int, clEnqueueWriteBuffer,                                                                                      \
      (cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void *, cl_uint, const cl_event *, cl_event *))          \
    F(cl_int, clEnqueueCopyBuffer,                                                                                       \
      (cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, cl_uint, const cl_event *, cl_event *))                 \
    F(cl_int, clEnqueueFillBuffer,                                                                                       \
      (cl_command_queue, cl_mem, const void *, size_t, size_t, size_t, cl_uint, const cl_event *, cl_event *))           \
    F(void *, clEnqueueMapBuffer,                                                                                        \
      (cl_command_queue, cl_mem, cl_bool, cl_bitfield, size_t, size_t, cl_uint, const cl_event *, cl_event *, cl_int *)) \
    F(cl_int, clEnqueueUnmapMemObject, (cl_command_queue, cl_mem, void *, cl_uint, const cl_event *, cl_event *))        \
    F(cl_program, clCreateProgramWithSource, (cl_context, cl_uint, const char **, const size_t *, cl_int *))             \
    F(cl_program, clCreateProgramWithBinary,                                                                             \
      (cl_context, cl_uint, const cl_device_id *, const size_t *, const unsigned char **, cl_int *, cl_int *))           \
    F(cl_int, clBuildProgram, (cl_program, cl_uint, const cl_device_id *, const char *, cl_program_notify, void *))      \
    F(cl_int, clGetProgramInfo, (cl_program, cl_uint, size_t, void *, size_t *))                                         \
    F(cl_int, clGetProgramBuildInfo, (cl_program, cl_device_id, cl_uint, size_t, void *, size_t *))                      \
    F(cl_int, clReleaseProgram, (cl_program))                                                                            \
    F(cl_kernel, clCreateKernel, (cl_program, const char *, cl_int *))                                                   \
    F(cl_int, clReleaseKernel, (cl_kernel))                                                                              \
    F(cl_int, clSetKernelArg, (cl_kernel, cl_uint, size_t, const void *))                                                \
    F(cl_int, clGetKernelWorkGroupInfo, (cl_kernel, cl_device_id, cl_uint, size_t, void *, size_t *))                    \
    F(cl_int, clEnqueueNDRangeKernel,                                                                                    \
      (cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *, cl_uint,                    \
       const cl_event *, cl_event *))                                                                                    \
    F(cl_int, clEnqueueMarkerWithWaitList, (cl_command_queue, cl_uint, const cl_event *, cl_event *))                    \
    F(cl_int, clEnqueueBarrierWithWaitList, (cl_command_queue, cl_uint, const cl_event *, cl_event *))                   \
    F(cl_int, clWaitForEvents, (cl_uint, const cl_event *))                                                              \
    F(cl_int, clGetEventProfilingInfo, (cl_event, cl_uint, size_t, void *, size_t *))                                    \
    F(cl_int, clReleaseEvent, (cl_event))

/* Of OpenCL 2.1, or of an extension under the second name: how large the subgroups of a kernel are. */
typedef cl_int(CL_CALL *cl_kernel_sub_group_info)(cl_kernel, cl_device_id, cl_uint, size_t, const void *, size_t,
                                                  void *, size_t *);

#endif
