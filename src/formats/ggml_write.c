/* ggml_write.c: the Whisper `.bin` files of ggml. */
#include <string.h>

#include "formats/convert_impl.h"
#include "formats/ggml.h"
#include "formats/mel_filters.h"

static const char tokens_key[] = "tokenizer.ggml.tokens";

static const struct {
    sotto_dtype dtype;
    int number;
} ftypes[] = {
    {SOTTO_F32, 0},   {SOTTO_F16, 1},   {SOTTO_Q4_0, 2},    {SOTTO_Q4_1, 3},  {SOTTO_Q8_0, 7},
    {SOTTO_Q5_0, 8},  {SOTTO_Q5_1, 9},  {SOTTO_Q2_K, 10},   {SOTTO_Q3_K, 11}, {SOTTO_Q4_K, 12},
    {SOTTO_Q5_K, 13}, {SOTTO_Q6_K, 14}, {SOTTO_IQ4_NL, 19}, {SOTTO_BF16, 24},
};

/* The format's number for the type of most matrices, -1 when it has none. */
static int ftype_of(sotto_dtype dtype)
{
    for (size_t i = 0; i < sizeof ftypes / sizeof *ftypes; i++)
        if (ftypes[i].dtype == dtype)
            return ftypes[i].number;
    return -1;
}

static sotto_status write_header(const st_plan *plan, st_out *o)
{
    enum { BLOCK_VERSION = 2 };
    st_out_number(o, ST_GGML_MAGIC, 4);
    int64_t value = 0;
    for (int i = 0; i < ST_GGML_HEADER; i++) {
        ST_TRY(sotto_meta_int(plan->file, st_ggml_header[i], &value, o->err));
        if (value < 0 || value > INT32_MAX)
            return st_fail(o->err, SOTTO_E_FORMAT, "%s: %lld, expected 0 to %ld", st_ggml_header[i], (long long)value,
                           (long)INT32_MAX);
        st_out_number(o, (uint64_t)value, 4);
    }
    const int ftype = ftype_of(plan->main);
    if (ftype < 0)
        return st_fail(o->err, SOTTO_E_UNSUPPORTED, "matrices of type %s cannot be written to ggml files",
                       sotto_dtype_name(plan->main));
    st_out_number(o, (uint64_t)(ftype + (sotto_dtype_block(plan->main) > 1 ? 1000 * BLOCK_VERSION : 0)), 4);
    if (plan->n_filters != value * ST_MEL_BINS)
        return st_fail(o->err, SOTTO_E_FORMAT, "whisper.mel_filters: %lld numbers, expected %lld x %d",
                       (long long)plan->n_filters, (long long)value, (int)ST_MEL_BINS);
    st_out_number(o, (uint64_t)value, 4);
    st_out_number(o, ST_MEL_BINS, 4);
    st_out_bytes(o, plan->filters, (size_t)plan->n_filters * sizeof *plan->filters);
    return o->status;
}

static sotto_status write_tokens(const st_plan *plan, st_out *o)
{
    int64_t n = -1;
    for (int64_t i = 0; i < plan->file->n_meta; i++)
        if (strcmp(plan->file->meta[i].about.key, tokens_key) == 0 &&
            plan->file->meta[i].about.kind == SOTTO_META_STRINGS)
            n = plan->file->meta[i].about.count;
    if (n < 0 || n > INT32_MAX)
        return st_fail(o->err, SOTTO_E_FORMAT, "%s: missing, expected an array of texts", tokens_key);
    st_out_number(o, (uint64_t)n, 4);
    for (int64_t i = 0; i < n && o->status == SOTTO_OK; i++) {
        const char *bytes;
        size_t length;
        ST_TRY(sotto_meta_string_at(plan->file, tokens_key, i, &bytes, &length, o->err));
        if (length > INT32_MAX)
            return st_fail(o->err, SOTTO_E_FORMAT, "%s: token %lld has %zu bytes", tokens_key, (long long)i, length);
        st_out_number(o, length, 4);
        st_out_bytes(o, bytes, length);
    }
    return o->status;
}

static bool is_conv_bias(const char *name)
{
    return strcmp(name, "encoder.conv1.bias") == 0 || strcmp(name, "encoder.conv2.bias") == 0;
}

sotto_status st_write_ggml(const st_plan *plan, st_out *o)
{
    ST_TRY(write_header(plan, o));
    ST_TRY(write_tokens(plan, o));
    for (int64_t i = 0; i < plan->n && o->status == SOTTO_OK; i++) {
        const sotto_model_tensor *t = &plan->list[i].source;
        const bool column = is_conv_bias(t->name) && t->n_dims == 1; /* programs that read the format expect [n, 1] */
        for (int a = 0; a < t->n_dims; a++)
            if (t->dim[a] > INT32_MAX)
                return st_fail(o->err, SOTTO_E_UNSUPPORTED, "%.100s: dimension %d is %lld, too large for ggml files",
                               t->name, a, (long long)t->dim[a]);
        st_out_number(o, (uint64_t)(t->n_dims + column), 4);
        st_out_number(o, strlen(t->name), 4);
        st_out_number(o, (uint64_t)plan->list[i].dtype, 4);
        if (column)
            st_out_number(o, 1, 4);
        for (int a = 0; a < t->n_dims; a++)
            st_out_number(o, (uint64_t)t->dim[a], 4);
        st_out_bytes(o, t->name, strlen(t->name));
        st_out_tensor(o, plan, i);
    }
    return o->status;
}
