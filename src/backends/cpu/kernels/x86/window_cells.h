/* window_cells.h: where the cells of a window lie (contract of window_bf16 in cpu_kernels.h), 32 at a time, and the references
 * of its rows. Cells that do not lie in a row, or that some rows do not see, are copied side by side. Included after ../vec.h. */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_WINDOW_CELLS_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_WINDOW_CELLS_H

#include <string.h>

#include "backends/cpu/cpu_kernels.h"

enum {
    STEP = 32,  /* cells that are met at once */
    MARGIN = 16 /* powers of two that the reference is above the largest score, so that it rarely changes */
};

/* The cells of a step: where they lie, and their neighbours' distance. */
typedef struct place {
    const uint8_t *k, *v;
    size_t k_stride, v_stride;
} place;

/* Copies of two steps, which take turns. */
typedef struct copies {
    uint8_t *cells; /* [2][keys, values][32 cells][d] bf16 */
    uint8_t *seen;  /* [2][32 cells]: the rows that see the cell, as bits */
} copies;

INL size_t cell_of(const st_cpu_cells *c, int64_t i)
{
    const int64_t cell = c->index != NULL ? c->index[i] : c->base + i;
    return (size_t)(cell < 0 ? 0 : cell >= c->n_cell ? c->n_cell - 1 : cell);
}

/* hint: how near to be, as __builtin_prefetch has it */
INL void fetch_cell(const uint8_t *cell, int d, int hint)
{
    for (int j = 0; j < 2 * d; j += 64) {
        if (hint == 3)
            __builtin_prefetch(cell + j);
        else
            __builtin_prefetch(cell + j, 0, 2);
    }
}

/* The place of step i of cells that lie in a row. */
INL place place_of(const st_cpu_cells *c, int64_t i)
{
    const size_t first = (size_t)(c->base + i * STEP);
    return (place){(const uint8_t *)c->k + first * c->k_stride, (const uint8_t *)c->v + first * c->v_stride,
                   c->k_stride, c->v_stride};
}

/* How many steps are all of cells that lie in a row, and that all rows see. */
INL int64_t steps_in_row(const st_cpu_cells *c)
{
    return c->index == NULL && c->seen == NULL ? c->n_kv / STEP : 0;
}

/* The cells of step i side by side, with zeros behind the last; those `steps` later are fetched, as near as `hint` says. */
INL place gather(const st_cpu_cells *c, const copies *s, int64_t i, int d, int steps, int hint)
{
    const size_t bytes = 2 * (size_t)d;
    uint8_t *k = s->cells + (size_t)(i % 2) * 64 * bytes, *v = k + 32 * bytes, *seen = s->seen + i % 2 * STEP;
    const place to = {k, v, bytes, bytes};
    for (int64_t j = i * STEP; j < (i + 1) * STEP; j++, k += bytes, v += bytes, seen++) {
        if (j + steps * STEP < c->n_kv) {
            const size_t cell = cell_of(c, j + steps * STEP);
            fetch_cell((const uint8_t *)c->k + cell * c->k_stride, d, hint);
            fetch_cell((const uint8_t *)c->v + cell * c->v_stride, d, hint);
        }
        if (j < c->n_kv) {
            const size_t cell = cell_of(c, j);
            memcpy(k, c->k + cell * c->k_stride, bytes);
            memcpy(v, c->v + cell * c->v_stride, bytes);
            *seen = j < c->n_common || c->seen == NULL ? 0xff : c->seen[j - c->n_common];
        } else {
            memset(k, 0, bytes);
            memset(v, 0, bytes);
            *seen = 0;
        }
    }
    return to;
}

#endif
