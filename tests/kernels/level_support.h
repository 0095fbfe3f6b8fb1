/* level_support.h: a check at every level that this machine has, and what such checks are about. */
#ifndef SOTTO_TESTS_KERNELS_LEVEL_SUPPORT_H
#define SOTTO_TESTS_KERNELS_LEVEL_SUPPORT_H

#include "backends/cpu/cpu_attention.h"
#include "backends/cpu/cpu_kernels.h"

/* Whether this machine has a level and SOTTO_TEST_LEVELS names it, as in "v4 amx"; without that, each is named. */
bool level_tested(st_cpu_level level);
/* Calls check with the kernels of each level that is tested, between their enter and leave; prints the seed first. */
void each_level(void (*check)(const st_cpu_kernels *k));
/* A head of random numbers, each operand at a guard page, with rows d + 3 apart, not causal. */
st_cpu_attention guarded_head(int64_t n_q, int64_t n_k, int d, float scale);

#endif
