/* narrow_f16_v3.c: products of many rows with f16 weights in words (contract of f16_words in cpu_kernels.h) for x86-64-v3. 256 k
 * of a panel are made words once for all rows of a block, and the sums of these parts are added up in f32. A tile is 3 rows of 32
 * columns. Rows are packed as words, 64 bytes a chunk, and behind all of their chunks the scales of their parts, 16 to a chunk. */
#include "../vec_v3.h"

#include <math.h>

#include "backends/cpu/cpu_kernels.h"
#include "../narrow_pack.h"

#include "word_products.h"

enum {
    CHUNK = 2 * ST_CPU_BLOCK, /* bytes of a packed row's chunk: its k are those of a block */
    BLOCK = CHUNK * ST_CPU_PANEL,
    PART = 8, /* blocks that are made words at once, 16 KiB, and that have scales of their own */
    PART_K = PART * ST_CPU_BLOCK,
    COLUMN_BITS = 30,  /* squares of a column's words in a part sum to less than 2^30, their root to 2^15, */
    MOST_NORM = 65500, /* and that of a row's to this, before they are rounded: (65500 + 8) * (2^15 + 8) < 2^31 */
    MOST_WORD = 32767
};

/* ---- weights ---- */

/* What a column's weights in a part are multiplied with to be words, a power of two, and what a word stands for: NaN where a weight
 * is no number. */
INL void column_scale(vf squares, vf *factor, vf *scale)
{
    const vi exponent = vi_sub(vi_shr(v_as_int(squares), 23), vi_set1(127));
    const vi no_number = _mm256_cmpeq_epi32(exponent, vi_set1(128));
    const vi s = _mm256_srai_epi32(vi_sub(vi_set1(COLUMN_BITS - 1), exponent), 1);
    *factor = vi_as_float(vi_shl(vi_add(vi_set1(127), s), 23));
    *scale = vi_as_float(vi_or(vi_shl(vi_sub(vi_set1(127), s), 23), no_number));
}

INL vf weights_of(const uint8_t *f16)
{
    __m128i x;
    memcpy(&x, f16, sizeof x);
    return _mm256_cvtph_ps(x);
}

/* wide [16 * blocks pairs of k][32 columns][2] words, and the columns' scales, from [32 * blocks k][32 columns] */
static void widen(const uint8_t *b, int blocks, uint8_t *wide, float scale[ST_CPU_PANEL])
{
    enum { VECTORS = ST_CPU_PANEL / VL, ROW = 2 * ST_CPU_PANEL };
    const int pairs = 16 * blocks;
    vf squares[VECTORS], factor[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; v++) squares[v] = v_zero();
    for (int i = 0; i < 2 * pairs; i++) {
        UNROLL for (int v = 0; v < VECTORS; v++)
        {
            const vf w = weights_of(b + ROW * i + 2 * v * VL);
            squares[v] = v_fma(w, w, squares[v]);
        }
    }
    UNROLL for (int v = 0; v < VECTORS; v++)
    {
        vf by;
        column_scale(squares[v], &factor[v], &by);
        v_store(scale + v * VL, by);
    }
    const vf rounder = v_set1(ROUNDER);
    for (int i = 0; i < pairs; i++, b += 2 * ROW, wide += 4 * ST_CPU_PANEL) {
        UNROLL for (int v = 0; v < VECTORS; v++)
        {
            const vi even = v_as_int(v_fma(weights_of(b + 2 * v * VL), factor[v], rounder));
            const vi odd = v_as_int(v_fma(weights_of(b + ROW + 2 * v * VL), factor[v], rounder));
            const vi words = _mm256_blend_epi16(even, vi_shl(odd, 16), 0xaa);
            memcpy(wide + 4 * v * VL, &words, sizeof words);
        }
    }
}

/* ---- products ---- */

/* A tile in a part: chunks of its rows, their scales in this part, one chunk from row to row, and its sums. */
typedef struct part_tile {
    const uint8_t *a;
    const uint8_t *row_scale;
    const uint8_t *wide;
    const float *column_scale;
    int chunks;
    bool first;
    float *acc; /* [2][rows][16] */
} part_tile;

INL void words_pass(int rows, const part_tile *t)
{
    vi c[WORD_ROWS][WORD_VECTORS];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < WORD_VECTORS; v++) c[r][v] = vi_set1(0);
    const uint8_t *a = t->a, *w = t->wide;
    for (int i = 0; i < t->chunks; i++, a += CHUNK * (rows - 1))
        for (int j = 0; j < ST_CPU_BLOCK / 2; j += WORD_PAIRS, a += 4 * WORD_PAIRS, w += 4 * ST_CPU_PANEL * WORD_PAIRS)
            word_products(rows, c, a, CHUNK, w);
    UNROLL for (int r = 0; r < rows; r++)
    {
        float by;
        memcpy(&by, t->row_scale + CHUNK * r, sizeof by);
        UNROLL for (int v = 0; v < WORD_VECTORS; v++)
        {
            float *const acc = t->acc + tile_at(rows, r, v * VL);
            const vf sum = vi_float(c[r][v]), scale = v_mul(v_set1(by), v_load(t->column_scale + v * VL));
            v_store(acc, t->first ? v_mul(sum, scale) : v_fma(sum, scale, v_load(acc)));
        }
    }
}

/* Functions of their own, as compilers move sums about in larger ones. */
#define PASS(R)                                                        \
    __attribute__((noinline)) static void pass_##R(const part_tile *t) \
    {                                                                  \
        words_pass(R, t);                                              \
    }
PASS(1)
PASS(2)
PASS(3)

/* Of a panel. */
static int blocks_of(const st_cpu_narrow_block *b)
{
    return (int)(b->panel_bytes / BLOCK);
}

static const uint8_t *weights_at(const st_cpu_narrow_block *b, int64_t panel, int block)
{
    return b->panels + b->panel_bytes * (size_t)panel + (size_t)block * BLOCK;
}

/* All rows times a part of a panel. Each tile has its share of the next part fetched. */
static void panel_part(const st_cpu_narrow_block *b, int64_t p, int from, const uint8_t *next, float *acc)
{
    static void (*const pass[])(const part_tile *) = {NULL, pass_1, pass_2, pass_3};
    const int all = blocks_of(b), blocks = all - from < PART ? all - from : PART, part = from / PART;
    const int tiles = (b->rows + WORD_ROWS - 1) / WORD_ROWS, lines = (PART * BLOCK / 64 + tiles - 1) / tiles;
    const int64_t col = b->col + p * ST_CPU_PANEL;
    const int cols = (int)(b->n - col < ST_CPU_PANEL ? b->n - col : ST_CPU_PANEL);
    const bool last = from + blocks == all;
    float scale[ST_CPU_PANEL];
    widen(weights_at(b, p, from), blocks, b->wide, scale);
    for (int r = 0; r < b->rows; r += WORD_ROWS, acc += WORD_ROWS * ST_CPU_PANEL) {
        const int rows = b->rows - r < WORD_ROWS ? b->rows - r : WORD_ROWS;
        const uint8_t *const tile = b->a + (size_t)b->chunks * CHUNK * (size_t)r;
        for (int i = 0; i < lines; i++, next += 64)
            __builtin_prefetch(next, 0, 2);
        pass[rows](&(part_tile){.a = tile + (size_t)from * CHUNK * (size_t)rows,
                                .row_scale = tile + (size_t)(all + part / 16) * CHUNK * (size_t)rows + 4 * (part % 16),
                                .wide = b->wide,
                                .column_scale = scale,
                                .chunks = blocks,
                                .first = from == 0,
                                .acc = acc});
        if (last)
            b->k->finish(b->e, acc, rows, rows, b->row + r, col, cols);
    }
}

static void block_words(const st_cpu_narrow_block *b)
{
    const int all = blocks_of(b);
    for (int64_t p = 0; p < b->n_panels; p += b->acc_panels) {
        const int64_t n = b->n_panels - p < b->acc_panels ? b->n_panels - p : b->acc_panels;
        for (int from = 0; from < all; from += PART) {
            for (int64_t i = 0; i < n; i++) {
                const bool over = i + 1 == n;
                const int block = over ? from + PART : from;
                const uint8_t *next = block < all ? weights_at(b, over ? p : p + i + 1, block) : weights_at(b, p + n, 0);
                panel_part(b, p + i, from, next, (float *)b->acc + i * ST_CPU_ROW_BLOCK * ST_CPU_PANEL);
            }
        }
    }
}

/* ---- rows ---- */

/* What n <= 256 numbers of a row are multiplied with to be words, and what a word stands for: NaN where one is no number. */
INL float row_factor(const float *x, int64_t n, float *scale)
{
    vf squares[4], most[4]; /* side by side, to hide how long each takes */
    UNROLL for (int j = 0; j < 4; j++) squares[j] = most[j] = v_zero();
    for (int64_t i = 0; i < n; i += 4 * VL) {
        UNROLL for (int j = 0; j < 4; j++)
        {
            const vf v = n - i >= 4 * VL ? v_load(x + i + j * VL) : narrow_load(x, i + j * VL, n);
            squares[j] = v_fma(v, v, squares[j]);
            most[j] = v_max(most[j], vi_as_float(vi_and(v_as_int(v), vi_set1(0x7fffffff))));
        }
    }
    UNROLL for (int j = 1; j < 4; j++)
    {
        squares[0] = v_add(squares[0], squares[j]);
        most[0] = v_max(most[0], most[j]);
    }
    const float all = v_hsum(squares[0]), largest = v_hmax(most[0]);
    if (all != all || !(largest < __builtin_inff())) {
        *scale = __builtin_nanf("");
        return 0.0f;
    }
    if (largest < 1e-30f)
        return *scale = 0.0f;
    const bool usual = all >= 1e-30f && all < __builtin_inff();
    const float by_norm = usual ? MOST_NORM / sqrtf(all) : MOST_NORM / 16.0f / largest, by_largest = MOST_WORD / largest;
    const float factor = by_norm < by_largest ? by_norm : by_largest;
    *scale = 1.0f / factor;
    return factor;
}

static void pack_row(const float *x, int64_t k, void *dst, void *fine, int rows, st_cpu_row_scale *unused)
{
    (void)fine;
    (void)unused;
    const size_t step = CHUNK * (size_t)rows;
    uint8_t *out = dst, *scales = out + step * (size_t)((k + ST_CPU_BLOCK - 1) / ST_CPU_BLOCK);
    for (int64_t from = 0, part = 0; from < k; from += PART_K, part++) {
        const int64_t n = k - from < PART_K ? k - from : PART_K;
        float scale;
        const vf factor = v_set1(row_factor(x + from, n, &scale));
        memcpy(scales + step * (size_t)(part / 16) + 4 * (part % 16), &scale, sizeof scale);
        for (int64_t i = 0; i < n; i += ST_CPU_BLOCK, out += step) {
            UNROLL for (int j = 0; j < ST_CPU_BLOCK; j += 2 * VL)
            {
                const float *const two = x + from + i + j;
                const bool whole = n - i >= ST_CPU_BLOCK;
                const vf low = whole ? v_load(two) : narrow_load(x + from, i + j, n),
                         high = whole ? v_load(two + VL) : narrow_load(x + from, i + j + VL, n);
                const vi words = in_words(v_mul(low, factor), v_mul(high, factor));
                memcpy(out + 2 * j, &words, sizeof words);
            }
        }
    }
}

void st_cpu_fill_narrow_f16_v3(st_cpu_kernels *k)
{
    k->f16_words =
        (st_cpu_narrow){.mr = WORD_ROWS, .row_unit = 1, .part = PART_K, .pack_row = pack_row, .block = block_words};
}
