/* dot_few.h: products of few rows with weights of block types as they are packed, as integers (contracts in cpu_kernels.h): the bytes are
 * made in registers. Included by dot_body.h and dot_bytes.h after a vec_*.h and the shell's own
 *   vi dot4(vi c, vi w, vi x, bool wide)  c + the four bytes of each lane of w times those of x: w unsigned (7 bits unless
 *                                         wide), x signed
 *   int dot_run(int bits)                 so many quads may be summed in words before they are added to c, their weights
 *                                         of so many bits; 0: none
 *   vi dot_words(vi w, vi x), vi dot_more(vi words, vi w, vi x), vi dot_flush(vi c, vi words)
 *                                         the first quad in words, a further one, and adding them to c
 *   vf dot_scaled(vi c, vf scale, vf shift)  scale times what c counts from ST_DOT_START; shift as dot_shift() makes it
 *   vf dot_add(vf sum, vf a, vf b)        sum + a * b
 *   ST_DOT_START                          what integers start with: 0, or the bits of the float that dot_shift() takes off
 *   ST_DOT_PLANES, dot_split(bytes, is_signed, planes), vi dot_flush_high(vi c, vi words)
 *                                         bytes of the left side's halves where wide weights meet them one after the other, or
 *                                         0; making them, and adding 16 times the words
 *   ST_DOT_NV, ST_DOT_NV_ONE              vectors of columns side by side, and for a single row and scale, if not as many
 *   ST_DOT_WIDE_ZERO                      what dot4 leaves in wide bytes: 128, or 0 when it has taken it off */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_DOT_FEW_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_DOT_FEW_H

#include "backends/cpu/cpu_kernels.h"
#include "dot_left.h"

#define ST_DOT_FEW 2 /* rows of a direct tile */
#if !defined(ST_DOT_NV_ONE)
#define ST_DOT_NV_ONE ST_DOT_NV
#endif
enum { DIRECT_AHEAD = 4096 }; /* bytes; parts of direct products are no longer */

INL int few_vectors(st_cpu_wtype t, int rows)
{
    return rows == 1 && type_groups_of_part(t) == 1 ? ST_DOT_NV_ONE : ST_DOT_NV;
}

/* An integer n added to ST_DOT_START is the float ROUNDER + n, and one multiply-add makes scale * n of it: ROUNDER * scale is
 * exact, since a scale has 21 bits at most. */
INL vf dot_shift(vf scale)
{
    return v_mul(scale, v_set1(-ROUNDER));
}

/* Quad i of the n of a group: into words, and into c, which begins with `start`. */
INL void dot_step(int bits, int i, int n, vi w, vi x, vi start, vi *c, vi *words)
{
    const int run = dot_run(bits), first = run == 0 ? 0 : run < n ? run - 1 : n - 1;
    if (i == first)
        *c = start;
    if (run == 0) {
        *c = dot4(*c, w, x, bits == 8);
        return;
    }
    *words = i % run == 0 ? dot_words(w, x) : dot_more(*words, w, x);
    if (i % run == run - 1 || i == n - 1)
        *c = dot_flush(*c, *words);
}

/* sums of a row + a group's integers as numbers. The columns take turns: neighbours do not wait for each other. */
INL void dot_finish(int nv, vf *sum, const vi *c, int stride, const vf *scale, const vf *shift, const uint8_t *record)
{
    const vf by = left_float(record, RECORD_SCALE);
    vf x[ST_DOT_NV_ONE];
    UNROLL for (int v = 0; v < nv; v++) x[v] = dot_scaled(c[v * stride], scale[v], shift[v]);
    UNROLL for (int v = 0; v < nv; v++) sum[v] = dot_add(sum[v], x[v], by);
}

/* sums of a row + the minima times the row's sum over group g */
INL void dot_offset(int nv, vf *sum, const vf *offset, const uint8_t *record, int g)
{
    const vf by = left_float(record, RECORD_FIX + 4 * g);
    UNROLL for (int v = 0; v < nv; v++) sum[v] = dot_add(sum[v], offset[v], by);
}

/* The integers of a part whose weights meet the halves of the left side's bytes one after the other. */
INL void direct_halves(st_cpu_wtype t, int rows, const uint8_t *a, const uint8_t *part, int column,
                       vi c[ST_DOT_FEW][ST_DOT_NV_ONE][2])
{
    const int nv = few_vectors(t, rows);
    vi words[ST_DOT_FEW][ST_DOT_NV_ONE][2];
    uint8_t planes[ST_DOT_FEW][ST_DOT_PLANES + 1] __attribute__((aligned(64)));
    for (int r = 0; r < rows; r++)
        dot_split(a + r * RECORD, true, planes[r]);
    UNROLL for (int i = 0; i < 8; i++)
    {
        const int k = i % 2 * 4 + i / 2;
        vi w[ST_DOT_NV_ONE];
        UNROLL for (int v = 0; v < nv; v++) w[v] = quad_at(t, part, k, column + v * VL);
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int half = 0; half < 2; half++)
        {
            const vi x = left_quad(planes[r] + ST_CPU_BLOCK * half, k);
            UNROLL for (int v = 0; v < nv; v++) words[r][v][half] =
                i == 0 ? dot_words(w[v], x) : dot_more(words[r][v][half], w[v], x);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < nv; v++) c[r][v][0] =
        dot_flush_high(dot_flush(dot_start(false, a + r * RECORD, 0), words[r][v][0]), words[r][v][1]);
}

INL void direct_integers(st_cpu_wtype t, int rows, const uint8_t *a, const uint8_t *part, int column,
                         vi c[ST_DOT_FEW][ST_DOT_NV_ONE][2])
{
    const int groups = type_groups_of_part(t), nv = few_vectors(t, rows);
    const bool min = type_has_min(t);
    vi words[ST_DOT_FEW][ST_DOT_NV_ONE][2];
    UNROLL for (int i = 0; i < 8; i++)
    {
        const int k = i % 2 * 4 + i / 2; /* quads that share their bytes follow each other */
        const int g = groups == 2 ? k / 4 : 0, at = groups == 2 ? k % 4 : i;
        vi w[ST_DOT_NV_ONE];
        UNROLL for (int v = 0; v < nv; v++) w[v] = quad_at(t, part, k, column + v * VL);
        UNROLL for (int r = 0; r < rows; r++)
        {
            const vi x = left_quad(a + r * RECORD, k);
            UNROLL for (int v = 0; v < nv; v++) dot_step(
                type_bits(t), at, 8 / groups, w[v], x, dot_start(min, a + r * RECORD, g), &c[r][v][g], &words[r][v][g]);
        }
    }
}

INL void direct_part(st_cpu_wtype t, int rows, const uint8_t *a, const uint8_t *block, const uint8_t *part, int column,
                     vf sum[ST_DOT_FEW][ST_DOT_NV_ONE])
{
    const int groups = type_groups_of_part(t), nv = few_vectors(t, rows);
    const bool min = type_has_min(t);
    vi c[ST_DOT_FEW][ST_DOT_NV_ONE][2];
    if (ST_DOT_PLANES > 0 && type_is_wide(t))
        direct_halves(t, rows, a, part, column, c);
    else
        direct_integers(t, rows, a, part, column, c);
    UNROLL for (int g = 0; g < groups; g++)
    {
        vf scale[ST_DOT_NV_ONE], shift[ST_DOT_NV_ONE], offset[ST_DOT_NV_ONE];
        UNROLL for (int v = 0; v < nv; v++)
        {
            part_scale(t, block, part, g, column + v * VL, &scale[v], &offset[v]);
            shift[v] = dot_shift(scale[v]);
        }
        UNROLL for (int r = 0; r < rows; r++)
        {
            dot_finish(nv, sum[r], &c[r][0][g], 2, scale, shift, a + r * RECORD);
            if (min)
                dot_offset(nv, sum[r], offset, a + r * RECORD, g);
        }
    }
}

/* acc = (from == 0 ? 0 : acc) + A B for few_vectors() vectors of columns and blocks [from, to). Each pass over the columns fetches its
 * share of the lines that lie DIRECT_AHEAD further on, into the second cache. */
INL void direct_columns(st_cpu_wtype t, int rows, const uint8_t *a, const uint8_t *blocks, int from, int to, float *acc,
                        int column)
{
    const int bytes = (int)st_cpu_block_bytes(t), parts = (int)st_cpu_block_k(t) / ST_CPU_BLOCK;
    const int nv = few_vectors(t, rows), shares = ST_CPU_PANEL / (nv * VL) * parts,
              lines = (bytes / 64 + shares - 1) / shares;
    vf sum[ST_DOT_FEW][ST_DOT_NV_ONE];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < nv; v++) sum[r][v] =
        from == 0 ? v_zero() : v_load(acc + tile_at(rows, r, column + v * VL));
    const uint8_t *x = a + (ptrdiff_t)from * parts * RECORD * rows, *block = blocks + (ptrdiff_t)from * bytes;
    for (int b = from; b < to; b++, block += bytes) {
        const uint8_t *ahead = block + DIRECT_AHEAD + column / (nv * VL) * parts * lines * 64;
        for (int p = 0; p < parts; p++, x += RECORD * rows, ahead += 64 * lines) {
            UNROLL for (int l = 0; l < lines; l++) __builtin_prefetch(ahead + 64 * l, 0, 2);
            direct_part(t, rows, x, block, part_of(t, block, p), column, sum);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < nv; v++)
        v_store(acc + tile_at(rows, r, column + v * VL), sum[r][v]);
}

/* Where columns take several passes they do so part by part: memory is not idle during all but the first. */
INL void direct(st_cpu_wtype t, int rows, const uint8_t *a, const uint8_t *blocks, int n_block, float *acc)
{
    const int most = DIRECT_AHEAD / (int)st_cpu_block_bytes(t), columns = few_vectors(t, rows) * VL;
    const int step = columns == ST_CPU_PANEL ? n_block : most > 0 ? most : 1;
    int from = 0;
    do {
        for (int column = 0; column < ST_CPU_PANEL; column += columns)
            direct_columns(t, rows, a, blocks, from, n_block - from < step ? n_block : from + step, acc, column);
        from += step;
    } while (from < n_block);
}

#endif
