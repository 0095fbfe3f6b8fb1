/* vec_generic.h: the vector wrapper on GCC's vector extensions: 4 lanes on any processor. */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_VEC_GENERIC_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_VEC_GENERIC_H

#include "base/half.h"
#include "vec.h"

typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef uint32_t vu __attribute__((vector_size(16)));
typedef uint16_t vh __attribute__((vector_size(8)));
#if defined(__aarch64__)
#include <arm_neon.h>
#define ST_PRODUCT_ROWS 6
#define ST_REGISTERS 32
enum { VL = 4, ST_MR = 6, ST_NV = 4, ST_SKINNY_ROWS = 4 };
#define ST_SKINNY(X) X(1, 4, 2) X(2, 4, 2) X(3, 4, 1) X(4, 4, 1)
#else
#define ST_PRODUCT_ROWS 4
#define ST_REGISTERS 16
enum { VL = 4, ST_MR = 4, ST_NV = 2, ST_SKINNY_ROWS = 4 };
#define ST_SKINNY(X) X(1, 2, 2) X(2, 2, 1) X(3, 2, 1) X(4, 2, 1)
#endif

INL vf v_load(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}
INL void v_store(float *p, vf v)
{
    memcpy(p, &v, sizeof v);
}
INL vf v_load_n(const float *p, int n)
{
    vf v = {0, 0, 0, 0};
    for (int i = 0; i < n; i++)
        v[i] = p[i];
    return v;
}
INL void v_store_n(float *p, vf v, int n)
{
    for (int i = 0; i < n; i++)
        p[i] = v[i];
}
INL vf v_set1(float x)
{
    return (vf){x, x, x, x};
}
INL vf v_zero(void)
{
    return (vf){0, 0, 0, 0};
}
INL vf v_add(vf a, vf b)
{
    return a + b;
}
INL vf v_sub(vf a, vf b)
{
    return a - b;
}
INL vf v_mul(vf a, vf b)
{
    return a * b;
}
INL vf v_div(vf a, vf b)
{
    return a / b;
}
INL vf v_fma(vf a, vf b, vf c)
{
#if defined(__aarch64__)
    return vfmaq_f32(c, a, b);
#else
    return a * b + c;
#endif
}
INL vf v_select(vi mask, vf x, vf y)
{
    return (vf)(((vi)x & mask) | ((vi)y & ~mask));
}
INL vf v_sel_gt(vf a, vf b, vf x, vf y)
{
    return v_select(a > b, x, y);
}
INL void v_add_product(vf *c, vf a, vf b)
{
    *c = v_fma(a, b, *c);
}
INL vf v_sqrt(vf a)
{
#if defined(__aarch64__)
    return vsqrtq_f32(a);
#else
    for (int i = 0; i < VL; i++)
        a[i] = __builtin_sqrtf(a[i]);
    return a;
#endif
}
INL vf v_max(vf a, vf b)
{
    return v_select(a > b, a, b);
}
INL vf v_min(vf a, vf b)
{
    return v_select(a < b, a, b);
}
/* Neighbours change places. */
INL vf v_swap_pairs(vf v)
{
    return (vf){v[1], v[0], v[3], v[2]};
}
INL float v_hsum(vf v)
{
    return (v[0] + v[2]) + (v[1] + v[3]);
}
/* out[i] = v_hsum(x[i]) for VL vectors that lie one behind the other */
INL void v_hsums(const float *x, float *out)
{
    for (int i = 0; i < VL; i++)
        out[i] = v_hsum(v_load(x + i * VL));
}
INL float v_hmax(vf v)
{
    const float a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
    return a > b ? a : b;
}
/* The same of v_hmax. */
INL void v_hmaxs(const float *x, float *out)
{
    for (int i = 0; i < VL; i++)
        out[i] = v_hmax(v_load(x + i * VL));
}
/* nearest integer for |v| < 2^22: the addition leaves no bits below one */
INL vf v_round(vf v)
{
    const vf magic = v_set1(12582912.0f);
    return (v + magic) - magic;
}

INL vi vi_load(const void *p)
{
    vi v;
    memcpy(&v, p, sizeof v);
    return v;
}
INL vi vi_set1(int x)
{
    return (vi){x, x, x, x};
}
INL vi vi_and(vi a, vi b)
{
    return a & b;
}
INL vi vi_or(vi a, vi b)
{
    return a | b;
}
INL vi vi_xor(vi a, vi b)
{
    return a ^ b;
}
INL vi vi_add(vi a, vi b)
{
    return (vi)((vu)a + (vu)b);
}
INL vi vi_sub(vi a, vi b)
{
    return (vi)((vu)a - (vu)b);
}
INL vi vi_shl(vi a, int n)
{
    return (vi)((vu)a << (unsigned)n);
}
INL vi vi_shr(vi a, int n)
{
    return (vi)((vu)a >> (unsigned)n);
}
/* rounded down, as GCC and Clang shift */
INL vi vi_sar(vi a, int n)
{
    return a >> n;
}
INL vf vi_float(vi a)
{
    return __builtin_convertvector(a, vf);
}
/* toward zero, |v| < 2^31 */
INL vi v_cut(vf v)
{
    return __builtin_convertvector(v, vi);
}
INL vf vi_as_float(vi a)
{
    return (vf)a;
}
INL vi v_as_int(vf a)
{
    return (vi)a;
}

/* p * 2^n for -252 <= n <= 252, n integral: two steps, so that the result may be denormal or infinite. NaN in n is not
 * converted (that would be undefined): the magic sum holds the integer in its low bits. */
INL vf v_scale2(vf p, vf n)
{
    const vf magic = v_set1(12582912.0f);
    const vi i = (vi)(n + magic) - (vi)magic, half = i >> 1, rest = i - half;
    const vf a = (vf)(vi)((vu)(half + 127) << 23), b = (vf)(vi)((vu)(rest + 127) << 23);
    return p * a * b;
}

INL vh vh_load(const uint16_t *p, int n)
{
    vh v = {0, 0, 0, 0};
    memcpy(&v, p, 2 * (size_t)n);
    return v;
}
INL vf v_from_f16(vh h)
{
#if defined(__aarch64__)
    return vcvt_f32_f16((float16x4_t)h);
#else
    const vi u = (vi) __builtin_convertvector(h, vu);
    const vi sign = (vi)((vu)(u & 0x8000) << 16), rest = (u & 0x7fff) << 13;
    /* 2^112 moves the exponent's bias and normalises denormals; infinity and NaN keep their full exponent */
    const vi x = (vi)((vf)rest * 0x1p112f), special = rest >= 0x0f800000;
    return (vf)(sign | (x & ~special) | ((rest | 0x7f800000) & special));
#endif
}
INL vf v_from_bf16(vh h)
{
    return (vf)(vi)(__builtin_convertvector(h, vu) << 16);
}
INL vf v_load_f16(const uint16_t *p)
{
    return v_from_f16(vh_load(p, 4));
}
INL vf v_load_f16_n(const uint16_t *p, int n)
{
    return v_from_f16(vh_load(p, n));
}
INL vf v_set1_f16(const void *p)
{
    uint16_t bits;
    memcpy(&bits, p, sizeof bits);
    return v_from_f16((vh){bits, bits, bits, bits});
}
INL vf v_load_bf16(const uint16_t *p)
{
    return v_from_bf16(vh_load(p, 4));
}
INL vf v_load_bf16_n(const uint16_t *p, int n)
{
    return v_from_bf16(vh_load(p, n));
}
INL void v_store_f16_n(uint16_t *p, vf v, int n)
{
    for (int i = 0; i < n; i++)
        p[i] = st_f32_to_f16(v[i]);
}

INL vf v_load_i8(const void *p)
{
#if defined(__aarch64__)
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(x)))));
#else
    const int8_t *x = p;
    return (vf){x[0], x[1], x[2], x[3]};
#endif
}

/* The low 4 bits of each lane as a float. */
INL vf vi_low4(vi x)
{
    return vi_float(x & 15);
}
/* Bits 0..3 of x and bit 4 of h as a float. */
INL vf vi_low5(vi x, vi h)
{
    return vi_float((x & 15) | (h & 16));
}
/* Byte j of each lane as a float 0..255. */
INL vf vi_byte(vi x, int j)
{
    return vi_float(vi_shr(x, 8 * j) & 255);
}

INL vi vi_mul(vi a, vi b)
{
    return (vi)((vu)a * (vu)b);
}
/* 16-bit halves of lanes */
typedef uint16_t vw __attribute__((vector_size(16)));
INL vi vi_mul_words(vi a, vi b)
{
    return (vi)((vw)a * (vw)b);
}
INL vi vi_add_words(vi a, vi b)
{
    return (vi)((vw)a + (vw)b);
}
/* The low byte of each lane. */
INL void vi_store_bytes(uint8_t *p, vi v)
{
#if defined(__aarch64__)
    const uint8x16_t bytes = (uint8x16_t)v;
    const uint8x16_t low = vuzp1q_u8(vuzp1q_u8(bytes, bytes), bytes);
    memcpy(p, &low, 4);
#else
    for (int i = 0; i < VL; i++)
        p[i] = (uint8_t)((uint32_t)v[i] & 255u);
#endif
}
/* VL bytes, zero-extended */
INL vi vi_load_u8(const uint8_t *p)
{
#if defined(__aarch64__)
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return (vi)vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(x))));
#else
    return (vi){p[0], p[1], p[2], p[3]};
#endif
}
/* Bytes 0..15 as the numbers of iq4_nl, plus 128. */
INL vi vi_iq4(vi x)
{
#if defined(__aarch64__)
    return (vi)vqtbl1q_u8(vld1q_u8(st_iq4_bytes), (uint8x16_t)x);
#else
    uint8_t bytes[16];
    memcpy(bytes, &x, sizeof bytes);
    for (int i = 0; i < 16; i++)
        bytes[i] = st_iq4_bytes[bytes[i] & 15];
    memcpy(&x, bytes, sizeof x);
    return x;
#endif
}
/* c + the four unsigned bytes of x times the four signed bytes of each lane of w */
INL vi vi_dot4(vi c, int32_t x, vi w)
{
    const uint32_t bytes = (uint32_t)x;
    const vu u = (vu)w;
    c += ((vi)(u << 24) >> 24) * vi_set1((int)(bytes & 255u));
    c += ((vi)(u << 16) >> 24) * vi_set1((int)(bytes >> 8 & 255u));
    c += ((vi)(u << 8) >> 24) * vi_set1((int)(bytes >> 16 & 255u));
    return c + (w >> 24) * vi_set1((int)(bytes >> 24));
}
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
    const vf a = x[0], b = x[1], c = x[2], d = x[3];
    for (int i = 0; i < VL; i++)
        x[i] = (vf){a[i], b[i], c[i], d[i]};
}

#endif
