/* model_file_impl.h: what the readers of one format each fill in. A reader maps its files, adds tensors that point into
 * the maps and puts metadata; names and keys are those of include/sotto/model.h whatever the format. */
#ifndef SOTTO_SRC_FORMATS_MODEL_FILE_IMPL_H
#define SOTTO_SRC_FORMATS_MODEL_FILE_IMPL_H

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "formats/meta_texts.h"

typedef struct st_meta_entry {
    sotto_meta about;
    union {
        int64_t i;
        double f;
        st_text text;
        const int64_t *ints;
        const float *floats;
        const st_text *texts;
    } value;
    st_text raw; /* type and value as a GGUF file has them, for copying; empty from other formats */
} st_meta_entry;

typedef struct st_name_index {
    const char *name;
    int64_t index;
} st_name_index;

typedef struct st_model_part {
    st_file_map map;
    const char *path;
} st_model_part;

struct sotto_model_file {
    atomic_int owners;
    st_arena *arena;
    sotto_model_file_options options;
    const char *format;
    const char *path;     /* as the caller gave it */
    const char *folder;   /* where the files beside the weights are; NULL for a file in memory */
    st_model_part *parts; /* every file that is mapped */
    int64_t n_parts, parts_cap;
    sotto_model_tensor *tensors;
    int64_t n_tensors, tensors_cap;
    st_name_index *by_name; /* sorted; made when a reader is done */
    st_meta_entry *meta;
    int64_t n_meta, meta_cap;
    st_name_index *by_key;
};

/* ---- readers ---- */

typedef struct st_reader {
    const char *name; /* what sotto_model_file_format() says */
    bool (*probe)(const uint8_t *data, size_t size);
    sotto_status (*open)(sotto_model_file *file, const uint8_t *data, size_t size, sotto_error *err);
    /* What can be told only when tensors are found by name; may be NULL. */
    sotto_status (*check)(const sotto_model_file *file, sotto_error *err);
} st_reader;

extern const st_reader st_reader_ct2, st_reader_ggml, st_reader_gguf, st_reader_safetensors, st_reader_shards;

/* Opens content that the caller keeps. `folder`: where the files beside it are, NULL when there are none. */
sotto_status st_model_open_bytes(const void *data, size_t size, const char *name, const char *folder,
                                 sotto_model_file **out, sotto_error *err);

/* ---- files ---- */

/* The mapped pages that the bytes lie in; 0: they are no part of a mapped file. */
size_t st_model_pages(const sotto_model_file *file, const void *data, size_t bytes, const void **memory);
/* Another owner, for weights that are read at their place: the file stays until it, too, calls sotto_model_file_free(). Pages
 * that the options keep in memory are let go, but for those that st_model_keep() then names. */
sotto_model_file *st_model_retain(const sotto_model_file *file);
void st_model_keep(const sotto_model_file *file, const void *data, size_t bytes);

/* Map a file that lives as long as the model file. */
sotto_status st_model_map(sotto_model_file *file, const char *path, const uint8_t **data, size_t *size,
                          sotto_error *err);
/* "folder/name" in the arena; NULL without memory. A file in memory has no folder: then *name itself is no path. */
const char *st_model_sibling(sotto_model_file *file, const char *name);
/* *found: the model has a folder and the folder has a file of that name. Fails without memory only. */
sotto_status st_model_has_sibling(sotto_model_file *file, const char *name, bool *found, sotto_error *err);

/* ---- filling ---- */

/* Bytes of a tensor of t's shape in the type; 0 for an unknown type, more than SOTTO_MAX_DIMS dimensions, a dimension
 * below 1, a width that is no whole number of blocks, or a size beyond size_t. */
size_t st_tensor_bytes(const sotto_model_tensor *t, sotto_dtype dtype);
/* The same from t->dtype, n_dims and dim, with a sentence that names t->name. */
sotto_status st_check_tensor(const sotto_model_tensor *t, size_t *bytes, sotto_error *err);
/* The same, where types of formats/file_types.h are fine too. */
sotto_status st_check_listed(const sotto_model_tensor *t, size_t *bytes, sotto_error *err);
/* t->name is copied; everything else is taken as it is: data must hold t->bytes. */
sotto_status st_model_add_tensor(sotto_model_file *file, const sotto_model_tensor *t, sotto_error *err);
/* Arrays and texts must live in the file or its arena; keys are copied. */
sotto_status st_model_put(sotto_model_file *file, const char *key, const st_meta_entry *entry, sotto_error *err);
sotto_status st_model_put_int(sotto_model_file *file, const char *key, int64_t value, sotto_error *err);
sotto_status st_model_put_text(sotto_model_file *file, const char *key, const char *value, sotto_error *err);
sotto_status st_model_put_ints(sotto_model_file *file, const char *key, const int64_t *values, int64_t n,
                               sotto_error *err);
sotto_status st_model_put_floats(sotto_model_file *file, const char *key, const float *values, int64_t n,
                                 sotto_error *err);
sotto_status st_model_put_texts(sotto_model_file *file, const char *key, const st_text *values, int64_t n,
                                sotto_error *err);
/* Arena memory for n elements; NULL (and err) on overflow or without memory. */
void *st_model_array(sotto_model_file *file, int64_t n, size_t element, const char *what, sotto_error *err);

#endif
