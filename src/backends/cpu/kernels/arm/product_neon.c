/* product_neon.c: the kernels of product_body.h for arm64. */
#define ST_LEVEL neon
#include "../vec_generic.h"
#include "../product_body.h"
