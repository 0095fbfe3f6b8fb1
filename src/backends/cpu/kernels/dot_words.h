/* dot_words.h: for dot_body.h, of x86 levels that multiply pairs of unsigned and signed bytes into words. Included after a vec_*.h
 * and MM(name), the level's name of an instruction, and REGISTER, its constraint. Sums of words stay below 2^15: a quad adds two
 * products of at most (2^bits - 1) * 127 to each. */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_DOT_WORDS_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_DOT_WORDS_H

/* Keeps the compiler from adding in another order, which takes more registers. */
INL mm kept(mm x)
{
    __asm__("" : "+" REGISTER(x));
    return x;
}

enum { ST_DOT_PLANES = 1 };

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
/* Wide weights as they are packed: bytes of odd and even places as words. */
INL vi dot4(vi c, vi w, vi x, bool wide)
{
    (void)wide;
    const mm even = MM(srai_epi16)(MM(slli_epi16)((mm)x, 8), 8), odd = MM(srai_epi16)((mm)x, 8);
    const mm low = MM(madd_epi16)(MM(srli_epi16)(MM(slli_epi16)((mm)w, 8), 8), even);
    const mm sum = kept(MM(add_epi32)((mm)c, low));
    return (vi)kept(MM(add_epi32)(sum, MM(madd_epi16)(MM(srli_epi16)((mm)w, 8), odd)));
}

#endif
