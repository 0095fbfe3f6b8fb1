/* vec_v4.h: the vector wrapper on AVX-512. */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_VEC_V4_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_VEC_V4_H

#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512DQ__) || !defined(__AVX512VL__)
#error "this file needs -march=x86-64-v4"
#endif
#include <immintrin.h>

#include "vec.h"
#include "x86/transpose.h"

typedef __m512 vf;
typedef __m512i vi;
#define ST_PRODUCT_ROWS 12
enum { VL = 16, ST_MR = 12, ST_NV = 2, ST_SKINNY_ROWS = 8 };
#define ST_SKINNY(X) X(1, 2, 4) X(2, 2, 4) X(3, 2, 2) X(4, 2, 2) X(5, 2, 1) X(6, 2, 1) X(7, 2, 1) X(8, 2, 1)

INL __mmask16 v_first(int n)
{
    return (__mmask16)_bzhi_u32(0xffffu, (unsigned)n);
}

INL vf v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
INL vf v_load_n(const float *p, int n)
{
    return _mm512_maskz_loadu_ps(v_first(n), p);
}
INL void v_store(float *p, vf v)
{
    _mm512_storeu_ps(p, v);
}
INL void v_store_n(float *p, vf v, int n)
{
    _mm512_mask_storeu_ps(p, v_first(n), v);
}
INL vf v_set1(float x)
{
    return _mm512_set1_ps(x);
}
INL vf v_zero(void)
{
    return _mm512_setzero_ps();
}
INL vf v_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}
INL vf v_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}
INL vf v_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}
INL vf v_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}
INL vf v_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}
/* *c += a b, in place: compilers move accumulators about */
INL void v_add_product(vf *c, vf a, vf b)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(*c) : "v"(a), "v"(b));
}
INL vf v_sqrt(vf a)
{
    return _mm512_sqrt_ps(a);
}
INL vf v_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}
INL vf v_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}
/* Neighbours change places. */
INL vf v_swap_pairs(vf v)
{
    return _mm512_permute_ps(v, 0xb1);
}
INL float v_hsum(vf v)
{
    return _mm512_reduce_add_ps(v);
}
/* out[i] = v_hsum(x[i]) for VL vectors that lie one behind the other: added in the same order */
INL void v_hsums(const float *x, float *out)
{
    __m512 s[8], t[4], u[2];
    UNROLL for (int i = 0; i < 8; i++) /* halves: of i and of i + 8 */
    {
        const __m512 a = v_load(x + i * VL), b = v_load(x + (i + 8) * VL);
        s[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    }
    UNROLL for (int i = 0; i < 4; i++) /* quarters: of i, i + 8, i + 4, i + 12 */
        t[i] = _mm512_add_ps(_mm512_shuffle_f32x4(s[i], s[i + 4], 0x88), _mm512_shuffle_f32x4(s[i], s[i + 4], 0xdd));
    UNROLL for (int i = 0; i < 2; i++) u[i] =
        _mm512_add_ps(_mm512_shuffle_ps(t[2 * i], t[2 * i + 1], 0x44), _mm512_shuffle_ps(t[2 * i], t[2 * i + 1], 0xee));
    const __m512 all = _mm512_add_ps(_mm512_shuffle_ps(u[0], u[1], 0x88), _mm512_shuffle_ps(u[0], u[1], 0xdd));
    v_store(out, _mm512_shuffle_f32x4(all, all, 0xd8)); /* quarters 0, 2, 1, 3 */
}
INL float v_hmax(vf v)
{
    return _mm512_reduce_max_ps(v);
}
/* The same of v_hmax. */
INL void v_hmaxs(const float *x, float *out)
{
    __m512 s[8], t[4], u[2];
    UNROLL for (int i = 0; i < 8; i++)
    {
        const __m512 a = v_load(x + i * VL), b = v_load(x + (i + 8) * VL);
        s[i] = _mm512_max_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    }
    UNROLL for (int i = 0; i < 4; i++) t[i] =
        _mm512_max_ps(_mm512_shuffle_f32x4(s[i], s[i + 4], 0x88), _mm512_shuffle_f32x4(s[i], s[i + 4], 0xdd));
    UNROLL for (int i = 0; i < 2; i++) u[i] =
        _mm512_max_ps(_mm512_shuffle_ps(t[2 * i], t[2 * i + 1], 0x44), _mm512_shuffle_ps(t[2 * i], t[2 * i + 1], 0xee));
    const __m512 all = _mm512_max_ps(_mm512_shuffle_ps(u[0], u[1], 0x88), _mm512_shuffle_ps(u[0], u[1], 0xdd));
    v_store(out, _mm512_shuffle_f32x4(all, all, 0xd8));
}
INL vf v_round(vf v)
{
    return _mm512_roundscale_ps(v, 8);
}
/* p * 2^n, n integral; saturates to 0 and infinity */
INL vf v_scale2(vf p, vf n)
{
    return _mm512_scalef_ps(p, n);
}
/* a > b ? x : y */
INL vf v_sel_gt(vf a, vf b, vf x, vf y)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), y, x);
}

INL vi vi_load(const void *p)
{
    return _mm512_loadu_si512(p);
}
INL vi vi_set1(int x)
{
    return _mm512_set1_epi32(x);
}
INL vi vi_and(vi a, vi b)
{
    return _mm512_and_si512(a, b);
}
INL vi vi_or(vi a, vi b)
{
    return _mm512_or_si512(a, b);
}
INL vi vi_xor(vi a, vi b)
{
    return _mm512_xor_si512(a, b);
}
INL vi vi_add(vi a, vi b)
{
    return _mm512_add_epi32(a, b);
}
INL vi vi_sub(vi a, vi b)
{
    return _mm512_sub_epi32(a, b);
}
INL vi vi_shl(vi a, int n)
{
    return (vi)((__v16su)a << (unsigned)n);
}
INL vi vi_shr(vi a, int n)
{
    return (vi)((__v16su)a >> (unsigned)n);
}
INL vf vi_float(vi a)
{
    return _mm512_cvtepi32_ps(a);
}
INL vf vi_as_float(vi a)
{
    return _mm512_castsi512_ps(a);
}
INL vi v_as_int(vf a)
{
    return _mm512_castps_si512(a);
}

INL vf v_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
INL vf v_load_f16_n(const uint16_t *p, int n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(v_first(n), p));
}
INL void v_store_f16_n(uint16_t *p, vf v, int n)
{
    _mm256_mask_storeu_epi16(p, v_first(n), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
INL vf v_load_bf16(const uint16_t *p)
{
    return vi_as_float(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}
INL vf v_load_bf16_n(const uint16_t *p, int n)
{
    return vi_as_float(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(v_first(n), p)), 16));
}

INL vf v_load_i8(const void *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

/* The low 4 bits of each lane as a float; the permutation ignores the bits above. */
INL vf vi_low4(vi x)
{
    const vf table = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_permutexvar_ps(x, table);
}
/* Bits 0..3 of x and bit 4 of h as a float. */
INL vf vi_low5(vi x, vi h)
{
    const vf t0 = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const vf t1 = _mm512_setr_ps(16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
    const vi index = _mm512_ternarylogic_epi32(_mm512_set1_epi32(15), x, h, 0xca); /* mask ? x : h */
    return _mm512_permutex2var_ps(t0, index, t1);
}
/* Byte j of each lane as a float 0..255. */
INL vf vi_byte(vi x, int j)
{
    return vi_float(vi_and(vi_shr(x, 8 * j), vi_set1(255)));
}

INL vi vi_mul(vi a, vi b)
{
    return _mm512_mullo_epi32(a, b);
}
/* 16-bit halves of lanes */
INL vi vi_mul_words(vi a, vi b)
{
    return _mm512_mullo_epi16(a, b);
}
INL vi vi_add_words(vi a, vi b)
{
    return _mm512_add_epi16(a, b);
}
/* The low byte of each lane. */
INL void vi_store_bytes(uint8_t *p, vi v)
{
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(v));
}
/* round(x) + zero of 4 * VL numbers, clamped to what a byte holds. |x| and zero are below 2^15. */
#define ST_OWN_BYTES
INL void v_store_u8(uint8_t *p, const vf x[4], vi zero)
{
    const vi order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const vi words = _mm512_packs_epi32(zero, zero);
    const vi low = _mm512_packs_epi32(_mm512_cvtps_epi32(x[0]), _mm512_cvtps_epi32(x[1]));
    const vi high = _mm512_packs_epi32(_mm512_cvtps_epi32(x[2]), _mm512_cvtps_epi32(x[3]));
    const vi bytes = _mm512_packus_epi16(_mm512_add_epi16(low, words), _mm512_add_epi16(high, words));
    _mm512_storeu_si512(p, _mm512_permutexvar_epi32(order, bytes));
}
/* VL bytes, zero-extended */
INL vi vi_load_u8(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
}
/* Bytes 0..15 as the numbers of iq4_nl, plus 128. */
INL vi vi_iq4(vi x)
{
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)st_iq4_bytes)), x);
}
#define ST_OWN_I8 /* products of bytes: x86/narrow_words.h */
/* The high halves of the first n numbers. */
INL void v_store_high_n(uint16_t *p, vf v, int n)
{
    _mm256_mask_storeu_epi16(p, v_first(n), _mm512_cvtepi32_epi16(vi_shr(v_as_int(v), 16)));
}

/* 2^t, relative error below 2e-7 down to the denormals; NaN stays NaN. The part of t above the next lower whole number is one
 * instruction, and the scaling rounds t down itself: to 0 and infinity where it must. */
#define ST_OWN_EXP2
INL vf v_exp2(vf t)
{
    const vf f = _mm512_reduce_ps(t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    vf p = v_fma(f, v_set1(0.0018775767f), v_set1(0.00898934f));
    p = v_fma(p, f, v_set1(0.055826318f));
    p = v_fma(p, f, v_set1(0.24015361f));
    p = v_fma(p, f, v_set1(0.6931531f));
    p = v_fma(p, f, v_set1(0.99999994f));
    return _mm512_scalef_ps(p, t);
}
INL vf v_power(vf t)
{
    return v_exp2(t);
}

/* Rows become columns. */
INL void v_transpose(vf x[VL])
{
    vi rows[VL];
    UNROLL for (int i = 0; i < VL; i++) rows[i] = v_as_int(x[i]);
    transpose(rows);
    UNROLL for (int i = 0; i < VL; i++) x[i] = vi_as_float(rows[i]);
}

/* GELU by sixteen cubics: the number of the interval, to the nearest multiple of 0.34, picks their coefficients. Absolute error
 * below 2.5e-6, above 5.2 exact. Half of the instructions leave the multipliers alone, which AMX shares: a polynomial over the
 * whole range takes twice as long beside it. */
#define ST_OWN_GELU
INL vf v_gelu(vf x)
{
    const vf centre = _mm512_setr_ps(0, 0.34f, 0.68f, 1.02f, 1.36f, 1.7f, 2.04f, 2.38f, 2.72f, 3.06f, 3.4f, 3.74f,
                                     4.08f, 4.42f, 4.76f, 5.1f);
    const vf c0 = _mm512_setr_ps(-5.05985227e-08f, 0.133070484f, 0.251745522f, 0.346133739f, 0.413083971f, 0.455434471f,
                                 0.479325324f, 0.491344333f, 0.496736407f, 0.498893619f, 0.499663234f, 0.49990806f,
                                 0.499977499f, 0.499995083f, 0.499999046f, 0.5f);
    const vf c1 = _mm512_setr_ps(0.398949414f, 0.376519889f, 0.316581964f, 0.237127677f, 0.15822497f, 0.0940507278f,
                                 0.0498016439f, 0.0234917067f, 0.00987126399f, 0.00369499973f, 0.00123206864f,
                                 0.000365957065f, 9.68265522e-05f, 2.28203062e-05f, 4.79076562e-06f, 0);
    const vf c2 =
        _mm512_setr_ps(-0.000154254652f, -0.0635954961f, -0.10699448f, -0.120370746f, -0.107295349f, -0.0799203888f,
                       -0.0509367809f, -0.0281328596f, -0.0135667659f, -0.00574028399f, -0.0021381008f,
                       -0.000702733349f, -0.000204164317f, -5.25015421e-05f, -1.1962321e-05f, 0);
    const vf c3 = _mm512_setr_ps(-0.0655351505f, -0.0544872619f, -0.0278280322f, 0.00169302733f, 0.0222483743f,
                                 0.0294347443f, 0.0261230674f, 0.0182333067f, 0.0105477832f, 0.00518252142f,
                                 0.00219227467f, 0.000805121963f, 0.000258144806f, 7.25441496e-05f, 1.79194685e-05f, 0);
    const vi sign = vi_set1((int)0x80000000);
    const vf u = _mm512_min_ps(vi_as_float(_mm512_andnot_si512(sign, v_as_int(x))), v_set1(5.18f));
    const vi i = v_as_int(v_fma(u, v_set1(1 / 0.34f), v_set1(12582912.0f))); /* 1.5 * 2^23: i is in the low bits */
    const vf d = _mm512_sub_ps(u, _mm512_permutexvar_ps(i, centre));
    vf p = v_fma(_mm512_permutexvar_ps(i, c3), d, _mm512_permutexvar_ps(i, c2));
    p = v_fma(p, d, _mm512_permutexvar_ps(i, c1));
    p = v_fma(p, d, _mm512_permutexvar_ps(i, c0)); /* P(|x|) - 1/2, and then with the sign of x */
    p = vi_as_float(_mm512_ternarylogic_epi32(v_as_int(p), v_as_int(x), sign, 0x78));
    return v_mul(_mm512_max_ps(v_set1(-3e38f), x), v_add(p, v_set1(0.5f))); /* -infinity would be NaN */
}

#endif
