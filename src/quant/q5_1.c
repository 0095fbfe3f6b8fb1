#include <string.h>

#include "base/half.h"
#include "quant/fit.h"
#include "quant/quant.h"

void st_q5_1_unpack(const void *src, float *dst, int64_t n)
{
    const uint8_t *in = src;
    for (int64_t i = 0; i < n; i += ST_BLOCK, in += sizeof(st_q5_1)) {
        st_q5_1 b;
        memcpy(&b, in, sizeof b);
        const float d = st_f16_to_f32(b.d), m = st_f16_to_f32(b.m);
        for (int j = 0; j < 16; j++) {
            const int fifth = b.qh[j / 8] >> j % 8 & 1, fifth_high = b.qh[2 + j / 8] >> j % 8 & 1;
            dst[i + j] = (float)((b.qs[j] & 15) | fifth << 4) * d + m;
            dst[i + j + 16] = (float)(b.qs[j] >> 4 | fifth_high << 4) * d + m;
        }
    }
}

void st_q5_1_pack(const float *src, void *dst, int64_t n)
{
    uint8_t *out = dst;
    for (int64_t i = 0; i < n; i += ST_BLOCK, out += sizeof(st_q5_1)) {
        const float *const x = src + i;
        float least, greatest;
        st_block_range(x, &least, &greatest);
        const float d = (greatest - least) / 31.0f, id = d != 0 ? 1.0f / d : 0.0f;
        st_q5_1 b = {.d = st_f32_to_f16(d), .m = st_f32_to_f16(least)};
        uint8_t codes[ST_BLOCK];
        for (int j = 0; j < ST_BLOCK; j++)
            codes[j] = st_quant_level((x[j] - least) * id + 0.5f, 31);
        st_block_put_nibbles(codes, b.qs);
        st_block_put_fifths(codes, b.qh);
        memcpy(out, &b, sizeof b);
    }
}

void st_q5_1_pack_weighted(const float *src, const float *importance, void *dst, int64_t n)
{
    uint8_t *out = dst;
    const float mean_square = st_fit_mean_square(src, n);
    for (int64_t i = 0; i < n; i += ST_BLOCK, out += sizeof(st_q5_1)) {
        float w[ST_BLOCK], offset;
        uint8_t codes[ST_BLOCK];
        st_fit_weights(src + i, importance + i, mean_square, ST_BLOCK, w);
        const float step = st_fit_offset(src + i, w, ST_BLOCK, 31, st_fit_fine, codes, &offset);
        st_q5_1 b = {.d = st_f32_to_f16(step), .m = st_f32_to_f16(-offset)};
        st_block_put_nibbles(codes, b.qs);
        st_block_put_fifths(codes, b.qh);
        memcpy(out, &b, sizeof b);
    }
}
