/* formats_support.h: model files made byte by byte, and folders for those that are several files. */
#ifndef SOTTO_TESTS_UNIT_FORMATS_SUPPORT_H
#define SOTTO_TESTS_UNIT_FORMATS_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sotto/model.h"

/* Bytes that grow; free with blob_free. */
typedef struct blob {
    uint8_t *data;
    size_t n, cap;
} blob;

void blob_free(blob *b);
void blob_bytes(blob *b, const void *data, size_t n);
void blob_number(blob *b, uint64_t value, int bytes);
void blob_f32(blob *b, float value);
/* The text behind its length in `bytes` bytes. */
void blob_text(blob *b, const char *text, int bytes);

/* A new temporary folder; free with remove_folder, which removes the files in it too. */
char *make_folder(void);
void remove_folder(char *folder);
/* folder/name, valid until the fourth next call. */
const char *in_folder(const char *folder, const char *name);
void write_file(const char *folder, const char *name, const void *data, size_t n);
void write_blob(const char *folder, const char *name, const blob *b);
void write_text(const char *folder, const char *name, const char *text);
/* Number of files in the folder. */
int count_files(const char *folder);

/* Opens from a copy of exactly n bytes (a sanitizer sees a byte read too far) and frees the file. Checks that a failure
 * has a sentence. */
sotto_status try_memory(const void *data, size_t n, sotto_error *err);
sotto_status try_path(const char *path, sotto_error *err);
/* Fails the test unless the status is `want` and the sentence contains `part`. */
void expect(sotto_status got, const sotto_error *err, sotto_status want, const char *part, const char *label);
sotto_model_file *must_open(const char *path);

/* All values of a tensor as f32; free() it. *n gets how many. */
float *tensor_values(const sotto_model_file *f, const char *name, int64_t *n);

/* A Whisper model as a ggml file: any field can be told wrong. */
typedef struct ggml_recipe {
    int32_t header[11];
    int32_t n_mel, n_fft;
    int32_t n_tokens;
    uint32_t token_length; /* of the first token; its text is "ab" */
    int32_t n_dims, name_length, type;
    int32_t dim[8];
    const char *name;
} ggml_recipe;

ggml_recipe ggml_ordinary(void);
/* Header, filters, two tokens, one f32 tensor [2, 4] of 0.5, 1.5, ..., the tensors that a model without layers has and,
 * last, "scalar" of no dimension, 3. */
blob ggml_file(const ggml_recipe *r);

/* Some tensors of each kind of a Whisper model as GGUF, for conversions. Values are multiples of 1/64 below 1; matrices
 * are of `type`, f32 or f16. "odd.weight" has rows of 6. */
blob whisper_gguf(int64_t width, sotto_dtype type);

#endif
