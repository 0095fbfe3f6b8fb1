#include "backends/gpu/api/sim/prelude.h"

#include "backends/gpu/kernels/product_bf16.krn"
