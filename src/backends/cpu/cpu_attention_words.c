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
static size_t group_floats(const st_cpu_attention *a)
{
    return (size_t)(GROUP * a->d + GROUP + a->d);
}

size_t st_cpu_attention_words_packed(const st_cpu_attention *a)
{
    return (size_t)st_cpu_attention_words_units(a) * group_floats(a);
}

static st_cpu_word_group group_of(const st_cpu_attention *a, int64_t unit, float *packed)
{
    const int64_t left = a->n_k - unit * GROUP;
    int16_t *const words = (int16_t *)(void *)(packed + (size_t)unit * group_floats(a));
    float *const scales = (float *)(void *)(words + 2 * GROUP * a->d);
    return (st_cpu_word_group){.n = (int)(left < GROUP ? left : GROUP),
                               .d = a->d,
                               .keys = words,
                               .key_scale = scales,
                               .values = words + GROUP * a->d,
                               .value_scale = scales + GROUP};
}

void st_cpu_attention_words_pack(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t unit, float *packed)
{
    const st_cpu_word_group g = group_of(a, unit, packed);
    k->words.pack_keys(a->k + unit * GROUP * a->k_stride, a->k_stride, &g);
    k->words.pack_values(a->v + unit * GROUP * a->v_stride, a->v_stride, &g);
}

/* [sums of values: rows * d] [scores: rows * 128] [queries: rows * 128 words] [probabilities: as many] [sums: rows * 8]
 * [scales of queries, maxima: rows each] */
size_t st_cpu_attention_words_scratch(const st_cpu_attention *a)
{
    return (size_t)(ROWS * (a->d + 2 * GROUP + PARTS + 2));
}

static st_cpu_word_tile tile_in(float *scratch, int d)
{
    st_cpu_word_tile t = {.d = d, .out = scratch};
    t.scores = t.out + ROWS * d;
    t.q = (int16_t *)(void *)(t.scores + ROWS * GROUP);
    t.p = t.q + ROWS * GROUP;
    t.sum = (float *)(void *)(t.p + ROWS * GROUP);
    t.q_scale = t.sum + ROWS * PARTS;
    t.max = t.q_scale + ROWS;
    return t;
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
    st_cpu_word_tile t = tile_in(scratch, a->d);
    t.rows = (n_rows + k->words.rows - 1) / k->words.rows * k->words.rows;
    memset(t.out, 0, sizeof(float) * (size_t)(t.rows * a->d));
    memset(t.sum, 0, sizeof(float) * (size_t)(t.rows * PARTS));
    for (int r = 0; r < ROWS; r++) {
        t.max[r] = -FLT_MAX;
        t.q_scale[r] = 0;
    }
    /* what fills the tile up is computed and thrown away */
    k->words.pack_queries(a->q + row * a->q_stride, a->q_stride, a->scale * 1.44269504f, n_rows, &t);
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
    float sum[ROWS];
    for (int r = 0; r < t.rows; r++) {
        sum[r] = 0;
        for (int i = 0; i < PARTS; i++)
            sum[r] += t.sum[r * PARTS + i];
        sum[r] = 1.0f / sum[r];
    }
    const st_cpu_epilogue e = {.out = a->out, .out_stride = a->out_stride};
    for (int c = 0; c < a->d; c += ST_CPU_PANEL) {
        k->scale_tile(t.out + c * t.rows, t.rows, sum);
        k->finish(&e, t.out + c * t.rows, t.rows, n_rows, row, c, ST_CPU_PANEL);
    }
}
