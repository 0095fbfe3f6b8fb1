/* dot_avxvnni.c: the kernels of dot_body.h with AVX-VNNI, for processors without AVX-512. A tile is 3 rows of 16 columns: 6
 * integer and 6 float sums, two of weights, a row. The instruction is written out, since gcc 12 moves accumulators to and fro
 * around its builtin, and asks for the encoding without AVX-512. */
#define ST_LEVEL avxvnni
#include "../vec_v3.h"

#define REGISTER "x"
#define ST_DOT_ROWS 3
#define ST_DOT_WIDE plain
#define ST_DOT_FOLD 1
enum { ST_DOT_NV = 2, ST_DOT_WIDE_ZERO = 128 };

INL vi dot4(vi c, vi w, vi x, bool wide)
{
    (void)wide;
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(c) : "x"(w), "x"(x));
    return c;
}

#include "../dot_none.h"
#include "../dot_fused.h"
#include "../dot_body.h"
