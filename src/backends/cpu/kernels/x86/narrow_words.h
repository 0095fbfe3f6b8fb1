/* narrow_words.h: 8-bit products for levels that have no sums of four products of bytes (contracts in cpu_kernels.h). Blocks of rows
 * multiply bytes (narrow_bytes.h). Pairs of words give sums of two products, which cannot overflow: fine rows are packed as words,
 * 128 bytes a chunk, of four k the first and the third before the second and the fourth, so that one instruction makes words of half
 * of the weights. Their blocks have a part of a panel made words once for all of its tiles, and some neighbouring panels meet a part
 * of the rows where whole rows are too long to stay in the cache. Included after a vec_*.h, ../narrow_pack.h and narrow_finish.h by
 * files that define
 *   what narrow_pass.h wants
 *   EACH_PASS(X)                           X of each number of rows that may meet at once, from PASS_ROWS down to 1
 *   EACH_BYTES_PASS(X), BYTES_ROWS, BYTES_FOURS
 *                                          the same of rows of bytes, and the fours of k that are written out
 *   FEW_AHEAD, FEW_CACHE                   how far ahead few rows fetch a panel, in bytes, and how near (as __builtin_prefetch has it)
 *   vi in_order(vi words)                  what packs_epi32 made of two vectors, in that order, the first one's before the other's
 *   bool any_below_zero(vi words)          whether one of the words is */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_NARROW_WORDS_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_NARROW_WORDS_H

enum {
    ROW_CHUNK = ST_CPU_I8_BLOCK,    /* bytes of a packed row's chunk */
    WORD_CHUNK = 2 * ROW_CHUNK,     /* of a fine one's */
    BYTE_CHUNK = 64 * ST_CPU_PANEL, /* of a panel's */
    PART = 4,                       /* chunks that all rows meet, as words 16 KiB */
    FEW_TILES = 2                   /* of rows that meet the weights as they are */
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

/* A part of some of a tile's rows, from `row` on: `chunks` chunks from t->a on, added to the sums unless it is the first. */
INL void words_pass(int rows, const tile_job *t, int row, const uint8_t *wide, int chunks, bool first)
{
    for (int column = 0; column < ST_CPU_PANEL; column += PASS_VECTORS * VL) {
        vi c[PASS_ROWS][PASS_VECTORS], sums[PASS_VECTORS];
        UNROLL for (int v = 0; v < PASS_VECTORS; v++) sums[v] = split_sums(t->panel, column + v * VL);
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < PASS_VECTORS; v++) c[r][v] =
            first ? first_sums(t->scale[row + r].zero, sums[v])
                  : vi_load(t->acc + 4 * tile_at(t->rows, row + r, column + v * VL));
        const uint8_t *a = t->a + WORD_CHUNK * row, *w = wide + 4 * column;
        for (int i = 0; i < chunks; i++, a += WORD_CHUNK * (t->rows - 1))
            for (int four = 0; four < 16; four += PASS_FOURS, a += 8 * PASS_FOURS, w += 8 * ST_CPU_PANEL * PASS_FOURS)
                words_fours(rows, c, a, WORD_CHUNK, w);
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < PASS_VECTORS; v++)
            memcpy(t->acc + 4 * tile_at(t->rows, row + r, column + v * VL), &c[r][v], sizeof(vi));
    }
}

/* Functions of their own, as compilers move sums about in larger ones. */
#define PASS(R)                                                                                                 \
    __attribute__((noinline)) static void pass_##R(const tile_job *t, int row, const uint8_t *wide, int chunks, \
                                                   bool first)                                                  \
    {                                                                                                           \
        words_pass(R, t, row, wide, chunks, first);                                                             \
    }
EACH_PASS(PASS)

INL void words_tile(const tile_job *t, const uint8_t *wide, int chunks, bool first)
{
    int row = 0;
#define ROWS_OF(R)                       \
    for (; row + R <= t->rows; row += R) \
        pass_##R(t, row, wide, chunks, first);
    EACH_PASS(ROWS_OF)
#undef ROWS_OF
}

/* Row r and those behind it times panel p; `acc` is that of the panel. */
INL tile_job words_job(const st_cpu_narrow_block *b, int64_t p, int r, uint8_t *acc)
{
    const int64_t col = b->col + p * ST_CPU_PANEL;
    return (tile_job){.a = b->a + (size_t)b->chunks * WORD_CHUNK * (size_t)r,
                      .panel = b->panels + b->panel_bytes * (size_t)p,
                      .chunks = b->chunks,
                      .rows = b->rows - r < ST_NARROW_ROWS ? b->rows - r : ST_NARROW_ROWS,
                      .scale = b->scale + r,
                      .out = b->e->out + (b->row + r) * b->e->out_stride + col,
                      .out_stride = b->e->out_stride,
                      .acc = acc + (size_t)r * 4 * ST_CPU_PANEL};
}

INL const uint8_t *panel_chunk(const st_cpu_narrow_block *b, int64_t p, int chunk)
{
    return b->panels + b->panel_bytes * (size_t)p + ST_CPU_I8_HEADER + (size_t)chunk * BYTE_CHUNK;
}

/* All rows times a part of a whole panel. Each tile has its share of the next part fetched, and in the last part the places of
 * its results. */
static void words_part(const st_cpu_narrow_block *b, int64_t p, int from, const uint8_t *next, uint8_t *acc)
{
    const int chunks = b->chunks - from < PART ? b->chunks - from : PART;
    const int tiles = (b->rows + ST_NARROW_ROWS - 1) / ST_NARROW_ROWS;
    const int lines = (PART * BYTE_CHUNK / 64 + tiles - 1) / tiles;
    const bool last = from + chunks == b->chunks;
    widen(panel_chunk(b, p, from), chunks, b->wide);
    for (int r = 0; r < b->rows; r += ST_NARROW_ROWS) {
        tile_job t = words_job(b, p, r, acc);
        t.a += (size_t)from * WORD_CHUNK * (size_t)t.rows;
        for (int i = 0; i < lines; i++, next += 64)
            __builtin_prefetch(next, 0, 2);
        for (int i = 0; i < t.rows && last; i++) {
            __builtin_prefetch(t.out + i * t.out_stride);
            __builtin_prefetch(t.out + i * t.out_stride + ST_CPU_PANEL - 1);
        }
        words_tile(&t, b->wide, chunks, from == 0);
        if (last)
            block_finish_tile(b->e, &t, b->row + r, b->col + p * ST_CPU_PANEL);
    }
}

/* `n` whole panels from p on, which have sums of their own. */
static void words_panels(const st_cpu_narrow_block *b, int64_t p, int64_t n)
{
    for (int from = 0; from < b->chunks; from += PART) {
        for (int64_t i = 0; i < n; i++) {
            const bool over = i + 1 == n;
            const int chunk = over ? from + PART : from;
            const uint8_t *next =
                chunk < b->chunks ? panel_chunk(b, over ? p : p + i + 1, chunk) : panel_chunk(b, p + n, 0);
            words_part(b, p + i, from, next, (uint8_t *)b->acc + i * 4 * ST_CPU_ROW_BLOCK * ST_CPU_PANEL);
        }
    }
}

__attribute__((unused)) static void block_words(const st_cpu_narrow_block *b)
{
    const bool many = b->rows > FEW_TILES * ST_NARROW_ROWS && b->chunks > 0 && b->chunks <= MOST_CHUNKS;
    const int64_t full = (b->n - b->col) / ST_CPU_PANEL, whole = !many ? 0 : full < b->n_panels ? full : b->n_panels;
    for (int64_t p = 0; p < whole; p += b->acc_panels)
        words_panels(b, p, whole - p < b->acc_panels ? whole - p : b->acc_panels);
    for (int64_t p = whole; p < b->n_panels; p++) {
        const int64_t col = b->col + p * ST_CPU_PANEL;
        const int cols = (int)(b->n - col < ST_CPU_PANEL ? b->n - col : ST_CPU_PANEL);
        for (int r = 0; r < b->rows; r += ST_NARROW_ROWS) {
            const tile_job t = words_job(b, p, r, b->acc);
            b->k->i8.product[t.rows](t.a, t.panel + ST_CPU_I8_HEADER, b->chunks, t.acc);
            b->k->finish_i8(b->e, (const int32_t *)(const void *)t.acc, t.rows, t.rows, false, b->row + r, col, cols,
                            t.scale, t.panel);
        }
    }
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
