/* cmd_bench.h: what the measurements of `sotto bench` share, and those that need no model. */
#ifndef SOTTO_PROGRAMS_CMD_BENCH_H
#define SOTTO_PROGRAMS_CMD_BENCH_H

#include "sotto/backend.h"

/* Of n >= 1 values, which it sorts. */
double cli_bench_median(double *values, size_t n);
/* Products with stored matrices of every type, in the shapes of every size of model, printed as a table or as JSON. */
sotto_status cli_bench_matmul(const sotto_backend_options *options, bool json, sotto_error *err);
/* Bytes a second of reading and copying blocks of 16 KiB to 256 MiB on n_threads threads, each with blocks of its own. */
sotto_status cli_bench_memory(int n_threads, bool json, sotto_error *err);

#endif
