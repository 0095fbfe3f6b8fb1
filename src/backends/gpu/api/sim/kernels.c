#include "backends/gpu/api/sim/kernels.h"

const st_sim_kernel *const st_sim_kernels[ST_GPU_KERNEL_COUNT] = {
#define KERNEL(module, name, group, params, n_args) &st_sim_kernel_##name,
#include "backends/gpu/kernels/kernels.inc"
#undef KERNEL
};
