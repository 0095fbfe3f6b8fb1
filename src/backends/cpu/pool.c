/* pool.c: see pool.h. A waiter spins on an atomic for a while and then sleeps on a condition variable; who
 * changes the atomic wakes sleepers only when there are any. Both sides use sequentially consistent operations on the
 * pair (value, sleepers), so either the waiter sees the new value or the waker sees the sleeper.
 *
 * To be woken takes about 50 microseconds, a third of a layer of a small model; but where another process has the core of the
 * one waited for, that one gets a waiter's core as soon as the waiter sleeps, and spinning only keeps it away. So spins are as
 * long as they have been of use: inside jobs every wait that was over while spinning doubles them, and one that was not
 * makes them short. Between jobs a wait that would have been over after the longest spin makes the next one so long, unless
 * somebody else wants the core: who spins for long offers it.
 *
 * Each opening of a step is a turn. Slices bear the number of their turn, so that a thread which slept through it takes nothing;
 * who has taken a unit may read the job until its units are counted as done, as the step is not over before. */
#include "backends/cpu/pool.h"

#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"

enum {
    SHORT_SPIN = 8000, /* nanoseconds */
    STEP_SPIN = 100000,
    JOB_SPIN = 300000,
    LATE = 20000, /* of the next look at the clock: somebody else had the core */
    SPINS = 32    /* between two looks at the clock: a microsecond or less */
};

typedef enum wait_for { NEXT_STEP, NEXT_JOB } wait_for;
static const int longest[] = {[NEXT_STEP] = STEP_SPIN, [NEXT_JOB] = JOB_SPIN}; /* nanoseconds to spin at most */

typedef struct event {
    _Atomic uint32_t value;
    _Atomic int sleepers;
    _Atomic int patience[2]; /* nanoseconds to spin now, by wait_for */
    st_mutex mutex;
    st_cond cond;
} event;

/* What is one thread's: a line of its own, and the slice that others steal from. */
typedef struct seat {
    _Alignas(64) int64_t done;          /* units taken of this step */
    int64_t held;                       /* of these, one that run() has not been told of yet; -1: none */
    bool empty;                         /* nothing is left to take */
    void (*enter)(void);                /* was called; NULL: nothing was */
    void (*leave)(void);                /* belongs to it */
    _Alignas(64) _Atomic uint64_t next; /* turn << 32 | unit */
    /* turn << 32 | unit behind the last: a sleeper may read one of the two before and one after a new turn */
    _Atomic uint64_t end;
} seat;

typedef struct worker {
    struct st_pool *pool;
    st_thread handle;
    int thread;
} worker;

struct st_pool {
    /* one line: what everybody reads when a step is opened */
    _Alignas(64) int64_t n_units;        /* of the step */
    _Atomic uint32_t last;               /* the turn that was, or will be, the end of a job */
    event turn;                          /* counts openings of steps, and ends of jobs */
    _Alignas(64) _Atomic int64_t n_done; /* units */
    _Alignas(64) const st_job *job;
    int n_threads, n_seats;
    bool spins; /* before a waiter sleeps: not when threads outnumber cores, since the one waited for needs the core */
    _Atomic bool quit;
    seat *seats;
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

static bool event_init(event *e)
{
    atomic_init(&e->value, 0);
    atomic_init(&e->sleepers, 0);
    for (int i = 0; i < 2; i++)
        atomic_init(&e->patience[i], longest[i]);
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
static void event_wait(event *e, uint32_t seen, wait_for what, bool spins)
{
    if (spins && event_changes(e, seen))
        return;
    const int patience = atomic_load_explicit(&e->patience[what], memory_order_relaxed);
    const double start = st_time_now();
    double last = start;
    bool crowded = false;
    while (spins && !crowded && last - start < 1e-9 * patience) {
        if (what == NEXT_JOB && last - start > 1e-9 * SHORT_SPIN)
            st_thread_yield();
        if (event_changes(e, seen)) {
            if (patience < longest[what])
                atomic_store_explicit(&e->patience[what], 2 * patience, memory_order_relaxed);
            return;
        }
        const double now = st_time_now();
        crowded = now - last > 1e-9 * LATE;
        last = now;
    }
    event_sleep(e, seen);
    const bool soon = what == NEXT_JOB && !crowded && st_time_now() - start < 1e-9 * JOB_SPIN;
    atomic_store_explicit(&e->patience[what], soon ? JOB_SPIN : SHORT_SPIN, memory_order_relaxed);
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

/* By thread 0 at first, then by the one that did the last unit: opens the next step, or ends the job. */
static void go_on(st_pool *pool, int thread)
{
    const st_job *job = pool->job;
    const bool stopped = job->stop != NULL && atomic_load(job->stop);
    const int64_t n_units = stopped ? 0 : job->next(job->arg, thread);
    const uint32_t turn = atomic_load(&pool->turn.value) + 1; /* nobody else raises it now */
    if (n_units > 0) {
        for (int64_t i = 0; i < pool->n_threads; i++) {
            const int64_t share = n_units / pool->n_threads, extra = n_units % pool->n_threads;
            const int64_t first = share * i + (i < extra ? i : extra);
            seat *s = &pool->seats[i];
            const uint64_t mark = (uint64_t)turn << 32;
            atomic_store_explicit(&s->end, mark | (uint64_t)(first + share + (i < extra ? 1 : 0)), memory_order_relaxed);
            atomic_store_explicit(&s->next, mark | (uint64_t)first, memory_order_release);
        }
        pool->n_units = n_units;
        atomic_store_explicit(&pool->n_done, 0, memory_order_relaxed);
    } else {
        atomic_store(&pool->last, turn);
    }
    event_raise(&pool->turn);
}

/* What was entered stays so until the thread has nothing to do, or a job that wants something else. */
static void enter(seat *s, void (*in)(void), void (*out)(void))
{
    if (s->enter == in)
        return;
    if (s->enter != NULL && s->leave != NULL)
        s->leave();
    s->enter = in;
    s->leave = out;
    if (in != NULL)
        in();
}

/* From the slices of a turn: how many units, and the first in *start. */
static int64_t take(st_pool *pool, int thread, uint32_t turn, int64_t most, int64_t *start)
{
    for (int v = 0; v < pool->n_threads; v++) {
        seat *s = &pool->seats[(thread + v) % pool->n_threads];
        uint64_t next = atomic_load_explicit(&s->next, memory_order_acquire);
        while (next >> 32 == turn) {
            const uint64_t end = atomic_load_explicit(&s->end, memory_order_relaxed);
            const int64_t first = (uint32_t)next, left = (int64_t)(uint32_t)end - first;
            if (end >> 32 != turn || left <= 0)
                break;
            int64_t n = v > 0 ? 1 : (left + 1) / 2;
            if (n > most)
                n = most;
            if (atomic_compare_exchange_weak_explicit(&s->next, &next, next + (uint64_t)n, memory_order_acquire,
                                                      memory_order_acquire)) {
                *start = first;
                return n;
            }
        }
    }
    return 0;
}

/* More units of the own slice that follow unit `at`. */
static int64_t take_behind(seat *s, int64_t at, int64_t most)
{
    uint64_t next = atomic_load_explicit(&s->next, memory_order_relaxed);
    const int64_t left = (int64_t)(uint32_t)atomic_load_explicit(&s->end, memory_order_relaxed) - (at + 1);
    const int64_t n = (left + 1) / 2 < most ? (left + 1) / 2 : most;
    const bool taken = (uint32_t)next == at + 1 && n > 0 &&
                       atomic_compare_exchange_strong_explicit(&s->next, &next, next + (uint64_t)n,
                                                               memory_order_relaxed, memory_order_relaxed);
    return taken ? n : 0;
}

int64_t st_pool_take(st_pool *pool, int thread, int64_t most, int64_t *start)
{
    seat *s = &pool->seats[thread];
    int64_t n;
    if (s->held >= 0) {
        *start = s->held;
        s->held = -1;
        n = most > 1 ? take_behind(s, *start, most - 1) : 0;
        s->done += n;
        return n + 1;
    }
    /* while this thread has units that are not counted as done the turn stays what it is */
    n = take(pool, thread, atomic_load_explicit(&pool->turn.value, memory_order_relaxed), most, start);
    s->done += n;
    s->empty = n == 0;
    return n;
}

/* One thread's part of the step of a turn, if there is something to take yet. */
static void take_part(st_pool *pool, int thread, uint32_t turn)
{
    seat *s = &pool->seats[thread];
    int64_t unit;
    s->done = take(pool, thread, turn, 1, &unit);
    if (s->done == 0)
        return;
    const st_job *job = pool->job;
    const int64_t n_units = pool->n_units;
    s->held = unit;
    s->empty = false;
    enter(s, job->enter, job->leave);
    job->run(job->arg, thread);
    s->held = -1;
    while (!s->empty) /* after a stop, or where there was nothing to do with them */
        (void)st_pool_take(pool, thread, INT32_MAX, &unit);
    if (atomic_fetch_add(&pool->n_done, s->done) + s->done == n_units)
        go_on(pool, thread);
}

static void worker_main(void *p)
{
    worker *w = p;
    st_pool *pool = w->pool;
    for (;;) {
        const uint32_t turn = atomic_load(&pool->turn.value); /* before anything that is changed before it is raised */
        const bool idle = atomic_load(&pool->last) == turn;
        if (idle)
            enter(&pool->seats[w->thread], NULL, NULL);
        else
            take_part(pool, w->thread, turn);
        if (atomic_load(&pool->quit)) {
            enter(&pool->seats[w->thread], NULL, NULL);
            return;
        }
        if (atomic_load(&pool->turn.value) == turn)
            event_wait(&pool->turn, turn, idle ? NEXT_JOB : NEXT_STEP, pool->spins);
    }
}

void st_pool_run(st_pool *pool, const st_job *job)
{
    pool->job = job;
    enter(&pool->seats[0], job->enter, job->leave);
    go_on(pool, 0);
    for (uint32_t turn; (turn = atomic_load(&pool->turn.value)) != atomic_load(&pool->last);) {
        take_part(pool, 0, turn);
        if (atomic_load(&pool->turn.value) == turn)
            event_wait(&pool->turn, turn, NEXT_STEP, pool->spins);
    }
    enter(&pool->seats[0], NULL, NULL);
}

static void free_memory(st_pool *pool)
{
    if (pool->seats != NULL)
        st_free_pages(pool->seats, (size_t)pool->n_seats * sizeof *pool->seats);
    st_free(pool->workers);
    st_free_pages(pool, sizeof *pool);
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
    pool->n_seats = n_threads;
    pool->seats = st_alloc_pages((size_t)n_threads * sizeof(seat));
    pool->workers = st_calloc((size_t)n_threads, sizeof *pool->workers);
    if (pool->seats == NULL || pool->workers == NULL || !event_init(&pool->turn)) {
        free_memory(pool);
        return NULL;
    }
    atomic_init(&pool->last, 0);
    atomic_init(&pool->n_done, 0);
    atomic_init(&pool->quit, false);
    for (int i = 0; i < n_threads; i++)
        pool->seats[i].held = -1;
    pool->spins = n_threads <= st_thread_cores();
    /* workers read n_threads only inside jobs, so it may still grow here */
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
}

void st_pool_free(st_pool *pool)
{
    if (pool == NULL)
        return;
    atomic_store(&pool->quit, true);
    event_raise(&pool->turn);
    for (int i = 1; i < pool->n_threads; i++)
        st_thread_join(&pool->workers[i].handle);
    event_destroy(&pool->turn);
    free_memory(pool);
}

int st_pool_threads(const st_pool *pool)
{
    return pool->n_threads;
}
