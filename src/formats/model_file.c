/* model_file.c: opening by content and the common part of all formats. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "formats/file_types.h"
#include "formats/model_file_impl.h"
#include "formats/sniff.h"
#include "sotto/quant.h"

/* ---- filling ---- */

/* Bytes of a tensor whose blocks of `block` elements take `block_bytes` each; 0 when it cannot be. */
static size_t size_of(const sotto_model_tensor *t, int64_t block, size_t block_bytes)
{
    if (t->n_dims < 0 || t->n_dims > SOTTO_MAX_DIMS || block == 0)
        return 0;
    const int64_t width = t->n_dims > 0 ? t->dim[0] : 1;
    size_t total;
    if (width < 1 || width % block != 0 || (uint64_t)width > SIZE_MAX ||
        !st_mul_size((size_t)(width / block), block_bytes, &total))
        return 0;
    for (int i = 1; i < t->n_dims; i++)
        if (t->dim[i] < 1 || (uint64_t)t->dim[i] > SIZE_MAX || !st_mul_size(total, (size_t)t->dim[i], &total))
            return 0;
    return total;
}

size_t st_tensor_bytes(const sotto_model_tensor *t, sotto_dtype dtype)
{
    return size_of(t, sotto_dtype_block(dtype), sotto_dtype_bytes(dtype));
}

static sotto_status fail_type(const sotto_model_tensor *t, sotto_error *err)
{
    const char *name = sotto_model_dtype_name(t->dtype);
    if (name)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%.100s: elements of type %s are not supported", t->name, name);
    return st_fail(err, SOTTO_E_UNSUPPORTED, "%.100s: element type %d is not known", t->name, (int)t->dtype);
}

static sotto_status check_size(const sotto_model_tensor *t, int64_t block, size_t block_bytes, size_t *bytes,
                               sotto_error *err)
{
    *bytes = size_of(t, block, block_bytes);
    if (*bytes > 0)
        return SOTTO_OK;
    for (int i = 0; i < t->n_dims; i++)
        if (t->dim[i] < 1)
            return st_fail(err, SOTTO_E_FORMAT, "%.100s: dimension %d is %lld, expected at least 1", t->name, i,
                           (long long)t->dim[i]);
    const int64_t width = t->n_dims > 0 ? t->dim[0] : 1;
    if (width % block != 0)
        return st_fail(err, SOTTO_E_FORMAT, "%.100s: rows of %lld elements, expected a multiple of %lld for %s",
                       t->name, (long long)width, (long long)block, sotto_model_dtype_name(t->dtype));
    return st_fail(err, SOTTO_E_FORMAT, "%.100s: its dimensions are too large", t->name);
}

sotto_status st_check_tensor(const sotto_model_tensor *t, size_t *bytes, sotto_error *err)
{
    const int64_t block = sotto_dtype_block(t->dtype);
    return block ? check_size(t, block, sotto_dtype_bytes(t->dtype), bytes, err) : fail_type(t, err);
}

sotto_status st_check_listed(const sotto_model_tensor *t, size_t *bytes, sotto_error *err)
{
    const st_file_type *type = st_file_type_of((int)t->dtype);
    return type ? check_size(t, type->block, type->bytes, bytes, err) : st_check_tensor(t, bytes, err);
}

void *st_model_array(sotto_model_file *file, int64_t n, size_t element, const char *what, sotto_error *err)
{
    size_t bytes;
    if (n < 0 || (uint64_t)n > SIZE_MAX || !st_mul_size((size_t)n, element, &bytes) || bytes > PTRDIFF_MAX) {
        (void)st_fail(err, SOTTO_E_FORMAT, "%s: %lld elements are more than memory can hold", what, (long long)n);
        return NULL;
    }
    void *block = st_arena_alloc(file->arena, bytes ? bytes : 1);
    if (!block)
        (void)st_fail_memory(err, bytes, what);
    return block;
}

sotto_status st_model_add_tensor(sotto_model_file *file, const sotto_model_tensor *t, sotto_error *err)
{
    if (!st_grow(&file->tensors, &file->tensors_cap, file->n_tensors + 1, sizeof *file->tensors))
        return st_fail_memory(err, (uint64_t)(file->n_tensors + 1) * sizeof *file->tensors, "the list of tensors");
    sotto_model_tensor *to = &file->tensors[file->n_tensors];
    *to = *t;
    for (int i = t->n_dims; i < SOTTO_MAX_DIMS; i++)
        to->dim[i] = 1;
    to->name = st_arena_strdup(file->arena, t->name, strlen(t->name));
    if (!to->name)
        return st_fail_memory(err, strlen(t->name) + 1, "the name of a tensor");
    file->n_tensors++;
    return SOTTO_OK;
}

sotto_status st_model_put(sotto_model_file *file, const char *key, const st_meta_entry *entry, sotto_error *err)
{
    if (!st_grow(&file->meta, &file->meta_cap, file->n_meta + 1, sizeof *file->meta))
        return st_fail_memory(err, (uint64_t)(file->n_meta + 1) * sizeof *file->meta, "metadata");
    st_meta_entry *to = &file->meta[file->n_meta];
    *to = *entry;
    to->about.key = st_arena_strdup(file->arena, key, strlen(key));
    if (!to->about.key)
        return st_fail_memory(err, strlen(key) + 1, "a key of the metadata");
    file->n_meta++;
    return SOTTO_OK;
}

sotto_status st_model_put_int(sotto_model_file *file, const char *key, int64_t value, sotto_error *err)
{
    return st_model_put(file, key, &(st_meta_entry){.about = {NULL, SOTTO_META_INT, 1}, .value = {.i = value}}, err);
}

sotto_status st_model_put_text(sotto_model_file *file, const char *key, const char *value, sotto_error *err)
{
    return st_model_put(
        file, key, &(st_meta_entry){.about = {NULL, SOTTO_META_STRING, 1}, .value = {.text = {value, strlen(value)}}},
        err);
}

sotto_status st_model_put_ints(sotto_model_file *file, const char *key, const int64_t *values, int64_t n,
                               sotto_error *err)
{
    return st_model_put(file, key, &(st_meta_entry){.about = {NULL, SOTTO_META_INTS, n}, .value = {.ints = values}},
                        err);
}

sotto_status st_model_put_floats(sotto_model_file *file, const char *key, const float *values, int64_t n,
                                 sotto_error *err)
{
    return st_model_put(file, key, &(st_meta_entry){.about = {NULL, SOTTO_META_FLOATS, n}, .value = {.floats = values}},
                        err);
}

sotto_status st_model_put_texts(sotto_model_file *file, const char *key, const st_text *values, int64_t n,
                                sotto_error *err)
{
    return st_model_put(file, key, &(st_meta_entry){.about = {NULL, SOTTO_META_STRINGS, n}, .value = {.texts = values}},
                        err);
}

/* ---- files ---- */

sotto_status st_model_map(sotto_model_file *file, const char *path, const uint8_t **data, size_t *size, sotto_error *err)
{
    if (!st_grow(&file->parts, &file->parts_cap, file->n_parts + 1, sizeof *file->parts))
        return st_fail_memory(err, (uint64_t)(file->n_parts + 1) * sizeof *file->parts, "the list of files");
    st_model_part *part = &file->parts[file->n_parts];
    part->path = st_arena_strdup(file->arena, path, strlen(path));
    if (!part->path)
        return st_fail_memory(err, strlen(path) + 1, "the path of a model");
    ST_TRY(file->options.no_mmap ? st_file_map_read(path, &part->map, err) : st_file_map_open(path, &part->map, err));
    sotto_error reason;
    if (file->options.mlock && file->options.no_mmap)
        st_log(&file->options.logger, SOTTO_LOG_WARNING,
               "mlock has no effect: the file is read into memory, not mapped");
    else if (file->options.mlock && st_file_map_lock(&part->map, path, &reason) != SOTTO_OK)
        st_log(&file->options.logger, SOTTO_LOG_WARNING, "%s", reason.text);
    file->n_parts++;
    *data = part->map.data;
    *size = part->map.size;
    return SOTTO_OK;
}

const char *st_model_sibling(sotto_model_file *file, const char *name)
{
    char *joined = st_path_join(file->folder, name);
    const char *path = joined ? st_arena_strdup(file->arena, joined, strlen(joined)) : NULL;
    st_free(joined);
    return path;
}

sotto_status st_model_has_sibling(sotto_model_file *file, const char *name, bool *found, sotto_error *err)
{
    *found = false;
    if (!file->folder)
        return SOTTO_OK;
    char *joined = st_path_join(file->folder, name);
    if (!joined)
        return st_fail_memory(err, strlen(file->folder) + strlen(name), "a path");
    *found = st_path_kind_of(joined) == ST_PATH_FILE;
    st_free(joined);
    return SOTTO_OK;
}

/* ---- opening ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(((const st_name_index *)a)->name, ((const st_name_index *)b)->name);
}

static sotto_status sort_names(st_name_index *list, int64_t n, const char *what, sotto_error *err)
{
    if (n > 1)
        qsort(list, (size_t)n, sizeof *list, by_text);
    for (int64_t i = 1; i < n; i++)
        if (strcmp(list[i - 1].name, list[i].name) == 0)
            return st_fail(err, SOTTO_E_FORMAT, "%s \"%.100s\" is there twice", what, list[i].name);
    return SOTTO_OK;
}

static sotto_status finish(sotto_model_file *file, sotto_error *err)
{
    file->by_name = st_model_array(file, file->n_tensors, sizeof *file->by_name, "names of tensors", err);
    file->by_key = st_model_array(file, file->n_meta, sizeof *file->by_key, "keys of metadata", err);
    if (!file->by_name || !file->by_key)
        return SOTTO_E_MEMORY;
    for (int64_t i = 0; i < file->n_tensors; i++)
        file->by_name[i] = (st_name_index){file->tensors[i].name, i};
    for (int64_t i = 0; i < file->n_meta; i++)
        file->by_key[i] = (st_name_index){file->meta[i].about.key, i};
    ST_TRY(sort_names(file->by_name, file->n_tensors, "tensor", err));
    return sort_names(file->by_key, file->n_meta, "key", err);
}

static sotto_status read_bytes(sotto_model_file *file, const uint8_t *data, size_t size, sotto_error *err)
{
    const st_reader *reader = st_sniff(data, size);
    if (!reader)
        return st_sniff_fail(data, size, err);
    file->format = reader->name;
    ST_TRY(reader->open(file, data, size, err));
    ST_TRY(finish(file, err));
    return reader->check ? reader->check(file, err) : SOTTO_OK;
}

/* The folder of a path: what is before the last separator, "." without one. */
static const char *folder_of(sotto_model_file *file, const char *path)
{
    size_t n = strlen(path);
    while (n > 0 && path[n - 1] != '/' && path[n - 1] != '\\')
        n--;
    if (n == 0)
        return st_arena_strdup(file->arena, ".", 1);
    return st_arena_strdup(file->arena, path, n > 1 ? n - 1 : 1);
}

static sotto_status open_path(sotto_model_file *file, const char *path, sotto_error *err)
{
    const bool is_folder = st_path_kind_of(path) == ST_PATH_FOLDER;
    file->folder = is_folder ? file->path : folder_of(file, path);
    if (!file->folder)
        return st_fail_memory(err, strlen(path), "the path of a model");
    const char *weights = path;
    if (is_folder) {
        bool found = false;
        int i = 0;
        for (; st_folder_weights[i]; i++) {
            ST_TRY(st_model_has_sibling(file, st_folder_weights[i], &found, err));
            if (found)
                break;
        }
        if (!found)
            return st_sniff_folder_fail(file, err);
        weights = st_model_sibling(file, st_folder_weights[i]);
        if (!weights)
            return st_fail_memory(err, strlen(path), "the path of a model");
    }
    const uint8_t *data;
    size_t size;
    ST_TRY(st_model_map(file, weights, &data, &size, err));
    const sotto_status status = read_bytes(file, data, size, err);
    return status == SOTTO_OK ? status : st_fail_context(err, status, "%s", weights);
}

static sotto_status create(const char *path, sotto_model_file **out, sotto_error *err)
{
    sotto_model_file *file = st_calloc(1, sizeof *file);
    if (!file || !(file->arena = st_arena_create()) || !(file->path = st_arena_strdup(file->arena, path, strlen(path)))) {
        sotto_model_file_free(file);
        return st_fail_memory(err, sizeof *file, "a model file");
    }
    atomic_init(&file->owners, 1);
    file->format = "unknown";
    *out = file;
    return SOTTO_OK;
}

sotto_status sotto_model_file_open(const char *path, sotto_model_file **out, sotto_error *err)
{
    return sotto_model_file_open_with(path, NULL, out, err);
}

sotto_status sotto_model_file_open_with(const char *path, const sotto_model_file_options *options,
                                        sotto_model_file **out, sotto_error *err)
{
    if (!out || !path)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_model_file_open: %s is NULL", out ? "path" : "out");
    *out = NULL;
    sotto_model_file *file;
    ST_TRY(create(path, &file, err));
    if (options)
        file->options = *options;
    const sotto_status status = open_path(file, path, err);
    if (status != SOTTO_OK) {
        sotto_model_file_free(file);
        return status;
    }
    *out = file;
    return SOTTO_OK;
}

sotto_status st_model_open_bytes(const void *data, size_t size, const char *name, const char *folder,
                                 sotto_model_file **out, sotto_error *err)
{
    *out = NULL;
    sotto_model_file *file;
    ST_TRY(create(name, &file, err));
    file->folder = folder;
    const sotto_status status = read_bytes(file, data, size, err);
    if (status != SOTTO_OK) {
        sotto_model_file_free(file);
        return st_fail_context(err, status, "%s", name);
    }
    *out = file;
    return SOTTO_OK;
}

sotto_status sotto_model_file_open_memory(const void *data, size_t size, const char *name, sotto_model_file **out,
                                          sotto_error *err)
{
    if (!out || (!data && size > 0))
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_model_file_open_memory: %s is NULL", out ? "data" : "out");
    return st_model_open_bytes(data, size, name ? name : "model in memory", NULL, out, err);
}

void sotto_model_file_free(sotto_model_file *file)
{
    if (!file || atomic_fetch_sub(&file->owners, 1) > 1)
        return;
    for (int64_t i = 0; i < file->n_parts; i++)
        st_file_map_close(&file->parts[i].map);
    st_free(file->parts);
    st_free(file->tensors);
    st_free(file->meta);
    st_arena_free(file->arena);
    st_free(file);
}

const char *sotto_model_file_format(const sotto_model_file *file)
{
    return file ? file->format : "unknown";
}

/* ---- tensors ---- */

/* -1 when there is none. */
static int64_t find_name(const st_name_index *list, int64_t n, const char *name)
{
    const st_name_index key = {name, 0};
    const st_name_index *found = n > 0 ? bsearch(&key, list, (size_t)n, sizeof *list, by_text) : NULL;
    return found ? found->index : -1;
}

int64_t sotto_model_tensor_count(const sotto_model_file *file)
{
    return file ? file->n_tensors : 0;
}

sotto_status sotto_model_tensor_get(const sotto_model_file *file, int64_t index, sotto_model_tensor *out)
{
    if (!file || !out || index < 0 || index >= file->n_tensors)
        return SOTTO_E_ARGUMENT;
    *out = file->tensors[index];
    return SOTTO_OK;
}

sotto_status sotto_model_tensor_find(const sotto_model_file *file, const char *name, sotto_model_tensor *out)
{
    if (!file || !name || !out)
        return SOTTO_E_ARGUMENT;
    const int64_t i = find_name(file->by_name, file->n_tensors, name);
    if (i < 0)
        return SOTTO_E_NOT_FOUND;
    *out = file->tensors[i];
    return sotto_dtype_block(out->dtype) ? SOTTO_OK : SOTTO_E_UNSUPPORTED;
}

sotto_status sotto_model_tensor_need(const sotto_model_file *file, const char *name, sotto_model_tensor *out,
                                     sotto_error *err)
{
    const sotto_status status = sotto_model_tensor_find(file, name, out);
    if (status == SOTTO_E_ARGUMENT)
        return st_fail(err, status, "sotto_model_tensor_need: an argument is NULL");
    if (status == SOTTO_E_NOT_FOUND)
        return st_fail(err, SOTTO_E_FORMAT, "%.100s: missing; is the file complete?", name);
    return status == SOTTO_OK ? status : fail_type(out, err);
}

sotto_status sotto_model_tensor_f32(const sotto_model_tensor *t, int64_t row, int64_t n, float *out, sotto_error *err)
{
    if (!t || !out)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_model_tensor_f32: %s is NULL", t ? "out" : "t");
    int64_t rows = 1;
    for (int i = 1; i < t->n_dims; i++)
        rows *= t->dim[i];
    if (row < 0 || n < 0 || row > rows || n > rows - row)
        return st_fail(err, SOTTO_E_ARGUMENT, "%s: rows %lld to %lld of %lld", t->name, (long long)row,
                       (long long)(row + n), (long long)rows);
    const int64_t width = t->n_dims > 0 ? t->dim[0] : 1;
    const size_t row_bytes = sotto_dtype_row_bytes(t->dtype, width);
    if (!sotto_row_to_f32(t->dtype, (const uint8_t *)t->data + (size_t)row * row_bytes, out, n * width))
        return fail_type(t, err);
    if (t->row_scale)
        for (int64_t r = 0; r < n; r++)
            for (int64_t i = 0; i < width; i++)
                out[r * width + i] *= t->row_scale[row + r];
    return SOTTO_OK;
}

void sotto_model_tensor_release(const sotto_model_file *file, const sotto_model_tensor *t)
{
    if (!file || !t || file->options.mlock)
        return;
    const uintptr_t at = (uintptr_t)t->data;
    for (int64_t i = 0; i < file->n_parts; i++) {
        const st_file_map *map = &file->parts[i].map;
        const uintptr_t start = (uintptr_t)map->data;
        if (map->data && at >= start && at - start < map->size)
            st_file_map_release(map, at - start, t->bytes);
    }
}

/* ---- staying ---- */

/* The map that the bytes are in; NULL: none. */
static const st_file_map *map_of(const sotto_model_file *file, const void *data, size_t bytes)
{
    const uintptr_t at = (uintptr_t)data;
    for (int64_t i = 0; i < file->n_parts; i++) {
        const st_file_map *map = &file->parts[i].map;
        const uintptr_t start = (uintptr_t)map->data;
        if (map->data && at >= start && at - start <= map->size && bytes <= map->size - (at - start))
            return map;
    }
    return NULL;
}

size_t st_model_pages(const sotto_model_file *file, const void *data, size_t bytes, const void **memory)
{
    const st_file_map *const map = map_of(file, data, bytes);
    *memory = map ? map->data : NULL;
    return map ? st_file_map_pages(map) : 0;
}

sotto_model_file *st_model_retain(const sotto_model_file *file)
{
    sotto_model_file *const own = (sotto_model_file *)(uintptr_t)file; /* the count is all that changes */
    atomic_fetch_add(&own->owners, 1);
    for (int64_t i = 0; i < file->n_parts && file->options.mlock; i++) {
        st_file_map_unlock(&file->parts[i].map);
        st_file_map_release(&file->parts[i].map, 0, file->parts[i].map.size);
    }
    return own;
}

void st_model_keep(const sotto_model_file *file, const void *data, size_t bytes)
{
    const st_file_map *const map = map_of(file, data, bytes);
    if (map)
        st_file_map_keep(map, (size_t)((const uint8_t *)data - map->data), bytes, file->options.mlock);
}

/* ---- metadata ---- */

int64_t sotto_meta_count(const sotto_model_file *file)
{
    return file ? file->n_meta : 0;
}

sotto_status sotto_meta_get(const sotto_model_file *file, int64_t index, sotto_meta *out)
{
    if (!file || !out || index < 0 || index >= file->n_meta)
        return SOTTO_E_ARGUMENT;
    *out = file->meta[index].about;
    return SOTTO_OK;
}

static sotto_status find_meta(const sotto_model_file *f, const char *key, sotto_meta_kind kind,
                              const st_meta_entry **out, sotto_error *err)
{
    static const char *const kinds[] = {
        "a whole number",    "a number",          "a text", "whole numbers", "an array of numbers",
        "an array of texts", "an array of arrays"};
    if (!f || !key)
        return st_fail(err, SOTTO_E_ARGUMENT, "metadata: the %s is NULL", f ? "key" : "file");
    const int64_t i = find_name(f->by_key, f->n_meta, key);
    if (i < 0)
        return st_fail(err, SOTTO_E_NOT_FOUND, "%s: missing", key);
    if (f->meta[i].about.kind != kind)
        return st_fail(err, SOTTO_E_FORMAT, "%s: is %s, expected %s", key, kinds[f->meta[i].about.kind], kinds[kind]);
    *out = &f->meta[i];
    return SOTTO_OK;
}

static sotto_status no_out(const char *key, sotto_error *err)
{
    return st_fail(err, SOTTO_E_ARGUMENT, "%.100s: an out-pointer is NULL", key ? key : "metadata");
}

sotto_status sotto_meta_int(const sotto_model_file *f, const char *key, int64_t *out, sotto_error *err)
{
    const st_meta_entry *e;
    if (!out)
        return no_out(key, err);
    *out = 0;
    ST_TRY(find_meta(f, key, SOTTO_META_INT, &e, err));
    *out = e->value.i;
    return SOTTO_OK;
}

sotto_status sotto_meta_float(const sotto_model_file *f, const char *key, double *out, sotto_error *err)
{
    const st_meta_entry *e;
    if (!out)
        return no_out(key, err);
    *out = 0;
    ST_TRY(find_meta(f, key, SOTTO_META_FLOAT, &e, err));
    *out = e->value.f;
    return SOTTO_OK;
}

sotto_status sotto_meta_string(const sotto_model_file *f, const char *key, const char **out, size_t *length,
                               sotto_error *err)
{
    const st_meta_entry *e;
    if (!out || !length)
        return no_out(key, err);
    *out = NULL;
    *length = 0;
    ST_TRY(find_meta(f, key, SOTTO_META_STRING, &e, err));
    *out = e->value.text.data;
    *length = e->value.text.n;
    return SOTTO_OK;
}

sotto_status sotto_meta_ints(const sotto_model_file *f, const char *key, const int64_t **out, int64_t *count,
                             sotto_error *err)
{
    const st_meta_entry *e;
    if (!out || !count)
        return no_out(key, err);
    *out = NULL;
    *count = 0;
    ST_TRY(find_meta(f, key, SOTTO_META_INTS, &e, err));
    *out = e->value.ints;
    *count = e->about.count;
    return SOTTO_OK;
}

sotto_status sotto_meta_floats(const sotto_model_file *f, const char *key, const float **out, int64_t *count,
                               sotto_error *err)
{
    const st_meta_entry *e;
    if (!out || !count)
        return no_out(key, err);
    *out = NULL;
    *count = 0;
    ST_TRY(find_meta(f, key, SOTTO_META_FLOATS, &e, err));
    *out = e->value.floats;
    *count = e->about.count;
    return SOTTO_OK;
}

sotto_status st_meta_texts(const sotto_model_file *f, const char *key, const st_text **out, int64_t *count,
                           sotto_error *err)
{
    const st_meta_entry *e;
    *out = NULL;
    *count = 0;
    ST_TRY(find_meta(f, key, SOTTO_META_STRINGS, &e, err));
    *out = e->value.texts;
    *count = e->about.count;
    return SOTTO_OK;
}

sotto_status sotto_meta_string_at(const sotto_model_file *f, const char *key, int64_t index, const char **out,
                                  size_t *length, sotto_error *err)
{
    const st_meta_entry *e;
    if (!out || !length)
        return no_out(key, err);
    *out = NULL;
    *length = 0;
    ST_TRY(find_meta(f, key, SOTTO_META_STRINGS, &e, err));
    if (index < 0 || index >= e->about.count)
        return st_fail(err, SOTTO_E_ARGUMENT, "%s: element %lld of %lld", key, (long long)index,
                       (long long)e->about.count);
    *out = e->value.texts[index].data;
    *length = e->value.texts[index].n;
    return SOTTO_OK;
}
