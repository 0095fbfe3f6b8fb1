/* guard_support.h: memory that ends at a page without access, so that a read or write past the end is a crash, and
 * seeded random numbers. */
#ifndef SOTTO_TESTS_KERNELS_GUARD_SUPPORT_H
#define SOTTO_TESTS_KERNELS_GUARD_SUPPORT_H

#include <stddef.h>
#include <stdint.h>

/* `bytes` zero bytes directly before an inaccessible page. Freed by guard_free_all. */
void *guard_alloc(size_t bytes);
void guard_free_all(void);

/* The seed is in SOTTO_TEST_SEED or the time; printed when it is chosen, in case of a crash, and at the end, below what failed. */
uint64_t test_seed(void);
/* Uniform in [-1, 1). */
float test_random(void);
uint32_t test_random_bits(void);
/* Floats that end at a guard page: mostly of order 1, some tiny, some denormal, some zero. */
float *guard_floats(size_t n);

#endif
