#include "backends/gpu/api/sim/prelude.h"

#include "backends/gpu/kernels/product_blocks_mma.krn"
