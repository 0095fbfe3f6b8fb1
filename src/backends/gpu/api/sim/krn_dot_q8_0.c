#include "backends/gpu/api/sim/prelude.h"

#include "backends/gpu/kernels/dot_q8_0.krn"
