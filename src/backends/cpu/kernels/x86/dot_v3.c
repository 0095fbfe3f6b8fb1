/* dot_v3.c: the kernels of dot_bytes.h with AVX2. */
#define ST_LEVEL v3
#include <immintrin.h>

#include "../vec_v3.h"

typedef __m256i mm;
#define MM(name) _mm256_##name
#define REGISTER "x"
#define ST_DOT_NV_ONE 4
enum { ST_DOT_NV = 2, ST_DOT_MANY = 4, ST_DOT_WIDE_ZERO = 128 };

#include "../dot_words.h"
#include "../dot_fused.h"
#include "../dot_bytes.h"
