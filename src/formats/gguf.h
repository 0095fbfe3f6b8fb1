/* gguf.h: what readers and writer of GGUF share. */
#ifndef SOTTO_SRC_FORMATS_GGUF_H
#define SOTTO_SRC_FORMATS_GGUF_H

#include "formats/convert_impl.h"

/* Types of metadata values. */
enum {
    ST_GGUF_U8,
    ST_GGUF_I8,
    ST_GGUF_U16,
    ST_GGUF_I16,
    ST_GGUF_U32,
    ST_GGUF_I32,
    ST_GGUF_F32,
    ST_GGUF_BOOL,
    ST_GGUF_STRING,
    ST_GGUF_ARRAY,
    ST_GGUF_U64,
    ST_GGUF_I64,
    ST_GGUF_F64,
    ST_GGUF_TYPES
};

/* ---- writing ---- */

enum { ST_GGUF_ALIGNMENT = 32 };

void st_gguf_put_text(st_out *o, const char *text, size_t n);
/* A key and the type of its value, which follows. */
void st_gguf_put_key(st_out *o, const char *key, int type);
/* The same for an array of n elements. */
void st_gguf_put_array(st_out *o, const char *key, int type, int64_t n);
void st_gguf_put_u32(st_out *o, const char *key, uint32_t value);
/* Bytes from `at` to the next place where a tensor may begin. */
size_t st_gguf_padding(uint64_t at);

/* The tensors of an importance matrix's file, into one that is empty. */
sotto_status st_imatrix_read(sotto_imatrix *m, const sotto_model_file *f, sotto_error *err);
/* What an importance matrix says of where it comes from. */
const char *st_imatrix_dataset(const sotto_imatrix *m);
int64_t st_imatrix_chunks(const sotto_imatrix *m);

/* ---- reading ---- */

/* What one file of a model in parts says of itself; count is 0 in a model of one file. */
typedef struct st_gguf_split {
    int64_t no, count;
    int64_t tensors; /* of all parts together; -1 when the file does not say */
} st_gguf_split;

/* One file: adds its tensors, and its metadata too if asked to. */
sotto_status st_gguf_read(sotto_model_file *file, const uint8_t *data, size_t size, bool with_metadata,
                          st_gguf_split *split, sotto_error *err);
/* The other parts of a model whose first file is read. */
sotto_status st_gguf_read_parts(sotto_model_file *file, const st_gguf_split *first, sotto_error *err);

#endif
