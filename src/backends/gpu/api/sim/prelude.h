/* prelude.h: the dialect of ../../kernels/README.md as C on fibers. Included before a .krn file, once a source file. */
#ifndef SOTTO_SRC_BACKENDS_GPU_API_SIM_PRELUDE_H
#define SOTTO_SRC_BACKENDS_GPU_API_SIM_PRELUDE_H

#include <math.h>

#include "backends/gpu/api/sim/group.h"
#include "backends/gpu/api/sim/kernels.h"
#include "backends/gpu/kernels/params.h"
#include "base/half.h"

#pragma GCC diagnostic ignored "-Wunused-variable"  /* some variants of a kernel leave one out, */
#pragma GCC diagnostic ignored "-Wunused-parameter" /* or an argument */
#pragma GCC diagnostic ignored "-Wshadow"           /* me_ */

#define FN __attribute__((unused)) static inline
#define GLOBAL
#define SHARED
#define UNROLL
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

typedef uint16_t half_t, bf16_t;
typedef signed char schar;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef struct float4_t {
    float x, y, z, w;
} float4_t;
typedef struct uint4_t {
    uint x, y, z, w;
} uint4_t;
typedef struct uint2_t {
    uint x, y;
} uint2_t;

/* ---- kernels ---- */

#define SIM_UNUSED __attribute__((unused))
/* Kernels have a parameter of this name; helpers do not and find out who they run for. */
SIM_UNUSED static st_sim_item *const me_ = NULL;
#define SIM_ME (me_ ? me_ : st_sim_self())
#define SIM_HEAD(name_, GROUP, P, n, ...)                                                                            \
    static st_sim_run_fn run_##name_;                                                                                \
    const st_sim_kernel st_sim_kernel_##name_ = {#name_, __FILE__, run_##name_, GROUP, n, sizeof(P), {__VA_ARGS__}}; \
    static void run_##name_(const void *params_, void *const *arg_, st_sim_item *me_)                                \
    {                                                                                                                \
        SIM_UNUSED const P p = *(const P *)params_;                                                                  \
        SIM_UNUSED const int lid_ = me_->lid, group_x_ = me_->group->at[0], group_y_ = me_->group->at[1],            \
                             group_z_ = me_->group->at[2];
#define SIM_ARG(T, x, i) SIM_UNUSED T *x = (T *)arg_[i];
#define KERNEL1(name, GROUP, P, A, a) SIM_KERNEL_1(name, GROUP, P, A, a)
#define SIM_KERNEL_1(name, GROUP, P, A, a)   \
    SIM_HEAD(name, GROUP, P, 1, _Alignof(A)) \
    SIM_ARG(A, a, 0)
#define KERNEL2(name, GROUP, P, A, a, B, b) SIM_KERNEL_2(name, GROUP, P, A, a, B, b)
#define SIM_KERNEL_2(name, GROUP, P, A, a, B, b)          \
    SIM_HEAD(name, GROUP, P, 2, _Alignof(A), _Alignof(B)) \
    SIM_ARG(A, a, 0) SIM_ARG(B, b, 1)
#define KERNEL3(name, GROUP, P, A, a, B, b, C, c) SIM_KERNEL_3(name, GROUP, P, A, a, B, b, C, c)
#define SIM_KERNEL_3(name, GROUP, P, A, a, B, b, C, c)                 \
    SIM_HEAD(name, GROUP, P, 3, _Alignof(A), _Alignof(B), _Alignof(C)) \
    SIM_ARG(A, a, 0) SIM_ARG(B, b, 1) SIM_ARG(C, c, 2)
#define KERNEL4(name, GROUP, P, A, a, B, b, C, c, D, d) SIM_KERNEL_4(name, GROUP, P, A, a, B, b, C, c, D, d)
#define SIM_KERNEL_4(name, GROUP, P, A, a, B, b, C, c, D, d)                        \
    SIM_HEAD(name, GROUP, P, 4, _Alignof(A), _Alignof(B), _Alignof(C), _Alignof(D)) \
    SIM_ARG(A, a, 0) SIM_ARG(B, b, 1) SIM_ARG(C, c, 2) SIM_ARG(D, d, 3)
#define KERNEL5(name, GROUP, P, A, a, B, b, C, c, D, d, E, e) SIM_KERNEL_5(name, GROUP, P, A, a, B, b, C, c, D, d, E, e)
#define SIM_KERNEL_5(name, GROUP, P, A, a, B, b, C, c, D, d, E, e)                               \
    SIM_HEAD(name, GROUP, P, 5, _Alignof(A), _Alignof(B), _Alignof(C), _Alignof(D), _Alignof(E)) \
    SIM_ARG(A, a, 0) SIM_ARG(B, b, 1) SIM_ARG(C, c, 2) SIM_ARG(D, d, 3) SIM_ARG(E, e, 4)
#define KERNEL6(name, GROUP, P, A, a, B, b, C, c, D, d, E, e, F, f) \
    SIM_KERNEL_6(name, GROUP, P, A, a, B, b, C, c, D, d, E, e, F, f)
#define SIM_KERNEL_6(name, GROUP, P, A, a, B, b, C, c, D, d, E, e, F, f)                                      \
    SIM_HEAD(name, GROUP, P, 6, _Alignof(A), _Alignof(B), _Alignof(C), _Alignof(D), _Alignof(E), _Alignof(F)) \
    SIM_ARG(A, a, 0) SIM_ARG(B, b, 1) SIM_ARG(C, c, 2) SIM_ARG(D, d, 3) SIM_ARG(E, e, 4) SIM_ARG(F, f, 5)
#define KERNEL7(name, GROUP, P, A, a, B, b, C, c, D, d, E, e, F, f, G, g) \
    SIM_KERNEL_7(name, GROUP, P, A, a, B, b, C, c, D, d, E, e, F, f, G, g)
#define SIM_KERNEL_7(name, GROUP, P, A, a, B, b, C, c, D, d, E, e, F, f, G, g)                                \
    SIM_HEAD(name, GROUP, P, 7, _Alignof(A), _Alignof(B), _Alignof(C), _Alignof(D), _Alignof(E), _Alignof(F), \
             _Alignof(G))                                                                                     \
    SIM_ARG(A, a, 0)                                                                                          \
    SIM_ARG(B, b, 1) SIM_ARG(C, c, 2) SIM_ARG(D, d, 3) SIM_ARG(E, e, 4) SIM_ARG(F, f, 5) SIM_ARG(G, g, 6)
#define KERNEL8(name, GROUP, P, A, a, B, b, C, c, D, d, E, e, F, f, G, g, H, h) \
    SIM_KERNEL_8(name, GROUP, P, A, a, B, b, C, c, D, d, E, e, F, f, G, g, H, h)
#define SIM_KERNEL_8(name, GROUP, P, A, a, B, b, C, c, D, d, E, e, F, f, G, g, H, h)                          \
    SIM_HEAD(name, GROUP, P, 8, _Alignof(A), _Alignof(B), _Alignof(C), _Alignof(D), _Alignof(E), _Alignof(F), \
             _Alignof(G), _Alignof(H))                                                                        \
    SIM_ARG(A, a, 0)                                                                                          \
    SIM_ARG(B, b, 1)                                                                                          \
    SIM_ARG(C, c, 2) SIM_ARG(D, d, 3) SIM_ARG(E, e, 4) SIM_ARG(F, f, 5) SIM_ARG(G, g, 6) SIM_ARG(H, h, 7)
#define KERNEL_END }

#define LID lid_
#define GROUP_X group_x_
#define GROUP_Y group_y_
#define GROUP_Z group_z_
#define LOCAL(T, name, n) T *const name = (T *)st_sim_local(SIM_ME, sizeof(T) * (size_t)(n), __FILE__, __LINE__);
#define DYNAMIC_LOCAL(name, T, n)
#define LOCAL_DYNAMIC(T, name, n) LOCAL(T, name, n)
#define BARRIER() st_sim_barrier(SIM_ME, __FILE__, __LINE__)

/* ---- subgroups and groups ---- */

#define SG_SIZE (SIM_ME->group->subgroup)
/* The words below name these variables, so a kernel without the scratch does not compile. */
#define SG_SCRATCH(GROUP) \
    SIM_UNUSED const void *const sg_scratch_ = st_sim_local(SIM_ME, sizeof(float) * (GROUP), __FILE__, __LINE__);
#define WG_SCRATCH()                            \
    SG_SCRATCH(me_->group->work->kernel->group) \
    SIM_UNUSED const void *const wg_scratch_ = sg_scratch_;
#define sg_sum(x) ((void)sg_scratch_, st_sim_exchange(SIM_ME, ST_SIM_SG_SUM, (x), 0, __FILE__, __LINE__))
#define sg_max(x) ((void)sg_scratch_, st_sim_exchange(SIM_ME, ST_SIM_SG_MAX, (x), 0, __FILE__, __LINE__))
#define sg_xor(x, mask) ((void)sg_scratch_, st_sim_exchange(SIM_ME, ST_SIM_SG_XOR, (x), (mask), __FILE__, __LINE__))
#define wg_sum(x) ((void)wg_scratch_, st_sim_exchange(SIM_ME, ST_SIM_WG_SUM, (x), 0, __FILE__, __LINE__))
#define wg_max(x) ((void)wg_scratch_, st_sim_exchange(SIM_ME, ST_SIM_WG_MAX, (x), 0, __FILE__, __LINE__))

/* ---- memory ---- */

#define SIM_AT(p, i, T) st_sim_checked(SIM_ME, (p) + (i), sizeof(T), __FILE__, __LINE__)
#define LDF4(p, i) (*(const float4_t *)SIM_AT(p, i, float4_t))
#define LDU4(p, i) (*(const uint4_t *)SIM_AT(p, i, uint4_t))
#define LDU2(p, i) (*(const uint2_t *)SIM_AT(p, i, uint2_t))
#define LDU1(p, i) (*(const uint *)SIM_AT(p, i, uint))
#define STF4(p, i, v) (*(float4_t *)(uintptr_t)SIM_AT(p, i, float4_t) = (v))
#define STU4(p, i, v) (*(uint4_t *)(uintptr_t)SIM_AT(p, i, uint4_t) = (v))
#define LDH(p, i) st_f16_to_f32((p)[i])
#define STH(p, i, v) ((p)[i] = st_f32_to_f16(v))
#define LDBF(p, i) st_bf16_to_f32((p)[i])
#define STBF(p, i, v) ((p)[i] = st_f32_to_bf16(v))
#define COPY16_ASYNC(to, from) st_sim_copy16(SIM_ME, (to), (from), __FILE__, __LINE__)
#define COPY16_OR_ZERO(to, from, valid) \
    do {                                \
        if (valid)                      \
            COPY16_ASYNC((to), (from)); \
        else                            \
            STORE_ZEROS8(to);           \
    } while (0)
#define ASYNC_COMMIT() ((void)SIM_ME->batch++)
#define ASYNC_WAIT(n) st_sim_copy_wait(SIM_ME, n)

/* ---- bits and numbers ---- */

#define as_f(u) st_bits_f32(u)
#define as_u(f) st_f32_bits(f)
#define half_f(h) st_f16_to_f32(h)
#define f_half(v) st_f32_to_f16(v)
#define bf16_f(h) st_bf16_to_f32(h)
#define f_bf16(v) st_f32_to_bf16(v)

FN float half_lo(uint u)
{
    return st_f16_to_f32((uint16_t)u);
}

FN float half_hi(uint u)
{
    return st_f16_to_f32((uint16_t)(u >> 16));
}

FN uint pack_half2(float a, float b)
{
    return st_f32_to_f16(a) | (uint)st_f32_to_f16(b) << 16;
}

#define exp_ expf
#define log_ logf
#define sqrt_ sqrtf
#define tanh_ tanhf
#define fabs_ fabsf
#define fmin_ fminf
#define fmax_ fmaxf
#define erf_ erff
#define exp2_ exp2f
#define rint_ rintf

FN float rsqrt_(float x)
{
    return 1.0f / sqrtf(x);
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
    for (int i = 0; i < 4; i++)
        c += (schar)(a >> (8 * i)) * (schar)(b >> (8 * i));
    return c;
}

/* ---- tiles ---- */

FN void store_halves8(half_t *to, const float *v, const char *file, int line)
{
    if ((uintptr_t)to % 16 != 0)
        st_sim_stop(st_sim_self(), file, line, "eight halves at an address %d above a multiple of 16",
                    (int)((uintptr_t)to % 16));
    for (int i = 0; i < 8; i++)
        to[i] = st_f32_to_f16(v[i] > 65504.0f ? 65504.0f : v[i] < -65504.0f ? -65504.0f : v[i]);
}

#define TILE_DEPTH 32
#define TILE_STAGES 3
#define TILE_N 8
#define TILE_C(c, i) ((c).v[i])
#define TILE_ROW(lane, i) ((lane) % 32 / 4 + 8 * ((i) / 2 % 2))
#define TILE_COL(lane, i) (8 * ((i) / 4) + 2 * ((lane) % 4) + (i) % 2)
#define STORE_HALVES8(to, v) store_halves8((to), (v), __FILE__, __LINE__)
#define STORE_ZEROS8(to) store_halves8((to), (const float[8]){0}, __FILE__, __LINE__)
#define tile_zero(c) ((c) = (tile_c){{0}})
#define tile_load_a(a, ptr, ld) st_sim_load_a(SIM_ME, &(a), (ptr), (ld), __FILE__, __LINE__)
#define tile_load_b(b, ptr, ld) st_sim_load_b(SIM_ME, &(b), (ptr), (ld), 1, __FILE__, __LINE__)
#define tile_load_bt(b, ptr, ld) st_sim_load_b(SIM_ME, &(b), (ptr), (ld), 0, __FILE__, __LINE__)
#define tile_mma(c, a, b) st_sim_mma(SIM_ME, &(c), &(a), &(b), __FILE__, __LINE__)
#define tile_row_max(x) st_sim_exchange(SIM_ME, ST_SIM_ROW_MAX, (x), 0, __FILE__, __LINE__)
#define tile_row_sum(x) st_sim_exchange(SIM_ME, ST_SIM_ROW_SUM, (x), 0, __FILE__, __LINE__)
#define tile_c_to_a(a, c) st_sim_c_to_a(&(a), &(c))

#endif
