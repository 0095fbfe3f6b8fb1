#include "backends/gpu/api/sim/prelude.h"

#include "backends/gpu/kernels/product_q5_0.krn"
