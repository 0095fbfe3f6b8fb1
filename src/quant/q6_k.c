/* q6_k.c: two halves of 128 elements. In each, byte l of 64 in ql holds element l below and l + 64 above, and byte l of 32 in
 * qh holds the high 2 bits of elements l, l + 32, l + 64 and l + 96. */
#include <string.h>

#include "base/half.h"
#include "quant/quant.h"

void st_q6_k_unpack(const void *src, float *dst, int64_t n)
{
    const uint8_t *in = src;
    for (int64_t i = 0; i < n; i += ST_BLOCK_K, in += sizeof(st_q6_k)) {
        st_q6_k b;
        memcpy(&b, in, sizeof b);
        const float d = st_f16_to_f32(b.d);
        for (int j = 0; j < ST_BLOCK_K; j++) {
            const int half = j / 128, at = j % 128;
            const int low = b.ql[half * 64 + at % 64] >> at / 64 * 4 & 15,
                      high = b.qh[half * 32 + at % 32] >> at / 32 * 2 & 3;
            dst[i + j] = d * (float)b.scales[j / 16] * (float)((low | high << 4) - 32);
        }
    }
}
