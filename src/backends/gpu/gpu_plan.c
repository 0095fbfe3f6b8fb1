#include "backends/gpu/gpu_plan.h"

#include <string.h>

#include "backends/gpu/gpu_pack.h"
#include "base/alloc.h"
#include "base/status.h"
#include "base/thread.h"
#include "quant/blocks.h"

static const st_gpu_op *const ops[ST_OP_COUNT] = {
    [ST_OP_LINEAR] = &st_gpu_op_linear,
    [ST_OP_MATMUL] = &st_gpu_op_matmul,
    [ST_OP_CONV_1D] = &st_gpu_op_conv_1d,
    [ST_OP_LAYER_NORM] = &st_gpu_op_layer_norm,
    [ST_OP_RMS_NORM] = &st_gpu_op_rms_norm,
    [ST_OP_SOFTMAX] = &st_gpu_op_softmax,
    [ST_OP_ATTENTION] = &st_gpu_op_attention,
    [ST_OP_CACHE_ATTENTION] = &st_gpu_op_cache_attention,
    [ST_OP_GET_ROWS] = &st_gpu_op_get_rows,
    [ST_OP_SET_ROWS] = &st_gpu_op_set_rows,
    [ST_OP_COPY] = &st_gpu_op_copy,
    [ST_OP_CONCAT] = &st_gpu_op_concat,
    [ST_OP_ADD] = &st_gpu_op_add,
    [ST_OP_MUL] = &st_gpu_op_mul,
    [ST_OP_GLU] = &st_gpu_op_glu,
    [ST_OP_SCALE] = &st_gpu_op_scale,
    [ST_OP_GELU] = &st_gpu_op_gelu,
    [ST_OP_SILU] = &st_gpu_op_silu,
    [ST_OP_RELU] = &st_gpu_op_relu,
    [ST_OP_SIGMOID] = &st_gpu_op_sigmoid,
    [ST_OP_TANH] = &st_gpu_op_tanh,
    [ST_OP_SQRT] = &st_gpu_op_sqrt,
    [ST_OP_LOG10] = &st_gpu_op_log10,
    [ST_OP_POWER] = &st_gpu_op_power,
    [ST_OP_ARGMAX] = &st_gpu_op_argmax,
    [ST_OP_TOP_K] = &st_gpu_op_top_k,
    [ST_OP_BLOCK_SUMS] = &st_gpu_op_block_sums,
    [ST_OP_ROPE] = &st_gpu_op_rope,
    [ST_OP_IM2COL] = &st_gpu_op_im2col,
    [ST_OP_CONV_2D] = &st_gpu_op_conv_2d,
};

/* A run of more than this is cut, so that an abort is heard within 100 ms. */
#define SLICE_SECONDS 0.04
enum { FIRST_SLICES = 32, FIRST_PARTS = 16 };

typedef struct prepared {
    st_gpu_launch *list;
    int n;
    size_t scratch_bytes;
    double seconds; /* of the last whole run that was waited for; 0 = not known */
    double *each;   /* [n] of each launch when it was last cut, 0 = not known; NULL: the device does not cut */
    void *record;
    uint64_t epoch, n_scratch; /* of the addresses in the record */
    bool no_record;
} prepared;

static const sotto_tensor *home_of(const sotto_tensor *t)
{
    return t->view_of ? t->view_of : t;
}

/* Place of a node among those of the plan, which follow one another in their graph; -1 = it is none of them. */
static int place_of(const st_exec_plan *plan, const sotto_tensor *home)
{
    const int at = home->id - (plan->n_node > 0 ? plan->node[0]->id : 0);
    return at >= 0 && at < plan->n_node && plan->node[at] == home ? at : -1;
}

/* Kernels count elements in int. */
static bool fits_int(const sotto_tensor *t)
{
    int64_t last = 0;
    for (int a = 0; a < SOTTO_MAX_DIMS; a++) {
        if (t->dim[a] > INT32_MAX || t->stride[a] > (size_t)INT32_MAX * 4)
            return false;
        last += (t->dim[a] > 0 ? t->dim[a] - 1 : 0) * (int64_t)t->stride[a];
    }
    return last < (int64_t)INT32_MAX && sotto_tensor_count(t) <= INT32_MAX;
}

bool st_gpu_supports(const sotto_tensor *node)
{
    if (node->op == ST_OP_NONE)
        return true;
    const st_gpu_op *op = ops[node->op];
    if (!op || !fits_int(node))
        return false;
    for (int i = 0; i < ST_MAX_SRC; i++)
        if (node->src[i] && !fits_int(node->src[i]))
            return false;
    return op->supports(node);
}

st_gpu_operand st_gpu_operand_of(const st_gpu_builder *b, const sotto_tensor *t)
{
    const sotto_tensor *home = home_of(t);
    const int place = place_of(b->plan, home);
    const bool half = place >= 0 && b->halves[place];
    const size_t view = t->view_of ? t->view_offset : 0;
    const size_t element = sotto_dtype_block(t->dtype) > 1 ? 1 : sotto_dtype_bytes(t->dtype);
    st_gpu_operand o = {.at = {home->buffer, home->offset + (half ? view / 2 : view)},
                        .dtype = half ? SOTTO_F16 : t->dtype};
    for (int a = 0; a < SOTTO_MAX_DIMS; a++) {
        o.dim[a] = (int)t->dim[a];
        o.stride[a] = (int)(t->stride[a] / element);
    }
    return o;
}

st_gpu_arg st_gpu_scales_of(const sotto_tensor *matrix)
{
    const sotto_tensor *home = home_of(matrix);
    st_gpu_layout l;
    const bool packed = (home->flags & ST_TENSOR_MATRIX) &&
                        st_gpu_layout_of(home->dtype, home->dim[0], st_tensor_n_rows(home), &l) && l.scale_row > 0;
    return (st_gpu_arg){home->buffer, home->offset + (packed ? l.scale_offset : 0)};
}

bool st_gpu_is_q8_0_rows(const sotto_tensor *t)
{
    return t->dtype == SOTTO_Q8_0 && !(home_of(t)->flags & ST_TENSOR_MATRIX) && t->dim[0] % ST_BLOCK == 0 &&
           (t->stride[0] == sizeof(st_q8_0) || t->dim[0] <= ST_BLOCK);
}

st_gpu_arg st_gpu_scratch(st_gpu_builder *b, size_t bytes)
{
    if (bytes > b->scratch_bytes)
        b->scratch_bytes = bytes;
    b->left = NULL;
    return (st_gpu_arg){&b->gpu->scratch, 0};
}

sotto_status st_gpu_emit(st_gpu_builder *b, st_gpu_kernel kernel, uint32_t x, uint32_t y, uint32_t z,
                         const void *params, size_t param_bytes, const st_gpu_arg *args, int n_args, sotto_error *err)
{
    const st_gpu_kernel_info *info = &st_gpu_kernels[kernel];
    if (param_bytes != info->param_bytes || n_args != info->n_args || param_bytes > ST_GPU_PARAM_BYTES || y > 65535 ||
        z > 65535 || x > INT32_MAX)
        return st_fail(err, SOTTO_E_INTERNAL,
                       "kernel %s: %zu bytes of parameters and %d buffers, expected %zu and %d (grid %u x %u x %u)",
                       info->name, param_bytes, n_args, info->param_bytes, info->n_args, x, y, z);
    if (x == 0 || y == 0 || z == 0)
        return SOTTO_OK;
    if (!st_grow(&b->list, &b->cap, b->n + 1, sizeof *b->list))
        return st_fail_memory(err, (uint64_t)(b->n + 1) * sizeof *b->list, "the launches of a plan");
    st_gpu_launch *l = &b->list[b->n++];
    memset(l, 0, sizeof *l);
    l->kernel = kernel;
    l->grid[0] = x;
    l->grid[1] = y;
    l->grid[2] = z;
    l->n_param_bytes = (uint32_t)param_bytes;
    memcpy(l->params, params, param_bytes);
    l->n_args = n_args;
    memcpy(l->arg, args, (size_t)n_args * sizeof *args);
    l->node = b->node;
    if (b->gpu->abort && b->gpu->abort(b->gpu->abort_user)) /* it may have to be compiled */
        return st_fail(err, SOTTO_E_ABORTED, "stopped by the caller");
    return b->gpu->api->ready(b->gpu->device, kernel, err);
}

/* Which results of the plan are kept in halves: those that only matrix units and copies read, in nodes of f16. */
static void choose_halves(const st_gpu *gpu, const st_exec_plan *plan, bool *halves)
{
    for (int i = 0; i < plan->n_node && gpu->caps.has_mma; i++) {
        const sotto_tensor *t = plan->node[i];
        const unsigned read_outside = ST_TENSOR_OUTPUT | ST_TENSOR_SHARED | ST_TENSOR_STORED;
        halves[i] = t->op != ST_OP_NONE && ops[t->op]->half_result && t->params.compute == SOTTO_COMPUTE_F16 &&
                    !t->view_of && !(t->flags & read_outside) && t->dtype == SOTTO_F32;
    }
    for (int i = 0; i < plan->n_node && gpu->caps.has_mma; i++) {
        const sotto_tensor *t = plan->node[i];
        for (int s = 0; s < ST_MAX_SRC; s++) {
            if (!t->src[s])
                continue;
            const sotto_tensor *home = home_of(t->src[s]);
            const bool takes = ops[t->op] && (ops[t->op]->half_sources >> s & 1) &&
                               (t->op == ST_OP_COPY || t->params.compute == SOTTO_COMPUTE_F16);
            const int place = place_of(plan, home);
            if (!takes && place >= 0)
                halves[place] = false;
        }
    }
}

sotto_status st_gpu_prepare(void *state, const st_exec_plan *plan, void **out, size_t *scratch_bytes, sotto_error *err)
{
    st_gpu *gpu = state;
    *out = NULL;
    *scratch_bytes = 0;
    prepared *p = st_calloc(1, sizeof *p);
    bool *halves = st_calloc((size_t)plan->n_node + 1, sizeof *halves);
    if (!p || !halves) {
        st_free(p);
        st_free(halves);
        return st_fail_memory(err, (uint64_t)plan->n_node * sizeof *halves, "the launches of a plan");
    }
    choose_halves(gpu, plan, halves);
    st_gpu_builder b = {.gpu = gpu, .plan = plan, .halves = halves};
    sotto_status status = SOTTO_OK;
    for (int i = 0; i < plan->n_node && status == SOTTO_OK; i++) {
        const sotto_tensor *node = plan->node[i];
        b.node = i;
        if (node->op != ST_OP_NONE && sotto_tensor_count(node) > 0)
            status = ops[node->op]->emit(&b, node, err);
    }
    st_free(halves);
    p->list = b.list;
    p->n = (int)b.n;
    p->scratch_bytes = b.scratch_bytes;
    if (status == SOTTO_OK && gpu->caps.cuts && !(p->each = st_calloc((size_t)p->n + 1, sizeof *p->each)))
        status = st_fail_memory(err, (uint64_t)p->n * sizeof *p->each, "the times of launches");
    if (status != SOTTO_OK) {
        st_gpu_release(gpu, p);
        return status;
    }
    *scratch_bytes = p->scratch_bytes;
    *out = p;
    return SOTTO_OK;
}

static void forget(st_gpu *gpu, prepared *p)
{
    if (p->record)
        gpu->api->forget(gpu->device, p->record);
    p->record = NULL;
}

void st_gpu_release(void *state, void *prepared_plan)
{
    prepared *p = prepared_plan;
    if (!p)
        return;
    forget(state, p);
    st_free(p->list);
    st_free(p->each);
    st_free(p);
}

static sotto_status reserve_scratch(st_gpu *gpu, const prepared *p, sotto_error *err)
{
    if (gpu->scratch.handle && gpu->scratch.size >= p->scratch_bytes)
        return SOTTO_OK;
    ST_TRY(gpu->api->sync(gpu->device, err)); /* what is queued may still use it */
    void *larger;
    ST_TRY(gpu->api->alloc(gpu->device, p->scratch_bytes > 256 ? p->scratch_bytes : 256, &larger, err));
    if (gpu->scratch.handle)
        gpu->api->free(gpu->scratch.handle);
    gpu->scratch.handle = larger;
    gpu->scratch.size = p->scratch_bytes > 256 ? p->scratch_bytes : 256;
    gpu->n_scratch++;
    return SOTTO_OK;
}

static bool asked_to_stop(const st_exec_hooks *hooks)
{
    return hooks && hooks->abort && hooks->abort(hooks->abort_user);
}

/* Each node by itself, waited for. */
static sotto_status run_traced(st_gpu *gpu, const st_exec_plan *plan, prepared *p, const st_exec_hooks *hooks,
                               sotto_error *err)
{
    memset(hooks->node_seconds, 0, sizeof *hooks->node_seconds * (size_t)plan->n_node);
    ST_TRY(gpu->api->sync(gpu->device, err));
    for (int i = 0; i < p->n; i++) {
        const double start = st_time_now();
        ST_TRY(gpu->api->launch(gpu->device, p->list + i, 1, err));
        ST_TRY(gpu->api->sync(gpu->device, err));
        hooks->node_seconds[p->list[i].node] += st_time_now() - start;
        if (asked_to_stop(hooks))
            return st_fail(err, SOTTO_E_ABORTED, "stopped by the caller");
    }
    return SOTTO_OK;
}

/* One launch in parts along x that take about a slice each, asking before each of them whether to stop. */
static sotto_status run_cut(st_gpu *gpu, const st_gpu_launch *whole, double *seconds, const st_exec_hooks *hooks,
                            sotto_error *err)
{
    const uint32_t n = whole->grid[0];
    const double start = st_time_now();
    double step = *seconds > 0 ? n * SLICE_SECONDS / *seconds : (double)n / FIRST_PARTS;
    st_gpu_launch part = *whole;
    for (part.first = 0; part.first < n; part.first += part.grid[0]) {
        const double begin = st_time_now();
        if (asked_to_stop(hooks))
            return st_fail(err, SOTTO_E_ABORTED, "stopped by the caller");
        part.grid[0] = step < 1 ? 1 : step < n - part.first ? (uint32_t)step : n - part.first;
        ST_TRY(gpu->api->launch(gpu->device, &part, 1, err));
        ST_TRY(gpu->api->sync(gpu->device, err));
        step = part.grid[0] * SLICE_SECONDS / (st_time_now() - begin + 1e-9);
    }
    *seconds = st_time_now() - start;
    return SOTTO_OK;
}

/* Where one launch may take longer than a slice: those that do not are put together. */
static sotto_status run_parts(st_gpu *gpu, prepared *p, const st_exec_hooks *hooks, sotto_error *err)
{
    for (int i = 0, n; i < p->n; i += n) {
        double together = p->each[i];
        n = 1;
        if (p->each[i] == 0 || p->each[i] > SLICE_SECONDS) {
            ST_TRY(run_cut(gpu, &p->list[i], &p->each[i], hooks, err));
            continue;
        }
        for (; i + n < p->n && p->each[i + n] > 0 && together + p->each[i + n] <= SLICE_SECONDS; n++)
            together += p->each[i + n];
        if (asked_to_stop(hooks))
            return st_fail(err, SOTTO_E_ABORTED, "stopped by the caller");
        ST_TRY(gpu->api->launch(gpu->device, p->list + i, n, err));
        ST_TRY(gpu->api->sync(gpu->device, err));
    }
    return SOTTO_OK;
}

/* In pieces that are waited for, asking between them whether to stop. */
static sotto_status run_sliced(st_gpu *gpu, prepared *p, const st_exec_hooks *hooks, sotto_error *err)
{
    const double start = st_time_now();
    if (p->each && hooks && hooks->abort) {
        ST_TRY(run_parts(gpu, p, hooks, err));
        p->seconds = st_time_now() - start;
        return SOTTO_OK;
    }
    const double n_slices = p->seconds > 0 ? p->seconds / SLICE_SECONDS + 1 : FIRST_SLICES;
    const int step = (int)((double)p->n / n_slices) + 1;
    for (int i = 0; i < p->n; i += step) {
        if (i > 0 && asked_to_stop(hooks))
            return st_fail(err, SOTTO_E_ABORTED, "stopped by the caller");
        ST_TRY(gpu->api->launch(gpu->device, p->list + i, p->n - i < step ? p->n - i : step, err));
        ST_TRY(gpu->api->sync(gpu->device, err));
    }
    p->seconds = st_time_now() - start;
    return SOTTO_OK;
}

sotto_status st_gpu_run(void *state, const st_exec_plan *plan, void *prepared_plan, const st_exec_hooks *hooks,
                        sotto_error *err)
{
    st_gpu *gpu = state;
    prepared *p = prepared_plan;
    if (p->n == 0)
        return SOTTO_OK;
    ST_TRY(reserve_scratch(gpu, p, err));
    if (hooks && hooks->node_seconds)
        return run_traced(gpu, plan, p, hooks, err);
    if (p->seconds == 0 || (p->seconds > SLICE_SECONDS && hooks && hooks->abort))
        return run_sliced(gpu, p, hooks, err);
    if (!gpu->api->record || p->no_record)
        return gpu->api->launch(gpu->device, p->list, p->n, err);
    if (p->record && (p->epoch != plan->epoch || p->n_scratch != gpu->n_scratch))
        forget(gpu, p);
    if (!p->record) {
        const sotto_status status = gpu->api->record(gpu->device, p->list, p->n, &p->record, err);
        if (status == SOTTO_E_UNSUPPORTED) {
            p->no_record = true;
            return gpu->api->launch(gpu->device, p->list, p->n, err);
        }
        ST_TRY(status);
        p->epoch = plan->epoch;
        p->n_scratch = gpu->n_scratch;
    }
    return gpu->api->replay(gpu->device, p->record, err);
}
