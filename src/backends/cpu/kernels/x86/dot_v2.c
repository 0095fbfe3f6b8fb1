/* dot_v2.c: the kernels of dot_body.h with SSE4.2, as dot_v4.c. */
#define ST_LEVEL v2
#include <immintrin.h>

#include "../vec_generic.h"

#define ST_DOT_ROWS 2
#define ST_DOT_FEW 2
enum { ST_DOT_NV = 2, ST_DOT_WIDE_ZERO = 128 };

INL vi dot4(vi c, vi w, vi x, bool wide)
{
    const __m128i u = (__m128i)w, s = (__m128i)x;
    if (!wide)
        return vi_add(c, (vi)_mm_madd_epi16(_mm_maddubs_epi16(u, s), _mm_set1_epi16(1)));
    const __m128i even = _mm_srai_epi16(_mm_slli_epi16(s, 8), 8), odd = _mm_srai_epi16(s, 8);
    c = vi_add(c, (vi)_mm_madd_epi16(_mm_and_si128(u, _mm_set1_epi16(255)), even));
    return vi_add(c, (vi)_mm_madd_epi16(_mm_srli_epi16(u, 8), odd));
}

#include "../dot_body.h"
