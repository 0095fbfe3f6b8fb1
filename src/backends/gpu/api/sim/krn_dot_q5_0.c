#include "backends/gpu/api/sim/prelude.h"

#include "backends/gpu/kernels/dot_q5_0.krn"
