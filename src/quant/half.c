/* half.c: rows of f16 and bf16. */
#include <string.h>

#include "base/half.h"
#include "quant/quant.h"

#define HALF_ROWS(type)                                             \
    void st_##type##_unpack(const void *src, float *dst, int64_t n) \
    {                                                               \
        const uint8_t *in = src;                                    \
        for (int64_t i = 0; i < n; i++, in += 2) {                  \
            uint16_t h;                                             \
            memcpy(&h, in, sizeof h);                               \
            dst[i] = st_##type##_to_f32(h);                         \
        }                                                           \
    }                                                               \
                                                                    \
    void st_##type##_pack(const float *src, void *dst, int64_t n)   \
    {                                                               \
        uint8_t *out = dst;                                         \
        for (int64_t i = 0; i < n; i++, out += 2) {                 \
            const uint16_t h = st_f32_to_##type(src[i]);            \
            memcpy(out, &h, sizeof h);                              \
        }                                                           \
    }

HALF_ROWS(f16)
HALF_ROWS(bf16)
