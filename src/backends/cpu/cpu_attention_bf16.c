/* cpu_attention_bf16.c: see cpu_attention_bf16.h. Scores are in units of 1/128 of log 2, so that a rounded score is the
 * bits of a bf16 power of two but for the shape of its mantissa. The reference that is taken from the scores of a row is
 * the largest of its first 32, not of all: bf16 has room for 2^228 above it, and a row that needs more is done again with
 * its true maximum. Nothing is ever rescaled. */
#include "backends/cpu/cpu_attention_bf16.h"

#include <math.h>

enum { CHUNK = 32, CHUNK_BYTES = 2048 };

static int64_t panels_of(const st_cpu_attention *a)
{
    return (a->n_k + ST_CPU_PANEL - 1) / ST_CPU_PANEL;
}

bool st_cpu_attention_bf16_fits(const st_cpu_kernels *k, const st_cpu_attention *a)
{
    return k->attend.probabilities != NULL && !a->causal && a->d % CHUNK == 0 && a->n_k > 0;
}

/* keys [n_k / 32][d / 32 chunks][16][32 keys][2], then values [d / 32][n_k / 32 chunks][16][32 columns][2] */
size_t st_cpu_attention_bf16_packed(const st_cpu_attention *a)
{
    return (size_t)(panels_of(a) * (a->d / CHUNK) * 2 * CHUNK_BYTES) / sizeof(float);
}

typedef struct areas {
    float *line, *acc;
    uint8_t *q, *p;
} areas;

/* [one scaled query: d] [accumulators: mr * 32] [queries: mr * d bf16] [probabilities: mr * n_k bf16] */
static areas areas_of(const st_cpu_attention *a, float *scratch)
{
    areas s = {.line = scratch, .acc = scratch + a->d};
    s.q = (uint8_t *)(s.acc + ST_CPU_MAX_NARROW_MR * ST_CPU_PANEL);
    s.p = s.q + ST_CPU_MAX_NARROW_MR * 2 * a->d;
    return s;
}

size_t st_cpu_attention_bf16_scratch(const st_cpu_attention *a)
{
    return (size_t)(a->d + ST_CPU_MAX_NARROW_MR * (ST_CPU_PANEL + a->d / 2 + panels_of(a) * ST_CPU_PANEL / 2));
}

void st_cpu_attention_bf16_pack(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t unit, float *packed)
{
    const int64_t first = unit * ST_CPU_PANEL, panels = panels_of(a), chunks = a->d / CHUNK;
    const int n = (int)(a->n_k - first < ST_CPU_PANEL ? a->n_k - first : ST_CPU_PANEL);
    uint8_t *keys = (uint8_t *)packed, *values = keys + panels * chunks * CHUNK_BYTES;
    k->attend.pack_keys(a->k + first * a->k_stride, a->k_stride, n, a->d, keys + unit * chunks * CHUNK_BYTES);
    for (int64_t c = 0; c < chunks; c++)
        k->attend.pack_values(a->v + first * a->v_stride + c * CHUNK, a->v_stride, n,
                              values + (c * panels + unit) * CHUNK_BYTES);
}

/* Scores of all keys as probabilities against the references in `base`; whether all sums came out as numbers. */
static bool probabilities(const st_cpu_kernels *k, const st_cpu_attention *a, const areas *s, int n_rows, int padded,
                          const uint8_t *keys, const float *base, float *sum)
{
    const int64_t panels = panels_of(a), chunks = a->d / CHUNK;
    float parts[ST_CPU_MAX_NARROW_MR * 16] = {0};
    for (int64_t p = 0; p < panels; p++) {
        const int64_t left = a->n_k - p * ST_CPU_PANEL;
        k->bf16.product[n_rows](s->q, keys + p * chunks * CHUNK_BYTES, (int)chunks, s->acc);
        k->attend.probabilities(s->acc, padded, n_rows, (int)(left < ST_CPU_PANEL ? left : ST_CPU_PANEL), base,
                                s->p + p * padded * 64, parts);
    }
    bool good = true;
    for (int r = 0; r < n_rows; r++) {
        sum[r] = 0;
        for (int i = 0; i < 16; i++)
            sum[r] += parts[r * 16 + i];
        good = good && sum[r] > 0 && sum[r] < 1e38f;
    }
    return good;
}

/* The largest score of each row among the first `panels` panels. */
static void largest(const st_cpu_kernels *k, const st_cpu_attention *a, const areas *s, int n_rows, int padded,
                    const uint8_t *keys, int64_t panels, float *max)
{
    const int64_t chunks = a->d / CHUNK;
    for (int r = 0; r < n_rows; r++)
        max[r] = -INFINITY;
    for (int64_t p = 0; p < panels; p++) {
        const int64_t left = a->n_k - p * ST_CPU_PANEL, n = left < ST_CPU_PANEL ? left : ST_CPU_PANEL;
        k->bf16.product[n_rows](s->q, keys + p * chunks * CHUNK_BYTES, (int)chunks, s->acc);
        k->attend.largest(s->acc, padded, n_rows, (int)n, max);
    }
}

void st_cpu_attention_bf16_rows(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t row, int n_rows,
                                const float *packed, float *scratch)
{
    const int unit = k->bf16.row_unit, padded = (n_rows + unit - 1) / unit * unit;
    const int64_t panels = panels_of(a), chunks = a->d / CHUNK;
    const areas s = areas_of(a, scratch);
    const uint8_t *keys = (const uint8_t *)packed, *values = keys + panels * chunks * CHUNK_BYTES;
    float max[ST_CPU_MAX_NARROW_MR], sum[ST_CPU_MAX_NARROW_MR] = {0};
    for (int r = 0; r < padded; r++) {
        const int from = r < n_rows ? r : n_rows - 1; /* what fills the tile up is computed and thrown away */
        k->scale(a->q + (row + from) * a->q_stride, a->scale * 128 * 1.44269504f, 0.0f, s.line, a->d);
        k->bf16.pack_row(s.line, a->d, s.q + r * 64, NULL, padded, NULL);
    }
    largest(k, a, &s, n_rows, padded, keys, 1, max);
    if (!probabilities(k, a, &s, n_rows, padded, keys, max, sum)) {
        largest(k, a, &s, n_rows, padded, keys, panels, max);
        (void)probabilities(k, a, &s, n_rows, padded, keys, max, sum);
    }
    for (int r = 0; r < n_rows; r++) /* a score that is no number has no largest, and gives no number */
        sum[r] = isfinite(max[r]) && sum[r] > 0 ? 1.0f / sum[r] : NAN;
    const st_cpu_epilogue e = {.out = a->out, .out_stride = a->out_stride};
    for (int64_t c = 0; c < chunks; c++) {
        k->bf16.product[n_rows](s.p, values + c * panels * CHUNK_BYTES, (int)panels, s.acc);
        k->scale_tile(s.acc, padded, sum);
        k->finish(&e, s.acc, padded, n_rows, row, c * ST_CPU_PANEL, ST_CPU_PANEL);
    }
}
