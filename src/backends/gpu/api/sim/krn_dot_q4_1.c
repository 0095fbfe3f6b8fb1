#include "backends/gpu/api/sim/prelude.h"

#include "backends/gpu/kernels/dot_q4_1.krn"
