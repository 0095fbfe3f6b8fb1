/* dot_neon.c: the kernels of dot_body.h for arm64: products of signed bytes, so wide weights are made signed. */
#define ST_LEVEL neon
#include "../vec_generic.h"

#define ST_DOT_ROWS 4
enum { ST_DOT_NV = 2, ST_DOT_WIDE_ZERO = 0 };

/* The sum of two products is at most 2 * 128 * 127 and fits a word. */
INL vi dot4(vi c, vi w, vi x, bool wide)
{
    const int8x16_t s = (int8x16_t)x, u = (int8x16_t)(wide ? w ^ (int32_t)0x80808080 : w);
    const int16x8_t low = vmull_s8(vget_low_s8(u), vget_low_s8(s)), high = vmull_high_s8(u, s);
    return (vi)vpadalq_s16((int32x4_t)c, vpaddq_s16(low, high));
}

#include "../dot_none.h"
#include "../dot_apart.h"
#include "../dot_body.h"
