/* model.c: from a file of tensors to weights on a device. Sizes follow from shapes; each tensor must fit those before it. */
#include "models/silero/model_impl.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "models/common/conv.h"

enum { KERNEL = 3, MAX_CHANNELS = 4096 };

typedef struct loader {
    const sotto_model_file *file;
    sotto_vad_model *m;
    float *scratch;
} loader;

/* ---- finding ---- */

static sotto_status find(const loader *l, const char *name, int n_dims, const int64_t *dim, sotto_model_tensor *t,
                         sotto_error *err)
{
    ST_TRY(sotto_model_tensor_need(l->file, name, t, err));
    if (t->n_dims != n_dims)
        return st_fail(err, SOTTO_E_FORMAT, "%s: %d dimensions, expected %d", name, t->n_dims, n_dims);
    for (int a = 0; a < n_dims; a++)
        if (dim[a] > 0 ? t->dim[a] != dim[a] : t->dim[a] < 1 || t->dim[a] > MAX_CHANNELS)
            return dim[a] > 0 ? st_fail(err, SOTTO_E_FORMAT, "%s: dimension %d is %lld, expected %lld", name, a,
                                        (long long)t->dim[a], (long long)dim[a])
                              : st_fail(err, SOTTO_E_FORMAT, "%s: dimension %d is %lld, expected 1 to %d", name, a,
                                        (long long)t->dim[a], (int)MAX_CHANNELS);
    return SOTTO_OK;
}

static sotto_tensor *declare(const loader *l, const char *name, int64_t rows, int64_t n, bool matrix)
{
    return sotto_store_add(l->m->store, name, SOTTO_F32, matrix ? 2 : 1, (const int64_t[]){n, rows}, matrix);
}

static int64_t largest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Checks every tensor, declares the weights and tells the floats of the largest. */
static sotto_status declare_all(loader *l, int64_t *floats, sotto_error *err)
{
    sotto_vad_model *m = l->m;
    sotto_model_tensor t;
    ST_TRY(find(l, "stft_conv.weight", 3, (const int64_t[]){ST_VAD_FFT, 1, 2 * ST_VAD_BINS}, &t, err));
    m->stft = declare(l, "stft", 2 * ST_VAD_BINS, ST_VAD_FFT, true);
    *floats = 2 * ST_VAD_BINS * ST_VAD_FFT;
    int64_t c = ST_VAD_BINS;
    for (int i = 0; i < ST_VAD_CONVS; i++) {
        char name[32];
        snprintf(name, sizeof name, "conv%d.weight", i + 1);
        ST_TRY(find(l, name, 3, (const int64_t[]){KERNEL, c, 0}, &t, err));
        m->conv_w[i] = declare(l, name, t.dim[2], KERNEL * c, true);
        *floats = largest(*floats, t.dim[2] * KERNEL * c);
        c = t.dim[2];
        m->c_out[i] = (int)c;
        snprintf(name, sizeof name, "conv%d.bias", i + 1);
        ST_TRY(find(l, name, 1, &c, &t, err));
        m->conv_b[i] = declare(l, name, 1, c, false);
    }
    ST_TRY(find(l, "final_conv.weight", 3, (const int64_t[]){1, 0, 1}, &t, err));
    const int64_t n = t.dim[1], gates = 4 * n;
    m->n_state = (int)n;
    ST_TRY(find(l, "final_conv.bias", 1, (const int64_t[]){1}, &t, err));
    ST_TRY(find(l, "lstm_cell.weight_ih", 2, (const int64_t[]){c, gates}, &t, err));
    ST_TRY(find(l, "lstm_cell.weight_hh", 2, (const int64_t[]){n, gates}, &t, err));
    ST_TRY(find(l, "lstm_cell.bias_ih", 1, &gates, &t, err));
    ST_TRY(find(l, "lstm_cell.bias_hh", 1, &gates, &t, err));
    m->input_w = declare(l, "input", gates, c, true);
    m->gate_b = declare(l, "gates", 1, gates, false);
    m->state_w = declare(l, "state", gates, n, true);
    m->out_w = declare(l, "out", 1, n, true);
    m->out_b = declare(l, "out_bias", 1, 1, false);
    *floats = largest(*floats, gates * largest(n, c));
    return SOTTO_OK;
}

/* ---- uploading ---- */

/* All of a tensor, which declare_all() has checked, into l->scratch; rows: its dimensions above the innermost. */
static sotto_status read(const loader *l, const char *name, int64_t rows, float *out, sotto_error *err)
{
    sotto_model_tensor t;
    if (sotto_model_tensor_find(l->file, name, &t) != SOTTO_OK)
        return st_fail(err, SOTTO_E_FORMAT, "%s: missing", name);
    return sotto_model_tensor_f32(&t, 0, rows, out, err);
}

static sotto_status put(const loader *l, sotto_tensor *to, int64_t rows, const float *values, sotto_error *err)
{
    return sotto_store_upload(l->m->store, to, 0, rows, SOTTO_F32, values, err);
}

static sotto_status plain(const loader *l, const char *name, sotto_tensor *to, int64_t rows, sotto_error *err)
{
    ST_TRY(read(l, name, rows, l->scratch, err));
    return put(l, to, rows, l->scratch, err);
}

/* [c_out, c_in, 3]; kept as [c_out, 3, c_in] */
static sotto_status conv(const loader *l, int i, int64_t c_in, sotto_error *err)
{
    char name[32];
    snprintf(name, sizeof name, "conv%d.weight", i + 1);
    const int64_t c_out = l->m->c_out[i], n = KERNEL * c_in;
    ST_TRY(read(l, name, c_out * c_in, l->scratch, err));
    st_conv_kernel_outer(l->scratch, c_out, c_in, KERNEL, l->scratch + c_out * n);
    ST_TRY(put(l, l->m->conv_w[i], c_out, l->scratch, err));
    snprintf(name, sizeof name, "conv%d.bias", i + 1);
    return plain(l, name, l->m->conv_b[i], 1, err);
}

/* The file's order of gates is input, forget, cell, output: the last two change places, so that those that go through a
 * sigmoid lie side by side. */
static void order_gates(float *rows, int64_t n_state, int64_t width)
{
    float *cell = rows + 2 * n_state * width, *out = rows + 3 * n_state * width;
    for (int64_t i = 0; i < n_state * width; i++) {
        const float t = cell[i];
        cell[i] = out[i];
        out[i] = t;
    }
}

static sotto_status gate_matrix(const loader *l, const char *name, sotto_tensor *to, int64_t width, sotto_error *err)
{
    const int64_t n = l->m->n_state;
    ST_TRY(read(l, name, 4 * n, l->scratch, err));
    order_gates(l->scratch, n, width);
    return put(l, to, 4 * n, l->scratch, err);
}

static sotto_status gate_bias(const loader *l, sotto_error *err)
{
    const int64_t n = l->m->n_state;
    float *a = l->scratch, *b = l->scratch + 4 * n;
    ST_TRY(read(l, "lstm_cell.bias_ih", 1, a, err));
    ST_TRY(read(l, "lstm_cell.bias_hh", 1, b, err));
    for (int64_t i = 0; i < 4 * n; i++)
        a[i] += b[i];
    order_gates(a, n, 1);
    return put(l, l->m->gate_b, 1, a, err);
}

static sotto_status upload_all(const loader *l, sotto_error *err)
{
    const sotto_vad_model *m = l->m;
    ST_TRY(plain(l, "stft_conv.weight", m->stft, 2 * ST_VAD_BINS, err));
    for (int i = 0; i < ST_VAD_CONVS; i++)
        ST_TRY(conv(l, i, i == 0 ? ST_VAD_BINS : m->c_out[i - 1], err));
    ST_TRY(gate_matrix(l, "lstm_cell.weight_ih", m->input_w, m->c_out[ST_VAD_CONVS - 1], err));
    ST_TRY(gate_matrix(l, "lstm_cell.weight_hh", m->state_w, m->n_state, err));
    ST_TRY(gate_bias(l, err));
    /* [1, n_state, 1]: n_state rows of one number */
    ST_TRY(read(l, "final_conv.weight", m->n_state, l->scratch, err));
    ST_TRY(put(l, m->out_w, 1, l->scratch, err));
    return plain(l, "final_conv.bias", m->out_b, 1, err);
}

/* ---- opening ---- */

static void keep_options(sotto_vad_model *m, const sotto_backend_options *backend)
{
    if (backend)
        m->backend_options = *backend;
    sotto_backend_options *o = &m->backend_options;
    snprintf(m->device, sizeof m->device, "%s",
             o->device ? o->device : "cpu"); /* asking for others opens their drivers */
    o->device = m->device;
    if (o->cpu_level) {
        snprintf(m->cpu_level, sizeof m->cpu_level, "%s", o->cpu_level);
        o->cpu_level = m->cpu_level;
    }
    if (o->n_threads == 0)
        o->n_threads = 1;
}

static sotto_status load(loader *l, const sotto_backend_options *backend, sotto_error *err)
{
    sotto_vad_model *m = l->m;
    keep_options(m, backend);
    sotto_status status = sotto_backend_open(&m->backend_options, &m->backend, err);
    if (status == SOTTO_E_NOT_FOUND && !(backend && backend->device)) { /* a library without the CPU backend */
        m->backend_options.device = NULL;
        status = sotto_backend_open(&m->backend_options, &m->backend, err);
    }
    ST_TRY(status);
    ST_TRY(sotto_store_create(m->backend, SOTTO_USAGE_WEIGHTS, &m->store, err));
    int64_t floats = 0;
    ST_TRY(declare_all(l, &floats, err));
    ST_TRY(sotto_store_allocate(m->store, err));
    l->scratch = st_alloc(2 * (size_t)floats, sizeof *l->scratch);
    if (!l->scratch)
        return st_fail_memory(err, 2 * (uint64_t)floats * sizeof *l->scratch, "loading weights");
    return upload_all(l, err);
}

sotto_status st_vad_model_load(const sotto_model_file *file, const sotto_backend_options *backend,
                               sotto_vad_model **out, sotto_error *err)
{
    *out = NULL;
    loader l = {.file = file, .m = st_calloc(1, sizeof *l.m)};
    if (!l.m)
        return st_fail_memory(err, sizeof *l.m, "a model");
    const sotto_status status = load(&l, backend, err);
    st_free(l.scratch);
    if (status != SOTTO_OK) {
        sotto_vad_model_free(l.m);
        return status;
    }
    *out = l.m;
    return SOTTO_OK;
}

void sotto_vad_model_free(sotto_vad_model *model)
{
    if (!model)
        return;
    sotto_store_free(model->store);
    sotto_backend_free(model->backend);
    st_free(model);
}
