/* pool.h: a persistent pool of threads that runs one function on all of them, with barriers inside, and work shared out
 * in pieces. The caller of st_pool_run is thread 0. One region at a time; one owner. */
#ifndef SOTTO_SRC_BACKENDS_CPU_POOL_H
#define SOTTO_SRC_BACKENDS_CPU_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { ST_POOL_MAX_THREADS = 1024 };

typedef struct st_pool st_pool;

/* NULL without memory. When the system refuses threads the pool has fewer, at least the caller's own. */
st_pool *st_pool_create(int n_threads);
void st_pool_free(st_pool *pool);
int st_pool_threads(const st_pool *pool);

/* Calls fn(arg, thread) once on every thread and returns when all are done. What was written before is seen by all, and
 * what they wrote is seen after. */
void st_pool_run(st_pool *pool, void (*fn)(void *arg, int thread), void *arg);
/* Inside a region: waits until every thread of the pool has come here. Spins briefly, then sleeps. */
void st_pool_barrier(st_pool *pool);
/* The same, and the thread that comes last calls fn(arg) before anyone goes on: what is too little to be shared out costs
 * no barrier of its own. fn may be NULL. */
void st_pool_barrier_then(st_pool *pool, void (*fn)(void *arg), void *arg);

/* `total` pieces shared out: each thread takes from its own contiguous slice (so that the same rows meet the same caches
 * from one operation to the next), in blocks that shrink towards the end, then steals from the others. */
typedef struct st_work_slice {
    _Alignas(64) _Atomic int64_t next;
    int64_t end;
} st_work_slice;

typedef struct st_work {
    st_work_slice *slice; /* one for each thread, from st_work_alloc */
    int n_threads;
} st_work;

bool st_work_alloc(st_work *w, int n_threads);
void st_work_free(st_work *w);
/* By one thread, before a barrier that the takers pass. */
void st_work_start(st_work *w, int64_t total);
/* Takes up to `most` pieces: their number, and the first in *start. 0 when all are taken. */
int64_t st_work_next(st_work *w, int thread, int64_t most, int64_t *start);

#endif
