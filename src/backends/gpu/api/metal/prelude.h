/* prelude.h: the words of the kernel dialect (../../kernels/README.md) in Metal's language 2.4, for GPUs of the family Apple7
 * and later: subgroups of 32 lanes and matrices of 8 x 8. Buffer 0 is the parameter struct, 1 and on are the kernel's. */
#include <metal_stdlib>
using namespace metal;

typedef signed char schar;
typedef ushort half_t;
typedef ushort bf16_t;
typedef float4 float4_t;
typedef uint4 uint4_t;
typedef uint2 uint2_t;

#define FN static inline
#define GLOBAL device
#define SHARED threadgroup
#ifndef LOCAL /* tests that run this text as C++ have their own */
#define LOCAL(T, name, n) alignas(16) threadgroup T name[n]
#endif
/* A group's memory is known when a pipeline is made, up to 32 KB. */
#define DYNAMIC_LOCAL(name, T, n)
#define LOCAL_DYNAMIC(T, name, n) LOCAL(T, name, n);
#define LID ((int)lid_)
#define GROUP_X ((int)group_.x)
#define GROUP_Y ((int)group_.y)
#define GROUP_Z ((int)group_.z)
#define BARRIER() threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup)
#define UNROLL _Pragma("clang loop unroll(full)")
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

/* bits and floats */
FN float as_f(uint u)
{
    return as_type<float>(u);
}
FN uint as_u(float f)
{
    return as_type<uint>(f);
}
FN float half_f(ushort h)
{
    return (float)as_type<half>(h);
}
FN ushort f_half(float f)
{
    return as_type<ushort>((half)f);
}
FN float bf16_f(ushort h)
{
    return as_f((uint)h << 16);
}
FN ushort f_bf16(float f)
{
    const uint u = as_u(f);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (ushort)((u >> 16) | 0x40u); /* NaN stays NaN */
    return (ushort)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
FN float half_lo(uint u)
{
    return half_f((ushort)(u & 0xffffu));
}
FN float half_hi(uint u)
{
    return half_f((ushort)(u >> 16));
}
FN uint pack_half2(float a, float b)
{
    return (uint)f_half(a) | (uint)f_half(b) << 16;
}

/* memory */
#define LDH(p, i) half_f((p)[i])
#define STH(p, i, v) ((p)[i] = f_half(v))
#define LDBF(p, i) bf16_f((p)[i])
#define STBF(p, i, v) ((p)[i] = f_bf16(v))
#define LDF4(p, i) (*(device const float4 *)((p) + (i)))
#define LDU4(p, i) (*(device const uint4 *)((p) + (i)))
#define LDU2(p, i) (*(device const uint2 *)((p) + (i)))
#define LDU1(p, i) ((p)[i])
#define STF4(p, i, v) (*(device float4 *)((p) + (i)) = (v))
#define STU4(p, i, v) (*(device uint4 *)((p) + (i)) = (v))

/* precise:: whatever the options of the compiler are. */
#define exp_ precise::exp
#define exp2_ precise::exp2
#define log_ precise::log
#define sqrt_ precise::sqrt
#define rsqrt_ precise::rsqrt
#define tanh_ precise::tanh
#define rint_ rint
#define fabs_ fabs
#define fmin_ fmin
#define fmax_ fmax
FN int imin(int a, int b)
{
    return a < b ? a : b;
}
FN int imax(int a, int b)
{
    return a > b ? a : b;
}
/* Metal has no erf. Below 0.95 x times a polynomial of x^2, above the exponential of one for log(1 - erf); least squares at
 * Chebyshev points, 3 units in the last place. */
FN float erf_(float x)
{
    const float u = fabs(x), t = u > 4.0f ? 4.0f : u, s = t * t; /* NaN stays NaN */
    float r;
    if (t < 0.95f) {
        r = 8.179480937542394e-05f;
        r = r * s - 0.0008096167002804577f;
        r = r * s + 0.005196793936192989f;
        r = r * s - 0.026857629418373108f;
        r = r * s + 0.11283662170171738f;
        r = r * s - 0.37612631916999817f;
        r = r * s + 1.128379225730896f;
        return x * r;
    }
    r = -2.155538822989911e-05f;
    r = r * t + 0.00043975276639685035f;
    r = r * t - 0.004196566995233297f;
    r = r * t + 0.025186318904161453f;
    r = r * t - 0.10838323086500168f;
    r = r * t - 0.6332533359527588f;
    r = r * t - 1.129561185836792f;
    r = 1.0f - precise::exp(r * t + 0.00018430185446050018f);
    return x < 0.0f ? -r : r;
}
FN int dot4_i8(uint a, uint b, int c)
{
    UNROLL
    for (int i = 0; i < 32; i += 8)
        c += (int)(schar)(a >> i & 255u) * (int)(schar)(b >> i & 255u);
    return c;
}

/* subgroups and groups */
#define SG_SIZE 32
#define SG_SCRATCH(n)
#define sg_sum(x) simd_sum(x)
#define sg_max(x) simd_max(x)
#define sg_xor(x, mask) simd_shuffle_xor(x, (ushort)(mask))
/* Every item adds the subgroups' sums in the same order, so that the result is the same in each. */
FN float wg_sum_of(float x, threadgroup float *scratch, int lid, int n)
{
    x = simd_sum(x);
    threadgroup_barrier(mem_flags::mem_threadgroup); /* the last use of scratch is over */
    if (lid % SG_SIZE == 0)
        scratch[lid / SG_SIZE] = x;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x = scratch[0];
    for (int i = 1; i < n; i++)
        x += scratch[i];
    return x;
}
FN float wg_max_of(float x, threadgroup float *scratch, int lid, int n)
{
    x = simd_max(x);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lid % SG_SIZE == 0)
        scratch[lid / SG_SIZE] = x;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x = scratch[0];
    for (int i = 1; i < n; i++)
        x = fmax(x, scratch[i]);
    return x;
}
#define WG_SCRATCH() LOCAL(float, wg_scratch_, 32);
#define wg_sum(x) wg_sum_of(x, wg_scratch_, LID, group_items / SG_SIZE)
#define wg_max(x) wg_max_of(x, wg_scratch_, LID, group_items / SG_SIZE)

/* kernels */
#define HEAD_(G) [[max_total_threads_per_threadgroup(G)]] kernel void
#define P_(P) constant P &p [[buffer(0)]]
#define B_(T, b, i) device T *b [[buffer(i)]]
#define IDS_ uint3 group_ [[threadgroup_position_in_grid]], uint lid_ [[thread_index_in_threadgroup]]
#define BODY_(G) \
    {            \
        enum { group_items = G };
#define KERNEL1(name, G, P, A, a) HEAD_(G) name(P_(P), B_(A, a, 1), IDS_) BODY_(G)
#define KERNEL2(name, G, P, A, a, B, b) HEAD_(G) name(P_(P), B_(A, a, 1), B_(B, b, 2), IDS_) BODY_(G)
#define KERNEL3(name, G, P, A, a, B, b, C, c) HEAD_(G) name(P_(P), B_(A, a, 1), B_(B, b, 2), B_(C, c, 3), IDS_) BODY_(G)
#define KERNEL4(name, G, P, A, a, B, b, C, c, D, d) \
    HEAD_(G) name(P_(P), B_(A, a, 1), B_(B, b, 2), B_(C, c, 3), B_(D, d, 4), IDS_) BODY_(G)
#define KERNEL5(name, G, P, A, a, B, b, C, c, D, d, E, e) \
    HEAD_(G) name(P_(P), B_(A, a, 1), B_(B, b, 2), B_(C, c, 3), B_(D, d, 4), B_(E, e, 5), IDS_) BODY_(G)
#define KERNEL6(name, G, P, A, a, B, b, C, c, D, d, E, e, F, f) \
    HEAD_(G) name(P_(P), B_(A, a, 1), B_(B, b, 2), B_(C, c, 3), B_(D, d, 4), B_(E, e, 5), B_(F, f, 6), IDS_) BODY_(G)
#define KERNEL7(name, G, P, A, a, B, b, C, c, D, d, E, e, F, f, H, h)                                            \
    HEAD_(G)                                                                                                     \
    name(P_(P), B_(A, a, 1), B_(B, b, 2), B_(C, c, 3), B_(D, d, 4), B_(E, e, 5), B_(F, f, 6), B_(H, h, 7), IDS_) \
        BODY_(G)
#define KERNEL8(name, G, P, A, a, B, b, C, c, D, d, E, e, F, f, H, h, I, i)                                \
    HEAD_(G)                                                                                               \
    name(P_(P), B_(A, a, 1), B_(B, b, 2), B_(C, c, 3), B_(D, d, 4), B_(E, e, 5), B_(F, f, 6), B_(H, h, 7), \
         B_(I, i, 8), IDS_) BODY_(G)
#define KERNEL_END }

/* A tile is 2 x 2 of Metal's matrices, [row][k], [k][column] and [row][column]. Of such a matrix a lane holds two neighbours
 * of a row: row (lane / 2) % 4 + lane / 16 * 4, columns from lane % 2 * 2 + lane / 8 % 2 * 4. */
struct tile_a {
    simdgroup_half8x8 m[2][2];
};
struct tile_b {
    simdgroup_half8x8 m[2][2];
};
struct tile_c {
    simdgroup_float8x8 m[2][2];
};
#define TILE_DEPTH 16
#define TILE_STAGES 2
#define TILE_N 8
#define TILE_C(c, i) ((c).m[(i) >> 1 & 1][(i) >> 2].thread_elements()[1 & (i)])
#define TILE_ROW(lane, i) (((lane) >> 1 & 3) + ((lane) >> 4) * 4 + ((i) >> 1 & 1) * 8)
#define TILE_COL(lane, i) ((1 & (lane)) * 2 + ((lane) >> 3 & 1) * 4 + ((i) >> 2) * 8 + (1 & (i)))

FN ushort f_half_limited(float v)
{
    return f_half(v > 65504.0f ? 65504.0f : v < -65504.0f ? -65504.0f : v); /* NaN stays NaN */
}
FN void store_halves8(threadgroup half_t *to, thread const float *v)
{
    UNROLL
    for (int i = 0; i < 8; i += 2)
        ((threadgroup uint *)to)[i / 2] = (uint)f_half_limited(v[i]) | (uint)f_half_limited(v[i + 1]) << 16;
}
#define STORE_HALVES8(to, v) store_halves8(to, v)
#define STORE_ZEROS8(to) (*(threadgroup uint4 *)(to) = uint4(0u))

FN void tile_zero(thread tile_c &c)
{
    UNROLL
    for (int i = 0; i < TILE_N; i++)
        TILE_C(c, i) = 0.0f;
}
FN void tile_load_a(thread tile_a &a, threadgroup const half_t *p, int ld)
{
    UNROLL
    for (int i = 0; i < 4; i++)
        simdgroup_load(a.m[i >> 1][i & 1], (threadgroup const half *)p + (i >> 1) * 8 * ld + (i & 1) * 8, (ulong)ld);
}
FN void tile_load_b(thread tile_b &b, threadgroup const half_t *p, int ld)
{
    UNROLL
    for (int i = 0; i < 4; i++)
        simdgroup_load(b.m[i >> 1][i & 1], (threadgroup const half *)p + (i & 1) * 8 * ld + (i >> 1) * 8, (ulong)ld,
                       ulong2(0ul), true);
}
FN void tile_load_bt(thread tile_b &b, threadgroup const half_t *p, int ld)
{
    UNROLL
    for (int i = 0; i < 4; i++)
        simdgroup_load(b.m[i >> 1][i & 1], (threadgroup const half *)p + (i >> 1) * 8 * ld + (i & 1) * 8, (ulong)ld);
}
FN void tile_mma(thread tile_c &c, thread tile_a &a, thread tile_b &b)
{
    UNROLL
    for (int i = 0; i < 8; i++)
        simdgroup_multiply_accumulate(c.m[i >> 2][i >> 1 & 1], a.m[i >> 2][i & 1], b.m[i & 1][i >> 1 & 1],
                                      c.m[i >> 2][i >> 1 & 1]);
}
/* The lanes of a row differ in bits 0 and 3. */
FN float tile_row_max(float x)
{
    x = fmax(x, simd_shuffle_xor(x, (ushort)1));
    return fmax(x, simd_shuffle_xor(x, (ushort)8));
}
FN float tile_row_sum(float x)
{
    x += simd_shuffle_xor(x, (ushort)1);
    return x + simd_shuffle_xor(x, (ushort)8);
}
FN void tile_c_to_a(thread tile_a &a, thread tile_c &c)
{
    UNROLL
    for (int i = 0; i < 8; i++)
        a.m[i >> 2][i >> 1 & 1].thread_elements()[i & 1] = (half)c.m[i >> 2][i >> 1 & 1].thread_elements()[i & 1];
}

/* No asynchronous copies: the bytes are there after the BARRIER(). */
#define COPY16_ASYNC(to, from) (*(threadgroup uint4 *)(to) = *(device const uint4 *)(from))
#define COPY16_OR_ZERO(to, from, valid) \
    (*(threadgroup uint4 *)(to) = (valid) ? *(device const uint4 *)(from) : uint4(0))
#define ASYNC_COMMIT()
#define ASYNC_WAIT(n)
