/* narrow_block.h: blocks of rows times panels of bytes with dot products of bytes (contract of block in cpu_kernels.h). Whole
 * tiles are multiplied while a part of the next panel and the places of the results are fetched, a few lines at a time, so that
 * they stand in nobody's way. Sums begin with what the row's zero takes from them. Included after a vec_*.h and narrow_rows.h. */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_NARROW_BLOCK_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_NARROW_BLOCK_H

#include "backends/cpu/cpu_pack.h"
#include "../math_body.h"

enum {
    CHUNK_BYTES = 16 * STEP_BYTES,
    MOST_CHUNKS = 512, /* up to here the sum of a column's weights fits 23 bits */
    LINES = 4          /* of a later panel, fetched with each chunk */
};

typedef struct tile_job {
    const uint8_t *a, *panel; /* the panel with its header */
    int chunks;
    const st_cpu_row_scale *scale;
    const char *ahead;
    float *out;
    ptrdiff_t out_stride;
    uint8_t *acc; /* [2][ST_NARROW_ROWS][16] */
} tile_job;

/* -zero * sums of weights: two products of 16 bits, of the sum's low 7 bits and of the rest, which counts 128 times */
INL mm first_sums(int32_t zero, mm sums)
{
    const uint32_t low = (uint32_t)-zero & 0xffff, high = (uint32_t)(-128 * zero) << 16;
    return MM(madd_epi16)(MM(set1_epi32)((int32_t)(low | high)), sums);
}

/* One of the passes over the tile, 2 * COLUMNS columns from `column` on. */
INL void block_columns(const tile_job *t, int column)
{
    enum { EACH = 2, BEFORE = 8 }; /* rows whose places are fetched with a chunk, in so many of the last chunks */
    mm c[ST_NARROW_ROWS][2], sums[2];
    UNROLL for (int v = 0; v < 2; v++)
    {
        mm s;
        memcpy(&s, t->panel + 4 * ST_CPU_PANEL + 4 * (column + v * COLUMNS), sizeof s);
        sums[v] = (mm)vi_or(vi_and((vi)s, vi_set1(127)), vi_and(vi_shl((vi)s, 9), vi_set1((int)0xffff0000)));
    }
    UNROLL for (int r = 0; r < ST_NARROW_ROWS; r++) UNROLL for (int v = 0; v < 2; v++) c[r][v] =
        first_sums(t->scale[r].zero, sums[v]);
    const uint8_t *a = t->a, *b = t->panel + ST_CPU_I8_HEADER + 4 * column;
    const char *ahead = t->ahead;
    const float *out = t->out;
    int rows = column == 0 ? ST_NARROW_ROWS / EACH : 0;
    for (int i = t->chunks; i > 0; i--, a += 64 * (ST_NARROW_ROWS - 1)) {
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
        for (int two = 0; two < 8; two++, a += 8, b += 2 * STEP_BYTES) {
            UNROLL for (int s = 0; s < 2; s++)
            {
                mm w[2];
                UNROLL for (int v = 0; v < 2; v++) memcpy(&w[v], b + s * STEP_BYTES + v * (int)sizeof(mm), sizeof(mm));
                UNROLL for (int r = 0; r < ST_NARROW_ROWS; r++)
                {
                    int32_t x;
                    memcpy(&x, a + r * 64 + 4 * s, sizeof x);
                    const mm xs = MM(set1_epi32)(x);
                    UNROLL for (int v = 0; v < 2; v++) c[r][v] = step(c[r][v], xs, w[v]);
                }
            }
        }
    }
    UNROLL for (int r = 0; r < ST_NARROW_ROWS; r++) UNROLL for (int v = 0; v < 2; v++)
    {
        const int at = column + v * COLUMNS;
        memcpy(t->acc + 64 * (at / 16 * ST_NARROW_ROWS + r) + 4 * (at % 16), &c[r][v], sizeof(mm));
    }
}

static void block_tile(const tile_job *t)
{
    for (int column = 0; column < ST_CPU_PANEL; column += 2 * COLUMNS)
        block_columns(t, column);
}

/* As finish_i8 does it, but for what the sums began with. */
INL void block_finish(int act, const st_cpu_epilogue *e, const tile_job *t, const float *bias, const float *residual)
{
    for (int half = 0; half < ST_CPU_PANEL; half += 2 * VL) {
        vf columns[2], more[2];
        UNROLL for (int v = 0; v < 2; v++)
        {
            columns[v] = v_load((const float *)(const void *)t->panel + half + v * VL);
            more[v] = bias != NULL ? v_load(bias + half + v * VL)
                                   : v_set1(-0.0f); /* changes no number, not even the sign of a zero */
        }
        for (int r = 0; r < ST_NARROW_ROWS; r++) {
            const vf row = v_set1(t->scale[r].scale);
            UNROLL for (int v = 0; v < 2; v++)
            {
                const int at = half + v * VL;
                const vi sum = vi_load(t->acc + 64 * (at / 16 * ST_NARROW_ROWS + r) + 4 * (at % 16));
                vf x = v_add(v_mul(vi_float(sum), v_mul(row, columns[v])), more[v]);
                x = activate(act < 0 ? e->act : (sotto_activation)act, x);
                if (residual != NULL)
                    x = v_add(x, v_load(residual + r * e->residual_stride + at));
                v_store(t->out + r * e->out_stride + at, x);
            }
        }
    }
}

__attribute__((noinline)) static void block_finish_tile(const st_cpu_epilogue *e, const tile_job *t, int64_t row,
                                                        int64_t col)
{
    const float *bias = e->bias != NULL ? e->bias + col : NULL;
    const float *residual = e->residual != NULL ? e->residual + row * e->residual_stride + col : NULL;
    if (e->act == SOTTO_ACT_GELU)
        block_finish(SOTTO_ACT_GELU, e, t, bias, residual);
    else if (e->act != SOTTO_ACT_NONE)
        block_finish(-1, e, t, bias, residual);
    else if (residual != NULL)
        block_finish(SOTTO_ACT_NONE, e, t, bias, residual);
    else
        block_finish(SOTTO_ACT_NONE, e, t, bias, NULL);
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
