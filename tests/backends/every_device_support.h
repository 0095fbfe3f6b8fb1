/* every_device_support.h: cases run on every device, and on every level of the CPU. */
#ifndef SOTTO_TESTS_BACKENDS_EVERY_DEVICE_SUPPORT_H
#define SOTTO_TESTS_BACKENDS_EVERY_DEVICE_SUPPORT_H

#include "sotto/backend.h"

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

/* Types of rows that a weight may have; the K types and iq4_nl by themselves, since their rows are longer. */
enum { N_WEIGHT_TYPES = 8, N_K_TYPES = 6 };
extern const sotto_dtype weight_types[N_WEIGHT_TYPES], k_types[N_K_TYPES];

typedef void case_fn(sotto_backend *b, sotto_backend *ref);

/* NULL when the machine does not have it; fails the test on any other error. level: of the CPU, or NULL. */
sotto_backend *open_or_null(const char *device, const char *level, int n_threads);
void on_every_device(case_fn *run);

#endif
