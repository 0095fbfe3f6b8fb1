/* narrow_words.h: 8-bit products for levels that have no sums of four products of bytes (contracts in cpu_kernels.h). Blocks of rows
 * multiply bytes (narrow_bytes.h). Pairs of words give sums of two products, which cannot overflow: fine rows are packed as words,
 * 128 bytes a chunk, of four k the first and the third before the second and the fourth, so that one instruction makes words of half
 * of the weights. Included after a vec_*.h, ../narrow_pack.h and narrow_finish.h by files that define
 *   MM(name)                               the level's name of an instruction
 *   PASS_ROWS, PASS_VECTORS                rows of bytes and vectors of columns that meet at once, at most
 *   EACH_PASS(X)                           X of each number of rows that may meet at once, from PASS_ROWS down to 1
 *   PASS_FOURS                             fours of k that are written out
 *   FEW_AHEAD, FEW_CACHE                   how far ahead few rows fetch a panel, in bytes, and how near (as __builtin_prefetch has it)
 *   vi in_order(vi words)                  what packs_epi32 made of two vectors, in that order, the first one's before the other's
 *   bool any_below_zero(vi words)          whether one of the words is */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_NARROW_WORDS_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_NARROW_WORDS_H

enum {
    ROW_CHUNK = ST_CPU_I8_BLOCK,    /* bytes of a packed row's chunk */
    WORD_CHUNK = 2 * ROW_CHUNK,     /* of a fine one's */
    BYTE_CHUNK = 64 * ST_CPU_PANEL, /* of a panel's */
    PART = 4                        /* chunks that all rows meet, as words 16 KiB */
};

/* Pairs of the four k of VL columns. */
INL vi first_and_third(vi bytes)
{
    return MM(maddubs_epi16)(MM(set1_epi16)(1), bytes); /* one times the one, no times the other */
}
INL vi second_and_fourth(vi bytes)
{
    return MM(srai_epi16)(bytes, 8);
}

#include "narrow_pass.h"
#include "narrow_words_few.h"

/* [16 fours of k][2 pairs][32 columns][2] words for each chunk */
static void widen(const uint8_t *b, int chunks, uint8_t *wide)
{
    for (int i = 0; i < 16 * chunks; i++, b += 4 * ST_CPU_PANEL, wide += 8 * ST_CPU_PANEL) {
        UNROLL for (int c = 0; c < ST_CPU_PANEL; c += VL)
        {
            const vi bytes = vi_load(b + 4 * c), first = first_and_third(bytes), second = second_and_fourth(bytes);
            memcpy(wide + 4 * c, &first, sizeof first);
            memcpy(wide + 4 * (ST_CPU_PANEL + c), &second, sizeof second);
        }
    }
}

INL const uint8_t *panel_chunk(const st_cpu_narrow_block *b, int64_t p, int chunk)
{
    return b->panels + b->panel_bytes * (size_t)p + ST_CPU_I8_HEADER + (size_t)chunk * BYTE_CHUNK;
}

#include "narrow_bytes.h"

/* ---- rows ---- */

/* The last numbers of a row, less than a chunk, and zeros. */
static void words_end(const narrow_steps *s, const float *x, int64_t left, uint16_t *out)
{
    for (int j = 0; j < ST_CPU_I8_BLOCK; j += VL) {
        uint32_t bits[VL];
        const vi v = narrow_step(s, narrow_load(x, j, left));
        memcpy(bits, &v, sizeof bits);
        for (int i = 0; i < VL; i++) {
            const int at = ((j + i) & ~3) + ((i & 1) << 1 | (i >> 1 & 1));
            out[at] = (uint16_t)(j + i < left ? bits[i] : 0);
        }
    }
}

/* Numbers less 32768: of the high sum's zero that takes 128. */
static void fine_pack_row(const float *x, int64_t k, void *dst, int rows, st_cpu_row_scale *scale)
{
    enum { LESS = 1 << 15, ROUNDER_BITS = 0x4b400000 };
    narrow_steps s = narrow_scale(x, k, true, scale);
    s.zero = vi_sub(s.zero, vi_set1(LESS + ROUNDER_BITS));
    scale->zero -= LESS / 256;
    uint16_t *out = dst;
    int64_t i = 0;
    for (; i + ST_CPU_I8_BLOCK <= k; i += ST_CPU_I8_BLOCK, out += ST_CPU_I8_BLOCK * (ptrdiff_t)rows) {
        UNROLL for (int j = 0; j < ST_CPU_I8_BLOCK; j += 2 * VL)
        {
            const vi words =
                in_order(MM(packs_epi32)(narrow_step(&s, v_load(x + i + j)), narrow_step(&s, v_load(x + i + j + VL))));
            memcpy(out + j, &words, sizeof words);
        }
    }
    if (i < k)
        words_end(&s, x + i, k - i, out);
}

static void set_words(st_cpu_narrow *n)
{
    *n = (st_cpu_narrow){
        .mr = ST_NARROW_ROWS, .row_unit = 1, .pack_row = pack_row_i8, .settle = settle_bytes, .block = block_bytes};
    n->fine.pack_row = fine_pack_row;
#define SET(R)                 \
    n->product[R] = bytes_##R; \
    n->fine.product[R] = fine_##R;
    EACH_WORDS(SET)
#undef SET
}

#endif
