/* dot_words.h: for dot_few.h, of x86 levels that multiply pairs of unsigned and signed bytes into words. Included after a vec_*.h
 * and MM(name), the level's name of an instruction, and REGISTER, its constraint. Sums of words stay below 2^15: a quad adds two
 * products of at most (2^bits - 1) * 127 to each. */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_DOT_WORDS_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_DOT_WORDS_H

#include "backends/cpu/cpu_kernels.h"

/* Keeps the compiler from adding in another order, which takes more registers. */
INL mm kept(mm x)
{
    __asm__("" : "+" REGISTER(x));
    return x;
}

INL int dot_run(int bits)
{
    return bits <= 4 ? 8 : bits == 5 ? 4 : bits == 6 ? 2 : 0;
}
INL vi dot_words(vi w, vi x)
{
    return (vi)MM(maddubs_epi16)((mm)w, (mm)x);
}
INL vi dot_more(vi words, vi w, vi x)
{
    return (vi)kept(MM(add_epi16)((mm)words, MM(maddubs_epi16)((mm)w, (mm)x)));
}
INL vi dot_flush(vi c, vi words)
{
    return (vi)kept(MM(add_epi32)((mm)c, MM(madd_epi16)((mm)words, MM(set1_epi16)(1))));
}
INL vi dot_flush_high(vi c, vi words)
{
    return (vi)kept(MM(add_epi32)((mm)c, MM(madd_epi16)((mm)words, MM(set1_epi16)(16))));
}

/* Nothing is added without words. */
INL vi dot4(vi c, vi w, vi x, bool wide)
{
    (void)w;
    (void)x;
    (void)wide;
    return c;
}

/* 32 bytes of the left side in two planes, low halves before high ones: unsigned bytes, or signed ones, whose halves are -8 to 8 then. */
enum { ST_DOT_PLANES = 2 * ST_CPU_BLOCK };
INL void dot_split(const uint8_t *bytes, bool is_signed, uint8_t *planes)
{
    typedef uint8_t block __attribute__((vector_size(ST_CPU_BLOCK)));
    block x, low, high;
    memcpy(&x, bytes, sizeof x);
    if (is_signed) {
        x ^= 128;
        low = ((x & 15) ^ 8) - 8;
        high = (((x >> 3) + 1) >> 1) - 8; /* with what the low half takes */
    } else {
        low = x & 15;
        high = x >> 4;
    }
    memcpy(planes, &low, sizeof low);
    memcpy(planes + ST_CPU_BLOCK, &high, sizeof high);
    /* From there they are broadcast; compilers would rather take registers apart. */
    __asm__("" : "+m"(*(uint8_t(*)[ST_DOT_PLANES])planes));
}

#endif
