/* meta_texts.h: an array of texts in a model file's metadata, whole: for those who go over all of it. */
#ifndef SOTTO_SRC_FORMATS_META_TEXTS_H
#define SOTTO_SRC_FORMATS_META_TEXTS_H

#include "sotto/model.h"

/* Bytes that need not end with a zero. */
typedef struct st_text {
    const char *data;
    size_t n;
} st_text;

/* Valid as long as the file. SOTTO_E_NOT_FOUND, SOTTO_E_FORMAT when it is another kind. */
sotto_status st_meta_texts(const sotto_model_file *file, const char *key, const st_text **out, int64_t *count,
                           sotto_error *err);

#endif
