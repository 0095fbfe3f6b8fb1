/* narrow_dotprod.c: 8-bit products with arm64's dot products of signed bytes (contracts in cpu_kernels.h). Bytes of the left
 * side are kept less 128, and so is the zero of their row: the finished integers are those of every other level. */
#if !defined(__ARM_FEATURE_DOTPROD)
#error "this file needs -march=armv8.2-a+dotprod"
#endif
#include <arm_neon.h>

#include "backends/cpu/cpu_pack.h"

#define ST_LEVEL dotprod
#include "../vec_generic.h"
#include "../narrow_pack.h"

/* 6 rows of 16 columns: 24 accumulators, six vectors of the left side, one or two of weights. */
enum { MR = 6, STEP_BYTES = 4 * ST_CPU_PANEL };

static void shift_row(int64_t k, void *dst, int rows)
{
    const int8x16_t top = vdupq_n_s8(-128);
    int8_t *out = dst;
    for (int64_t i = 0; i < k; i += ST_CPU_I8_BLOCK, out += ST_CPU_I8_BLOCK * (ptrdiff_t)rows)
        for (int j = 0; j < ST_CPU_I8_BLOCK; j += 16)
            vst1q_s8(out + j, veorq_s8(vld1q_s8(out + j), top));
}

static void pack_row_shifted(const float *x, int64_t k, void *dst, void *fine, int rows, st_cpu_row_scale *scale)
{
    pack_row_i8(x, k, dst, fine, rows, scale);
    scale->zero -= 128;
    shift_row(k, dst, rows);
    if (fine != NULL) {
        scale->fine_zero -= 128;
        shift_row(k, fine, rows);
    }
}

/* The lane is part of the instruction, so that no loop can count it. */
#define FOUR(LANE)                                                                                        \
    UNROLL for (int v = 0; v < 4; v++)                                                                    \
    {                                                                                                     \
        const int8x16_t weights = vld1q_s8(b + STEP_BYTES * (LANE) + 16 * v);                             \
        UNROLL for (int r = 0; r < rows; r++) c[r][v] = vdotq_laneq_s32(c[r][v], weights, left[r], LANE); \
    }

INL void half_panel(int rows, const int8_t *a, const int8_t *b, int chunks, int32_t *acc)
{
    int32x4_t c[MR][4];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < 4; v++) c[r][v] = vdupq_n_s32(0);
    for (int i = 0; i < chunks; i++, a += 64 * (rows - 1)) {
        for (int sixteen = 0; sixteen < 4; sixteen++, a += 16, b += 4 * STEP_BYTES) {
            int8x16_t left[MR];
            UNROLL for (int r = 0; r < rows; r++) left[r] = vld1q_s8(a + 64 * r);
            FOUR(0)
            FOUR(1)
            FOUR(2)
            FOUR(3)
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < 4; v++) vst1q_s32(acc + 16 * r + 4 * v, c[r][v]);
}

#define ROWS(R)                                                                                      \
    static void i8_##R(const void *a, const void *b, int chunks, void *acc)                          \
    {                                                                                                \
        for (int half = 0; half < 2; half++)                                                         \
            half_panel(R, a, (const int8_t *)b + 64 * half, chunks, (int32_t *)acc + 16 * (R)*half); \
    }
ROWS(1)
ROWS(2)
ROWS(3)
ROWS(4)
ROWS(5)
ROWS(6)

void st_cpu_fill_narrow_dotprod(st_cpu_kernels *k)
{
    k->i8 = (st_cpu_narrow){
        .mr = MR, .row_unit = 1, .pack_row = pack_row_shifted, .product = {NULL, i8_1, i8_2, i8_3, i8_4, i8_5, i8_6}};
}
