/* window_vnni.c: a few rows over cells of a bf16 cache with AVX-512 BF16 (contract of window_bf16 in cpu_kernels.h). Cells are
 * read once, 32 at a time, and met by all rows. Scores come out with a lane for each cell, in units of log 2 / 128, as in
 * cpu_attention_bf16.c; the reference of a row is a whole power of two not below its largest score, so that probabilities are
 * at most 1 and bringing earlier sums to a new one is exact. What a row gets does not depend on the rows that are with it. */
#if !defined(__AVX512VBMI__) || !defined(__AVX512BF16__)
#error "this file needs -mavx512vbmi -mavx512bf16"
#endif
#include <immintrin.h>
#include <math.h>

#include "../vec.h"
#include "bf16_powers.h"
#include "window_cells.h"

enum {
    ROWS = 5,  /* that are met at once: their sums fit the registers */
    PARTS = 8, /* of a query: eight bf16 each */
    SUMS = 4,  /* vectors of results of a row */
    MANY = 3,  /* from so many rows on the processor does not look far enough ahead by itself */
    AHEAD = 4  /* steps that cells are fetched ahead then, into the second cache */
};

typedef struct areas {
    float *base;   /* [8]: of each row, its reference */
    float *sum;    /* [8][16]: the sum of its probabilities in parts */
    float *out;    /* [8][4][16]: the results, as add_values orders them */
    float *q;      /* [8][8 parts][4 times the same eight bf16] */
    float *scores; /* [8][32 cells] */
    uint8_t *p;    /* [8][32 cells] bf16, in the order of st_bf16_powers */
    copies copies;
} areas;

static areas areas_of(const st_cpu_cells *c)
{
    areas s = {.base = c->scratch};
    s.sum = s.base + 16;
    s.out = s.sum + ST_CPU_MAX_SKINNY * 16;
    s.q = s.out + ST_CPU_MAX_SKINNY * SUMS * 16;
    s.scores = s.q + ST_CPU_MAX_SKINNY * PARTS * 16;
    s.p = (uint8_t *)(s.scores + ST_CPU_MAX_SKINNY * STEP);
    s.copies.cells = s.p + ST_CPU_MAX_SKINNY * 64;
    s.copies.seen = s.copies.cells + 256 * c->d;
    return s;
}

static void pack_query(const float *x, float scale, int d, float *out)
{
    const __m512 factor = _mm512_set1_ps(scale * 128 * 1.44269504f);
    for (int i = 0; i < d; i += 32, out += 64) {
        const __m512 a = _mm512_mul_ps(_mm512_loadu_ps(x + i), factor);
        const __m512 b = _mm512_mul_ps(_mm512_loadu_ps(x + i + 16), factor);
        const __m512i q = (__m512i)_mm512_cvtne2ps_pbh(b, a);
        _mm512_storeu_si512(out, _mm512_shuffle_i32x4(q, q, 0x00));
        _mm512_storeu_si512(out + 16, _mm512_shuffle_i32x4(q, q, 0x55));
        _mm512_storeu_si512(out + 32, _mm512_shuffle_i32x4(q, q, 0xaa));
        _mm512_storeu_si512(out + 48, _mm512_shuffle_i32x4(q, q, 0xff));
    }
}

/* c + the products of pairs. Written out, since gcc 12 moves accumulators to and fro around its builtin. */
INL __m512 add_pairs(__m512 c, __m512i x, const float *y)
{
    typedef float vector __attribute__((vector_size(64), aligned(4)));
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(x), "m"(*(const vector *)(const void *)y));
    return c;
}

/* The same with one pair for all lanes. */
INL __m512 add_pair(__m512 c, __m512i x, const uint8_t *pair)
{
    typedef int32_t word __attribute__((aligned(1), may_alias));
    __asm__("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(x), "m"(*(const word *)(const void *)pair));
    return c;
}

/* Vectors of four cells as four vectors that have a quarter of each. */
INL void mix_quarters(__m512i x[4])
{
    const __m512i a = _mm512_shuffle_i32x4(x[0], x[1], 0x44), b = _mm512_shuffle_i32x4(x[2], x[3], 0x44),
                  c = _mm512_shuffle_i32x4(x[0], x[1], 0xee), d = _mm512_shuffle_i32x4(x[2], x[3], 0xee);
    x[0] = _mm512_shuffle_i32x4(a, b, 0x88);
    x[1] = _mm512_shuffle_i32x4(a, b, 0xdd);
    x[2] = _mm512_shuffle_i32x4(c, d, 0x88);
    x[3] = _mm512_shuffle_i32x4(c, d, 0xdd);
}

/* Each lane of 128 bits has a sum in four parts, those of cells 0 to 3 in a: the sums in their order. */
INL __m512 add_parts(__m512 a, __m512 b, __m512 c, __m512 d)
{
    const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    const __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)),
                 cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    return _mm512_permutexvar_ps(order, _mm512_add_ps((__m512)_mm512_unpacklo_pd((__m512d)ab, (__m512d)cd),
                                                      (__m512)_mm512_unpackhi_pd((__m512d)ab, (__m512d)cd)));
}

/* scores [rows][32] of the cells of a step; many rows fetch those at `ahead` meanwhile. */
INL void score(int rows, int d, const uint8_t *k, size_t stride, const uint8_t *ahead, const float *q, float *scores)
{
    ROLLED for (int half = 0; half < 2; half++, k += 16 * stride, ahead += 16 * stride)
    {
        __m512 part[ROWS][4]; /* a lane of 128 bits for each of four cells */
        UNROLL for (int i = 0; i < 4; i++)
        {
            UNROLL for (int r = 0; r < rows; r++) part[r][i] = _mm512_setzero_ps();
            UNROLL for (int chunk = 0; chunk < d / 32; chunk++)
            {
                __m512i x[4];
                UNROLL for (int j = 0; j < 4; j++)
                {
                    const size_t at = (size_t)(4 * i + j) * stride + 64 * (size_t)chunk;
                    x[j] = _mm512_loadu_si512(k + at);
                    if (rows >= MANY)
                        __builtin_prefetch(ahead + at, 0, 2);
                }
                mix_quarters(x);
                UNROLL for (int j = 0; j < 4; j++) UNROLL for (int r = 0; r < rows; r++) part[r][i] =
                    add_pairs(part[r][i], x[j], q + (r * PARTS + chunk * 4 + j) * 16);
            }
        }
        UNROLL for (int r = 0; r < rows; r++)
            _mm512_storeu_ps(scores + r * STEP + 16 * half, add_parts(part[r][0], part[r][1], part[r][2], part[r][3]));
    }
}

/* out [rows][4][16] += p times the values of a step, as above. Neighbours are pairs, in the order of st_bf16_powers; of 32 columns, the
 * first vector has those that are 0 .. 3 of 8. */
INL void add_values(int rows, int d, const uint8_t *v, size_t stride, const uint8_t *ahead, const uint8_t *p, float *out)
{
    __m512 sum[ROWS][SUMS];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int i = 0; i < d / 16; i++) sum[r][i] =
        _mm512_loadu_ps(out + (r * SUMS + i) * 16);
    ROLLED for (int half = 0; half < 2; half++, p += 8)
    {
        UNROLL for (int i = 0; i < 8; i++, v += 2 * stride, ahead += 2 * stride)
        {
            const uint8_t *const pair = p + i / 2 * 16 + i % 2 * 4;
            UNROLL for (int chunk = 0; chunk < d / 32; chunk++)
            {
                const __m512i x = _mm512_loadu_si512(v + 64 * chunk), y = _mm512_loadu_si512(v + stride + 64 * chunk);
                if (rows >= MANY) {
                    __builtin_prefetch(ahead + 64 * chunk, 0, 2);
                    __builtin_prefetch(ahead + stride + 64 * chunk, 0, 2);
                }
                const __m512i low = _mm512_unpacklo_epi16(x, y), high = _mm512_unpackhi_epi16(x, y);
                UNROLL for (int r = 0; r < rows; r++)
                {
                    sum[r][2 * chunk] = add_pair(sum[r][2 * chunk], low, pair + 64 * r);
                    sum[r][2 * chunk + 1] = add_pair(sum[r][2 * chunk + 1], high, pair + 64 * r);
                }
            }
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int i = 0; i < d / 16; i++)
        _mm512_storeu_ps(out + (r * SUMS + i) * 16, sum[r][i]);
}

typedef struct kernels {
    void (*score)(const uint8_t *k, size_t stride, const uint8_t *ahead, const float *q, float *scores);
    void (*add_values)(const uint8_t *v, size_t stride, const uint8_t *ahead, const uint8_t *p, float *out);
} kernels;

#define KERNELS(D, R)                                                                                                 \
    static void score_##D##_##R(const uint8_t *k, size_t stride, const uint8_t *ahead, const float *q, float *scores) \
    {                                                                                                                 \
        score(R, D, k, stride, ahead, q, scores);                                                                     \
    }                                                                                                                 \
    static void add_values_##D##_##R(const uint8_t *v, size_t stride, const uint8_t *ahead, const uint8_t *p,         \
                                     float *out)                                                                      \
    {                                                                                                                 \
        add_values(R, D, v, stride, ahead, p, out);                                                                   \
    }
#define EACH(X, D) X(D, 1) X(D, 2) X(D, 3) X(D, 4) X(D, 5)
EACH(KERNELS, 32)
EACH(KERNELS, 64)

/* By d / 32 less one, and rows less one. */
#define ENTRY(D, R) {score_##D##_##R, add_values_##D##_##R},
static const kernels kernels_of[][ROWS] = {{EACH(ENTRY, 32)}, {EACH(ENTRY, 64)}};

/* Another reference for a row that has a larger score than its own. */
static void raise(const areas *s, int row, float most)
{
    const float next = (ceilf(most / 128) + MARGIN) * 128;
    const __m512 back = _mm512_scalef_ps(_mm512_set1_ps(1), _mm512_set1_ps((s->base[row] - next) / 128));
    s->base[row] = next;
    _mm512_storeu_ps(s->sum + 16 * row, _mm512_mul_ps(_mm512_loadu_ps(s->sum + 16 * row), back));
    for (int i = row * SUMS; i < (row + 1) * SUMS; i++)
        _mm512_storeu_ps(s->out + 16 * i, _mm512_mul_ps(_mm512_loadu_ps(s->out + 16 * i), back));
}

/* The scores of a row as probabilities; seen: NULL, the row sees all cells. */
INL void weigh(const areas *s, int row, const uint8_t *seen)
{
    const __m512 nothing = _mm512_set1_ps(-3e38f);
    __m512 z[2];
    UNROLL for (int i = 0; i < 2; i++)
    {
        z[i] = _mm512_loadu_ps(s->scores + row * STEP + 16 * i);
        if (seen != NULL)
            z[i] = _mm512_mask_mov_ps(nothing,
                                      _mm_test_epi8_mask(_mm_loadu_si128((const __m128i *)(const void *)(seen + 16 * i)),
                                                         _mm_set1_epi8((char)(1 << row))),
                                      z[i]);
    }
    const __m512 most = _mm512_max_ps(z[0], z[1]);
    if (_mm512_cmp_ps_mask(most, _mm512_set1_ps(s->base[row]), _CMP_GT_OQ) != 0)
        raise(s, row, _mm512_reduce_max_ps(most));
    const __m512 shift = _mm512_set1_ps(s->base[row] - 127 * 128.0f);
    const __m512i p = st_bf16_powers(_mm512_sub_ps(z[0], shift), _mm512_sub_ps(z[1], shift));
    _mm512_storeu_si512(s->p + 64 * row, p);
    const __m512 sum = _mm512_loadu_ps(s->sum + 16 * row);
    _mm512_storeu_ps(s->sum + 16 * row, _mm512_dpbf16_ps(sum, (__m512bh)p, (__m512bh)_mm512_set1_epi16(0x3f80)));
}

/* The first lines of what comes next: it mostly lies in another page, and the processor itself fetches ahead within one. */
INL void fetch_begin(const uint8_t *from)
{
    UNROLL for (int i = 0; i < 8; i++) __builtin_prefetch(from + 64 * i, 0, 2);
}

/* All rows meet the cells of a step; `ahead` is where cells will be wanted later. */
static void meet(const st_cpu_cells *c, const areas *s, const place *at, const place *ahead, const uint8_t *seen)
{
    const kernels *const by_rows = kernels_of[c->d / 32 - 1] - 1;
    const int parts = c->n_row > ROWS ? 2 : 1;
    for (int i = 0, row = 0; i < parts; i++) {
        const int rows = (c->n_row - row) / (parts - i);
        by_rows[rows].score(at->k, at->k_stride, ahead->k, s->q + row * PARTS * 16, s->scores + row * STEP);
        row += rows;
    }
    for (int r = 0; r < c->n_row; r++)
        weigh(s, r, seen);
    for (int i = 0, row = 0; i < parts; i++) {
        const int rows = (c->n_row - row) / (parts - i);
        by_rows[rows].add_values(at->v, at->v_stride, ahead->v, s->p + 64 * row, s->out + row * SUMS * 16);
        row += rows;
    }
}

static void window_bf16(const st_cpu_cells *c)
{
    const areas s = areas_of(c);
    const int64_t whole = steps_in_row(c), end = (c->n_kv + STEP - 1) / STEP;
    for (int r = 0; r < c->n_row; r++) {
        pack_query(c->q[r], c->scale, c->d, s.q + r * PARTS * 16);
        s.base[r] = -3e38f;
    }
    memset(s.sum, 0, sizeof *s.sum * 16 * ST_CPU_MAX_SKINNY);
    memset(s.out, 0, sizeof *s.out * 16 * SUMS * ST_CPU_MAX_SKINNY);
    for (int64_t i = 0; i < whole; i++) {
        const place at = place_of(c, i), ahead = place_of(c, i + AHEAD);
        if (c->n_row < MANY) {
            fetch_begin(at.v);
            fetch_begin(place_of(c, i + 1).k);
        }
        meet(c, &s, &at, &ahead, NULL);
    }
    for (int64_t i = whole; i < end; i++) {
        const place at = c->d == 64 ? gather(c, &s.copies, i, 64, 2, 2) : gather(c, &s.copies, i, 32, 2, 2);
        meet(c, &s, &at, &at, s.copies.seen + i % 2 * STEP);
    }
    const __m512i low = _mm512_set_epi32(23, 22, 21, 20, 7, 6, 5, 4, 19, 18, 17, 16, 3, 2, 1, 0);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    for (int r = 0; r < c->n_row; r++) {
        const float sum = _mm512_reduce_add_ps(_mm512_loadu_ps(s.sum + 16 * r));
        const __m512 factor = _mm512_set1_ps(c->n_kv > 0 ? 1.0f / sum : 0.0f);
        for (int i = 0; i < c->d; i += 32) {
            const float *p = s.out + r * SUMS * 16 + i;
            const __m512 a = _mm512_mul_ps(_mm512_loadu_ps(p), factor);
            const __m512 b = _mm512_mul_ps(_mm512_loadu_ps(p + 16), factor);
            _mm512_storeu_ps(c->out[r] + i, _mm512_permutex2var_ps(a, low, b));
            _mm512_storeu_ps(c->out[r] + i + 16, _mm512_permutex2var_ps(a, high, b));
        }
    }
}

void st_cpu_fill_window_vnni(st_cpu_kernels *k)
{
    k->window_bf16 = window_bf16;
}
