/* cpu_gemm.h: products of rows with packed weights, one piece at a time: what a thread does with the rows and panels it
 * has taken. Which path is taken depends on the number of rows of the whole product only, so results do not depend on how
 * the work was shared out. */
#ifndef SOTTO_SRC_BACKENDS_CPU_CPU_GEMM_H
#define SOTTO_SRC_BACKENDS_CPU_CPU_GEMM_H

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/cpu_pack.h"

/* The left side: row r = (i3 * n2 + i2) * n1 + i1 starts at element origin + i1 * stride1 + i2 * stride2 + i3 * stride3 of
 * x. Rows may overlap. With clip > 0, elements outside [0, clip) counted from i2 * stride2 + i3 * stride3 are zero and not
 * read: the padding of a convolution. */
typedef struct st_cpu_left {
    const float *x;
    int64_t n1, n2;
    ptrdiff_t stride1, stride2, stride3, origin;
    int64_t clip;
} st_cpu_left;

/* The right side: n columns of k, packed. */
typedef struct st_cpu_right {
    st_cpu_wtype type;
    int64_t n, k;
    const uint8_t *packed;
    bool bf16; /* with bf16 weights: the left side is rounded to bf16, and bf16 instructions may be used */
    bool fine; /* with i8 weights: the left side has 16 bits, not 8; with few rows also that of block types, as two bytes */
    bool int8;  /* with weights of block types: products of integers */
    bool words; /* with f16 weights and many rows: products of words, where the level has them */
} st_cpu_right;

enum { ST_CPU_FEW_ROWS = ST_CPU_MAX_SKINNY }; /* up to here f32 products expand weights in registers */

/* Rows of a tile of the product of n_total rows; a piece is best a whole number of them, ST_CPU_ROW_BLOCK rows at most. */
int st_cpu_gemm_tile(const st_cpu_kernels *k, const st_cpu_right *right, int64_t n_total);

/* Floats of scratch for up to n_rows (<= ST_CPU_ROW_BLOCK) rows. */
size_t st_cpu_gemm_scratch(int64_t n_rows, int64_t k);

/* Packs rows [row, row + n_rows) into scratch, which then serves st_cpu_gemm_panels. n_total is the product's number of
 * rows; when it is <= ST_CPU_FEW_ROWS all must be packed at once. right->packed is not read. */
void st_cpu_gemm_pack(const st_cpu_kernels *k, const st_cpu_left *left, const st_cpu_right *right, int64_t n_total,
                      int64_t row, int n_rows, float *scratch);
/* The packed rows times panels [panel, panel + n_panels). */
void st_cpu_gemm_panels(const st_cpu_kernels *k, const st_cpu_right *right, const st_cpu_epilogue *e, int64_t n_total,
                        int64_t row, int n_rows, int64_t panel, int64_t n_panels, float *scratch);

#endif
