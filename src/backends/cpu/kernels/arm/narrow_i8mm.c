/* narrow_i8mm.c: 8-bit products with arm64's matrix instructions of unsigned with signed bytes (contracts in cpu_kernels.h). */
#if !defined(__ARM_FEATURE_MATMUL_INT8)
#error "this file needs -march=armv8.2-a+dotprod+i8mm"
#endif
#include <arm_neon.h>

#define ST_LEVEL i8mm
#include "../vec_generic.h"
#include "backends/cpu/cpu_pack.h"
#include "../narrow_pack.h"

typedef int32x4_t sums;
typedef uint8x16_t words;

INL sums square(sums c, words x, words w)
{
    return vusmmlaq_s32(c, x, vreinterpretq_s8_u8(w));
}
#define LANE(C, X, W, I) C = vsudotq_laneq_s32(C, vreinterpretq_s8_u8(W), X, I)

#include "narrow_pairs.h"

void st_cpu_fill_narrow_i8mm(st_cpu_kernels *k)
{
    set_rows(&k->i8);
    k->i8.pack_row = pack_row_i8;
}
