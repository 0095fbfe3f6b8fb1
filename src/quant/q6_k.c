/* q6_k.c: two halves of 128 elements. In each, byte l of 64 in ql holds element l below and l + 64 above, and byte l of 32 in
 * qh holds the high 2 bits of elements l, l + 32, l + 64 and l + 96. */
#include <string.h>

#include "base/half.h"
#include "quant/k_fit.h"
#include "quant/quant.h"

void st_q6_k_unpack(const void *src, float *dst, int64_t n)
{
    const uint8_t *in = src;
    for (int64_t i = 0; i < n; i += ST_BLOCK_K, in += sizeof(st_q6_k)) {
        st_q6_k b;
        memcpy(&b, in, sizeof b);
        const float d = st_f16_to_f32(b.d);
        for (int group = 0; group < 16; group++) {
            const float step = d * (float)b.scales[group];
            const uint8_t *const ql = b.ql + group / 8 * 64 + group % 4 * 16;
            const uint8_t *const qh = b.qh + group / 8 * 32 + group % 2 * 16;
            const int low = group % 8 / 4 * 4, high = group % 8 / 2 * 2;
            for (int l = 0; l < 16; l++)
                dst[i + group * 16 + l] = step * (float)(((ql[l] >> low & 15) | (qh[l] >> high & 3) << 4) - 32);
        }
    }
}

void st_q6_k_pack(const float *src, const float *importance, void *dst, int64_t n)
{
    uint8_t *out = dst;
    for (int64_t i = 0; i < n; i += ST_BLOCK_K, out += sizeof(st_q6_k)) {
        st_k_signed_block k;
        st_k_fit_signed(src + i, importance ? importance + i : NULL, 32, 128, &k);
        st_q6_k b = {.d = k.d};
        for (int group = 0; group < 16; group++)
            b.scales[group] = (int8_t)(k.step[group] - 128);
        for (int j = 0; j < ST_BLOCK_K; j++) {
            b.ql[j / 128 * 64 + j % 64] |= (uint8_t)((k.codes[j] & 15) << j % 128 / 64 * 4);
            b.qh[j / 128 * 32 + j % 32] |= (uint8_t)(k.codes[j] >> 4 << j % 128 / 32 * 2);
        }
        memcpy(out, &b, sizeof b);
    }
}
