/* opencl_host.c: the driver's library, opened when somebody first asks for devices, and the list of the devices. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <unistd.h>
#endif

#include "backends/gpu/api/opencl/opencl.h"
#include "base/alloc.h"
#include "base/library.h"
#include "base/status.h"

enum {
    MAX_PLATFORMS = 16,
    MAX_DEVICES = 64,
    MIN_GROUP = 256,
    PLAYED_SUBGROUP = 16,
    TEXT_SIZE = 8192,
    WRAP_PAGE = 4096
};

typedef struct host {
    st_opencl_functions cl;
    bool loaded;
    int n_devices;
    st_opencl_device device[MAX_DEVICES];
} host;

static const char *const library_names[] = {
#if defined(_WIN32)
    "OpenCL.dll",
#elif defined(__APPLE__)
    "/System/Library/Frameworks/OpenCL.framework/OpenCL",
#elif defined(__ANDROID__)
    "libOpenCL.so",
    "libOpenCL-pixel.so",
    "libOpenCL-car.so",
    "/system/vendor/lib64/libOpenCL.so",
    "/vendor/lib64/libOpenCL.so",
    "/system/vendor/lib64/egl/libGLES_mali.so",
#else
    "libOpenCL.so.1",
    "libOpenCL.so",
#endif
    NULL,
};

/* ---- errors ---- */

static const struct {
    cl_int code;
    const char *name;
} code_names[] = {
    {-1, "CL_DEVICE_NOT_FOUND"},
    {-2, "CL_DEVICE_NOT_AVAILABLE"},
    {-3, "CL_COMPILER_NOT_AVAILABLE"},
    {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {-5, "CL_OUT_OF_RESOURCES"},
    {-6, "CL_OUT_OF_HOST_MEMORY"},
    {-7, "CL_PROFILING_INFO_NOT_AVAILABLE"},
    {-8, "CL_MEM_COPY_OVERLAP"},
    {-11, "CL_BUILD_PROGRAM_FAILURE"},
    {-12, "CL_MAP_FAILURE"},
    {-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
    {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-15, "CL_COMPILE_PROGRAM_FAILURE"},
    {-16, "CL_LINKER_NOT_AVAILABLE"},
    {-17, "CL_LINK_PROGRAM_FAILURE"},
    {-30, "CL_INVALID_VALUE"},
    {-31, "CL_INVALID_DEVICE_TYPE"},
    {-32, "CL_INVALID_PLATFORM"},
    {-33, "CL_INVALID_DEVICE"},
    {-34, "CL_INVALID_CONTEXT"},
    {-35, "CL_INVALID_QUEUE_PROPERTIES"},
    {-36, "CL_INVALID_COMMAND_QUEUE"},
    {-37, "CL_INVALID_HOST_PTR"},
    {-38, "CL_INVALID_MEM_OBJECT"},
    {-42, "CL_INVALID_BINARY"},
    {-43, "CL_INVALID_BUILD_OPTIONS"},
    {-44, "CL_INVALID_PROGRAM"},
    {-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
    {-46, "CL_INVALID_KERNEL_NAME"},
    {-47, "CL_INVALID_KERNEL_DEFINITION"},
    {-48, "CL_INVALID_KERNEL"},
    {-49, "CL_INVALID_ARG_INDEX"},
    {-50, "CL_INVALID_ARG_VALUE"},
    {-51, "CL_INVALID_ARG_SIZE"},
    {-52, "CL_INVALID_KERNEL_ARGS"},
    {-53, "CL_INVALID_WORK_DIMENSION"},
    {-54, "CL_INVALID_WORK_GROUP_SIZE"},
    {-55, "CL_INVALID_WORK_ITEM_SIZE"},
    {-56, "CL_INVALID_GLOBAL_OFFSET"},
    {-57, "CL_INVALID_EVENT_WAIT_LIST"},
    {-58, "CL_INVALID_EVENT"},
    {-59, "CL_INVALID_OPERATION"},
    {-61, "CL_INVALID_BUFFER_SIZE"},
    {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
};

sotto_status st_opencl_fail(sotto_error *err, const st_opencl_device *d, const char *call, cl_int code)
{
    const char *name = "unknown error";
    for (size_t i = 0; i < sizeof code_names / sizeof *code_names; i++)
        if (code_names[i].code == code)
            name = code_names[i].name;
    const bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY ||
                        code == CL_INVALID_BUFFER_SIZE ||
                        (code == CL_OUT_OF_RESOURCES && strcmp(call, "clCreateBuffer") == 0);
    return st_fail(err, memory ? SOTTO_E_MEMORY : SOTTO_E_DEVICE, "%s (%s): %s: %s (%d)", d->caps.id, d->caps.name,
                   call, name, (int)code);
}

/* ---- facts of a device; 0 or "" when the driver does not tell ---- */

static void ask(const st_opencl_device *d, cl_uint what, void *out, size_t size)
{
    memset(out, 0, size);
    if (d->cl->clGetDeviceInfo(d->id, what, size, out, NULL) != CL_SUCCESS)
        memset(out, 0, size);
}

static cl_ulong ask_number(const st_opencl_device *d, cl_uint what, size_t size)
{
    union {
        cl_uint u32;
        cl_ulong u64;
    } v;
    ask(d, what, &v, sizeof v);
    return size == sizeof v.u32 ? v.u32 : v.u64;
}

#define ASK(d, what, type) ((type)ask_number(d, what, sizeof(type)))

static char *ask_text(const st_opencl_device *d, cl_uint what, char *out, size_t size)
{
    ask(d, what, out, size);
    out[size - 1] = 0;
    const size_t spaces = strspn(out, " ");
    memmove(out, out + spaces, strlen(out + spaces) + 1);
    for (size_t n = strlen(out); n > 0 && out[n - 1] == ' ';)
        out[--n] = 0;
    return out;
}

/* `name` as a whole word of a list with spaces between. */
static bool has_word(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == 0))
            return true;
    return false;
}

/* "OpenCL 3.0 PoCL" is 30 */
static int version_of(const char *text)
{
    int major = 0, minor = 0;
    return sscanf(text, "OpenCL %d.%d", &major, &minor) == 2 ? major * 10 + minor : 0;
}

/* Lanes that a kernel can be sure of, and whether they are the device's own. */
static void choose_subgroup(st_opencl_device *d, const char *extensions)
{
    const bool intel = has_word(extensions, "cl_intel_subgroups"),
               shuffles = intel || has_word(extensions, "cl_khr_subgroup_shuffle");
    d->caps.subgroup = PLAYED_SUBGROUP;
    d->intel_sizes = intel && has_word(extensions, "cl_intel_required_subgroup_size");
    if (d->intel_sizes) {
        size_t sizes[16];
        ask(d, CL_DEVICE_SUB_GROUP_SIZES_INTEL, sizes, sizeof sizes);
        for (int i = 0; i < 16; i++)
            if (sizes[i] >= 8 && sizes[i] <= 64 && (!d->real_subgroups || sizes[i] == 16)) {
                d->caps.subgroup = (int)sizes[i];
                d->real_subgroups = true;
            }
    } else if (shuffles && has_word(extensions, "cl_khr_subgroups") &&
               has_word(extensions, "cl_amd_device_attribute_query")) {
        const cl_uint lanes = ASK(d, CL_DEVICE_WAVEFRONT_WIDTH_AMD, cl_uint);
        d->real_subgroups = lanes == 32 || lanes == 64;
        if (d->real_subgroups)
            d->caps.subgroup = (int)lanes;
    }
}

static void fill_identity(st_opencl_device *d)
{
    char name[128], vendor[96], version[128], driver[128];
    ask_text(d, CL_DEVICE_NAME, name, sizeof name);
    ask_text(d, CL_DEVICE_VENDOR, vendor, sizeof vendor);
    ask_text(d, CL_DEVICE_VERSION, version, sizeof version);
    ask_text(d, CL_DRIVER_VERSION, driver, sizeof driver);
    snprintf(d->identity, sizeof d->identity, "%s|%s|%s|%s", name, vendor, version, driver);
}

/* False for what cannot run the kernels. */
static bool fill_device(st_opencl_device *d, const st_opencl_functions *cl, cl_device_id id)
{
    char version[128];
    memset(d, 0, sizeof *d);
    d->cl = cl;
    d->id = id;
    st_gpu_caps *c = &d->caps;
    char *extensions = st_alloc(TEXT_SIZE, 1);
    if (!extensions)
        return false;
    ask_text(d, CL_DEVICE_EXTENSIONS, extensions, TEXT_SIZE);
    ask_text(d, CL_DEVICE_NAME, c->name, sizeof c->name);
    d->version = version_of(ask_text(d, CL_DEVICE_VERSION, version, sizeof version));
    c->memory_total = ASK(d, CL_DEVICE_GLOBAL_MEM_SIZE, cl_ulong);
    c->max_buffer = (size_t)ASK(d, CL_DEVICE_MAX_MEM_ALLOC_SIZE, cl_ulong);
    c->alignment = ASK(d, CL_DEVICE_MEM_BASE_ADDR_ALIGN, cl_uint) / 8;
    c->alignment = c->alignment < 64 ? 64 : c->alignment;
    c->local_bytes = (size_t)ASK(d, CL_DEVICE_LOCAL_MEM_SIZE, cl_ulong);
    c->max_group = (int)ASK(d, CL_DEVICE_MAX_WORK_GROUP_SIZE, size_t);
    c->n_units = (int)ASK(d, CL_DEVICE_MAX_COMPUTE_UNITS, cl_uint);
    c->unified = ASK(d, CL_DEVICE_HOST_UNIFIED_MEMORY, cl_uint) != 0;
    c->wrap_page = c->unified ? WRAP_PAGE : 0;
    c->is_gpu = (ASK(d, CL_DEVICE_TYPE, cl_ulong) & (CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_CPU)) == CL_DEVICE_TYPE_GPU;
    c->cuts = !c->is_gpu; /* a processor takes long over a large launch */
    d->exact_division = (ASK(d, CL_DEVICE_SINGLE_FP_CONFIG, cl_ulong) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
    choose_subgroup(d, extensions);
    d->fp16 = has_word(extensions, "cl_khr_fp16");
    d->dot4 = has_word(extensions, "cl_khr_integer_dot_product");
    if (d->dot4) {
        cl_uint accelerated[6]; /* the first: both sides signed */
        ask(d, CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PACKED, accelerated, sizeof accelerated);
        c->has_dot4 = accelerated[0] != 0;
    }
    snprintf(c->features, sizeof c->features, "opencl%d.%d%s%s%s%d%s", d->version / 10, d->version % 10,
             d->fp16 ? " fp16" : "", c->has_dot4 ? " dot4" : "", d->real_subgroups ? " subgroup" : " played-subgroup",
             c->subgroup, c->unified ? " unified" : "");
    fill_identity(d);
    const bool runs = d->version >= 12 && c->max_group >= MIN_GROUP && c->max_buffer > 0 &&
                      ASK(d, CL_DEVICE_ENDIAN_LITTLE, cl_uint) && ASK(d, CL_DEVICE_AVAILABLE, cl_uint) &&
                      ASK(d, CL_DEVICE_COMPILER_AVAILABLE, cl_uint);
    st_free(extensions);
    return runs && st_mutex_init(&d->lock);
}

/* ---- the list ---- */

static bool load_functions(st_opencl_functions *cl)
{
    void *const library = st_library_open(library_names);
    if (!library)
        return false;
    bool all = true;
#define F(result, name, arguments) all = st_library_function(library, #name, &cl->name) && all;
    OPENCL_FUNCTIONS(F)
#undef F
    if (!st_library_function(library, "clGetKernelSubGroupInfo", &cl->sub_group_info))
        st_library_function(library, "clGetKernelSubGroupInfoKHR", &cl->sub_group_info);
    return all;
}

static bool is_listed(const host *h, cl_device_id id)
{
    bool found = false;
    for (int i = 0; i < h->n_devices; i++)
        found = found || h->device[i].id == id;
    return found;
}

/* GPUs of all platforms before processors. A tool for tests may call itself both. */
static void list_devices(host *h)
{
    static const cl_bitfield order[] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_CPU};
    cl_platform_id platform[MAX_PLATFORMS];
    cl_uint n_platforms = 0;
    if (h->cl.clGetPlatformIDs(MAX_PLATFORMS, platform, &n_platforms) != CL_SUCCESS)
        return;
    n_platforms = n_platforms < MAX_PLATFORMS ? n_platforms : MAX_PLATFORMS;
    for (int t = 0; t < 2; t++)
        for (cl_uint p = 0; p < n_platforms; p++) {
            cl_device_id id[MAX_DEVICES];
            cl_uint n = 0;
            if (h->cl.clGetDeviceIDs(platform[p], order[t], MAX_DEVICES, id, &n) != CL_SUCCESS)
                continue;
            for (cl_uint i = 0; i < n && i < MAX_DEVICES && h->n_devices < MAX_DEVICES; i++) {
                st_opencl_device *const d = &h->device[h->n_devices];
                if (is_listed(h, id[i]) || !fill_device(d, &h->cl, id[i]))
                    continue;
                snprintf(d->caps.id, sizeof d->caps.id, "opencl:%d", h->n_devices);
                h->n_devices++;
            }
        }
}

/* What the process knows of OpenCL. Two threads that ask first at the same time both make a list; one of them is kept. */
static _Atomic(host *) st_opencl_host;

static host *the_host(void)
{
    host *known = atomic_load(&st_opencl_host);
    if (known)
        return known;
    host *const made = st_calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->loaded = load_functions(&made->cl);
    if (made->loaded)
        list_devices(made);
    if (atomic_compare_exchange_strong(&st_opencl_host, &known, made))
        return made;
    for (int i = 0; i < made->n_devices; i++)
        st_mutex_destroy(&made->device[i].lock);
    st_free(made);
    return known;
}

/* A driver for processors, PoCL say, brings a compiler of 60 MB with it, which auto would load for nothing. */
bool st_opencl_no_gpu(void)
{
#if defined(__linux__) && !defined(__ANDROID__)
    static const char *const files[] = {"/dev/dri",     "/dev/kfd",      "/dev/nvidiactl", "/dev/nvhost-gpu",
                                        "/dev/nvgpu",   "/dev/kgsl-3d0", "/dev/mali",      "/dev/mali0",
                                        "/dev/galcore", "/dev/pvr_sync", "/dev/dxg",       "/dev/pvrsrvkm"};
    bool found = false;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        found = found || access(files[i], F_OK) == 0;
    return !found;
#else
    return false;
#endif
}

int st_opencl_count(void)
{
    const host *const h = the_host();
    return h ? h->n_devices : 0;
}

void st_opencl_why_none(char *out, size_t size)
{
    const host *const h = the_host();
    const char *const slash = strrchr(library_names[0], '/'), *const library = slash ? slash + 1 : library_names[0];
    if (!h || !h->loaded)
        snprintf(out, size, "%s was not found: install the loader of OpenCL (ocl-icd-libopencl1 on Debian)", library);
    else
        snprintf(out, size, "%s finds no device that runs OpenCL 1.2: install the device's driver for OpenCL", library);
}

st_opencl_device *st_opencl_device_at(int index, sotto_error *err)
{
    host *const h = the_host();
    if (h && index >= 0 && index < h->n_devices)
        return &h->device[index];
    const int n = h ? h->n_devices : 0;
    st_fail(err, SOTTO_E_NOT_FOUND, "opencl:%d: no such device; there %s %d", index, n == 1 ? "is" : "are", n);
    return NULL;
}

bool st_opencl_set_subgroup(int index, int size, bool real)
{
    st_opencl_device *const d = st_opencl_device_at(index, NULL);
    if (!d || size < 8 || size > 64 || (size & (size - 1)) != 0)
        return false;
    bool possible = !real;
    if (real && d->intel_sizes) {
        size_t sizes[16];
        ask(d, CL_DEVICE_SUB_GROUP_SIZES_INTEL, sizes, sizeof sizes);
        for (int i = 0; i < 16; i++)
            possible = possible || sizes[i] == (size_t)size;
    }
    st_mutex_lock(&d->lock);
    possible = possible && d->users == 0;
    if (possible) {
        d->caps.subgroup = size;
        d->real_subgroups = real;
    }
    st_mutex_unlock(&d->lock);
    return possible;
}
