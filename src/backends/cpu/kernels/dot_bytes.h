/* dot_bytes.h: products of block types as integers, of x86 levels that multiply pairs of bytes into words (contracts in cpu_kernels.h).
 * Included by the shells after a vec_*.h, dot_words.h and what dot_few.h asks for, with
 *   ST_DOT_MANY   vectors of columns side by side
 *
 * The instruction takes unsigned bytes from a register and signed ones from memory. So for many rows the left side is made unsigned,
 * q + 128, and weights are expanded to signed bytes, which are read where they are used; what the 128 add is known of each column. Words
 * hold the sums of 8 quads with weights of 4 bits, -8 to 7, of 4 with 5 bits, and of 2 with 6. Those of 8 bits meet the halves of the left
 * side's bytes one after the other, 8 quads of 0 to 15. Where each 16 k have a scale, words are multiplied by it when pairs of
 * them are added.
 *
 * What is expanded of 32 k of a panel: [32 columns] scales, [32] what the integers start with, [mins][32] minima, where there are two
 * groups [2][32][2] scales of 16 k as words, then the bytes [8][32 columns][4]. */
#include "dot_few.h"

/* type, the kind of its expanded blocks */
#define EACH_TYPE(X) \
    X(Q8_0, wide)    \
    X(Q4_0, plain4)  \
    X(Q4_1, min4)    \
    X(Q5_0, plain5)  \
    X(Q5_1, min5)    \
    X(IQ4_NL, wide)  \
    X(Q2_K, groups2) \
    X(Q3_K, groups3) \
    X(Q4_K, min4)    \
    X(Q5_K, min5)    \
    X(Q6_K, groups6)

/* name, groups of 32 k with scales and with minima, bits: weights are unsigned where there are minima, otherwise signed */
#define EACH_KIND(X)    \
    X(wide, 1, 0, 8)    \
    X(plain4, 1, 0, 4)  \
    X(plain5, 1, 0, 5)  \
    X(min4, 1, 1, 4)    \
    X(min5, 1, 1, 5)    \
    X(groups2, 2, 2, 2) \
    X(groups3, 2, 0, 3) \
    X(groups6, 2, 0, 6)

#define ST_DOT_ROWS 16
#define ST_DOT_OF_KIND static __attribute__((noinline))
#define ST_DOT_ARRANGE arrange

enum { NEAR_PARTS = 8 }; /* parts that all rows of a tile meet while they are in the first cache */

/* Many rows only: q + 128. */
static void arrange(void *tile, int64_t parts, int rows, bool few)
{
    uint8_t *record = tile;
    if (few)
        return;
    for (int64_t i = 0; i < parts * rows; i++, record += RECORD)
        for (int j = 0; j < ST_CPU_BLOCK; j++)
            record[j] ^= 128;
}

/* Quads that are summed in words; they are of one group. */
INL int run_of(int groups, int mins, int bits)
{
    const int with_sign = bits + (mins > 0), run = bits == 8 || with_sign <= 4 ? 8 : with_sign == 5 ? 4 : 2;
    return run < 8 / groups ? run : 8 / groups;
}

/* Bytes before a part's bytes. */
INL int bytes_head(int groups, int mins)
{
    return 128 * (2 + mins + (groups == 2 ? 2 : 0));
}

/* ---- expanding ---- */

/* The scale of group g as both words of a lane. */
INL vi group_scale(st_cpu_wtype t, const uint8_t *part, int g, int c)
{
    const vi bytes = vi_load_u8(part + 32 * g + c);
    const vi scale = t == ST_CPU_W_Q2_K ? vi_and(bytes, vi_set1(15)) : vi_sub(vi_xor(bytes, vi_set1(128)), vi_set1(128));
    return vi_or(vi_and(scale, vi_set1(0xffff)), vi_shl(scale, 16));
}

INL vi less_bytes(vi w, int by)
{
    return (vi)MM(sub_epi8)((mm)w, MM(set1_epi8)((char)by));
}

/* Sums of pairs of bytes as words; min: unsigned ones. */
INL mm pairs_of(bool min, vi bytes)
{
    const mm one = MM(set1_epi8)(1);
    return min ? MM(maddubs_epi16)((mm)bytes, one) : MM(maddubs_epi16)(one, (mm)bytes);
}

/* VL columns of a part from c on. The bytes of a group are summed as bytes, -128 to 127 or 0 to 255, those of 8 bits as words. */
INL void spread_part(st_cpu_wtype t, const uint8_t *block, const uint8_t *part, int c, uint8_t *out)
{
    const int groups = type_groups_of_part(t), mins = type_has_min(t) ? groups : 0, head = bytes_head(groups, mins);
    const bool wide = type_is_wide(t);
    uint8_t *const at = out + 4 * c;
    vf scale, offset;
    UNROLL for (int g = 0; g < groups; g++)
    {
        part_scale(t, block, part, g, c, &scale, &offset);
        if (mins > 0)
            v_store((float *)(void *)(at + 128 * (2 + g)), offset);
    }
    if (groups == 2)
        scale = v_load_f16((const uint16_t *)(const void *)block + c);
    v_store((float *)(void *)at, scale);
    vi all = vi_set1(0);
    UNROLL for (int g = 0; g < groups; g++)
    {
        mm sum = MM(set1_epi8)(0);
        UNROLL for (int i = g * 8 / groups; i < (g + 1) * 8 / groups; i++)
        {
            vi w = quad_at(t, part, i, c);
            if (mins == 0)
                w = less_bytes(w, type_zero(t));
            memcpy(at + head + 128 * i, &w, sizeof w);
            sum = kept(wide ? MM(add_epi16)(sum, pairs_of(false, w)) : MM(add_epi8)(sum, (mm)w));
        }
        const vi by = groups == 2 ? group_scale(t, part, g, c) : vi_set1(0x10001);
        all = vi_add(all, (vi)MM(madd_epi16)(wide ? sum : pairs_of(mins > 0, (vi)sum), (mm)by));
        if (groups == 2)
            memcpy(at + 128 * (2 + mins + g), &by, sizeof by);
    }
    const vi start = vi_sub(vi_set1(0), vi_shl(all, 7));
    memcpy(at + 128, &start, sizeof start);
}

INL void spread(st_cpu_wtype t, const uint8_t *blocks, int n_block, uint8_t *out)
{
    const int parts = (int)st_cpu_block_k(t) / ST_CPU_BLOCK, groups = type_groups_of_part(t);
    const int bytes = bytes_head(groups, type_has_min(t) ? groups : 0) + 1024;
    for (int b = 0; b < n_block; b++, blocks += st_cpu_block_bytes(t))
        for (int p = 0; p < parts; p++, out += bytes)
            for (int c = 0; c < ST_CPU_PANEL; c += VL)
                spread_part(t, blocks, part_of(t, blocks, p), c, out);
}

/* ---- multiplying ---- */

INL vf load_floats(const uint8_t *p)
{
    return v_load((const float *)(const void *)p);
}

/* c + `by` times the products of 32 bytes of the left side with those of a part, w from the column on. */
INL void add_bytes(int groups, int mins, int bits, const uint8_t *left, const uint8_t *w, int by, vi c[ST_DOT_MANY])
{
    const int run = run_of(groups, mins, bits), head = bytes_head(groups, mins);
    vi words[ST_DOT_MANY];
    UNROLL for (int i = 0; i < 8; i++)
    {
        const vi x = left_quad(left, i);
        UNROLL for (int v = 0; v < ST_DOT_MANY; v++)
        {
            const uint8_t *const at = w + 4 * VL * v;
            const mm two = MM(maddubs_epi16)((mm)x, (mm)vi_load(at + head + 128 * i));
            words[v] = i % run == 0 ? (vi)two : (vi)kept(MM(add_epi16)((mm)words[v], two));
            if (i % run < run - 1)
                continue;
            const vi scale = groups == 2 ? vi_load(at + 128 * (2 + mins + i / 4)) : vi_set1(by);
            c[v] = (vi)kept((mm)vi_add((vi)MM(madd_epi16)((mm)words[v], (mm)scale), c[v]));
        }
    }
}

/* sums of a row + those of a part; planes: of the record where weights have 8 bits */
INL void bytes_part(int groups, int mins, int bits, const uint8_t *record, const uint8_t *planes, const uint8_t *w,
                    vf sum[ST_DOT_MANY])
{
    vi c[ST_DOT_MANY];
    UNROLL for (int v = 0; v < ST_DOT_MANY; v++) c[v] = vi_load(w + 128 + 4 * VL * v);
    add_bytes(groups, mins, bits, bits == 8 ? planes : record, w, 0x10001, c);
    if (bits == 8) {
        __asm__("" : "+r"(w)); /* read again: there are not as many registers */
        add_bytes(groups, mins, bits, planes + ST_CPU_BLOCK, w, 0x100010, c);
    }
    const vf by = left_float(record, RECORD_SCALE);
    UNROLL for (int v = 0; v < ST_DOT_MANY; v++) sum[v] =
        dot_add(sum[v], v_mul(vi_float(c[v]), load_floats(w + 4 * VL * v)), by);
    UNROLL for (int g = 0; g < mins; g++)
    {
        const vf fix = left_float(record, RECORD_FIX + 4 * g);
        UNROLL for (int v = 0; v < ST_DOT_MANY; v++) sum[v] =
            dot_add(sum[v], load_floats(w + 128 * (2 + g) + 4 * VL * v), fix);
    }
}

INL void dot_product(int groups, int mins, int bits, int rows, const uint8_t *a, const uint8_t *b, int n_part,
                     float *acc, bool first, const st_cpu_dot_ahead *ahead)
{
    const int bytes = bytes_head(groups, mins) + 1024, share = (ahead->each + rows - 1) / rows;
    const uint8_t *lines = ahead->lines;
    for (int from = 0; from < n_part || from == 0; from += NEAR_PARTS) {
        const int n = n_part - from < NEAR_PARTS ? n_part - from : NEAR_PARTS;
        for (int r = 0; r < rows; r++) {
            const int each = r * share < ahead->each ? share : 0; /* lines with each part of the row */
            if (from == 0 && r < ahead->rows) {
                __builtin_prefetch(ahead->out + r * ahead->out_stride, 1);
                __builtin_prefetch(ahead->out + r * ahead->out_stride + 16, 1);
            }
            for (int column = 0; column < ST_CPU_PANEL; column += ST_DOT_MANY * VL) {
                const uint8_t *record = a + (ptrdiff_t)RECORD * (from * rows + r);
                const uint8_t *w = b + (ptrdiff_t)bytes * from + 4 * column;
                uint8_t planes[NEAR_PARTS * ST_DOT_PLANES] __attribute__((aligned(64)));
                for (int p = 0; p < n && bits == 8; p++)
                    dot_split(record + (ptrdiff_t)RECORD * rows * p, false, planes + ST_DOT_PLANES * p);
                vf sum[ST_DOT_MANY];
                UNROLL for (int v = 0; v < ST_DOT_MANY; v++) sum[v] =
                    first && from == 0 ? v_zero() : v_load(acc + tile_at(rows, r, column + v * VL));
                for (int p = 0; p < n; p++, record += RECORD * rows, w += bytes) {
                    for (int i = 0; i < each && column == 0; i++, lines += 64)
                        __builtin_prefetch(lines);
                    bytes_part(groups, mins, bits, record, planes + ST_DOT_PLANES * p, w, sum);
                }
                UNROLL for (int v = 0; v < ST_DOT_MANY; v++) v_store(acc + tile_at(rows, r, column + v * VL), sum[v]);
            }
        }
    }
}

#include "dot_table.h"
