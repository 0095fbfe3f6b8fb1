/* file_types.h: element types that GGUF files may hold but nothing here computes with. Their sizes are known, so that a file
 * with such a tensor can be checked, listed, and used as long as the tensor itself is not needed. */
#ifndef SOTTO_SRC_FORMATS_FILE_TYPES_H
#define SOTTO_SRC_FORMATS_FILE_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef struct st_file_type {
    int number;
    const char *name;
    int64_t block;
    size_t bytes;
} st_file_type;

/* NULL for any other number. */
const st_file_type *st_file_type_of(int number);

#endif
