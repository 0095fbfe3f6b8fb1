/* dot_v2.c: the kernels of dot_bytes.h with SSE4.2. */
#define ST_LEVEL v2
#include <immintrin.h>

#include "../vec_generic.h"

typedef __m128i mm;
#define MM(name) _mm_##name
#define REGISTER "x"
enum { ST_DOT_NV = 2, ST_DOT_MANY = 4, ST_DOT_WIDE_ZERO = 128 };

#include "../dot_words.h"
#include "../dot_apart.h"
#include "../dot_bytes.h"
