/* q3_k.c: the low 2 bits lie as in q2_k; bit j / 32 of hmask byte j % 32 is element j's third bit. */
#include <string.h>

#include "quant/k_block.h"
#include "quant/k_fit.h"
#include "quant/quant.h"

/* 6 bits of group j: the low 4 in the nibbles of bytes 0..7, the high 2 in bytes 8..11. */
static int scale_of(const uint8_t scales[12], int j)
{
    const int low = scales[j % 8] >> j / 8 * 4 & 15, high = scales[8 + j % 4] >> j / 4 * 2 & 3;
    return (low | high << 4) - 32;
}

static void read(const void *block, st_k_block *out)
{
    st_q3_k b;
    memcpy(&b, block, sizeof b);
    out->d = b.d;
    out->dmin = 0;
    memset(out->offset, 0, sizeof out->offset);
    for (int group = 0; group < 16; group++)
        out->step[group] = (int8_t)scale_of(b.scales, group);
    for (int part = 0; part < 8; part++)
        for (int l = 0; l < 32; l++) {
            const int low = b.qs[part / 4 * 32 + l] >> part % 4 * 2 & 3, third = b.hmask[l] >> part & 1;
            out->codes[part * 32 + l] = (uint8_t)(low | third << 2);
        }
}

const st_k_type st_q3_k_type = {SOTTO_Q3_K, sizeof(st_q3_k), 16, 3, 4, false, read};

void st_q3_k_unpack(const void *src, float *dst, int64_t n)
{
    st_k_unpack(&st_q3_k_type, src, dst, n);
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
