/* sched_support.h: random networks with weights and caches on any devices, to be compared with the same on one. */
#ifndef SOTTO_TESTS_UNIT_SCHED_SUPPORT_H
#define SOTTO_TESTS_UNIT_SCHED_SUPPORT_H

#include "reference/ref_device.h"
#include "runtime/runtime_impl.h"

enum { SCHED_WIDTH = 64, SCHED_ROWS = 40, SCHED_CELLS = 48, SCHED_WEIGHTS = 8, SCHED_CACHES = 3, SCHED_OUTPUTS = 4 };

/* n private devices and the reference behind them. */
typedef struct sched_machine {
    sotto_backend *backend;
    int n; /* private devices */
} sched_machine;

sched_machine sched_open(int n, const sotto_backend_options *options, const st_ref_device_config *config);
/* For machines that may not come to be: out of memory. */
sotto_status sched_try_open(int n, const sotto_backend_options *options, const st_ref_device_config *config,
                            sched_machine *out);
void sched_close(sched_machine *m); /* checks that no buffer is left */
int sched_calls(const sched_machine *m);
/* The n-th call of all devices, counted together, fails. */
void sched_fail_at(const sched_machine *m, int device, int n);

typedef struct sched_world {
    sotto_backend *backend;
    sotto_store *weights, *cache;
    sotto_tensor *matrix[SCHED_WEIGHTS], *bias[SCHED_WEIGHTS], *table, *cells[SCHED_CACHES];
    sotto_arena *arena;
    sotto_graph *graph;
    sotto_plan *plan;
    sotto_tensor *x, *rows, *base, *n_kv, *unused, *y[SCHED_OUTPUTS];
    int n_rows;
} sched_world;

/* Declares and fills what is stored, on devices drawn from `places` (0 = all on device 0). Same seed, same numbers. */
sotto_status sched_world_create(sched_world *w, sotto_backend *b, uint64_t seed, uint64_t places, sotto_error *err);
/* A random graph of some operations, and its plan. */
sotto_status sched_world_build(sched_world *w, uint64_t seed, int n_ops, sotto_error *err);
sotto_status sched_world_run(sched_world *w, uint64_t inputs, sotto_error *err);
/* All outputs into out (SCHED_OUTPUTS * SCHED_ROWS * SCHED_WIDTH numbers). */
sotto_status sched_world_read(sched_world *w, float *out, sotto_error *err);
void sched_world_free(sched_world *w);

enum { SCHED_NUMBERS = SCHED_OUTPUTS * SCHED_ROWS * SCHED_WIDTH };

uint64_t sched_seed(void);
uint32_t sched_random(uint64_t *state);

#endif
