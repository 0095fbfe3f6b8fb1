/* window_amx.c: a few queries over cells of a bf16 cache with AMX (contract of window_bf16 in cpu_kernels.h).
 * Cells as they lie are the left side of the scores' product, 16 cells at a time, so scores come out with a lane for each
 * query. Scores are in units of log 2 / 128, as in cpu_attention_bf16.c; the reference of a row is a whole power of two not
 * below its largest score, so that probabilities are at most 1 and bringing earlier sums to a new one is exact.
 *
 * Cells are read once, 32 at a time, and mostly come from far away: while some are multiplied, the next ones are fetched, a
 * few lines after every few instructions. Fetched all at once they would fill the queue of what is under way, and the
 * processor would wait for it instead of multiplying. */
#if !defined(__AVX512VBMI__) || (!defined(__AMX_TILE__) && !defined(__AMXTILE__)) /* gcc, clang */
#error "this file needs -mamx-tile -mamx-bf16 -mavx512vbmi -mavx512bf16"
#endif
#include <immintrin.h>
#include <string.h>

#include "../vec.h"
#include "bf16_powers.h"
#include "window_cells.h"

enum { TILE = 1024 }; /* bytes */

typedef struct areas {
    float *base, *sum; /* of each query, [2][8]: its reference, and the sum of its probabilities in two halves */
    float *tiles;      /* [4][16][16]: the tiles of the results */
    uint8_t *queries;  /* [d / 32] tiles [16 pairs of d][8 queries, 8 times nothing][2] bf16 */
    float *scores;     /* of two steps, [2 halves][16 cells][16] */
    uint8_t *p;        /* [8 queries, 8 times nothing][32 cells] bf16 */
    uint8_t *values;   /* [16 pairs of cells][d][2] bf16 */
    copies copies;
} areas;

static areas areas_of(const st_cpu_cells *c)
{
    areas s;
    s.base = c->scratch;
    s.sum = s.base + 16;
    s.tiles = s.sum + 16;
    s.queries = (uint8_t *)(s.tiles + TILE);
    s.scores = (float *)(void *)(s.queries + 2 * TILE);
    s.p = s.queries + 6 * TILE;
    s.values = s.p + TILE;
    s.copies.cells = s.values + 64 * c->d;
    s.copies.seen = s.copies.cells + 256 * c->d;
    return s;
}

/* Queries as pairs of d, a query a column; columns without a query are zeros. */
static void pack_queries(const st_cpu_cells *c, uint8_t *out)
{
    const __m512 factor = _mm512_set1_ps(c->scale * 128 * 1.44269504f);
    memset(out, 0, 2 * TILE);
    for (int r = 0; r < c->n_row; r++)
        for (int i = 0; i < c->d; i += 32) {
            const __m512 a = _mm512_mul_ps(_mm512_loadu_ps(c->q[r] + i), factor);
            const __m512 b = _mm512_mul_ps(_mm512_loadu_ps(c->q[r] + i + 16), factor);
            const __m512i to = _mm512_set_epi32(240, 224, 208, 192, 176, 160, 144, 128, 112, 96, 80, 64, 48, 32, 16, 0);
            _mm512_i32scatter_epi32(out + i / 32 * TILE + 4 * r, to, (__m512i)_mm512_cvtne2ps_pbh(b, a), 4);
        }
}

/* scores [2][16 cells][16 queries] of the 32 cells at k */
INL void score_cells(const uint8_t *k, size_t stride, int d, float *scores)
{
    for (int half = 0; half < 2; half++, k += 16 * stride) {
        _tile_zero(4);
        _tile_loadd(5, k, stride);
        _tile_dpbf16ps(4, 5, 6);
        if (d > 32) {
            _tile_loadd(5, k + 64, stride);
            _tile_dpbf16ps(4, 5, 7);
        }
        _tile_stored(4, scores + half * TILE / 4, 64);
    }
}

/* The values of 32 cells as pairs of neighbours, which are in the order that power_cells leaves. Of 32 columns, those come
 * first that are 0 .. 3 of 8. Meanwhile the cells at `next`, unless NULL, are fetched. */
INL void pair_values(const place *at, const place *next, int d, uint8_t *out)
{
    UNROLL for (int i = 0; i < 16; i++)
    {
        const uint8_t *a = at->v + (size_t)(i / 8 * 8 + i / 4 % 2 * 16 + i % 4 * 2) * at->v_stride;
        for (int j = 2 * i; next != NULL && j < 2 * i + 2; j++) {
            fetch_cell(next->v + (size_t)j * next->v_stride, d, 3);
            fetch_cell(next->k + (size_t)j * next->k_stride, d, 3);
        }
        for (int j = 0; j < d; j += 32) {
            const __m512i x = _mm512_loadu_si512(a + 2 * j), y = _mm512_loadu_si512(a + at->v_stride + 2 * j);
            _mm512_storeu_si512(out + i * 4 * d + 4 * j, _mm512_unpacklo_epi16(x, y));
            _mm512_storeu_si512(out + i * 4 * d + 4 * j + 64, _mm512_unpackhi_epi16(x, y));
        }
    }
}

/* Scores of 32 cells as probabilities [8 queries][32 cells] in p. */
INL void power_cells(const areas *s, const __m512 z[16], uint8_t *p)
{
    const __m512 shift = _mm512_sub_ps(_mm512_loadu_ps(s->base), _mm512_set1_ps(127 * 128.0f));
    __m512 sum = _mm512_loadu_ps(s->sum);
    const __m512i ones = _mm512_set1_epi16(0x3f80);
    __m512i e[8], t[8];
    UNROLL for (int i = 0; i < 8; i++)
    {
        const int at = i / 2 * 4 + i % 2;
        e[i] = st_bf16_powers(_mm512_sub_ps(z[at], shift), _mm512_sub_ps(z[at + 2], shift));
    }
    UNROLL for (int i = 0; i < 8; i += 2)
    {
        t[i] = _mm512_unpacklo_epi16(e[i], e[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi16(e[i], e[i + 1]);
    }
    UNROLL for (int i = 0; i < 8; i++) sum = _mm512_dpbf16_ps(sum, (__m512bh)t[i], (__m512bh)ones);
    UNROLL for (int i = 0; i < 8; i += 2)
    {
        e[i] = _mm512_unpacklo_epi32(t[i], t[i + 1]);
        e[i + 1] = _mm512_unpackhi_epi32(t[i], t[i + 1]);
    }
    UNROLL for (int i = 0; i < 8; i += 4)
    {
        t[i] = _mm512_unpacklo_epi64(e[i], e[i + 2]);
        t[i + 1] = _mm512_unpackhi_epi64(e[i], e[i + 2]);
        t[i + 2] = _mm512_unpacklo_epi64(e[i + 1], e[i + 3]);
        t[i + 3] = _mm512_unpackhi_epi64(e[i + 1], e[i + 3]);
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        _mm512_storeu_si512(p + 64 * i, _mm512_shuffle_i32x4(t[i], t[i + 4], 0x88));
        _mm512_storeu_si512(p + 64 * i + 256, _mm512_shuffle_i32x4(t[i], t[i + 4], 0xdd));
    }
    _mm512_storeu_ps(s->sum, sum);
}

static void store_tiles(const areas *s)
{
    _tile_stored(0, s->tiles, 64);
    _tile_stored(1, s->tiles + 256, 64);
    _tile_stored(2, s->tiles + 512, 64);
    _tile_stored(3, s->tiles + 768, 64);
}

/* Another reference for the queries that have a larger score than theirs. */
static void raise(const areas *s, __m512 most)
{
    const __m512 unit = _mm512_set1_ps(128), per_unit = _mm512_set1_ps(1.0f / 128), base = _mm512_loadu_ps(s->base);
    const __m512 up = _mm512_roundscale_ps(_mm512_mul_ps(most, per_unit), _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
    const __m512 next = _mm512_mask_mul_ps(base, _mm512_cmp_ps_mask(most, base, _CMP_GT_OQ),
                                           _mm512_add_ps(up, _mm512_set1_ps(MARGIN)), unit);
    const __m512 back = _mm512_scalef_ps(_mm512_set1_ps(1), _mm512_mul_ps(_mm512_sub_ps(base, next), per_unit));
    float factor[16];
    _mm512_storeu_ps(factor, back);
    _mm512_storeu_ps(s->base, next);
    _mm512_storeu_ps(s->sum, _mm512_mul_ps(_mm512_loadu_ps(s->sum), back));
    store_tiles(s);
    for (int t = 0; t < 4; t++)
        for (int r = 0; r < 8; r++) {
            float *p = s->tiles + t * 256 + r * 16;
            _mm512_storeu_ps(p, _mm512_mul_ps(_mm512_loadu_ps(p), _mm512_set1_ps(factor[r])));
        }
    _tile_loadd(0, s->tiles, 64);
    _tile_loadd(1, s->tiles + 256, 64);
    _tile_loadd(2, s->tiles + 512, 64);
    _tile_loadd(3, s->tiles + 768, 64);
}

/* Probabilities and values of 32 cells; seen: NULL, all queries see them. */
INL void weigh_cells(const areas *s, const float *scores, const uint8_t *seen, const place *at, const place *next, int d)
{
    const __m512 nothing = _mm512_set1_ps(-3e38f);
    __m512 z[16], most = nothing;
    UNROLL for (int j = 0; j < 16; j++)
    {
        z[j] = _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(scores + 16 * j)),
                                  _mm256_loadu_ps(scores + TILE / 4 + 16 * j), 1);
        if (seen != NULL)
            z[j] = _mm512_mask_mov_ps(nothing, (__mmask16)(seen[j] | seen[j + 16] << 8), z[j]);
        most = _mm512_max_ps(z[j], most);
    }
    most = _mm512_max_ps(most, _mm512_shuffle_f32x4(most, most, 0x4e));
    if (_mm512_cmp_ps_mask(most, _mm512_loadu_ps(s->base), _CMP_GT_OQ) != 0)
        raise(s, most);
    power_cells(s, z, s->p);
    pair_values(at, next, d, s->values);
}

INL void add_cells(const areas *s, int d)
{
    const uint8_t *values = s->values;
    _tile_loadd(4, s->p, 64);
    _tile_loadd(5, values, 4 * d);
    _tile_dpbf16ps(0, 4, 5);
    _tile_loadd(5, values + 64, 4 * d);
    _tile_dpbf16ps(1, 4, 5);
    if (d > 32) {
        _tile_loadd(5, values + 128, 4 * d);
        _tile_dpbf16ps(2, 4, 5);
        _tile_loadd(5, values + 192, 4 * d);
        _tile_dpbf16ps(3, 4, 5);
    }
}

/* The scores of a step are multiplied before those of the step before it are looked at. */
INL void walk_row(const st_cpu_cells *c, const areas *s, int d)
{
    const int64_t whole = steps_in_row(c);
    if (whole > 0)
        score_cells(place_of(c, 0).k, c->k_stride, d, s->scores);
    for (int64_t i = 0; i < whole; i++) {
        const place at = place_of(c, i), after = place_of(c, i + 1);
        const place next = {place_of(c, i + 2).k, after.v, c->k_stride, c->v_stride}; /* keys are met a step earlier */
        if (i + 1 < whole)
            score_cells(after.k, c->k_stride, d, s->scores + (i + 1) % 2 * TILE / 2);
        weigh_cells(s, s->scores + i % 2 * TILE / 2, NULL, &at, &next, d);
        add_cells(s, d);
    }
}

/* The same of steps that do not lie in a row, or are no whole ones. */
INL void walk_list(const st_cpu_cells *c, const areas *s, int64_t first, int d)
{
    const int64_t end = (c->n_kv + STEP - 1) / STEP;
    place at = {0}, after = {0};
    for (int64_t i = first - 1; i < end; i++, at = after) {
        if (i + 1 < end) {
            after = gather(c, &s->copies, i + 1, d, 1, 3);
            score_cells(after.k, after.k_stride, d, s->scores + (i + 1) % 2 * TILE / 2);
        }
        if (i >= first) {
            weigh_cells(s, s->scores + i % 2 * TILE / 2, s->copies.seen + i % 2 * STEP, &at, NULL, d);
            add_cells(s, d);
        }
    }
}

INL void walk(const st_cpu_cells *c, const areas *s, int d)
{
    walk_row(c, s, d);
    walk_list(c, s, steps_in_row(c), d);
}

static void window_bf16(const st_cpu_cells *c)
{
    const areas s = areas_of(c);
    pack_queries(c, s.queries);
    memset(s.p, 0, TILE);
    _mm512_storeu_ps(s.base, _mm512_set1_ps(-3e38f));
    _mm512_storeu_ps(s.sum, _mm512_setzero_ps());
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_loadd(6, s.queries, 64);
    _tile_loadd(7, s.queries + TILE, 64);
    if (c->d == 64)
        walk(c, &s, 64);
    else
        walk(c, &s, 32);
    store_tiles(&s);
    const __m512i low = _mm512_set_epi32(23, 22, 21, 20, 7, 6, 5, 4, 19, 18, 17, 16, 3, 2, 1, 0);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    for (int r = 0; r < c->n_row; r++) {
        const __m512 factor = _mm512_set1_ps(c->n_kv > 0 ? 1.0f / (s.sum[r] + s.sum[r + 8]) : 0.0f);
        for (int i = 0; i < c->d; i += 32) { /* the order of pair_values */
            const float *p = s.tiles + i * 16 + r * 16;
            const __m512 a = _mm512_mul_ps(_mm512_loadu_ps(p), factor);
            const __m512 b = _mm512_mul_ps(_mm512_loadu_ps(p + TILE / 4), factor);
            _mm512_storeu_ps(c->out[r] + i, _mm512_permutex2var_ps(a, low, b));
            _mm512_storeu_ps(c->out[r] + i + 16, _mm512_permutex2var_ps(a, high, b));
        }
    }
}

void st_cpu_fill_window_amx(st_cpu_kernels *k)
{
    k->window_bf16 = window_bf16;
}
