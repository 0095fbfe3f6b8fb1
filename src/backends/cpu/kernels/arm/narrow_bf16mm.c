/* narrow_bf16mm.c: bf16 products with arm64's matrix instructions of bf16 (contracts in cpu_kernels.h). They sum two products at a
 * time, and round each sum to odd: a number that f32 cannot hold becomes the one of its two neighbours whose last bit is set.
 * That is up to one unit in the last place where rounding to nearest is off by half of one, without leaning to either side.
 * Numbers below 2^-126 count as 0. */
#if !defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#error "this file needs -march=armv8.2-a+dotprod+i8mm+bf16"
#endif
#include <arm_neon.h>

#define ST_LEVEL bf16mm
#include "../vec_generic.h"
#include "backends/cpu/cpu_pack.h"

typedef float32x4_t sums;
typedef uint8x16_t words;

INL sums square(sums c, words x, words w)
{
    return vbfmmlaq_f32(c, vreinterpretq_bf16_u8(x), vreinterpretq_bf16_u8(w));
}
#define LANE(C, X, W, I) C = vbfdotq_laneq_f32(C, vreinterpretq_bf16_u8(W), vreinterpretq_bf16_u8(X), I)

#include "narrow_pairs.h"

static void pack_row(const float *x, int64_t k, void *dst, void *fine, int rows, st_cpu_row_scale *scale)
{
    (void)fine;
    (void)scale;
    uint8_t *out = dst;
    for (int64_t i = 0; i < k; i += CHUNK / 2, out += CHUNK * (ptrdiff_t)rows) {
        for (int j = 0; j < CHUNK / 2; j += 8) {
            const int64_t left = k - i - j;
            const vf low = left >= VL ? v_load(x + i + j) : v_load_n(x + i + j, left > 0 ? (int)left : 0);
            const vf high =
                left >= 2 * VL ? v_load(x + i + j + VL) : v_load_n(x + i + j + VL, left > VL ? (int)left - VL : 0);
            vst1q_u8(out + 2 * j, vreinterpretq_u8_bf16(vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(low), high)));
        }
    }
}

void st_cpu_fill_narrow_bf16mm(st_cpu_kernels *k)
{
    set_rows(&k->bf16);
    k->bf16.pack_row = pack_row;
}
