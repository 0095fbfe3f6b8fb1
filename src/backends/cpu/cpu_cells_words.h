/* cpu_cells_words.h: attention of the rows of a prompt that see the same cells, as products of 16-bit words
 * (cpu_attention_words.h): the cross attention of Whisper's prompts. Cells are expanded and made words 128 at a time. */
#ifndef SOTTO_SRC_BACKENDS_CPU_CPU_CELLS_WORDS_H
#define SOTTO_SRC_BACKENDS_CPU_CPU_CELLS_WORDS_H

#include "backends/cpu/cpu_cells.h"

/* The level has the kernels, operands may be rounded, no heads share their keys, d is a multiple of 32 up to 128. */
bool st_cpu_prompt_words_may(const st_cpu_kernels *k, int d, int share, bool bf16);
/* And all rows see the same places, of which there are some. */
bool st_cpu_prompt_words_fits(const st_cpu_kernels *k, const st_cpu_prompt *p);
/* Floats of scratch for up to n_row rows. */
size_t st_cpu_prompt_words_scratch(int d, int n_row);
void st_cpu_prompt_words_rows(const st_cpu_kernels *k, const st_cpu_prompt *p, float *scratch);

#endif
