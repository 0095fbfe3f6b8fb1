/* rows_neon.c: the kernels of rows_body.h for arm64. */
#define ST_LEVEL neon
#include "../vec_generic.h"
#include "../rows_body.h"
