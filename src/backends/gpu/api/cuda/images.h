/* images.h: the compiled kernels, made by script/cuda-kernels and put into the library by sources.cmake. */
#ifndef SOTTO_SRC_BACKENDS_GPU_API_CUDA_IMAGES_H
#define SOTTO_SRC_BACKENDS_GPU_API_CUDA_IMAGES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct st_cuda_image {
    const char *module;              /* of kernels.inc */
    int arch;                        /* 75: compute_75 or sm_75 */
    bool machine_code;               /* for exactly this architecture; false: PTX for it and later ones */
    const unsigned char *data, *end; /* PTX ends with a zero byte */
} st_cuda_image;

extern const st_cuda_image st_cuda_images[];
extern const int st_cuda_n_images;

#endif
