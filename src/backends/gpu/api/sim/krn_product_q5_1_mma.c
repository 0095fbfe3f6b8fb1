#include "backends/gpu/api/sim/prelude.h"

#include "backends/gpu/kernels/product_q5_1_mma.krn"
