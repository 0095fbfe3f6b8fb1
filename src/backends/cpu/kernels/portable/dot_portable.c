/* dot_portable.c: the kernels of dot_body.h for any processor. */
#define ST_LEVEL portable
#include "../vec_generic.h"

#define ST_DOT_ROWS 2
#define ST_DOT_WIDE plain
enum { ST_DOT_NV = 2, ST_DOT_WIDE_ZERO = 128 };

INL vi dot4(vi c, vi w, vi x, bool wide)
{
    (void)wide;
    const vu u = (vu)w, s = (vu)x;
    c += (vi)(u & 255u) * ((vi)(s << 24) >> 24);
    c += (vi)(u >> 8 & 255u) * ((vi)(s << 16) >> 24);
    c += (vi)(u >> 16 & 255u) * ((vi)(s << 8) >> 24);
    return c + (vi)(u >> 24) * ((vi)s >> 24);
}

#include "../dot_none.h"
#include "../dot_apart.h"
#include "../dot_body.h"
