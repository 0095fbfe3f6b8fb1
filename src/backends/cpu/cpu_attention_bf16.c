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

/* Whether the level does all of a tile in one go. */
static bool at_once(const st_cpu_kernels *k, const st_cpu_attention *a)
{
    return k->attend.rows16 != NULL && a->d <= 2 * CHUNK && a->n_k < INT32_MAX - ST_CPU_PANEL;
}

int st_cpu_attention_bf16_tile(const st_cpu_kernels *k, const st_cpu_attention *a)
{
    return at_once(k, a) ? 16 : k->bf16.mr;
}

/* keys [n_k / 32][d / 32 chunks][16][32 keys][2], then values [d / 32][n_k / 32 chunks][16][32 columns][2] */
size_t st_cpu_attention_bf16_packed(const st_cpu_attention *a)
{
    return (size_t)(panels_of(a) * (a->d / CHUNK) * 2 * CHUNK_BYTES) / sizeof(float);
}

typedef struct areas {
    float *acc;
    const uint8_t *q; /* own_q, unless they are packed already */
    uint8_t *own_q, *p;
} areas;

/* [accumulators: 2 * mr * 32] [queries: mr * d bf16] [probabilities: mr * n_k bf16] */
static areas areas_of(const st_cpu_attention *a, float *scratch)
{
    areas s = {.acc = scratch};
    s.own_q = (uint8_t *)(s.acc + 2 * ST_CPU_MAX_NARROW_MR * ST_CPU_PANEL);
    s.p = s.own_q + ST_CPU_MAX_NARROW_MR * 2 * a->d;
    return s;
}

size_t st_cpu_attention_bf16_scratch(const st_cpu_attention *a)
{
    return (size_t)(ST_CPU_MAX_NARROW_MR * (2 * ST_CPU_PANEL + a->d / 2 + panels_of(a) * ST_CPU_PANEL / 2));
}

/* A panel of keys and values that begin at `key` and `value`. */
static void pack_panel(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t panel, int n, const float *key,
                       const float *value, float *packed)
{
    const int64_t panels = panels_of(a), chunks = a->d / CHUNK;
    uint8_t *keys = (uint8_t *)packed, *values = keys + panels * chunks * CHUNK_BYTES;
    k->attend.pack_keys(key, a->k_stride, n, a->d, keys + panel * chunks * CHUNK_BYTES);
    for (int64_t c = 0; c < chunks; c++)
        k->attend.pack_values(value + c * CHUNK, a->v_stride, n, values + (c * panels + panel) * CHUNK_BYTES);
}

void st_cpu_attention_bf16_pack(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t unit, float *packed)
{
    const int64_t first = unit * ST_CPU_PANEL;
    const int n = (int)(a->n_k - first < ST_CPU_PANEL ? a->n_k - first : ST_CPU_PANEL);
    pack_panel(k, a, unit, n, a->k + first * a->k_stride, a->v + first * a->v_stride, packed);
}

void st_cpu_attention_bf16_pack_cells(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t row, int n,
                                      float *packed)
{
    for (int i = 0; i < n; i += ST_CPU_PANEL)
        pack_panel(k, a, (row + i) / ST_CPU_PANEL, n - i < ST_CPU_PANEL ? n - i : ST_CPU_PANEL, a->k + i * a->k_stride,
                   a->v + i * a->v_stride, packed);
}

/* Scores come out in units of log 2 / 128. */
static float query_scale(const st_cpu_attention *a)
{
    return a->scale * 128 * 1.44269504f;
}

/* [tiles of 16 rows][d / 32][16][64 bytes] */
static size_t query_tile_bytes(const st_cpu_attention *a)
{
    return (size_t)(a->d / CHUNK) * 1024;
}

size_t st_cpu_attention_bf16_queries(const st_cpu_attention *a)
{
    return (size_t)((a->n_q + 15) / 16) * query_tile_bytes(a) / sizeof(float);
}

void st_cpu_attention_bf16_pack_queries(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t row, int n,
                                        uint8_t *packed_q)
{
    for (int i = 0; i < n; i += 16)
        k->attend.pack_queries(a->q + i * a->q_stride, a->q_stride, query_scale(a), n - i < 16 ? n - i : 16, 16, a->d,
                               packed_q + (size_t)((row + i) / 16) * query_tile_bytes(a));
}

static bool good_sums(const float *sum, int n_rows)
{
    bool good = true;
    for (int r = 0; r < n_rows; r++)
        good = good && sum[r] > 0 && sum[r] < 1e38f;
    return good;
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
    for (int r = 0; r < n_rows; r++) {
        sum[r] = 0;
        for (int i = 0; i < 16; i++)
            sum[r] += parts[r * 16 + i];
    }
    return good_sums(sum, n_rows);
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

/* What the sums are divided by: a score that is no number has no largest, and gives no number. */
static void reciprocals(const float *max, int n_rows, float *sum)
{
    for (int r = 0; r < n_rows; r++)
        sum[r] = isfinite(max[r]) && sum[r] > 0 ? 1.0f / sum[r] : NAN;
}

/* Up to 16 rows of a level that does them in one go. */
static void rows_at_once(const st_cpu_kernels *k, const st_cpu_attention *a, const areas *s, int n_rows, int64_t row,
                         const uint8_t *keys, float *max)
{
    const int64_t panels = panels_of(a), chunks = a->d / CHUNK;
    float sum[16], shift[16], *const out = s->acc + 1024; /* behind two tiles of scores */
    for (int r = n_rows; r < 16; r++)
        max[r] = max[n_rows - 1];
    const st_cpu_rows16 x = {.chunks = (int)chunks,
                             .n_k = (int)a->n_k,
                             .panels = (int)panels,
                             .q = s->q,
                             .keys = keys,
                             .values = keys + panels * chunks * CHUNK_BYTES,
                             .base = max,
                             .scores = s->acc,
                             .p = s->p,
                             .shift = shift,
                             .sum = sum,
                             .out = out};
    k->attend.rows16(&x);
    if (!good_sums(sum, n_rows)) {
        largest(k, a, s, n_rows, 16, keys, panels, max);
        for (int r = n_rows; r < 16; r++)
            max[r] = max[n_rows - 1];
        k->attend.rows16(&x);
    }
    reciprocals(max, n_rows, sum);
    for (int r = n_rows; r < 16; r++)
        sum[r] = 0;
    const st_cpu_epilogue e = {.out = a->out, .out_stride = a->out_stride};
    for (int64_t c = 0; c < chunks; c++) {
        k->scale_tile(out + c * 512, 16, sum);
        k->finish(&e, out + c * 512, 16, n_rows, row, c * ST_CPU_PANEL, ST_CPU_PANEL);
    }
}

void st_cpu_attention_bf16_rows(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t row, int n_rows,
                                const float *packed, float *scratch)
{
    const int unit = k->bf16.row_unit, padded = (n_rows + unit - 1) / unit * unit;
    const int64_t panels = panels_of(a), chunks = a->d / CHUNK;
    areas s = areas_of(a, scratch);
    const uint8_t *keys = (const uint8_t *)packed, *values = keys + panels * chunks * CHUNK_BYTES;
    float max[ST_CPU_MAX_NARROW_MR], sum[ST_CPU_MAX_NARROW_MR] = {0};
    /* what fills the tile up is computed and thrown away */
    if (a->packed_q == NULL)
        k->attend.pack_queries(a->q + row * a->q_stride, a->q_stride, query_scale(a), n_rows, padded, a->d, s.own_q);
    s.q = a->packed_q == NULL ? s.own_q : a->packed_q + (size_t)(row / 16) * query_tile_bytes(a);
    largest(k, a, &s, n_rows, padded, keys, 1, max);
    if (at_once(k, a)) {
        rows_at_once(k, a, &s, n_rows, row, keys, max);
        return;
    }
    if (!probabilities(k, a, &s, n_rows, padded, keys, max, sum)) {
        largest(k, a, &s, n_rows, padded, keys, panels, max);
        (void)probabilities(k, a, &s, n_rows, padded, keys, max, sum);
    }
    reciprocals(max, n_rows, sum);
    const st_cpu_epilogue e = {.out = a->out, .out_stride = a->out_stride};
    for (int64_t c = 0; c < chunks; c++) {
        k->bf16.product[n_rows](s.p, values + c * panels * CHUNK_BYTES, (int)panels, s.acc);
        k->scale_tile(s.acc, padded, sum);
        k->finish(&e, s.acc, padded, n_rows, row, c * ST_CPU_PANEL, ST_CPU_PANEL);
    }
}
