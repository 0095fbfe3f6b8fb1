/* ops_dot.h: products of few rows with weights of block types, both sides as bytes (SOTTO_COMPUTE_INT8), on devices that multiply
 * four pairs of bytes at once. */
#ifndef SOTTO_SRC_BACKENDS_GPU_OPS_DOT_H
#define SOTTO_SRC_BACKENDS_GPU_OPS_DOT_H

#include "backends/gpu/gpu_plan.h"

struct product_p;

enum { ST_GPU_DOT_ROWS = 16 }; /* at most: two rounds of eight */

/* p: the product as st_gpu_emit_dots() gets it, but with rows of any number type. */
bool st_gpu_takes_dots(const st_gpu_builder *b, const sotto_tensor *node, const struct product_p *p);

/* x: the left side as p describes it, n_batch matrices of p->m rows; args: x, numbers, scales, bias, residual and result. */
sotto_status st_gpu_emit_dots(st_gpu_builder *b, const sotto_tensor *node, const struct product_p *p, uint32_t n_batch,
                              const st_gpu_arg args[6], sotto_error *err);

#endif
