/* dot_v3.c: the kernels of dot_body.h with AVX2. Pairs of bytes of 7 bits fit signed words; wide ones are multiplied as
 * words. */
#define ST_LEVEL v3
#include "../vec_v3.h"

#define ST_DOT_ROWS 2
#define ST_DOT_FEW 2
enum { ST_DOT_NV = 2, ST_DOT_WIDE_ZERO = 128 };

INL vi dot4(vi c, vi w, vi x, bool wide)
{
    if (!wide)
        return _mm256_add_epi32(c, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1)));
    const vi even = _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8), odd = _mm256_srai_epi16(x, 8);
    c = _mm256_add_epi32(c, _mm256_madd_epi16(_mm256_and_si256(w, _mm256_set1_epi16(255)), even));
    return _mm256_add_epi32(c, _mm256_madd_epi16(_mm256_srli_epi16(w, 8), odd));
}

#include "../dot_body.h"
