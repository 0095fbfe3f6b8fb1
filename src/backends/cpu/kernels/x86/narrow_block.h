/* narrow_block.h: blocks of rows times panels of bytes with dot products of bytes (contract of block in cpu_kernels.h). Whole
 * tiles are multiplied while a part of the next panel and the places of the results are fetched, a few lines at a time, so that
 * they stand in nobody's way. Sums begin with what the row's zero takes from them. Included after a vec_*.h and narrow_rows.h. */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_NARROW_BLOCK_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_NARROW_BLOCK_H

#include "narrow_finish.h"

enum { LINES = 4 }; /* of a later panel, fetched with each chunk */

/* One of the passes over the tile, 2 * COLUMNS columns from `column` on. */
INL void block_columns(const tile_job *t, int column)
{
    enum { EACH = 2, BEFORE = 8 }; /* rows whose places are fetched with a chunk, in so many of the last chunks */
    mm c[ST_NARROW_ROWS][2], sums[2];
    UNROLL for (int v = 0; v < 2; v++) sums[v] = split_sums(t->panel, column + v * COLUMNS);
    UNROLL for (int r = 0; r < ST_NARROW_ROWS; r++) UNROLL for (int v = 0; v < 2; v++) c[r][v] =
        first_sums(t->scale[r].zero, sums[v]);
    const uint8_t *a = t->a, *b = t->panel + ST_CPU_I8_HEADER + 4 * column;
    const char *ahead = t->ahead;
    const float *out = t->out;
    int rows = column == 0 ? ST_NARROW_ROWS / EACH : 0;
    for (int i = t->chunks; i > 0; i--, a += 64 * ST_NARROW_ROWS, b += CHUNK_STEPS * STEP_BYTES) {
        if (i <= BEFORE && rows > 0) {
            UNROLL for (int r = 0; r < EACH; r++, out += t->out_stride)
            {
                _mm_prefetch((const char *)out, _MM_HINT_T0);
                _mm_prefetch((const char *)(out + ST_CPU_PANEL - 1), _MM_HINT_T0);
            }
            rows--;
        }
        if (column == 0)
            UNROLL for (int l = 0; l < LINES; l++, ahead += 64) _mm_prefetch(ahead, _MM_HINT_T1);
        add_chunk(ST_NARROW_ROWS, a, b, c, 0);
    }
    UNROLL for (int r = 0; r < ST_NARROW_ROWS; r++) UNROLL for (int v = 0; v < 2; v++)
        memcpy(t->acc + 4 * tile_at(ST_NARROW_ROWS, r, column + v * COLUMNS), &c[r][v], sizeof(mm));
}

static void block_tile(const tile_job *t)
{
    for (int column = 0; column < ST_CPU_PANEL; column += 2 * COLUMNS)
        block_columns(t, column);
}

static void block_i8(const st_cpu_narrow_block *b)
{
    const st_cpu_epilogue *e = b->e;
    for (int64_t p = 0; p < b->n_panels; p++) {
        const uint8_t *panel = b->panels + b->panel_bytes * (size_t)p;
        const int64_t col = b->col + p * ST_CPU_PANEL;
        const int cols = (int)(b->n - col < ST_CPU_PANEL ? b->n - col : ST_CPU_PANEL);
        const bool whole = cols == ST_CPU_PANEL && b->chunks <= MOST_CHUNKS;
        const size_t share = (size_t)b->chunks * LINES * 64;
        for (int r = 0; r < b->rows; r += ST_NARROW_ROWS) {
            const int rows = b->rows - r < ST_NARROW_ROWS ? b->rows - r : ST_NARROW_ROWS;
            const size_t ahead = p + 1 < b->n_panels ? share * (size_t)(r / ST_NARROW_ROWS) : b->panel_bytes;
            const tile_job t = {.a = b->a + (size_t)b->chunks * 64 * (size_t)r,
                                .panel = panel,
                                .chunks = b->chunks,
                                .rows = rows,
                                .scale = b->scale + r,
                                .ahead = (const char *)panel + (ahead < b->panel_bytes ? b->panel_bytes + ahead : 0),
                                .out = e->out + (b->row + r) * e->out_stride + col,
                                .out_stride = e->out_stride,
                                .acc = b->acc};
            if (whole && rows == ST_NARROW_ROWS) {
                block_tile(&t);
                block_finish_tile(e, &t, b->row + r, col);
            } else {
                b->k->i8.product[rows](t.a, panel + ST_CPU_I8_HEADER, b->chunks, b->acc);
                b->k->finish_i8(e, b->acc, rows, rows, false, b->row + r, col, cols, t.scale, panel);
            }
        }
    }
}

#endif
