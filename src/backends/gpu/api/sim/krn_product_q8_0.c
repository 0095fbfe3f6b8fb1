#include "backends/gpu/api/sim/prelude.h"

#include "backends/gpu/kernels/product_q8_0.krn"
