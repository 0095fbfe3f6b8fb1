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

/* ---- R01, R02: plans of one arena ---- */

/* Plans A and B share an arena and caches; A, B, A, A, B. */
static void alternate(sched_machine *m, uint64_t seed, uint64_t places, float out[5][SCHED_NUMBERS])
{
    static const int turns[5] = {0, 1, 0, 0, 1};
    sched_world w[2];
    sotto_error err = {0};
    ok(sched_world_create(&w[0], m->backend, seed, places, &err), &err);
    w[1] = w[0];
    for (int i = 0; i < 2; i++)
        ok(sched_world_build(&w[i], seed + (uint64_t)i, 25, &err), &err);
    for (int t = 0; t < 5; t++) {
        if (places)
            ok(sotto_plan_allocate(w[turns[t]].plan, &err), &err);
        if (places)
            ok(st_arena_poison(w[0].arena, &err), &err);
        ok(sched_world_run(&w[turns[t]], seed + (uint64_t)t, &err), &err);
        ok(sched_world_read(&w[turns[t]], out[t], &err), &err);
    }
    sotto_plan_free(w[1].plan);
    sotto_graph_free(w[1].graph);
    sched_world_free(&w[0]);
}

static void plans_take_turns_on_several_devices(void **state)
{
    (void)state;
    static float want[5][SCHED_NUMBERS], got[5][SCHED_NUMBERS];
    for (uint64_t seed = sched_seed(); seed < sched_seed() + 20; seed++) {
        const st_ref_device_config config[2] = {{.asynchronous = true}, {.asynchronous = true, .no_peer = seed % 2}};
        sched_machine one = sched_open(0, NULL, NULL), two = sched_open(2, NULL, config);
        alternate(&one, seed, 0, want);
        alternate(&two, seed, seed | 1, got);
        for (int t = 0; t < 5; t++)
            compare(got[t], want[t], seed, "a turn");
        sched_close(&one);
        sched_close(&two);
    }
}

/* ---- large batches ---- */

static int64_t weights_on_a_visit(bool no_offload, int64_t offload_rows, uint64_t seed, float *out)
{
    const st_ref_device_config config = {.asynchronous = true, .offload_rows = offload_rows};
    const sotto_backend_options o = {.gpu_layers = SOTTO_LAYERS_NONE, .no_offload = no_offload};
    sched_machine m = sched_open(1, &o, &config);
    sched_world w;
    sotto_error err = {0};
    ok(sched_world_create(&w, m.backend, seed, 0, &err), &err); /* all on the host */
    assert_true(sotto_store_device_bytes(w.weights, 0) == 0);
    ok(sched_world_build(&w, seed, 30, &err), &err);
    int64_t n = 0;
    for (int64_t i = 0; i < w.plan->n_copies; i++)
        n += w.plan->copies[i].kind == ST_COPY_WEIGHTS;
    ok(sched_world_run(&w, seed, &err), &err);
    ok(sched_world_read(&w, out, &err), &err);
    sched_world_free(&w);
    sched_close(&m);
    return n;
}

static void long_products_leave_the_host(void **state)
{
    (void)state;
    static float want[2][SCHED_NUMBERS], got[SCHED_NUMBERS];
    int64_t n = 0;
    for (uint64_t seed = sched_seed(); seed < sched_seed() + 10; seed++) {
        expected(seed, 30, want);
        n += weights_on_a_visit(false, 1, seed, got);
        compare(got, want[0], seed, "with offloaded products");
        assert_int_equal(weights_on_a_visit(true, 1, seed, got), 0);
        assert_int_equal(weights_on_a_visit(false, SCHED_ROWS + 1, seed, got), 0);
        compare(got, want[0], seed, "on the host");
    }
    assert_true(n > 10);
}

/* ---- R05: the caller's graph ---- */

/* Sum of all that a graph says, but for addresses that are its own to choose. */
static uint64_t fingerprint(const sotto_graph *g)
{
    uint64_t h = (uint64_t)g->n_node * 31 + (uint64_t)g->n_leaf;
    for (int i = 0; i < g->n_node + g->n_leaf; i++) {
        const sotto_tensor *t = i < g->n_node ? g->node[i] : g->leaf[i - g->n_node];
        const unsigned char *bytes = (const unsigned char *)t;
        for (size_t k = 0; k < sizeof *t; k++)
            h = h * 1099511628211u + bytes[k];
    }
    return h;
}

static void one_graph_serves_two_plans(void **state)
{
    (void)state;
    static float want[SCHED_NUMBERS], got[SCHED_NUMBERS];
    const uint64_t seed = sched_seed();
    const sotto_backend_options o = {.split = SOTTO_SPLIT_ROW};
    for (int row = 0; row < 2; row++) {
        sched_machine m = sched_open(3, row ? &o : NULL, NULL);
        sched_world w, other;
        sotto_error err = {0};
        ok(sched_world_create(&w, m.backend, seed, seed | 1, &err), &err);
        ok(sched_world_build(&w, seed, 30, &err), &err);
        const uint64_t before = fingerprint(w.graph);
        other = w;
        ok(sotto_arena_create(m.backend, &other.arena, &err), &err);
        ok(sotto_plan_create(m.backend, other.arena, w.graph, &other.plan, &err), &err);
        ok(sotto_store_clear(w.cache, &err), &err);
        ok(sched_world_run(&w, seed, &err), &err);
        ok(sched_world_read(&w, want, &err), &err);
        for (int i = 0; i < 2; i++) {
            ok(sotto_store_clear(w.cache, &err), &err);
            ok(sched_world_run(i ? &w : &other, seed, &err), &err);
            ok(sched_world_read(i ? &w : &other, got, &err), &err);
            compare(got, want, seed, i ? "the first plan again" : "the other plan");
        }
        assert_true(fingerprint(w.graph) == before);
        sotto_plan_free(other.plan);
        sotto_arena_free(other.arena);
        sched_world_free(&w);
        sched_close(&m);
    }
}

/* ---- R06: an operation missing where the cache is ---- */

static void caches_on_a_device_that_cannot_use_them(void **state)
{
    (void)state;
    static float want[2][SCHED_NUMBERS], got[SCHED_NUMBERS];
    const st_ref_device_config config[2] = {
        {.lacks = 1u << ST_OP_SET_ROWS | 1u << ST_OP_CACHE_ATTENTION | 1u << ST_OP_GET_ROWS | 1u << ST_OP_COPY}};
    for (uint64_t seed = sched_seed(); seed < sched_seed() + 20; seed++) {
        expected(seed, 30, want);
        sched_machine m = sched_open(2, NULL, config);
        m.backend->kv = 0;
        sched_world w;
        sotto_error err = {0};
        ok(sched_world_create(&w, m.backend, seed, 0, &err), &err); /* all on device 0 */
        assert_true(sotto_store_device_bytes(w.cache, 0) == sotto_store_bytes(w.cache));
        ok(sched_world_build(&w, seed, 30, &err), &err);
        for (int i = 0; i < 2; i++) {
            ok(sched_world_run(&w, seed + (uint64_t)i, &err), &err);
            ok(sched_world_read(&w, got, &err), &err);
            compare(got, want[i], seed, "a cache elsewhere");
        }
        sched_world_free(&w);
        sched_close(&m);
    }
}

/* ---- R18: failures ---- */

/* Everything once with a failure under way; then again without, as far back as was lost. */
static void with_failure(sched_machine *m, uint64_t seed, const float want[2][SCHED_NUMBERS], int at)
{
    static float got[SCHED_NUMBERS];
    sched_world w;
    sotto_error err = {0};
    const int device = at % 2, n = at / 2 + 1;
    sched_fail_at(m, device, n);
    sotto_status status = sched_world_create(&w, m->backend, seed, seed | 1, &err);
    if (status == SOTTO_OK)
        status = sched_world_build(&w, seed, 20, &err);
    for (int i = 0; i < 2 && status == SOTTO_OK; i++) {
        status = sched_world_run(&w, seed + (uint64_t)i, &err);
        if (status == SOTTO_OK)
            status = sched_world_read(&w, got, &err);
        if (status == SOTTO_OK)
            compare(got, want[i], seed, "although a call failed");
    }
    if (status != SOTTO_OK) {
        assert_true(status == SOTTO_E_MEMORY || status == SOTTO_E_DEVICE);
        assert_true(strstr(err.text, "as asked to") != NULL);
    }
    sched_fail_at(m, device, 0);
    if (!w.plan) {
        sched_world_free(&w);
        ok(sched_world_create(&w, m->backend, seed, seed | 1, &err), &err);
        ok(sched_world_build(&w, seed, 20, &err), &err);
    }
    ok(sotto_store_clear(w.cache, &err), &err);
    ok(sched_world_run(&w, seed, &err), &err);
    ok(sched_world_read(&w, got, &err), &err);
    compare(got, want[0], seed, "after a failure");
    sched_world_free(&w);
}

static void any_call_may_fail(void **state)
{
    (void)state;
    static float want[2][SCHED_NUMBERS];
    const uint64_t seed = sched_seed();
    const st_ref_device_config config[2] = {{.asynchronous = true, .max_size = 12288}, {.asynchronous = true}};
    int at = 0, calls = 0;
    expected(seed, 20, want);
    do {
        sched_machine m = sched_open(2, NULL, config);
        with_failure(&m, seed, (const float(*)[SCHED_NUMBERS])want, at);
        calls = sched_calls(&m);
        sched_close(&m);
    } while (++at < 2 * calls && at < 1200);
    assert_true(at > 80);
}

static void too_little_memory_is_an_error(void **state)
{
    (void)state;
    static float got[SCHED_NUMBERS], want[2][SCHED_NUMBERS];
    const uint64_t seed = sched_seed();
    const st_ref_device_config config = {.memory = 150000};
    expected(seed, 20, want);
    sched_machine m = sched_open(1, NULL, &config);
    sched_world w;
    sotto_error err = {0};
    sotto_status status = sched_world_create(&w, m.backend, seed, 0, &err);
    if (status == SOTTO_OK)
        status = sched_world_build(&w, seed, 20, &err);
    if (status == SOTTO_OK)
        status = sched_world_run(&w, seed, &err);
    if (status != SOTTO_OK) {
        assert_int_equal(status, SOTTO_E_MEMORY);
        assert_non_null(strstr(err.text, "private:0"));
    }
    st_ref_device_configure(m.backend->device[0].state)->memory = 0;
    if (!w.plan) {
        sched_world_free(&w);
        ok(sched_world_create(&w, m.backend, seed, 0, &err), &err);
        ok(sched_world_build(&w, seed, 20, &err), &err);
    }
    ok(sched_world_run(&w, seed, &err), &err);
    ok(sched_world_read(&w, got, &err), &err);
    compare(got, want[0], seed, "with enough memory");
    sched_world_free(&w);
    sched_close(&m);
}

/* ---- submitting ---- */

static void inputs_may_be_set_while_a_run_is_under_way(void **state)
{
    (void)state;
    const st_ref_device_config config = {.asynchronous = true};
    sched_machine m = sched_open(1, NULL, &config);
    sotto_arena *arena;
    sotto_graph *g;
    sotto_plan *p;
    sotto_error err = {0};
    const int64_t n[1] = {4};
    ok(sotto_arena_create(m.backend, &arena, &err), &err);
    ok(sotto_graph_create("g", &g, &err), &err);
    sotto_tensor *x = sotto_graph_input(g, "x", SOTTO_F32, 1, n), *y = sotto_scale(g, x, 10, 0);
    sotto_graph_output(g, y, "y");
    ok(sotto_graph_finish(g, &err), &err);
    ok(sotto_plan_create_take(m.backend, arena, g, &p, &err), &err);
    for (int i = 1; i < 5; i++) {
        const float now[4] = {(float)i, 0, 0, (float)i}, then[2] = {-1, -2};
        float got[4];
        ok(sotto_plan_set(p, x, 0, now, sizeof now, &err), &err);
        ok(sotto_plan_submit(p, NULL, &err), &err);
        ok(sotto_plan_set(p, x, 4, then, sizeof then, &err), &err); /* for the next run */
        ok(sotto_plan_get(p, y, 0, got, sizeof got, &err), &err);
        assert_true(got[0] == 10.0f * (float)i && got[1] == 0 && got[2] == 0 && got[3] == got[0]);
        ok(sotto_plan_wait(p, &err), &err);
        ok(sotto_plan_submit(p, NULL, &err), &err);
        ok(sotto_plan_submit(p, NULL, &err), &err); /* waits for the last */
        ok(sotto_plan_get(p, y, 0, got, sizeof got, &err), &err);
        assert_true(got[0] == 10.0f * (float)i && got[1] == -10 && got[2] == -20 && got[3] == got[0]);
    }
    sotto_plan_free(p);
    sotto_arena_free(arena);
    sched_close(&m);
}

/* ---- dumps ---- */

static void collect(void *user, const char *text, size_t n)
{
    char *all = user;
    const size_t at = strlen(all);
    if (at + n < 65536) {
        memcpy(all + at, text, n);
        all[at + n] = 0;
    }
}

static void note_split(void *user, const sotto_trace_split *s)
{
    sotto_trace_split *sum = user;
    assert_true(s->copy_seconds >= 0 && s->compute_seconds >= 0 && s->index == sum->index);
    sum->index++;
    sum->n_nodes += s->n_nodes;
    sum->n_copies += s->n_copies;
    sum->copied_bytes += s->copied_bytes;
}

static void what_was_decided_can_be_read(void **state)
{
    (void)state;
    static char text[65536];
    const uint64_t seed = 5;
    sched_machine m = sched_open(2, NULL, NULL);
    sched_world w;
    sotto_error err = {0};
    ok(sched_world_create(&w, m.backend, seed, seed, &err), &err);
    ok(sched_world_build(&w, seed, 30, &err), &err);
    text[0] = 0;
    ok(sotto_plan_describe(w.plan, collect, text, &err), &err);
    static const char *const parts[] = {"plan of graph \"world\"",
                                        "assigned:",
                                        "its weights",
                                        "splits:",
                                        "before:",
                                        "memory:",
                                        "private:1",
                                        "reference"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(text, parts[i]))
            fail_msg("no \"%s\" in: %s", parts[i], text);
    ok(sched_world_run(&w, seed, &err), &err);
    sotto_trace_split sum = {0};
    const sotto_run_options o = {.trace_user = &sum, .trace_split = note_split};
    ok(sotto_plan_run(w.plan, &o, &err), &err);
    assert_int_equal(sum.index, w.plan->n_segments);
    assert_int_equal(sum.n_nodes, w.plan->graph->n_node);
    assert_int_equal(sum.n_copies, w.plan->n_copies);
    assert_true(sum.copied_bytes > 0);
    uint64_t bytes = 0;
    for (int d = 0; d < sotto_backend_device_count(m.backend); d++)
        bytes += sotto_plan_device_bytes(w.plan, d);
    assert_true(bytes == sotto_plan_bytes(w.plan));
    sched_world_free(&w);
    sched_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_split_gives_the_same),
        cmocka_unit_test(plans_take_turns_on_several_devices),
        cmocka_unit_test(long_products_leave_the_host),
        cmocka_unit_test(one_graph_serves_two_plans),
        cmocka_unit_test(caches_on_a_device_that_cannot_use_them),
        cmocka_unit_test(any_call_may_fail),
        cmocka_unit_test(too_little_memory_is_an_error),
        cmocka_unit_test(inputs_may_be_set_while_a_run_is_under_way),
        cmocka_unit_test(what_was_decided_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
