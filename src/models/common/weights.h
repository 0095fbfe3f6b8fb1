/* weights.h: from tensors of a model file to weights in a store. Every tensor of a model is one row of a list; the list is
 * walked once to declare (names, shapes and types are checked, sizes known) and once to upload. */
#ifndef SOTTO_SRC_MODELS_COMMON_WEIGHTS_H
#define SOTTO_SRC_MODELS_COMMON_WEIGHTS_H

#include "sotto/backend.h"
#include "sotto/model.h"

typedef enum st_weight_kind {
    ST_WEIGHT_VECTOR, /* f32 [n], parts joined */
    ST_WEIGHT_TABLE,  /* f32 [rows, n] */
    ST_WEIGHT_MATRIX, /* [rows, n] of a type that is chosen, parts joined by rows */
    ST_WEIGHT_CONV    /* file: [c_out, c_in, 3]; here: [c_out, 3 * c_in] with the kernel position outer */
} st_weight_kind;

enum { ST_WEIGHT_PARTS = 3, ST_WEIGHT_NAME = 96 };

typedef struct st_weight {
    sotto_tensor **out;
    st_weight_kind kind;
    int device;
    bool rows_only; /* a matrix that is never multiplied with: not packed */
    int n_parts;
    unsigned missing_is_zero;                   /* bit i: part i of a vector may be missing */
    char part[ST_WEIGHT_PARTS][ST_WEIGHT_NAME]; /* names in the file */
    int64_t rows[ST_WEIGHT_PARTS];              /* of each part; of a vector 1 */
    int64_t width[ST_WEIGHT_PARTS];             /* of each part; of matrices all the same */
} st_weight;

typedef struct st_weights {
    const sotto_model_file *file;
    sotto_store *store;
    const sotto_backend *backend; /* of the store: asked whether to stop */
    st_weight *list;
    int64_t count, cap;
    int device;     /* of the weights that are listed next */
    bool no_memory; /* while listing */
    /* The type a matrix is kept in when the file has it in `file`. Parts of which it says different things are kept in f32. */
    sotto_dtype (*resident)(const void *user, const st_weight *w, sotto_dtype file);
    const void *user;
} st_weights;

void st_weights_free(st_weights *l);
/* A weight without parts; NULL without memory, which st_weights_check() reports. */
st_weight *st_weights_add(st_weights *l, sotto_tensor **out, st_weight_kind kind);
/* The next part of w (NULL allowed): prefix and name together are its name in the file. */
void st_weight_part(st_weight *w, int64_t rows, int64_t width, const char *prefix, const char *name);
/* One of a single part. */
void st_weights_add_one(st_weights *l, sotto_tensor **out, st_weight_kind kind, int64_t rows, int64_t width,
                        const char *prefix, const char *name);
sotto_status st_weights_check(const st_weights *l, sotto_error *err);

/* The tensor of the file after its shape has been checked. */
sotto_status st_weight_find(const st_weights *l, const st_weight *w, int part, sotto_model_tensor *t, sotto_error *err);
/* Type and shape that the weight would be declared with. */
sotto_status st_weight_shape(const st_weights *l, const st_weight *w, sotto_dtype *dtype, int64_t dim[2],
                             sotto_error *err);
sotto_status st_weight_declare(st_weights *l, const st_weight *w, sotto_error *err);
/* Another owner of the file when weights are read at their place in it, to be freed after the store; else NULL. */
sotto_model_file *st_weights_retain_file(const st_weights *l);
/* Floats of scratch that uploading the list needs. */
int64_t st_weights_scratch(const st_weights *l);
/* The pages of the file that have been read are released. SOTTO_E_ABORTED when the backend is asked to stop. */
sotto_status st_weight_upload(st_weights *l, const st_weight *w, float *scratch, int64_t scratch_floats,
                              sotto_error *err);

/* Calls load() and, when the library chose the device and its memory does not do, again with fewer layers on it, in the
 * end with none; then try(), too, must not lack memory, which is to take what a session takes and give it back. What
 * load() made in *store is freed in between. */
typedef sotto_status (*st_load_step)(void *user, sotto_error *err);
sotto_status st_load_what_fits(sotto_backend *backend, int gpu_layers, int n_layers, const sotto_logger *logger,
                               sotto_store **store, st_load_step load, st_load_step try, void *user, sotto_error *err);

#endif
