/* cpu_backend.c: the processor as a backend: its one device, memory, and stored weights, which are packed on upload. */
#include <stdio.h>
#include <string.h>

#include "backends/cpu/cpu_exec.h"
#include "backends/cpu/cpu_pack.h"
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/prefetch.h"
#include "base/status.h"
#include "base/thread.h"
#include "sotto/quant.h"

extern const st_backend_impl st_backend_cpu;

static int device_count(void)
{
    return 1;
}

static sotto_status device_info(int index, sotto_device_info *out, sotto_error *err)
{
    (void)index;
    (void)err;
    memset(out, 0, sizeof *out);
    snprintf(out->id, sizeof out->id, "cpu");
    st_cpu_name(out->name, sizeof out->name);
    if (out->name[0] == '\0')
        snprintf(out->name, sizeof out->name, "CPU");
    st_cpu_features_text(st_cpu_features(), out->features, sizeof out->features);
    out->kind = SOTTO_DEVICE_CPU;
    out->rank = 1;
    out->wraps_host_memory = out->unified = true;
    out->api_version = ST_BACKEND_API_VERSION;
    return SOTTO_OK;
}

static void close_cpu(void *state)
{
    st_cpu *cpu = state;
    if (cpu == NULL)
        return;
    st_pool_free(cpu->pool);
    if (cpu->scratch != NULL)
        st_free_pages(cpu->scratch, cpu->scratch_bytes);
    st_free(cpu);
}

static sotto_status choose_level(const char *name, st_cpu_level *level, sotto_error *err)
{
    const uint32_t features = st_cpu_features();
    if (name == NULL || strcmp(name, "auto") == 0) {
        *level = st_cpu_level_best(features);
        return SOTTO_OK;
    }
    if (!st_cpu_level_find(name, level))
        return st_fail(
            err, SOTTO_E_ARGUMENT,
            "CPU level \"%s\" is unknown, expected auto, portable, v2, v3, avxvnni, v4, avx512vnni, vnni, amx, "
            "neon, dotprod, i8mm or bf16mm",
            name);
    if (!st_cpu_level_usable(*level, features)) {
        char text[256];
        return st_fail(err, SOTTO_E_UNSUPPORTED, "CPU level %s is not usable on this machine, which has: %s", name,
                       st_cpu_features_text(features, text, sizeof text));
    }
    return SOTTO_OK;
}

static sotto_status open_cpu(int index, const sotto_backend_options *options, void **state, sotto_error *err)
{
    (void)index;
    *state = NULL;
    st_cpu_level level;
    ST_TRY(choose_level(options != NULL ? options->cpu_level : NULL, &level, err));
    int n_threads = options != NULL ? options->n_threads : 0;
    if (n_threads < 0 || n_threads > ST_POOL_MAX_THREADS)
        return st_fail(err, SOTTO_E_ARGUMENT, "%d threads, expected 0 to %d", n_threads, ST_POOL_MAX_THREADS);
    const int cores = st_thread_cores(), asked = n_threads;
    n_threads = st_thread_useful(asked);
    st_cpu *cpu = st_calloc(1, sizeof *cpu);
    if (cpu == NULL)
        return st_fail_memory(err, sizeof *cpu, "the CPU backend");
    st_cpu_kernels_fill(&cpu->kernels, level);
    if (options != NULL)
        cpu->logger = options->logger;
    if (asked > n_threads)
        st_log(&cpu->logger, SOTTO_LOG_INFO, "%d threads for %d core%s: %d are used", asked, cores,
               cores == 1 ? "" : "s", n_threads);
    cpu->pool = st_pool_create(n_threads);
    if (cpu->pool == NULL) {
        close_cpu(cpu);
        return st_fail(err, SOTTO_E_MEMORY, "no memory for a pool of %d threads", n_threads);
    }
    if (st_pool_threads(cpu->pool) < n_threads)
        st_log(&cpu->logger, SOTTO_LOG_WARNING, "the system gave %d of %d threads", st_pool_threads(cpu->pool),
               n_threads);
    *state = cpu;
    return SOTTO_OK;
}

static void describe(void *state, char *out, size_t size)
{
    const st_cpu *cpu = state;
    const int n = st_pool_threads(cpu->pool);
    snprintf(out, size, "cpu %s, %d thread%s", st_cpu_level_name(cpu->kernels.level), n, n == 1 ? "" : "s");
}

static sotto_dtype preferred_weights(void *state)
{
    return st_cpu_level_prefers(((const st_cpu *)state)->kernels.level);
}

static sotto_dtype preferred_caches(void *state)
{
    return st_cpu_level_caches(((const st_cpu *)state)->kernels.level);
}

static bool prefers_words(void *state)
{
    return ((const st_cpu *)state)->kernels.f16_words.mr > 0;
}

static st_device_traits traits(void *state)
{
    (void)state;
    return (st_device_traits){.host_memory = true};
}

/* ---- buffers ---- */

static st_buffer_traits buffer_traits(void *state, st_buffer_usage usage)
{
    (void)state;
    (void)usage;
    return (st_buffer_traits){.alignment = 64, .max_size = SIZE_MAX / 2, .wrap_page = 64, .wrap_align = 32};
}

/* A packed matrix is marked by its type + 1 in `extra`. */
static bool packable(st_buffer_usage usage, const sotto_tensor *t, st_cpu_wtype *type)
{
    return usage == ST_BUFFER_WEIGHTS && (t->flags & ST_TENSOR_MATRIX) && st_cpu_wtype_of(t->dtype, type);
}

static size_t stored_bytes(void *state, st_buffer_usage usage, sotto_tensor *t)
{
    (void)state;
    st_cpu_wtype type;
    if (packable(usage, t, &type)) {
        const size_t bytes = st_cpu_packed_bytes(type, st_tensor_n_rows(t), t->dim[0]);
        if (bytes > 0) {
            t->extra = (void *)(uintptr_t)(type + 1);
            return bytes;
        }
    }
    return sotto_tensor_bytes(t);
}

static bool stored_as_rows(void *state, st_buffer_usage usage, const sotto_tensor *t)
{
    (void)state;
    st_cpu_wtype type;
    return !packable(usage, t, &type) || st_cpu_packed_bytes(type, st_tensor_n_rows(t), t->dim[0]) == 0;
}

bool st_cpu_packed(const sotto_tensor *t, st_cpu_wtype *type)
{
    const sotto_tensor *home = t->view_of != NULL ? t->view_of : t;
    if (home->extra == NULL)
        return false;
    *type = (st_cpu_wtype)((uintptr_t)home->extra - 1);
    return true;
}

static sotto_status buffer_alloc(void *state, st_buffer_usage usage, size_t size, st_buffer *out, sotto_error *err)
{
    (void)state;
    memset(out, 0, sizeof *out);
    void *memory = st_alloc_pages(size > 0 ? size : 1);
    if (memory == NULL)
        return st_fail_memory(err, size,
                              usage == ST_BUFFER_WEIGHTS ? "weights"
                              : usage == ST_BUFFER_CACHE ? "a cache"
                                                         : "computing");
    out->impl = &st_backend_cpu;
    out->usage = usage;
    out->size = size;
    out->host = memory;
    return SOTTO_OK;
}

static void buffer_free(st_buffer *buffer)
{
    if (buffer->host != NULL && !buffer->wrapped)
        st_free_pages(buffer->host, buffer->size > 0 ? buffer->size : 1);
    buffer->host = NULL;
}

static sotto_status wrap_host(void *state, st_buffer_usage usage, void *memory, size_t bytes, st_buffer *out,
                              sotto_error *err)
{
    (void)state;
    (void)usage;
    (void)bytes;
    (void)err;
    out->host = memory;
    return SOTTO_OK;
}

static sotto_status set_bytes(void *state, st_buffer *buffer, size_t offset, const void *data, size_t bytes,
                              sotto_error *err)
{
    (void)state;
    (void)err;
    if (bytes > 0)
        memcpy((char *)buffer->host + offset, data, bytes);
    return SOTTO_OK;
}

static sotto_status get_bytes(void *state, const st_buffer *buffer, size_t offset, void *out, size_t bytes,
                              sotto_error *err)
{
    (void)state;
    (void)err;
    if (bytes > 0)
        memcpy(out, (const char *)buffer->host + offset, bytes);
    return SOTTO_OK;
}

static sotto_status fill_zero(void *state, st_buffer *buffer, sotto_error *err)
{
    (void)state;
    (void)err;
    memset(buffer->host, 0, buffer->size);
    return SOTTO_OK;
}

/* ---- uploading: panels are shared out to the threads ---- */

typedef struct upload_job {
    st_cpu *cpu;
    uint8_t *target;
    const uint8_t *data;
    int64_t k, row, n_rows;
    sotto_dtype from, to;
    size_t from_bytes, to_bytes; /* of a row */
    bool packed;
    st_cpu_wtype type;
    char *temporary; /* for each thread one row of f32 and a panel of rows of `to`; NULL when the types are equal */
    size_t temporary_bytes;
    _Atomic bool failed;
} upload_job;

/* Small pages lie anywhere in memory: the processor does not read ahead from one to the next. */
enum { FETCH_AHEAD = 4096 };

static bool convert_row(const upload_job *j, const void *row, float *line, uint8_t *out)
{
    for (size_t i = 0; i < j->from_bytes; i += 64)
        st_prefetch((const char *)row + FETCH_AHEAD + i);
    if (j->from == SOTTO_F16)
        j->cpu->kernels.from_f16(row, line, j->k);
    else if (j->from == SOTTO_BF16)
        j->cpu->kernels.from_bf16(row, line, j->k);
    else if (!sotto_row_to_f32(j->from, row, line, j->k))
        return false;
    if (j->to == SOTTO_BF16) {
        j->cpu->kernels.to_bf16(line, (uint16_t *)(void *)out, j->k);
        return true;
    }
    if (!j->packed || j->type != ST_CPU_W_I8)
        return sotto_row_from_f32(j->to, line, out, j->k);
    const float scale = j->cpu->kernels.to_i8(line, (int8_t *)out + sizeof scale, j->k);
    memcpy(out, &scale, sizeof scale);
    return true;
}

/* A job of one step. */
typedef struct one_step {
    int64_t units;
    void (*run)(void *arg, int thread);
    void *arg;
} one_step;

static int64_t only_step(void *arg, int thread)
{
    (void)thread;
    one_step *s = arg;
    const int64_t n = s->units;
    s->units = 0;
    return n;
}

static void run_only_step(void *arg, int thread)
{
    const one_step *s = arg;
    s->run(s->arg, thread);
}

static void share(st_cpu *cpu, int64_t units, void (*run)(void *arg, int thread), void *arg)
{
    one_step s = {units, run, arg};
    st_pool_run(cpu->pool, &(st_job){.arg = &s, .next = only_step, .run = run_only_step});
}

static void upload_rows(void *arg, int thread)
{
    upload_job *j = arg;
    const int64_t first_panel = j->row / ST_CPU_PANEL;
    float *line = (float *)(void *)(j->temporary != NULL ? j->temporary + j->temporary_bytes * (size_t)thread : NULL);
    uint8_t *converted = (uint8_t *)line + (line != NULL ? (size_t)j->k * sizeof(float) : 0);
    int64_t start, n;
    while ((n = st_pool_take(j->cpu->pool, thread, 8, &start)) > 0) {
        for (int64_t p = first_panel + start; p < first_panel + start + n; p++) {
            const int64_t low = p * ST_CPU_PANEL, high = low + ST_CPU_PANEL;
            const int64_t from = low > j->row ? low : j->row;
            const int64_t to = high < j->row + j->n_rows ? high : j->row + j->n_rows;
            const uint8_t *rows = j->data + (size_t)(from - j->row) * j->from_bytes;
            if (line != NULL) {
                for (int64_t r = 0; r < to - from; r++)
                    if (!convert_row(j, rows + (size_t)r * j->from_bytes, line, converted + (size_t)r * j->to_bytes))
                        atomic_store(&j->failed, true);
                rows = converted;
            }
            if (j->packed)
                st_cpu_pack_rows(j->type, j->k, rows, from, to - from, j->target);
            else
                memcpy(j->target + (size_t)from * j->to_bytes, rows, (size_t)(to - from) * j->to_bytes);
        }
    }
}

static sotto_status upload(void *state, sotto_tensor *t, int64_t row, int64_t n_rows, sotto_dtype dtype,
                           const void *data, sotto_error *err)
{
    st_cpu *cpu = state;
    upload_job j = {.cpu = cpu,
                    .target = st_tensor_data(t),
                    .data = data,
                    .k = t->dim[0],
                    .row = row,
                    .n_rows = n_rows,
                    .from = dtype,
                    .to = t->dtype,
                    .from_bytes = sotto_dtype_row_bytes(dtype, t->dim[0]),
                    .to_bytes = sotto_dtype_row_bytes(t->dtype, t->dim[0])};
    if (n_rows <= 0 || t->dim[0] <= 0)
        return SOTTO_OK;
    j.packed = st_cpu_packed(t, &j.type);
    if (j.packed)
        j.to_bytes = st_cpu_row_bytes(j.type, j.k);
    if (dtype != t->dtype) {
        j.temporary_bytes = ((size_t)t->dim[0] * sizeof(float) + ST_CPU_PANEL * j.to_bytes + 63) & ~(size_t)63;
        j.temporary = st_calloc((size_t)st_pool_threads(cpu->pool), j.temporary_bytes);
        if (j.temporary == NULL)
            return st_fail_memory(err, j.temporary_bytes * (size_t)st_pool_threads(cpu->pool), "converting weights");
    }
    share(cpu, (row + n_rows - 1) / ST_CPU_PANEL - row / ST_CPU_PANEL + 1, upload_rows, &j);
    st_free(j.temporary);
    if (atomic_load(&j.failed))
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%s: %s cannot be stored as %s", t->name, sotto_dtype_name(dtype),
                       sotto_dtype_name(t->dtype));
    return SOTTO_OK;
}

/* ---- work on rows, whole panels at a time ---- */

typedef struct shared_rows {
    st_cpu *cpu;
    int64_t n;
    void (*fn)(void *arg, int64_t from, int64_t to);
    void *arg;
} shared_rows;

static void take_rows(void *arg, int thread)
{
    const shared_rows *s = arg;
    int64_t start, n;
    while ((n = st_pool_take(s->cpu->pool, thread, 8, &start)) > 0) {
        const int64_t to = (start + n) * ST_CPU_PANEL;
        s->fn(s->arg, start * ST_CPU_PANEL, to < s->n ? to : s->n);
    }
}

static void share_out(void *state, int64_t n, void (*fn)(void *arg, int64_t from, int64_t to), void *arg)
{
    st_cpu *cpu = state;
    shared_rows s = {cpu, n, fn, arg};
    share(cpu, (n + ST_CPU_PANEL - 1) / ST_CPU_PANEL, take_rows, &s);
}

typedef struct download_job {
    const sotto_tensor *t;
    float *out;
    bool packed;
    st_cpu_wtype type;
    _Atomic bool failed;
} download_job;

static void download_rows(void *arg, int64_t from, int64_t to)
{
    download_job *j = arg;
    const sotto_tensor *t = j->t;
    char *data = st_tensor_data(t);
    for (int64_t r = from; r < to; r++) {
        float *out = j->out + r * t->dim[0];
        if (j->packed)
            st_cpu_unpack_row(j->type, t->dim[0], (const uint8_t *)data, r, out);
        else if (!sotto_row_to_f32(t->dtype, st_cpu_row(t, data, r), out, t->dim[0]))
            atomic_store(&j->failed, true);
    }
}

static sotto_status download_f32(void *state, const sotto_tensor *t, float *out, sotto_error *err)
{
    download_job j = {.t = t, .out = out};
    if (t->dim[0] <= 0)
        return SOTTO_OK;
    j.packed = st_cpu_packed(t, &j.type);
    share_out(state, st_tensor_n_rows(t), download_rows, &j);
    if (atomic_load(&j.failed))
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%s: %s has no numbers to read", t->name, sotto_dtype_name(t->dtype));
    return SOTTO_OK;
}

const st_backend_impl st_backend_cpu = {
    .api_version = ST_BACKEND_API_VERSION,
    .name = "cpu",
    .kind = SOTTO_DEVICE_CPU,
    .device_count = device_count,
    .device_info = device_info,
    .open = open_cpu,
    .close = close_cpu,
    .describe = describe,
    .preferred_weights = preferred_weights,
    .preferred_caches = preferred_caches,
    .prefers_words = prefers_words,
    .traits = traits,
    .buffer_traits = buffer_traits,
    .stored_bytes = stored_bytes,
    .stored_as_rows = stored_as_rows,
    .wrap_host = wrap_host,
    .buffer_alloc = buffer_alloc,
    .buffer_free = buffer_free,
    .upload = upload,
    .download_f32 = download_f32,
    .set = set_bytes,
    .get = get_bytes,
    .fill_zero = fill_zero,
    .share_out = share_out,
    .supports = st_cpu_supports,
    .prepare = st_cpu_prepare,
    .release = st_cpu_release,
    .run = st_cpu_run_plan,
};
