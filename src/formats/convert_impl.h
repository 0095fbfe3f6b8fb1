/* convert_impl.h: what a writer of one format gets: which tensors in which types, all sizes known. */
#ifndef SOTTO_SRC_FORMATS_CONVERT_IMPL_H
#define SOTTO_SRC_FORMATS_CONVERT_IMPL_H

#include "base/file.h"
#include "formats/convert_mix.h"
#include "formats/model_file_impl.h"

typedef struct st_plan_tensor {
    sotto_model_tensor source;
    sotto_dtype dtype;
    size_t bytes;            /* in dtype */
    const float *importance; /* of each column; NULL: all the same */
} st_plan_tensor;

typedef struct st_plan {
    const sotto_model_file *file;
    const sotto_convert_options *options;
    const st_mix *mix; /* NULL: types stay */
    bool language;     /* a model of the LLaMA family */
    st_plan_tensor *list;
    int64_t n;
    sotto_dtype main;     /* type of the matrices of a speech model */
    int file_type;        /* of GGUF; -1: as in the source */
    const float *filters; /* [n_mels, 201]; none in a language model */
    int64_t n_filters;
    float *importance; /* all rows of the list, one after another */
} st_plan;

/* Fills list, main, file_type and importance. What it allocates st_plan_free() frees. */
sotto_status st_plan_make(st_plan *plan, sotto_error *err);
void st_plan_free(st_plan *plan);

/* Little-endian numbers to a file; after the first failure the rest does nothing. */
typedef struct st_out {
    st_file_writer *writer;
    sotto_status status;
    sotto_error *err;
} st_out;

void st_out_bytes(st_out *o, const void *data, size_t n);
void st_out_number(st_out *o, uint64_t value, int bytes);
void st_out_zeros(st_out *o, size_t n);
/* The elements of one tensor in its type of the plan; counts progress. */
void st_out_tensor(st_out *o, const st_plan *plan, int64_t index);

sotto_status st_write_ggml(const st_plan *plan, st_out *o);
sotto_status st_write_gguf(const st_plan *plan, st_out *o);

#endif
