/* rows_portable.c: the kernels of rows_body.h for any processor. */
#define ST_LEVEL portable
#include "../vec_generic.h"
#include "../rows_body.h"
