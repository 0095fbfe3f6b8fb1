/* convert_rows.c: the elements of tensors in another type, by several threads, and numbers into a file. */
#include <math.h>
#include <string.h>

#include "base/thread.h"
#include "formats/convert_impl.h"
#include "sotto/quant.h"

/* A thread's share of the rows that are converted at a time, and what of them is held as f32. */
enum { SHARE_FLOATS = 1 << 19, SCRATCH_FLOATS = 1 << 14, MAX_THREADS = 64 };

void st_out_bytes(st_out *o, const void *data, size_t n)
{
    if (o->status == SOTTO_OK)
        o->status = st_file_writer_write(o->writer, data, n, o->err);
}

void st_out_number(st_out *o, uint64_t value, int bytes)
{
    uint8_t le[8];
    for (int i = 0; i < bytes; i++)
        le[i] = (uint8_t)(value >> 8 * i);
    st_out_bytes(o, le, (size_t)bytes);
}

void st_out_zeros(st_out *o, size_t n)
{
    static const uint8_t zeros[64];
    for (; n > 0 && o->status == SOTTO_OK; n -= n < sizeof zeros ? n : sizeof zeros)
        st_out_bytes(o, zeros, n < sizeof zeros ? n : sizeof zeros);
}

/* ---- rows ---- */

static sotto_status pack_i8_rows(const sotto_model_tensor *t, int64_t row, int64_t n_rows, uint8_t *out,
                                 sotto_error *err)
{
    const int64_t n = t->dim[0];
    for (int64_t r = row; r < row + n_rows; r++) {
        const int8_t *q = (const int8_t *)t->data + r * n;
        uint8_t scale[2];
        const float factor = t->row_scale ? t->row_scale[r] : 1;
        if (factor >= 65520)
            return st_fail(err, SOTTO_E_UNSUPPORTED, "%.100s: row %lld has scale %g, too large for q8_0", t->name,
                           (long long)r, (double)factor);
        (void)sotto_row_from_f32(SOTTO_F16, &factor, scale, 1);
        for (int64_t b = 0; b < n / 32; b++, out += 34) {
            memcpy(out, scale, 2);
            memcpy(out + 2, q + b * 32, 32);
        }
    }
    return SOTTO_OK;
}

/* Blocks have f16 factors: what is no number, or much too large for one, would spoil a whole block. */
static sotto_status check_numbers(const st_plan_tensor *p, const float *x, int64_t n, sotto_error *err)
{
    const bool blocks = sotto_dtype_block(p->dtype) > 1;
    if (!blocks && p->dtype != SOTTO_F16)
        return SOTTO_OK;
    for (int64_t i = 0; i < n; i++)
        if (blocks ? !(fabsf(x[i]) < 65520) : fabsf(x[i]) >= 65520 && !isinf(x[i]))
            return st_fail(err, SOTTO_E_UNSUPPORTED, "%.100s: %g is too large for %s", p->source.name, (double)x[i],
                           sotto_dtype_name(p->dtype));
    return SOTTO_OK;
}

static sotto_status convert_rows(const st_plan_tensor *p, int64_t row, int64_t n_rows, float *floats, uint8_t *packed,
                                 sotto_error *err)
{
    const sotto_model_tensor *t = &p->source;
    const int64_t width = t->n_dims > 0 ? t->dim[0] : 1;
    const size_t row_bytes = sotto_dtype_row_bytes(p->dtype, width);
    if (t->dtype == SOTTO_I8 && p->dtype == SOTTO_Q8_0)
        return pack_i8_rows(t, row, n_rows, packed, err);
    ST_TRY(sotto_model_tensor_f32(t, row, n_rows, floats, err));
    ST_TRY(check_numbers(p, floats, n_rows * width, err));
    for (int64_t r = 0; r < n_rows; r++)
        if (!sotto_row_from_f32_weighted(p->dtype, floats + r * width, p->importance, packed + (size_t)r * row_bytes,
                                         width))
            return st_fail(err, SOTTO_E_INTERNAL, "%.100s: rows of %lld elements cannot be written as %s", t->name,
                           (long long)width, sotto_dtype_name(p->dtype));
    return SOTTO_OK;
}

/* ---- threads ---- */

typedef struct share {
    const st_plan_tensor *tensor;
    int64_t row, n_rows;
    uint8_t *packed;
    float *floats;
    int64_t step; /* rows that floats holds */
    sotto_status status;
    sotto_error err;
} share;

static void convert_share(void *arg)
{
    share *s = arg;
    const int64_t width = s->tensor->source.n_dims > 0 ? s->tensor->source.dim[0] : 1;
    const size_t row_bytes = sotto_dtype_row_bytes(s->tensor->dtype, width);
    s->status = SOTTO_OK;
    for (int64_t r = 0; r < s->n_rows && s->status == SOTTO_OK; r += s->step) {
        const int64_t n = s->n_rows - r < s->step ? s->n_rows - r : s->step;
        s->status = convert_rows(s->tensor, s->row + r, n, s->floats, s->packed + (size_t)r * row_bytes, &s->err);
    }
}

/* All shares, each by its own thread; one that cannot have a thread is done here. */
static sotto_status run_shares(share *shares, int n, sotto_error *err)
{
    st_thread threads[MAX_THREADS];
    bool started[MAX_THREADS] = {false};
    for (int i = 1; i < n; i++)
        started[i] = st_thread_create(&threads[i], convert_share, &shares[i]);
    for (int i = 0; i < n; i++)
        if (!started[i])
            convert_share(&shares[i]);
    for (int i = 1; i < n; i++)
        if (started[i])
            st_thread_join(&threads[i]);
    for (int i = 0; i < n; i++)
        if (shares[i].status != SOTTO_OK)
            return st_fail(err, shares[i].status, "%s", shares[i].err.text);
    return SOTTO_OK;
}

static bool aborted(st_out *o, const sotto_convert_options *options)
{
    if (options->abort && options->abort(options->abort_user))
        o->status = st_fail(o->err, SOTTO_E_ABORTED, "stopped by the caller");
    return o->status != SOTTO_OK;
}

static int threads_of(const sotto_convert_options *options)
{
    const int n = options->threads > 0 ? options->threads : st_thread_cores();
    return n < MAX_THREADS ? n : MAX_THREADS;
}

static int64_t at_least_1(int64_t n)
{
    return n > 0 ? n : 1;
}

static sotto_status write_rows(st_out *o, const st_plan *plan, const st_plan_tensor *p)
{
    const sotto_model_tensor *t = &p->source;
    const int64_t width = t->n_dims > 0 ? t->dim[0] : 1;
    int64_t rows = 1;
    for (int i = 1; i < t->n_dims; i++)
        rows *= t->dim[i];
    const int64_t step = at_least_1(SCRATCH_FLOATS / width), most = at_least_1(SHARE_FLOATS / width);
    const int64_t wanted = (rows + step - 1) / step;
    const int n = wanted < threads_of(plan->options) ? (int)wanted : threads_of(plan->options);
    const size_t row_bytes = sotto_dtype_row_bytes(p->dtype, width);
    const int64_t in_share = (rows + n - 1) / n < most ? (rows + n - 1) / n : most;
    float *floats = st_alloc((size_t)(step * width) * (size_t)n, sizeof *floats);
    uint8_t *packed = st_alloc((size_t)in_share * (size_t)n, row_bytes);
    share *shares = st_calloc((size_t)n, sizeof *shares);
    if (!floats || !packed || !shares)
        o->status = st_fail_memory(
            o->err, (uint64_t)n * ((uint64_t)(step * width) * 4 + (uint64_t)in_share * row_bytes), "converting rows");
    for (int64_t row = 0; row < rows && !aborted(o, plan->options);) {
        int used = 0;
        const int64_t first = row;
        for (; used < n && row < rows; used++) {
            const int64_t here = rows - row < in_share ? rows - row : in_share;
            shares[used] = (share){.tensor = p,
                                   .row = row,
                                   .n_rows = here,
                                   .packed = packed + (size_t)(row - first) * row_bytes,
                                   .floats = floats + (size_t)used * (size_t)(step * width),
                                   .step = step};
            row += here;
        }
        o->status = run_shares(shares, used, o->err);
        st_out_bytes(o, packed, (size_t)(row - first) * row_bytes);
    }
    st_free(floats);
    st_free(packed);
    st_free(shares);
    return o->status;
}

void st_out_tensor(st_out *o, const st_plan *plan, int64_t index)
{
    const st_plan_tensor *p = &plan->list[index];
    if (o->status != SOTTO_OK || aborted(o, plan->options))
        return;
    if (p->dtype == p->source.dtype)
        st_out_bytes(o, p->source.data, p->bytes);
    else
        o->status = write_rows(o, plan, p);
    sotto_model_tensor_release(plan->file, &p->source);
    if (plan->options->progress && o->status == SOTTO_OK)
        plan->options->progress(plan->options->progress_user, index + 1, plan->n);
}
