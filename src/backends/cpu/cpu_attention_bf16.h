/* cpu_attention_bf16.h: attention of one head over a whole sequence with bf16 products, for levels that have them: for
 * every tile of query rows all scores become probabilities in bf16, which are then the left side of the product with the
 * values. Rounds queries, keys, values and probabilities to bf16; sums are f32. No mask: every query sees all keys. */
#ifndef SOTTO_SRC_BACKENDS_CPU_CPU_ATTENTION_BF16_H
#define SOTTO_SRC_BACKENDS_CPU_CPU_ATTENTION_BF16_H

#include "backends/cpu/cpu_attention.h"

/* The level has the kernels, and the head is one for them: not causal, d a multiple of 32, at least one key. */
bool st_cpu_attention_bf16_fits(const st_cpu_kernels *k, const st_cpu_attention *a);
/* Query rows of a piece at most. */
int st_cpu_attention_bf16_tile(const st_cpu_kernels *k, const st_cpu_attention *a);
/* As their namesakes in cpu_attention.h. */
size_t st_cpu_attention_bf16_packed(const st_cpu_attention *a);
size_t st_cpu_attention_bf16_scratch(const st_cpu_attention *a);
void st_cpu_attention_bf16_pack(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t unit, float *packed);
/* Queries, keys and values of rows [row, row + n), row a multiple of 32, for levels whose tile is 16 rows: a->q, a->k and a->v are
 * those of row `row`. Queries go to packed_q, of st_cpu_attention_bf16_queries floats in all. */
size_t st_cpu_attention_bf16_queries(const st_cpu_attention *a);
void st_cpu_attention_bf16_pack_queries(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t row, int n,
                                        uint8_t *packed_q);
void st_cpu_attention_bf16_pack_cells(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t row, int n,
                                      float *packed);
void st_cpu_attention_bf16_rows(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t row, int n_rows,
                                const float *packed, float *scratch);

#endif
