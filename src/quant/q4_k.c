/* q4_k.c: byte l of each 32 holds element l of an even group below and of the odd group after it above. */
#include <string.h>

#include "quant/k_block.h"
#include "quant/k_fit.h"
#include "quant/quant.h"

static void read(const void *block, st_k_block *out)
{
    st_q4_k b;
    memcpy(&b, block, sizeof b);
    out->d = b.d;
    out->dmin = b.dmin;
    st_k_read_scales(b.scales, out);
    for (int group = 0; group < 8; group++) {
        for (int l = 0; l < 32; l++)
            out->codes[group * 32 + l] = b.qs[group / 2 * 32 + l] >> group % 2 * 4 & 15;
    }
}

const st_k_type st_q4_k_type = {SOTTO_Q4_K, sizeof(st_q4_k), 32, 4, 0, true, read};

void st_q4_k_unpack(const void *src, float *dst, int64_t n)
{
    st_k_unpack(&st_q4_k_type, src, dst, n);
}

void st_q4_k_pack(const float *src, const float *importance, void *dst, int64_t n)
{
    static const st_k_offset_shape shape = {32, 15, 63, {-1, 0.1f, 20}};
    uint8_t *out = dst;
    for (int64_t i = 0; i < n; i += ST_BLOCK_K, out += sizeof(st_q4_k)) {
        st_k_offset_block k;
        st_k_fit_offset(src + i, importance ? importance + i : NULL, &shape, &k);
        st_q4_k b = {.d = k.d, .dmin = k.dmin};
        for (int group = 0; group < 8; group++)
            st_k_put_scale(b.scales, group, k.step[group], k.offset[group]);
        for (int j = 0; j < ST_BLOCK_K; j++)
            b.qs[j / 64 * 32 + j % 32] |= (uint8_t)(k.codes[j] << j / 32 % 2 * 4);
        memcpy(out, &b, sizeof b);
    }
}
