/* level_support.h: a check at every level that this machine has. */
#ifndef SOTTO_TESTS_KERNELS_LEVEL_SUPPORT_H
#define SOTTO_TESTS_KERNELS_LEVEL_SUPPORT_H

#include "backends/cpu/cpu_kernels.h"

/* Calls check with each level's kernels, between their enter and leave; prints the seed first. */
void each_level(void (*check)(const st_cpu_kernels *k));

#endif
