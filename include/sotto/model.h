/* model.h: model files of any supported format as named tensors and metadata.
 *
 * Formats are told apart by content, never by name: ggml Whisper `.bin`, GGUF, a CTranslate2 folder (or its model.bin),
 * a Hugging Face folder (safetensors, or one .safetensors file). Whatever the format, tensors carry the names of the
 * original Whisper checkpoint ("encoder.blocks.0.attn.query.weight"), and metadata carries the keys of our GGUF layout
 * (docs/formats.md): "general.architecture", "whisper.n_mels", "tokenizer.ggml.tokens", ...
 * A model file does not change after opening and may be read from several threads. */
#ifndef SOTTO_MODEL_H
#define SOTTO_MODEL_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sotto_model_file sotto_model_file;

/* How the files are read; all zero is the ordinary way. */
typedef struct sotto_model_file_options {
    bool no_mmap; /* read whole files into memory instead of mapping them: for disks that may go away */
    /* Keep the mapped files' pages in memory; a warning in the log where the system's limits forbid it, or with no_mmap, where
     * nothing is mapped. */
    bool mlock;
    sotto_logger logger;
} sotto_model_file_options;

/* Maps the files; no tensor is read. A GGUF model in parts is opened by its first part, the others lie beside it. Returns SOTTO_E_NOT_FOUND, SOTTO_E_IO, SOTTO_E_FORMAT, SOTTO_E_UNSUPPORTED or
 * SOTTO_E_MEMORY with a sentence that names file and field. Files need not be trusted. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_model_file_open(const char *path, sotto_model_file **out, sotto_error *err);
/* The same with options (NULL: the ordinary way). */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_model_file_open_with(const char *path,
                                                                  const sotto_model_file_options *options,
                                                                  sotto_model_file **out, sotto_error *err);
/* From memory that the caller keeps until the file is freed: a ggml .bin, a GGUF or a single safetensors. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_model_file_open_memory(const void *data, size_t size, const char *name,
                                                                    sotto_model_file **out, sotto_error *err);
SOTTO_API void sotto_model_file_free(sotto_model_file *file);
/* "ggml", "gguf", "ctranslate2" or "safetensors". */
SOTTO_API const char *sotto_model_file_format(const sotto_model_file *file);

typedef struct sotto_model_tensor {
    const char *name; /* valid as long as the file */
    sotto_dtype dtype; /* GGUF files may hold others than the enumeration's: they are listed, but their values are not known */
    int n_dims;
    int64_t dim[SOTTO_MAX_DIMS]; /* innermost first */
    const void *data;            /* rows of dtype, in the file; valid as long as the file */
    size_t bytes;
    const float *row_scale; /* SOTTO_I8 only: value = data * row_scale[row]; NULL otherwise */
} sotto_model_tensor;

SOTTO_API int64_t sotto_model_tensor_count(const sotto_model_file *file);
SOTTO_API SOTTO_NODISCARD sotto_status sotto_model_tensor_get(const sotto_model_file *file, int64_t index,
                                                              sotto_model_tensor *out);
/* SOTTO_E_NOT_FOUND when there is none of that name, SOTTO_E_UNSUPPORTED when its type is not in the enumeration. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_model_tensor_find(const sotto_model_file *file, const char *name,
                                                               sotto_model_tensor *out);
/* The same for a tensor that has to be there, with a sentence; a missing one is SOTTO_E_FORMAT. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_model_tensor_need(const sotto_model_file *file, const char *name,
                                                               sotto_model_tensor *out, sotto_error *err);
/* As sotto_dtype_name(), and also the names of types that only files have ("iq2_xxs"); NULL for any other number. */
SOTTO_API const char *sotto_model_dtype_name(sotto_dtype dtype);
/* Rows [row, row + n) of the tensor as f32 (row scales applied, block types expanded). out holds n * dim[0] floats. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_model_tensor_f32(const sotto_model_tensor *t, int64_t row, int64_t n,
                                                              float *out, sotto_error *err);
/* The file pages of the tensor are not needed for now; they may be read again. */
SOTTO_API void sotto_model_tensor_release(const sotto_model_file *file, const sotto_model_tensor *t);

typedef enum sotto_meta_kind {
    SOTTO_META_INT, /* any integer or bool */
    SOTTO_META_FLOAT,
    SOTTO_META_STRING, /* bytes; not necessarily UTF-8 */
    SOTTO_META_INTS,
    SOTTO_META_FLOATS,
    SOTTO_META_STRINGS,
    SOTTO_META_NESTED /* an array of arrays: its values cannot be asked for */
} sotto_meta_kind;

typedef struct sotto_meta {
    const char *key;
    sotto_meta_kind kind;
    int64_t count; /* of an array, else 1 */
} sotto_meta;

SOTTO_API int64_t sotto_meta_count(const sotto_model_file *file);
SOTTO_API SOTTO_NODISCARD sotto_status sotto_meta_get(const sotto_model_file *file, int64_t index, sotto_meta *out);
/* Each returns SOTTO_E_NOT_FOUND for a missing key, SOTTO_E_FORMAT for another kind, with the key in err.
 * Pointers are valid as long as the file. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_meta_int(const sotto_model_file *f, const char *key, int64_t *out,
                                                      sotto_error *err);
SOTTO_API SOTTO_NODISCARD sotto_status sotto_meta_float(const sotto_model_file *f, const char *key, double *out,
                                                        sotto_error *err);
SOTTO_API SOTTO_NODISCARD sotto_status sotto_meta_string(const sotto_model_file *f, const char *key, const char **out,
                                                         size_t *length, sotto_error *err);
SOTTO_API SOTTO_NODISCARD sotto_status sotto_meta_ints(const sotto_model_file *f, const char *key, const int64_t **out,
                                                       int64_t *count, sotto_error *err);
SOTTO_API SOTTO_NODISCARD sotto_status sotto_meta_floats(const sotto_model_file *f, const char *key, const float **out,
                                                         int64_t *count, sotto_error *err);
/* String `index` of an array of strings. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_meta_string_at(const sotto_model_file *f, const char *key, int64_t index,
                                                            const char **out, size_t *length, sotto_error *err);

/* How much each column of a model's matrices matters: sums of the squares of what the matrix is multiplied with. Files are
 * GGUF with the layout of llama.cpp's. One thread at a time. */
typedef struct sotto_imatrix sotto_imatrix;

SOTTO_API SOTTO_NODISCARD sotto_status sotto_imatrix_create(sotto_imatrix **out, sotto_error *err);
/* From a file; SOTTO_E_FORMAT for one that is no importance matrix. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_imatrix_load(const char *path, sotto_imatrix **out, sotto_error *err);
SOTTO_API void sotto_imatrix_free(sotto_imatrix *m);
/* Adds, for the tensor of that name, squares[i] = the sum over `count` rows of the square of column i, n columns. Called again
 * for the same tensor n must be the same. Squares must be finite and at least 0. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_imatrix_add(sotto_imatrix *m, const char *name, int64_t n,
                                                         const float *squares, int64_t count, sotto_error *err);
/* What the file says about where the numbers come from: the text's name, pieces read and tokens of each. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_imatrix_describe(sotto_imatrix *m, const char *dataset, int64_t chunks,
                                                              int64_t chunk_size, sotto_error *err);
SOTTO_API SOTTO_NODISCARD sotto_status sotto_imatrix_save(const sotto_imatrix *m, const char *path, sotto_error *err);

/* Number of tensors, and what is known of each, sorted by name. */
SOTTO_API int64_t sotto_imatrix_count(const sotto_imatrix *m);
typedef struct sotto_imatrix_entry {
    const char *name; /* valid as long as the matrix; squares until the next call that changes it */
    int64_t n, rows;
    const float *squares; /* sums; divided by rows they are means */
} sotto_imatrix_entry;
SOTTO_API SOTTO_NODISCARD sotto_status sotto_imatrix_get(const sotto_imatrix *m, int64_t index,
                                                         sotto_imatrix_entry *out);
/* SOTTO_E_NOT_FOUND when there is none for that tensor. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_imatrix_find(const sotto_imatrix *m, const char *name,
                                                          sotto_imatrix_entry *out);

typedef struct sotto_convert_options {
    const char *format; /* "ggml" or "gguf"; NULL: by the output's ending (.gguf, else ggml); language models are GGUF always */
    /* NULL: keep; else a type sotto_dtype_can_pack() accepts, or a mix of llama-quantize: "q3_k_s" "q3_k_m" "q3_k_l"
     * "q4_k_s" "q4_k_m" "q5_k_s" "q5_k_m" (GGUF only). In language models "q2_k", "iq4_nl" and the types of 32 are mixes
     * too, and "q3_k" "q4_k" "q5_k" mean "..._m". Matrices whose width is no multiple of the block get a type of smaller
     * blocks, else f16; convolutions and one-dimensional tensors keep f16/f32 as the formats require. */
    const char *dtype;
    const char *output_dtype,
        *embedding_dtype;            /* of the output matrix and the token embedding instead; NULL: the mix's */
    bool pure;                       /* language models: every matrix in the mix's main type */
    const sotto_imatrix *importance; /* NULL: all columns matter the same */
    bool requantize;                 /* allow a source that is quantised already */
    int threads;                     /* that convert rows; 0: one a core */
    /* Told every tensor's type and size before anything is written; with dry_run nothing is. */
    void (*planned)(void *user, const sotto_model_tensor *source, sotto_dtype to, size_t bytes);
    void *planned_user;
    bool dry_run;
    void (*progress)(void *user, int64_t done, int64_t total); /* tensors */
    void *progress_user;
    bool (*abort)(void *user); /* asked between pieces of tensors; true: SOTTO_E_ABORTED, nothing is left behind */
    void *abort_user;
    sotto_logger logger;
} sotto_convert_options;

/* Write `file` as `path` (temporary name, then renamed). Refuses when path is the input itself. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_model_convert(const sotto_model_file *file, const char *path,
                                                           const sotto_convert_options *options, sotto_error *err);

#ifdef __cplusplus
}
#endif
#endif
