/* gguf_write.c: GGUF version 3. Metadata of the source goes along; what describes the file itself is written anew. */
#include <string.h>

#include "formats/convert_impl.h"
#include "formats/gguf.h"

enum { BLOCK_VERSION = 2 };

/* What describes the source's files, and what describes its types. */
static const char *const of_files[] = {"general.alignment",   "general.quantization_version",
                                       "whisper.mel_filters", "split.no",
                                       "split.count",         "split.tensors.count"};
static const char *const of_types[] = {"quantize.imatrix.file", "quantize.imatrix.dataset",
                                       "quantize.imatrix.entries_count", "quantize.imatrix.chunks_count"};

static bool is_among(const char *key, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

static bool is_dropped(const st_plan *plan, const char *key)
{
    return is_among(key, of_files, sizeof of_files / sizeof *of_files) ||
           (plan->mix && is_among(key, of_types, sizeof of_types / sizeof *of_types)) ||
           (plan->file_type >= 0 && strcmp(key, "general.file_type") == 0);
}

void st_gguf_put_text(st_out *o, const char *text, size_t n)
{
    st_out_number(o, n, 8);
    st_out_bytes(o, text, n);
}

void st_gguf_put_key(st_out *o, const char *key, int type)
{
    st_gguf_put_text(o, key, strlen(key));
    st_out_number(o, (uint64_t)type, 4);
}

void st_gguf_put_array(st_out *o, const char *key, int type, int64_t n)
{
    st_gguf_put_key(o, key, ST_GGUF_ARRAY);
    st_out_number(o, (uint64_t)type, 4);
    st_out_number(o, (uint64_t)n, 8);
}

static void put_floats(st_out *o, const char *key, const float *values, int64_t n)
{
    st_gguf_put_array(o, key, ST_GGUF_F32, n);
    st_out_bytes(o, values, (size_t)n * sizeof *values);
}

static void put_int(st_out *o, const st_meta_entry *e)
{
    const bool small = e->value.i >= 0 && e->value.i <= UINT32_MAX;
    st_gguf_put_key(o, e->about.key, small ? ST_GGUF_U32 : ST_GGUF_I64);
    st_out_number(o, (uint64_t)e->value.i, small ? 4 : 8);
}

static void put_float(st_out *o, const st_meta_entry *e)
{
    const float f = (float)e->value.f;
    const bool exact = (double)f == e->value.f;
    uint64_t bits = 0;
    uint32_t bits32;
    memcpy(&bits, &e->value.f, sizeof bits);
    memcpy(&bits32, &f, sizeof bits32);
    st_gguf_put_key(o, e->about.key, exact ? ST_GGUF_F32 : ST_GGUF_F64);
    st_out_number(o, exact ? bits32 : bits, exact ? 4 : 8);
}

static void put_string(st_out *o, const st_meta_entry *e)
{
    st_gguf_put_key(o, e->about.key, ST_GGUF_STRING);
    st_gguf_put_text(o, e->value.text.data, e->value.text.n);
}

static void put_ints(st_out *o, const st_meta_entry *e)
{
    bool small = true;
    for (int64_t i = 0; i < e->about.count; i++)
        small = small && e->value.ints[i] >= INT32_MIN && e->value.ints[i] <= INT32_MAX;
    st_gguf_put_array(o, e->about.key, small ? ST_GGUF_I32 : ST_GGUF_I64, e->about.count);
    for (int64_t i = 0; i < e->about.count; i++)
        st_out_number(o, (uint64_t)e->value.ints[i], small ? 4 : 8);
}

static void put_float_array(st_out *o, const st_meta_entry *e)
{
    put_floats(o, e->about.key, e->value.floats, e->about.count);
}

static void put_strings(st_out *o, const st_meta_entry *e)
{
    st_gguf_put_array(o, e->about.key, ST_GGUF_STRING, e->about.count);
    for (int64_t i = 0; i < e->about.count; i++)
        st_gguf_put_text(o, e->value.texts[i].data, e->value.texts[i].n);
}

static void (*const put_kind[])(st_out *o, const st_meta_entry *e) = {
    [SOTTO_META_INT] = put_int,   [SOTTO_META_FLOAT] = put_float,        [SOTTO_META_STRING] = put_string,
    [SOTTO_META_INTS] = put_ints, [SOTTO_META_FLOATS] = put_float_array, [SOTTO_META_STRINGS] = put_strings,
};

/* Values of another GGUF file keep their types: its programs insist on them. */
static void put_raw(st_out *o, const st_meta_entry *e)
{
    st_gguf_put_text(o, e->about.key, strlen(e->about.key));
    st_out_bytes(o, e->raw.data, e->raw.n);
}

void st_gguf_put_u32(st_out *o, const char *key, uint32_t value)
{
    st_gguf_put_key(o, key, ST_GGUF_U32);
    st_out_number(o, value, 4);
}

static void put_importance(const st_plan *plan, st_out *o)
{
    const sotto_imatrix *m = plan->options->importance;
    const char *dataset = st_imatrix_dataset(m);
    st_gguf_put_key(o, "quantize.imatrix.dataset", ST_GGUF_STRING);
    st_gguf_put_text(o, dataset, strlen(dataset));
    st_gguf_put_u32(o, "quantize.imatrix.entries_count", (uint32_t)sotto_imatrix_count(m));
    st_gguf_put_u32(o, "quantize.imatrix.chunks_count", (uint32_t)st_imatrix_chunks(m));
}

static void put_metadata(const st_plan *plan, st_out *o)
{
    for (int64_t i = 0; i < plan->file->n_meta; i++) {
        const st_meta_entry *e = &plan->file->meta[i];
        if (is_dropped(plan, e->about.key))
            continue;
        if (e->raw.n > 0)
            put_raw(o, e);
        else
            put_kind[e->about.kind](o, e);
    }
    if (plan->file_type >= 0)
        st_gguf_put_u32(o, "general.file_type", (uint32_t)plan->file_type);
    st_gguf_put_u32(o, "general.quantization_version", BLOCK_VERSION);
    st_gguf_put_u32(o, "general.alignment", ST_GGUF_ALIGNMENT);
    if (plan->n_filters > 0)
        put_floats(o, "whisper.mel_filters", plan->filters, plan->n_filters);
    if (plan->options->importance)
        put_importance(plan, o);
}

static uint64_t count_keys(const st_plan *plan)
{
    uint64_t n = 2 + (uint64_t)(plan->file_type >= 0) + (plan->n_filters > 0) + (plan->options->importance ? 3 : 0);
    for (int64_t i = 0; i < plan->file->n_meta; i++)
        n += !is_dropped(plan, plan->file->meta[i].about.key);
    return n;
}

size_t st_gguf_padding(uint64_t at)
{
    return (size_t)((ST_GGUF_ALIGNMENT - at % ST_GGUF_ALIGNMENT) % ST_GGUF_ALIGNMENT);
}

sotto_status st_write_gguf(const st_plan *plan, st_out *o)
{
    st_out_bytes(o, "GGUF", 4);
    st_out_number(o, 3, 4);
    st_out_number(o, (uint64_t)plan->n, 8);
    st_out_number(o, count_keys(plan), 8);
    put_metadata(plan, o);
    uint64_t offset = 0;
    for (int64_t i = 0; i < plan->n; i++) {
        const st_plan_tensor *p = &plan->list[i];
        st_gguf_put_text(o, p->source.name, strlen(p->source.name));
        st_out_number(o, (uint64_t)p->source.n_dims, 4);
        for (int a = 0; a < p->source.n_dims; a++)
            st_out_number(o, (uint64_t)p->source.dim[a], 8);
        st_out_number(o, (uint64_t)p->dtype, 4);
        st_out_number(o, offset, 8);
        offset += p->bytes + st_gguf_padding(p->bytes);
    }
    st_out_zeros(o, st_gguf_padding(st_file_writer_at(o->writer)));
    for (int64_t i = 0; i < plan->n; i++) {
        st_out_tensor(o, plan, i);
        st_out_zeros(o, st_gguf_padding(plan->list[i].bytes));
    }
    return o->status;
}
