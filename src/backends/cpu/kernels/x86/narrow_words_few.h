/* narrow_words_few.h: products of few rows, which read a panel's bytes as they are and make them words in registers. Fine rows are
 * words, others are bytes and become words in the same way. Included by narrow_words.h. */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_NARROW_WORDS_FEW_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_NARROW_WORDS_FEW_H

enum {
    FEW_PART = 1, /* chunks that all columns meet where they take several passes, and how far ahead they are fetched */
    FINE_PART = 4 /* chunks whose sums of fine products fit 32 bits: 64 * 4 * 2^15 * 2^7 = 2^30 */
};

/* Vectors of columns whose sums stay in registers. */
INL int few_vectors(int rows, bool fine)
{
    return rows <= 2 && 4 * VL <= ST_CPU_PANEL ? 4 : fine || rows <= 4 || ST_REGISTERS > 16 ? 2 : 1;
}

/* The words of a four that come first. Several rows leave no register for the one that first_and_third() multiplies by. */
INL vi first_words(int rows, vi bytes)
{
    return rows == 1 ? first_and_third(bytes) : MM(srai_epi16)(MM(slli_epi16)(bytes, 8), 8);
}

INL vi row_words(const uint8_t *a)
{
    int32_t x;
    memcpy(&x, a, sizeof x);
    return vi_set1(x);
}

/* Two of a row's four bytes as words: the first and the third, or the others. No register is left for a mask. */
INL vi row_bytes(const uint8_t *a, int pair)
{
    return MM(srli_epi16)(pair == 0 ? MM(slli_epi16)(row_words(a), 8) : row_words(a), 8);
}

/* c += `vectors` * VL columns of `chunks` chunks of a panel, which is fetched ahead; b: from the column on */
INL void few_columns(int rows, int vectors, bool fine, vi c[][4], const uint8_t *a, const uint8_t *b, int chunks)
{
    const int row_chunk = fine ? WORD_CHUNK : ROW_CHUNK;
    for (int i = 0; i < chunks; i++, a += row_chunk * (rows - 1)) {
        for (int four = 0; four < 16; four++, a += row_chunk / 16, b += 4 * ST_CPU_PANEL) {
            const int ahead = vectors * VL < ST_CPU_PANEL ? FEW_PART * BYTE_CHUNK : FEW_AHEAD;
            vi bytes[4];
            for (int line = 0; line < 4 * VL * vectors; line += 64)
                __builtin_prefetch(b + ahead + line, 0, FEW_CACHE);
            UNROLL for (int v = 0; v < vectors; v++) bytes[v] = vi_load(b + 4 * v * VL);
            UNROLL for (int pair = 0; pair < 2; pair++)
            {
                vi w[4];
                UNROLL for (int v = 0; v < vectors; v++) w[v] =
                    pair == 0 ? first_words(rows, bytes[v]) : second_and_fourth(bytes[v]);
                UNROLL for (int r = 0; r < rows; r++)
                {
                    const vi xs = fine ? row_words(a + WORD_CHUNK * r + 4 * pair) : row_bytes(a + ROW_CHUNK * r, pair);
                    UNROLL for (int v = 0; v < vectors; v++) c[r][v] = add_to(c[r][v], MM(madd_epi16)(xs, w[v]));
                }
            }
        }
    }
}

/* *at += x */
INL void few_sum(uint8_t *at, vi x)
{
    const vi sum = vi_add(vi_load(at), x);
    memcpy(at, &sum, sizeof sum);
}

/* acc [2][rows][16] = A B, or of fine rows [2][2 * rows][16], the sums' 256ths rounded down and then what they leave. In parts
 * where the columns take several passes, each of which fetches its share of the next, and where sums would not fit. */
INL void few(int rows, bool fine, const uint8_t *a, const uint8_t *b, int chunks, uint8_t *acc)
{
    const int vectors = few_vectors(rows, fine), sums = fine ? 2 * rows : rows;
    const int step = vectors * VL < ST_CPU_PANEL ? FEW_PART : fine ? FINE_PART : chunks;
    memset(acc, 0, (size_t)sums * 4 * ST_CPU_PANEL);
    for (int from = 0; from < chunks; from += step) {
        const int n = chunks - from < step ? chunks - from : step;
        for (int column = 0; column < ST_CPU_PANEL; column += vectors * VL) {
            vi c[ST_NARROW_ROWS][4];
            UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) c[r][v] = vi_set1(0);
            few_columns(rows, vectors, fine, c, a + (fine ? WORD_CHUNK : ROW_CHUNK) * rows * from,
                        b + BYTE_CHUNK * from + 4 * column, n);
            UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++)
            {
                uint8_t *const at = acc + 4 * tile_at(sums, r, column + v * VL);
                few_sum(at, fine ? vi_sar(c[r][v], 8) : c[r][v]);
                if (fine)
                    few_sum(at + 4 * 16 * rows, vi_and(c[r][v], vi_set1(255)));
            }
        }
    }
}

#define FEW(R)                                                                 \
    static void bytes_##R(const void *a, const void *b, int chunks, void *acc) \
    {                                                                          \
        few(R, false, a, b, chunks, acc);                                      \
    }                                                                          \
    static void fine_##R(const void *a, const void *b, int chunks, void *acc)  \
    {                                                                          \
        few(R, true, a, b, chunks, acc);                                       \
    }
#define EACH_WORDS_6(X) X(1) X(2) X(3) X(4) X(5) X(6)
#define EACH_WORDS_8(X) EACH_WORDS_6(X) X(7) X(8)
#define EACH_WORDS(X) ST_CAT(EACH_WORDS, ST_NARROW_ROWS)(X)
EACH_WORDS(FEW)
#undef FEW

#endif
