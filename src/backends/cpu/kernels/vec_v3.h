/* vec_v3.h: the vector wrapper on AVX2 with FMA and F16C. */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_VEC_V3_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_VEC_V3_H

#if !defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__)
#error "this file needs -march=x86-64-v3"
#endif
#include <immintrin.h>

#include "vec.h"

typedef __m256 vf;
typedef __m256i vi;
#define ST_PRODUCT_ROWS 6
#define ST_REGISTERS 16
enum { VL = 8, ST_MR = 6, ST_NV = 2, ST_SKINNY_ROWS = 5 };
#define ST_SKINNY(X) X(1, 4, 2) X(2, 4, 1) X(3, 2, 1) X(4, 2, 1) X(5, 2, 1)

INL __m256i v_first(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INL vf v_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
INL vf v_load_n(const float *p, int n)
{
    return _mm256_maskload_ps(p, v_first(n));
}
INL void v_store(float *p, vf v)
{
    _mm256_storeu_ps(p, v);
}
INL void v_store_n(float *p, vf v, int n)
{
    _mm256_maskstore_ps(p, v_first(n), v);
}
INL vf v_set1(float x)
{
    return _mm256_set1_ps(x);
}
INL vf v_zero(void)
{
    return _mm256_setzero_ps();
}
INL vf v_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}
INL vf v_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}
INL vf v_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}
INL vf v_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}
INL vf v_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
/* *c += a b, in place: compilers move accumulators about */
INL void v_add_product(vf *c, vf a, vf b)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(*c) : "x"(a), "x"(b));
}
INL vf v_sqrt(vf a)
{
    return _mm256_sqrt_ps(a);
}
INL vf v_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}
INL vf v_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}
/* Neighbours change places. */
INL vf v_swap_pairs(vf v)
{
    return _mm256_permute_ps(v, 0xb1);
}
INL float v_hsum(vf v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
/* out[i] = v_hsum(x[i]) for VL vectors that lie one behind the other: added in the same order */
INL void v_hsums(const float *x, float *out)
{
    __m256 s[4], t[2];
    UNROLL for (int i = 0; i < 4; i++)
    {
        const __m256 a = v_load(x + i * VL), b = v_load(x + (i + 4) * VL);
        s[i] = _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
    }
    UNROLL for (int i = 0; i < 2; i++) t[i] =
        _mm256_add_ps(_mm256_shuffle_ps(s[2 * i], s[2 * i + 1], 0x44), _mm256_shuffle_ps(s[2 * i], s[2 * i + 1], 0xee));
    v_store(out, _mm256_add_ps(_mm256_shuffle_ps(t[0], t[1], 0x88), _mm256_shuffle_ps(t[0], t[1], 0xdd)));
}
INL float v_hmax(vf v)
{
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}
/* The same of v_hmax. */
INL void v_hmaxs(const float *x, float *out)
{
    __m256 s[4], t[2];
    UNROLL for (int i = 0; i < 4; i++)
    {
        const __m256 a = v_load(x + i * VL), b = v_load(x + (i + 4) * VL);
        s[i] = _mm256_max_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
    }
    UNROLL for (int i = 0; i < 2; i++) t[i] =
        _mm256_max_ps(_mm256_shuffle_ps(s[2 * i], s[2 * i + 1], 0x44), _mm256_shuffle_ps(s[2 * i], s[2 * i + 1], 0xee));
    v_store(out, _mm256_max_ps(_mm256_shuffle_ps(t[0], t[1], 0x88), _mm256_shuffle_ps(t[0], t[1], 0xdd)));
}
INL vf v_round(vf v)
{
    return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

INL vi vi_load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}
INL vi vi_set1(int x)
{
    return _mm256_set1_epi32(x);
}
INL vi vi_and(vi a, vi b)
{
    return _mm256_and_si256(a, b);
}
INL vi vi_or(vi a, vi b)
{
    return _mm256_or_si256(a, b);
}
INL vi vi_xor(vi a, vi b)
{
    return _mm256_xor_si256(a, b);
}
INL vi vi_add(vi a, vi b)
{
    return _mm256_add_epi32(a, b);
}
INL vi vi_sub(vi a, vi b)
{
    return _mm256_sub_epi32(a, b);
}
INL vi vi_shl(vi a, int n)
{
    return (vi)((__v8su)a << (unsigned)n);
}
INL vi vi_shr(vi a, int n)
{
    return (vi)((__v8su)a >> (unsigned)n);
}
INL vi vi_sar(vi a, int n)
{
    return _mm256_srai_epi32(a, n);
}
INL vf vi_float(vi a)
{
    return _mm256_cvtepi32_ps(a);
}
INL vi v_cut(vf v)
{
    return _mm256_cvttps_epi32(v);
}
INL vf vi_as_float(vi a)
{
    return _mm256_castsi256_ps(a);
}
INL vi v_as_int(vf a)
{
    return _mm256_castps_si256(a);
}

/* p * 2^n for -252 <= n <= 252, n integral: two steps, so that the result may be denormal or infinite */
INL vf v_scale2(vf p, vf n)
{
    const vi i = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(i, 1), rest = _mm256_sub_epi32(i, half);
    const vi bias = _mm256_set1_epi32(127);
    const vf a = vi_as_float(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
    const vf b = vi_as_float(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
    return _mm256_mul_ps(_mm256_mul_ps(p, a), b);
}
INL vf v_sel_gt(vf a, vf b, vf x, vf y)
{
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_GT_OQ));
}

INL vf v_load_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
INL __m128i v_load_u16_n(const uint16_t *p, int n)
{
    uint16_t t[8] = {0};
    memcpy(t, p, 2 * (size_t)n);
    return _mm_loadu_si128((const __m128i *)t);
}
INL vf v_load_f16_n(const uint16_t *p, int n)
{
    return _mm256_cvtph_ps(v_load_u16_n(p, n));
}
INL vf v_set1_f16(const void *p)
{
    int16_t bits;
    memcpy(&bits, p, sizeof bits);
    return _mm256_cvtph_ps(_mm_set1_epi16(bits));
}
INL void v_store_f16_n(uint16_t *p, vf v, int n)
{
    uint16_t t[8];
    _mm_storeu_si128((__m128i *)t, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    memcpy(p, t, 2 * (size_t)n);
}
INL vf v_load_bf16(const uint16_t *p)
{
    return vi_as_float(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}
INL vf v_load_bf16_n(const uint16_t *p, int n)
{
    return vi_as_float(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v_load_u16_n(p, n)), 16));
}

INL vf v_load_i8(const void *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}

/* The low 4 bits of each lane as a float. */
INL vf vi_low4(vi x)
{
    return vi_float(vi_and(x, vi_set1(15)));
}
/* Bits 0..3 of x and bit 4 of h as a float. */
INL vf vi_low5(vi x, vi h)
{
    return vi_float(vi_or(vi_and(x, vi_set1(15)), vi_and(h, vi_set1(16))));
}
/* Byte j of each lane as a float 0..255. */
INL vf vi_byte(vi x, int j)
{
    return vi_float(vi_and(vi_shr(x, 8 * j), vi_set1(255)));
}

INL vi vi_mul(vi a, vi b)
{
    return _mm256_mullo_epi32(a, b);
}
/* 16-bit halves of lanes */
INL vi vi_mul_words(vi a, vi b)
{
    return _mm256_mullo_epi16(a, b);
}
INL vi vi_add_words(vi a, vi b)
{
    return _mm256_add_epi16(a, b);
}
/* The low byte of each lane. */
INL void vi_store_bytes(uint8_t *p, vi v)
{
    const vi low = _mm256_and_si256(v, _mm256_set1_epi32(255));
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    _mm_storel_epi64((__m128i *)p, _mm_packus_epi16(words, words));
}
/* round(x) + zero of 4 * VL numbers, clamped to what a byte holds. |x| and zero are below 2^15. */
#define ST_OWN_BYTES
INL void v_store_u8(uint8_t *p, const vf x[4], vi zero)
{
    const vi order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7), words = _mm256_packs_epi32(zero, zero);
    const vi low = _mm256_packs_epi32(_mm256_cvtps_epi32(x[0]), _mm256_cvtps_epi32(x[1]));
    const vi high = _mm256_packs_epi32(_mm256_cvtps_epi32(x[2]), _mm256_cvtps_epi32(x[3]));
    const vi bytes = _mm256_packus_epi16(_mm256_add_epi16(low, words), _mm256_add_epi16(high, words));
    _mm256_storeu_si256((__m256i *)p, _mm256_permutevar8x32_epi32(bytes, order));
}
/* VL bytes, zero-extended */
INL vi vi_load_u8(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
}
/* Bytes 0..15 as the numbers of iq4_nl, plus 128. */
INL vi vi_iq4(vi x)
{
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)st_iq4_bytes)), x);
}
#define ST_OWN_I8 /* products of bytes: x86/narrow_words.h */
/* The high halves of the first n numbers. */
INL void v_store_high_n(uint16_t *p, vf v, int n)
{
    uint32_t bits[VL];
    memcpy(bits, &v, sizeof bits);
    for (int i = 0; i < n; i++)
        p[i] = (uint16_t)(bits[i] >> 16);
}
/* Rows become columns. */
INL void v_transpose(vf x[VL])
{
    vf s[VL], t[VL];
    UNROLL for (int i = 0; i < 4; i++) /* halves of rows i and i + 4 */
    {
        s[i] = _mm256_permute2f128_ps(x[i], x[i + 4], 0x20);
        s[i + 4] = _mm256_permute2f128_ps(x[i], x[i + 4], 0x31);
    }
    UNROLL for (int i = 0; i < VL; i += 2)
    {
        t[i] = _mm256_unpacklo_ps(s[i], s[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(s[i], s[i + 1]);
    }
    UNROLL for (int i = 0; i < VL; i += 4)
    {
        x[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        x[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        x[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        x[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
}

#endif
