/* q3_k.c: the low 2 bits lie as in q2_k; bit j / 32 of hmask byte j % 32 is element j's third bit. */
#include <string.h>

#include "base/half.h"
#include "quant/k_fit.h"
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
        for (int group = 0; group < 16; group++) {
            const float step = d * (float)scale_of(b.scales, group);
            const uint8_t *const qs = b.qs + group / 8 * 32 + group % 2 * 16, *const third = b.hmask + group % 2 * 16;
            const int shift = group % 8 / 2 * 2, bit = group / 2;
            for (int l = 0; l < 16; l++)
                dst[i + group * 16 + l] = step * (float)(((qs[l] >> shift & 3) | (third[l] >> bit & 1) << 2) - 4);
        }
    }
}

void st_q3_k_pack(const float *src, const float *importance, void *dst, int64_t n)
{
    uint8_t *out = dst;
    for (int64_t i = 0; i < n; i += ST_BLOCK_K, out += sizeof(st_q3_k)) {
        st_k_signed_block k;
        st_k_fit_signed(src + i, importance ? importance + i : NULL, 4, 32, &k);
        st_q3_k b = {.d = k.d};
        for (int group = 0; group < 16; group++) {
            b.scales[group % 8] |= (uint8_t)((k.step[group] & 15) << group / 8 * 4);
            b.scales[8 + group % 4] |= (uint8_t)(k.step[group] >> 4 << group / 4 * 2);
        }
        for (int j = 0; j < ST_BLOCK_K; j++) {
            b.qs[j / 128 * 32 + j % 32] |= (uint8_t)((k.codes[j] & 3) << j % 128 / 32 * 2);
            b.hmask[j % 32] |= (uint8_t)(k.codes[j] >> 2 << j / 32);
        }
        memcpy(out, &b, sizeof b);
    }
}
