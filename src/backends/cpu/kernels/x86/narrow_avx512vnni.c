/* narrow_avx512vnni.c: 8-bit products with AVX-512 VNNI (contracts in cpu_kernels.h). A tile is 12 rows of 32 columns: 24
 * accumulators, two vectors of weights, one broadcast. */
#if !defined(__AVX512VNNI__)
#error "this file needs -mavx512vnni"
#endif
#include <immintrin.h>

#include "../vec_v4.h"

typedef __m512i mm;
#define MM(name) _mm512_##name
#define ST_NARROW_ROWS 12

/* Written out, since gcc 12 moves accumulators to and fro around its builtin. */
INL mm step(mm c, mm x, mm w)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(c) : "v"(x), "v"(w));
    return c;
}

#include "../narrow_pack.h"
#include "narrow_rows.h"
#include "narrow_block.h"

void st_cpu_fill_narrow_avx512vnni(st_cpu_kernels *k)
{
    k->i8 = (st_cpu_narrow){.pack_row = pack_row_i8, .block = block_i8};
    set_rows(&k->i8);
}
