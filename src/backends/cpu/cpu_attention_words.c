/* cpu_attention_words.c: see cpu_attention_words.h. */
#include "backends/cpu/cpu_attention_words.h"

#include <float.h>
#include <string.h>

enum { GROUP = ST_CPU_WORDS_GROUP, ROWS = ST_CPU_WORDS_ROWS, PARTS = 8 };

bool st_cpu_attention_words_fits(const st_cpu_kernels *k, const st_cpu_attention *a)
{
    return k->words.rows > 0 && !a->causal && a->d % 32 == 0 && a->d <= ST_CPU_WORDS_MAX_D && a->n_k > 0;
}

int64_t st_cpu_attention_words_units(const st_cpu_attention *a)
{
    return (a->n_k + GROUP - 1) / GROUP;
}

/* [keys: 128 * d words] [values: as many] [scales of keys: 128] [scales of values: d] */
size_t st_cpu_word_group_floats(int d)
{
    return (size_t)(GROUP * d + GROUP + d);
}

st_cpu_word_group st_cpu_word_group_in(float *floats, int d, int n)
{
    int16_t *const words = (int16_t *)(void *)floats;
    float *const scales = floats + GROUP * d;
    return (st_cpu_word_group){
        .n = n, .d = d, .keys = words, .key_scale = scales, .values = words + GROUP * d, .value_scale = scales + GROUP};
}

size_t st_cpu_attention_words_packed(const st_cpu_attention *a)
{
    return (size_t)st_cpu_attention_words_units(a) * st_cpu_word_group_floats(a->d);
}

static st_cpu_word_group group_of(const st_cpu_attention *a, int64_t unit, float *packed)
{
    const int64_t left = a->n_k - unit * GROUP;
    return st_cpu_word_group_in(packed + (size_t)unit * st_cpu_word_group_floats(a->d), a->d,
                                (int)(left < GROUP ? left : GROUP));
}

void st_cpu_attention_words_pack(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t unit, float *packed)
{
    const st_cpu_word_group g = group_of(a, unit, packed);
    k->words.pack_keys(a->k + unit * GROUP * a->k_stride, a->k_stride, &g);
    k->words.pack_values(a->v + unit * GROUP * a->v_stride, a->v_stride, &g);
}

/* [sums of values: rows * d] [queries: rows * 128 words] [sums: rows * 8] [scales of queries, maxima: rows each] */
size_t st_cpu_word_tile_floats(int d)
{
    return (size_t)(ROWS * (d + GROUP / 2 + PARTS + 2));
}

/* [scores: rows * 128] [probabilities: rows * 128 words] */
size_t st_cpu_word_scratch_floats(void)
{
    return (size_t)(ROWS * GROUP / 2 * 3);
}

st_cpu_word_tile st_cpu_word_tile_in(const st_cpu_kernels *k, int n, int d, float *floats, float *scratch)
{
    const int unit = k->words.rows;
    st_cpu_word_tile t = {.rows = (n + unit - 1) / unit * unit, .d = d, .out = floats, .scores = scratch};
    t.p = (int16_t *)(void *)(scratch + ROWS * GROUP);
    t.q = (int16_t *)(void *)(floats + ROWS * d);
    t.sum = floats + ROWS * d + ROWS * GROUP / 2;
    t.q_scale = t.sum + ROWS * PARTS;
    t.max = t.q_scale + ROWS;
    return t;
}

void st_cpu_word_tile_begin(const st_cpu_kernels *k, const st_cpu_word_tile *t, const float *q, ptrdiff_t stride,
                            float scale, int n)
{
    memset(t->out, 0, sizeof(float) * (size_t)(t->rows * t->d));
    memset(t->sum, 0, sizeof(float) * (size_t)(t->rows * PARTS));
    for (int r = 0; r < ROWS; r++) {
        t->max[r] = -FLT_MAX;
        t->q_scale[r] = 0;
    }
    /* what fills the tile up is computed and thrown away */
    k->words.pack_queries(q, stride, scale * 1.44269504f, n, t);
}

void st_cpu_word_tile_finish(const st_cpu_kernels *k, const st_cpu_word_tile *t, const st_cpu_epilogue *e, int64_t row,
                             int n)
{
    float factor[ROWS];
    for (int r = 0; r < t->rows; r++) {
        float sum = 0;
        for (int i = 0; i < PARTS; i++)
            sum += t->sum[r * PARTS + i];
        factor[r] = 1.0f / sum;
    }
    for (int c = 0; c < t->d; c += ST_CPU_PANEL) {
        k->scale_tile(t->out + c * t->rows, t->rows, factor);
        k->finish(e, t->out + c * t->rows, t->rows, n, row, c, ST_CPU_PANEL);
    }
}

size_t st_cpu_attention_words_scratch(const st_cpu_attention *a)
{
    return st_cpu_word_scratch_floats() + st_cpu_word_tile_floats(a->d);
}

/* Rows lie far apart: nothing else fetches them. */
static void fetch(const float *row, int d)
{
    for (int i = 0; i < d; i += 16)
        __builtin_prefetch(row + i);
}

void st_cpu_attention_words_rows(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t row, int n_rows,
                                 const float *packed, float *scratch)
{
    const st_cpu_word_tile t = st_cpu_word_tile_in(k, n_rows, a->d, scratch + st_cpu_word_scratch_floats(), scratch);
    st_cpu_word_tile_begin(k, &t, a->q + row * a->q_stride, a->q_stride, a->scale, n_rows);
    /* From the keys beside the queries on, where the largest scores often are: what is far below the largest so far costs less. */
    const int64_t units = st_cpu_attention_words_units(a), own = row / ROWS * ROWS / GROUP;
    for (int64_t i = 0; i < units; i++) {
        const int64_t unit = (own + i) % units;
        for (int64_t r = row + i * n_rows / units; r < row + (i + 1) * n_rows / units; r++) {
            fetch(a->q + (r + n_rows < a->n_q ? r + n_rows : r) * a->q_stride,
                  a->d); /* that of a row that will be next */
            fetch(a->out + r * a->out_stride, a->d);
        }
        const st_cpu_word_group g = group_of(a, unit, (float *)(uintptr_t)packed);
        k->words.add_group(&t, &g);
    }
    const st_cpu_epilogue e = {.out = a->out, .out_stride = a->out_stride};
    st_cpu_word_tile_finish(k, &t, &e, row, n_rows);
}
