#include "backends/gpu/api/sim/prelude.h"

#include "backends/gpu/kernels/product_q4_1_mma.krn"
