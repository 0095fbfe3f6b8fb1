/* narrow_pass.h: some rows of words times columns of words, with all sums in registers. A product of two pairs is one instruction,
 * and an addition. Included after a vec_*.h by files that define
 *   MM(name)                               the level's name of an instruction
 *   PASS_ROWS, PASS_VECTORS                rows and vectors of columns that meet at once, at most
 *   PASS_HELD                              of those vectors, the weights that are held in registers; the others are read for each row
 *   PASS_FOURS                             fours of k that are written out */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_NARROW_PASS_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_NARROW_PASS_H

#include "backends/cpu/cpu_kernels.h"

/* Products of pairs of words with weights that are read for them alone. Written out, since compilers would read weights once for all
 * rows, and have no registers for them. */
INL vi words_from(vi x, const uint8_t *w)
{
    typedef vi unaligned __attribute__((aligned(1)));
    vi out;
    __asm__("vpmaddwd %2, %1, %0" : "=v"(out) : "v"(x), "m"(*(const unaligned *)(const void *)w));
    return out;
}

/* c + x, in that order: compilers add up what is added first, and run out of registers */
INL vi add_to(vi c, vi x)
{
    __asm__("vpaddd %1, %0, %0" : "+v"(c) : "v"(x));
    return c;
}

/* PASS_FOURS fours of k of the rows at a, row_bytes apart, times PASS_VECTORS vectors of columns of [k / 2][32 columns][2] words */
INL void words_fours(int rows, vi c[][PASS_VECTORS], const uint8_t *a, int row_bytes, const uint8_t *wide)
{
    UNROLL for (int pair = 0; pair < 2 * PASS_FOURS; pair++)
    {
        const uint8_t *w = wide + 4 * ST_CPU_PANEL * pair;
        vi held[PASS_HELD];
        UNROLL for (int v = 0; v < PASS_HELD; v++) held[v] = vi_load(w + 4 * v * VL);
        UNROLL for (int r = 0; r < rows; r++)
        {
            int32_t x;
            memcpy(&x, a + row_bytes * r + 4 * pair, sizeof x);
            const vi xs = vi_set1(x);
            UNROLL for (int v = 0; v < PASS_VECTORS; v++) c[r][v] =
                add_to(c[r][v], v < PASS_HELD ? MM(madd_epi16)(xs, held[v]) : words_from(xs, w + 4 * v * VL));
        }
    }
}

#endif
