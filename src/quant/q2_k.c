/* q2_k.c: two halves of 128 elements; in each, byte l of 32 holds elements l, l + 32, l + 64 and l + 96, 2 bits each. */
#include <string.h>

#include "base/half.h"
#include "quant/k_fit.h"
#include "quant/quant.h"

void st_q2_k_unpack(const void *src, float *dst, int64_t n)
{
    const uint8_t *in = src;
    for (int64_t i = 0; i < n; i += ST_BLOCK_K, in += sizeof(st_q2_k)) {
        st_q2_k b;
        memcpy(&b, in, sizeof b);
        const float d = st_f16_to_f32(b.d), dmin = st_f16_to_f32(b.dmin);
        for (int group = 0; group < 16; group++) {
            const float step = d * (float)(b.scales[group] & 15), offset = dmin * (float)(b.scales[group] >> 4);
            const uint8_t *const qs = b.qs + group / 8 * 32 + group % 2 * 16;
            const int shift = group % 8 / 2 * 2;
            for (int l = 0; l < 16; l++)
                dst[i + group * 16 + l] = step * (float)(qs[l] >> shift & 3) - offset;
        }
    }
}

void st_q2_k_pack(const float *src, const float *importance, void *dst, int64_t n)
{
    static const st_k_offset_shape shape = {16, 3, 15, {-0.5f, 0.1f, 15}};
    uint8_t *out = dst;
    for (int64_t i = 0; i < n; i += ST_BLOCK_K, out += sizeof(st_q2_k)) {
        st_k_offset_block k;
        st_k_fit_offset(src + i, importance ? importance + i : NULL, &shape, &k);
        st_q2_k b = {.d = k.d, .dmin = k.dmin};
        for (int group = 0; group < 16; group++)
            b.scales[group] = (uint8_t)(k.step[group] | k.offset[group] << 4);
        for (int j = 0; j < ST_BLOCK_K; j++)
            b.qs[j / 128 * 32 + j % 32] |= (uint8_t)(k.codes[j] << j % 128 / 32 * 2);
        memcpy(out, &b, sizeof b);
    }
}
