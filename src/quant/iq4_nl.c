#include <string.h>

#include "base/half.h"
#include "quant/quant.h"

const int8_t st_iq4_nl_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

void st_iq4_nl_unpack(const void *src, float *dst, int64_t n)
{
    const uint8_t *in = src;
    for (int64_t i = 0; i < n; i += ST_BLOCK, in += sizeof(st_iq4_nl)) {
        st_iq4_nl b;
        memcpy(&b, in, sizeof b);
        const float d = st_f16_to_f32(b.d);
        for (int j = 0; j < 16; j++) {
            dst[i + j] = d * (float)st_iq4_nl_values[b.qs[j] & 15];
            dst[i + j + 16] = d * (float)st_iq4_nl_values[b.qs[j] >> 4];
        }
    }
}
