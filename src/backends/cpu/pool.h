/* pool.h: a persistent pool of threads that does jobs: steps one after another, each cut into units that the threads take.
 *
 * A step is over when its units are done, not when every thread has come: one that is kept from its core by another process
 * takes nothing, and nobody waits for it. The caller of st_pool_run is thread 0. One job at a time; one owner. */
#ifndef SOTTO_SRC_BACKENDS_CPU_POOL_H
#define SOTTO_SRC_BACKENDS_CPU_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { ST_POOL_MAX_THREADS = 1024 };

typedef struct st_pool st_pool;

typedef struct st_job {
    void *arg;
    /* By one thread, thread 0 for the first step and then the one that ended the step before: does what is too little to be
     * shared out, and says how many units the next step has, below 2^31; 0: there is none. */
    int64_t (*next)(void *arg, int thread);
    /* By every thread that finds units left: takes them until there are none. Units that it leaves count as done. */
    void (*run)(void *arg, int thread);
    /* On each thread before and, sooner or later, after what it does of the job; NULL: nothing to do. */
    void (*enter)(void);
    void (*leave)(void);
    /* NULL, or what ends the job with this step when it has become true. */
    _Atomic bool *stop;
} st_job;

/* NULL without memory. When the system refuses threads the pool has fewer, at least the caller's own. */
st_pool *st_pool_create(int n_threads);
void st_pool_free(st_pool *pool);
int st_pool_threads(const st_pool *pool);

/* Does a job. What was written before is seen by all, and what they wrote is seen after; so it is from step to step. */
void st_pool_run(st_pool *pool, const st_job *job);
/* Inside run(): takes up to `most` units of the step: their number, and the first in *start. 0 when all are taken. Each thread
 * takes from its own contiguous slice (so that the same rows meet the same caches from one step to the next), in blocks that
 * shrink towards the end, then steals from the others. */
int64_t st_pool_take(st_pool *pool, int thread, int64_t most, int64_t *start);

#endif
