/* cuda_support.h: the stand-in for NVIDIA's driver, opened. */
#ifndef SOTTO_TESTS_BACKENDS_CUDA_SUPPORT_H
#define SOTTO_TESTS_BACKENDS_CUDA_SUPPORT_H

#include "backends/cuda_mock.h"

/* Its state; from here on the library finds it under the driver's name. NULL, after telling why: it was not built. */
cuda_mock *cuda_mock_open(void);

#endif
