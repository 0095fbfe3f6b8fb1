/* test_sched_alloc_fail.c: a graph over several devices with the host's memory running out at every request; and no request
 * from the second run on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "base/status.h"
#include "runtime/plan_impl.h"
#include "unit/sched_support.h"

static const st_ref_device_config config[2] = {{.asynchronous = true, .offload_rows = 8, .max_size = 12288},
                                               {.asynchronous = true, .no_peer = true}};
static const sotto_backend_options row = {.split = SOTTO_SPLIT_ROW, .device_split = "1,1"};

static sotto_status whole(void *user)
{
    static float out[SCHED_NUMBERS];
    const uint64_t seed = *(const uint64_t *)user;
    sched_machine m;
    sched_world w;
    ST_TRY(sched_try_open(2, seed % 2 ? &row : NULL, config, &m));
    sotto_status status = sched_world_create(&w, m.backend, seed, seed | 1, NULL);
    if (status == SOTTO_OK)
        status = sched_world_build(&w, seed, 20, NULL);
    if (status == SOTTO_OK)
        status = sched_world_run(&w, seed, NULL);
    if (status == SOTTO_OK)
        status = sched_world_read(&w, out, NULL);
    sched_world_free(&w);
    sched_close(&m);
    return status;
}

static void every_request_may_fail(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2; seed++)
        assert_in_range(alloc_fail_sweep(whole, (void *)(uintptr_t)&seed), 30, 3000);
}

/* Weights of i8 on a visit are brought to 8 bits again by the device, which may take a row of memory for it. */
static int scaled_visitors(const sotto_plan *plan)
{
    int n = 0;
    for (int64_t i = 0; i < plan->n_copies; i++)
        n += plan->copies[i].kind == ST_COPY_WEIGHTS && plan->copies[i].to->dtype == SOTTO_I8;
    return n;
}

static void plans_that_have_run_ask_for_nothing(void **state)
{
    (void)state;
    static float out[SCHED_NUMBERS];
    const uint64_t first = sched_seed();
    for (uint64_t seed = first; seed < first + 10; seed++) {
        sched_machine m = sched_open(2, seed % 2 ? &row : NULL, config);
        sched_world w;
        assert_int_equal(sched_world_create(&w, m.backend, seed, seed | 1, NULL), SOTTO_OK);
        assert_int_equal(sched_world_build(&w, seed, 20, NULL), SOTTO_OK);
        for (int i = 0; i < 4; i++) {
            alloc_fail_at(0, false);
            assert_int_equal(sched_world_run(&w, seed, NULL), SOTTO_OK);
            assert_int_equal(sched_world_read(&w, out, NULL), SOTTO_OK);
            if (i > 0) {
                const int asked = (int)alloc_fail_count();
                if (asked > scaled_visitors(w.plan))
                    fail_msg("seed %llu: %d requests in run %d", (unsigned long long)seed, asked, i);
            }
        }
        sched_world_free(&w);
        sched_close(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_may_fail),
        cmocka_unit_test(plans_that_have_run_ask_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
