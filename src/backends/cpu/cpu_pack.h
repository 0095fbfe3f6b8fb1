/* cpu_pack.h: the layout of packed weights, the same on every level, so that backends of different levels share it.
 *
 * A matrix [n, k] (n rows of k, as in the file) becomes panels of 32 rows: [ceil(n / 32)][ceil(k / 32) blocks]. A block
 * holds 32 k of 32 rows ("columns": they are columns of the product), zero where the matrix ends:
 *   f32   [32 k][32 columns]                      f16   the same
 *   bf16  [16 pairs of k][32 columns][2]
 *   q8_0  [32 scales f16] [8 fours of k][32 columns][4], a byte is quant + 128
 *   q4_x, iq4_nl
 *         [32 scales f16] (q4_1: [32 minima f16]) [4][32 columns][4]: byte j of group g holds k = 4g + j in its low
 *         and k = 16 + 4g + j in its high half
 *   q5_x  as q4_x with [32 columns][4] of fifth bits before the quants: bit g of byte j is that of k = 4g + j
 * The K types have blocks of 256 k: [32 d f16] (q2_k, q4_k, q5_k: [32 dmin f16]), then 8 parts of 32 k:
 *   q4_k  [32 scales] [32 minima] [4][32 columns][4] as q4_x, scales and minima of one byte, as below
 *   q5_k  the same with fifth bits as in q5_x before the quants
 *   q6_k  [2 groups of 16 k][32 scales] [2 groups][32 columns][4]: bits 2i, 2i + 1 of byte j are the high bits of
 *         k = 16 group + 4i + j; then the low bits as q4_x
 *   q3_k  [2 groups][32 scales, less 32] [2 groups][32 columns][4] of low bits, which lie as q6_k's high bits, and [32 columns][4]
 *         of third bits, which lie as fifth bits
 *   q2_k  [2 groups][32 scales, minima above] [2 groups][32 columns][4] of bits
 * i8 has blocks of 64 k, and a header before each panel's first block:
 *   [32 scales f32] [32 sums of the column's quants i32], then blocks of [16 fours of k][32 columns][4] signed bytes
 * Every part is a multiple of 64 bytes. The 4-byte groups are what 8-bit and bf16 dot products want. Nothing is rounded:
 * unpacking gives back the file's values. */
#ifndef SOTTO_SRC_BACKENDS_CPU_CPU_PACK_H
#define SOTTO_SRC_BACKENDS_CPU_CPU_PACK_H

#include "backends/cpu/cpu_kernels.h"

enum { ST_CPU_I8_BLOCK = 64, ST_CPU_I8_HEADER = 256, ST_CPU_K_BLOCK = 256 };

static inline size_t st_cpu_block_bytes(st_cpu_wtype t)
{
    static const uint16_t bytes[ST_CPU_W_COUNT] = {
        [ST_CPU_W_F32] = 4096,
        [ST_CPU_W_F16] = 2048,
        [ST_CPU_W_BF16] = 2048,
        [ST_CPU_W_Q8_0] = 64 + 1024,
        [ST_CPU_W_Q4_0] = 64 + 512,
        [ST_CPU_W_Q4_1] = 128 + 512,
        [ST_CPU_W_Q5_0] = 64 + 128 + 512,
        [ST_CPU_W_Q5_1] = 128 + 128 + 512,
        [ST_CPU_W_I8] = 2048,
        [ST_CPU_W_IQ4_NL] = 64 + 512,
        [ST_CPU_W_Q2_K] = 128 + 8 * (64 + 256),
        [ST_CPU_W_Q3_K] = 64 + 8 * (64 + 256 + 128),
        [ST_CPU_W_Q4_K] = 128 + 8 * (64 + 512),
        [ST_CPU_W_Q5_K] = 128 + 8 * (64 + 128 + 512),
        [ST_CPU_W_Q6_K] = 64 + 8 * (64 + 256 + 512),
    };
    return bytes[t];
}

/* Elements of k in a block. */
static inline int64_t st_cpu_block_k(st_cpu_wtype t)
{
    return t >= ST_CPU_W_Q2_K ? ST_CPU_K_BLOCK : t == ST_CPU_W_I8 ? ST_CPU_I8_BLOCK : ST_CPU_BLOCK;
}

/* False when the type cannot be packed. */
bool st_cpu_wtype_of(sotto_dtype dtype, st_cpu_wtype *out);

static inline int64_t st_cpu_blocks(st_cpu_wtype t, int64_t k)
{
    return (k + st_cpu_block_k(t) - 1) / st_cpu_block_k(t);
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
 * different panels may be packed by different threads at once. The buffer must have been zeroed where no row is packed, and beyond k. */
void st_cpu_pack_rows(st_cpu_wtype t, int64_t k, const void *rows, int64_t row, int64_t n_rows, uint8_t *packed);
/* Row `row` as k floats. */
void st_cpu_unpack_row(st_cpu_wtype t, int64_t k, const uint8_t *packed, int64_t row, float *out);

/* One column of a block of a K type (cpu_pack_k.c). */
size_t st_cpu_k_file_bytes(st_cpu_wtype t);
void st_cpu_pack_k(st_cpu_wtype t, const uint8_t *in, int column, uint8_t *block);
void st_cpu_unpack_k(st_cpu_wtype t, const uint8_t *block, int column, float *out);

#endif
