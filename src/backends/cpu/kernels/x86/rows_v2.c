/* rows_v2.c: the kernels of rows_body.h for x86-64-v2 (SSE4.2). */
#define ST_LEVEL v2
#include "../vec_generic.h"
#include "../rows_body.h"
