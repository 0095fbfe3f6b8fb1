/* narrow_pairs.h: narrow products with matrix instructions, which multiply two rows with two columns, eight bytes of each
 * (contracts in cpu_kernels.h). Included by files that define
 *   sums, words                     a vector of sums; one of 4 dwords of bytes or of bf16
 *   sums square(sums c, words x, words w)
 *                                   c + two rows times two columns: [row 0, 1][column 0, 1]
 *   LANE(c, x, w, i)                c + four columns times dword i of x
 * Tiles are arranged: pairs of rows lie in one another, [8][2 rows][8 bytes] of each chunk; a last row alone stays as it is.
 * Weights are stored in dwords, [32 columns][4 bytes]: two neighbouring steps are zipped. */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_ARM_NARROW_PAIRS_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_ARM_NARROW_PAIRS_H

#include <arm_neon.h>

#include "backends/cpu/cpu_kernels.h"
#include "../vec.h"

/* 12 rows of 8 columns: 24 sums, four vectors of weights, one of rows. */
enum { MR = 12, CHUNK = 64, STEP_BYTES = 4 * ST_CPU_PANEL };

static void arrange(void *tile, int64_t chunks, int rows)
{
    uint8_t *at = tile;
    for (int64_t i = 0; i < chunks; i++, at += CHUNK * (rows % 2)) {
        for (int r = 0; r + 2 <= rows; r += 2, at += 2 * CHUNK) {
            uint64x2_t a[4], b[4];
            UNROLL for (int j = 0; j < 4; j++)
            {
                a[j] = vreinterpretq_u64_u8(vld1q_u8(at + 16 * j));
                b[j] = vreinterpretq_u64_u8(vld1q_u8(at + CHUNK + 16 * j));
            }
            UNROLL for (int j = 0; j < 4; j++)
            {
                vst1q_u8(at + 32 * j, vreinterpretq_u8_u64(vzip1q_u64(a[j], b[j])));
                vst1q_u8(at + 32 * j + 16, vreinterpretq_u8_u64(vzip2q_u64(a[j], b[j])));
            }
        }
    }
}

/* `columns` columns, from `column` on, of acc [2][rows][16] = A B */
INL void pair_columns(int rows, int columns, const uint8_t *a, const uint8_t *b, int chunks, uint8_t *acc, int column)
{
    const int pairs = (rows + 1) / 2;
    sums c[MR / 2][8];
    UNROLL for (int p = 0; p < pairs; p++) UNROLL for (int v = 0; v < columns / 2; v++) c[p][v] = (sums){0};
    b += 4 * column;
    for (int i = 0; i < chunks; i++, a += CHUNK * rows) {
        for (int eight = 0; eight < 8; eight++, b += 2 * STEP_BYTES) {
            words w[8];
            UNROLL for (int v = 0; v < columns / 4; v++)
            {
                const uint32x4_t low = vreinterpretq_u32_u8(vld1q_u8(b + 16 * v));
                const uint32x4_t high = vreinterpretq_u32_u8(vld1q_u8(b + STEP_BYTES + 16 * v));
                w[2 * v] = (words)vzip1q_u32(low, high);
                w[2 * v + 1] = (words)vzip2q_u32(low, high);
            }
            UNROLL for (int p = 0; p < pairs; p++)
            {
                const uint8_t *at = a + 2 * CHUNK * p;
                const words x = 2 * p + 1 < rows ? (words)vld1q_u8(at + 16 * eight)
                                                 : (words)vcombine_u8(vld1_u8(at + 8 * eight), vdup_n_u8(0));
                UNROLL for (int v = 0; v < columns / 2; v++) c[p][v] = square(c[p][v], x, w[v]);
            }
        }
    }
    UNROLL for (int p = 0; p < pairs; p++) UNROLL for (int v = 0; v < columns / 2; v += 2)
    {
        const int at = column + 2 * v;
        const uint64x2_t left = (uint64x2_t)c[p][v], right = (uint64x2_t)c[p][v + 1];
        uint8_t *const out = acc + 64 * (at / 16 * rows + 2 * p) + 4 * (at % 16);
        vst1q_u8(out, vreinterpretq_u8_u64(vzip1q_u64(left, right)));
        if (2 * p + 1 < rows)
            vst1q_u8(out + 64, vreinterpretq_u8_u64(vzip2q_u64(left, right)));
    }
}

/* The lane is part of the instruction, so that no loop can count it. */
#define STEP(I) UNROLL for (int v = 0; v < 8; v++) LANE(c[v], x, (words)vld1q_u8(b + STEP_BYTES * (I) + 16 * v), I);

/* One row, all columns at once. */
static void rows_1(const void *left, const void *right, int chunks, void *acc)
{
    const uint8_t *a = left, *b = right;
    sums c[8];
    UNROLL for (int v = 0; v < 8; v++) c[v] = (sums){0};
    for (int i = 0; i < 4 * chunks; i++, a += 16, b += 4 * STEP_BYTES) {
        const words x = (words)vld1q_u8(a);
        STEP(0)
        STEP(1)
        STEP(2)
        STEP(3)
    }
    UNROLL for (int v = 0; v < 8; v++) vst1q_u8((uint8_t *)acc + 16 * v, (uint8x16_t)c[v]);
}

/* Few rows take more columns at a time, so that the sums are enough to wait for each other. */
#define ROWS(R)                                                                                               \
    static void rows_##R(const void *a, const void *b, int chunks, void *acc)                                 \
    {                                                                                                         \
        enum { COLUMNS = (R) <= 4 ? 16 : 8 };                                                                 \
        for (int column = 0; column < ST_CPU_PANEL; column += COLUMNS)                                        \
            pair_columns(R, COLUMNS, (const uint8_t *)a, (const uint8_t *)b, chunks, (uint8_t *)acc, column); \
    }
#define EACH_ROW(X) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
EACH_ROW(ROWS)

static void set_rows(st_cpu_narrow *n)
{
    *n = (st_cpu_narrow){.mr = MR, .row_unit = 1, .product[1] = rows_1, .arrange = arrange};
#define SET(R) n->product[R] = rows_##R;
    EACH_ROW(SET)
#undef SET
}

#endif
