/* word_products.h: words of numbers, and rows of words times 32 columns of words with AVX2, all sums in registers: of three rows 12, a vector of weights, a
 * row's two words and their products. Included after ../vec_v3.h. */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_WORD_PRODUCTS_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_WORD_PRODUCTS_H

#include "narrow_pass.h"

enum { WORD_ROWS = 3, WORD_VECTORS = ST_CPU_PANEL / VL, WORD_PAIRS = 8 };

/* 16 numbers as words in their order; what is no number becomes one. */
INL vi in_words(vf low, vf high)
{
    return _mm256_permute4x64_epi64(_mm256_packs_epi32(_mm256_cvtps_epi32(low), _mm256_cvtps_epi32(high)), 0xd8);
}

/* c += WORD_PAIRS pairs of the rows at a, row_bytes apart, times those of [pairs][32 columns][2] at w */
INL void word_products(int rows, vi c[][WORD_VECTORS], const uint8_t *a, int row_bytes, const uint8_t *w)
{
    UNROLL for (int pair = 0; pair < WORD_PAIRS; pair++, w += 4 * ST_CPU_PANEL)
    {
        const vi held = vi_load(w); /* of the others, each row reads its own */
        UNROLL for (int r = 0; r < rows; r++)
        {
            int32_t two;
            memcpy(&two, a + row_bytes * r + 4 * pair, sizeof two);
            const vi x = vi_set1(two);
            UNROLL for (int v = 0; v < WORD_VECTORS; v++)
            {
                const vi products = v == 0 ? _mm256_madd_epi16(x, held) : words_from(x, w + 4 * v * VL);
                c[r][v] = add_to(c[r][v], products);
            }
        }
    }
}

#endif
