/* product_v3.c: the kernels of product_body.h for x86-64-v3 (AVX2, FMA, F16C). */
#define ST_LEVEL v3
#include "../vec_v3.h"
#include "../product_body.h"
