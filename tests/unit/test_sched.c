/* test_sched.c: one graph on several devices gives what it gives on one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "runtime/plan_impl.h"
#include "unit/sched_support.h"

static void ok(sotto_status status, const sotto_error *err)
{
    if (status != SOTTO_OK)
        fail_msg("%s: %s", sotto_status_name(status), err->text);
}

/* What the world of this seed gives on one device, for two inputs in turn. */
static void expected(uint64_t seed, int n_ops, float out[2][SCHED_NUMBERS])
{
    sched_machine m = sched_open(0, NULL, NULL);
    sched_world w;
    sotto_error err = {0};
    ok(sched_world_create(&w, m.backend, seed, 0, &err), &err);
    ok(sched_world_build(&w, seed, n_ops, &err), &err);
    for (int i = 0; i < 2; i++) {
        ok(sched_world_run(&w, seed + (uint64_t)i, &err), &err);
        ok(sched_world_read(&w, out[i], &err), &err);
    }
    sched_world_free(&w);
    sched_close(&m);
}

static void compare(const float *got, const float *want, uint64_t seed, const char *what)
{
    for (int i = 0; i < SCHED_NUMBERS; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-5f * (1 + fabsf(want[i]))))
            fail_msg("%s, seed %llu: number %d is %g, expected %g", what, (unsigned long long)seed, i, (double)got[i],
                     (double)want[i]);
}

static void draw_machine(uint64_t *random, int n, st_ref_device_config *config)
{
    const bool asynchronous = sched_random(random) % 3 != 0;
    for (int i = 0; i < n; i++) {
        config[i] = (st_ref_device_config){.asynchronous = asynchronous && sched_random(random) % 4 != 0,
                                           .no_peer = sched_random(random) % 3 == 0,
                                           .offload_rows = sched_random(random) % 2 ? 8 : 0};
        if (sched_random(random) % 3 == 0)
            config[i].lacks = 1u << sched_random(random) % ST_OP_COUNT;
        if (sched_random(random) % 3 == 0)
            config[i].straight = 1u << sched_random(random) % ST_OP_COUNT;
        if (sched_random(random) % 4 == 0)
            config[i].max_size = 12288;
    }
}

static void any_split_gives_the_same(void **state)
{
    (void)state;
    enum { ROUNDS = 300 };
    static float want[2][SCHED_NUMBERS], got[SCHED_NUMBERS];
    const uint64_t first = sched_seed();
    st_ref_device_counts all = {0};
    int64_t n_segments = 0, n_weights = 0;
    for (uint64_t seed = first; seed < first + ROUNDS; seed++) {
        uint64_t random = seed * 7919;
        const int n = 1 + (int)(sched_random(&random) % 4), n_ops = 4 + (int)(sched_random(&random) % 40);
        st_ref_device_config config[4];
        draw_machine(&random, n, config);
        expected(seed, n_ops, want);
        const sotto_backend_options o = {.split = sched_random(&random) % 3 == 0 ? SOTTO_SPLIT_ROW : SOTTO_SPLIT_LAYER,
                                         .no_offload = sched_random(&random) % 2};
        sched_machine m = sched_open(n, &o, config);
        sched_world w;
        sotto_error err = {0};
        ok(sched_world_create(&w, m.backend, seed, random | 1, &err), &err);
        ok(sched_world_build(&w, seed, n_ops, &err), &err);
        ok(sotto_plan_allocate(w.plan, &err), &err);
        ok(st_arena_poison(w.arena, &err), &err);
        for (int i = 0; i < 2; i++) {
            ok(sched_world_run(&w, seed + (uint64_t)i, &err), &err);
            ok(sched_world_read(&w, got, &err), &err);
            compare(got, want[i], seed, i ? "second run" : "first run");
        }
        n_segments += w.plan->n_segments;
        for (int64_t i = 0; i < w.plan->n_copies; i++)
            n_weights += w.plan->copies[i].kind == ST_COPY_WEIGHTS;
        for (int i = 0; i < n; i++) {
            const st_ref_device_counts *c = st_ref_device_count(m.backend->device[i].state);
            all.copied += c->copied;
            all.peer_bytes += c->peer_bytes;
            all.waits += c->waits;
        }
        sched_world_free(&w);
        sched_close(&m);
    }
    /* or nothing was tested */
    assert_true(n_segments > 5 * ROUNDS && n_weights > ROUNDS / 4 && all.waits > ROUNDS);
    assert_true(all.peer_bytes > 1000 * ROUNDS && all.copied > 2 * all.peer_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_split_gives_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
