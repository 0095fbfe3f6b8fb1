/* test_pool.c: the thread pool: units are taken exactly once, steps come one after another, more threads than cores, jobs that
 * are stopped. Meant to be run under the thread sanitizer too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cpu/pool.h"

enum { STEPS = 50, UNITS = 200, MOST_THREADS = 16 };

/* No locks: what one step writes the next may read, and next() is nobody else's. */
typedef struct counts {
    st_pool *pool;
    int step, n_steps;
    int64_t units[STEPS];      /* of each step */
    int taken[UNITS];          /* of this step, written by whoever took the unit */
    int wrong;                 /* steps that ended too early, or units taken twice */
    int next_of[MOST_THREADS]; /* calls of next() by thread */
    int64_t done;
    _Atomic int runs;
    _Atomic bool stop;
    int stop_in;     /* step in which thread 0 stops; -1: none */
    bool must_enter; /* who runs has entered */
    _Atomic int outside;
} counts;

static _Thread_local int inside;
static _Atomic int n_inside;

static void enter(void)
{
    inside++;
    atomic_fetch_add(&n_inside, 1);
}

static void leave(void)
{
    inside--;
    atomic_fetch_sub(&n_inside, 1);
}

static int64_t next_step(void *arg, int thread)
{
    counts *c = arg;
    c->next_of[thread]++;
    if (c->step >= 0)
        for (int64_t i = 0; i < c->units[c->step]; i++) {
            c->wrong += c->taken[i] != 1;
            c->taken[i] = 0;
            c->done++;
        }
    c->step++;
    return c->step < c->n_steps ? c->units[c->step] : 0;
}

static void run_step(void *arg, int thread)
{
    counts *c = arg;
    int64_t start, n;
    atomic_fetch_add(&c->runs, 1);
    if (c->must_enter && inside != 1)
        atomic_fetch_add(&c->outside, 1);
    if (thread == 0 && c->step == c->stop_in) {
        atomic_store(&c->stop, true);
        return;
    }
    while ((n = st_pool_take(c->pool, thread, 1 + thread % 5, &start)) > 0)
        for (int64_t i = start; i < start + n; i++)
            c->taken[i]++;
}

static void check(int n_threads, int jobs)
{
    st_pool *pool = st_pool_create(n_threads);
    assert_non_null(pool);
    const int n = st_pool_threads(pool);
    assert_in_range(n, 1, n_threads);
    for (int j = 0; j < jobs; j++) {
        counts c = {.pool = pool, .step = -1, .n_steps = STEPS, .stop_in = -1};
        int64_t sum = 0;
        for (int i = 0; i < STEPS; i++)
            sum += c.units[i] = 1 + (i * 37 + j) % UNITS;
        st_pool_run(pool, &(st_job){.arg = &c, .next = next_step, .run = run_step});
        assert_int_equal(c.wrong, 0);
        assert_int_equal(c.done, sum);
        assert_int_equal(c.step, STEPS);
        int calls = 0;
        for (int i = 0; i < n; i++)
            calls += c.next_of[i];
        assert_int_equal(calls, STEPS + 1);
        assert_in_range(c.next_of[0], 1, STEPS + 1);
        assert_in_range(atomic_load(&c.runs), STEPS, STEPS * n);
    }
    st_pool_free(pool);
}

static void every_unit_is_taken_once_in_its_step(void **state)
{
    (void)state;
    check(1, 3);
    check(2, 40);
    check(3, 10);
    check(MOST_THREADS, 4);
}

static void a_stopped_job_ends_where_it_is(void **state)
{
    (void)state;
    for (int n = 1; n <= 4; n++) {
        st_pool *pool = st_pool_create(n);
        assert_non_null(pool);
        for (int i = 0; i < 200; i++) {
            counts c = {.pool = pool, .step = -1, .n_steps = STEPS, .stop_in = i % STEPS};
            for (int k = 0; k < STEPS; k++)
                c.units[k] = 1 + i % 7;
            const st_job job = {.arg = &c, .next = next_step, .run = run_step, .stop = &c.stop};
            st_pool_run(pool, &job);
            /* the others may be done with that step, and the rest, before thread 0 looks */
            assert_true(atomic_load(&c.stop) ? c.step == i % STEPS : c.step == STEPS);
            assert_true(n > 1 || atomic_load(&c.stop));
            assert_int_equal(c.wrong, 0);
        }
        st_pool_free(pool);
    }
}

/* Jobs with and without enter() in turn: who runs one with it has entered, and all have left in the end. */
static void who_runs_has_entered(void **state)
{
    (void)state;
    for (int n = 1; n <= 4; n++) {
        st_pool *pool = st_pool_create(n);
        assert_non_null(pool);
        for (int i = 0; i < 300; i++) {
            counts c = {.pool = pool, .step = -1, .n_steps = 3, .units = {20, 1, 7}, .stop_in = -1};
            st_job job = {.arg = &c, .next = next_step, .run = run_step};
            if (i % 3 < 2) {
                job.enter = enter;
                job.leave = leave;
                c.must_enter = true;
            }
            st_pool_run(pool, &job);
            assert_int_equal(c.wrong, 0);
            assert_int_equal(atomic_load(&c.outside), 0);
            assert_int_equal(inside, 0);
        }
        st_pool_free(pool);
        assert_int_equal(atomic_load(&n_inside), 0);
    }
}

static void empty_jobs_and_pools_without_any(void **state)
{
    (void)state;
    st_pool_free(NULL);
    for (int i = 0; i < 20; i++) { /* freed without, and right after, a job */
        st_pool *pool = st_pool_create(i % 4);
        assert_non_null(pool);
        counts c = {.pool = pool, .step = -1, .n_steps = i % 3, .units = {1, 3}, .stop_in = -1};
        if (i % 2)
            st_pool_run(pool, &(st_job){.arg = &c, .next = next_step, .run = run_step});
        assert_int_equal(c.step, i % 2 ? i % 3 : -1);
        st_pool_free(pool);
    }
}

/* R16 of the reported faults: tiny jobs of pools of different sizes in turn, more threads than cores among them. */
static void many_small_jobs(void **state)
{
    (void)state;
    enum { JOBS = 3000, SIZES = 4 };
    static const int sizes[SIZES] = {1, 2, 3, 7};
    st_pool *pools[SIZES];
    for (int k = 0; k < SIZES; k++)
        assert_non_null(pools[k] = st_pool_create(sizes[k]));
    for (int i = 0; i < JOBS * SIZES; i++) {
        counts c = {.pool = pools[i % SIZES], .step = -1, .n_steps = 1, .units = {1 + i % 9}, .stop_in = -1};
        st_pool_run(c.pool, &(st_job){.arg = &c, .next = next_step, .run = run_step});
        assert_int_equal(c.done, 1 + i % 9);
        assert_int_equal(c.wrong, 0);
    }
    for (int k = 0; k < SIZES; k++)
        st_pool_free(pools[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(empty_jobs_and_pools_without_any),
                                       cmocka_unit_test(every_unit_is_taken_once_in_its_step),
                                       cmocka_unit_test(a_stopped_job_ends_where_it_is),
                                       cmocka_unit_test(who_runs_has_entered), cmocka_unit_test(many_small_jobs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
