/* dot_dotprod.c: the kernels of dot_body.h for arm64 with dot products of signed bytes; wide weights are made signed. */
#define ST_LEVEL dotprod
#include "../vec_generic.h"

#define ST_DOT_ROWS 4
enum { ST_DOT_NV = 2, ST_DOT_WIDE_ZERO = 0 };

INL vi dot4(vi c, vi w, vi x, bool wide)
{
    return (vi)vdotq_s32((int32x4_t)c, (int8x16_t)(wide ? w ^ (int32_t)0x80808080 : w), (int8x16_t)x);
}

#include "../dot_none.h"
#include "../dot_apart.h"
#include "../dot_body.h"
