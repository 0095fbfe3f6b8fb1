/* cpu_cells_words.c: see cpu_cells_words.h. */
#include "backends/cpu/cpu_cells_words.h"

#include "backends/cpu/cpu_attention_words.h"

enum { GROUP = ST_CPU_WORDS_GROUP, ROWS = ST_CPU_WORDS_ROWS };

bool st_cpu_prompt_words_may(const st_cpu_kernels *k, int d, int share, bool bf16)
{
    return bf16 && k->words.rows > 0 && share == 1 && d % 32 == 0 && d <= ST_CPU_WORDS_MAX_D;
}

bool st_cpu_prompt_words_fits(const st_cpu_kernels *k, const st_cpu_prompt *p)
{
    bool alike = p->seen[0].first < p->seen[0].end;
    for (int r = 1; r < p->n_row; r++)
        alike = alike && p->seen[r].first == p->seen[0].first && p->seen[r].end == p->seen[0].end;
    return alike && st_cpu_prompt_words_may(k, p->d, p->share, p->bf16);
}

static int n_tiles(int n_row)
{
    return (n_row + ROWS - 1) / ROWS;
}

/* [cells as f32: 128 * d] [a group] [what tiles use one after another] [tiles] */
size_t st_cpu_prompt_words_scratch(int d, int n_row)
{
    return (size_t)(GROUP * d) + st_cpu_word_group_floats(d) + st_cpu_word_scratch_floats() +
           st_cpu_word_tile_floats(d) * (size_t)n_tiles(n_row);
}

static int rows_of(const st_cpu_prompt *p, int tile)
{
    const int left = p->n_row - tile * ROWS;
    return left < ROWS ? left : ROWS;
}

void st_cpu_prompt_words_rows(const st_cpu_kernels *k, const st_cpu_prompt *p, float *scratch)
{
    float *const cells = scratch, *const packed = cells + GROUP * p->d,
                 *const shared = packed + st_cpu_word_group_floats(p->d),
                 *const first = shared + st_cpu_word_scratch_floats();
    const size_t step = st_cpu_word_tile_floats(p->d);
    const int tiles = n_tiles(p->n_row);
    for (int i = 0; i < tiles; i++) {
        const st_cpu_word_tile t = st_cpu_word_tile_in(k, rows_of(p, i), p->d, first + step * (size_t)i, shared);
        st_cpu_word_tile_begin(k, &t, p->q + i * ROWS * p->q_row, p->q_row, p->scale, rows_of(p, i));
    }
    for (int64_t from = p->seen[0].first; from < p->seen[0].end; from += GROUP) {
        const int64_t left = p->seen[0].end - from;
        const st_cpu_word_group g = st_cpu_word_group_in(packed, p->d, (int)(left < GROUP ? left : GROUP));
        st_cpu_expand_cells(k, p, p->k_type, p->k, p->k_stride, from, g.n, cells);
        k->words.pack_keys(cells, p->d, &g);
        st_cpu_expand_cells(k, p, p->v_type, p->v, p->v_stride, from, g.n, cells);
        k->words.pack_values(cells, p->d, &g);
        for (int i = 0; i < tiles; i++) {
            const st_cpu_word_tile t = st_cpu_word_tile_in(k, rows_of(p, i), p->d, first + step * (size_t)i, shared);
            k->words.add_group(&t, &g);
        }
    }
    const st_cpu_epilogue e = {.out = p->out, .out_stride = p->out_row};
    for (int i = 0; i < tiles; i++) {
        const st_cpu_word_tile t = st_cpu_word_tile_in(k, rows_of(p, i), p->d, first + step * (size_t)i, shared);
        st_cpu_word_tile_finish(k, &t, &e, i * ROWS, rows_of(p, i));
    }
}
