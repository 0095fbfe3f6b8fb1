/* attention_amx.c: 16 queries over all keys with AMX (contract of rows16 in cpu_kernels.h). While the tiles multiply the
 * queries with the next 32 keys and the probabilities before with their values, the vector units make probabilities of the
 * scores between them: so probabilities need a place for two steps only, and neither unit waits for the other. */
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

/* Scores of 32 keys, [2][16 queries][16]. */
INL void multiply_keys(int chunks, const uint8_t *q, const uint8_t *keys, float *scores)
{
    _tile_zero(4);
    _tile_zero(5);
    UNROLL for (int c = 0; c < chunks; c++)
    {
        _tile_loadd(6, q + c * TILE, 64);
        _tile_loadd(7, keys + c * CHUNK, 128);
        _tile_dpbf16ps(4, 6, 7);
        _tile_loadd(7, keys + c * CHUNK + 64, 128);
        _tile_dpbf16ps(5, 6, 7);
    }
    _tile_stored(4, scores, 64);
    _tile_stored(5, scores + 256, 64);
}

/* The sums of 16 columns in each of tiles 0 to 3 += 16 queries' probabilities of 32 keys times their values. */
INL void multiply_values(int chunks, const uint8_t *p, const uint8_t *values, ptrdiff_t stride)
{
    _tile_loadd(6, p, 64);
    _tile_loadd(7, values, 128);
    _tile_dpbf16ps(0, 6, 7);
    _tile_loadd(7, values + 64, 128);
    _tile_dpbf16ps(1, 6, 7);
    if (chunks > 1) {
        _tile_loadd(7, values + stride, 128);
        _tile_dpbf16ps(2, 6, 7);
        _tile_loadd(7, values + stride + 64, 128);
        _tile_dpbf16ps(3, 6, 7);
    }
}

/* Scores as probabilities [16][64 bytes]; sum gets what was added to each of 16 parts of a row's. */
INL void make_probabilities(const float *scores, const float *shift, __mmask32 valid, uint8_t *p, __m512 sum[ROWS])
{
    UNROLL for (int r = 0; r < ROWS; r++)
    {
        const __m512 s = _mm512_set1_ps(shift[r]);
        __m512i e = st_bf16_powers(_mm512_sub_ps(_mm512_loadu_ps(scores + r * 16), s),
                                   _mm512_sub_ps(_mm512_loadu_ps(scores + 256 + r * 16), s));
        if (valid != 0xffffffffu)
            e = _mm512_maskz_mov_epi16(valid, e);
        _mm512_storeu_si512(p + r * 64, e);
        sum[r] = _mm512_dpbf16_ps(sum[r], (__m512bh)e, (__m512bh)_mm512_set1_epi16(0x3f80));
    }
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
    const ptrdiff_t stride = (ptrdiff_t)a->panels * CHUNK;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    multiply_keys(chunks, a->q, a->keys, a->scores);
    ORDER();
    for (int i = 0; i < last; i++) {
        const int odd = i & 1;
        multiply_keys(chunks, a->q, a->keys + (ptrdiff_t)((i + 1) * chunks) * CHUNK, a->scores + (1 - odd) * 512);
        if (i > 0)
            multiply_values(chunks, a->p + (1 - odd) * TILE, a->values + (ptrdiff_t)(i - 1) * CHUNK, stride);
        ORDER();
        make_probabilities(a->scores + odd * 512, a->shift, 0xffffffffu, a->p + odd * TILE, sum);
        ORDER();
    }
    if (last > 0)
        multiply_values(chunks, a->p + (1 - (last & 1)) * TILE, a->values + (ptrdiff_t)(last - 1) * CHUNK, stride);
    ORDER();
    make_probabilities(a->scores + (last & 1) * 512, a->shift, valid, a->p + (last & 1) * TILE, sum);
    ORDER();
    multiply_values(chunks, a->p + (last & 1) * TILE, a->values + (ptrdiff_t)last * CHUNK, stride);
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
