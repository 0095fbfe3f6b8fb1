#include <math.h>
#include <string.h>

#include "base/half.h"
#include "quant/quant.h"

void st_q8_0_unpack(const void *src, float *dst, int64_t n)
{
    const uint8_t *in = src;
    for (int64_t i = 0; i < n; i += ST_BLOCK, in += sizeof(st_q8_0)) {
        st_q8_0 b;
        memcpy(&b, in, sizeof b);
        const float d = st_f16_to_f32(b.d);
        for (int j = 0; j < ST_BLOCK; j++)
            dst[i + j] = (float)b.qs[j] * d;
    }
}

/* Rounds halves away from zero. NaN, also from infinity times zero, becomes 0. */
static int8_t nearest_level(float x)
{
    const float r = roundf(x);
    if (r != r)
        return 0;
    return (int8_t)(r < -127 ? -127 : r > 127 ? 127 : r);
}

void st_q8_0_pack(const float *src, void *dst, int64_t n)
{
    uint8_t *out = dst;
    for (int64_t i = 0; i < n; i += ST_BLOCK, out += sizeof(st_q8_0)) {
        const float *const x = src + i;
        const float d = fabsf(st_block_extreme(x)) / 127.0f, id = d != 0 ? 1.0f / d : 0.0f;
        st_q8_0 b = {.d = st_f32_to_f16(d)};
        for (int j = 0; j < ST_BLOCK; j++)
            b.qs[j] = nearest_level(x[j] * id);
        memcpy(out, &b, sizeof b);
    }
}
