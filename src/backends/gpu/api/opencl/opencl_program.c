/* opencl_program.c: a device's context, and its programs: one a module of kernels, built when first needed, from the disk
 * cache where it has them. */
#include <stdio.h>
#include <string.h>

#include "backends/gpu/api/opencl/opencl.h"
#include "base/alloc.h"
#include "base/status.h"

enum { OPTIONS_SIZE = 256, LOG_LINES = 4 };

/* ---- the context ---- */

sotto_status st_opencl_retain(st_opencl_device *d, sotto_error *err)
{
    sotto_status status = SOTTO_OK;
    st_mutex_lock(&d->lock);
    if (d->users == 0) {
        cl_int code = CL_SUCCESS;
        d->context = d->cl->clCreateContext(NULL, 1, &d->id, NULL, NULL, &code);
        if (!d->context)
            status = st_opencl_fail(err, d, "clCreateContext", code);
    }
    if (status == SOTTO_OK)
        d->users++;
    st_mutex_unlock(&d->lock);
    return status;
}

static void drop_programs(st_opencl_device *d)
{
    for (int i = 0; i < ST_GPU_KERNEL_COUNT; i++) {
        if (d->program[i])
            d->cl->clReleaseProgram(d->program[i]);
        d->program[i] = NULL;
    }
}

void st_opencl_release(st_opencl_device *d)
{
    st_mutex_lock(&d->lock);
    if (--d->users == 0) {
        drop_programs(d);
        d->cl->clReleaseContext(d->context);
        d->context = NULL;
    }
    st_mutex_unlock(&d->lock);
}

/* ---- building; the device is locked ---- */

static void make_options(const st_opencl_device *d, char out[OPTIONS_SIZE])
{
    const char *language = "CL1.2"; /* the words of later versions only where they are used */
    if (d->version >= 30 && (d->real_subgroups || d->dot4))
        language = "CL3.0";
    else if (d->version >= 20 && d->real_subgroups && !d->intel_sizes)
        language = "CL2.0";
    snprintf(out, OPTIONS_SIZE, "-cl-std=%s -DSG_SIZE=%d%s%s%s%s%s%s", language, d->caps.subgroup,
             d->real_subgroups ? " -DSG_REAL" : "", d->real_subgroups && d->intel_sizes ? " -DSG_INTEL" : "",
             d->fp16 ? " -DFP16" : "", d->dot4 ? " -DDOT4" : "", d->caps.is_gpu ? "" : " -DKEEP_LOOPS -DCUTS",
             d->exact_division ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
}

static cl_program from_binary(st_opencl_device *d, const char *options, const st_opencl_key *key)
{
    size_t size = 0;
    unsigned char *const binary = st_opencl_cache_load(key, &size);
    if (!binary)
        return NULL;
    const unsigned char *list = binary;
    cl_int loaded = CL_SUCCESS, code = CL_SUCCESS;
    cl_program program = d->cl->clCreateProgramWithBinary(d->context, 1, &d->id, &size, &list, &loaded, &code);
    st_free(binary);
    if (program && (code != CL_SUCCESS || loaded != CL_SUCCESS ||
                    d->cl->clBuildProgram(program, 1, &d->id, options, NULL, NULL) != CL_SUCCESS)) {
        d->cl->clReleaseProgram(program);
        program = NULL;
    }
    return program;
}

static void keep_binary(const st_opencl_device *d, cl_program program, const st_opencl_key *key,
                        const sotto_logger *logger)
{
    size_t size = 0;
    if (d->cl->clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL) != CL_SUCCESS || size == 0)
        return;
    unsigned char *const binary = st_alloc(size, 1), *list = binary;
    const bool kept = binary &&
                      d->cl->clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof list, &list, NULL) == CL_SUCCESS &&
                      st_opencl_cache_save(key, binary, size);
    if (!kept)
        st_log(logger, SOTTO_LOG_DEBUG, "%s: a built program could not be kept on disk", d->caps.id);
    st_free(binary);
}

/* The sentence of a failed build ends with the first lines that the compiler wrote. */
static sotto_status fail_build(st_opencl_device *d, cl_program program, const char *module, cl_int code,
                               sotto_error *err)
{
    size_t size = 0;
    d->cl->clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    char *const log = st_calloc(size + 1, 1), *line = log;
    if (log && size > 0)
        d->cl->clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, size, log, NULL);
    for (int i = 0; line && i < LOG_LINES; i++)
        if ((line = strchr(line, '\n')))
            *line++ = i + 1 < LOG_LINES ? ' ' : 0;
    const sotto_status status = st_opencl_fail(err, d, "clBuildProgram", code);
    if (err) {
        const sotto_error before = *err;
        st_fail(err, status, "%.200s: %s.krn: %s", before.text, module, log ? log : "");
    }
    st_free(log);
    return status;
}

static sotto_status from_source(st_opencl_device *d, const char *module, const char *options, const char *source,
                                cl_program *out, sotto_error *err)
{
    cl_int code = CL_SUCCESS;
    cl_program program = d->cl->clCreateProgramWithSource(d->context, 1, &source, NULL, &code);
    if (!program)
        return st_opencl_fail(err, d, "clCreateProgramWithSource", code);
    code = d->cl->clBuildProgram(program, 1, &d->id, options, NULL, NULL);
    if (code != CL_SUCCESS) {
        const sotto_status status = fail_build(d, program, module, code, err);
        d->cl->clReleaseProgram(program);
        return status;
    }
    *out = program;
    return SOTTO_OK;
}

static sotto_status build(st_opencl_device *d, const char *module, const sotto_logger *logger, cl_program *out,
                          sotto_error *err)
{
    char *const source = st_gpu_source("opencl/prelude.h", module);
    if (!source)
        return st_fail(err, SOTTO_E_MEMORY, "%s: no memory for the text of %s.krn", d->caps.id, module);
    char options[OPTIONS_SIZE];
    make_options(d, options);
    const char *const texts[] = {source, options, d->identity};
    const st_opencl_key key = st_opencl_cache_key(texts, 3);
    const double begin = st_time_now();
    sotto_status status = SOTTO_OK;
    *out = from_binary(d, options, &key);
    const bool hit = *out != NULL;
    if (hit) {
        d->cache_hits++;
    } else {
        if (!d->said) /* the only sign of life for what may be a minute */
            st_log(logger, SOTTO_LOG_INFO, "%s: compiling kernels for %s, once", d->caps.id, d->caps.name);
        d->said = true;
        status = from_source(d, module, options, source, out, err);
    }
    if (status == SOTTO_OK && !hit) {
        d->builds++;
        keep_binary(d, *out, &key, logger);
    }
    if (status == SOTTO_OK)
        st_log(logger, SOTTO_LOG_DEBUG, "%s: %s.krn %s in %.0f ms (%s)", d->caps.id, module, hit ? "loaded" : "built",
               (st_time_now() - begin) * 1e3, options);
    st_free(source);
    return status;
}

/* ---- kernels ---- */

static int first_of_module(st_gpu_kernel kernel)
{
    int i = 0;
    while (strcmp(st_gpu_kernels[i].module, st_gpu_kernels[kernel].module) != 0)
        i++;
    return i;
}

static sotto_status make_kernel(st_opencl_device *d, st_gpu_kernel kernel, const sotto_logger *logger, cl_kernel *out,
                                sotto_error *err)
{
    const st_gpu_kernel_info *const info = &st_gpu_kernels[kernel];
    cl_program *const program = &d->program[first_of_module(kernel)];
    if (!*program)
        ST_TRY(build(d, info->module, logger, program, err));
    cl_int code = CL_SUCCESS;
    *out = d->cl->clCreateKernel(*program, info->name, &code);
    if (!*out)
        return st_opencl_fail(err, d, "clCreateKernel", code);
    size_t most = 0;
    code = d->cl->clGetKernelWorkGroupInfo(*out, d->id, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, NULL);
    if (code == CL_SUCCESS && most >= (size_t)info->group)
        return SOTTO_OK;
    d->cl->clReleaseKernel(*out);
    *out = NULL;
    if (code != CL_SUCCESS)
        return st_opencl_fail(err, d, "clGetKernelWorkGroupInfo", code);
    return st_fail(err, SOTTO_E_UNSUPPORTED, "%s (%s): %s runs in groups of at most %zu work items, expected %d",
                   d->caps.id, d->caps.name, info->name, most, info->group);
}

/* Whether the compiler gave the kernel the subgroups that its text was made for. */
static bool subgroups_fit(const st_opencl_device *d, st_gpu_kernel kernel, cl_kernel object)
{
    const size_t group = (size_t)st_gpu_kernels[kernel].group;
    size_t lanes = 0;
    if (!d->real_subgroups)
        return true;
    return d->cl->sub_group_info &&
           d->cl->sub_group_info(object, d->id, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, sizeof group, &group,
                                 sizeof lanes, &lanes, NULL) == CL_SUCCESS &&
           lanes == (size_t)d->caps.subgroup;
}

sotto_status st_opencl_kernel(st_opencl_device *d, st_gpu_kernel kernel, const sotto_logger *logger, cl_kernel *out,
                              sotto_error *err)
{
    *out = NULL;
    const char *const module = st_gpu_kernels[kernel].module, *const ending = strstr(module, "_mma");
    if (ending && ending[4] == 0)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%s: has no matrix units for %s", d->caps.id,
                       st_gpu_kernels[kernel].name);
    st_mutex_lock(&d->lock);
    sotto_status status = make_kernel(d, kernel, logger, out, err);
    if (status == SOTTO_OK && !subgroups_fit(d, kernel, *out)) {
        st_log(logger, SOTTO_LOG_WARNING, "%s: %s has no subgroups of %d; they are played in the group's memory",
               d->caps.id, st_gpu_kernels[kernel].name, d->caps.subgroup);
        d->cl->clReleaseKernel(*out);
        d->real_subgroups = false;
        drop_programs(d);
        status = make_kernel(d, kernel, logger, out, err);
    }
    st_mutex_unlock(&d->lock);
    return status;
}
