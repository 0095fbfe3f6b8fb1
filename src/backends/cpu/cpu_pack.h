/* cpu_pack.h: the layout of packed weights, the same on every level, so that backends of different levels share it.
 *
 * A matrix [n, k] (n rows of k, as in the file) becomes panels of 32 rows: [ceil(n / 32)][ceil(k / 32) blocks]. A block
 * holds 32 k of 32 rows ("columns": they are columns of the product), zero where the matrix ends:
 *   f32   [32 k][32 columns]                      f16   the same
 *   bf16  [16 pairs of k][32 columns][2]
 *   q8_0  [32 scales f16] [8 fours of k][32 columns][4], a byte is quant + 128
 *   q4_x  [32 scales f16] (q4_1: [32 minima f16]) [4][32 columns][4]: byte j of group g holds k = 4g + j in its low
 *         and k = 16 + 4g + j in its high half
 *   q5_x  as q4_x with [32 columns] of 32 fifth bits (bit k) before the quants
 * i8 has blocks of 64 k, and a header before each panel's first block:
 *   [32 scales f32] [32 sums of the column's quants i32], then blocks of [16 fours of k][32 columns][4] signed bytes
 * Every part is a multiple of 64 bytes. The 4-byte groups are what 8-bit and bf16 dot products want. Nothing is rounded:
 * unpacking gives back the file's values. */
#ifndef SOTTO_SRC_BACKENDS_CPU_CPU_PACK_H
#define SOTTO_SRC_BACKENDS_CPU_CPU_PACK_H

#include "backends/cpu/cpu_kernels.h"

static inline size_t st_cpu_block_bytes(st_cpu_wtype t)
{
    switch (t) {
    case ST_CPU_W_F32:
        return 4096;
    case ST_CPU_W_F16:
    case ST_CPU_W_BF16:
        return 2048;
    case ST_CPU_W_Q8_0:
        return 64 + 1024;
    case ST_CPU_W_Q4_0:
        return 64 + 512;
    case ST_CPU_W_Q4_1:
        return 128 + 512;
    case ST_CPU_W_Q5_0:
        return 64 + 128 + 512;
    case ST_CPU_W_Q5_1:
        return 128 + 128 + 512;
    case ST_CPU_W_I8:
        return 2048;
    default:
        return 0;
    }
}

/* False when the type cannot be packed. */
bool st_cpu_wtype_of(sotto_dtype dtype, st_cpu_wtype *out);

enum { ST_CPU_I8_BLOCK = 64, ST_CPU_I8_HEADER = 256 };

static inline int64_t st_cpu_blocks(st_cpu_wtype t, int64_t k)
{
    const int64_t block = t == ST_CPU_W_I8 ? ST_CPU_I8_BLOCK : ST_CPU_BLOCK;
    return (k + block - 1) / block;
}

static inline int64_t st_cpu_panels(int64_t n)
{
    return (n + ST_CPU_PANEL - 1) / ST_CPU_PANEL;
}

/* Bytes before a panel's first block. */
static inline size_t st_cpu_header_bytes(st_cpu_wtype t)
{
    return t == ST_CPU_W_I8 ? ST_CPU_I8_HEADER : 0;
}

/* Bytes of one panel of k elements, and of a whole matrix; the latter is 0 when that overflows. */
static inline size_t st_cpu_panel_bytes(st_cpu_wtype t, int64_t k)
{
    return st_cpu_header_bytes(t) + st_cpu_block_bytes(t) * (size_t)st_cpu_blocks(t, k);
}
size_t st_cpu_packed_bytes(st_cpu_wtype t, int64_t n, int64_t k);

/* Bytes of a row as st_cpu_pack_rows takes it: the file's, for i8 a f32 scale and then k bytes. */
size_t st_cpu_row_bytes(st_cpu_wtype t, int64_t k);
/* Rows [row, row + n_rows) of a matrix of k columns, from contiguous rows. Rows of
 * different panels may be packed by different threads at once. The buffer must have been zeroed where no row is packed. */
void st_cpu_pack_rows(st_cpu_wtype t, int64_t k, const void *rows, int64_t row, int64_t n_rows, uint8_t *packed);
/* Row `row` as k floats. */
void st_cpu_unpack_row(st_cpu_wtype t, int64_t k, const uint8_t *packed, int64_t row, float *out);

#endif
