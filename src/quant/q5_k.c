/* q5_k.c: as q4_k; bit g of qh byte l is the fifth bit of element l of group g. */
#include <string.h>

#include "quant/k_block.h"
#include "quant/k_fit.h"
#include "quant/quant.h"

static void read(const void *block, st_k_block *out)
{
    st_q5_k b;
    memcpy(&b, block, sizeof b);
    out->d = b.d;
    out->dmin = b.dmin;
    st_k_read_scales(b.scales, out);
    for (int group = 0; group < 8; group++) {
        for (int l = 0; l < 32; l++) {
            const int low = b.qs[group / 2 * 32 + l] >> group % 2 * 4 & 15, fifth = b.qh[l] >> group & 1;
            out->codes[group * 32 + l] = (uint8_t)(low | fifth << 4);
        }
    }
}

const st_k_type st_q5_k_type = {SOTTO_Q5_K, sizeof(st_q5_k), 32, 5, 0, true, read};

void st_q5_k_unpack(const void *src, float *dst, int64_t n)
{
    st_k_unpack(&st_q5_k_type, src, dst, n);
}

void st_q5_k_pack(const float *src, const float *importance, void *dst, int64_t n)
{
    static const st_k_offset_shape shape = {32, 31, 63, {-0.5f, 0.1f, 15}};
    uint8_t *out = dst;
    for (int64_t i = 0; i < n; i += ST_BLOCK_K, out += sizeof(st_q5_k)) {
        st_k_offset_block k;
        st_k_fit_offset(src + i, importance ? importance + i : NULL, &shape, &k);
        st_q5_k b = {.d = k.d, .dmin = k.dmin};
        for (int group = 0; group < 8; group++)
            st_k_put_scale(b.scales, group, k.step[group], k.offset[group]);
        for (int j = 0; j < ST_BLOCK_K; j++) {
            b.qs[j / 64 * 32 + j % 32] |= (uint8_t)((k.codes[j] & 15) << j / 32 % 2 * 4);
            b.qh[j % 32] |= (uint8_t)(k.codes[j] >> 4 << j / 32);
        }
        memcpy(out, &b, sizeof b);
    }
}
