#include <string.h>

#include "base/half.h"
#include "quant/fit.h"
#include "quant/quant.h"

void st_q4_0_unpack(const void *src, float *dst, int64_t n)
{
    const uint8_t *in = src;
    for (int64_t i = 0; i < n; i += ST_BLOCK, in += sizeof(st_q4_0)) {
        st_q4_0 b;
        memcpy(&b, in, sizeof b);
        const float d = st_f16_to_f32(b.d);
        for (int j = 0; j < 16; j++) {
            dst[i + j] = (float)((b.qs[j] & 15) - 8) * d;
            dst[i + j + 16] = (float)((b.qs[j] >> 4) - 8) * d;
        }
    }
}

/* The extreme element becomes exactly -8 of the scale, whose sign therefore may be negative. */
void st_q4_0_pack(const float *src, void *dst, int64_t n)
{
    uint8_t *out = dst;
    for (int64_t i = 0; i < n; i += ST_BLOCK, out += sizeof(st_q4_0)) {
        const float *const x = src + i;
        const float d = st_block_extreme(x) / -8.0f, id = d != 0 ? 1.0f / d : 0.0f;
        st_q4_0 b = {.d = st_f32_to_f16(d)};
        uint8_t codes[ST_BLOCK];
        for (int j = 0; j < ST_BLOCK; j++)
            codes[j] = st_quant_level(x[j] * id + 8.5f, 15);
        st_block_put_nibbles(codes, b.qs);
        memcpy(out, &b, sizeof b);
    }
}

void st_q4_0_pack_weighted(const float *src, const float *importance, void *dst, int64_t n)
{
    uint8_t *out = dst;
    const float mean_square = st_fit_mean_square(src, n);
    for (int64_t i = 0; i < n; i += ST_BLOCK, out += sizeof(st_q4_0)) {
        float w[ST_BLOCK];
        uint8_t codes[ST_BLOCK];
        st_fit_weights(src + i, importance + i, mean_square, ST_BLOCK, w);
        st_q4_0 b = {.d = st_f32_to_f16(st_fit_signed(src + i, w, ST_BLOCK, 8, codes))};
        st_block_put_nibbles(codes, b.qs);
        memcpy(out, &b, sizeof b);
    }
}
