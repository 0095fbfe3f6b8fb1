/* narrow_finish.h: tiles of sums of bytes that began with what the row's zero takes from them, and what becomes of them. Included
 * after a vec_*.h by files that define
 *   MM(name)          the level's name of an instruction
 *   ST_NARROW_ROWS    rows of a tile */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_NARROW_FINISH_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_NARROW_FINISH_H

#include "backends/cpu/cpu_pack.h"
#include "../math_body.h"

enum { MOST_CHUNKS = 512 }; /* up to here the sum of a column's weights fits 23 bits */

typedef struct tile_job {
    const uint8_t *a, *panel; /* the panel with its header */
    int chunks, rows;         /* rows <= ST_NARROW_ROWS */
    const st_cpu_row_scale *scale;
    const char *ahead; /* what is fetched meanwhile */
    float *out;
    ptrdiff_t out_stride;
    uint8_t *acc; /* [2][rows][16] */
} tile_job;

/* The sums of weights of VL columns from `column` on, as first_sums() takes them. */
INL vi split_sums(const uint8_t *panel, int column)
{
    const vi s = vi_load(panel + 4 * ST_CPU_PANEL + 4 * column);
    return vi_or(vi_and(s, vi_set1(127)), vi_and(vi_shl(s, 9), vi_set1((int)0xffff0000)));
}

/* -zero * sums of weights: two products of 16 bits, of the sum's low 7 bits and of the rest, which counts 128 times */
INL vi first_sums(int32_t zero, vi sums)
{
    const uint32_t low = (uint32_t)-zero & 0xffff, high = (uint32_t)(-128 * zero) << 16;
    return MM(madd_epi16)(vi_set1((int)(low | high)), sums);
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
        const uint8_t *acc = t->acc + 4 * tile_at(t->rows, 0, half);
        float *out = t->out + half;
        const float *more_out = residual != NULL ? residual + half : NULL;
        const ptrdiff_t out_stride = t->out_stride, residual_stride = e->residual_stride;
        const st_cpu_row_scale *scale = t->scale, *end = scale + t->rows;
        for (; scale < end; scale++, acc += 64, out += out_stride) {
            const vf row = v_set1(scale->scale);
            UNROLL for (int v = 0; v < 2; v++)
            {
                const vi sum = vi_load(acc + 4 * tile_at(t->rows, 0, v * VL));
                vf x = v_add(v_mul(vi_float(sum), v_mul(row, columns[v])), more[v]);
                x = activate(act < 0 ? e->act : (sotto_activation)act, x);
                if (residual != NULL)
                    x = v_add(x, v_load(more_out + v * VL));
                v_store(out + v * VL, x);
            }
            if (residual != NULL)
                more_out += residual_stride;
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

#endif
