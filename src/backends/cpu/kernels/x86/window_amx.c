/* window_amx.c: a few queries over neighbouring cells of a bf16 cache with AMX (contract of window_bf16 in cpu_kernels.h).
 * Cells as they lie are the left side of the scores' product, 16 cells at a time, so scores come out with a lane for each
 * query. Scores are in units of log 2 / 128, as in cpu_attention_bf16.c; the reference of a row is a whole power of two not
 * below its largest score, so that probabilities are at most 1 and bringing earlier sums to a new one is exact. */
#if !defined(__AVX512VBMI__) || (!defined(__AMX_TILE__) && !defined(__AMXTILE__)) /* gcc, clang */
#error "this file needs -mamx-tile -mamx-bf16 -mavx512vbmi -mavx512bf16"
#endif
#include <immintrin.h>
#include <string.h>

#include "../vec.h"
#include "backends/cpu/cpu_kernels.h"
#include "bf16_powers.h"
#include "transpose.h"

enum { LANES = 16, STEP = 32, SLICE = 64, MAX_SLICES = ST_CPU_WINDOW_MAX_D / SLICE };

typedef struct areas {
    float *scores;    /* [256 cells][16 queries] */
    float *out;       /* [d / 16][16 queries][16] */
    uint8_t *queries; /* [d / 32][16 pairs][16 queries][2] bf16 */
    uint8_t *values;  /* [16 pairs of cells][d][2] bf16 */
    uint8_t *cells;   /* [32 cells][d] bf16: the last cells, with zeros behind them */
    uint8_t *p;       /* [16 queries][32 cells] bf16 */
    float *product;   /* [16 queries][16] */
} areas;

static areas areas_of(const st_cpu_cells *c)
{
    areas s;
    s.scores = c->scratch;
    s.out = s.scores + ST_CPU_CELL_CHUNK * LANES;
    s.queries = (uint8_t *)(s.out + LANES * c->d);
    s.values = s.queries + 32 * c->d;
    s.cells = s.values + 64 * c->d;
    s.p = s.cells + 64 * c->d;
    s.product = (float *)(void *)(s.p + 1024);
    return s;
}

/* Queries as pairs of d, a query a column; columns without a query are zeros. */
static void pack_queries(const st_cpu_cells *c, uint8_t *out)
{
    const float factor = c->scale * 128 * 1.44269504f;
    memset(out, 0, (size_t)(32 * c->d));
    for (int r = 0; r < c->n_row; r++) {
        for (int i = 0; i < c->d; i += 32) {
            const __m512 f = _mm512_set1_ps(factor);
            const __m512 a = _mm512_mul_ps(_mm512_loadu_ps(c->q[r] + i), f);
            const __m512 b = _mm512_mul_ps(_mm512_loadu_ps(c->q[r] + i + 16), f);
            uint32_t pair[16];
            _mm512_storeu_si512(pair, (__m512i)_mm512_cvtne2ps_pbh(b, a));
            for (int j = 0; j < 16; j++)
                memcpy(out + i / 32 * 1024 + j * 64 + r * 4, &pair[j], 4);
        }
    }
}

/* scores [16 cells][16 queries] of the cells at k, `stride` bytes apart */
INL void score_cells(const uint8_t *k, size_t stride, int chunks, const uint8_t *queries, float *scores)
{
    _tile_zero(4);
    for (int i = 0; i < chunks; i++) {
        _tile_loadd(5, k + 64 * i, stride);
        _tile_loadd(6, queries + 1024 * i, 64);
        _tile_dpbf16ps(4, 5, 6);
    }
    _tile_stored(4, scores, 64);
}

/* n <= 32 cells at v as pairs; zeros beyond n */
INL void pair_values(const uint8_t *v, size_t stride, int n, int d, uint8_t *out)
{
    const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37,
                                         5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
    for (int i = 0; i < 32; i += 2, v += 2 * stride) {
        for (int j = 0; j < d; j += 32) {
            const __m512i a = i < n ? _mm512_loadu_si512(v + 2 * j) : _mm512_setzero_si512();
            const __m512i b = i + 1 < n ? _mm512_loadu_si512(v + stride + 2 * j) : _mm512_setzero_si512();
            _mm512_storeu_si512(out + i / 2 * 4 * d + 4 * j, _mm512_permutex2var_epi16(a, low, b));
            _mm512_storeu_si512(out + i / 2 * 4 * d + 4 * j + 64, _mm512_permutex2var_epi16(a, high, b));
        }
    }
}

/* Scores of 32 cells as probabilities [16 queries][32 cells] in p; the sum of each query. */
INL __m512 power_cells(const float *scores, __m512 base, uint8_t *p, __m512 sum)
{
    const __m512 shift = _mm512_sub_ps(base, _mm512_set1_ps(127 * 128.0f));
    /* where packus puts lane r of its two operands */
    const __m512i pair = _mm512_set_epi16(31, 27, 30, 26, 29, 25, 28, 24, 23, 19, 22, 18, 21, 17, 20, 16, 15, 11, 14,
                                          10, 13, 9, 12, 8, 7, 3, 6, 2, 5, 1, 4, 0);
    __m512i r[16];
    UNROLL for (int i = 0; i < 16; i++)
    {
        const __m512i e = st_bf16_powers(_mm512_sub_ps(_mm512_loadu_ps(scores + 32 * i), shift),
                                         _mm512_sub_ps(_mm512_loadu_ps(scores + 32 * i + 16), shift));
        r[i] = _mm512_permutexvar_epi16(pair, e);
        sum = _mm512_dpbf16_ps(sum, (__m512bh)r[i], (__m512bh)_mm512_set1_epi16(0x3f80));
    }
    transpose(r);
    UNROLL for (int i = 0; i < 16; i++) _mm512_storeu_si512(p + 64 * i, r[i]);
    return sum;
}

/* out [64 columns][16 queries] of one slice of d += P V over the cells of a chunk */
static void add_slice(const st_cpu_cells *c, const areas *s, int slice)
{
    for (int t = 0; t < SLICE / LANES && slice * SLICE + t * LANES < c->d; t++) {
        float *out = s->out + (slice * SLICE / LANES + t) * LANES * LANES;
        switch (t) {
        case 0:
            _tile_stored(0, s->product, 64);
            break;
        case 1:
            _tile_stored(1, s->product, 64);
            break;
        case 2:
            _tile_stored(2, s->product, 64);
            break;
        default:
            _tile_stored(3, s->product, 64);
        }
        for (int r = 0; r < c->n_row; r++)
            _mm512_storeu_ps(out + 16 * r,
                             _mm512_add_ps(_mm512_loadu_ps(out + 16 * r), _mm512_loadu_ps(s->product + 16 * r)));
    }
}

/* The cells [first, first + n) of a chunk against the reference `base`. */
static __m512 add_chunk(const st_cpu_cells *c, const areas *s, int64_t first, int n, __m512 base, __m512 sum)
{
    const uint8_t *v = (const uint8_t *)c->v + (size_t)(c->base + first) * c->v_stride;
    for (int slice = 0; slice * SLICE < c->d; slice++) {
        const int width = c->d - slice * SLICE < SLICE ? c->d - slice * SLICE : SLICE;
        __m512 total = _mm512_setzero_ps();
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
        for (int i = 0; i < n; i += STEP) {
            pair_values(v + (size_t)i * c->v_stride + slice * 2 * SLICE, c->v_stride, n - i, width, s->values);
            total = power_cells(s->scores + i * LANES, base, s->p, total);
            _tile_loadd(5, s->p, 64);
            _tile_loadd(6, s->values, 4 * width);
            _tile_dpbf16ps(0, 5, 6);
            _tile_loadd(7, s->values + 64, 4 * width);
            _tile_dpbf16ps(1, 5, 7);
            if (width > 32) {
                _tile_loadd(6, s->values + 128, 4 * width);
                _tile_dpbf16ps(2, 5, 6);
                _tile_loadd(7, s->values + 192, 4 * width);
                _tile_dpbf16ps(3, 5, 7);
            }
        }
        add_slice(c, s, slice);
        if (slice == 0)
            sum = _mm512_add_ps(sum, total);
    }
    return sum;
}

static __m512 score_chunk(const st_cpu_cells *c, const areas *s, int64_t first, int n)
{
    const __m512 nothing = _mm512_set1_ps(-3e38f);
    const uint8_t *k = (const uint8_t *)c->k + (size_t)(c->base + first) * c->k_stride;
    const int chunks = c->d / 32;
    for (int i = 0; i < n; i += LANES, k += LANES * c->k_stride) {
        if (n - i >= LANES) {
            score_cells(k, c->k_stride, chunks, s->queries, s->scores + i * LANES);
            continue;
        }
        memset(s->cells, 0, (size_t)(LANES * 2 * c->d));
        for (int j = 0; j < n - i; j++)
            memcpy(s->cells + (size_t)(j * 2 * c->d), k + (size_t)j * c->k_stride, (size_t)(2 * c->d));
        score_cells(s->cells, (size_t)(2 * c->d), chunks, s->queries, s->scores + i * LANES);
    }
    __m512 most = nothing;
    for (int i = 0; i < n; i++)
        most = _mm512_max_ps(most, _mm512_loadu_ps(s->scores + i * LANES));
    for (int i = n; i < (n + STEP - 1) / STEP * STEP; i++)
        _mm512_storeu_ps(s->scores + i * LANES, nothing);
    return most;
}

static void window_bf16(const st_cpu_cells *c)
{
    const areas s = areas_of(c);
    const __m512 unit = _mm512_set1_ps(128), per_unit = _mm512_set1_ps(1.0f / 128);
    __m512 base = _mm512_set1_ps(-3e38f), sum = _mm512_setzero_ps();
    pack_queries(c, s.queries);
    memset(s.out, 0, sizeof(float) * (size_t)(LANES * c->d));
    for (int64_t first = 0; first < c->n_kv; first += ST_CPU_CELL_CHUNK) {
        const int n = (int)(c->n_kv - first < ST_CPU_CELL_CHUNK ? c->n_kv - first : ST_CPU_CELL_CHUNK);
        const __m512 most = score_chunk(c, &s, first, n);
        const __m512 up = _mm512_mul_ps(
            _mm512_roundscale_ps(_mm512_mul_ps(most, per_unit), _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC), unit);
        const __m512 next = _mm512_max_ps(base, up);
        const __m512 back = _mm512_scalef_ps(_mm512_set1_ps(1), _mm512_mul_ps(_mm512_sub_ps(base, next), per_unit));
        float factor[LANES];
        _mm512_storeu_ps(factor, back);
        for (int i = 0; first > 0 && i < c->d / LANES; i++)
            for (int r = 0; r < c->n_row; r++) {
                float *p = s.out + (i * LANES + r) * LANES;
                _mm512_storeu_ps(p, _mm512_mul_ps(_mm512_loadu_ps(p), _mm512_set1_ps(factor[r])));
            }
        sum = _mm512_mul_ps(sum, back);
        base = next;
        sum = add_chunk(c, &s, first, n, base, sum);
    }
    float total[LANES];
    _mm512_storeu_ps(total, sum);
    for (int r = 0; r < c->n_row; r++) {
        const __m512 factor = _mm512_set1_ps(c->n_kv > 0 ? 1.0f / total[r] : 0.0f);
        for (int i = 0; i < c->d / LANES; i++)
            _mm512_storeu_ps(c->out[r] + i * LANES,
                             _mm512_mul_ps(_mm512_loadu_ps(s.out + (i * LANES + r) * LANES), factor));
    }
}

void st_cpu_fill_window_amx(st_cpu_kernels *k)
{
    k->window_bf16 = window_bf16;
}
