/* dot_body.h: products of block types as integers, of levels that add four products of bytes to 32 bits (contracts in cpu_kernels.h).
 * For many rows the bytes are made once for all of them. Included by the shells after a vec_*.h, what dot_few.h asks for, and
 *   ST_DOT_FOLD              products of small quants with their groups' scales are expanded to bytes
 *   ST_DOT_ROWS, ST_DOT_NV   rows of a tile; vectors of columns side by side
 *   ST_DOT_WIDE              the kind of wide weights: plain where dot4 knows no difference */
#include "dot_few.h"
#include "dot_kinds.h"

/* Small quants: their products with the scales of their groups fit a byte, so that all 32 k have one scale. */
INL bool folds(st_cpu_wtype t)
{
    return ST_DOT_FOLD && (t == ST_CPU_W_Q2_K || t == ST_CPU_W_Q3_K);
}

/* What such a quant becomes: by * q + plus, in words, which do it for two bytes at once, since none carries into the next in the
 * end. Products of q3_k have a sign, they are -124 to 128, and ST_DOT_FOLD_ZERO is added. */
typedef struct fold {
    vi by, plus;
} fold;

/* Of group g of a part. */
INL fold fold_of(st_cpu_wtype t, const uint8_t *part, int g, int c)
{
    const vi both = vi_load_u8(part + 32 * g + c);
    if (t == ST_CPU_W_Q2_K) {
        const vi scale = vi_and(both, vi_set1(15));
        return (fold){vi_or(scale, vi_shl(scale, 16)), vi_set1(0)};
    }
    const vi scale = vi_sub(vi_xor(both, vi_set1(128)), vi_set1(128));
    const vi zero = vi_sub(vi_set1(ST_DOT_FOLD_ZERO), vi_shl(scale, 2)); /* a byte */
    const vi two = vi_or(zero, vi_shl(zero, 8));
    return (fold){vi_or(vi_and(scale, vi_set1(0xffff)), vi_shl(scale, 16)), vi_or(two, vi_shl(two, 16))};
}

INL void spread(st_cpu_wtype t, const uint8_t *blocks, int n_block, uint8_t *out)
{
    const int parts = (int)st_cpu_block_k(t) / ST_CPU_BLOCK, mins = type_has_min(t) ? type_groups_of_part(t) : 0;
    const int groups = folds(t) ? 1 : type_groups_of_part(t), head = head_of(groups, mins);
    for (int b = 0; b < n_block; b++, blocks += st_cpu_block_bytes(t)) {
        for (int p = 0; p < parts; p++, out += head + 1024) {
            const uint8_t *const part = part_of(t, blocks, p);
            for (int c = 0; c < ST_CPU_PANEL; c += VL) {
                float *const heads = (float *)(void *)out + c;
                UNROLL for (int g = 0; g < (mins > groups ? mins : groups); g++)
                {
                    vf scale, offset;
                    part_scale(t, blocks, part, g, c, &scale, &offset);
                    if (folds(t))
                        scale = v_load_f16((const uint16_t *)(const void *)blocks + c);
                    if (g < groups)
                        v_store(heads + 32 * g, scale);
                    if (g < groups && ST_DOT_START != 0)
                        v_store(heads + 32 * (groups + g), dot_shift(scale));
                    if (g < mins)
                        v_store(heads + 32 * (head / 128 - mins + g), offset);
                }
                fold f[2];
                for (int g = 0; folds(t) && g < 2; g++)
                    f[g] = fold_of(t, part, g, c);
                UNROLL for (int i = 0; i < 8; i++)
                {
                    vi w = quad_at(t, part, i, c);
                    if (folds(t))
                        w = vi_add_words(vi_mul_words(w, f[i / 4].by), f[i / 4].plus);
                    memcpy(out + head + 128 * i + 4 * c, &w, sizeof w);
                }
            }
        }
    }
}

/* The integers of group g of all rows, from bytes at w. */
INL void dot_group(int groups, int mins, int bits, int rows, const uint8_t *a, const uint8_t *w, int g,
                   vi c[ST_DOT_ROWS][ST_DOT_NV])
{
    vi words[ST_DOT_ROWS][ST_DOT_NV];
    UNROLL for (int at = 0; at < 8 / groups; at++)
    {
        const int i = g * (8 / groups) + at;
        vi q[ST_DOT_NV];
        UNROLL for (int v = 0; v < ST_DOT_NV; v++) q[v] = vi_load(w + i * 128 + v * VL * 4);
        UNROLL for (int r = 0; r < rows; r++)
        {
            const uint8_t *const record = a + r * RECORD;
            const vi x = left_quad(record, i);
            UNROLL for (int v = 0; v < ST_DOT_NV; v++) dot_step(
                bits, at, 8 / groups, q[v], x, dot_start(mins > 0, record, groups == 1 ? 2 : g), &c[r][v], &words[r][v]);
        }
    }
}

INL void dot_product(int groups, int mins, int bits, int rows, const uint8_t *a, const uint8_t *b, int n_part,
                     float *acc, bool first, const st_cpu_dot_ahead *ahead)
{
    const uint8_t *const a0 = a, *const b0 = b, *lines = ahead->lines;
    const int head = head_of(groups, mins), bytes = head + 1024;
    for (int column = 0; column < ST_CPU_PANEL; column += ST_DOT_NV * VL) {
        vf sum[ST_DOT_ROWS][ST_DOT_NV];
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < ST_DOT_NV; v++) sum[r][v] =
            first ? v_zero() : v_load(acc + tile_at(rows, r, column + v * VL));
        a = a0;
        b = b0 + 4 * column;
        for (int p = 0; p < n_part; p++, a += RECORD * rows, b += bytes) {
            for (int i = 0; column == 0 && i < ahead->each; i++, lines += 64)
                __builtin_prefetch(lines);
            if (column == 0 && p < 2 * ahead->rows)
                __builtin_prefetch(ahead->out + (p >> 1) * ahead->out_stride + (p & 1) * 16, 1);
            UNROLL for (int g = 0; g < groups; g++)
            {
                vi c[ST_DOT_ROWS][ST_DOT_NV];
                dot_group(groups, mins, bits, rows, a, b + head, g, c);
                vf scale[ST_DOT_NV], shift[ST_DOT_NV];
                UNROLL for (int v = 0; v < ST_DOT_NV; v++)
                {
                    scale[v] = v_load((const float *)(const void *)(b + 128 * g) + v * VL);
                    shift[v] = ST_DOT_START != 0 ? v_load((const float *)(const void *)(b + 128 * (groups + g)) + v * VL)
                                                 : v_zero();
                }
                UNROLL for (int r = 0; r < rows; r++)
                    dot_finish(ST_DOT_NV, sum[r], c[r], 1, scale, shift, a + r * RECORD);
            }
            UNROLL for (int g = 0; g < mins; g++)
            {
                vf offset[ST_DOT_NV];
                UNROLL for (int v = 0; v < ST_DOT_NV; v++) offset[v] =
                    v_load((const float *)(const void *)(b + head - 128 * (mins - g)) + v * VL);
                UNROLL for (int r = 0; r < rows; r++) dot_offset(ST_DOT_NV, sum[r], offset, a + r * RECORD, g);
            }
        }
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < ST_DOT_NV; v++)
            v_store(acc + tile_at(rows, r, column + v * VL), sum[r][v]);
    }
}

#include "dot_table.h"
