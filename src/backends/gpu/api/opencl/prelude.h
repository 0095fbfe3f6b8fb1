/* prelude.h: the words of kernels/README.md in OpenCL C 1.2.
 * The host defines SG_SIZE, and SG_REAL when the device's own subgroups have that size (SG_INTEL: they can be asked for);
 * otherwise a subgroup is played through the group's memory. FP16 and DOT4 say what else the device has: what the compiler
 * defines about extensions need not be true of the device. */
#ifdef FP16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif
#ifdef SG_REAL
#ifdef cl_khr_subgroups
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#endif
#endif
#ifdef SG_INTEL
#define SG_ATTRIBUTE __attribute__((intel_reqd_sub_group_size(SG_SIZE)))
#else
#define SG_ATTRIBUTE
#endif

#define FN static
#define GLOBAL __global
#define SHARED __local
#define LOCAL(T, name, n) __local T name[n]
#define LID ((int)get_local_id(0))
#ifdef CUTS /* launches may begin at a later group, from which get_group_id() counts */
#define GROUP_X ((int)(get_global_offset(0) / get_local_size(0) + get_group_id(0)))
#else
#define GROUP_X ((int)get_group_id(0))
#endif
#define GROUP_Y ((int)get_group_id(1))
#define GROUP_Z ((int)get_group_id(2))
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#ifdef KEEP_LOOPS /* a processor has no use for unrolled ones, and its compiler takes eight times as long over them */
#define UNROLL _Pragma("nounroll")
#else
#define UNROLL _Pragma("unroll")
#endif
#define CAT(a, b) CAT_(a, b)
#define CAT_(a, b) a##b

/* ---- types ---- */

typedef ushort half_t; /* a device need not know halves as numbers */
typedef ushort bf16_t;
typedef char schar;
typedef float4 float4_t;
typedef uint4 uint4_t;
typedef uint2 uint2_t;

#define as_f(u) as_float((uint)(u))
#define as_u(v) as_uint((float)(v))

FN float bf16_f(uint h)
{
    return as_float(h << 16);
}

FN ushort f_bf16(float v)
{
    const uint u = as_uint(v);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (ushort)((u >> 16) | 0x40u);
    return (ushort)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

#ifdef FP16
FN float half_f(uint h)
{
    return (float)as_half((ushort)h);
}

FN ushort f_half(float v)
{
    return as_ushort(convert_half_rte(v));
}
#else
/* Exact also where the device takes small floats for 0: a half's are none. */
FN float half_f(uint h)
{
    const uint a = h & 0x7fffu;
    const float small = (float)a * 5.9604645e-8f; /* 2^-24 */
    const float v = a < 0x400u ? small : as_float((a << 13) + (a < 0x7c00u ? 0x38000000u : 0x70000000u));
    return as_float(as_uint(v) | (h & 0x8000u) << 16);
}

FN ushort f_half(float v)
{
    const uint u = as_uint(v), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
    if (a > 0x7f800000u)
        return (ushort)(sign | 0x7e00u | ((a >> 13) & 0x3ffu));
    if (a >= 0x477ff000u)
        return (ushort)(sign | 0x7c00u);
    if (a < 0x38800000u) /* the addition rounds at 2^-24, the step of the smallest halves */
        return (ushort)(sign | (as_uint(as_float(a) + 0.5f) - 0x3f000000u));
    return (ushort)(sign | ((a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13));
}
#endif

#define half_lo(u) half_f((u)&0xffffu)
#define half_hi(u) half_f((u) >> 16)
#define pack_half2(a, b) ((uint)f_half(a) | (uint)f_half(b) << 16)

/* ---- device memory ---- */

#define LDH(p, i) vload_half((size_t)(i), (GLOBAL const half *)(p))
#define STH(p, i, v) vstore_half_rte((float)(v), (size_t)(i), (GLOBAL half *)(p))
#define LDBF(p, i) bf16_f((p)[i])
#define STBF(p, i, v) ((p)[i] = f_bf16(v))
#define LDF4(p, i) (*(GLOBAL const float4 *)((p) + (i)))
#define LDU4(p, i) (*(GLOBAL const uint4 *)((p) + (i)))
#define LDU2(p, i) (*(GLOBAL const uint2 *)((p) + (i)))
#define LDU1(p, i) ((p)[i])
#define STF4(p, i, v) (*(GLOBAL float4 *)((p) + (i)) = (v))
#define STU4(p, i, v) (*(GLOBAL uint4 *)((p) + (i)) = (v))

/* ---- functions ---- */

#define exp_(x) exp((float)(x))
#define exp2_(x) exp2((float)(x))
#define log_(x) log((float)(x))
#define rint_(x) rint((float)(x))
#define sqrt_(x) sqrt((float)(x))
#define rsqrt_(x) rsqrt((float)(x))
#define tanh_(x) tanh((float)(x))
#define erf_(x) erf((float)(x))
#define fabs_(x) fabs((float)(x))
#define fmin_(a, b) fmin((float)(a), (float)(b))
#define fmax_(a, b) fmax((float)(a), (float)(b))
#define imin(a, b) min((int)(a), (int)(b))
#define imax(a, b) max((int)(a), (int)(b))

#if defined(DOT4) && defined(__opencl_c_integer_dot_product_input_4x8bit_packed)
#define dot4_i8(a, b, c) ((c) + dot_4x8packed_ss_int((uint)(a), (uint)(b)))
#else
FN int dot4_i8(uint a, uint b, int c)
{
    const char4 x = as_char4(a), y = as_char4(b);
    return c + x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
}
#endif

/* ---- subgroups and groups ---- */

#ifdef SG_REAL
#define SG_SCRATCH(n)
#define WG_SCRATCH() __local float wg_scratch_[GROUP_SIZE_ / SG_SIZE];
#define sg_sum(x) sub_group_reduce_add((float)(x))
#define sg_max(x) sub_group_reduce_max((float)(x))
#ifdef SG_INTEL
#define sg_xor(x, mask) intel_sub_group_shuffle_xor(x, (uint)(mask))
#else
#define sg_xor(x, mask) sub_group_shuffle_xor(x, (uint)(mask))
#endif

#define GROUP_REDUCTION(name, over_subgroup, join)                               \
    FN float name(float x, __local float *scratch, int lid, int n)               \
    {                                                                            \
        x = over_subgroup(x);                                                    \
        barrier(CLK_LOCAL_MEM_FENCE); /* the last result has been read by all */ \
        if (lid % SG_SIZE == 0)                                                  \
            scratch[lid / SG_SIZE] = x;                                          \
        barrier(CLK_LOCAL_MEM_FENCE);                                            \
        x = scratch[0];                                                          \
        for (int i = 1; i < n / SG_SIZE; i++)                                    \
            x = join(x, scratch[i]);                                             \
        return x;                                                                \
    }
#else
#define SG_SCRATCH(n) __local float wg_scratch_[n];
#define WG_SCRATCH() __local float wg_scratch_[GROUP_SIZE_];
#define sg_sum(x) sg_sum_(x, wg_scratch_, LID)
#define sg_max(x) sg_max_(x, wg_scratch_, LID)
#define sg_xor(x, mask) sg_xor_(x, mask, wg_scratch_, LID)

#define SUBGROUP_REDUCTION(name, join)                                           \
    FN float name(float x, __local float *scratch, int lid)                      \
    {                                                                            \
        barrier(CLK_LOCAL_MEM_FENCE); /* the last result has been read by all */ \
        scratch[lid] = x;                                                        \
        barrier(CLK_LOCAL_MEM_FENCE);                                            \
        const int first = lid - lid % SG_SIZE;                                   \
        x = scratch[first];                                                      \
        for (int i = 1; i < SG_SIZE; i++)                                        \
            x = join(x, scratch[first + i]);                                     \
        return x;                                                                \
    }

#define GROUP_REDUCTION(name, over_subgroup, join)                 \
    FN float name(float x, __local float *scratch, int lid, int n) \
    {                                                              \
        x = over_subgroup(x, scratch, lid);                        \
        barrier(CLK_LOCAL_MEM_FENCE);                              \
        if (lid % SG_SIZE == 0)                                    \
            scratch[lid / SG_SIZE] = x;                            \
        barrier(CLK_LOCAL_MEM_FENCE);                              \
        x = scratch[0];                                            \
        for (int i = 1; i < n / SG_SIZE; i++)                      \
            x = join(x, scratch[i]);                               \
        return x;                                                  \
    }

FN float sg_xor_(float x, int mask, __local float *scratch, int lid)
{
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[lid] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    return scratch[lid ^ mask];
}
#endif

#define JOIN_SUM(a, b) ((a) + (b))
#ifdef SG_REAL
GROUP_REDUCTION(wg_sum_, sub_group_reduce_add, JOIN_SUM)
GROUP_REDUCTION(wg_max_, sub_group_reduce_max, fmax)
#else
SUBGROUP_REDUCTION(sg_sum_, JOIN_SUM)
SUBGROUP_REDUCTION(sg_max_, fmax)
GROUP_REDUCTION(wg_sum_, sg_sum_, JOIN_SUM)
GROUP_REDUCTION(wg_max_, sg_max_, fmax)
#endif
#define wg_sum(x) wg_sum_(x, wg_scratch_, LID, GROUP_SIZE_)
#define wg_max(x) wg_max_(x, wg_scratch_, LID, GROUP_SIZE_)

/* ---- kernels: a buffer comes with the offset of its first byte ---- */

#define BUFFER(T, b) __global T *b##_, ulong b##_at_
#define BIND(T, b) __global T *b = (__global T *)((__global const uchar *)b##_ + b##_at_);
#define HEAD(name, n) __attribute__((reqd_work_group_size(n, 1, 1))) SG_ATTRIBUTE __kernel void name
#define BODY(n) enum { GROUP_SIZE_ = n };
#define KERNEL1(name, n, P, A, a)    \
    HEAD(name, n)(P p, BUFFER(A, a)) \
    {                                \
        BODY(n) BIND(A, a)
#define KERNEL2(name, n, P, A, a, B, b)            \
    HEAD(name, n)(P p, BUFFER(A, a), BUFFER(B, b)) \
    {                                              \
        BODY(n) BIND(A, a) BIND(B, b)
#define KERNEL3(name, n, P, A, a, B, b, C, c)                    \
    HEAD(name, n)(P p, BUFFER(A, a), BUFFER(B, b), BUFFER(C, c)) \
    {                                                            \
        BODY(n) BIND(A, a) BIND(B, b) BIND(C, c)
#define KERNEL4(name, n, P, A, a, B, b, C, c, D, d)                            \
    HEAD(name, n)(P p, BUFFER(A, a), BUFFER(B, b), BUFFER(C, c), BUFFER(D, d)) \
    {                                                                          \
        BODY(n) BIND(A, a) BIND(B, b) BIND(C, c) BIND(D, d)
#define KERNEL5(name, n, P, A, a, B, b, C, c, D, d, E, e)                                    \
    HEAD(name, n)(P p, BUFFER(A, a), BUFFER(B, b), BUFFER(C, c), BUFFER(D, d), BUFFER(E, e)) \
    {                                                                                        \
        BODY(n) BIND(A, a) BIND(B, b) BIND(C, c) BIND(D, d) BIND(E, e)
#define KERNEL6(name, n, P, A, a, B, b, C, c, D, d, E, e, F, f)                                            \
    HEAD(name, n)(P p, BUFFER(A, a), BUFFER(B, b), BUFFER(C, c), BUFFER(D, d), BUFFER(E, e), BUFFER(F, f)) \
    {                                                                                                      \
        BODY(n) BIND(A, a) BIND(B, b) BIND(C, c) BIND(D, d) BIND(E, e) BIND(F, f)
#define KERNEL7(name, n, P, A, a, B, b, C, c, D, d, E, e, F, f, G, g)                                       \
    HEAD(name, n)                                                                                           \
    (P p, BUFFER(A, a), BUFFER(B, b), BUFFER(C, c), BUFFER(D, d), BUFFER(E, e), BUFFER(F, f), BUFFER(G, g)) \
    {                                                                                                       \
        BODY(n) BIND(A, a) BIND(B, b) BIND(C, c) BIND(D, d) BIND(E, e) BIND(F, f) BIND(G, g)
#define KERNEL8(name, n, P, A, a, B, b, C, c, D, d, E, e, F, f, G, g, H, h)                                 \
    HEAD(name, n)                                                                                           \
    (P p, BUFFER(A, a), BUFFER(B, b), BUFFER(C, c), BUFFER(D, d), BUFFER(E, e), BUFFER(F, f), BUFFER(G, g), \
     BUFFER(H, h))                                                                                          \
    {                                                                                                       \
        BODY(n) BIND(A, a) BIND(B, b) BIND(C, c) BIND(D, d) BIND(E, e) BIND(F, f) BIND(G, g) BIND(H, h)
#define KERNEL_END }
