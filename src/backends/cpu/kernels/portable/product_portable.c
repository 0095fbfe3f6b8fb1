/* product_portable.c: the kernels of product_body.h for any processor. */
#define ST_LEVEL portable
#include "../vec_generic.h"
#include "../product_body.h"
