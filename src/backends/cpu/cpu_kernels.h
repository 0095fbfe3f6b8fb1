/* cpu_kernels.h: the table of kernels of one instruction-set level, and the layout of what they read.
 *
 * Weights [n, k] are packed into panels of 32 rows (columns of the product), see cpu_pack.h. Activations are packed by the
 * thread that uses them, in tiles of `mr` rows or fewer: [k / 16 chunks][rows][16] floats, zero beyond k; k is padded to
 * a whole number of blocks of 32. A product tile is [2][rows][16] floats: the same layout, so a tile of scores can be
 * the left side of the next product.
 *
 * Every kernel works on f32 and accumulates in f32, with fused multiply-add where the level has it, but for the narrow
 * products, which multiply bf16 or 8-bit numbers and sum in f32 or 32-bit integers. Pointers need no alignment. No kernel touches a byte outside what its arguments describe. The oracle of each is in tests/kernels. */
#ifndef SOTTO_SRC_BACKENDS_CPU_CPU_KERNELS_H
#define SOTTO_SRC_BACKENDS_CPU_CPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sotto/graph.h"

enum {
    ST_CPU_PANEL = 32,         /* columns of a panel */
    ST_CPU_BLOCK = 32,         /* elements of k in a block */
    ST_CPU_MAX_MR = 12,        /* rows of an f32 product tile, at most */
    ST_CPU_MAX_NARROW_MR = 32, /* of a narrow one */
    ST_CPU_ROW_UNIT = 16,      /* a multiple of every level's row_unit */
    ST_CPU_ROW_BLOCK = 128,    /* rows packed together, at most */
    ST_CPU_MAX_SKINNY = 8
};

/* Types that can be packed, in the order of the kernel arrays. */
typedef enum st_cpu_wtype {
    ST_CPU_W_F32,
    ST_CPU_W_F16,
    ST_CPU_W_BF16,
    ST_CPU_W_Q8_0,
    ST_CPU_W_Q4_0,
    ST_CPU_W_Q4_1,
    ST_CPU_W_Q5_0,
    ST_CPU_W_Q5_1,
    ST_CPU_W_I8,
    ST_CPU_W_IQ4_NL,
    ST_CPU_W_Q2_K, /* from here on: blocks of 256 */
    ST_CPU_W_Q3_K,
    ST_CPU_W_Q4_K,
    ST_CPU_W_Q5_K,
    ST_CPU_W_Q6_K,
    ST_CPU_W_COUNT
} st_cpu_wtype;

typedef enum st_cpu_level {
    ST_CPU_LEVEL_PORTABLE,
    ST_CPU_LEVEL_V2,
    ST_CPU_LEVEL_V3,
    ST_CPU_LEVEL_AVXVNNI,
    ST_CPU_LEVEL_V4,
    ST_CPU_LEVEL_AVX512VNNI,
    ST_CPU_LEVEL_VNNI,
    ST_CPU_LEVEL_AMX,
    ST_CPU_LEVEL_NEON,
    ST_CPU_LEVEL_DOTPROD,
    ST_CPU_LEVEL_I8MM,
    ST_CPU_LEVEL_BF16MM,
    ST_CPU_LEVEL_COUNT
} st_cpu_level;

/* What happens to a finished product tile. */
typedef struct st_cpu_epilogue {
    float *out;            /* element (0, 0) of the whole product */
    ptrdiff_t out_stride;  /* in elements, from row to row */
    const float *bias;     /* by column, or NULL */
    const float *residual; /* as out, or NULL; may be out itself */
    ptrdiff_t residual_stride;
    sotto_activation act;
} st_cpu_epilogue;

/* Single-query attention of up to 8 rows over the same cells. */
typedef struct st_cpu_cells {
    int n_row; /* 1 .. 8 */
    int d;     /* a multiple of 8 */
    float scale;
    const float *q[ST_CPU_MAX_SKINNY]; /* d elements each */
    float *out[ST_CPU_MAX_SKINNY];
    bool part; /* out gets the sum of weighted values, then a score near the largest, in units of log 2, that weights are
                * relative to, and the sum of weights */
    const char *k, *v;         /* cell 0 of this head */
    size_t k_stride, v_stride; /* bytes from cell to cell */
    sotto_dtype k_type, v_type;
    const int32_t *index; /* cells to visit, or NULL: base, base + 1, ... */
    int64_t base, n_kv;
    int64_t n_cell; /* listed cells outside [0, n_cell) are clamped into it */
    /* window_bf16 alone: behind the first n_common, the rows that see each of the cells to visit, as bits; NULL: all do. */
    const uint8_t *seen;
    int64_t n_common;
    float *scratch; /* st_cpu_cells_scratch() floats */
} st_cpu_cells;

enum { ST_CPU_WINDOW_MAX_D = 64 };

/* What a product fetches while it multiplies: one line of `lines` for each four k, into the second cache, and the places of
 * its results, 32 columns of `rows` rows. */
typedef struct st_cpu_ahead {
    const char *lines;
    const float *out;
    ptrdiff_t out_stride;
    int rows;
} st_cpu_ahead;

typedef void (*st_cpu_product)(const float *a, const float *b, int chunks, float *acc, bool first);
typedef void (*st_cpu_product_ahead)(const float *a, const float *b, int chunks, float *acc, bool first,
                                     const st_cpu_ahead *ahead);
typedef void (*st_cpu_expand)(const uint8_t *blocks, int n_block, float *out);
typedef void (*st_cpu_skinny)(const float *a, const uint8_t *blocks, int n_block, float *acc);
typedef void (*st_cpu_map)(const float *x, float *y, int64_t n);

/* What makes numbers of a row's bytes again: x = scale * (q - zero), q 0 .. 255. */
typedef struct st_cpu_row_scale {
    float scale;
    int32_t zero, fine_zero; /* of fine rows: of the high and of the low sum */
} st_cpu_row_scale;

/* Products of narrow numbers with packed weights as they are. A packed tile is [chunks][tile rows][64 bytes]: 32 bf16 or
 * 64 unsigned bytes of a row, zero beyond k; tile rows are the rows rounded up to row_unit.
 *
 * 8-bit: with lo = min(x, 0), hi = max(x, 0) of the row, scale = (hi - lo) / 255 and zero = round(-lo * 255 / (hi - lo)),
 * q = round(clamp(x * 255 / (hi - lo), -zero, 255 - zero)) + zero, ties to even; a row without range, or with one that makes
 * the quotient overflow, gives scale 0. A
 * number that is not finite makes the scale NaN. A fine row has 16 bits, 65535 for 255, and two sums: a high one, with its
 * zero, counts 256 times, and a low one has fine_zero. Where a level multiplies bytes, they are those of the first and of the
 * second byte; where it multiplies words, a number is one word, and the sum is parted. All levels give the same integers: sums
 * fit 32 bits for k < 66,000.
 *
 * bf16: operands are rounded to nearest, ties to even. Sums are rounded as the level's instruction does it, each with numbers
 * below 2^-126 as 0: to nearest on x86, on arm64 to odd, where what f32 cannot hold becomes the neighbour whose last bit is set:
 * off by less than a unit in the last place instead of half of one, to neither side more than to the other.
 *
 * f16 in words: many rows and weights of f16 become words with a sign, whose products are summed exactly, 256 k at a time, and these
 * sums in f32. In each such part a word of a row stands for the larger of max |x| / 32767 and |x| / 65500, |x| the root of the sum of
 * squares (16 max |x| where that sum is below 1e-30, or too large for f32), one of a column for 2^-s with the largest s that leaves
 * 4^s times its sum of squares below 2^30: so no sum exceeds 32 bits (Cauchy-Schwarz). Either number is rounded to the nearest word.
 * A part of a row with max |x| < 1e-30 counts as 0, and one with a number that is not finite, or such a column, gives NaN. */
typedef struct st_cpu_narrow_block {
    const struct st_cpu_kernels *k;
    const st_cpu_epilogue *e;
    const uint8_t *a;              /* packed tiles of mr rows, but for the last */
    int chunks, rows;              /* rows <= ST_CPU_ROW_BLOCK */
    const st_cpu_row_scale *scale; /* of each row, 8-bit only */
    const uint8_t *panels;         /* the first panel, with its header */
    size_t panel_bytes;
    int64_t n_panels;
    int64_t row, col, n; /* where this is in the product, and how many columns that has */
    void *acc;           /* scratch: acc_panels * ST_CPU_ROW_BLOCK * 32 numbers */
    int64_t acc_panels;
    uint8_t *wide; /* scratch: 64 KiB */
} st_cpu_narrow_block;

typedef void (*st_cpu_narrow_product)(const void *a, const void *b, int chunks, void *acc);

/* Fine rows of a level that multiplies words: each number as one, in tiles of as many rows, 128 bytes a chunk. */
typedef struct st_cpu_fine_words {
    void (*pack_row)(const float *x, int64_t k, void *dst, int rows,
                     st_cpu_row_scale *scale); /* NULL: the level has none */
    /* acc [2][2 * rows][16]: of each half the rows' high sums before their low ones. Indexed by rows, 1 .. mr. */
    st_cpu_narrow_product product[ST_CPU_MAX_NARROW_MR / 2 + 1];
} st_cpu_fine_words;

typedef struct st_cpu_narrow {
    int mr; /* 0: the level has none */
    int row_unit;
    int part; /* k that have a scale of their own, f32, behind the chunks of a packed row, 16 to a chunk; 0: none have */
    /* One row of k floats into its place in a packed tile of `rows` tile rows; zeros to the end of the last chunk. 8-bit
     * only: fine is NULL or the place of the second bytes, NULL where there are fine words, and scale is set. */
    void (*pack_row)(const float *x, int64_t k, void *dst, void *fine, int rows, st_cpu_row_scale *scale);
    /* All packed rows of a block, not fine ones, once they are there, in place; behind them is room for as much again. NULL: nothing
     * is to be done. */
    void (*settle)(void *packed, int chunks, int rows);
    /* Packed rows, not fine ones, times neighbouring panels, finished as by finish or finish_i8; NULL: the level has none. */
    void (*block)(const st_cpu_narrow_block *b);
    /* acc [2][tile rows][16] = A B, floats for bf16, int32 for 8-bit. Indexed by rows, 1 .. mr. */
    st_cpu_narrow_product product[ST_CPU_MAX_NARROW_MR + 1];
    st_cpu_fine_words fine;
    /* Lays a tile of packed rows out as `product` likes it, in place, once all of its rows are there; NULL: it is. */
    void (*arrange)(void *tile, int64_t chunks, int rows);
} st_cpu_narrow;

/* What 32 k of a row of the left side are in products of block types as integers: m = max |x|, scale = m / 127 and
 * q = round(x * (127 / m)), ties to even; zeros where m < 1e-30; a number that is not finite makes the scale NaN. The fixes
 * stand for the sum of q over a group of k (the first and the second 16; the first over all 32 where the weights have one
 * scale): the weights' zero times it, an integer, or for weights with minima the scale times it, a float, each
 * with the sign with which it is added; integers count from what the level's sums start with. */
typedef struct st_cpu_left8 {
    int8_t q[32];
    float scale;
    int32_t fix[2];
    int32_t fix_of_all; /* of all 32 k, where expanded weights have one scale */
} st_cpu_left8;

enum {
    ST_CPU_MAX_DOT_MR = 16,
    ST_CPU_MAX_DOT_FEW = 4,
    ST_CPU_DOT_DIRECT = 4 /* up to so many rows weights are read as they are packed */
};

/* What a product of expanded weights fetches while it multiplies: for each 32 k so many of these lines, and the places of results,
 * 32 columns of `rows` rows. */
typedef struct st_cpu_dot_ahead {
    const uint8_t *lines;
    int each;
    int rows;
    const float *out;
    ptrdiff_t out_stride;
} st_cpu_dot_ahead;

/* Products of block types as integers. A packed tile is [k / 32][rows] of st_cpu_left8. All levels find the same integers.
 * Weights are read as they are packed, or expanded, scales to f32 and quants to bytes, which lie as the level likes it. */
typedef struct st_cpu_dot {
    int mr, few; /* rows of a tile with expanded and with packed weights */
    /* On each thread before products of expanded weights, and `enter` of the table afterwards; NULL: nothing to do. */
    void (*begin)(void);
    void (*pack_row)(st_cpu_wtype t, const float *x, int64_t k, void *dst, int rows);
    /* As that of narrow products, for tiles of k / 32 parts; few: for weights that are read as they are packed. */
    void (*arrange)(void *tile, int64_t parts, int rows, bool few);
    /* acc [2][rows][16] = A B, `n_block` blocks of a panel. Indexed by rows, 1 .. few; NULL: not a block type. */
    void (*direct[ST_CPU_W_COUNT][ST_CPU_MAX_DOT_FEW + 1])(const uint8_t *a, const uint8_t *blocks, int n_block,
                                                           float *acc);
    void (*expand[ST_CPU_W_COUNT])(const uint8_t *blocks, int n_block, uint8_t *out);
    /* acc [2][rows][16] = (first ? 0 : acc) + A B over n_part times 32 k. Indexed by rows, 1 .. mr; NULL: tiles of so many rows
     * are padded to the next that has one, and above the last there are no tiles. */
    void (*product[ST_CPU_W_COUNT][ST_CPU_MAX_DOT_MR + 1])(const uint8_t *a, const uint8_t *b, int n_part, float *acc,
                                                           bool first, const st_cpu_dot_ahead *ahead);
} st_cpu_dot;

/* 16 queries over all keys at once; what it is made of is described at st_cpu_attend. */
typedef struct st_cpu_rows16 {
    int chunks;            /* d / 32: 1 or 2 */
    int n_k, panels;       /* keys, and panels of 32 of them, at least 1 */
    const uint8_t *q;      /* [chunks][16][64 bytes] */
    const uint8_t *keys;   /* [panels][chunks] of pack_keys */
    const uint8_t *values; /* [chunks][panels] of pack_values */
    const float *base;     /* [16] */
    float *scores;         /* scratch: 1024 floats */
    uint8_t *p;            /* scratch: 2048 bytes */
    float *shift;          /* scratch: 16 floats */
    float *sum;            /* [16] gets the sums of the probabilities */
    float *out;            /* [chunks][2][16][16] gets the probabilities times the values */
} st_cpu_rows16;

/* What bf16 attention needs besides the bf16 product (cpu_attention_bf16.c). Tiles of scores and of probabilities are
 * product tiles; scores are in units of log 2 / 128. The columns of a panel of probabilities and the keys of a panel of
 * values are permuted alike, as the level likes it. */
typedef struct st_cpu_attend {
    /* n queries of d floats times scale, the last one again up to `rows`: [d / 32][rows][32] bf16 */
    void (*pack_queries)(const float *x, ptrdiff_t stride, float scale, int n, int rows, int d, uint8_t *out);
    /* n <= 32 keys of d (a multiple of 32) floats: [d / 32][16][32 keys][2] bf16, zero beyond n */
    void (*pack_keys)(const float *x, ptrdiff_t stride, int n, int d, uint8_t *out);
    /* n <= 32 values, 32 columns of them: [16][32 columns][2] bf16, zero beyond n */
    void (*pack_values)(const float *x, ptrdiff_t stride, int n, uint8_t *out);
    /* max [rows] = the larger of itself and the row's first n <= 32 scores; NaN when one is */
    void (*largest)(const float *acc, int tile_rows, int rows, int n, float *max);
    /* p [rows][64 bytes] = 2^((score - base[row]) / 128 - 100) in bf16, zero beyond n <= 32 and below 2^-127; infinite
     * above 2^128. sum [rows][16] gets what was added to each of 16 parts of the row's sum. */
    void (*probabilities)(const float *acc, int tile_rows, int rows, int n, const float *base, uint8_t *p, float *sum);
    /* The same over `panels` tiles of scores that lie one behind the other, 32 of each. */
    void (*largest_of)(const float *acc, int panels, int tile_rows, int rows, float *max);
    /* Scores, probabilities and their product with the values in one go; NULL: the level has none. Tiles have 16 rows. */
    void (*rows16)(const st_cpu_rows16 *a);
} st_cpu_attend;

enum {
    ST_CPU_WORDS_GROUP = 128, /* keys whose values have a scale in common, and whose probabilities have the largest */
    ST_CPU_WORDS_MAX_D = 128,
    ST_CPU_WORDS_ROWS = 24 /* of a tile at most */
};

/* Packed keys and values, n <= 128 of them, of d (a multiple of 32) numbers as words with a sign. Words, their order apart, and
 * scales are the same wherever they are made. Scales are NaN where numbers are none. */
typedef struct st_cpu_word_group {
    int n, d;
    int16_t *keys;      /* [4][d / 2][32 keys][2] */
    float *key_scale;   /* [128] */
    int16_t *values;    /* [d / 32][64][32 columns][2]: keys in pairs, as the level likes them */
    float *value_scale; /* [d] */
} st_cpu_word_group;

/* A tile of queries, and what has been made of them so far. */
typedef struct st_cpu_word_tile {
    int rows, d;    /* rows: a multiple of the level's */
    int16_t *q;     /* [rows][128] */
    float *q_scale; /* [24]; with it, scores are in units of log 2 */
    float *max; /* [24]: the largest score without that scale; before the first group the least of all finite numbers */
    float *sum; /* [rows][8]: of probabilities, in parts; 0 before the first group */
    float *out; /* [d / 16][rows][16]: of weighted values; 0 before the first group */
    float *scores; /* scratch: [rows][128] */
    int16_t *p;    /* scratch: [rows][128] */
} st_cpu_word_tile;

/* Attention as products of words (cpu_attention_words.c), for levels without products of bf16. A query and a key have a scale
 * each; probabilities are whole numbers up to 2^15, for the largest score of all keys so far, so that many may be 0; the values of a
 * group have a scale for each column, as large as their sum allows. All sums of products fit 32 bits. */
typedef struct st_cpu_words {
    int rows; /* of a product; 0: the level has none */
    /* n queries of t->d floats times scale, the last one again up to t->rows */
    void (*pack_queries)(const float *x, ptrdiff_t stride, float scale, int n, const st_cpu_word_tile *t);
    /* g->n keys, and values, of g->d floats; zero from there on to a multiple of 32 */
    void (*pack_keys)(const float *x, ptrdiff_t stride, const st_cpu_word_group *g);
    void (*pack_values)(const float *x, ptrdiff_t stride, const st_cpu_word_group *g);
    /* What the queries of a tile make of a group. */
    void (*add_group)(const st_cpu_word_tile *t, const st_cpu_word_group *g);
} st_cpu_words;

typedef struct st_cpu_kernels {
    st_cpu_level level;
    int mr;          /* rows of an f32 product tile */
    int skinny_rows; /* rows of the largest skinny kernel */

    /* One row of k floats into its place in a packed tile of `rows` rows; zero-fills to the end of the last block. */
    void (*pack_row)(const float *x, int64_t k, float *dst, int rows);
    /* acc [2][rows][16] = (first ? 0 : acc) + A B: A `chunks` chunks of a packed tile, B [16 * chunks][32] floats.
     * Indexed by rows, 1 .. mr. */
    st_cpu_product product[ST_CPU_MAX_MR + 1];
    st_cpu_product_ahead product_ahead; /* of mr rows */
    /* n_block blocks of one panel to [32 * n_block][32] floats; not for f32, which is that already. */
    st_cpu_expand expand[ST_CPU_W_COUNT];
    /* acc [2][rows][16] = A B for few rows, B read in its packed type. Indexed by rows, 1 .. skinny_rows. */
    st_cpu_skinny skinny[ST_CPU_W_COUNT][ST_CPU_MAX_SKINNY + 1];
    /* The same, each number rounded to bf16. */
    void (*pack_row_bf16)(const float *x, int64_t k, float *dst, int rows);
    st_cpu_narrow bf16, i8;  /* every level has i8 */
    st_cpu_narrow f16_words; /* pack_row and block alone, for many rows; mr 0: the level has none, or has bf16 */
    st_cpu_dot dot;
    st_cpu_attend attend; /* NULLs: the level has none */
    st_cpu_words words;
    /* Columns [col, col + cols) (cols <= 32) of rows [row, row + rows) from a product tile [2][tile_rows][16] through the
     * epilogue. */
    void (*finish)(const st_cpu_epilogue *e, const float *acc, int tile_rows, int rows, int64_t row, int64_t col,
                   int cols);
    /* The same from integers: (acc - zero * sum of the column's weights) * (scale of the row * scale of the column).
     * Fine: the low sums are `rows` rows further on in the tile. `scale` holds `rows` rows, `header` is that of the
     * panel (cpu_pack.h). */
    void (*finish_i8)(const st_cpu_epilogue *e, const int32_t *acc, int tile_rows, int rows, bool fine, int64_t row,
                      int64_t col, int cols, const st_cpu_row_scale *scale, const uint8_t *header);
    /* `rows` <= 32 rows of k floats, `stride` elements apart, as the columns of an f32 panel: [k][32], zero where there
     * is no row and for k up to k_padded. */
    void (*pack_panel)(const float *x, ptrdiff_t stride, int rows, int64_t k, int64_t k_padded, float *panel);

    /* Scores in a tile [chunks][rows][16] become exp2(score - m) with m the running maximum of the row over all tiles;
     * max and sum [rows] are updated, rescale [rows] is what earlier sums and products must be multiplied with.
     * Start with max = -infinity, sum = 0. Rows of -infinity only give zeros. */
    void (*softmax_tile)(float *tile, int rows, int chunks, float *max, float *sum, float *rescale);
    /* Scores in a tile [chunks][rows][16], an even number of chunks, become exp2(score), which may be limited to 2^-126 ..
     * 2^127; sum [rows] += the row's. NaN stays NaN. */
    void (*power_tile)(float *tile, int rows, int chunks, float *sum);
    /* acc [2][rows][16] *= factor[row] */
    void (*scale_tile)(float *acc, int rows, const float *factor);

    void (*cells)(const st_cpu_cells *c); /* keys of k_type, values of v_type: f32, f16, bf16 or q8_0 */
    /* The same of bf16 for d a multiple of 32 up to ST_CPU_WINDOW_MAX_D and no part, with queries and probabilities rounded to
     * bf16; NULL: the level has none. */
    void (*window_bf16)(const st_cpu_cells *c);

    /* magnitude * cos and sin of 2 pi turns, turns within +-1/2 */
    void (*cos_sin)(const float *turns, float magnitude, float *cosine, float *sine, int64_t n);
    /* Element i with i + pairs: y = (u c - v s, u s + v c). */
    void (*rotate_halves)(const float *x, const float *cosine, const float *sine, int64_t pairs, float *y);
    /* n elements, neighbours in pairs: y = x * cosine + (x with neighbours swapped) * sine; for a rotation every cosine is
     * there twice, every sine as -s, s. */
    void (*rotate_neighbours)(const float *x, const float *cosine, const float *sine, int64_t n, float *y);
    void (*layer_norm)(const float *x, const float *w, const float *b, float eps, int64_t n, float *y);
    void (*rms_norm)(const float *x, const float *w, float eps, int64_t n, float *y);
    /* softmax(scale x + mask), mask may be NULL */
    void (*softmax)(const float *x, const float *mask, float scale, int64_t n, float *y);
    void (*add)(const float *a, const float *b, float *y, int64_t n);
    void (*mul)(const float *a, const float *b, float *y, int64_t n);
    /* y = act(a) * b, by sotto_activation */
    void (*glu[SOTTO_ACT_GELU_TANH + 1])(const float *a, const float *b, float *y, int64_t n);
    void (*add1)(const float *a, float b, float *y, int64_t n);
    /* y = a x + b */
    void (*scale)(const float *x, float a, float b, float *y, int64_t n);
    /* y = log10(max(x, floor)) */
    void (*log10)(const float *x, float floor, float *y, int64_t n);
    /* y = re^2 + im^2 */
    void (*power)(const float *re, const float *im, float *y, int64_t n);
    st_cpu_map gelu, silu, relu, sigmoid, tanh, sqrt, exp;
    /* On each thread before and after it runs other kernels; NULL: nothing to do. */
    void (*enter)(void);
    void (*leave)(void);
    /* Index of the first largest element, NaN never; 0 when all are NaN. */
    int64_t (*argmax)(const float *x, int64_t n);
    /* Of every 64 elements the largest, and the sum of exp(element - largest), as sotto_block_sums has them. */
    void (*block_sums)(const float *x, int64_t n, float *max, float *sum);
    /* st_i8_pack() of src/quant: the same integers and scale. */
    float (*to_i8)(const float *x, int8_t *q, int64_t n);
    void (*to_f16)(const float *x, uint16_t *y, int64_t n);
    void (*to_bf16)(const float *x, uint16_t *y, int64_t n);
    void (*from_f16)(const uint16_t *x, float *y, int64_t n);
    void (*from_bf16)(const uint16_t *x, float *y, int64_t n);
    /* st_q8_0_pack() and st_q8_0_unpack() of src/quant: the same bits. */
    void (*to_q8_0)(const float *x, void *blocks, int64_t n);
    void (*from_q8_0)(const void *blocks, float *y, int64_t n);
} st_cpu_kernels;

/* Fills the table for a level, from the portable kernels upward. The level must be one that st_cpu_level_usable. */
void st_cpu_kernels_fill(st_cpu_kernels *k, st_cpu_level level);
/* "portable", "v2", "v3", "avxvnni", "v4", "avx512vnni", "vnni", "amx", "neon", "dotprod", "i8mm", "bf16mm" */
const char *st_cpu_level_name(st_cpu_level level);
/* The type in which it multiplies large matrices fastest: the one place that says so. */
sotto_dtype st_cpu_level_prefers(st_cpu_level level);
/* The type of caches that the attention over cells meets fastest, of those that 8-bit weights bear: likewise. */
sotto_dtype st_cpu_level_caches(st_cpu_level level);
/* False for an unknown name. */
bool st_cpu_level_find(const char *name, st_cpu_level *out);
/* Compiled in, and the machine (st_cpu_features()) has its instructions. */
bool st_cpu_level_usable(st_cpu_level level, uint32_t features);
st_cpu_level st_cpu_level_best(uint32_t features);

/* Floats of st_cpu_cells.scratch for heads of d elements. */
static inline size_t st_cpu_cells_scratch(int d)
{
    return (size_t)4608 + (size_t)64 * (size_t)d;
}

/* Fillers of the levels; each sets the pointers that its file defines. */
void st_cpu_fill_product_portable(st_cpu_kernels *k);
void st_cpu_fill_rows_portable(st_cpu_kernels *k);
void st_cpu_fill_product_v2(st_cpu_kernels *k);
void st_cpu_fill_rows_v2(st_cpu_kernels *k);
void st_cpu_fill_product_v3(st_cpu_kernels *k);
void st_cpu_fill_rows_v3(st_cpu_kernels *k);
void st_cpu_fill_product_v4(st_cpu_kernels *k);
void st_cpu_fill_rows_v4(st_cpu_kernels *k);
void st_cpu_fill_dot_portable(st_cpu_kernels *k);
void st_cpu_fill_dot_v2(st_cpu_kernels *k);
void st_cpu_fill_dot_v3(st_cpu_kernels *k);
void st_cpu_fill_dot_avxvnni(st_cpu_kernels *k);
void st_cpu_fill_dot_v4(st_cpu_kernels *k);
void st_cpu_fill_dot_avx512vnni(st_cpu_kernels *k);
void st_cpu_fill_dot_amx(st_cpu_kernels *k);
void st_cpu_fill_dot_neon(st_cpu_kernels *k);
void st_cpu_fill_dot_dotprod(st_cpu_kernels *k);
void st_cpu_fill_narrow_v3(st_cpu_kernels *k);
void st_cpu_fill_narrow_f16_v3(st_cpu_kernels *k);
void st_cpu_fill_narrow_v4(st_cpu_kernels *k);
void st_cpu_fill_narrow_avxvnni(st_cpu_kernels *k);
void st_cpu_fill_narrow_avx512vnni(st_cpu_kernels *k);
void st_cpu_fill_narrow_vnni(st_cpu_kernels *k);
void st_cpu_fill_attention_v3(st_cpu_kernels *k);
void st_cpu_fill_attention_vnni(st_cpu_kernels *k);
void st_cpu_fill_block_amx(st_cpu_kernels *k);
void st_cpu_fill_window_vnni(st_cpu_kernels *k);
void st_cpu_fill_window_amx(st_cpu_kernels *k);
void st_cpu_fill_attention_amx(st_cpu_kernels *k);
void st_cpu_fill_narrow_amx(st_cpu_kernels *k);
void st_cpu_fill_product_neon(st_cpu_kernels *k);
void st_cpu_fill_rows_neon(st_cpu_kernels *k);
void st_cpu_fill_narrow_dotprod(st_cpu_kernels *k);
void st_cpu_fill_narrow_i8mm(st_cpu_kernels *k);
void st_cpu_fill_dot_i8mm(st_cpu_kernels *k);
void st_cpu_fill_narrow_bf16mm(st_cpu_kernels *k);

#endif
