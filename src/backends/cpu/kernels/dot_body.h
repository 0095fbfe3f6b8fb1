/* dot_body.h: products of block types as integers (contracts in cpu_kernels.h). Included by the shells after a vec_*.h, quads.h
 * and their own
 *   vi dot4(vi c, vi w, vi x, bool wide)  c + the four bytes of each lane of w times those of x: w unsigned (7 bits unless
 *                                         wide), x signed
 *   int dot_run(int bits)                 so many quads may be summed in words before they are added to c, their weights
 *                                         of so many bits; 0: none
 *   vi dot_words(vi w, vi x), vi dot_more(vi words, vi w, vi x), vi dot_flush(vi c, vi words)
 *                                         the first quad in words, a further one, and adding them to c
 *   ST_DOT_ROWS, ST_DOT_NV                rows of a tile; vectors of columns side by side
 *   ST_DOT_WIDE                           the kind of wide weights: plain where dot4 and dot_run know no difference
 *   ST_DOT_WIDE_ZERO                      what dot4 leaves in wide bytes: 128, or 0 when it has taken it off */
#include "backends/cpu/cpu_kernels.h"
#include "dot_left.h"

#define ST_DOT_FEW 2 /* rows of a direct tile */

INL vi left_quad(const uint8_t *record, int i)
{
    int32_t x;
    memcpy(&x, record + 4 * i, sizeof x);
    return vi_set1(x);
}

INL vf left_float(const uint8_t *record, int at)
{
    float x;
    memcpy(&x, record + at, sizeof x);
    return v_set1(x);
}

/* Offset of column c (a multiple of VL) and row r in a tile [2][rows][16]. */
INL int dot_tile_at(int rows, int r, int c)
{
    return (c / 16 * rows + r) * 16 + c % 16;
}

/* What a group's integers start with. */
INL vi dot_start(bool min, const uint8_t *record, int g)
{
    return min ? vi_set1(0) : left_quad(record + RECORD_FIX, g);
}

/* Quad i of the n of group g of a record: into words, and into c, which begins with what the group starts with. */
INL void dot_step(bool min, int bits, int i, int n, vi w, vi x, const uint8_t *record, int g, vi *c, vi *words)
{
    const int run = dot_run(bits), first = run == 0 ? 0 : run < n ? run - 1 : n - 1;
    if (i == first)
        *c = dot_start(min, record, g);
    if (run == 0) {
        *c = dot4(*c, w, x, bits == 8);
        return;
    }
    *words = i % run == 0 ? dot_words(w, x) : dot_more(*words, w, x);
    if (i % run == run - 1 || i == n - 1)
        *c = dot_flush(*c, *words);
}

/* sum + a group's integers as numbers */
INL vf dot_finish(bool min, vf sum, vi c, vf scale, vf offset, const uint8_t *record, int g)
{
    sum = v_fma(v_mul(vi_float(c), scale), left_float(record, RECORD_SCALE), sum);
    return min ? v_fma(offset, left_float(record, RECORD_FIX + 4 * g), sum) : sum;
}

/* ---- few rows: the bytes are made in registers ---- */

INL void direct_part(st_cpu_wtype t, int rows, const uint8_t *a, const uint8_t *block, const uint8_t *part, int column,
                     vf sum[ST_DOT_FEW][ST_DOT_NV])
{
    const int groups = type_groups_of_part(t);
    const bool min = type_has_min(t);
    vi c[ST_DOT_FEW][ST_DOT_NV][2], words[ST_DOT_FEW][ST_DOT_NV][2];
    UNROLL for (int i = 0; i < 8; i++)
    {
        const int k = i % 2 * 4 + i / 2; /* quads that share their bytes follow each other */
        const int g = groups == 2 ? k / 4 : 0, at = groups == 2 ? k % 4 : i;
        vi w[ST_DOT_NV];
        UNROLL for (int v = 0; v < ST_DOT_NV; v++) w[v] = quad_at(t, part, k, column + v * VL);
        UNROLL for (int r = 0; r < rows; r++)
        {
            const vi x = left_quad(a + r * RECORD, k);
            UNROLL for (int v = 0; v < ST_DOT_NV; v++)
                dot_step(min, type_bits(t), at, 8 / groups, w[v], x, a + r * RECORD, g, &c[r][v][g], &words[r][v][g]);
        }
    }
    UNROLL for (int g = 0; g < groups; g++) UNROLL for (int v = 0; v < ST_DOT_NV; v++)
    {
        vf scale, offset;
        part_scale(t, block, part, g, column + v * VL, &scale, &offset);
        UNROLL for (int r = 0; r < rows; r++) sum[r][v] =
            dot_finish(min, sum[r][v], c[r][v][g], scale, offset, a + r * RECORD, g);
    }
}

INL void direct(st_cpu_wtype t, int rows, const uint8_t *a, const uint8_t *blocks, int n_block, float *acc)
{
    const int parts = (int)st_cpu_block_k(t) / ST_CPU_BLOCK;
    for (int column = 0; column < ST_CPU_PANEL; column += ST_DOT_NV * VL) {
        vf sum[ST_DOT_FEW][ST_DOT_NV];
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < ST_DOT_NV; v++) sum[r][v] = v_zero();
        const uint8_t *x = a, *block = blocks;
        for (int b = 0; b < n_block; b++, block += st_cpu_block_bytes(t))
            for (int p = 0; p < parts; p++, x += RECORD * rows)
                direct_part(t, rows, x, block, part_of(t, block, p), column, sum);
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < ST_DOT_NV; v++)
            v_store(acc + dot_tile_at(rows, r, column + v * VL), sum[r][v]);
    }
}

/* ---- many rows: the bytes are made once for all of them ---- */

INL void spread(st_cpu_wtype t, const uint8_t *blocks, int n_block, uint8_t *out)
{
    const int parts = (int)st_cpu_block_k(t) / ST_CPU_BLOCK, groups = type_groups_of_part(t);
    for (int b = 0; b < n_block; b++, blocks += st_cpu_block_bytes(t)) {
        for (int p = 0; p < parts; p++) {
            const uint8_t *const part = part_of(t, blocks, p);
            uint8_t *const quants = out + 128 * groups * (type_has_min(t) ? 2 : 1);
            for (int c = 0; c < ST_CPU_PANEL; c += VL) {
                UNROLL for (int g = 0; g < groups; g++)
                {
                    vf scale, offset;
                    part_scale(t, blocks, part, g, c, &scale, &offset);
                    v_store((float *)(void *)(out + 128 * g) + c, scale);
                    if (type_has_min(t))
                        v_store((float *)(void *)(out + 128 * (groups + g)) + c, offset);
                }
                UNROLL for (int i = 0; i < 8; i++)
                {
                    const vi w = quad_at(t, part, i, c);
                    memcpy(quants + 128 * i + 4 * c, &w, sizeof w);
                }
            }
            out = quants + 1024;
        }
    }
}

INL void dot_product(int groups, bool min, int bits, int rows, const uint8_t *a, const uint8_t *b, int n_part,
                     float *acc, bool first)
{
    const uint8_t *const a0 = a, *const b0 = b;
    const int head = 128 * groups * (min ? 2 : 1);
    for (int column = 0; column < ST_CPU_PANEL; column += ST_DOT_NV * VL) {
        vf sum[ST_DOT_ROWS][ST_DOT_NV];
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < ST_DOT_NV; v++) sum[r][v] =
            first ? v_zero() : v_load(acc + dot_tile_at(rows, r, column + v * VL));
        a = a0;
        b = b0 + 4 * column;
        for (int p = 0; p < n_part; p++, a += RECORD * rows, b += head + 1024) {
            UNROLL for (int g = 0; g < groups; g++)
            {
                vi c[ST_DOT_ROWS][ST_DOT_NV], words[ST_DOT_ROWS][ST_DOT_NV];
                UNROLL for (int at = 0; at < 8 / groups; at++)
                {
                    const int i = g * (8 / groups) + at;
                    vi w[ST_DOT_NV];
                    UNROLL for (int v = 0; v < ST_DOT_NV; v++) w[v] = vi_load(b + head + i * 128 + v * VL * 4);
                    UNROLL for (int r = 0; r < rows; r++)
                    {
                        const vi x = left_quad(a + r * RECORD, i);
                        UNROLL for (int v = 0; v < ST_DOT_NV; v++)
                            dot_step(min, bits, at, 8 / groups, w[v], x, a + r * RECORD, g, &c[r][v], &words[r][v]);
                    }
                }
                UNROLL for (int v = 0; v < ST_DOT_NV; v++)
                {
                    const vf scale = v_load((const float *)(const void *)(b + 128 * g) + v * VL);
                    const vf offset =
                        min ? v_load((const float *)(const void *)(b + 128 * (groups + g)) + v * VL) : v_zero();
                    UNROLL for (int r = 0; r < rows; r++) sum[r][v] =
                        dot_finish(min, sum[r][v], c[r][v], scale, offset, a + r * RECORD, g);
                }
            }
        }
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < ST_DOT_NV; v++)
            v_store(acc + dot_tile_at(rows, r, column + v * VL), sum[r][v]);
    }
}

#include "dot_table.h"
