/* cmd_bench.h: what the measurements of `sotto bench` share, and those that need no model. */
#ifndef SOTTO_PROGRAMS_CMD_BENCH_H
#define SOTTO_PROGRAMS_CMD_BENCH_H

#include "common/llm.h"
#include "common/text.h"

/* Of n >= 1 values, which it sorts. */
double cli_bench_median(double *values, size_t n);
/* A name that ends in the unit as JSON has it, and a line of a table with the unit behind the number. */
typedef struct cli_bench_value {
    const char *key;
    double value;
} cli_bench_value;
void cli_bench_line(cli_text *out, const cli_bench_value *v);
/* Products with stored matrices of every type, in the shapes of every size of model, printed as a table or as JSON. */
sotto_status cli_bench_matmul(const sotto_backend_options *options, bool json, sotto_error *err);
/* Bytes a second of reading and copying blocks of 16 KiB to 256 MiB on n_threads threads, each with blocks of its own. */
sotto_status cli_bench_memory(int n_threads, bool json, sotto_error *err);

/* Bytes a second that n_threads read together, the median of many passes, each its part of a block that is gone over again and again as
 * weights are: of `bytes`, and of a GiB, which is more than most caches hold (a part of the machine's memory at most). */
typedef struct cli_bench_rates {
    double of_bytes, of_much;
} cli_bench_rates;
sotto_status cli_bench_bandwidth(int n_threads, double bytes, cli_bench_rates *out);

/* What is measured of a model that writes text: lists of numbers with commas between. */
typedef struct cli_bench_text_args {
    const char *prompt, *generate, *depth;
    int64_t runs;
    bool json;
} cli_bench_text_args;
/* CLI_OK, or CLI_USAGE after a message. */
int cli_bench_text_check(const cli_bench_text_args *args);
/* Tokens a second of prompts and of generation, as llama-bench measures them, and what memory they need; prints. `threads`:
 * those in use. Returns an exit code, after a message when something failed. */
int cli_bench_text(const cli_bench_text_args *args, const cli_llm_args *llm, const char *path, int threads);

#endif
