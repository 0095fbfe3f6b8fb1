/* q2_k.c: two halves of 128 elements; in each, byte l of 32 holds elements l, l + 32, l + 64 and l + 96, 2 bits each. */
#include <string.h>

#include "base/half.h"
#include "quant/quant.h"

void st_q2_k_unpack(const void *src, float *dst, int64_t n)
{
    const uint8_t *in = src;
    for (int64_t i = 0; i < n; i += ST_BLOCK_K, in += sizeof(st_q2_k)) {
        st_q2_k b;
        memcpy(&b, in, sizeof b);
        const float d = st_f16_to_f32(b.d), dmin = st_f16_to_f32(b.dmin);
        for (int j = 0; j < ST_BLOCK_K; j++) {
            const uint8_t scale = b.scales[j / 16];
            const int q = b.qs[j / 128 * 32 + j % 32] >> j % 128 / 32 * 2 & 3;
            dst[i + j] = d * (float)(scale & 15) * (float)q - dmin * (float)(scale >> 4);
        }
    }
}
