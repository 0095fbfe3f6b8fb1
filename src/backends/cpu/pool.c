/* pool.c: see pool.h. A waiter spins on an atomic for a while and then sleeps on a condition variable; who
 * changes the atomic wakes sleepers only when there are any. Both sides use sequentially consistent operations on the
 * pair (value, sleepers), so either the waiter sees the new value or the waker sees the sleeper.
 *
 * To be woken takes about 50 microseconds, a third of a layer of a small model; but where another process has the core of the
 * one waited for, that one gets a waiter's core as soon as the waiter sleeps, and spinning only keeps it away. So spins are as
 * long as they have been of use: at barriers every wait that was over while spinning doubles them, and one that was not
 * makes them short. Between regions a wait that would have been over after the longest spin makes the next one so long, unless
 * somebody else wants the core: who spins for long offers it. */
#include "backends/cpu/pool.h"

#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"

enum {
    SHORT_SPIN = 8000, /* nanoseconds */
    BARRIER_SPIN = 100000,
    START_SPIN = 300000,
    LATE = 20000, /* of the next look at the clock: somebody else had the core */
    SPINS = 32    /* between two looks at the clock: a microsecond or less */
};

typedef struct event {
    _Alignas(64) _Atomic uint32_t value;
    _Atomic int sleepers;
    int longest;          /* nanoseconds to spin at most */
    _Atomic int patience; /* now */
    st_mutex mutex;
    st_cond cond;
} event;

typedef struct worker {
    struct st_pool *pool;
    st_thread handle;
    int thread;
} worker;

struct st_pool {
    event start;   /* counts regions */
    event barrier; /* counts barriers passed */
    _Alignas(64) _Atomic int arrived;
    int n_threads;
    bool spins; /* before a waiter sleeps: not when threads outnumber cores, since the one waited for needs the core */
    bool quit;  /* written before start.value is raised */
    void (*fn)(void *arg, int thread);
    void *arg;
    worker *workers;
};

static inline void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool event_init(event *e, int longest)
{
    e->longest = longest;
    atomic_init(&e->value, 0);
    atomic_init(&e->sleepers, 0);
    atomic_init(&e->patience, longest);
    if (!st_mutex_init(&e->mutex))
        return false;
    if (!st_cond_init(&e->cond)) {
        st_mutex_destroy(&e->mutex);
        return false;
    }
    return true;
}

static void event_destroy(event *e)
{
    st_cond_destroy(&e->cond);
    st_mutex_destroy(&e->mutex);
}

/* Whether the value is no longer `seen`, after some spins. */
static bool event_changes(event *e, uint32_t seen)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&e->value, memory_order_acquire) != seen)
            return true;
        pause_cpu();
    }
    return false;
}

static void event_sleep(event *e, uint32_t seen)
{
    st_mutex_lock(&e->mutex);
    atomic_fetch_add(&e->sleepers, 1);
    while (atomic_load(&e->value) == seen)
        st_cond_wait(&e->cond, &e->mutex);
    atomic_fetch_sub(&e->sleepers, 1);
    st_mutex_unlock(&e->mutex);
}

/* Returns once the value is no longer `seen`. */
static void event_wait(event *e, uint32_t seen, bool spins)
{
    if (spins && event_changes(e, seen))
        return;
    const int patience = atomic_load_explicit(&e->patience, memory_order_relaxed);
    const double start = st_time_now();
    double last = start;
    bool crowded = false;
    while (spins && !crowded && last - start < 1e-9 * patience) {
        if (e->longest == START_SPIN && last - start > 1e-9 * SHORT_SPIN)
            st_thread_yield();
        if (event_changes(e, seen)) {
            if (patience < e->longest)
                atomic_store_explicit(&e->patience, 2 * patience, memory_order_relaxed);
            return;
        }
        const double now = st_time_now();
        crowded = now - last > 1e-9 * LATE;
        last = now;
    }
    event_sleep(e, seen);
    const bool soon = e->longest == START_SPIN && !crowded && st_time_now() - start < 1e-9 * START_SPIN;
    atomic_store_explicit(&e->patience, soon ? START_SPIN : SHORT_SPIN, memory_order_relaxed);
}

static void event_raise(event *e)
{
    atomic_fetch_add(&e->value, 1);
    if (atomic_load(&e->sleepers) > 0) {
        st_mutex_lock(&e->mutex);
        st_cond_broadcast(&e->cond);
        st_mutex_unlock(&e->mutex);
    }
}

void st_pool_barrier(st_pool *pool)
{
    st_pool_barrier_then(pool, NULL, NULL);
}

void st_pool_barrier_then(st_pool *pool, void (*fn)(void *arg), void *arg)
{
    if (pool->n_threads == 1) {
        if (fn != NULL)
            fn(arg);
        return;
    }
    const uint32_t seen = atomic_load_explicit(&pool->barrier.value, memory_order_acquire);
    if (atomic_fetch_add_explicit(&pool->arrived, 1, memory_order_acq_rel) + 1 == pool->n_threads) {
        if (fn != NULL)
            fn(arg);
        atomic_store_explicit(&pool->arrived, 0, memory_order_relaxed); /* before anyone can come to the next barrier */
        event_raise(&pool->barrier);
    } else {
        event_wait(&pool->barrier, seen, pool->spins);
    }
}

static void worker_main(void *p)
{
    worker *w = p;
    st_pool *pool = w->pool;
    for (uint32_t seen = 0;; seen++) {
        event_wait(&pool->start, seen, pool->spins);
        if (pool->quit)
            return;
        pool->fn(pool->arg, w->thread);
        st_pool_barrier(pool);
    }
}

st_pool *st_pool_create(int n_threads)
{
    if (n_threads < 1)
        n_threads = 1;
    if (n_threads > ST_POOL_MAX_THREADS)
        n_threads = ST_POOL_MAX_THREADS;
    st_pool *pool = st_alloc_pages(sizeof *pool); /* aligned to a cache line */
    if (pool == NULL)
        return NULL;
    pool->workers = st_calloc((size_t)n_threads, sizeof *pool->workers);
    if (pool->workers == NULL)
        goto no_workers;
    if (!event_init(&pool->start, START_SPIN))
        goto no_start;
    if (!event_init(&pool->barrier, BARRIER_SPIN))
        goto no_barrier;
    atomic_init(&pool->arrived, 0);
    pool->spins = n_threads <= st_thread_cores();
    /* workers read n_threads only after the first region starts, so it may still shrink here */
    pool->n_threads = 1;
    for (int i = 1; i < n_threads; i++) {
        worker *w = &pool->workers[i];
        w->pool = pool;
        w->thread = i;
        if (!st_thread_create(&w->handle, worker_main, w))
            break;
        pool->n_threads++;
    }
    return pool;
no_barrier:
    event_destroy(&pool->start);
no_start:
    st_free(pool->workers);
no_workers:
    st_free_pages(pool, sizeof *pool);
    return NULL;
}

void st_pool_free(st_pool *pool)
{
    if (pool == NULL)
        return;
    pool->quit = true;
    event_raise(&pool->start);
    for (int i = 1; i < pool->n_threads; i++)
        st_thread_join(&pool->workers[i].handle);
    event_destroy(&pool->barrier);
    event_destroy(&pool->start);
    st_free(pool->workers);
    st_free_pages(pool, sizeof *pool);
}

int st_pool_threads(const st_pool *pool)
{
    return pool->n_threads;
}

void st_pool_run(st_pool *pool, void (*fn)(void *arg, int thread), void *arg)
{
    pool->fn = fn;
    pool->arg = arg;
    if (pool->n_threads > 1)
        event_raise(&pool->start);
    fn(arg, 0);
    st_pool_barrier(pool);
}

bool st_work_alloc(st_work *w, int n_threads)
{
    w->n_threads = n_threads;
    w->slice = st_alloc_pages((size_t)n_threads * sizeof *w->slice);
    return w->slice != NULL;
}

void st_work_free(st_work *w)
{
    if (w->slice != NULL)
        st_free_pages(w->slice, (size_t)w->n_threads * sizeof *w->slice);
    w->slice = NULL;
}

void st_work_start(st_work *w, int64_t total)
{
    for (int64_t i = 0; i < w->n_threads; i++) {
        const int64_t share = total / w->n_threads, extra = total % w->n_threads;
        const int64_t first = share * i + (i < extra ? i : extra);
        atomic_store_explicit(&w->slice[i].next, first, memory_order_relaxed);
        w->slice[i].end = first + share + (i < extra ? 1 : 0);
    }
}

int64_t st_work_next(st_work *w, int thread, int64_t most, int64_t *start)
{
    for (int v = 0; v < w->n_threads; v++) {
        st_work_slice *s = &w->slice[(thread + v) % w->n_threads];
        int64_t first = atomic_load_explicit(&s->next, memory_order_relaxed);
        while (first < s->end) {
            int64_t n = v > 0 ? 1 : (s->end - first + 1) / 2;
            if (n > most)
                n = most;
            if (atomic_compare_exchange_weak_explicit(&s->next, &first, first + n, memory_order_relaxed,
                                                      memory_order_relaxed)) {
                *start = first;
                return n;
            }
        }
    }
    return 0;
}
