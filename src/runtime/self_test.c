/* self_test.c: what devices have, asked and tried. */
#include "runtime/self_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "runtime/op_cases.h"
#include "sotto/quant.h"

enum { N_X = 64 * 8, N_ROWS = 8, MOST = 2 * N_X };

/* ---- asking ---- */

/* Stored tensors that are never filled: only shapes and types are looked at. */
typedef struct paper {
    st_buffer buffer;
    sotto_tensor tensor;
} paper;

static sotto_tensor *declare_on_paper(void *user, sotto_dtype dtype, int n_dims, const int64_t *dim, bool matrix)
{
    paper *p = user;
    if (!st_tensor_init(&p->tensor, dtype, n_dims, dim))
        return NULL;
    p->tensor.flags = ST_TENSOR_STORED | (matrix ? ST_TENSOR_MATRIX : 0u);
    p->tensor.buffer = &p->buffer;
    return &p->tensor;
}

static sotto_status ask(const st_backend_impl *impl, int index, bool *has, sotto_error *err)
{
    paper p = {0};
    const st_case_source source = {declare_on_paper, &p};
    sotto_tensor *x, *rows;
    sotto_graph *g;
    ST_TRY(sotto_graph_create("case", &g, err));
    const sotto_tensor *node = st_op_case_build(index, g, &source, &x, &rows);
    const sotto_status status = sotto_graph_finish(g, err);
    *has = status == SOTTO_OK && node && impl->supports(node);
    sotto_graph_free(g);
    return status;
}

sotto_status sotto_device_ops(int index, void (*row)(void *user, const char *op, sotto_dtype dtype, bool has),
                              void *user, sotto_error *err)
{
    int own;
    const st_backend_impl *impl = st_registry_find(index, &own);
    if (!impl || !row)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_device_ops: device %d of %d, or row is NULL", index,
                       sotto_device_count());
    for (int i = 0; i < st_op_case_count(); i++) {
        bool has;
        ST_TRY(ask(impl, i, &has, err));
        row(user, st_op_name(st_op_case_get(i).op), st_op_case_get(i).dtype, has);
    }
    return SOTTO_OK;
}

bool sotto_backend_multiplies(const sotto_backend *backend, int device, sotto_dtype dtype)
{
    const int64_t x_dim[2] = {256, 2}, w_dim[2] = {256, 32};
    if (!backend || device < 0 || device >= backend->n_device)
        return false;
    paper p = {0};
    sotto_graph *g;
    sotto_tensor *w = declare_on_paper(&p, dtype, 2, w_dim, true);
    if (!w || sotto_graph_create("case", &g, NULL) != SOTTO_OK)
        return false;
    sotto_tensor *x = sotto_graph_input(g, "x", SOTTO_F32, 2, x_dim);
    const sotto_tensor *y = sotto_linear(g, x, sotto_graph_use(g, w), NULL, SOTTO_ACT_NONE, NULL);
    const bool has = sotto_graph_finish(g, NULL) == SOTTO_OK && backend->device[device].impl->supports(y);
    sotto_graph_free(g);
    return has;
}

/* ---- trying ---- */

typedef struct trial {
    sotto_backend *backend;
    sotto_store *store;
    sotto_tensor *stored;
    sotto_error *err;
    sotto_status status; /* of declaring */
} trial;

static float wave(int64_t i)
{
    return (float)((i * 37 + i / 7 * 11) % 61) / 61.0f - 0.5f;
}

static sotto_status fill(const trial *t)
{
    static const size_t most = 192 * 64;
    const int64_t n = sotto_tensor_count(t->stored), n_rows = st_tensor_n_rows(t->stored);
    const sotto_dtype dtype = t->stored->dtype;
    float *numbers = st_alloc(2 * most, sizeof *numbers);
    if (!numbers)
        return st_fail_memory(t->err, 2 * most * sizeof *numbers, "the self-test");
    for (int64_t i = 0; i < n; i++)
        numbers[i] = wave(i + 5);
    const bool blocks = sotto_dtype_block(dtype) > 1;
    if (blocks)
        (void)sotto_row_from_f32(dtype, numbers, numbers + most, n);
    const sotto_status status = blocks
                                    ? sotto_store_upload(t->store, t->stored, 0, n_rows, dtype, numbers + most, t->err)
                                    : sotto_store_upload(t->store, t->stored, 0, n_rows, SOTTO_F32, numbers, t->err);
    st_free(numbers);
    return status;
}

static sotto_tensor *declare(void *user, sotto_dtype dtype, int n_dims, const int64_t *dim, bool matrix)
{
    trial *t = user;
    t->status = sotto_store_create(t->backend, matrix ? SOTTO_USAGE_WEIGHTS : SOTTO_USAGE_CACHE, &t->store, t->err);
    if (t->status == SOTTO_OK)
        t->stored = sotto_store_add(t->store, "stored", dtype, n_dims, dim, matrix);
    if (t->status == SOTTO_OK && !t->stored)
        t->status = sotto_store_allocate(t->store, t->err); /* tells why */
    return t->stored;
}

static sotto_status set_inputs(sotto_plan *plan, sotto_tensor *x, sotto_tensor *rows, sotto_error *err)
{
    float numbers[N_X];
    int32_t list[N_ROWS];
    for (int i = 0; i < N_X; i++)
        numbers[i] = 2 * wave(i);
    for (int i = 0; i < N_ROWS; i++)
        list[i] = i;
    ST_TRY(sotto_plan_set(plan, x, 0, numbers, sizeof numbers, err));
    return sotto_plan_set(plan, rows, 0, list, sizeof list, err);
}

/* Runs the case; *n bytes of its result go to out. */
static sotto_status try_case(sotto_backend *b, int index, char *out, size_t *n, sotto_error *err)
{
    trial t = {.backend = b, .err = err};
    const st_case_source source = {declare, &t};
    sotto_tensor *x, *rows;
    sotto_arena *arena = NULL;
    sotto_plan *plan = NULL;
    sotto_graph *g;
    ST_TRY(sotto_graph_create("case", &g, err));
    sotto_tensor *node = st_op_case_build(index, g, &source, &x, &rows);
    sotto_status status = t.status != SOTTO_OK ? t.status : node ? SOTTO_OK : SOTTO_E_MEMORY;
    const bool in_store = node && node->view_of && node->op == ST_OP_SET_ROWS;
    if (status == SOTTO_OK && !in_store)
        sotto_graph_output(g, node, "y");
    if (status == SOTTO_OK)
        status = sotto_graph_finish(g, err);
    *n = 0;
    if (status == SOTTO_OK)
        status = sotto_arena_create(b, &arena, err);
    if (status == SOTTO_OK)
        status = sotto_plan_create(b, arena, g, &plan, err);
    if (status == SOTTO_OK && t.store)
        status = sotto_store_allocate(t.store, err);
    if (status == SOTTO_OK && t.store)
        status = fill(&t);
    if (status == SOTTO_OK)
        status = set_inputs(plan, x, rows, err);
    if (status == SOTTO_OK)
        status = sotto_plan_run(plan, NULL, err);
    if (status == SOTTO_OK) {
        const sotto_tensor *result = in_store ? t.stored : node;
        *n = sotto_tensor_bytes(result);
        status = *n <= MOST * sizeof(float) ? sotto_plan_get(plan, result, 0, out, *n, err)
                                            : st_fail(err, SOTTO_E_INTERNAL, "the self-test: a result is too large");
    }
    sotto_plan_free(plan);
    sotto_arena_free(arena);
    sotto_store_free(t.store);
    sotto_graph_free(g);
    return status;
}

/* Devices may round to 16 bits on the way; what a self-test is for is far worse than that. */
static bool close_enough(const char *got, const char *want, size_t n, sotto_dtype dtype, float *scratch)
{
    const int64_t count = (int64_t)(n / sotto_dtype_bytes(dtype));
    if (dtype == SOTTO_I32)
        return memcmp(got, want, n) == 0;
    if (!sotto_row_to_f32(dtype, got, scratch, count) || !sotto_row_to_f32(dtype, want, scratch + MOST, count))
        return false;
    for (int64_t i = 0; i < count; i++)
        if (!(fabsf(scratch[i] - scratch[MOST + i]) <= 0.02f * (1 + fabsf(scratch[MOST + i]))))
            return false;
    return true;
}

static sotto_dtype result_type(st_op_case c)
{
    return c.op == ST_OP_ARGMAX ? SOTTO_I32 : c.op == ST_OP_COPY || c.op == ST_OP_SET_ROWS ? c.dtype : SOTTO_F32;
}

static sotto_status test_all(sotto_backend *device, sotto_backend *reference, const sotto_backend_options *o,
                             float *scratch, sotto_error *err)
{
    char *got = (char *)(scratch + 2 * MOST), *want = (char *)(scratch + 3 * MOST);
    for (int i = 0; i < st_op_case_count(); i++) {
        const st_op_case c = st_op_case_get(i);
        bool has;
        size_t n, n_want;
        if (o->needs && !o->needs(o->needs_user, st_op_name(c.op), c.dtype))
            continue;
        if (o->abort && o->abort(o->abort_user))
            return st_fail(err, SOTTO_E_ABORTED, "stopped by the caller");
        ST_TRY(ask(device->device[0].impl, i, &has, err));
        if (!has)
            continue;
        const sotto_status status = try_case(device, i, got, &n, err);
        if (status == SOTTO_E_UNSUPPORTED)
            continue; /* not this device of the backend's */
        if (status == SOTTO_E_ABORTED)
            return status;
        if (status != SOTTO_OK)
            return st_fail_context(err, status, "self-test: %s with %s", st_op_name(c.op), sotto_dtype_name(c.dtype));
        ST_TRY(try_case(reference, i, want, &n_want, err));
        if (n != n_want || !close_enough(got, want, n, result_type(c), scratch))
            return st_fail(err, SOTTO_E_DEVICE, "self-test: %s with %s gives wrong numbers", st_op_name(c.op),
                           sotto_dtype_name(c.dtype));
        st_log(&o->logger, SOTTO_LOG_DEBUG, "%s: tried %s with %s", device->device[0].id, st_op_name(c.op),
               sotto_dtype_name(c.dtype));
    }
    return SOTTO_OK;
}

sotto_status st_self_test(const st_runner *r, const sotto_backend_options *options, sotto_error *err)
{
    st_runner runners[2] = {*r};
    sotto_backend device = {.device = runners, .n_device = 1, .kv = -1, .host = -1};
    const sotto_backend_options o = {.device = "reference"};
    snprintf(device.description, sizeof device.description, "%s", r->id);
    if (st_runner_traits(r).host_memory)
        device.host = 0;
    sotto_backend *reference = NULL;
    float *scratch = st_calloc(4 * MOST, sizeof *scratch);
    if (!scratch)
        return st_fail_memory(err, 4 * MOST * sizeof *scratch, "the self-test");
    sotto_status status = sotto_backend_open(&o, &reference, err);
    if (status == SOTTO_OK)
        status = test_all(&device, reference, options, scratch, err);
    if (status == SOTTO_OK && runners[1].impl)
        status = st_fail(err, SOTTO_E_INTERNAL, "the self-test ran elsewhere");
    sotto_backend_free(reference);
    st_free(scratch);
    return status;
}
