/* rows_v4.c: the kernels of rows_body.h for x86-64-v4 (AVX-512). */
#define ST_LEVEL v4
#include "../vec_v4.h"
#include "../rows_body.h"
