/* test_plan_alloc_fail.c: the whole way from a store to a result with memory running out at every request; and no request
 * at all once a plan has run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "base/status.h"
#include "sotto/backend.h"

typedef struct setup {
    const char *device;
    sotto_backend *backend;
    sotto_store *store;
    sotto_arena *arena;
    sotto_plan *plan;
    sotto_tensor *x, *y;
} setup;

static sotto_graph *build(setup *s, sotto_tensor *w, sotto_status *status)
{
    sotto_graph *g;
    *status = sotto_graph_create("net", &g, NULL);
    if (*status != SOTTO_OK)
        return NULL;
    const int64_t dim[2] = {32, 5}, heads[3] = {8, 4, 5};
    s->x = sotto_graph_input(g, "x", SOTTO_F32, 2, dim);
    sotto_tensor *h = sotto_linear(g, s->x, sotto_graph_use(g, w), NULL, SOTTO_ACT_GELU, s->x);
    sotto_tensor *q = sotto_view_reshape(g, h, 3, heads);
    s->y = sotto_softmax(g, sotto_attention(g, q, q, q, 1, true), NULL, 1);
    sotto_graph_output(g, s->y, "y");
    *status = sotto_graph_finish(g, NULL);
    return g;
}

static sotto_status prepare(setup *s)
{
    static const float zeros[32 * 32];
    const sotto_backend_options o = {.device = s->device, .n_threads = 1};
    const int64_t dim[2] = {32, 32};
    ST_TRY(sotto_backend_open(&o, &s->backend, NULL));
    ST_TRY(sotto_store_create(s->backend, SOTTO_USAGE_WEIGHTS, &s->store, NULL));
    sotto_tensor *w = sotto_store_add(s->store, "w", SOTTO_F16, 2, dim, true);
    ST_TRY(sotto_store_allocate(s->store, NULL));
    ST_TRY(sotto_store_upload(s->store, w, 0, 32, SOTTO_F32, zeros, NULL));
    ST_TRY(sotto_arena_create(s->backend, &s->arena, NULL));
    sotto_status status;
    sotto_graph *g = build(s, w, &status);
    if (status != SOTTO_OK) {
        sotto_graph_free(g);
        return status;
    }
    ST_TRY(sotto_plan_create_take(s->backend, s->arena, g, &s->plan, NULL));
    return sotto_plan_set(s->plan, s->x, 0, zeros, sotto_tensor_bytes(s->x), NULL);
}

static void release(setup *s)
{
    sotto_plan_free(s->plan);
    sotto_arena_free(s->arena);
    sotto_store_free(s->store);
    sotto_backend_free(s->backend);
}

static sotto_status whole(void *device)
{
    setup s = {.device = device};
    sotto_status status = prepare(&s);
    if (status == SOTTO_OK)
        status = sotto_plan_run(s.plan, NULL, NULL);
    release(&s);
    return status;
}

static void every_request_may_fail(void **state)
{
    (void)state;
    for (int i = 0; i < sotto_device_count(); i++) {
        sotto_device_info info;
        assert_int_equal(sotto_device_get(i, &info, NULL), SOTTO_OK);
        assert_in_range(alloc_fail_sweep(whole, info.id), 12, 200);
    }
}

static void a_plan_that_has_run_asks_for_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < sotto_device_count(); i++) {
        sotto_device_info info;
        assert_int_equal(sotto_device_get(i, &info, NULL), SOTTO_OK);
        setup s = {.device = info.id};
        assert_int_equal(prepare(&s), SOTTO_OK);
        assert_int_equal(sotto_plan_run(s.plan, NULL, NULL), SOTTO_OK);
        alloc_fail_at(0, false);
        float data[160] = {0};
        for (int round = 0; round < 10; round++) {
            assert_int_equal(sotto_plan_set(s.plan, s.x, 0, data, sizeof data, NULL), SOTTO_OK);
            assert_int_equal(sotto_plan_run(s.plan, NULL, NULL), SOTTO_OK);
            assert_int_equal(sotto_plan_get(s.plan, s.y, 0, data, sizeof data, NULL), SOTTO_OK);
        }
        assert_int_equal(alloc_fail_count(), 0);
        release(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_may_fail),
        cmocka_unit_test(a_plan_that_has_run_asks_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
