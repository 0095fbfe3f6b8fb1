#include "backends/gpu/api/sim/prelude.h"

#include "backends/gpu/kernels/product_f32.krn"
