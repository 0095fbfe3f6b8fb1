/* quads.h: packed blocks (layouts in cpu_pack.h) as unsigned bytes: four k of VL columns at a time, "quads", and the scales that
 * make numbers of them. A part is 32 k of a panel: a block, or an eighth of one of a K type. Included after a vec_*.h; what
 * depends on the type alone is folded away. */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_QUADS_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_QUADS_H

#include "backends/cpu/cpu_pack.h"

/* Weights are scale * q + offset where it is true, otherwise scale * (q - type_zero()). In K types the offset counts against them. */
INL bool type_has_min(st_cpu_wtype t)
{
    return t == ST_CPU_W_Q4_1 || t == ST_CPU_W_Q5_1 || t == ST_CPU_W_Q2_K || t == ST_CPU_W_Q4_K || t == ST_CPU_W_Q5_K;
}

INL int type_zero(st_cpu_wtype t)
{
    return t == ST_CPU_W_Q4_0                           ? 8
           : t == ST_CPU_W_Q5_0                         ? 16
           : t == ST_CPU_W_Q3_K                         ? 4
           : t == ST_CPU_W_Q6_K                         ? 32
           : t == ST_CPU_W_Q8_0 || t == ST_CPU_W_IQ4_NL ? 128
                                                        : 0;
}

INL int type_bits(st_cpu_wtype t)
{
    return t == ST_CPU_W_Q2_K                                               ? 2
           : t == ST_CPU_W_Q3_K                                             ? 3
           : t == ST_CPU_W_Q5_0 || t == ST_CPU_W_Q5_1 || t == ST_CPU_W_Q5_K ? 5
           : t == ST_CPU_W_Q6_K                                             ? 6
           : t == ST_CPU_W_Q8_0 || t == ST_CPU_W_IQ4_NL                     ? 8
                                                                            : 4;
}

/* Quants need all 8 bits. */
INL bool type_is_wide(st_cpu_wtype t)
{
    return type_bits(t) == 8;
}

/* Groups of k with a scale of their own in a part. */
INL int type_groups_of_part(st_cpu_wtype t)
{
    return t == ST_CPU_W_Q2_K || t == ST_CPU_W_Q3_K || t == ST_CPU_W_Q6_K ? 2 : 1;
}

/* Part i of a block; of the 32-blocks the block itself, scales included. */
INL const uint8_t *part_of(st_cpu_wtype t, const uint8_t *block, int i)
{
    if (t < ST_CPU_W_Q2_K)
        return block;
    const size_t head = type_has_min(t) ? 128 : 64;
    return block + head + (st_cpu_block_bytes(t) - head) / 8 * (size_t)i;
}

/* VL bytes as floats. */
INL vf load_u8(const uint8_t *p)
{
    return vi_float(vi_load_u8(p));
}
INL vf load_i8(const uint8_t *p)
{
    return vi_float(vi_sub(vi_xor(vi_load_u8(p), vi_set1(128)), vi_set1(128)));
}

/* Scale and offset of group g (of two, equal where the part has one) for columns from c on. */
INL void part_scale(st_cpu_wtype t, const uint8_t *block, const uint8_t *part, int g, int c, vf *scale, vf *offset)
{
    const vf d = v_load_f16((const uint16_t *)(const void *)block + c);
    const vf m = type_has_min(t) ? v_load_f16((const uint16_t *)(const void *)block + ST_CPU_PANEL + c) : v_zero();
    switch (t) {
    case ST_CPU_W_Q2_K: {
        const vi both = vi_load_u8(part + 32 * g + c);
        *scale = v_mul(d, vi_float(vi_and(both, vi_set1(15))));
        *offset = v_mul(m, vi_float(vi_shr(both, 4)));
        return;
    }
    case ST_CPU_W_Q3_K:
    case ST_CPU_W_Q6_K:
        *scale = v_mul(d, load_i8(part + 32 * g + c));
        *offset = m;
        return;
    case ST_CPU_W_Q4_K:
    case ST_CPU_W_Q5_K:
        *scale = v_mul(d, load_u8(part + c));
        *offset = v_mul(m, load_u8(part + 32 + c));
        return;
    default:
        *scale = d;
        *offset = m;
    }
}

INL vi vi_shift(vi x, int left)
{
    return left >= 0 ? vi_shl(x, left) : vi_shr(x, -left);
}

INL vi load_dword(const uint8_t *p, int i, int c)
{
    return vi_load(p + i * 128 + c * 4);
}

/* The low 4 bits of quad i of 8, from the [4][32][4] of 4-bit areas. */
INL vi quad_low4(const uint8_t *area, int i, int c)
{
    const vi raw = load_dword(area, i % 4, c);
    return vi_and(i < 4 ? raw : vi_shr(raw, 4), vi_set1(0x0f0f0f0f));
}

/* Two bits of quad i from a [2][32][4], at bits `at` and above. */
INL vi quad_two(const uint8_t *area, int i, int c, int at)
{
    return vi_and(vi_shift(load_dword(area, i / 4, c), at - 2 * (i % 4)), vi_set1(0x03030303 << at));
}

/* One bit of quad i from a [32][4], at bit `at`. */
INL vi quad_one(const uint8_t *area, int i, int c, int at)
{
    return vi_and(vi_shift(load_dword(area, 0, c), at - i), vi_set1(0x01010101 << at));
}

/* k = 4i .. 4i + 3 of columns from c on: a byte each, the quant. */
INL vi quad_at(st_cpu_wtype t, const uint8_t *part, int i, int c)
{
    switch (t) {
    case ST_CPU_W_Q8_0:
        return load_dword(part + 64, i, c);
    case ST_CPU_W_Q4_0:
        return quad_low4(part + 64, i, c);
    case ST_CPU_W_IQ4_NL:
        return vi_iq4(quad_low4(part + 64, i, c));
    case ST_CPU_W_Q4_1:
        return quad_low4(part + 128, i, c);
    case ST_CPU_W_Q5_0:
        return vi_or(quad_low4(part + 192, i, c), quad_one(part + 64, i, c, 4));
    case ST_CPU_W_Q5_1:
        return vi_or(quad_low4(part + 256, i, c), quad_one(part + 128, i, c, 4));
    case ST_CPU_W_Q2_K:
        return quad_two(part + 64, i, c, 0);
    case ST_CPU_W_Q3_K:
        return vi_or(quad_two(part + 64, i, c, 0), quad_one(part + 320, i, c, 2));
    case ST_CPU_W_Q4_K:
        return quad_low4(part + 64, i, c);
    case ST_CPU_W_Q5_K:
        return vi_or(quad_low4(part + 192, i, c), quad_one(part + 64, i, c, 4));
    default: /* q6_k */
        return vi_or(quad_low4(part + 320, i, c), quad_two(part + 64, i, c, 4));
    }
}

#endif
