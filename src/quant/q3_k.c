/* q3_k.c: the low 2 bits lie as in q2_k; bit j / 32 of hmask byte j % 32 is element j's third bit. */
#include <string.h>

#include "base/half.h"
#include "quant/quant.h"

/* 6 bits of group j: the low 4 in the nibbles of bytes 0..7, the high 2 in bytes 8..11. */
static int scale_of(const uint8_t scales[12], int j)
{
    const int low = scales[j % 8] >> j / 8 * 4 & 15, high = scales[8 + j % 4] >> j / 4 * 2 & 3;
    return (low | high << 4) - 32;
}

void st_q3_k_unpack(const void *src, float *dst, int64_t n)
{
    const uint8_t *in = src;
    for (int64_t i = 0; i < n; i += ST_BLOCK_K, in += sizeof(st_q3_k)) {
        st_q3_k b;
        memcpy(&b, in, sizeof b);
        const float d = st_f16_to_f32(b.d);
        for (int j = 0; j < ST_BLOCK_K; j++) {
            const int low = b.qs[j / 128 * 32 + j % 32] >> j % 128 / 32 * 2 & 3, third = b.hmask[j % 32] >> j / 32 & 1;
            dst[i + j] = d * (float)scale_of(b.scales, j / 16) * (float)((low | third << 2) - 4);
        }
    }
}
