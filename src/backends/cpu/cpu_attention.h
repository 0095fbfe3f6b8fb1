/* cpu_attention.h: attention of many queries of one head over its keys and values. Keys and values are packed once for
 * a head; then any number of threads take query rows. The scores of a few rows and 256 keys live in the first-level
 * cache at a time, those keys and their values in the second. */
#ifndef SOTTO_SRC_BACKENDS_CPU_CPU_ATTENTION_H
#define SOTTO_SRC_BACKENDS_CPU_CPU_ATTENTION_H

#include "backends/cpu/cpu_kernels.h"

/* One head; strides in elements, from row to row; d elements of a row are contiguous. */
typedef struct st_cpu_attention {
    const float *q, *k, *v;
    float *out;
    ptrdiff_t q_stride, k_stride, v_stride, out_stride;
    int64_t n_q, n_k;
    int d;
    float scale;
    bool causal;             /* query i sees keys 0 .. n_k - n_q + i */
    const uint8_t *packed_q; /* of cpu_attention_bf16.h: the queries, packed; NULL: they are not */
} st_cpu_attention;

/* Floats of a packed head, and of one thread's scratch. */
size_t st_cpu_attention_packed(const st_cpu_attention *a);
size_t st_cpu_attention_scratch(const st_cpu_attention *a);
/* Packing comes in independent units of 32 keys. */
int64_t st_cpu_attention_pack_units(const st_cpu_attention *a);
void st_cpu_attention_pack(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t unit, float *packed);
/* Query rows that are best taken together. */
int st_cpu_attention_tile(const st_cpu_kernels *k);
/* Query rows [row, row + n_rows), n_rows <= st_cpu_attention_tile(k). Rows without visible keys give zeros. */
void st_cpu_attention_rows(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t row, int n_rows,
                           const float *packed, float *scratch);

#endif
