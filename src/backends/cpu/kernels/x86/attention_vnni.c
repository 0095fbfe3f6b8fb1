/* attention_vnni.c: what bf16 attention needs besides products (contracts in cpu_kernels.h), with AVX-512 VBMI and BF16. */
#if !defined(__AVX512VBMI__) || !defined(__AVX512BF16__)
#error "this file needs -mavx512vbmi -mavx512bf16"
#endif
#include <immintrin.h>

#include "../vec.h"
#include "backends/cpu/cpu_kernels.h"
#include "bf16_powers.h"
#include "transpose.h"

/* The reference gets this exponent: 2^-27 below it is zero, 2^228 above it still a number. */
#define REFERENCE_BITS (27 * 128.0f)

/* Bits 0..15 are the valid columns of the first vector of a row, 16..31 of the second. */
INL __mmask32 valid_columns(int n)
{
    return n >= 32 ? 0xffffffffu : (1u << n) - 1u;
}

/* As _mm512_packus_epi32 lays out two vectors of 16: position i of the result is column packed_column(i). */
INL int packed_column(int i)
{
    return i % 8 < 4 ? i / 8 * 4 + i % 8 : 16 + i / 8 * 4 + i % 8 - 4;
}

/* Tiles of 16 rows turn over, so that no row needs a reduction of its own. */
static void largest_of_16(const float *acc, int rows, int n, float *max)
{
    const __mmask32 valid = valid_columns(n);
    const __mmask16 all = (__mmask16)((1u << rows) - 1u);
    const __m512 least = _mm512_set1_ps(-__builtin_inff()), before = _mm512_mask_loadu_ps(least, all, max);
    __mmask16 bad = _mm512_cmp_ps_mask(before, before, _CMP_UNORD_Q);
    __m512i r[16];
    UNROLL for (int i = 0; i < 16; i++)
    {
        const __m512 a = _mm512_mask_loadu_ps(least, (__mmask16)valid, acc + i * 16);
        const __m512 b = _mm512_mask_loadu_ps(least, (__mmask16)(valid >> 16), acc + (16 + i) * 16);
        bad |= (__mmask16)((_mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q) != 0) << i);
        r[i] = (__m512i)_mm512_max_ps(a, b);
    }
    transpose(r);
    __m512 most = before;
    UNROLL for (int i = 0; i < 16; i++) most = _mm512_max_ps(most, (__m512)r[i]);
    _mm512_mask_storeu_ps(max, all, _mm512_mask_mov_ps(most, bad, _mm512_set1_ps(__builtin_nanf(""))));
}

static void largest(const float *acc, int tile_rows, int rows, int n, float *max)
{
    if (tile_rows == 16) {
        largest_of_16(acc, rows, n, max);
        return;
    }
    const __mmask32 valid = valid_columns(n);
    const __m512 least = _mm512_set1_ps(-__builtin_inff());
    for (int r = 0; r < rows; r++) {
        const __m512 a = _mm512_mask_loadu_ps(least, (__mmask16)valid, acc + r * 16);
        const __m512 b = _mm512_mask_loadu_ps(least, (__mmask16)(valid >> 16), acc + (tile_rows + r) * 16);
        const __mmask16 bad = _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
        const float most = _mm512_reduce_max_ps(_mm512_max_ps(a, b));
        if (bad || max[r] != max[r])
            max[r] = __builtin_nanf("");
        else
            max[r] = most > max[r] ? most : max[r];
    }
}

static void largest_of(const float *acc, int panels, int tile_rows, int rows, float *max)
{
    for (int r = 0; r < rows; r++) {
        __m512 most = _mm512_set1_ps(max[r]);
        __mmask16 bad = max[r] != max[r] ? 1 : 0;
        const float *p = acc + r * 16;
        __m512i nan = _mm512_setzero_si512(); /* in a vector: clang would keep a mask on the stack */
        for (int i = 0; i < panels; i++, p += tile_rows * ST_CPU_PANEL) {
            const __m512 a = _mm512_loadu_ps(p), b = _mm512_loadu_ps(p + tile_rows * 16);
            nan = _mm512_or_si512(nan, _mm512_movm_epi32(_mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q)));
            most = _mm512_max_ps(most, _mm512_max_ps(a, b));
        }
        bad |= _mm512_movepi32_mask(nan);
        max[r] = bad ? __builtin_nanf("") : _mm512_reduce_max_ps(most);
    }
}

static void probabilities(const float *acc, int tile_rows, int rows, int n, const float *base, uint8_t *p, float *sum)
{
    const __m512i ones = _mm512_set1_epi16(0x3f80);
    __mmask32 valid = 0xffffffffu;
    if (n < 32) {
        valid = 0;
        for (int i = 0; i < 32; i++)
            if (packed_column(i) < n)
                valid |= 1u << i;
    }
    for (int r = 0; r < rows; r++) {
        const __m512 shift = _mm512_set1_ps(base[r] - REFERENCE_BITS);
        __m512i e = st_bf16_powers(_mm512_sub_ps(_mm512_loadu_ps(acc + r * 16), shift),
                                   _mm512_sub_ps(_mm512_loadu_ps(acc + (tile_rows + r) * 16), shift));
        e = _mm512_maskz_mov_epi16(valid, e);
        _mm512_storeu_si512(p + r * 64, e);
        const __m512 total = _mm512_loadu_ps(sum + r * 16);
        _mm512_storeu_ps(sum + r * 16, _mm512_dpbf16_ps(total, (__m512bh)e, (__m512bh)ones));
    }
}

static void pack_queries(const float *x, ptrdiff_t stride, float scale, int n, int rows, int d, uint8_t *out)
{
    const __m512 factor = _mm512_set1_ps(scale);
    for (int r = 0; r < rows; r++) {
        const float *from = x + (r < n ? r : n - 1) * stride;
        for (int c = 0; c < d; c += 32)
            _mm512_storeu_si512(out + (c / 32 * rows + r) * 64,
                                (__m512i)_mm512_cvtne2ps_pbh(_mm512_mul_ps(_mm512_loadu_ps(from + c + 16), factor),
                                                             _mm512_mul_ps(_mm512_loadu_ps(from + c), factor)));
    }
}

static void pack_keys(const float *x, ptrdiff_t stride, int n, int d, uint8_t *out)
{
    for (int c = 0; c < d; c += 32, out += 2048) {
        for (int half = 0; half < 2; half++) {
            const float *from = x + half * 16 * stride + c;
            __m512i r[16];
            UNROLL for (int i = 0; i < 16; i++) r[i] =
                half * 16 + i < n ? (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + i * stride + 16),
                                                                 _mm512_loadu_ps(from + i * stride))
                                  : _mm512_setzero_si512();
            transpose(r);
            UNROLL for (int i = 0; i < 16; i++) _mm512_storeu_si512(out + i * 128 + half * 64, r[i]);
        }
    }
}

static void pack_values(const float *x, ptrdiff_t stride, int n, uint8_t *out)
{
    /* two rows of 16 into pairs */
    const __m512i pair = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                          21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    for (int i = 0; i < 32; i += 2) {
        const int first = packed_column(i), second = packed_column(i + 1);
        for (int half = 0; half < 2; half++) {
            const __m512 a = first < n ? _mm512_loadu_ps(x + first * stride + half * 16) : _mm512_setzero_ps();
            const __m512 b = second < n ? _mm512_loadu_ps(x + second * stride + half * 16) : _mm512_setzero_ps();
            _mm512_storeu_si512(out + i / 2 * 128 + half * 64,
                                _mm512_permutexvar_epi16(pair, (__m512i)_mm512_cvtne2ps_pbh(b, a)));
        }
    }
}

void st_cpu_fill_attention_vnni(st_cpu_kernels *k)
{
    k->attend = (st_cpu_attend){pack_queries, pack_keys, pack_values, largest, probabilities, largest_of, NULL};
}
