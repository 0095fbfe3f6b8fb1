/* kernels.h: every kernel of kernels.inc, compiled by krn_<module>.c. */
#ifndef SOTTO_SRC_BACKENDS_GPU_API_SIM_KERNELS_H
#define SOTTO_SRC_BACKENDS_GPU_API_SIM_KERNELS_H

#include "backends/gpu/api/sim/group.h"

#define KERNEL(module, name, group, params, n_args) extern const st_sim_kernel st_sim_kernel_##name;
#include "backends/gpu/kernels/kernels.inc"
#undef KERNEL

extern const st_sim_kernel *const st_sim_kernels[ST_GPU_KERNEL_COUNT];

#endif
