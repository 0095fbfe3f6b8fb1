#include "backends/gpu/api/sim/prelude.h"

#include "backends/gpu/kernels/dot_blocks.krn"
