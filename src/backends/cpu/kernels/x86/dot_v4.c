/* dot_v4.c: the kernels of dot_body.h with AVX-512 BW. Pairs of bytes of 7 bits fit signed words; wide ones are multiplied as
 * words. */
#define ST_LEVEL v4
#include "../vec_v4.h"

#define ST_DOT_ROWS 6
#define ST_DOT_FEW 4
enum { ST_DOT_NV = 2, ST_DOT_WIDE_ZERO = 128 };

INL vi dot4(vi c, vi w, vi x, bool wide)
{
    if (!wide)
        return _mm512_add_epi32(c, _mm512_madd_epi16(_mm512_maddubs_epi16(w, x), _mm512_set1_epi16(1)));
    const vi even = _mm512_srai_epi16(_mm512_slli_epi16(x, 8), 8), odd = _mm512_srai_epi16(x, 8);
    c = _mm512_add_epi32(c, _mm512_madd_epi16(_mm512_and_si512(w, _mm512_set1_epi16(255)), even));
    return _mm512_add_epi32(c, _mm512_madd_epi16(_mm512_srli_epi16(w, 8), odd));
}

#include "../dot_body.h"
