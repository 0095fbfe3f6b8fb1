/* q2_k.c: two halves of 128 elements; in each, byte l of 32 holds elements l, l + 32, l + 64 and l + 96, 2 bits each. */
#include <string.h>

#include "quant/k_block.h"
#include "quant/k_fit.h"
#include "quant/quant.h"

static void read(const void *block, st_k_block *out)
{
    st_q2_k b;
    memcpy(&b, block, sizeof b);
    out->d = b.d;
    out->dmin = b.dmin;
    for (int group = 0; group < 16; group++) {
        out->step[group] = (int8_t)(b.scales[group] & 15);
        out->offset[group] = b.scales[group] >> 4;
    }
    for (int part = 0; part < 8; part++)
        for (int l = 0; l < 32; l++)
            out->codes[part * 32 + l] = b.qs[part / 4 * 32 + l] >> part % 4 * 2 & 3;
}

const st_k_type st_q2_k_type = {SOTTO_Q2_K, sizeof(st_q2_k), 16, 2, 0, true, read};

void st_q2_k_unpack(const void *src, float *dst, int64_t n)
{
    st_k_unpack(&st_q2_k_type, src, dst, n);
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
