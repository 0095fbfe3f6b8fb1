/* narrow_avxvnni.c: 8-bit products with AVX-VNNI, for processors without AVX-512 (contracts in cpu_kernels.h). A tile is 6 rows
 * of 16 columns at a time: 12 accumulators, two vectors of weights, one broadcast. */
#if !defined(__AVXVNNI__)
#error "this file needs -mavxvnni"
#endif
#include <immintrin.h>

#include "../vec_v3.h"

typedef __m256i mm;
#define MM(name) _mm256_##name
#define ST_NARROW_ROWS 6

/* Written out, since gcc 12 moves accumulators to and fro around its builtin. */
INL mm step(mm c, mm x, mm w)
{
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(c) : "x"(x), "x"(w));
    return c;
}

#include "../narrow_pack.h"
#include "narrow_rows.h"
#include "narrow_block.h"

void st_cpu_fill_narrow_avxvnni(st_cpu_kernels *k)
{
    k->i8 = (st_cpu_narrow){.pack_row = pack_row_i8, .block = block_i8};
    set_rows(&k->i8);
}
