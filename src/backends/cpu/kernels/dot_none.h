/* dot_none.h: for dot_few.h, of levels that sum quads in 32 bits at once. Included after a vec_*.h. */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_DOT_NONE_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_DOT_NONE_H

INL int dot_run(int bits)
{
    (void)bits;
    return 0;
}
INL vi dot_words(vi w, vi x)
{
    (void)x;
    return w;
}
INL vi dot_more(vi words, vi w, vi x)
{
    (void)w;
    (void)x;
    return words;
}
INL vi dot_flush(vi c, vi words)
{
    (void)words;
    return c;
}

INL vi dot_flush_high(vi c, vi words)
{
    (void)words;
    return c;
}

enum { ST_DOT_PLANES = 0 };
INL void dot_split(const uint8_t *bytes, bool is_signed, uint8_t *planes)
{
    (void)bytes;
    (void)is_signed;
    (void)planes;
}

#endif
