#include "backends/opencl_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/gpu/api/opencl/opencl.h"

sotto_error ocl_error;

/* What drivers and the compilers inside them leave allocated is not ours; asked by LeakSanitizer, if it is there. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libpocl\nleak:libLLVM\nleak:libclang\nleak:libOpenCL\nleak:libintelocl\nleak:liboclgrind\n"
           "leak:<unknown module>\n";
}

void ocl_check(sotto_status status, const sotto_error *err, const char *call, const char *file, int line)
{
    if (status != SOTTO_OK)
        fail_msg("%s:%d: %s: %d, %s", file, line, call, (int)status, err->text);
}

void *ocl_open(int index)
{
    void *device = NULL;
    OCL_OK(st_gpu_opencl.open(index, NULL, &device, &ocl_error));
    return device;
}

st_buffer ocl_buffer(void *device, const void *data, size_t bytes)
{
    st_buffer b = {.size = bytes};
    OCL_OK(st_gpu_opencl.alloc(device, bytes, &b.handle, &ocl_error));
    if (data)
        OCL_OK(st_gpu_opencl.write(device, b.handle, 0, data, bytes, &ocl_error));
    return b;
}

void ocl_read(void *device, const st_buffer *b, void *out, size_t bytes)
{
    OCL_OK(st_gpu_opencl.read(device, b->handle, 0, out, bytes, &ocl_error));
}

void ocl_free(st_buffer *b)
{
    st_gpu_opencl.free(b->handle);
    b->handle = NULL;
}

st_gpu_launch ocl_launch(st_gpu_kernel kernel, uint32_t groups, const void *params, size_t param_bytes,
                         const st_buffer *const *buffers, int n)
{
    st_gpu_launch l = {.kernel = kernel, .grid = {groups, 1, 1}, .n_param_bytes = (uint32_t)param_bytes, .n_args = n};
    memcpy(l.params, params, param_bytes);
    for (int i = 0; i < n; i++)
        l.arg[i].buffer = buffers[i];
    return l;
}
