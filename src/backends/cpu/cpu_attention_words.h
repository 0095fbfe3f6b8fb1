/* cpu_attention_words.h: attention of one head over a whole sequence as products of 16-bit words, for levels that have them and no
 * products of bf16. What is rounded, and how, is said at st_cpu_words; sums over a group of 128 keys are whole numbers, those over
 * groups are f32. No mask: every query sees all keys. */
#ifndef SOTTO_SRC_BACKENDS_CPU_CPU_ATTENTION_WORDS_H
#define SOTTO_SRC_BACKENDS_CPU_CPU_ATTENTION_WORDS_H

#include "backends/cpu/cpu_attention.h"

/* The level has the kernels, and the head is one for them: not causal, d a multiple of 32 up to 128, at least one key. */
bool st_cpu_attention_words_fits(const st_cpu_kernels *k, const st_cpu_attention *a);
/* As their namesakes in cpu_attention.h; a unit of packing is a group of keys, and a tile has up to ST_CPU_WORDS_ROWS rows. */
size_t st_cpu_attention_words_packed(const st_cpu_attention *a);
size_t st_cpu_attention_words_scratch(const st_cpu_attention *a);
int64_t st_cpu_attention_words_units(const st_cpu_attention *a);
void st_cpu_attention_words_pack(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t unit, float *packed);
void st_cpu_attention_words_rows(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t row, int n_rows,
                                 const float *packed, float *scratch);

/* The parts of it, which prompts (cpu_cells_words.h) put together in their own way. */

/* Floats of a packed group, and the group in them, of n keys. */
size_t st_cpu_word_group_floats(int d);
st_cpu_word_group st_cpu_word_group_in(float *floats, int d, int n);
/* Floats of a tile of queries, and of what tiles use one after another. */
size_t st_cpu_word_tile_floats(int d);
size_t st_cpu_word_scratch_floats(void);
/* A tile of n <= ST_CPU_WORDS_ROWS queries in them. */
st_cpu_word_tile st_cpu_word_tile_in(const st_cpu_kernels *k, int n, int d, float *floats, float *scratch);
/* The tile of n queries before its first group, and its results, rows [row, row + n), after the last. */
void st_cpu_word_tile_begin(const st_cpu_kernels *k, const st_cpu_word_tile *t, const float *q, ptrdiff_t stride,
                            float scale, int n);
void st_cpu_word_tile_finish(const st_cpu_kernels *k, const st_cpu_word_tile *t, const st_cpu_epilogue *e, int64_t row,
                             int n);

#endif
