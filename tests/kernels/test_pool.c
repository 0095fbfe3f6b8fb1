/* test_pool.c: the thread pool: every thread runs, barriers order, work is taken exactly once, more threads than cores.
 * Meant to be run under the thread sanitizer too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cpu/pool.h"

enum { STEPS = 50, PIECES = 200 };

typedef struct job {
    st_pool *pool;
    st_work work;
    int *taken; /* [PIECES], written by whoever took the piece */
    int total[STEPS];
    int calls[64];
} job;

static void region(void *arg, int thread)
{
    job *j = arg;
    j->calls[thread]++;
    for (int step = 0; step < STEPS; step++) {
        if (thread == 0)
            st_work_start(&j->work, PIECES);
        st_pool_barrier(j->pool);
        int64_t start, n;
        while ((n = st_work_next(&j->work, thread, 5, &start)) > 0)
            for (int64_t i = start; i < start + n; i++)
                j->taken[i]++;
        st_pool_barrier(j->pool);
        if (thread == 0)
            for (int i = 0; i < PIECES; i++)
                j->total[step] += j->taken[i];
        st_pool_barrier(j->pool);
    }
}

static void check(int n_threads, int regions)
{
    job j;
    memset(&j, 0, sizeof j);
    j.pool = st_pool_create(n_threads);
    assert_non_null(j.pool);
    const int n = st_pool_threads(j.pool);
    assert_in_range(n, 1, n_threads);
    assert_true(st_work_alloc(&j.work, n));
    j.taken = calloc(PIECES, sizeof *j.taken);
    for (int r = 0; r < regions; r++) {
        memset(j.total, 0, sizeof j.total);
        st_pool_run(j.pool, region, &j);
        for (int step = 0; step < STEPS; step++)
            assert_int_equal(j.total[step], PIECES * (r * STEPS + step + 1));
    }
    for (int i = 0; i < PIECES; i++)
        assert_int_equal(j.taken[i], regions * STEPS);
    for (int i = 0; i < n; i++)
        assert_int_equal(j.calls[i], regions);
    free(j.taken);
    st_work_free(&j.work);
    st_pool_free(j.pool);
}

static void test_pool(void **state)
{
    (void)state;
    check(1, 3);
    check(2, 20);
    check(3, 5);
    check(16, 2);
}

/* No lock: only the last thread to come to a barrier counts, and all see it afterwards. */
typedef struct tally {
    st_pool *pool;
    int count;
    int seen_wrong[64];
} tally;

static void count_one(void *arg)
{
    ((tally *)arg)->count++;
}

static void tally_region(void *arg, int thread)
{
    tally *t = arg;
    for (int step = 0; step < STEPS; step++) {
        st_pool_barrier_then(t->pool, count_one, t);
        t->seen_wrong[thread] += t->count != step + 1;
        st_pool_barrier(t->pool);
    }
}

static void test_barrier_then(void **state)
{
    (void)state;
    for (int n = 1; n <= 4; n++) {
        tally t = {.pool = st_pool_create(n)};
        assert_non_null(t.pool);
        st_pool_run(t.pool, tally_region, &t);
        assert_int_equal(t.count, STEPS);
        for (int i = 0; i < n; i++)
            assert_int_equal(t.seen_wrong[i], 0);
        st_pool_free(t.pool);
    }
}

static void test_work(void **state)
{
    (void)state;
    for (int n = 1; n <= 7; n++) {
        st_work w;
        assert_true(st_work_alloc(&w, n));
        for (int64_t total = 0; total < 40; total++) {
            int seen[40] = {0};
            int64_t start, got, sum = 0;
            st_work_start(&w, total);
            for (int t = 0; (got = st_work_next(&w, t % n, 1 + t % 4, &start)) > 0; t++) {
                assert_in_range(got, 1, 1 + t % 4);
                for (int64_t i = start; i < start + got; i++)
                    seen[i]++;
                sum += got;
            }
            assert_int_equal(sum, total);
            for (int64_t i = 0; i < total; i++)
                assert_int_equal(seen[i], 1);
        }
        st_work_free(&w);
    }
}

static void nothing(void *arg, int thread)
{
    (void)arg;
    (void)thread;
}

static void test_create(void **state)
{
    (void)state;
    st_pool_free(NULL);
    for (int i = 0; i < 20; i++) { /* freed without, and right after, a region */
        st_pool *pool = st_pool_create(i % 4);
        assert_non_null(pool);
        if (i % 2)
            st_pool_run(pool, nothing, NULL);
        st_pool_free(pool);
    }
}

static void count(void *arg, int thread)
{
    ((int *)arg)[16 * thread]++;
}

/* R16 of the reported faults: tiny regions of pools of different sizes in turn, more threads than cores among them. */
static void test_many_small_regions(void **state)
{
    (void)state;
    enum { REGIONS = 3000, SIZES = 4 };
    static const int sizes[SIZES] = {1, 2, 3, 7};
    st_pool *pools[SIZES];
    int calls[SIZES][16 * 7] = {{0}};
    for (int k = 0; k < SIZES; k++)
        assert_non_null(pools[k] = st_pool_create(sizes[k]));
    for (int i = 0; i < REGIONS * SIZES; i++)
        st_pool_run(pools[i % SIZES], count, calls[i % SIZES]);
    for (int k = 0; k < SIZES; k++) {
        for (int t = 0; t < st_pool_threads(pools[k]); t++)
            assert_int_equal(calls[k][16 * t], REGIONS);
        st_pool_free(pools[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_work), cmocka_unit_test(test_create),
                                       cmocka_unit_test(test_pool), cmocka_unit_test(test_barrier_then),
                                       cmocka_unit_test(test_many_small_regions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
