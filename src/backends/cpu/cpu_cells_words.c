/* cpu_cells_words.c: see cpu_cells_words.h. */
#include "backends/cpu/cpu_cells_words.h"

#include <float.h>
#include <string.h>

enum { GROUP = ST_CPU_WORDS_GROUP, ROWS = ST_CPU_WORDS_ROWS, PARTS = 8 };

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

/* Of a tile: [sums of values: rows * d] [queries: rows * 128 words] [sums: rows * 8] [scales of queries, maxima: rows each] */
static size_t tile_floats(int d)
{
    return (size_t)(ROWS * (d + GROUP / 2 + PARTS + 2));
}

/* Of a group: [keys: 128 * d words] [values: as many] [scales of keys: 128] [scales of values: d] */
static size_t group_floats(int d)
{
    return (size_t)(GROUP * d + GROUP + d);
}

static int n_tiles(int n_row)
{
    return (n_row + ROWS - 1) / ROWS;
}

/* [cells as f32: 128 * d] [a group] [scores: rows * 128] [probabilities: rows * 128 words] [tiles] */
size_t st_cpu_prompt_words_scratch(int d, int n_row)
{
    return (size_t)(GROUP * d) + group_floats(d) + (size_t)(ROWS * GROUP / 2 * 3) +
           tile_floats(d) * (size_t)n_tiles(n_row);
}

static st_cpu_word_group group_in(float *at, int d)
{
    int16_t *const words = (int16_t *)(void *)at;
    float *const scales = at + GROUP * d;
    return (st_cpu_word_group){
        .d = d, .keys = words, .values = words + GROUP * d, .key_scale = scales, .value_scale = scales + GROUP};
}

static st_cpu_word_tile tile_in(const st_cpu_kernels *k, const st_cpu_prompt *p, int i, float *shared)
{
    const int left = p->n_row - i * ROWS, n = left < ROWS ? left : ROWS, unit = k->words.rows;
    st_cpu_word_tile t = {.rows = (n + unit - 1) / unit * unit, .d = p->d, .scores = shared};
    t.p = (int16_t *)(void *)(shared + ROWS * GROUP);
    t.out = shared + ROWS * GROUP / 2 * 3 + tile_floats(p->d) * (size_t)i;
    t.q = (int16_t *)(void *)(t.out + ROWS * p->d);
    t.sum = t.out + ROWS * p->d + ROWS * GROUP / 2;
    t.q_scale = t.sum + ROWS * PARTS;
    t.max = t.q_scale + ROWS;
    return t;
}

static void begin(const st_cpu_kernels *k, const st_cpu_prompt *p, int i, const st_cpu_word_tile *t)
{
    const int left = p->n_row - i * ROWS;
    memset(t->out, 0, sizeof(float) * (size_t)(t->rows * t->d));
    memset(t->sum, 0, sizeof(float) * (size_t)(t->rows * PARTS));
    for (int r = 0; r < ROWS; r++) {
        t->max[r] = -FLT_MAX;
        t->q_scale[r] = 0;
    }
    k->words.pack_queries(p->q + i * ROWS * p->q_row, p->q_row, p->scale * 1.44269504f, left < ROWS ? left : ROWS, t);
}

static void write_out(const st_cpu_kernels *k, const st_cpu_prompt *p, int i, const st_cpu_word_tile *t)
{
    const int left = p->n_row - i * ROWS;
    const st_cpu_epilogue e = {.out = p->out, .out_stride = p->out_row};
    float factor[ROWS];
    for (int r = 0; r < t->rows; r++) {
        float sum = 0;
        for (int part = 0; part < PARTS; part++)
            sum += t->sum[r * PARTS + part];
        factor[r] = 1.0f / sum;
    }
    for (int c = 0; c < t->d; c += ST_CPU_PANEL) {
        k->scale_tile(t->out + c * t->rows, t->rows, factor);
        k->finish(&e, t->out + c * t->rows, t->rows, left < ROWS ? left : ROWS, i * ROWS, c, ST_CPU_PANEL);
    }
}

void st_cpu_prompt_words_rows(const st_cpu_kernels *k, const st_cpu_prompt *p, float *scratch)
{
    float *const cells = scratch, *const packed = cells + GROUP * p->d, *const shared = packed + group_floats(p->d);
    const int tiles = n_tiles(p->n_row);
    for (int i = 0; i < tiles; i++) {
        const st_cpu_word_tile t = tile_in(k, p, i, shared);
        begin(k, p, i, &t);
    }
    for (int64_t from = p->seen[0].first; from < p->seen[0].end; from += GROUP) {
        st_cpu_word_group g = group_in(packed, p->d);
        g.n = (int)(p->seen[0].end - from < GROUP ? p->seen[0].end - from : GROUP);
        st_cpu_expand_cells(k, p, p->k_type, p->k, p->k_stride, from, g.n, cells);
        k->words.pack_keys(cells, p->d, &g);
        st_cpu_expand_cells(k, p, p->v_type, p->v, p->v_stride, from, g.n, cells);
        k->words.pack_values(cells, p->d, &g);
        for (int i = 0; i < tiles; i++) {
            const st_cpu_word_tile t = tile_in(k, p, i, shared);
            k->words.add_group(&t, &g);
        }
    }
    for (int i = 0; i < tiles; i++) {
        const st_cpu_word_tile t = tile_in(k, p, i, shared);
        write_out(k, p, i, &t);
    }
}
