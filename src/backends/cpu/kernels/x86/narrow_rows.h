/* narrow_rows.h: narrow products that keep their sums in registers (contracts in cpu_kernels.h): each step is a dword of each
 * row, four bytes or two bf16, with two vectors of columns. Included after ../vec.h by files that define
 *   mm, MM(name)                    a vector of dwords, and the level's name of an instruction
 *   mm step(mm c, mm x, mm w)       c + what a dword of the left side and one of the weights give
 *   ST_NARROW_ROWS                  rows of a tile: 6 or 12 */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_NARROW_ROWS_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_NARROW_ROWS_H

#include "backends/cpu/cpu_kernels.h"

enum {
    COLUMNS = sizeof(mm) / 4,
    STEP_BYTES = 4 * ST_CPU_PANEL,
    CHUNK_STEPS = 16,
    FEW_PART = 2,         /* chunks of few rows that all columns meet, and how far ahead they are fetched */
    ONE_PASS_AHEAD = 8192 /* bytes, where one pass meets all columns */
};

/* Adds what a chunk of the left side, 64 bytes of each row, gives. Weights of these columns that lie `ahead` bytes further on are
 * fetched into the second cache, unless it is 0. */
INL void add_chunk(int rows, const uint8_t *a, const uint8_t *b, mm c[ST_NARROW_ROWS][2], int ahead)
{
    for (int two = 0; two < CHUNK_STEPS / 2; two++, a += 8, b += 2 * STEP_BYTES) {
        UNROLL for (int s = 0; s < 2; s++)
        {
            for (int line = 0; line < 2 * (int)sizeof(mm) && ahead > 0; line += 64)
                __builtin_prefetch(b + ahead + s * STEP_BYTES + line, 0, 2);
            mm w[2];
            UNROLL for (int v = 0; v < 2; v++) memcpy(&w[v], b + s * STEP_BYTES + v * (int)sizeof(mm), sizeof(mm));
            UNROLL for (int r = 0; r < rows; r++)
            {
                int32_t x;
                memcpy(&x, a + r * 64 + 4 * s, sizeof x);
                const mm xs = MM(set1_epi32)(x);
                UNROLL for (int v = 0; v < 2; v++) c[r][v] = step(c[r][v], xs, w[v]);
            }
        }
    }
}

/* acc [2][rows][16] = A B, in parts where the columns take several passes: each fetches its share of the next. In a single pass weights
 * are read one line after the other. That the processor foresees by itself where few rows let it look far enough ahead. */
INL void narrow_few(int rows, const uint8_t *a, const uint8_t *b, int chunks, uint8_t *acc)
{
    const bool one_pass = 2 * COLUMNS == ST_CPU_PANEL;
    const int step = one_pass ? chunks : FEW_PART;
    const int ahead = !one_pass ? FEW_PART * CHUNK_STEPS * STEP_BYTES : rows > 4 ? ONE_PASS_AHEAD : 0;
    for (int from = 0; from < chunks || from == 0; from += step) {
        const int n = chunks - from < step ? chunks - from : step;
        for (int column = 0; column < ST_CPU_PANEL; column += 2 * COLUMNS) {
            mm c[ST_NARROW_ROWS][2];
            const uint8_t *x = a, *w = b + 4 * column;
            UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < 2; v++)
            {
                c[r][v] = (mm){0};
                if (from > 0)
                    memcpy(&c[r][v], acc + 4 * tile_at(rows, r, column + v * COLUMNS), sizeof(mm));
            }
            for (int i = 0; i < n; i++, x += 64 * rows, w += CHUNK_STEPS * STEP_BYTES)
                add_chunk(rows, x, w, c, ahead);
            UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < 2; v++)
                memcpy(acc + 4 * tile_at(rows, r, column + v * COLUMNS), &c[r][v], sizeof(mm));
        }
        if (n == chunks)
            return;
        a += 64 * rows * n;
        b += CHUNK_STEPS * STEP_BYTES * n;
    }
}

#define EACH_ROW_6(X) X(1) X(2) X(3) X(4) X(5) X(6)
#define EACH_ROW_12(X) EACH_ROW_6(X) X(7) X(8) X(9) X(10) X(11) X(12)
#define EACH_ROW(X) ST_CAT(EACH_ROW, ST_NARROW_ROWS)(X)
#define ROWS(R)                                                               \
    static void rows_##R(const void *a, const void *b, int chunks, void *acc) \
    {                                                                         \
        narrow_few(R, a, b, chunks, acc);                                     \
    }
EACH_ROW(ROWS)

static void set_rows(st_cpu_narrow *n)
{
    n->mr = ST_NARROW_ROWS;
    n->row_unit = 1;
#define SET(R) n->product[R] = rows_##R;
    EACH_ROW(SET)
#undef SET
}

#endif
