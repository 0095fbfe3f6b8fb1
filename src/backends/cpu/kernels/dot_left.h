/* dot_left.h: rows of the left side of block products (st_cpu_left8). Included after a vec_*.h and
 *   ST_DOT_WIDE_ZERO   what is left in wide bytes of weights: 128, or 0 when products take it off
 *   ST_DOT_START, ST_DOT_FOLD   of dot_record.h */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_DOT_LEFT_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_DOT_LEFT_H

#include "dot_record.h"

/* What a row becomes for a type. */
typedef struct left_type {
    bool min, one; /* of the weights: they have minima, one scale in 32 k */
    vf sign;       /* of the sums that meet the minima */
    vf zero, zero_of_all;
} left_type;

/* -zero * sum, counted from ST_DOT_START */
INL vi fix_of(vf zero, vf sum)
{
    const vf fix = v_sub(v_set1(ROUNDER), v_mul(zero, sum)); /* a whole number in its low bits */
    return vi_sub(v_as_int(fix), vi_set1(ROUNDER_BITS - ST_DOT_START));
}

/* Number j of each of the four side by side, for j < n at out + j * step. */
INL void store_fours(float from[4][VL], int n, uint8_t *out, ptrdiff_t step)
{
#if defined(ST_OWN_FOURS)
    if (n == VL) {
        v_store_fours(from, out, step);
        return;
    }
#endif
    for (int j = 0; j < n; j++, out += step)
        for (int i = 0; i < 4; i++)
            memcpy(out + 4 * i, &from[i][j], 4);
}

/* Up to VL blocks of a row, `step` bytes apart: what has to be found across the lanes of a vector is found for all at once. `next`
 * will be wanted soon. */
INL void pack_blocks(const left_type *t, const float *x, const float *next, int n, uint8_t *out, ptrdiff_t step)
{
    float most[VL * VL], sums[2][VL * VL], factor[VL], part[4][VL];
    for (int j = n; j < VL; j++) {
        v_store(most + j * VL, v_zero());
        v_store(sums[0] + j * VL, v_zero());
        v_store(sums[1] + j * VL, v_zero());
    }
    for (int j = 0; j < n; j++) {
        vf m = v_zero();
        UNROLL for (int i = 0; i < 32; i += VL)
        {
            const vi size = vi_and(v_as_int(v_load(x + 32 * j + i)), vi_set1(0x7fffffff));
            m = v_max(vi_as_float(size), m);
        }
        v_store(most + j * VL, m);
        __builtin_prefetch(next + 32 * j);
        __builtin_prefetch(next + 32 * j + 16);
    }
    v_hmaxs(most, factor);
    const vf max = v_load(factor), least = v_set1(1e-30f), steps = v_set1(127.0f);
    v_store(factor, v_sel_gt(least, max, v_zero(), v_div(steps, max)));
    v_store(part[0], v_sel_gt(least, max, v_zero(), v_div(max, steps)));
    for (int j = 0; j < n; j++) {
        const vf by = v_set1(factor[j]), rounder = v_set1(ROUNDER);
        vf sum[2] = {v_zero(), v_zero()};
        UNROLL for (int i = 0; i < 32; i += VL)
        {
            const vf moved = v_add(v_mul(v_load(x + 32 * j + i), by), rounder);
            vi_store_bytes(out + j * step + i, v_as_int(moved));
            sum[i / 16] = v_add(sum[i / 16], v_sub(moved, rounder));
        }
        v_store(sums[0] + j * VL, t->one ? v_add(sum[0], sum[1]) : sum[0]);
        if (!t->one)
            v_store(sums[1] + j * VL, sum[1]);
    }
    v_hsums(sums[0], part[1]);
    v_store(part[2], v_zero());
    if (!t->one)
        v_hsums(sums[1], part[2]);
    const float all = v_hsum(v_add(v_load(part[1]), v_load(part[2])));
    for (int j = 0; all != all && j < n; j++) {
        if (part[1][j] + part[2][j] == part[1][j] + part[2][j])
            continue;
        memset(out + j * step, 0, 32);
        part[0][j] = __builtin_nanf("");
        part[1][j] = part[2][j] = 0;
    }
    const vf s[2] = {v_load(part[1]), v_load(part[2])}, scale = v_mul(v_load(part[0]), t->sign);
    const vi of_all = fix_of(t->zero_of_all, v_add(s[0], s[1]));
    memcpy(part[3], &of_all, sizeof of_all);
    for (int g = 0; g < 2; g++) {
        const vi fix = fix_of(t->zero, s[g]);
        if (t->min)
            v_store(part[1 + g], v_mul(scale, s[g]));
        else
            memcpy(part[1 + g], &fix, sizeof fix);
    }
    store_fours(part, n, out + RECORD_SCALE, step);
}

/* One row; see st_cpu_left8. The sums of rounded numbers are exact, and NaN when one was not finite. */
static void pack_row(st_cpu_wtype t, const float *x, int64_t k, void *dst, int rows)
{
    const float zero = (float)(type_is_wide(t) ? ST_DOT_WIDE_ZERO : type_zero(t));
    const left_type type = {.min = type_has_min(t),
                            .one = type_groups_of_part(t) == 1,
                            .sign = v_set1(t >= ST_CPU_W_Q2_K ? -1.0f : 1.0f),
                            .zero = v_set1(zero),
                            .zero_of_all = v_set1(ST_DOT_FOLD && t == ST_CPU_W_Q3_K ? (float)ST_DOT_FOLD_ZERO : zero)};
    const ptrdiff_t step = RECORD * (ptrdiff_t)rows;
    uint8_t *out = dst;
    for (int64_t i = 0; i < k; i += VL * ST_CPU_BLOCK, out += step * VL) {
        const int64_t left = (k - i) / ST_CPU_BLOCK;
        pack_blocks(&type, x + i, x + i + k, left < VL ? (int)left : VL, out, step);
    }
}

#endif
