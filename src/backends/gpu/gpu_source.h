/* gpu_source.h: the text of the kernels inside the library, put there by cmake/embed.cmake. */
#ifndef SOTTO_SRC_BACKENDS_GPU_GPU_SOURCE_H
#define SOTTO_SRC_BACKENDS_GPU_GPU_SOURCE_H

#include <stddef.h>

typedef struct st_gpu_text {
    const char *name; /* "rows.krn", "params.h", "opencl/prelude.h" */
    const char *text; /* ends with a zero byte */
    size_t size;      /* without it */
} st_gpu_text;

extern const st_gpu_text st_gpu_texts[];
extern const int st_gpu_n_texts;

#endif
