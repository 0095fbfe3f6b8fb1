#include "models/common/weights.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "formats/model_file_impl.h"
#include "models/common/conv.h"
#include "quant/quant.h"
#include "sotto/quant.h"

enum { SCRATCH_ROWS = 16 };

void st_weights_free(st_weights *l)
{
    st_free(l->list);
    l->list = NULL;
    l->count = l->cap = 0;
}

st_weight *st_weights_add(st_weights *l, sotto_tensor **out, st_weight_kind kind)
{
    if (l->no_memory || !st_grow(&l->list, &l->cap, l->count + 1, sizeof *l->list)) {
        l->no_memory = true;
        return NULL;
    }
    st_weight *w = &l->list[l->count++];
    memset(w, 0, sizeof *w);
    w->out = out;
    w->kind = kind;
    w->device = l->device;
    return w;
}

/* Names are far shorter than ST_WEIGHT_NAME; one that is not becomes empty, and then a missing tensor. */
void st_weight_part(st_weight *w, int64_t rows, int64_t width, const char *prefix, const char *name)
{
    if (!w || w->n_parts == ST_WEIGHT_PARTS)
        return;
    const int i = w->n_parts++;
    const int n = snprintf(w->part[i], ST_WEIGHT_NAME, "%s%s", prefix, name);
    if (n < 0 || n >= ST_WEIGHT_NAME)
        w->part[i][0] = 0;
    w->rows[i] = rows;
    w->width[i] = width;
}

void st_weights_add_one(st_weights *l, sotto_tensor **out, st_weight_kind kind, int64_t rows, int64_t width,
                        const char *prefix, const char *name)
{
    st_weight_part(st_weights_add(l, out, kind), rows, width, prefix, name);
}

sotto_status st_weights_check(const st_weights *l, sotto_error *err)
{
    return l->no_memory ? st_fail_memory(err, (uint64_t)l->cap * sizeof *l->list, "the list of weights") : SOTTO_OK;
}

static bool is_whole(const st_weight *w)
{
    return w->kind == ST_WEIGHT_VECTOR || w->kind == ST_WEIGHT_TABLE;
}

sotto_status st_weight_find(const st_weights *l, const st_weight *w, int part, sotto_model_tensor *t, sotto_error *err)
{
    const char *name = w->part[part];
    ST_TRY(sotto_model_tensor_need(l->file, name, t, err));
    int64_t want[SOTTO_MAX_DIMS] = {w->width[part], w->rows[part], 1, 1};
    if (w->kind == ST_WEIGHT_CONV) {
        want[0] = 3;
        want[1] = w->width[part] / 3;
        want[2] = w->rows[part];
    }
    for (int a = 0; a < SOTTO_MAX_DIMS; a++) {
        const int64_t have = a < t->n_dims ? t->dim[a] : 1;
        if (have != want[a])
            return st_fail(err, SOTTO_E_FORMAT, "%s: dimension %d is %lld, expected %lld", name, a, (long long)have,
                           (long long)want[a]);
    }
    return SOTTO_OK;
}

sotto_status st_weight_shape(const st_weights *l, const st_weight *w, sotto_dtype *dtype, int64_t dim[2],
                             sotto_error *err)
{
    *dtype = SOTTO_F32;
    dim[0] = is_whole(w) ? 0 : w->width[0];
    dim[1] = 0;
    for (int i = 0; i < w->n_parts; i++) {
        sotto_model_tensor t;
        if (w->kind == ST_WEIGHT_VECTOR) {
            dim[0] += w->width[i];
            dim[1] = 1;
        } else {
            dim[0] = w->width[i];
            dim[1] += w->rows[i];
        }
        if ((w->missing_is_zero >> i & 1) && sotto_model_tensor_find(l->file, w->part[i], &t) == SOTTO_E_NOT_FOUND)
            continue;
        ST_TRY(st_weight_find(l, w, i, &t, err));
        if (is_whole(w))
            continue;
        const sotto_dtype d = l->resident(l->user, w, t.dtype);
        if (i == 0)
            *dtype = d;
        else if (*dtype != d)
            *dtype = SOTTO_F32; /* parts of different types: the one that holds any of them exactly */
    }
    return SOTTO_OK;
}

/* Where the file has all rows of a matrix as they are to be kept, its parts one behind the other; NULL: nowhere. */
static const void *rows_in_file(const st_weights *l, const st_weight *w, sotto_dtype dtype, size_t *bytes)
{
    const uint8_t *begin = NULL;
    *bytes = 0;
    for (int i = 0; i < w->n_parts && w->kind == ST_WEIGHT_MATRIX; i++) {
        sotto_model_tensor t;
        if (sotto_model_tensor_find(l->file, w->part[i], &t) != SOTTO_OK || t.dtype != dtype || t.row_scale ||
            (i > 0 && (const uint8_t *)t.data != begin + *bytes))
            return NULL;
        begin = i == 0 ? t.data : begin;
        *bytes += t.bytes;
    }
    return begin;
}

sotto_status st_weight_declare(st_weights *l, const st_weight *w, sotto_error *err)
{
    sotto_dtype dtype;
    int64_t dim[2];
    ST_TRY(st_weight_shape(l, w, &dtype, dim, err));
    size_t bytes;
    sotto_host_rows at = {.rows = rows_in_file(l, w, dtype, &bytes)};
    if (at.rows)
        at.bytes = st_model_pages(l->file, at.rows, bytes, &at.memory);
    sotto_store_set_device(l->store, w->device);
    *w->out = sotto_store_add_over(l->store, w->part[0], dtype, w->kind == ST_WEIGHT_VECTOR ? 1 : 2, dim,
                                   !is_whole(w) && !w->rows_only, at.bytes > 0 ? &at : NULL);
    return SOTTO_OK;
}

sotto_model_file *st_weights_retain_file(const st_weights *l)
{
    if (sotto_store_in_place_bytes(l->store, -1) == 0)
        return NULL;
    sotto_model_file *const file = st_model_retain(l->file);
    for (int64_t i = 0; i < l->count; i++) {
        size_t bytes;
        sotto_tensor *const t = *l->list[i].out;
        const void *const rows = rows_in_file(l, &l->list[i], sotto_tensor_dtype(t), &bytes);
        if (rows && sotto_store_in_place(l->store, t))
            st_model_keep(file, rows, bytes);
    }
    return file;
}

int64_t st_weights_scratch(const st_weights *l)
{
    int64_t most = 1;
    for (int64_t i = 0; i < l->count; i++) {
        int64_t whole = 0;
        for (int p = 0; p < l->list[i].n_parts; p++) {
            const int64_t rows = is_whole(&l->list[i]) ? l->list[i].rows[p] : SCRATCH_ROWS;
            whole += rows * l->list[i].width[p];
        }
        most = whole > most ? whole : most;
    }
    return most;
}

/* i8 with row scales as q8_0: the integers as they are, the row's scale (rounded to f16) in each block. */
static void i8_rows_to_q8_0(const sotto_model_tensor *t, int64_t row, int64_t n_rows, uint8_t *out)
{
    const int64_t n = t->dim[0];
    for (int64_t r = row; r < row + n_rows; r++) {
        const int8_t *q = (const int8_t *)t->data + r * n;
        uint16_t scale;
        (void)sotto_row_from_f32(SOTTO_F16, &t->row_scale[r], &scale, 1);
        for (int64_t b = 0; b < n / 32; b++, out += 34) {
            memcpy(out, &scale, 2);
            memcpy(out + 2, q + b * 32, 32);
        }
    }
}

static sotto_status go_on(const st_weights *l, sotto_error *err)
{
    return sotto_backend_aborted(l->backend) ? st_fail(err, SOTTO_E_ABORTED, "stopped by the caller") : SOTTO_OK;
}

/* Straight from the mapped file, whose pages are let go piece by piece: a large embedding is never there twice. */
static sotto_status upload_from_file(st_weights *l, const sotto_model_tensor *t, sotto_tensor *to, int64_t row0,
                                     int64_t n_rows, sotto_error *err)
{
    enum { PIECE = 4 << 20, PANEL = 128 };
    const size_t row_bytes = sotto_dtype_row_bytes(t->dtype, t->dim[0]);
    const int64_t step = ((int64_t)(PIECE / row_bytes) / PANEL + 1) * PANEL;
    sotto_model_tensor done = *t;
    for (int64_t r = 0; r < n_rows; r += step) {
        const int64_t n = n_rows - r < step ? n_rows - r : step;
        const uint8_t *data = (const uint8_t *)t->data + (size_t)r * row_bytes;
        ST_TRY(go_on(l, err));
        ST_TRY(sotto_store_upload(l->store, to, row0 + r, n, t->dtype, data, err));
        done.bytes = (size_t)(r + n) * row_bytes;
        sotto_model_tensor_release(l->file, &done);
    }
    return SOTTO_OK;
}

/* Rows go through a bounded scratch when the device cannot convert them. */
static sotto_status upload_matrix_part(st_weights *l, const st_weight *w, int i, int64_t row0, float *scratch,
                                       int64_t scratch_floats, sotto_error *err)
{
    sotto_model_tensor t;
    ST_TRY(go_on(l, err));
    ST_TRY(st_weight_find(l, w, i, &t, err));
    sotto_tensor *to = *w->out;
    const sotto_dtype kept = sotto_tensor_dtype(to);
    const bool device_converts = t.dtype == kept || (kept == SOTTO_I8 && sotto_dtype_can_pack(t.dtype)) ||
                                 (st_is_plain_float(t.dtype) && st_is_plain_float(kept));
    if (w->kind == ST_WEIGHT_MATRIX && device_converts && t.dtype != SOTTO_I8)
        return upload_from_file(l, &t, to, row0, w->rows[i], err);
    const int64_t n = w->width[i];
    if (w->kind == ST_WEIGHT_CONV) {
        t.dim[0] = n;
        t.dim[1] = w->rows[i];
        t.dim[2] = 1;
        t.n_dims = 2;
    }
    const int64_t step = scratch_floats / n - 1;
    for (int64_t r = 0; r < w->rows[i]; r += step) {
        const int64_t n_rows = w->rows[i] - r < step ? w->rows[i] - r : step;
        if (t.dtype == SOTTO_I8 && sotto_tensor_dtype(to) == SOTTO_Q8_0) {
            i8_rows_to_q8_0(&t, r, n_rows, (uint8_t *)scratch);
            ST_TRY(sotto_store_upload(l->store, to, row0 + r, n_rows, SOTTO_Q8_0, scratch, err));
            continue;
        }
        ST_TRY(sotto_model_tensor_f32(&t, r, n_rows, scratch, err));
        if (w->kind == ST_WEIGHT_CONV)
            st_conv_kernel_outer(scratch, n_rows, n / 3, 3, scratch + n_rows * n);
        ST_TRY(sotto_store_upload(l->store, to, row0 + r, n_rows, SOTTO_F32, scratch, err));
    }
    return SOTTO_OK;
}

sotto_status st_weight_upload(st_weights *l, const st_weight *w, float *scratch, int64_t scratch_floats,
                              sotto_error *err)
{
    sotto_model_tensor t;
    int64_t row = 0;
    if (sotto_store_in_place(l->store, *w->out)) { /* but for pieces on devices that cannot */
        size_t bytes;
        const sotto_dtype dtype = sotto_tensor_dtype(*w->out);
        const void *const rows = rows_in_file(l, w, dtype, &bytes);
        return sotto_store_upload(l->store, *w->out, 0, sotto_tensor_dim(*w->out, 1), dtype, rows, err);
    }
    for (int i = 0; i < w->n_parts && !is_whole(w); i++) {
        ST_TRY(upload_matrix_part(l, w, i, row, scratch, scratch_floats, err));
        row += w->rows[i];
        if (sotto_model_tensor_find(l->file, w->part[i], &t) == SOTTO_OK)
            sotto_model_tensor_release(l->file, &t);
    }
    if (!is_whole(w))
        return SOTTO_OK;
    int64_t at = 0;
    for (int i = 0; i < w->n_parts; i++) {
        const int64_t count = w->rows[i] * w->width[i];
        memset(scratch + at, 0, (size_t)count * sizeof *scratch);
        if (sotto_model_tensor_find(l->file, w->part[i], &t) == SOTTO_OK)
            ST_TRY(sotto_model_tensor_f32(&t, 0, w->rows[i], scratch + at, err));
        at += count;
    }
    const int64_t rows = w->kind == ST_WEIGHT_VECTOR ? 1 : w->rows[0];
    return sotto_store_upload(l->store, *w->out, 0, rows, SOTTO_F32, scratch, err);
}

sotto_status st_load_what_fits(sotto_backend *backend, int gpu_layers, int n_layers, const sotto_logger *logger,
                               sotto_store **store, st_load_step load, st_load_step try, void *user, sotto_error *err)
{
    int layers = gpu_layers == SOTTO_LAYERS_ALL || gpu_layers > n_layers ? n_layers : gpu_layers;
    for (;;) {
        const bool may = sotto_backend_is_auto(backend) && sotto_backend_device_count(backend) > 1 && layers >= 0;
        sotto_status status = load(user, err);
        if (status == SOTTO_OK && may)
            status = try(user, err);
        if (status != SOTTO_E_MEMORY || !may)
            return status;
        layers = layers > 1 ? layers * 3 / 4 : SOTTO_LAYERS_NONE;
        if (layers > 0)
            st_log(logger, SOTTO_LOG_WARNING, "%s: trying %d of %d layers on the device", err ? err->text : "no memory",
                   layers, n_layers);
        else
            st_log(logger, SOTTO_LOG_WARNING, "%s: computing on the CPU", err ? err->text : "no memory");
        sotto_store_free(*store);
        *store = NULL;
        sotto_backend_set_layers(backend, layers);
    }
}
