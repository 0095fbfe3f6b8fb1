/* ref_backend.c: the oracle as a backend of its own: plain layouts, host memory, one thread. */
#include "reference/ref_backend.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/thread.h"
#include "quant/quant.h"
#include "reference/ref.h"
#include "sotto/quant.h"

static const st_ref_op *const ops[ST_OP_COUNT] = {
    [ST_OP_LINEAR] = &st_ref_linear,
    [ST_OP_MATMUL] = &st_ref_matmul,
    [ST_OP_CONV_1D] = &st_ref_conv_1d,
    [ST_OP_LAYER_NORM] = &st_ref_layer_norm,
    [ST_OP_RMS_NORM] = &st_ref_rms_norm,
    [ST_OP_SOFTMAX] = &st_ref_softmax,
    [ST_OP_ATTENTION] = &st_ref_attention,
    [ST_OP_CACHE_ATTENTION] = &st_ref_cache_attention,
    [ST_OP_GET_ROWS] = &st_ref_get_rows,
    [ST_OP_SET_ROWS] = &st_ref_set_rows,
    [ST_OP_COPY] = &st_ref_copy,
    [ST_OP_CONCAT] = &st_ref_concat,
    [ST_OP_ADD] = &st_ref_add,
    [ST_OP_MUL] = &st_ref_mul,
    [ST_OP_GLU] = &st_ref_glu,
    [ST_OP_SCALE] = &st_ref_scale,
    [ST_OP_GELU] = &st_ref_gelu,
    [ST_OP_SILU] = &st_ref_silu,
    [ST_OP_RELU] = &st_ref_relu,
    [ST_OP_SIGMOID] = &st_ref_sigmoid,
    [ST_OP_TANH] = &st_ref_tanh,
    [ST_OP_SQRT] = &st_ref_sqrt,
    [ST_OP_LOG10] = &st_ref_log10,
    [ST_OP_POWER] = &st_ref_power,
    [ST_OP_ARGMAX] = &st_ref_argmax,
    [ST_OP_TOP_K] = &st_ref_top_k,
    [ST_OP_BLOCK_SUMS] = &st_ref_block_sums,
    [ST_OP_ROPE] = &st_ref_rope,
    [ST_OP_IM2COL] = &st_ref_im2col,
    [ST_OP_CONV_2D] = &st_ref_conv_2d,
};

/* The state of one opened backend. */
typedef struct reference {
    double *scratch; /* for all plans; grows to the largest one run */
    size_t n_scratch;
    int fail[ST_REF_CALLS]; /* calls until one fails, 0 = never */
} reference;

void st_ref_inject(void *state, st_ref_call call, int n)
{
    ((reference *)state)->fail[call] = n;
}

static bool injected(reference *ref, st_ref_call call)
{
    return ref->fail[call] > 0 && --ref->fail[call] == 0;
}

bool st_ref_stop(st_ref_run *r)
{
    if (!r->stopped && r->hooks && r->hooks->abort)
        r->stopped = r->hooks->abort(r->hooks->abort_user);
    return r->stopped;
}

/* ---- device ---- */

static int device_count(void)
{
    return 1;
}

static sotto_status device_info(int index, sotto_device_info *out, sotto_error *err)
{
    (void)index;
    (void)err;
    snprintf(out->id, sizeof out->id, "reference");
    snprintf(out->name, sizeof out->name, "Scalar reference");
    out->kind = SOTTO_DEVICE_REFERENCE;
    out->wraps_host_memory = out->unified = true;
    return SOTTO_OK;
}

static sotto_status open_reference(int index, const sotto_backend_options *options, void **state, sotto_error *err)
{
    (void)index;
    (void)options;
    *state = st_calloc(1, sizeof(reference));
    return *state ? SOTTO_OK : st_fail_memory(err, sizeof(reference), "the reference backend");
}

static void close_reference(void *state)
{
    if (state)
        st_free(((reference *)state)->scratch);
    st_free(state);
}

static void describe(void *state, char *out, size_t size)
{
    (void)state;
    snprintf(out, size, "reference, 1 thread");
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
    return (st_buffer_traits){.alignment = 64, .max_size = SIZE_MAX / 2};
}

static size_t stored_bytes(void *state, st_buffer_usage usage, sotto_tensor *t)
{
    (void)state;
    (void)usage;
    const size_t scales = (size_t)st_tensor_n_rows(t) * sizeof(float);
    return st_ref_is_scaled(t) ? (sotto_tensor_bytes(t) + 3) / 4 * 4 + scales : sotto_tensor_bytes(t);
}

static sotto_status buffer_alloc(void *state, st_buffer_usage usage, size_t size, st_buffer *out, sotto_error *err)
{
    void *memory = injected(state, ST_REF_ALLOC) ? NULL : st_alloc_pages(size);
    if (!memory)
        return st_fail_memory(err, size, "a buffer");
    *out = (st_buffer){.impl = &st_backend_reference, .usage = usage, .size = size, .host = memory};
    return SOTTO_OK;
}

static void buffer_free(st_buffer *buffer)
{
    st_free_pages(buffer->host, buffer->size);
    buffer->host = NULL;
}

static sotto_status upload(void *state, sotto_tensor *t, int64_t row, int64_t n_rows, sotto_dtype dtype,
                           const void *data, sotto_error *err)
{
    const int64_t n = t->dim[0];
    const size_t from = sotto_dtype_row_bytes(dtype, n), to = sotto_dtype_row_bytes(t->dtype, n);
    char *target = st_tensor_data(t);
    if (n_rows == 0 || n == 0)
        return SOTTO_OK;
    const bool fails = injected(state, ST_REF_UPLOAD), convert = st_ref_is_scaled(t) || dtype != t->dtype;
    float *line = fails || !convert ? NULL : st_alloc((size_t)n, sizeof *line);
    if (fails || (convert && !line))
        return st_fail_memory(err, (uint64_t)n * sizeof *line, t->name);
    bool good = true;
    for (int64_t r = 0; r < n_rows && good; r++) {
        const char *src = (const char *)data + (size_t)r * from;
        char *dst = target + (size_t)(row + r) * to;
        if (st_ref_is_scaled(t)) {
            good = sotto_row_to_f32(dtype, src, line, n);
            *st_ref_row_scale(t, row + r) = st_i8_pack(line, st_ref_scaled_row(t, row + r), n);
        } else if (dtype == t->dtype)
            memcpy(dst, src, to);
        else
            good = sotto_row_to_f32(dtype, src, line, n) && sotto_row_from_f32(t->dtype, line, dst, n);
    }
    st_free(line);
    return good ? SOTTO_OK
                : st_fail(err, SOTTO_E_UNSUPPORTED, "%s: rows of %s cannot be stored as %s", t->name,
                          sotto_dtype_name(dtype), sotto_dtype_name(t->dtype));
}

static sotto_status download_f32(void *state, const sotto_tensor *t, float *out, sotto_error *err)
{
    (void)state;
    if (st_ref_is_scaled(t)) {
        for (int64_t r = 0; r < st_tensor_n_rows(t); r++)
            st_ref_weights(t, r, out + r * t->dim[0]);
        return SOTTO_OK;
    }
    if (sotto_tensor_count(t) > 0 && !sotto_row_to_f32(t->dtype, st_tensor_data(t), out, sotto_tensor_count(t)))
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%s: %s has no numbers to read", t->name, sotto_dtype_name(t->dtype));
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

/* ---- execution ---- */

static bool supports(const sotto_tensor *node)
{
    return ops[node->op] != NULL;
}

/* What is prepared is the number of doubles of scratch that the plan's hungriest node needs. */
static sotto_status prepare(void *state, const st_exec_plan *plan, void **prepared, size_t *scratch_bytes,
                            sotto_error *err)
{
    size_t *most = injected(state, ST_REF_PREPARE) ? NULL : st_calloc(1, sizeof *most);
    *prepared = most;
    if (!most)
        return st_fail_memory(err, sizeof *most, "a plan of the reference backend");
    for (int i = 0; i < plan->n_node; i++) {
        const st_ref_op *op = ops[plan->node[i]->op];
        const size_t need = op->scratch ? op->scratch(plan->node[i]) : 0;
        *most = need > *most ? need : *most;
    }
    *scratch_bytes = *most * sizeof(double);
    return SOTTO_OK;
}

static void release(void *state, void *prepared)
{
    (void)state;
    st_free(prepared);
}

static sotto_status run(void *state, const st_exec_plan *plan, void *prepared, const st_exec_hooks *hooks,
                        sotto_error *err)
{
    reference *ref = state;
    const size_t need = *(const size_t *)prepared;
    if (injected(ref, ST_REF_RUN))
        return st_fail(err, SOTTO_E_DEVICE, "the reference backend failed, as asked to");
    if (need > ref->n_scratch) {
        double *larger = st_alloc(need, sizeof *larger);
        if (!larger)
            return st_fail_memory(err, (uint64_t)need * sizeof *larger, "scratch of the reference backend");
        st_free(ref->scratch);
        ref->scratch = larger;
        ref->n_scratch = need;
    }
    st_ref_run r = {.scratch = ref->scratch, .hooks = hooks};
    for (int i = 0; i < plan->n_node; i++) {
        const double start = hooks && hooks->node_seconds ? st_time_now() : 0;
        if (!st_ref_stop(&r))
            ops[plan->node[i]->op]->run(&r, plan->node[i]);
        if (r.stopped)
            return st_fail(err, SOTTO_E_ABORTED, "stopped by the caller");
        if (hooks && hooks->node_seconds)
            hooks->node_seconds[i] = st_time_now() - start;
    }
    return SOTTO_OK;
}

const st_backend_impl st_backend_reference = {
    .api_version = ST_BACKEND_API_VERSION,
    .name = "reference",
    .kind = SOTTO_DEVICE_REFERENCE,
    .device_count = device_count,
    .device_info = device_info,
    .open = open_reference,
    .close = close_reference,
    .describe = describe,
    .traits = traits,
    .buffer_traits = buffer_traits,
    .stored_bytes = stored_bytes,
    .buffer_alloc = buffer_alloc,
    .buffer_free = buffer_free,
    .upload = upload,
    .download_f32 = download_f32,
    .set = set_bytes,
    .get = get_bytes,
    .fill_zero = fill_zero,
    .supports = supports,
    .prepare = prepare,
    .release = release,
    .run = run,
};
