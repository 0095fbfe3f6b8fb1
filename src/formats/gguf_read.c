/* gguf_read.c: one file of GGUF version 2 or 3, of any architecture. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "formats/gguf.h"

enum { MAX_KEY = 65535, MAX_NAME = 1024, MAX_NESTING = 8 };

typedef struct gguf {
    sotto_model_file *file;
    st_bytes b;
    size_t alignment;
    st_gguf_split split;
    sotto_error *err;
} gguf;

static bool probe(const uint8_t *data, size_t size)
{
    return size >= 4 && memcmp(data, "GGUF", 4) == 0;
}

static sotto_status cut_short(const gguf *g, const char *what)
{
    return st_fail(g->err, SOTTO_E_FORMAT, "ends inside %s, after %zu bytes", what, g->b.size);
}

/* A text with its 64-bit length before it. */
static sotto_status take_text(gguf *g, const char *what, st_text *out)
{
    const uint64_t n = st_bytes_u64(&g->b);
    if (g->b.failed)
        return cut_short(g, what);
    if (n > st_bytes_left(&g->b))
        return st_fail(g->err, SOTTO_E_FORMAT, "%s: a text of %llu bytes, but only %zu are left", what,
                       (unsigned long long)n, st_bytes_left(&g->b));
    *out = (st_text){n ? st_bytes_take(&g->b, (size_t)n) : "", (size_t)n};
    return SOTTO_OK;
}

/* A key or a name: not empty, no zeros inside; copied with a zero behind. */
static sotto_status take_name(gguf *g, const char *what, size_t max, const char **out)
{
    st_text text;
    ST_TRY(take_text(g, what, &text));
    if (text.n < 1 || text.n > max || memchr(text.data, 0, text.n))
        return st_fail(g->err, SOTTO_E_FORMAT, "%s of %zu bytes, expected 1 to %zu without zeros", what, text.n, max);
    *out = st_arena_strdup(g->file->arena, text.data, text.n);
    return *out ? SOTTO_OK : st_fail_memory(g->err, text.n + 1, what);
}

/* ---- values ---- */

static int64_t take_u8(st_bytes *b)
{
    return st_bytes_u8(b);
}
static int64_t take_i8(st_bytes *b)
{
    return (int8_t)st_bytes_u8(b);
}
static int64_t take_u16(st_bytes *b)
{
    return st_bytes_u16(b);
}
static int64_t take_i16(st_bytes *b)
{
    return (int16_t)st_bytes_u16(b);
}
static int64_t take_u32(st_bytes *b)
{
    return st_bytes_u32(b);
}
static int64_t take_i32(st_bytes *b)
{
    return st_bytes_i32(b);
}
static int64_t take_i64(st_bytes *b)
{
    return (int64_t)st_bytes_u64(b);
}
static int64_t take_bool(st_bytes *b)
{
    return st_bytes_u8(b) != 0;
}
static double take_f32(st_bytes *b)
{
    return (double)st_bytes_f32(b);
}
static double take_f64(st_bytes *b)
{
    return st_bytes_f64(b);
}

/* Numbers of 64 bits without sign count as signed; sizes that large occur nowhere. */
static const struct {
    size_t bytes;
    int64_t (*whole)(st_bytes *b);
    double (*real)(st_bytes *b);
} values[ST_GGUF_TYPES] = {
    /* bytes: of a text and of an array the least that one takes */
    [ST_GGUF_U8] = {1, take_u8, NULL},   [ST_GGUF_I8] = {1, take_i8, NULL},     [ST_GGUF_U16] = {2, take_u16, NULL},
    [ST_GGUF_I16] = {2, take_i16, NULL}, [ST_GGUF_U32] = {4, take_u32, NULL},   [ST_GGUF_I32] = {4, take_i32, NULL},
    [ST_GGUF_F32] = {4, NULL, take_f32}, [ST_GGUF_BOOL] = {1, take_bool, NULL}, [ST_GGUF_STRING] = {8, NULL, NULL},
    [ST_GGUF_U64] = {8, take_i64, NULL}, [ST_GGUF_I64] = {8, take_i64, NULL},   [ST_GGUF_F64] = {8, NULL, take_f64},
    [ST_GGUF_ARRAY] = {12, NULL, NULL},
};

static sotto_status check_type(const gguf *g, const char *key, uint32_t type)
{
    if (g->b.failed)
        return cut_short(g, key);
    if (type >= ST_GGUF_TYPES)
        return st_fail(g->err, SOTTO_E_FORMAT, "%.100s: value type %u, expected 0 to %d", key, (unsigned)type,
                       (int)ST_GGUF_TYPES - 1);
    return SOTTO_OK;
}

/* Type and number of an array's elements, of which the rest of the file has room for the least that they take. */
static sotto_status array_head(gguf *g, const char *key, uint32_t *type, int64_t *n)
{
    *type = st_bytes_u32(&g->b);
    ST_TRY(check_type(g, key, *type));
    const uint64_t count = st_bytes_u64(&g->b);
    if (g->b.failed)
        return cut_short(g, key);
    if (count > st_bytes_left(&g->b) / values[*type].bytes)
        return st_fail(g->err, SOTTO_E_FORMAT, "%.100s: %llu elements, but only %zu bytes are left", key,
                       (unsigned long long)count, st_bytes_left(&g->b));
    *n = (int64_t)count;
    return SOTTO_OK;
}

static sotto_status skip_array(gguf *g, const char *key, int depth)
{
    uint32_t type;
    int64_t n;
    ST_TRY(array_head(g, key, &type, &n));
    if (type == ST_GGUF_ARRAY && depth == MAX_NESTING)
        return st_fail(g->err, SOTTO_E_UNSUPPORTED, "%.100s: arrays in arrays, more than %d deep", key,
                       (int)MAX_NESTING);
    if (type != ST_GGUF_ARRAY && type != ST_GGUF_STRING) {
        st_bytes_seek(&g->b, g->b.at + (size_t)n * values[type].bytes);
        return SOTTO_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        st_text text;
        ST_TRY(type == ST_GGUF_ARRAY ? skip_array(g, key, depth + 1) : take_text(g, key, &text));
    }
    return SOTTO_OK;
}

static sotto_status read_array(gguf *g, const char *key, st_meta_entry *e)
{
    uint32_t type;
    const size_t start = g->b.at;
    ST_TRY(array_head(g, key, &type, &e->about.count));
    const int64_t n = e->about.count;
    if (type == ST_GGUF_ARRAY) {
        e->about.kind = SOTTO_META_NESTED;
        st_bytes_seek(&g->b, start);
        return skip_array(g, key, 1);
    }
    if (type == ST_GGUF_STRING) {
        st_text *texts = st_model_array(g->file, n, sizeof *texts, key, g->err);
        for (int64_t i = 0; texts && i < n; i++)
            ST_TRY(take_text(g, key, &texts[i]));
        e->about.kind = SOTTO_META_STRINGS;
        e->value.texts = texts;
    } else if (values[type].real) {
        float *floats = st_model_array(g->file, n, sizeof *floats, key, g->err);
        for (int64_t i = 0; floats && i < n; i++)
            floats[i] = (float)values[type].real(&g->b);
        e->about.kind = SOTTO_META_FLOATS;
        e->value.floats = floats;
    } else {
        int64_t *ints = st_model_array(g->file, n, sizeof *ints, key, g->err);
        for (int64_t i = 0; ints && i < n; i++)
            ints[i] = values[type].whole(&g->b);
        e->about.kind = SOTTO_META_INTS;
        e->value.ints = ints;
    }
    return e->value.ints ? SOTTO_OK : SOTTO_E_MEMORY;
}

static sotto_status read_alignment(gguf *g, uint32_t type, const st_meta_entry *e)
{
    const bool whole = type == ST_GGUF_U32 && e->value.i > 0 && (e->value.i & (e->value.i - 1)) == 0;
    if (!whole)
        return st_fail(g->err, SOTTO_E_FORMAT, "general.alignment: expected a power of two as a 32-bit number");
    g->alignment = (size_t)e->value.i;
    return SOTTO_OK;
}

static sotto_status read_split(gguf *g, const char *key, const st_meta_entry *e)
{
    const struct {
        const char *key;
        int64_t least, most, *to;
    } numbers[] = {
        {"split.no", 0, UINT16_MAX, &g->split.no},
        {"split.count", 0, UINT16_MAX, &g->split.count},
        {"split.tensors.count", 0, INT64_MAX, &g->split.tensors},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(key, numbers[i].key) != 0)
            continue;
        if (e->about.kind != SOTTO_META_INT || e->value.i < numbers[i].least || e->value.i > numbers[i].most)
            return st_fail(g->err, SOTTO_E_FORMAT, "%s: expected a whole number of %lld to %lld", key,
                           (long long)numbers[i].least, (long long)numbers[i].most);
        *numbers[i].to = e->value.i;
    }
    return SOTTO_OK;
}

static sotto_status read_value(gguf *g, const char *key, uint32_t type, st_meta_entry *e)
{
    ST_TRY(check_type(g, key, type));
    if (type == ST_GGUF_ARRAY)
        return read_array(g, key, e);
    if (type == ST_GGUF_STRING) {
        e->about.kind = SOTTO_META_STRING;
        return take_text(g, key, &e->value.text);
    }
    if (values[type].real) {
        e->about.kind = SOTTO_META_FLOAT;
        e->value.f = values[type].real(&g->b);
    } else {
        e->value.i = values[type].whole(&g->b);
    }
    return g->b.failed ? cut_short(g, key) : SOTTO_OK;
}

static sotto_status read_pair(gguf *g, bool keep)
{
    const char *key;
    ST_TRY(take_name(g, "a key", MAX_KEY, &key));
    const size_t start = g->b.at;
    const uint32_t type = st_bytes_u32(&g->b);
    st_meta_entry e = {.about = {key, SOTTO_META_INT, 1}};
    ST_TRY(read_value(g, key, type, &e));
    e.raw = (st_text){(const char *)g->b.data + start, g->b.at - start};
    if (strcmp(key, "general.alignment") == 0)
        ST_TRY(read_alignment(g, type, &e));
    ST_TRY(read_split(g, key, &e));
    return keep ? st_model_put(g->file, key, &e, g->err) : SOTTO_OK;
}

/* ---- tensors ---- */

typedef struct extent {
    uint64_t start, end;
    const char *name;
} extent;

static sotto_status read_info(gguf *g, extent *where)
{
    sotto_model_tensor t = {0};
    ST_TRY(take_name(g, "the name of a tensor", MAX_NAME, &t.name));
    const uint32_t n_dims = st_bytes_u32(&g->b);
    if (!g->b.failed && n_dims > SOTTO_MAX_DIMS)
        return st_fail(g->err, SOTTO_E_FORMAT, "%.100s: %u dimensions, expected 0 to %d", t.name, (unsigned)n_dims,
                       (int)SOTTO_MAX_DIMS);
    t.n_dims = (int)n_dims;
    for (uint32_t i = 0; i < n_dims && !g->b.failed; i++)
        t.dim[i] = (int64_t)st_bytes_u64(&g->b);
    t.dtype = (sotto_dtype)st_bytes_i32(&g->b);
    where->start = st_bytes_u64(&g->b);
    if (g->b.failed)
        return cut_short(g, t.name);
    where->name = t.name;
    ST_TRY(st_check_listed(&t, &t.bytes, g->err));
    where->end = t.bytes; /* of the data; made an end when the data's start is known */
    return st_model_add_tensor(g->file, &t, g->err);
}

static int by_start(const void *a, const void *b)
{
    const extent *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* `first`: the file's first among all tensors of the model. */
static sotto_status place_tensors(gguf *g, int64_t first, extent *where, int64_t n)
{
    if (n == 0)
        return SOTTO_OK;
    size_t start;
    if (!st_align_size(g->b.at, g->alignment, &start) || start > g->b.size)
        return st_fail(g->err, SOTTO_E_FORMAT, "ends before the tensors, after %zu bytes", g->b.size);
    const size_t left = g->b.size - start;
    for (int64_t i = 0; i < n; i++) {
        sotto_model_tensor *t = &g->file->tensors[first + i];
        if (where[i].start % g->alignment != 0)
            return st_fail(g->err, SOTTO_E_FORMAT, "%.100s: offset %llu is no multiple of general.alignment, %zu",
                           t->name, (unsigned long long)where[i].start, g->alignment);
        if (where[i].start > left || t->bytes > left - where[i].start)
            return st_fail(g->err, SOTTO_E_FORMAT,
                           "%.100s: %zu bytes at offset %llu, but the file has %zu bytes of tensors", t->name, t->bytes,
                           (unsigned long long)where[i].start, left);
        t->data = g->b.data + start + where[i].start;
        where[i].end = where[i].start + t->bytes;
    }
    qsort(where, (size_t)n, sizeof *where, by_start);
    for (int64_t i = 1; i < n; i++)
        if (where[i].start < where[i - 1].end)
            return st_fail(g->err, SOTTO_E_FORMAT, "%.100s and %.100s overlap", where[i - 1].name, where[i].name);
    return SOTTO_OK;
}

static sotto_status read_header(gguf *g, uint64_t *n_tensors, uint64_t *n_pairs)
{
    enum { LEAST_PAIR = 13, LEAST_TENSOR = 25 };
    (void)st_bytes_u32(&g->b);
    const uint32_t version = st_bytes_u32(&g->b);
    if (!g->b.failed && version != 2 && version != 3)
        return st_fail(g->err, SOTTO_E_UNSUPPORTED, "GGUF version %u%s, expected 2 or 3", (unsigned)version,
                       version & 0xff000000u ? " (big-endian?)" : "");
    *n_tensors = st_bytes_u64(&g->b);
    *n_pairs = st_bytes_u64(&g->b);
    if (g->b.failed)
        return cut_short(g, "the header");
    const size_t left = st_bytes_left(&g->b);
    if (*n_tensors > left / LEAST_TENSOR || *n_pairs > left / LEAST_PAIR)
        return st_fail(g->err, SOTTO_E_FORMAT, "%llu tensors and %llu keys, but only %zu bytes are left",
                       (unsigned long long)*n_tensors, (unsigned long long)*n_pairs, left);
    return SOTTO_OK;
}

sotto_status st_gguf_read(sotto_model_file *file, const uint8_t *data, size_t size, bool with_metadata,
                          st_gguf_split *split, sotto_error *err)
{
    gguf g = {file, st_bytes_over(data, size), 32, {0, 0, -1}, err};
    uint64_t n_tensors = 0, n_pairs = 0;
    ST_TRY(read_header(&g, &n_tensors, &n_pairs));
    for (uint64_t i = 0; i < n_pairs; i++)
        ST_TRY(read_pair(&g, with_metadata));
    extent *where = st_alloc((size_t)n_tensors, sizeof *where);
    if (!where)
        return st_fail_memory(err, n_tensors * sizeof *where, "the list of tensors");
    const int64_t first = file->n_tensors;
    sotto_status status = SOTTO_OK;
    for (uint64_t i = 0; i < n_tensors && status == SOTTO_OK; i++)
        status = read_info(&g, &where[i]);
    if (status == SOTTO_OK)
        status = place_tensors(&g, first, where, (int64_t)n_tensors);
    st_free(where);
    *split = g.split;
    return status;
}

static sotto_status open_gguf(sotto_model_file *file, const uint8_t *data, size_t size, sotto_error *err)
{
    st_gguf_split split = {0, 0, -1};
    ST_TRY(st_gguf_read(file, data, size, true, &split, err));
    return split.count > 1 ? st_gguf_read_parts(file, &split, err) : SOTTO_OK;
}

const st_reader st_reader_gguf = {"gguf", probe, open_gguf, NULL};
