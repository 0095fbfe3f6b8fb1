/* cpu_ops_move.c: operations that move rows: get_rows, set_rows, copy with conversion, concat. */
#include <string.h>

#include "backends/cpu/cpu_exec.h"
#include "backends/cpu/cpu_pack.h"
#include "base/half.h"
#include "sotto/quant.h"

enum { MOVE_UNIT_ELEMENTS = 8192 };

static int64_t rows_of(int64_t width)
{
    return width > 0 && width < MOVE_UNIT_ELEMENTS ? MOVE_UNIT_ELEMENTS / width : 1;
}

static bool is_plain(sotto_dtype t)
{
    return t == SOTTO_F32 || t == SOTTO_F16 || t == SOTTO_BF16 || t == SOTTO_I32;
}

static float load(sotto_dtype t, const char *p)
{
    if (t == SOTTO_F32) {
        float x;
        memcpy(&x, p, 4);
        return x;
    }
    if (t == SOTTO_I32) {
        int32_t i;
        memcpy(&i, p, 4);
        return (float)i;
    }
    uint16_t h;
    memcpy(&h, p, 2);
    return t == SOTTO_F16 ? st_f16_to_f32(h) : st_bf16_to_f32(h);
}

/* Towards zero for integers; out of range and NaN give the nearest end and 0. */
static int32_t to_i32(float x)
{
    return x >= 2147483648.0f ? INT32_MAX : x <= -2147483648.0f ? INT32_MIN : x == x ? (int32_t)x : 0;
}

static void store(sotto_dtype t, char *p, float x)
{
    if (t == SOTTO_F32) {
        memcpy(p, &x, 4);
    } else if (t == SOTTO_I32) {
        const int32_t i = to_i32(x);
        memcpy(p, &i, 4);
    } else {
        const uint16_t h = t == SOTTO_F16 ? st_f32_to_f16(x) : st_f32_to_bf16(x);
        memcpy(p, &h, 2);
    }
}

/* n elements with conversion; steps in bytes. */
static void move(const st_cpu_kernels *k, sotto_dtype from, const char *x, size_t x_step, sotto_dtype to, char *y,
                 size_t y_step, int64_t n)
{
    const size_t from_bytes = sotto_dtype_bytes(from), to_bytes = sotto_dtype_bytes(to);
    if (x_step == from_bytes && y_step == to_bytes) {
        if (from == to) {
            memmove(y, x, (size_t)n * from_bytes);
            return;
        }
        if (from == SOTTO_F32 && to == SOTTO_F16) {
            k->to_f16((const float *)(const void *)x, (uint16_t *)(void *)y, n);
            return;
        }
        if (from == SOTTO_F32 && to == SOTTO_BF16) {
            k->to_bf16((const float *)(const void *)x, (uint16_t *)(void *)y, n);
            return;
        }
        if (to == SOTTO_F32 && from == SOTTO_F16) {
            k->from_f16((const uint16_t *)(const void *)x, (float *)(void *)y, n);
            return;
        }
        if (to == SOTTO_F32 && from == SOTTO_BF16) {
            k->from_bf16((const uint16_t *)(const void *)x, (float *)(void *)y, n);
            return;
        }
    }
    if (from == to) {
        for (int64_t i = 0; i < n; i++, x += x_step, y += y_step)
            memcpy(y, x, from_bytes);
        return;
    }
    for (int64_t i = 0; i < n; i++, x += x_step, y += y_step)
        store(to, y, load(from, x));
}

/* ---- get_rows, set_rows ---- */

static bool supports_get_rows(const sotto_tensor *node)
{
    const sotto_tensor *table = node->src[0], *rows = node->src[1];
    st_cpu_wtype type;
    if (node->dtype != SOTTO_F32 || !st_tensor_is_contiguous(node) || rows->dtype != SOTTO_I32 ||
        !st_tensor_is_contiguous(rows) || table->dim[2] != 1 || table->dim[3] != 1)
        return false;
    if (table->flags & ST_TENSOR_MATRIX)
        return st_cpu_wtype_of(table->dtype, &type) && table->view_of == NULL;
    return table->stride[0] == sotto_dtype_bytes(table->dtype);
}

static void need_get_rows(const st_cpu_kernels *k, const sotto_tensor *node, st_cpu_need *need)
{
    (void)k;
    need->n_phase = 1;
    need->units[0] = node->dim[0] > 0 ? sotto_tensor_count(node->src[1]) : 0;
}

static void run_get_rows(st_cpu_run *r, const sotto_tensor *node, int phase)
{
    (void)phase;
    const sotto_tensor *table = node->src[0];
    const int32_t *rows = st_tensor_data(node->src[1]);
    const char *data = st_tensor_data(table);
    st_cpu_wtype type;
    const bool packed = st_cpu_packed(table, &type);
    const int64_t n = node->dim[0];
    int64_t start, count;
    while ((count = st_cpu_take(r, rows_of(n), &start)) > 0) {
        for (int64_t i = start; i < start + count; i++) {
            float *y = (float *)st_tensor_data(node) + i * n;
            const int64_t row = rows[i];
            if (row < 0 || row >= table->dim[1])
                memset(y, 0, (size_t)n * sizeof *y);
            else if (packed)
                st_cpu_unpack_row(type, n, (const uint8_t *)data, row, y);
            else
                (void)sotto_row_to_f32(table->dtype, data + (size_t)row * table->stride[1], y, n);
        }
    }
}

static bool supports_set_rows(const sotto_tensor *node)
{
    const sotto_tensor *table = node->src[0], *rows = node->src[1], *x = node->src[2];
    return ((is_plain(table->dtype) && table->dtype != SOTTO_I32) || table->dtype == SOTTO_Q8_0) &&
           !(table->flags & ST_TENSOR_MATRIX) && table->dim[2] == 1 && table->dim[3] == 1 && rows->dtype == SOTTO_I32 &&
           st_tensor_is_contiguous(rows) && st_cpu_f32_rows(x);
}

enum { SET_COLUMNS = 64 }; /* whole blocks */

/* Units are columns, so that of a row that is named twice the last one stays, as on one thread. */
static void need_set_rows(const st_cpu_kernels *k, const sotto_tensor *node, st_cpu_need *need)
{
    (void)k;
    const int64_t n = sotto_tensor_count(node->src[2]);
    need->n_phase = 1;
    need->units[0] = n <= MOVE_UNIT_ELEMENTS ? 1 : (node->src[2]->dim[0] + SET_COLUMNS - 1) / SET_COLUMNS;
}

/* Columns [first, first + n) of a row of the table. */
static void set_row(const st_cpu_kernels *k, const sotto_tensor *table, const char *x, char *row, int64_t first,
                    int64_t n)
{
    const float *from = (const float *)(const void *)x + first;
    char *to = row + first / sotto_dtype_block(table->dtype) * (int64_t)table->stride[0];
    if (table->dtype == SOTTO_Q8_0)
        k->to_q8_0(from, to, n);
    else
        move(k, SOTTO_F32, (const char *)from, sizeof *from, table->dtype, to, table->stride[0], n);
}

static void run_set_rows(st_cpu_run *r, const sotto_tensor *node, int phase)
{
    (void)phase;
    const sotto_tensor *table = node->src[0], *x = node->src[2];
    const int32_t *rows = st_tensor_data(node->src[1]);
    const int64_t whole = table->dim[0], n = sotto_tensor_count(x) <= MOVE_UNIT_ELEMENTS ? whole : SET_COLUMNS;
    char *data = st_tensor_data(table);
    int64_t unit;
    while (st_cpu_take(r, 1, &unit) > 0) {
        const int64_t first = unit * n, left = whole - first;
        for (int64_t i = 0; i < x->dim[1]; i++)
            if (rows[i] >= 0 && rows[i] < table->dim[1])
                set_row(r->k, table, st_cpu_row(x, st_tensor_data(x), i), data + (size_t)rows[i] * table->stride[1],
                        first, left < n ? left : n);
    }
}

/* ---- copy, concat ---- */

/* Into blocks only rows of f32 whose elements lie side by side. */
static bool supports_copy(const sotto_tensor *node)
{
    const sotto_tensor *x = node->src[0], *y = node->src[1] != NULL ? node->src[1] : node;
    return is_plain(x->dtype) && (is_plain(y->dtype) || (y->dtype == SOTTO_Q8_0 && st_cpu_f32_rows(x))) &&
           !(x->flags & ST_TENSOR_MATRIX) && !(y->flags & ST_TENSOR_MATRIX);
}

static void need_copy(const st_cpu_kernels *k, const sotto_tensor *node, st_cpu_need *need)
{
    (void)k;
    need->n_phase = 1;
    need->units[0] = node->dim[0] > 0 ? st_tensor_n_rows(node) : 0;
}

/* Rows are visited in the order in which the source has them: heads that come first in the result are parts of a row there. */
static int64_t row_at(const sotto_tensor *x, int64_t visit)
{
    const int64_t n = x->dim[1] * x->dim[2], i = visit % n;
    if (x->stride[2] >= x->stride[1])
        return visit;
    return visit - i + i % x->dim[2] * x->dim[1] + i / x->dim[2];
}

static void run_copy(st_cpu_run *r, const sotto_tensor *node, int phase)
{
    (void)phase;
    const sotto_tensor *x = node->src[0], *y = node->src[1] != NULL ? node->src[1] : node;
    int64_t start, count;
    while ((count = st_cpu_take(r, rows_of(y->dim[0]), &start)) > 0)
        for (int64_t visit = start; visit < start + count; visit++) {
            const int64_t i = row_at(x, visit);
            const char *from = st_cpu_row(x, st_tensor_data(x), i);
            char *to = st_cpu_row(y, st_tensor_data(y), i);
            if (y->dtype == SOTTO_Q8_0)
                r->k->to_q8_0((const float *)(const void *)from, to, y->dim[0]);
            else
                move(r->k, x->dtype, from, x->stride[0], y->dtype, to, y->stride[0], y->dim[0]);
        }
}

static bool supports_concat(const sotto_tensor *node)
{
    return is_plain(node->dtype) && node->src[0]->dtype == node->dtype && node->src[1]->dtype == node->dtype;
}

static void run_concat(st_cpu_run *r, const sotto_tensor *node, int phase)
{
    (void)phase;
    const sotto_tensor *a = node->src[0], *b = node->src[1];
    const int axis = node->params.i[0];
    const size_t element = node->stride[0];
    int64_t start, count;
    while ((count = st_cpu_take(r, rows_of(node->dim[0]), &start)) > 0) {
        for (int64_t i = start; i < start + count; i++) {
            char *y = st_cpu_row(node, st_tensor_data(node), i);
            if (axis == 0) {
                move(r->k, a->dtype, st_cpu_row(a, st_tensor_data(a), i), a->stride[0], a->dtype, y, element, a->dim[0]);
                move(r->k, b->dtype, st_cpu_row(b, st_tensor_data(b), i), b->stride[0], b->dtype,
                     y + (size_t)a->dim[0] * element, element, b->dim[0]);
                continue;
            }
            int64_t at[4] = {0, i % node->dim[1], i / node->dim[1] % node->dim[2], i / node->dim[1] / node->dim[2]};
            const sotto_tensor *from = at[axis] < a->dim[axis] ? a : b;
            if (from == b)
                at[axis] -= a->dim[axis];
            const char *x = (const char *)st_tensor_data(from) + (size_t)at[1] * from->stride[1] +
                            (size_t)at[2] * from->stride[2] + (size_t)at[3] * from->stride[3];
            move(r->k, from->dtype, x, from->stride[0], from->dtype, y, element, node->dim[0]);
        }
    }
}

/* ---- im2col ---- */

void st_cpu_under_window(const sotto_tensor *node, int64_t r, float *out)
{
    const sotto_tensor *x = node->src[0]; /* [b, h, w, c] */
    const int32_t *p = node->params.i;    /* kernel, stride, pad, dilation, each along w and h */
    const int64_t ox = r % node->dim[1], oy = r / node->dim[1] % node->dim[2], b = r / node->dim[1] / node->dim[2];
    const size_t bytes = (size_t)x->dim[0] * sizeof *out;
    for (int32_t ky = 0; ky < p[1]; ky++) {
        const int64_t iy = oy * p[3] - p[5] + (int64_t)ky * p[7];
        for (int32_t kx = 0; kx < p[0]; kx++, out += x->dim[0]) {
            const int64_t ix = ox * p[2] - p[4] + (int64_t)kx * p[6];
            if (bytes == 0)
                continue;
            if (ix < 0 || ix >= x->dim[1] || iy < 0 || iy >= x->dim[2])
                memset(out, 0, bytes);
            else
                memcpy(out,
                       (const char *)st_tensor_data(x) + (size_t)ix * x->stride[1] + (size_t)iy * x->stride[2] +
                           (size_t)b * x->stride[3],
                       bytes);
        }
    }
}

static bool supports_im2col(const sotto_tensor *node)
{
    return st_cpu_f32_rows(node->src[0]) && st_tensor_is_contiguous(node);
}

static void run_im2col(st_cpu_run *r, const sotto_tensor *node, int phase)
{
    (void)phase;
    int64_t start, count;
    while ((count = st_cpu_take(r, rows_of(node->dim[0]), &start)) > 0)
        for (int64_t i = start; i < start + count; i++)
            st_cpu_under_window(node, i, (float *)st_tensor_data(node) + i * node->dim[0]);
}

const st_cpu_op st_cpu_op_im2col = {supports_im2col, need_copy, run_im2col};
const st_cpu_op st_cpu_op_get_rows = {supports_get_rows, need_get_rows, run_get_rows};
const st_cpu_op st_cpu_op_set_rows = {supports_set_rows, need_set_rows, run_set_rows};
const st_cpu_op st_cpu_op_copy = {supports_copy, need_copy, run_copy};
const st_cpu_op st_cpu_op_concat = {supports_concat, need_copy, run_concat};
