/* convert.c: decides the type of every tensor and converts rows; the writers of the formats put them into files. */
#include <math.h>
#include <string.h>

#include "formats/convert_impl.h"
#include "formats/mel_filters.h"
#include "formats/whisper_names.h"
#include "sotto/quant.h"

enum { SCRATCH_FLOATS = 1 << 16 };

/* ---- types ---- */

static const struct {
    sotto_dtype dtype;
    int ftype;
} ftypes[] = {
    {SOTTO_F32, 0},   {SOTTO_F16, 1},   {SOTTO_Q4_0, 2},  {SOTTO_Q4_1, 3},  {SOTTO_Q8_0, 7},
    {SOTTO_Q5_0, 8},  {SOTTO_Q5_1, 9},  {SOTTO_Q2_K, 10}, {SOTTO_Q3_K, 11}, {SOTTO_Q4_K, 12},
    {SOTTO_Q5_K, 13}, {SOTTO_Q6_K, 14}, {SOTTO_BF16, 24},
};

int st_ftype(sotto_dtype dtype)
{
    for (size_t i = 0; i < sizeof ftypes / sizeof *ftypes; i++)
        if (ftypes[i].dtype == dtype)
            return ftypes[i].ftype;
    return -1;
}

static bool is_matrix(const sotto_model_tensor *t)
{
    return t->n_dims == 2 && !strstr(t->name, "positional_embedding");
}

static bool is_quantised(sotto_dtype dtype)
{
    return dtype == SOTTO_I8 || sotto_dtype_block(dtype) > 1;
}

static sotto_dtype fitting(sotto_dtype dtype, int64_t width)
{
    return width % sotto_dtype_block(dtype) == 0 ? dtype : SOTTO_F16;
}

/* `wanted` NULL keeps the type; integers with a scale a row are the integers of q8_0. */
static sotto_dtype matrix_type(const sotto_model_tensor *t, const sotto_dtype *wanted)
{
    const sotto_dtype kept = t->dtype == SOTTO_I8 ? SOTTO_Q8_0 : t->dtype == SOTTO_I32 ? SOTTO_F32 : t->dtype;
    return fitting(wanted ? *wanted : kept, t->dim[0]);
}

/* Programs that read ggml files want convolutions in f16 beside anything but f32, and vectors and positions in f32. */
static sotto_dtype other_type(const sotto_model_tensor *t, sotto_dtype main)
{
    return t->n_dims == 3 && main != SOTTO_F32 ? SOTTO_F16 : SOTTO_F32;
}

static sotto_status check_requantizing(const sotto_model_tensor *t, sotto_dtype to, sotto_error *err)
{
    const bool same_integers = t->dtype == SOTTO_I8 && (to == SOTTO_Q8_0 || !is_quantised(to));
    if (!is_quantised(t->dtype) || t->dtype == to || same_integers)
        return SOTTO_OK;
    return st_fail(err, SOTTO_E_ARGUMENT,
                   "%.100s: is quantised already (%s); converting it to %s again loses more and has to be "
                   "asked for",
                   t->name, sotto_dtype_name(t->dtype), sotto_dtype_name(to));
}

/* ---- rows ---- */

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

static void pack_i8_rows(const sotto_model_tensor *t, int64_t row, int64_t n_rows, uint8_t *out)
{
    const int64_t n = t->dim[0];
    for (int64_t r = row; r < row + n_rows; r++) {
        const int8_t *q = (const int8_t *)t->data + r * n;
        uint8_t scale[2];
        const float factor = t->row_scale ? t->row_scale[r] : 1;
        (void)sotto_row_from_f32(SOTTO_F16, &factor, scale, 1);
        for (int64_t b = 0; b < n / 32; b++, out += 34) {
            memcpy(out, scale, 2);
            memcpy(out + 2, q + b * 32, 32);
        }
    }
}

static sotto_status convert_rows(const st_plan_tensor *p, int64_t row, int64_t n_rows, float *floats, void *packed,
                                 sotto_error *err)
{
    const sotto_model_tensor *t = &p->source;
    const int64_t width = t->n_dims > 0 ? t->dim[0] : 1;
    if (t->dtype == SOTTO_I8 && p->dtype == SOTTO_Q8_0) {
        for (int64_t r = row; t->row_scale && r < row + n_rows; r++)
            if (t->row_scale[r] >= 65520)
                return st_fail(err, SOTTO_E_UNSUPPORTED, "%.100s: row %lld has scale %g, too large for q8_0", t->name,
                               (long long)r, (double)t->row_scale[r]);
        pack_i8_rows(t, row, n_rows, packed);
        return SOTTO_OK;
    }
    ST_TRY(sotto_model_tensor_f32(t, row, n_rows, floats, err));
    if (p->dtype == SOTTO_F16)
        for (int64_t i = 0; i < n_rows * width; i++)
            if (fabsf(floats[i]) >= 65520 && !isinf(floats[i]))
                return st_fail(err, SOTTO_E_UNSUPPORTED, "%.100s: %g is too large for f16", t->name, (double)floats[i]);
    if (!sotto_row_from_f32(p->dtype, floats, packed, n_rows * width))
        return st_fail(err, SOTTO_E_INTERNAL, "%.100s: rows of %lld elements cannot be written as %s", t->name,
                       (long long)width, sotto_dtype_name(p->dtype));
    return SOTTO_OK;
}

static bool aborted(st_out *o, const sotto_convert_options *options)
{
    if (options->abort && options->abort(options->abort_user))
        o->status = st_fail(o->err, SOTTO_E_ABORTED, "stopped by the caller");
    return o->status != SOTTO_OK;
}

static sotto_status write_rows(st_out *o, const st_plan *plan, const st_plan_tensor *p)
{
    const sotto_model_tensor *t = &p->source;
    const int64_t width = t->n_dims > 0 ? t->dim[0] : 1;
    int64_t rows = 1;
    for (int i = 1; i < t->n_dims; i++)
        rows *= t->dim[i];
    const int64_t step = width < SCRATCH_FLOATS ? SCRATCH_FLOATS / width : 1;
    float *floats = st_alloc((size_t)(2 * step * width), sizeof *floats); /* no type is wider than f32 */
    if (!floats)
        return st_fail_memory(o->err, 8 * (uint64_t)(step * width), "converting rows");
    float *packed = floats + step * width;
    const size_t row_bytes = sotto_dtype_row_bytes(p->dtype, width);
    for (int64_t r = 0; r < rows && !aborted(o, plan->options); r += step) {
        const int64_t n = rows - r < step ? rows - r : step;
        const sotto_status status = convert_rows(p, r, n, floats, packed, o->err);
        if (status == SOTTO_OK)
            st_out_bytes(o, packed, (size_t)n * row_bytes);
        else
            o->status = status;
    }
    st_free(floats);
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

/* ---- the plan ---- */

/* Type of the matrices as a file's header tells it: that of the widest choice, the token embedding, else the first. */
static void find_main(st_plan *plan, const sotto_dtype *wanted)
{
    plan->main = wanted ? *wanted : SOTTO_F16;
    bool found = false;
    for (int64_t i = 0; i < plan->n; i++) {
        const sotto_model_tensor *t = &plan->list[i].source;
        const bool embedding = strcmp(t->name, "decoder.token_embedding.weight") == 0;
        if (is_matrix(t) && (!found || embedding)) {
            plan->main = matrix_type(t, wanted);
            found = true;
        }
    }
}

static sotto_status plan_tensors(st_plan *plan, const sotto_dtype *wanted, sotto_error *err)
{
    plan->list = st_calloc((size_t)plan->n, sizeof *plan->list);
    if (!plan->list)
        return st_fail_memory(err, (uint64_t)plan->n * sizeof *plan->list, "the list of tensors");
    for (int64_t i = 0; i < plan->n; i++)
        plan->list[i].source = plan->file->tensors[i];
    find_main(plan, wanted);
    int64_t fallen = 0;
    for (int64_t i = 0; i < plan->n; i++) {
        st_plan_tensor *p = &plan->list[i];
        const sotto_model_tensor *t = &p->source;
        p->dtype = is_matrix(t) ? matrix_type(t, wanted) : other_type(t, plan->main);
        fallen += is_matrix(t) && wanted && p->dtype != *wanted;
        if (is_matrix(t) && !plan->options->requantize)
            ST_TRY(check_requantizing(t, p->dtype, err));
        p->bytes = st_tensor_bytes(t, p->dtype);
        if (p->bytes == 0)
            return st_fail(err, SOTTO_E_FORMAT, "%.100s: cannot be written as %s", t->name, sotto_dtype_name(p->dtype));
    }
    if (fallen > 0)
        st_log(&plan->options->logger, SOTTO_LOG_WARNING,
               "%lld matrices are written as f16: their width is no multiple of %lld", (long long)fallen,
               (long long)sotto_dtype_block(*wanted));
    return SOTTO_OK;
}

static sotto_status check_architecture(const sotto_model_file *file, sotto_error *err)
{
    const char *name;
    size_t n;
    ST_TRY(sotto_meta_string(file, "general.architecture", &name, &n, err));
    if (n != 7 || memcmp(name, "whisper", 7) != 0)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "general.architecture: \"%.*s\", only \"whisper\" can be converted",
                       (int)(n < 64 ? n : 64), name);
    return st_whisper_complete(file, err);
}

static sotto_status plan_filters(st_plan *plan, float *computed, sotto_error *err)
{
    if (sotto_meta_floats(plan->file, "whisper.mel_filters", &plan->filters, &plan->n_filters, NULL) == SOTTO_OK)
        return SOTTO_OK;
    int64_t n_mels;
    ST_TRY(sotto_meta_int(plan->file, "whisper.n_mels", &n_mels, err));
    if (n_mels > ST_MEL_MAX || !st_mel_filters((int)n_mels, computed))
        return st_fail(err, SOTTO_E_UNSUPPORTED, "whisper.n_mels: no filters are known for %lld bands",
                       (long long)n_mels);
    plan->filters = computed;
    plan->n_filters = n_mels * ST_MEL_BINS;
    return SOTTO_OK;
}

/* ---- the call ---- */

typedef struct format {
    const char *name;
    sotto_status (*write)(const st_plan *plan, st_out *o);
} format;

static const format formats[] = {{"ggml", st_write_ggml}, {"gguf", st_write_gguf}};

static sotto_status find_format(const char *name, const char *path, const format **out, sotto_error *err)
{
    const size_t n = strlen(path);
    if (!name)
        name = n > 5 && strcmp(path + n - 5, ".gguf") == 0 ? "gguf" : "ggml";
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0) {
            *out = &formats[i];
            return SOTTO_OK;
        }
    return st_fail(err, SOTTO_E_ARGUMENT, "format \"%.40s\", expected \"ggml\" or \"gguf\"", name);
}

static sotto_status find_dtype(const char *name, sotto_dtype *out, sotto_error *err)
{
    if (sotto_dtype_find(name, out) != SOTTO_OK || !sotto_dtype_can_pack(*out))
        return st_fail(err, SOTTO_E_ARGUMENT, "type \"%.40s\", expected f32, f16, bf16, q4_0, q4_1, q5_0, q5_1 or q8_0",
                       name);
    return SOTTO_OK;
}

static sotto_status write_plan(const st_plan *plan, const format *to, const char *path, sotto_error *err)
{
    st_out o = {NULL, SOTTO_OK, err};
    ST_TRY(st_file_writer_open(path, &o.writer, err));
    const sotto_status status = to->write(plan, &o);
    if (status == SOTTO_OK)
        return st_file_writer_commit(o.writer, err);
    st_file_writer_discard(o.writer);
    return status;
}

sotto_status sotto_model_convert(const sotto_model_file *file, const char *path, const sotto_convert_options *options,
                                 sotto_error *err)
{
    static const sotto_convert_options defaults;
    if (!file || !path)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_model_convert: %s is NULL", file ? "path" : "file");
    st_plan plan = {.file = file, .options = options ? options : &defaults, .n = file->n_tensors};
    const format *to = NULL;
    sotto_dtype dtype = SOTTO_F16;
    ST_TRY(find_format(plan.options->format, path, &to, err));
    if (plan.options->dtype)
        ST_TRY(find_dtype(plan.options->dtype, &dtype, err));
    for (int64_t i = 0; i < file->n_parts; i++)
        if (st_same_file(file->parts[i].path, path))
            return st_fail(err, SOTTO_E_ARGUMENT, "%s: is the model that is read, expected another file to write", path);
    sotto_status status = check_architecture(file, err);
    float *computed = st_alloc(ST_MEL_MAX * ST_MEL_BINS, sizeof *computed);
    if (!computed && status == SOTTO_OK)
        status = st_fail_memory(err, ST_MEL_MAX * ST_MEL_BINS * sizeof *computed, "mel filters");
    if (status == SOTTO_OK)
        status = plan_filters(&plan, computed, err);
    if (status == SOTTO_OK)
        status = plan_tensors(&plan, plan.options->dtype ? &dtype : NULL, err);
    if (status != SOTTO_OK)
        status = st_fail_context(err, status, "%s", file->path);
    else
        status = write_plan(&plan, to, path, err);
    st_free(plan.list);
    st_free(computed);
    return status;
}
