/* dot_v4.c: the kernels of dot_bytes.h with AVX-512 BW. */
#define ST_LEVEL v4
#include <immintrin.h>

#include "../vec_v4.h"

typedef __m512i mm;
#define MM(name) _mm512_##name
#define REGISTER "v"
enum { ST_DOT_NV = 2, ST_DOT_MANY = 2, ST_DOT_WIDE_ZERO = 128 };

#include "../dot_words.h"
#include "../dot_fused.h"
#include "../dot_bytes.h"
