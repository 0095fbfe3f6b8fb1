/* product_v2.c: the kernels of product_body.h for x86-64-v2 (SSE4.2). */
#define ST_LEVEL v2
#include "../vec_generic.h"
#include "../product_body.h"
