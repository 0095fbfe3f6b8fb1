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
#define ST_REGISTERS 32
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
INL vi vi_sar(vi a, int n)
{
    return _mm512_srai_epi32(a, (unsigned)n);
}
INL vf vi_float(vi a)
{
    return _mm512_cvtepi32_ps(a);
}
INL vi v_cut(vf v)
{
    return _mm512_cvttps_epi32(v);
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
INL vf v_set1_f16(const void *p)
{
    int16_t bits;
    memcpy(&bits, p, sizeof bits);
    return _mm512_cvtph_ps(_mm256_set1_epi16(bits));
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

/* Number j of each of the four side by side, at out + j * step. */
#define ST_OWN_FOURS
INL void v_store_fours(float from[4][VL], uint8_t *out, ptrdiff_t step)
{
    const vf a = v_load(from[0]), b = v_load(from[1]), c = v_load(from[2]), d = v_load(from[3]);
    const __m512d ab[2] = {(__m512d)_mm512_unpacklo_ps(a, b), (__m512d)_mm512_unpackhi_ps(a, b)},
                  cd[2] = {(__m512d)_mm512_unpacklo_ps(c, d), (__m512d)_mm512_unpackhi_ps(c, d)};
    UNROLL for (int i = 0; i < 4; i++)
    {
        const vf x =
            (vf)(i % 2 == 0 ? _mm512_unpacklo_pd(ab[i / 2], cd[i / 2]) : _mm512_unpackhi_pd(ab[i / 2], cd[i / 2]));
        uint8_t *const at = out + i * step;
        _mm_storeu_ps((float *)(void *)at, _mm512_extractf32x4_ps(x, 0));
        _mm_storeu_ps((float *)(void *)(at + 4 * step), _mm512_extractf32x4_ps(x, 1));
        _mm_storeu_ps((float *)(void *)(at + 8 * step), _mm512_extractf32x4_ps(x, 2));
        _mm_storeu_ps((float *)(void *)(at + 12 * step), _mm512_extractf32x4_ps(x, 3));
    }
}

/* GELU is x or 0, whichever is larger, less |x| times the normal distribution's tail beyond |x|: that by 32 cubics, picked by the
 * nearest multiple of 0.17. Absolute error below 6e-7, above 5.2 exact. More than half of the instructions leave the multipliers
 * alone, which AMX shares: comparisons, permutations, and sums too. */
#define ST_OWN_GELU
INL vf v_gelu(vf x)
{
    const vf near0 = _mm512_setr_ps(0, 4.00990029e-05f, 0.000692631467f, 0.00282879127f, 0.00594259519f, 0.00660587521f,
                                    -0.00174186996f, -0.0271608438f, -0.0762133896f, -0.150825769f, -0.246406168f,
                                    -0.352100044f, -0.453170598f, -0.534647942f, -0.584966302f, -0.598442733f);
    const vf far0 = _mm512_setr_ps(-0.575917184f, -0.52382797f, -0.451953351f, -0.370984584f, -0.290418386f,
                                   -0.217254907f, -0.155569732f, -0.106785834f, -0.070350945f, -0.0445304066f,
                                   -0.0271067284f, -0.0158812646f, -0.00896175392f, -0.00487391558f, -0.0025561552f, 0);
    const vf near1 = _mm512_setr_ps(-0.5f, -0.50109458f, -0.508581638f, -0.523666143f, -0.539587855f, -0.542584658f,
                                    -0.516278625f, -0.447719425f, -0.332629532f, -0.177868918f, -0.000267830532f,
                                    0.17758657f, 0.333005369f, 0.448392123f, 0.514503241f, 0.531173766f);
    const vf far1 = _mm512_setr_ps(0.505711317f, 0.450100392f, 0.377651304f, 0.300396055f, 0.227438018f, 0.164398432f,
                                   0.113710873f, 0.0754002631f, 0.0480017215f, 0.0293757115f, 0.0172988009f,
                                   0.00981116854f, 0.00536327576f, 0.00282766647f, 0.00143867661f, 0);
    const vf near2 = _mm512_setr_ps(0.399224758f, 0.409597307f, 0.4387528f, 0.474497706f, 0.50172317f, 0.50616771f,
                                    0.478507131f, 0.416811347f, 0.326735824f, 0.219673395f, 0.10962069f, 0.00982279517f,
                                    -0.0698658153f, -0.124349467f, -0.153309003f, -0.160182551f);
    const vf far2 =
        _mm512_setr_ps(-0.150587365f, -0.130794197f, -0.106448211f, -0.0818745643f, -0.059849374f, -0.0417420715f,
                       -0.0278572794f, -0.0178278591f, -0.0109595731f, -0.00648055645f, -0.00369008421f,
                       -0.00202518306f, -0.00107209047f, -0.000547800912f, -0.000270323071f, 0);
    const vf near3 =
        _mm512_setr_ps(-0.00886819325f, -0.0441362485f, -0.08268857f, -0.11110983f, -0.126676276f, -0.128847256f,
                       -0.119141996f, -0.100618035f, -0.0771015733f, -0.0523990579f, -0.0296567902f, -0.0109835584f,
                       0.00264036306f, 0.0112179806f, 0.0154473539f, 0.0163920037f);
    const vf far3 =
        _mm512_setr_ps(0.0151865911f, 0.0128379688f, 0.0101105049f, 0.00750469649f, 0.00528807146f, 0.00355420564f,
                       0.00228627678f, 0.00141099782f, 0.000837039843f, 0.000477990863f, 0.000263056718f,
                       0.000139650758f, 7.15710557e-05f, 3.54333788e-05f, 1.69553296e-05f, 0);
    const vf u = _mm512_abs_ps(x);
    const vi i = v_as_int(v_fma(u, v_set1(1 / 0.17f), v_set1(12582912.0f))); /* 1.5 * 2^23: i is in the low bits */
    vf p = v_fma(_mm512_permutex2var_ps(near3, i, far3), u, _mm512_permutex2var_ps(near2, i, far2));
    p = v_fma(p, u, _mm512_permutex2var_ps(near1, i, far1));
    p = _mm512_maskz_fmadd_ps(_mm512_cmp_ps_mask(u, v_set1(5.2f), _CMP_LT_OQ), p, u,
                              _mm512_permutex2var_ps(near0, i, far0));
    return _mm512_mask_add_ps(p, _mm512_cmp_ps_mask(x, v_zero(), _CMP_NLE_UQ), p, x); /* NaN is not <= 0 */
}

#endif
