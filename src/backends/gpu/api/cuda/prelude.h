/* prelude.h: the words of the kernel dialect (../../kernels/README.md) in CUDA, for nvcc and for clang, which has no header
 * of the toolkit (clang_words.h). Matrix units and asynchronous copies from sm_80; below, no tile operations. */
#ifdef __clang__
#include "clang_words.h"
#endif

typedef unsigned char uchar;
typedef signed char schar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned short half_t;
typedef unsigned short bf16_t;
struct __align__(16) float4_t
{
    float x, y, z, w;
};
struct __align__(16) uint4_t
{
    uint x, y, z, w;
};
struct __align__(8) uint2_t
{
    uint x, y;
};

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define FN static __device__ __forceinline__
#define GLOBAL
#define SHARED
#define LOCAL(T, name, n) __shared__ __align__(16) T name[n]
/* A group's memory of any size: the host gives what the variable says. */
#define DYNAMIC_LOCAL(name, T, n) DYNAMIC_LOCAL_(name, T, n)
#define DYNAMIC_LOCAL_(name, T, n)                            \
    extern "C" {                                              \
    __device__ int name##_local_bytes = (int)sizeof(T) * (n); \
    }
#define LOCAL_DYNAMIC(T, name, n)                                 \
    extern __shared__ __align__(16) unsigned char group_memory[]; \
    T *const name = (T *)group_memory;
#define LID ((int)threadIdx.x)
#define GROUP_X ((int)blockIdx.x)
#define GROUP_Y ((int)blockIdx.y)
#define GROUP_Z ((int)blockIdx.z)
#define BARRIER() __syncthreads()
#define UNROLL _Pragma("unroll")

/* bits and floats */
FN float as_f(uint u)
{
    return __uint_as_float(u);
}
FN uint as_u(float f)
{
    return __float_as_uint(f);
}
FN float half_f(ushort h)
{
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}
FN ushort f_half(float f)
{
    ushort h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
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
#if __CUDA_ARCH__ >= 800
    uint u;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(u) : "f"(b), "f"(a)); /* the first source is the upper half */
    return u;
#else
    return (uint)f_half(a) | (uint)f_half(b) << 16;
#endif
}

/* memory */
#define LDH(p, i) half_f((p)[i])
#define STH(p, i, v) ((p)[i] = f_half(v))
#define LDBF(p, i) bf16_f((p)[i])
#define STBF(p, i, v) ((p)[i] = f_bf16(v))
#define LDF4(p, i) (*(const float4_t *)((p) + (i)))
#define LDU4(p, i) (*(const uint4_t *)((p) + (i)))
#define LDU2(p, i) (*(const uint2_t *)((p) + (i)))
#define LDU1(p, i) ((p)[i])
#define STF4(p, i, v) (*(float4_t *)((p) + (i)) = (v))
#define STU4(p, i, v) (*(uint4_t *)((p) + (i)) = (v))

/* The toolkit's functions of f32 without fast mathematics: exp 2 ulp, log 1, tanh 2, erf 2, sqrt exact, rsqrt 2. */
#define exp_ expf
#define log_ logf
#define sqrt_ sqrtf
#define rsqrt_ rsqrtf
#define tanh_ tanhf
#define erf_ erff
#define fabs_ fabsf
#define fmin_ fminf
#define fmax_ fmaxf
/* The special function unit's: 2 ulp; results below 2^-126 are 0. */
FN float exp2_(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
FN float rint_(float x)
{
    float y;
    asm("cvt.rni.f32.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
FN int imin(int a, int b)
{
    return a < b ? a : b;
}
FN int imax(int a, int b)
{
    return a > b ? a : b;
}
FN int dot4_i8(uint a, uint b, int c)
{
    int d;
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

/* subgroups and groups */
#define SG_SIZE 32
#define SG_SCRATCH(n)
FN float sg_xor(float x, int mask)
{
    return __shfl_xor_sync(0xffffffffu, x, mask);
}
FN float sg_sum(float x)
{
    UNROLL
    for (int o = 16; o > 0; o >>= 1)
        x += sg_xor(x, o);
    return x;
}
FN float sg_max(float x)
{
    UNROLL
    for (int o = 16; o > 0; o >>= 1)
        x = fmaxf(x, sg_xor(x, o));
    return x;
}
/* Every item adds the subgroups' sums in the same order, so that the result is the same in each. */
FN float wg_sum_of(float x, float *scratch, int n)
{
    x = sg_sum(x);
    __syncthreads(); /* the last use of scratch is over */
    if ((threadIdx.x & 31) == 0)
        scratch[threadIdx.x >> 5] = x;
    __syncthreads();
    x = scratch[0];
    for (int i = 1; i < n; i++)
        x += scratch[i];
    return x;
}
FN float wg_max_of(float x, float *scratch, int n)
{
    x = sg_max(x);
    __syncthreads();
    if ((threadIdx.x & 31) == 0)
        scratch[threadIdx.x >> 5] = x;
    __syncthreads();
    x = scratch[0];
    for (int i = 1; i < n; i++)
        x = fmaxf(x, scratch[i]);
    return x;
}
#define WG_SCRATCH() __shared__ float wg_scratch[32];
#define wg_sum(x) wg_sum_of(x, wg_scratch, group_items / 32)
#define wg_max(x) wg_max_of(x, wg_scratch, group_items / 32)

/* kernels; a .krn file may define MIN_GROUPS anew, the groups that shall fit a compute unit together */
#ifndef MIN_GROUPS
#define MIN_GROUPS 1
#endif
/* From sm_90 on a kernel may be started before the one in front of it is done, and waits here until it is; the next one may
 * then be started. The host asks for it between the kernels of a graph. */
#if __CUDA_ARCH__ >= 900
#define B_(T, b) T *b /* nothing may be read before the wait: the compiler must not take const memory for constant */
#define AFTER_() asm volatile("griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;" ::: "memory");
#else
#define B_(T, b) T *__restrict__ b
#define AFTER_()
#endif
#define HEAD_(G) extern "C" __global__ void __launch_bounds__(G, MIN_GROUPS)
#define BODY_(G)                  \
    {                             \
        enum { group_items = G }; \
        AFTER_()
#define KERNEL1(name, G, P, A, a) HEAD_(G) name(const P p, B_(A, a)) BODY_(G)
#define KERNEL2(name, G, P, A, a, B, b) HEAD_(G) name(const P p, B_(A, a), B_(B, b)) BODY_(G)
#define KERNEL3(name, G, P, A, a, B, b, C, c) HEAD_(G) name(const P p, B_(A, a), B_(B, b), B_(C, c)) BODY_(G)
#define KERNEL4(name, G, P, A, a, B, b, C, c, D, d) \
    HEAD_(G) name(const P p, B_(A, a), B_(B, b), B_(C, c), B_(D, d)) BODY_(G)
#define KERNEL5(name, G, P, A, a, B, b, C, c, D, d, E, e) \
    HEAD_(G) name(const P p, B_(A, a), B_(B, b), B_(C, c), B_(D, d), B_(E, e)) BODY_(G)
#define KERNEL6(name, G, P, A, a, B, b, C, c, D, d, E, e, F, f) \
    HEAD_(G) name(const P p, B_(A, a), B_(B, b), B_(C, c), B_(D, d), B_(E, e), B_(F, f)) BODY_(G)
#define KERNEL7(name, G, P, A, a, B, b, C, c, D, d, E, e, F, f, H, h) \
    HEAD_(G) name(const P p, B_(A, a), B_(B, b), B_(C, c), B_(D, d), B_(E, e), B_(F, f), B_(H, h)) BODY_(G)
#define KERNEL8(name, G, P, A, a, B, b, C, c, D, d, E, e, F, f, H, h, I, i) \
    HEAD_(G) name(const P p, B_(A, a), B_(B, b), B_(C, c), B_(D, d), B_(E, e), B_(F, f), B_(H, h), B_(I, i)) BODY_(G)
#define KERNEL_END }

#if __CUDA_ARCH__ >= 800
/* The fragments of mma.sync.m16n8k16: a lane holds rows lane / 4 and lane / 4 + 8; a tile_c is two products of 8 columns. */
struct tile_a {
    uint r[4];
};
struct tile_b {
    uint r[4];
};
struct tile_c {
    float v[8];
};
#define TILE_N 8
/* Whole lines of the cache at a time where a group may have 110 KB; 80 KB fit every device from sm_80 on. */
#if __CUDA_ARCH__ == 900
#define TILE_DEPTH 64
#define TILE_STAGES 3
#else
#define TILE_DEPTH 32
#define TILE_STAGES 4
#endif
#define TILE_C(c, i) ((c).v[i])
#define TILE_ROW(lane, i) (((lane) >> 2) + ((i) >> 1 & 1) * 8)
#define TILE_COL(lane, i) (((i) >> 2) * 8 + ((lane)&3) * 2 + ((i)&1))

FN uint shared_address(const void *p)
{
    return (uint)__cvta_generic_to_shared(p); /* not in asm: the compiler then never makes the generic address */
}
FN void load_matrices(uint *r, const half_t *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}
FN void load_matrices_turned(uint *r, const half_t *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}
/* Of ldmatrix's four 8 x 8 matrices, lanes 8 i to 8 i + 7 give the rows of the i-th. */
FN void tile_load_a(tile_a &a, const half_t *p, int ld)
{
    const int lane = (int)(threadIdx.x & 31);
    load_matrices(a.r, p + (lane & 15) * ld + (lane >> 4) * 8);
}
FN void tile_load_b(tile_b &b, const half_t *p, int ld)
{
    const int lane = (int)(threadIdx.x & 31);
    load_matrices(b.r, p + ((lane >> 4) * 8 + (lane & 7)) * ld + (lane >> 3 & 1) * 8);
}
FN void tile_load_bt(tile_b &b, const half_t *p, int ld)
{
    const int lane = (int)(threadIdx.x & 31);
    load_matrices_turned(b.r, p + ((lane >> 3 & 1) * 8 + (lane & 7)) * ld + (lane >> 4) * 8);
}
FN void tile_zero(tile_c &c)
{
    UNROLL
    for (int i = 0; i < 8; i++)
        c.v[i] = 0.0f;
}
FN void tile_mma(tile_c &c, const tile_a &a, const tile_b &b)
{
    UNROLL
    for (int i = 0; i < 2; i++)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(c.v[4 * i]), "+f"(c.v[4 * i + 1]), "+f"(c.v[4 * i + 2]), "+f"(c.v[4 * i + 3])
                     : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b.r[2 * i]), "r"(b.r[2 * i + 1]));
}
FN float tile_row_max(float x)
{
    x = fmaxf(x, sg_xor(x, 1));
    return fmaxf(x, sg_xor(x, 2));
}
FN float tile_row_sum(float x)
{
    x += sg_xor(x, 1);
    return x + sg_xor(x, 2);
}
FN void tile_c_to_a(tile_a &a, const tile_c &c)
{
    UNROLL
    for (int i = 0; i < 4; i++)
        a.r[i] = pack_half2(c.v[2 * i], c.v[2 * i + 1]);
}

FN float half_range(float x)
{
    return fmaxf(fminf(x, 65504.0f), -65504.0f);
}
FN void store_halves8(half_t *to, const float *v)
{
    uint4_t u;
    u.x = pack_half2(half_range(v[0]), half_range(v[1]));
    u.y = pack_half2(half_range(v[2]), half_range(v[3]));
    u.z = pack_half2(half_range(v[4]), half_range(v[5]));
    u.w = pack_half2(half_range(v[6]), half_range(v[7]));
    *(uint4_t *)to = u;
}
FN void store_zeros8(half_t *to)
{
    *(uint4_t *)to = uint4_t{0, 0, 0, 0};
}
#define STORE_HALVES8(to, v) store_halves8(to, v)
#define STORE_ZEROS8(to) store_zeros8(to)

FN void copy16_async(void *to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}
#define COPY16_ASYNC(to, from) copy16_async(to, from)
FN void copy16_or_zero(void *to, const void *from, int valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
                 "r"(valid ? 16 : 0)
                 : "memory");
}
#define COPY16_OR_ZERO(to, from, valid) copy16_or_zero(to, from, valid)
#define ASYNC_COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define ASYNC_WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
#else
#define COPY16_ASYNC(to, from) (*(uint4_t *)(to) = *(const uint4_t *)(from))
#define ASYNC_COMMIT()
#define ASYNC_WAIT(n)
#endif
