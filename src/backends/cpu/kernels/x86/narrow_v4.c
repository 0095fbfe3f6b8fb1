/* narrow_v4.c: 8-bit products of narrow_words.h for x86-64-v4. A tile is 8 rows of 32 columns at a time. */
#include "../vec_v4.h"

#include "backends/cpu/cpu_kernels.h"

#define MM(name) _mm512_##name
#define ST_NARROW_ROWS 8
#include "narrow_finish.h"
#include "../narrow_pack.h"

#define EACH_PASS(X) X(8) X(4) X(2) X(1)
enum { FEW_AHEAD = 4096, FEW_CACHE = 2 };
enum { PASS_ROWS = 8, PASS_VECTORS = 2, PASS_FOURS = 2 };

INL vi in_order(vi words)
{
    const vi fours = _mm512_shufflehi_epi16(_mm512_shufflelo_epi16(words, 0xd8), 0xd8);
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), fours);
}

INL bool any_below_zero(vi words)
{
    return _mm512_movepi16_mask(words) != 0;
}

#include "narrow_words.h"

void st_cpu_fill_narrow_v4(st_cpu_kernels *k)
{
    set_words(&k->i8);
    k->words = (st_cpu_words){0}; /* with AVX-512, f32 multiplies as fast */
    k->f16_words = (st_cpu_narrow){0};
}
