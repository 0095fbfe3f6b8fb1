/* narrow_pass.h: products of pairs of words and their sums, written out. Included after a vec_*.h. */
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

#endif
