/* dot_i8mm.c: products of block types as integers (contracts in cpu_kernels.h) with arm64's matrix instructions: unsigned bytes of
 * two columns times signed ones of two rows, eight of each. All sums stay as the instruction has them, [2 columns][2 rows],
 * until a tile is done.
 *
 * Tiles are arranged: two records become
 *   [4][2 rows][8 bytes], then four floats [2][2 rows] of scales, then [2 groups][2 rows] of fixes
 * and a last one stays as it is. Expanded weights are, for each 32 k of a panel, [groups][32 columns][2] scales, every one
 * twice, where the type has minima as many of these, then [4 eights of k][32 columns][8] unsigned bytes. */
#if !defined(__ARM_FEATURE_MATMUL_INT8)
#error "this file needs -march=armv8.2-a+dotprod+i8mm"
#endif
#include <arm_neon.h>

#define ST_LEVEL i8mm
#define ST_DOT_ROWS 6
#define ST_DOT_FEW 4
#define ST_DOT_WIDE plain
#define ST_DOT_ARRANGE arrange
#include "../vec_generic.h"

enum { ST_DOT_WIDE_ZERO = 128 };
#include "../dot_left.h"

enum { PAIR = 2 * RECORD, PAIR_SCALE = 64, PAIR_FIX = 80, MAX_NV = 4 };

/* Vectors of two columns side by side. With one group, 6 rows are 12 sums of integers and 12 of numbers; with two, more is kept of
 * each column, and half as many columns spill less. */
INL int vectors(int groups)
{
    return groups == 2 ? 2 : MAX_NV;
}

static void arrange(void *tile, int64_t parts, int rows, bool few)
{
    (void)few;
    uint8_t *at = tile;
    for (int64_t i = 0; i < parts; i++, at += RECORD * (rows % 2)) {
        for (int r = 0; r + 2 <= rows; r += 2, at += PAIR) {
            st_cpu_left8 a, b;
            memcpy(&a, at, sizeof a);
            memcpy(&b, at + RECORD, sizeof b);
            for (int j = 0; j < 4; j++) {
                memcpy(at + 16 * j, a.q + 8 * j, 8);
                memcpy(at + 16 * j + 8, b.q + 8 * j, 8);
            }
            const float scale[4] = {a.scale, b.scale, a.scale, b.scale};
            const int32_t fix[4] = {a.fix[0], b.fix[0], a.fix[1], b.fix[1]};
            memcpy(at + PAIR_SCALE, scale, sizeof scale);
            memcpy(at + PAIR_FIX, fix, sizeof fix);
        }
    }
}

/* ---- what is read of a pair of rows, or of a last row alone ---- */

INL int8x16_t left_eight(bool two, const uint8_t *x, int i)
{
    return vreinterpretq_s8_u8(two ? vld1q_u8(x + 16 * i) : vcombine_u8(vld1_u8(x + 8 * i), vdup_n_u8(0)));
}

INL vf left_scale(bool two, const uint8_t *x)
{
    float one;
    if (two)
        return vreinterpretq_f32_u8(vld1q_u8(x + PAIR_SCALE));
    memcpy(&one, x + RECORD_SCALE, sizeof one);
    return vdupq_n_f32(one);
}

/* The fixes of group g, as integers. */
INL int32x4_t left_fix(bool two, const uint8_t *x, int g)
{
    int64_t both;
    int32_t one;
    if (two) {
        memcpy(&both, x + PAIR_FIX + 8 * g, sizeof both);
        return vreinterpretq_s32_s64(vdupq_n_s64(both));
    }
    memcpy(&one, x + RECORD_FIX + 4 * g, sizeof one);
    return vdupq_n_s32(one);
}

/* sum + a group's integers as numbers */
INL vf finish_sums(bool min, vf sum, int32x4_t c, vf scale, vf offset, bool two, const uint8_t *x, int g)
{
    sum = v_fma(v_mul(vcvtq_f32_s32(c), scale), left_scale(two, x), sum);
    return min ? v_fma(offset, vreinterpretq_f32_s32(left_fix(two, x, g)), sum) : sum;
}

/* Sums of the columns from `column` on into a tile [2][rows][16], and back. */
INL void store_sums(int rows, int nv, float *acc, int column, vf sum[ST_DOT_ROWS / 2][MAX_NV])
{
    UNROLL for (int p = 0; p < (rows + 1) / 2; p++) UNROLL for (int v = 0; v < nv; v += 2)
    {
        const int at = column + 2 * v;
        float *const out = acc + (at / 16 * rows + 2 * p) * 16 + at % 16;
        v_store(out, vuzp1q_f32(sum[p][v], sum[p][v + 1]));
        if (2 * p + 1 < rows)
            v_store(out + 16, vuzp2q_f32(sum[p][v], sum[p][v + 1]));
    }
}

INL void load_sums(int rows, int nv, const float *acc, int column, vf sum[ST_DOT_ROWS / 2][MAX_NV])
{
    UNROLL for (int p = 0; p < (rows + 1) / 2; p++) UNROLL for (int v = 0; v < nv; v += 2)
    {
        const int at = column + 2 * v;
        const float *const in = acc + (at / 16 * rows + 2 * p) * 16 + at % 16;
        const vf low = v_load(in), high = 2 * p + 1 < rows ? v_load(in + 16) : v_zero();
        sum[p][v] = vzip1q_f32(low, high);
        sum[p][v + 1] = vzip2q_f32(low, high);
    }
}

/* ---- few rows: the bytes are made in registers ---- */

/* Eights i of the four columns from c on, as the instruction reads them: two columns each. */
INL void eight_at(st_cpu_wtype t, const uint8_t *part, int i, int c, uint8x16_t w[2])
{
    const uint32x4_t low = (uint32x4_t)quad_at(t, part, 2 * i, c), high = (uint32x4_t)quad_at(t, part, 2 * i + 1, c);
    w[0] = vreinterpretq_u8_u32(vzip1q_u32(low, high));
    w[1] = vreinterpretq_u8_u32(vzip2q_u32(low, high));
}

INL void direct_part(st_cpu_wtype t, int rows, const uint8_t *a, const uint8_t *block, const uint8_t *part, int column,
                     vf sum[ST_DOT_ROWS / 2][MAX_NV])
{
    const int groups = type_groups_of_part(t), nv = vectors(groups), pairs = (rows + 1) / 2;
    const bool min = type_has_min(t);
    UNROLL for (int g = 0; g < groups; g++)
    {
        int32x4_t c[ST_DOT_FEW / 2][MAX_NV];
        UNROLL for (int p = 0; p < pairs; p++) UNROLL for (int v = 0; v < nv; v++) c[p][v] =
            min ? vdupq_n_s32(0) : left_fix(2 * p + 1 < rows, a + PAIR * p, g);
        UNROLL for (int j = 0; j < 4 / groups; j++)
        {
            const int i =
                groups == 2 ? 2 * g + j : j % 2 * 2 + j / 2; /* eights that share their bytes follow each other */
            uint8x16_t w[MAX_NV];
            UNROLL for (int v = 0; v < nv; v += 2) eight_at(t, part, i, column + 2 * v, w + v);
            UNROLL for (int p = 0; p < pairs; p++)
            {
                const int8x16_t x = left_eight(2 * p + 1 < rows, a + PAIR * p, i);
                UNROLL for (int v = 0; v < nv; v++) c[p][v] = vusmmlaq_s32(c[p][v], w[v], x);
            }
        }
        UNROLL for (int v = 0; v < nv; v += 2)
        {
            vf scale, offset;
            part_scale(t, block, part, g, column + 2 * v, &scale, &offset);
            const vf scales[2] = {vzip1q_f32(scale, scale), vzip2q_f32(scale, scale)};
            const vf offsets[2] = {vzip1q_f32(offset, offset), vzip2q_f32(offset, offset)};
            UNROLL for (int p = 0; p < pairs; p++) UNROLL for (int h = 0; h < 2; h++) sum[p][v + h] =
                finish_sums(min, sum[p][v + h], c[p][v + h], scales[h], offsets[h], 2 * p + 1 < rows, a + PAIR * p, g);
        }
    }
}

INL void direct_pairs(st_cpu_wtype t, int rows, const uint8_t *a, const uint8_t *blocks, int n_block, float *acc)
{
    const int parts = (int)st_cpu_block_k(t) / ST_CPU_BLOCK, nv = vectors(type_groups_of_part(t));
    for (int column = 0; column < ST_CPU_PANEL; column += 2 * nv) {
        vf sum[ST_DOT_ROWS / 2][MAX_NV];
        UNROLL for (int p = 0; p < (rows + 1) / 2; p++) UNROLL for (int v = 0; v < nv; v++) sum[p][v] = v_zero();
        const uint8_t *x = a, *block = blocks;
        for (int b = 0; b < n_block; b++, block += st_cpu_block_bytes(t))
            for (int i = 0; i < parts; i++, x += RECORD * rows)
                direct_part(t, rows, x, block, part_of(t, block, i), column, sum);
        store_sums(rows, nv, acc, column, sum);
    }
}

/* One row: the dot product of a row with four columns wastes nothing. The lane is part of the instruction, so that no loop can
 * count it. */
#define QUAD(I)                                                                             \
    UNROLL for (int v = 0; v < 2; v++) c[v][groups == 2 ? (I) / 4 : 0] = vusdotq_laneq_s32( \
        c[v][groups == 2 ? (I) / 4 : 0], (uint8x16_t)quad_at(t, part, I, column + 4 * v), x[(I) / 4], (I) % 4);

INL void direct_one(st_cpu_wtype t, const uint8_t *a, const uint8_t *blocks, int n_block, float *acc)
{
    const int parts = (int)st_cpu_block_k(t) / ST_CPU_BLOCK, groups = type_groups_of_part(t);
    const bool min = type_has_min(t);
    for (int column = 0; column < ST_CPU_PANEL; column += 8) {
        vf sum[2] = {v_zero(), v_zero()};
        const uint8_t *record = a, *block = blocks;
        for (int b = 0; b < n_block; b++, block += st_cpu_block_bytes(t)) {
            for (int i = 0; i < parts; i++, record += RECORD) {
                const uint8_t *const part = part_of(t, block, i);
                const int8x16_t x[2] = {vreinterpretq_s8_u8(vld1q_u8(record)),
                                        vreinterpretq_s8_u8(vld1q_u8(record + 16))};
                int32x4_t c[2][2];
                UNROLL for (int v = 0; v < 2; v++) UNROLL for (int g = 0; g < groups; g++) c[v][g] =
                    min ? vdupq_n_s32(0) : left_fix(false, record, g);
                QUAD(0)
                QUAD(4)
                QUAD(1)
                QUAD(5)
                QUAD(2)
                QUAD(6)
                QUAD(3)
                QUAD(7)
                UNROLL for (int v = 0; v < 2; v++) UNROLL for (int g = 0; g < groups; g++)
                {
                    vf scale, offset;
                    part_scale(t, block, part, g, column + 4 * v, &scale, &offset);
                    sum[v] = finish_sums(min, sum[v], c[v][g], scale, offset, false, record, g);
                }
            }
        }
        UNROLL for (int v = 0; v < 2; v++) v_store(acc + column + 4 * v, sum[v]);
    }
}

INL void direct(st_cpu_wtype t, int rows, const uint8_t *a, const uint8_t *blocks, int n_block, float *acc)
{
    if (rows == 1)
        direct_one(t, a, blocks, n_block, acc);
    else
        direct_pairs(t, rows, a, blocks, n_block, acc);
}

/* ---- many rows: the bytes are made once for all of them ---- */

INL void spread(st_cpu_wtype t, const uint8_t *blocks, int n_block, uint8_t *out)
{
    const int parts = (int)st_cpu_block_k(t) / ST_CPU_BLOCK, groups = type_groups_of_part(t);
    const bool min = type_has_min(t);
    for (int b = 0; b < n_block; b++, blocks += st_cpu_block_bytes(t)) {
        for (int i = 0; i < parts; i++) {
            const uint8_t *const part = part_of(t, blocks, i);
            uint8_t *const quants = out + 256 * groups * (min ? 2 : 1);
            for (int c = 0; c < ST_CPU_PANEL; c += 4) {
                UNROLL for (int g = 0; g < groups; g++)
                {
                    vf scale, offset;
                    part_scale(t, blocks, part, g, c, &scale, &offset);
                    vst2q_f32((float *)(void *)(out + 256 * g + 8 * c), ((float32x4x2_t){{scale, scale}}));
                    if (min)
                        vst2q_f32((float *)(void *)(out + 256 * (groups + g) + 8 * c),
                                  ((float32x4x2_t){{offset, offset}}));
                }
                UNROLL for (int j = 0; j < 4; j++)
                {
                    uint8x16_t w[2];
                    eight_at(t, part, j, c, w);
                    vst1q_u8(quants + 256 * j + 8 * c, w[0]);
                    vst1q_u8(quants + 256 * j + 8 * c + 16, w[1]);
                }
            }
            out = quants + 1024;
        }
    }
}

/* bits: of the widest type of the kind, which makes no difference here */
INL void dot_product(int groups, bool min, int bits, int rows, const uint8_t *a, const uint8_t *b, int n_part,
                     float *acc, bool first, const st_cpu_dot_ahead *ahead)
{
    (void)bits;
    (void)ahead;
    const int head = 256 * groups * (min ? 2 : 1), nv = vectors(groups), pairs = (rows + 1) / 2;
    for (int column = 0; column < ST_CPU_PANEL; column += 2 * nv) {
        vf sum[ST_DOT_ROWS / 2][MAX_NV];
        if (first)
            UNROLL for (int p = 0; p < pairs; p++) UNROLL for (int v = 0; v < nv; v++) sum[p][v] = v_zero();
        else
            load_sums(rows, nv, acc, column, sum);
        const uint8_t *x = a, *w = b + 8 * column;
        for (int i = 0; i < n_part; i++, x += RECORD * rows, w += head + 1024) {
            UNROLL for (int g = 0; g < groups; g++)
            {
                int32x4_t c[ST_DOT_ROWS / 2][MAX_NV];
                UNROLL for (int p = 0; p < pairs; p++) UNROLL for (int v = 0; v < nv; v++) c[p][v] =
                    min ? vdupq_n_s32(0) : left_fix(2 * p + 1 < rows, x + PAIR * p, g);
                UNROLL for (int j = 4 / groups * g; j < 4 / groups * (g + 1); j++)
                {
                    UNROLL for (int p = 0; p < pairs; p++)
                    {
                        const int8x16_t left = left_eight(2 * p + 1 < rows, x + PAIR * p, j);
                        UNROLL for (int v = 0; v < nv; v++) c[p][v] =
                            vusmmlaq_s32(c[p][v], vld1q_u8(w + head + 256 * j + 16 * v), left);
                    }
                }
                UNROLL for (int v = 0; v < nv; v++)
                {
                    const vf scale = v_load((const float *)(const void *)(w + 256 * g + 16 * v));
                    const vf offset =
                        min ? v_load((const float *)(const void *)(w + 256 * (groups + g) + 16 * v)) : v_zero();
                    UNROLL for (int p = 0; p < pairs; p++) sum[p][v] =
                        finish_sums(min, sum[p][v], c[p][v], scale, offset, 2 * p + 1 < rows, x + PAIR * p, g);
                }
            }
        }
        store_sums(rows, nv, acc, column, sum);
    }
}

#include "../dot_kinds.h"
#include "../dot_table.h"
