/* cmocka.h: the part of cmocka's interface that these tests use, for machines that have no cmocka (cross-compiled tests).
 * Our own, and one header: a failed check prints where and leaves the test. */
#ifndef SOTTO_TESTS_CROSS_CMOCKA_H
#define SOTTO_TESTS_CROSS_CMOCKA_H

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*test_func)(void **state);
    int (*setup_func)(void **state);
    int (*teardown_func)(void **state);
    void *initial_state;
};

static jmp_buf shim_leave;
enum { SHIM_PASSED, SHIM_FAILED, SHIM_SKIPPED };

static inline void shim_check(int good, const char *text, const char *file, int line)
{
    if (!good) {
        printf("%s:%d: %s\n", file, line, text);
        longjmp(shim_leave, SHIM_FAILED);
    }
}

static inline double shim_distance(double a, double b)
{
    return a > b ? a - b : b - a;
}

static inline int shim_within(double a, double b, double e)
{
    return a == b || shim_distance(a, b) <= e;
}

#define cmocka_unit_test(f)     \
    {                           \
#f, f, NULL, NULL, NULL \
    }
#define cmocka_unit_test_setup(f, s) \
    {                                \
#f, f, s, NULL, NULL         \
    }
#define cmocka_unit_test_teardown(f, t) \
    {                                   \
#f, f, NULL, t, NULL            \
    }
#define cmocka_unit_test_setup_teardown(f, s, t) \
    {                                            \
#f, f, s, t, NULL                        \
    }
#define cmocka_unit_test_prestate(f, p) \
    {                                   \
#f, f, NULL, NULL, p            \
    }
#define assert_true(c) shim_check((c) ? 1 : 0, "is false: " #c, __FILE__, __LINE__)
#define assert_false(c) shim_check((c) ? 0 : 1, "is true: " #c, __FILE__, __LINE__)
#define assert_non_null(p) shim_check((p) != NULL, "is NULL: " #p, __FILE__, __LINE__)
#define assert_null(p) shim_check((p) == NULL, "is not NULL: " #p, __FILE__, __LINE__)
#define assert_ptr_equal(a, b) \
    shim_check((const void *)(a) == (const void *)(b), "differ: " #a ", " #b, __FILE__, __LINE__)
#define assert_ptr_not_equal(a, b) \
    shim_check((const void *)(a) != (const void *)(b), "are equal: " #a ", " #b, __FILE__, __LINE__)
#define assert_int_equal(a, b) shim_check((uint64_t)(a) == (uint64_t)(b), "differ: " #a ", " #b, __FILE__, __LINE__)
#define assert_int_not_equal(a, b) \
    shim_check((uint64_t)(a) != (uint64_t)(b), "are equal: " #a ", " #b, __FILE__, __LINE__)
#define assert_string_equal(a, b) shim_check(strcmp(a, b) == 0, "differ: " #a ", " #b, __FILE__, __LINE__)
#define assert_string_not_equal(a, b) shim_check(strcmp(a, b) != 0, "are equal: " #a ", " #b, __FILE__, __LINE__)
#define assert_memory_equal(a, b, n) shim_check(memcmp(a, b, n) == 0, "differ: " #a ", " #b, __FILE__, __LINE__)
#define assert_memory_not_equal(a, b, n) shim_check(memcmp(a, b, n) != 0, "are equal: " #a ", " #b, __FILE__, __LINE__)
#define assert_float_equal(a, b, e) shim_check(shim_within(a, b, e), "differ: " #a ", " #b, __FILE__, __LINE__)
#define assert_double_equal(a, b, e) assert_float_equal(a, b, e)
#define assert_in_range(v, low, high)                                                                                \
    shim_check((uint64_t)(v) >= (uint64_t)(low) && (uint64_t)(v) <= (uint64_t)(high), "out of range: " #v, __FILE__, \
               __LINE__)
#define fail() shim_check(0, "failed", __FILE__, __LINE__)
#define fail_msg(...) (printf(__VA_ARGS__), shim_check(0, "failed", __FILE__, __LINE__))
#define skip() longjmp(shim_leave, SHIM_SKIPPED)
#define print_message printf
#define print_error printf

static inline int shim_run(const struct CMUnitTest *tests, size_t n, int (*setup)(void **), int (*teardown)(void **))
{
    static int failed, skipped; /* static: kept over longjmp */
    void *group = NULL;
    if (setup != NULL && setup(&group) != 0) {
        printf("[  FAILED  ] setup of the group\n");
        return 1;
    }
    for (size_t i = 0; i < n; i++) {
        void *volatile state = tests[i].initial_state != NULL ? tests[i].initial_state : group;
        void *seen = state;
        if (tests[i].setup_func != NULL && tests[i].setup_func(&seen) != 0) {
            failed++;
            continue;
        }
        state = seen;
        const int result = setjmp(shim_leave);
        if (result == 0) {
            void *own = state;
            tests[i].test_func(&own);
        } else if (result == SHIM_FAILED) {
            printf("[  FAILED  ] %s\n", tests[i].name);
            failed++;
        } else {
            skipped++;
        }
        void *last = state;
        if (tests[i].teardown_func != NULL)
            tests[i].teardown_func(&last);
    }
    if (teardown != NULL)
        teardown(&group);
    printf("%d tests, %d failed, %d skipped\n", (int)n, failed, skipped);
    return failed;
}

#define cmocka_set_test_filter(pattern) ((void)(pattern)) /* all tests run */
#define cmocka_run_group_tests(tests, setup, teardown) \
    shim_run(tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)
#define cmocka_run_group_tests_name(name, tests, setup, teardown) cmocka_run_group_tests(tests, setup, teardown)

#endif
