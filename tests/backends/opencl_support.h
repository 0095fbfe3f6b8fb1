/* opencl_support.h: launches on one opened device of the OpenCL interface, without the layers above it. */
#ifndef SOTTO_TESTS_BACKENDS_OPENCL_SUPPORT_H
#define SOTTO_TESTS_BACKENDS_OPENCL_SUPPORT_H

#include "backends/gpu/gpu_api.h"

/* A buffer with data in it; NULL data leaves it as it is. */
st_buffer ocl_buffer(void *device, const void *data, size_t bytes);
void ocl_read(void *device, const st_buffer *b, void *out, size_t bytes);
void ocl_free(st_buffer *b);
void *ocl_open(int index);
st_gpu_launch ocl_launch(st_gpu_kernel kernel, uint32_t groups, const void *params, size_t param_bytes,
                         const st_buffer *const *buffers, int n);

#define OCL_OK(call) ocl_check((call), &ocl_error, #call, __FILE__, __LINE__)
extern sotto_error ocl_error;
void ocl_check(sotto_status status, const sotto_error *err, const char *call, const char *file, int line);

#endif
