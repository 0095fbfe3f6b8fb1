/* q6_k.c: two halves of 128 elements. In each, byte l of 64 in ql holds element l below and l + 64 above, and byte l of 32 in
 * qh holds the high 2 bits of elements l, l + 32, l + 64 and l + 96. */
#include <string.h>

#include "quant/k_block.h"
#include "quant/k_fit.h"
#include "quant/quant.h"

static void read(const void *block, st_k_block *out)
{
    st_q6_k b;
    memcpy(&b, block, sizeof b);
    out->d = b.d;
    out->dmin = 0;
    memcpy(out->step, b.scales, sizeof out->step);
    memset(out->offset, 0, sizeof out->offset);
    for (int part = 0; part < 8; part++) {
        const uint8_t *const low = b.ql + part / 4 * 64 + part % 2 * 32, *const high = b.qh + part / 4 * 32;
        for (int l = 0; l < 32; l++)
            out->codes[part * 32 + l] =
                (uint8_t)((low[l] >> part % 4 / 2 * 4 & 15) | (high[l] >> part % 4 * 2 & 3) << 4);
    }
}

const st_k_type st_q6_k_type = {SOTTO_Q6_K, sizeof(st_q6_k), 16, 6, 32, false, read};

void st_q6_k_unpack(const void *src, float *dst, int64_t n)
{
    st_k_unpack(&st_q6_k_type, src, dst, n);
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
