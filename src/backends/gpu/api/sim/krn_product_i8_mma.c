#include "backends/gpu/api/sim/prelude.h"

#include "backends/gpu/kernels/product_i8_mma.krn"
