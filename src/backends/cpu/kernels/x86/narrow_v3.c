/* narrow_v3.c: 8-bit products of narrow_words.h for x86-64-v3. A tile is 6 rows, of which 2 meet 32 columns at a time:
 * 8 sums, ones, two fours of a row and their products. */
#include "../vec_v3.h"

#include "backends/cpu/cpu_kernels.h"

#define MM(name) _mm256_##name
#define ST_NARROW_ROWS 6
#include "narrow_finish.h"
#include "../narrow_pack.h"

#define EACH_PASS(X) X(2) X(1)
enum { FEW_AHEAD = 1536, FEW_CACHE = 3 };
enum { PASS_ROWS = 2, PASS_VECTORS = 4, PASS_FOURS = 8 };

INL vi in_order(vi words)
{
    const vi fours = _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(words, 0xd8), 0xd8);
    return _mm256_permute4x64_epi64(fours, 0xd8);
}

INL bool any_below_zero(vi words)
{
    return (_mm256_movemask_epi8(words) & (int)0xaaaaaaaa) != 0;
}

#include "narrow_words.h"

void st_cpu_fill_narrow_v3(st_cpu_kernels *k)
{
    set_words(&k->i8);
    st_cpu_fill_narrow_f16_v3(k);
    st_cpu_fill_attention_v3(k);
}
