/* cpu_cells.h: attention of the rows of a prompt over a cache. Rows that see cells of one list are a tile together with the
 * heads that share a head of keys: every cell is expanded once for all of them, and both products are those of the linear
 * layers (cpu_attention.c). Cells come in groups that fit the second-level cache; maxima and sums are carried from one
 * group to the next. What a row does not see is masked. */
#ifndef SOTTO_SRC_BACKENDS_CPU_CPU_CELLS_H
#define SOTTO_SRC_BACKENDS_CPU_CPU_CELLS_H

#include "backends/cpu/cpu_kernels.h"

/* Places [first, end) of a list; none when they are equal. */
typedef struct st_cpu_range {
    int64_t first, end;
} st_cpu_range;

/* Rows of one list and one head of keys. Strides in elements for q and out, in bytes for k and v. */
typedef struct st_cpu_prompt {
    int d, share; /* heads that share the head of keys */
    int n_row;
    float scale;
    bool bf16; /* operands may be rounded to it */
    const float *q;
    float *out; /* heads of a row lie side by side */
    ptrdiff_t q_row, q_head, out_row;
    sotto_dtype k_type, v_type;
    const char *k, *v; /* cell 0 of this head */
    size_t k_stride, v_stride;
    const int32_t *index;     /* the list, or NULL: base, base + 1, ... */
    int64_t base, n_cell;     /* listed cells outside [0, n_cell) are clamped into it */
    const st_cpu_range *seen; /* [n_row]; together they have no gaps: every cell from the first to the last end is seen */
} st_cpu_prompt;

/* Floats of scratch for up to n_row rows. */
size_t st_cpu_prompt_scratch(const st_cpu_kernels *k, int d, int share, int n_row, bool bf16);
/* Keys or values of n places of the list from `place` on, p->d floats each, one behind the other. */
void st_cpu_expand_cells(const st_cpu_kernels *k, const st_cpu_prompt *p, sotto_dtype type, const char *data,
                         size_t stride, int64_t place, int n, float *to);
void st_cpu_prompt_rows(const st_cpu_kernels *k, const st_cpu_prompt *p, float *scratch);

#endif
