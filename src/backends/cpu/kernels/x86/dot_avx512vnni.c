/* dot_avx512vnni.c: the kernels of dot_body.h with AVX-512 VNNI. A tile is 6 rows of 32 columns: 12 integer and 12 float sums. The
 * instruction is written out, since gcc 12 moves accumulators to and fro around its builtin. */
#define ST_LEVEL avx512vnni
#include "../vec_v4.h"

#define ST_DOT_ROWS 6
#define ST_DOT_WIDE plain
#define ST_DOT_FOLD 1
#define REGISTER "v"
enum { ST_DOT_NV = 2, ST_DOT_WIDE_ZERO = 128 };

INL vi dot4(vi c, vi w, vi x, bool wide)
{
    (void)wide;
    __asm__("vpdpbusd %2, %1, %0" : "+v"(c) : "v"(w), "v"(x));
    return c;
}

#include "../dot_none.h"
#include "../dot_fused.h"
#include "../dot_body.h"
