#include "models/common/conv.h"

#include <string.h>

void st_conv_kernel_outer(float *rows, int64_t n_rows, int64_t c_in, int64_t kernel, float *scratch)
{
    const int64_t n = c_in * kernel;
    for (int64_t r = 0; r < n_rows; r++, rows += n) {
        memcpy(scratch, rows, (size_t)n * sizeof *rows);
        for (int64_t k = 0; k < kernel; k++)
            for (int64_t c = 0; c < c_in; c++)
                rows[k * c_in + c] = scratch[c * kernel + k];
    }
}
