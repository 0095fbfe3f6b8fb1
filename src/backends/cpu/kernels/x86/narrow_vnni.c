/* narrow_vnni.c: bf16 products with AVX-512 BF16 (contracts in cpu_kernels.h), in tiles as those of narrow_avx512vnni.c. */
#if !defined(__AVX512BF16__)
#error "this file needs -mavx512bf16"
#endif
#include <immintrin.h>

#include "../vec.h"

typedef __m512i mm;
#define MM(name) _mm512_##name
#define ST_NARROW_ROWS 12

/* Written out, since gcc 12 moves accumulators to and fro around its builtin. */
INL mm step(mm c, mm x, mm w)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(x), "v"(w));
    return c;
}

#include "narrow_rows.h"

static void pack_row_bf16(const float *x, int64_t k, void *dst, void *fine, int rows, st_cpu_row_scale *scale)
{
    (void)fine;
    (void)scale;
    uint8_t *out = dst;
    for (int64_t i = 0; i < k; i += 32, out += 64 * (ptrdiff_t)rows) {
        const int64_t left = k - i;
        const __mmask32 all = left >= 32 ? 0xffffffffu : (1u << left) - 1u;
        const __m512 low = _mm512_maskz_loadu_ps((__mmask16)all, x + i);
        const __m512 high = _mm512_maskz_loadu_ps((__mmask16)(all >> 16), x + i + 16);
        _mm512_storeu_si512(out, (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
}

void st_cpu_fill_narrow_vnni(st_cpu_kernels *k)
{
    set_rows(&k->bf16);
    k->bf16.pack_row = pack_row_bf16;
    st_cpu_fill_attention_vnni(k);
    st_cpu_fill_window_vnni(k);
}
