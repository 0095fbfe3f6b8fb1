/* attention_amx.c: 16 queries over all keys with AMX (contract of rows16 in cpu_kernels.h). The tiles multiply the
 * queries with the next 32 keys and the probabilities before with their values, while the vector units make probabilities of the
 * scores between them. Two rows of these follow every product: further apart in the program than that, neither unit
 * would see the work of the other. */
#if !defined(__AVX512VBMI__) || (!defined(__AMX_TILE__) && !defined(__AMXTILE__)) /* gcc, clang */
#error "this file needs -mamx-tile -mamx-bf16 -mavx512vbmi -mavx512bf16"
#endif
#include <immintrin.h>

#include "../vec.h"
#include "backends/cpu/cpu_kernels.h"
#include "bf16_powers.h"

enum { ROWS = 16, CHUNK = 2048, TILE = 1024 };

/* Compilers do not know that tiles are loaded from memory. */
#define ORDER() __asm__ volatile("" ::: "memory")

/* As _mm512_packus_epi32 lays out two vectors of 16: position i of the result is column packed_column(i). */
INL int packed_column(int i)
{
    return i % 8 < 4 ? i / 8 * 4 + i % 8 : 16 + i / 8 * 4 + i % 8 - 4;
}

/* A step: scores of the next panel, probabilities of this one, products of those before with their values. */
typedef struct step {
    const uint8_t *q, *keys, *past, *values;
    ptrdiff_t stride; /* from values to those of the next 32 columns */
    float *next;
    const float *scores, *shift;
    uint8_t *p;
    __mmask32 valid;
} step;

/* Scores of two rows as probabilities [16][64 bytes]; sum gets what was added to each of 16 parts of a row's. */
INL void two_rows(const step *s, bool all, int row, __m512 sum[ROWS])
{
    ORDER();
    UNROLL for (int r = row; r < row + 2; r++)
    {
        const __m512 shift = _mm512_set1_ps(s->shift[r]);
        __m512i e = st_bf16_powers(_mm512_sub_ps(_mm512_loadu_ps(s->scores + r * 16), shift),
                                   _mm512_sub_ps(_mm512_loadu_ps(s->scores + 256 + r * 16), shift));
        if (!all)
            e = _mm512_maskz_mov_epi16(s->valid, e);
        _mm512_storeu_si512(s->p + r * 64, e);
        sum[r] = _mm512_dpbf16_ps(sum[r], (__m512bh)e, (__m512bh)_mm512_set1_epi16(0x3f80));
    }
    ORDER();
}

/* Tiles 0 to 3 hold 16 columns of the result each. What a step does not do is folded away. */
INL void run_step(const step *s, int chunks, bool next, bool rows, bool past, bool all, __m512 sum[ROWS])
{
#define KEYS(ACC, C, HALF)                                    \
    if (next) {                                               \
        _tile_loadd(7, s->keys + (C)*CHUNK + (HALF)*64, 128); \
        _tile_dpbf16ps(ACC, 6, 7);                            \
    }
#define VALUES(ACC, C, HALF)                                        \
    if (past) {                                                     \
        _tile_loadd(7, s->values + (C)*s->stride + (HALF)*64, 128); \
        _tile_dpbf16ps(ACC, 6, 7);                                  \
    }
#define TWO_ROWS(R) \
    if (rows)       \
        two_rows(s, all, R, sum);
    if (next) {
        _tile_zero(4);
        _tile_zero(5);
        _tile_loadd(6, s->q, 64);
    }
    KEYS(4, 0, 0)
    TWO_ROWS(0)
    KEYS(5, 0, 1)
    TWO_ROWS(2)
    if (past)
        _tile_loadd(6, s->past, 64);
    VALUES(0, 0, 0)
    TWO_ROWS(4)
    VALUES(1, 0, 1)
    TWO_ROWS(6)
    if (chunks > 1) {
        if (next)
            _tile_loadd(6, s->q + TILE, 64);
        KEYS(4, 1, 0)
    }
    TWO_ROWS(8)
    if (chunks > 1)
        KEYS(5, 1, 1)
    TWO_ROWS(10)
    if (chunks > 1) {
        if (past)
            _tile_loadd(6, s->past, 64);
        VALUES(2, 1, 0)
    }
    TWO_ROWS(12)
    if (chunks > 1)
        VALUES(3, 1, 1)
    TWO_ROWS(14)
    if (next) {
        _tile_stored(4, s->next, 64);
        _tile_stored(5, s->next + 256, 64);
    }
    ORDER();
#undef KEYS
#undef VALUES
#undef TWO_ROWS
}

/* The step of panel i. */
INL step step_of(const st_cpu_rows16 *a, int chunks, int i, __mmask32 valid)
{
    return (step){.q = a->q,
                  .keys = a->keys + (ptrdiff_t)((i + 1) * chunks) * CHUNK,
                  .past = a->p + ((i + 1) & 1) * TILE,
                  .values = a->values + (ptrdiff_t)(i - 1) * CHUNK,
                  .stride = (ptrdiff_t)a->panels * CHUNK,
                  .next = a->scores + ((i + 1) & 1) * 512,
                  .scores = a->scores + (i & 1) * 512,
                  .shift = a->shift,
                  .p = a->p + (i & 1) * TILE,
                  .valid = valid};
}

INL void all_keys(int chunks, const st_cpu_rows16 *a)
{
    const int last = a->panels - 1;
    __m512 sum[ROWS];
    __mmask32 valid = 0;
    for (int i = 0; i < 32; i++)
        if (packed_column(i) < a->n_k - 32 * last)
            valid |= 1u << i;
    UNROLL for (int r = 0; r < ROWS; r++) sum[r] = _mm512_setzero_ps();
    for (int r = 0; r < ROWS; r++)              /* in memory, since registers are short */
        a->shift[r] = a->base[r] - 27 * 128.0f; /* as in attention_vnni.c */
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    ORDER();
    step s = step_of(a, chunks, -1, valid);
    run_step(&s, chunks, true, false, false, true, sum);
    for (int i = 0; i < last; i++) {
        s = step_of(a, chunks, i, valid);
        if (i == 0)
            run_step(&s, chunks, true, true, false, true, sum);
        else
            run_step(&s, chunks, true, true, true, true, sum);
    }
    s = step_of(a, chunks, last, valid);
    if (last > 0)
        run_step(&s, chunks, false, true, true, false, sum);
    else
        run_step(&s, chunks, false, true, false, false, sum);
    s = step_of(a, chunks, last + 1, valid);
    run_step(&s, chunks, false, false, true, true, sum);
    _tile_stored(0, a->out, 64);
    _tile_stored(1, a->out + 256, 64);
    if (chunks > 1) {
        _tile_stored(2, a->out + 512, 64);
        _tile_stored(3, a->out + 768, 64);
    }
    ORDER();
    UNROLL for (int r = 0; r < ROWS; r++) a->sum[r] = _mm512_reduce_add_ps(sum[r]);
}

static void rows16(const st_cpu_rows16 *a)
{
    if (a->chunks == 1)
        all_keys(1, a);
    else
        all_keys(2, a);
}

void st_cpu_fill_attention_amx(st_cpu_kernels *k)
{
    k->attend.rows16 = rows16;
}
