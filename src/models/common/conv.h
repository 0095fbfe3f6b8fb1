/* conv.h: weights of convolutions as frameworks store them, for sotto_conv_1d. */
#ifndef SOTTO_SRC_MODELS_COMMON_CONV_H
#define SOTTO_SRC_MODELS_COMMON_CONV_H

#include <stdint.h>

/* [n_rows, c_in, kernel] -> [n_rows, kernel, c_in], in place; scratch holds one row. */
void st_conv_kernel_outer(float *rows, int64_t n_rows, int64_t c_in, int64_t kernel, float *scratch);

#endif
