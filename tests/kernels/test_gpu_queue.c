/* test_gpu_queue.c: the simulator's table: a queue that begins nothing before it is asked to, lists that are replayed,
 * events, bounds and failures at every call. The first kernels of the list run through it on all four devices. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/gpu/api/sim/sanitizers.h"
#include "backends/gpu/api/sim/sim.h"
#include "backends/gpu/kernels/params.h"
#include "base/alloc.h"
#include "base/thread.h"

/* ---- devices of this program (sim.h) ---- */

static struct {
    st_sim_settings device[ST_SIM_DEVICES];
    int calls, fail_at; /* 0: never */
    sotto_status with;
    int64_t allocated;
} sim;

static sotto_status count_call(int device, const char *name, size_t bytes)
{
    (void)device, (void)name;
    const bool fails = ++sim.calls == sim.fail_at;
    if (!fails)
        sim.allocated += (int64_t)bytes;
    return fails ? sim.with : SOTTO_OK;
}

static void count_freed(int device, size_t bytes)
{
    (void)device;
    sim.allocated -= (int64_t)bytes;
}

const st_sim_settings *st_sim_settings_of(int device)
{
    return &sim.device[device];
}

static int set_up(void **state)
{
    static const int subgroup[ST_SIM_DEVICES] = {32, 8, 16, 64};
    (void)state;
    memset(&sim, 0, sizeof sim);
    for (int i = 0; i < ST_SIM_DEVICES; i++)
        sim.device[i] = (st_sim_settings){.subgroup = subgroup[i],
                                          .order = (st_sim_order)(i % 3),
                                          .has_mma = i == 0,
                                          .max_buffer = i == 3 ? 1 << 20 : 1 << 30,
                                          .local_bytes = 65536};
    return 0;
}

/* ---- helpers ---- */

static const st_gpu_api *const api = &st_gpu_sim;

static void ok(sotto_status status, const sotto_error *err)
{
    if (status != SOTTO_OK)
        fail_msg("%s: %s", sotto_status_name(status), err->text);
}

typedef struct bench {
    void *device;
    sotto_error err;
    st_buffer x, y, w;
} bench;

enum { N = 700, ROW = 300 };

static st_buffer buffer_of(bench *b, size_t bytes)
{
    st_buffer out = {.size = bytes};
    ok(api->alloc(b->device, bytes, &out.handle, &b->err), &b->err);
    return out;
}

static bench begin(int device)
{
    bench b = {0};
    ok(api->open(device, NULL, &b.device, &b.err), &b.err);
    b.x = buffer_of(&b, N * sizeof(float));
    b.y = buffer_of(&b, N * sizeof(float));
    b.w = buffer_of(&b, N * sizeof(float));
    return b;
}

static void end(bench *b)
{
    api->free(b->x.handle);
    api->free(b->y.handle);
    api->free(b->w.handle);
    api->close(b->device);
}

static st_gpu_launch launch_of(st_gpu_kernel kernel, uint32_t x, const void *p, size_t n)
{
    st_gpu_launch l = {.kernel = kernel, .grid = {x, 1, 1}, .n_param_bytes = (uint32_t)n};
    memcpy(l.params, p, n);
    return l;
}

/* y = a x + b, both of n numbers. */
static st_gpu_launch scale(const st_buffer *x, const st_buffer *y, int n, float a, float b)
{
    const struct unary_p p = {
        .n = n, .dim = {n, 1, 1, 1}, .x_stride = {1, n, n, n}, .y_stride = {1, n, n, n}, .op = 1, .a = a, .b = b};
    st_gpu_launch l = launch_of(ST_GPU_unary, (uint32_t)(n + 255) / 256, &p, sizeof p);
    l.n_args = 2;
    l.arg[0].buffer = x;
    l.arg[1].buffer = y;
    return l;
}

static void numbers(float *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)((i * 37) % 101) / 8 - 5;
}

/* ---- kernels ---- */

static void kernels_compute_on_every_device(void **state)
{
    (void)state;
    for (int d = 0; d < api->device_count(); d++) {
        bench b = begin(d);
        float x[N], w[N], y[N];
        numbers(x, N);
        for (int i = 0; i < N; i++)
            w[i] = (float)(i % 7) - 3;
        ok(api->write(b.device, b.x.handle, 0, x, sizeof x, &b.err), &b.err);
        ok(api->write(b.device, b.w.handle, 0, w, sizeof w, &b.err), &b.err);
        st_gpu_launch l = scale(&b.x, &b.y, N, 2, 0.5f);
        ok(api->launch(b.device, &l, 1, &b.err), &b.err);
        ok(api->read(b.device, b.y.handle, 0, y, sizeof y, &b.err), &b.err);
        for (int i = 0; i < N; i++)
            assert_true(y[i] == 2 * x[i] + 0.5f);

        const struct binary_p p = {.n = N,
                                   .dim = {7, 100, 1, 1},
                                   .a_stride = {1, 7, 0, 0},
                                   .b_stride = {1, 0, 0, 0}, /* the first seven for each row */
                                   .y_stride = {1, 7, 0, 0},
                                   .op = 1};
        l = launch_of(ST_GPU_binary, 3, &p, sizeof p);
        l.n_args = 3;
        l.arg[0].buffer = &b.x, l.arg[1].buffer = &b.w, l.arg[2].buffer = &b.y;
        ok(api->launch(b.device, &l, 1, &b.err), &b.err);
        ok(api->read(b.device, b.y.handle, 0, y, sizeof y, &b.err), &b.err);
        for (int i = 0; i < N; i++)
            assert_true(y[i] == x[i] * w[i % 7]);

        const struct rows_p q = {.n = ROW, .dim1 = 2, .dim2 = 1, .x_stride = {1, ROW}, .y_stride = {1, ROW}, .a = 1e-5f};
        l = launch_of(ST_GPU_layer_norm, 2, &q, sizeof q);
        l.n_args = 4;
        l.arg[0].buffer = &b.x, l.arg[1].buffer = &b.w, l.arg[2].buffer = &b.w, l.arg[3].buffer = &b.y;
        l.arg[2].offset = 4 * sizeof(float);
        ok(api->launch(b.device, &l, 1, &b.err), &b.err);
        ok(api->read(b.device, b.y.handle, 0, y, sizeof y, &b.err), &b.err);
        for (int r = 0; r < 2; r++) {
            double mean = 0, squares = 0;
            for (int i = 0; i < ROW; i++)
                mean += x[r * ROW + i] / ROW;
            for (int i = 0; i < ROW; i++)
                squares += (x[r * ROW + i] - mean) * (x[r * ROW + i] - mean);
            for (int i = 0; i < ROW; i++) {
                const double want = (x[r * ROW + i] - mean) / sqrt(squares / ROW + 1e-5) * w[i] + w[i + 4];
                assert_true(fabs(y[r * ROW + i] - want) < 1e-5);
            }
        }
        end(&b);
    }
}

/* ---- the queue ---- */

static void nothing_begins_before_it_is_waited_for(void **state)
{
    (void)state;
    sim.device[1].unified = true;
    bench b = begin(1);
    float x[N];
    numbers(x, N);
    const float *const device_x = api->map(b.x.handle), *const device_y = api->map(b.y.handle);
    assert_non_null(device_x);
    ok(api->write(b.device, b.x.handle, 0, x, sizeof x, &b.err), &b.err);
    const st_gpu_launch l = scale(&b.x, &b.y, N, 1, 1);
    ok(api->launch(b.device, &l, 1, &b.err), &b.err);
    x[3] = 99; /* the host may use its memory again */
    assert_true(isnan(device_x[3]) && isnan(device_y[3]));
    ok(api->sync(b.device, &b.err), &b.err);
    assert_true(device_x[3] == (float)(3 * 37 % 101) / 8 - 5 && device_y[3] == device_x[3] + 1);
    ok(api->fill_zero(b.device, b.y.handle, 4, 8, &b.err), &b.err);
    ok(api->copy(b.device, b.y.handle, 12, b.y.handle, 0, 8, &b.err), &b.err);
    assert_true(device_y[1] != 0);
    float y[5];
    ok(api->read(b.device, b.y.handle, 0, y, sizeof y, &b.err), &b.err);
    assert_true(y[0] == device_x[0] + 1 && y[1] == 0 && y[2] == 0 && y[3] == y[0] && y[4] == 0);
    end(&b);
    set_up(NULL);
    b = begin(1);
    assert_null(api->map(b.x.handle));
    end(&b);
}

static void memory_lives_as_long_as_commands_need_it(void **state)
{
    (void)state;
    bench b = begin(2);
    float x[N], y[N];
    numbers(x, N);
    ok(api->write(b.device, b.x.handle, 0, x, sizeof x, &b.err), &b.err);
    const st_gpu_launch l = scale(&b.x, &b.y, N, 3, 0);
    ok(api->launch(b.device, &l, 1, &b.err), &b.err);
    api->free(b.x.handle);
    b.x.handle = NULL;
    ok(api->read(b.device, b.y.handle, 0, y, sizeof y, &b.err), &b.err);
    assert_true(y[N - 1] == 3 * x[N - 1]);
    end(&b);
}

static void lists_are_replayed(void **state)
{
    (void)state;
    bench b = begin(0);
    float x[N], y[N];
    numbers(x, N);
    ok(api->write(b.device, b.x.handle, 0, x, sizeof x, &b.err), &b.err);
    const st_gpu_launch list[2] = {scale(&b.x, &b.y, N, 1, 1), scale(&b.y, &b.x, N, 2, 0)};
    void *record;
    ok(api->record(b.device, list, 2, &record, &b.err), &b.err);
    for (int i = 0; i < 3; i++)
        ok(api->replay(b.device, record, &b.err), &b.err);
    ok(api->read(b.device, b.x.handle, 0, y, sizeof y, &b.err), &b.err);
    for (int i = 0; i < N; i++)
        assert_true(y[i] == 2 * (2 * (2 * (x[i] + 1) + 1) + 1));
    /* the memory of a buffer has been exchanged */
    st_buffer old = b.y;
    b.y = buffer_of(&b, N * sizeof(float));
    assert_int_equal(api->replay(b.device, record, &b.err), SOTTO_E_DEVICE);
    assert_non_null(strstr(b.err.text, "kernel unary: the memory of buffer 1 is not that of the recording"));
    api->free(old.handle);
    api->forget(b.device, record);
    end(&b);
}

/* Two queues of one device: without the wait, or with the wait in the wrong place, one does not see what the other does. */
static void events_order_queues(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        bench a = begin(0), b = begin(0);
        float x[N], y[N];
        numbers(x, N);
        void *event;
        ok(api->event_create(a.device, &event, &a.err), &a.err);
        ok(api->event_wait(b.device, event, &b.err), &b.err); /* never recorded: nothing to wait for */
        ok(api->write(a.device, a.x.handle, 0, x, sizeof x, &a.err), &a.err);
        ok(api->event_record(a.device, event, &a.err), &a.err);
        const st_gpu_launch l = scale(&a.x, &b.y, N, 1, 0);
        if (how == 0)
            ok(api->event_wait(b.device, event, &b.err), &b.err);
        ok(api->launch(b.device, &l, 1, &b.err), &b.err);
        if (how == 1)
            ok(api->event_wait(b.device, event, &b.err), &b.err);
        ok(api->read(b.device, b.y.handle, 0, y, sizeof y, &b.err), &b.err);
        assert_int_equal(y[5] == x[5], how == 0);
        /* again on the other queue, and with time between */
        void *later;
        double seconds = -1;
        ok(api->event_create(b.device, &later, &b.err), &b.err);
        ok(api->event_record(b.device, event, &b.err), &b.err);
        ok(api->launch(b.device, &l, 1, &b.err), &b.err);
        ok(api->event_record(b.device, later, &b.err), &b.err);
        ok(api->event_seconds(b.device, event, later, &seconds, &b.err), &b.err);
        assert_true(seconds >= 0 && seconds < 60);
        end(&a);
        if (how == 2) { /* an event outlives its queue */
            end(&b);
            bench c = begin(0);
            ok(api->event_wait(c.device, later, &c.err), &c.err);
            b = c;
        }
        api->event_free(b.device, event);
        api->event_free(b.device, later);
        end(&b);
    }
}

/* ---- bounds ---- */

static void expect(bench *b, sotto_status status, sotto_status want, const char *says)
{
    assert_int_equal(status, want);
    if (!strstr(b->err.text, says))
        fail_msg("\"%s\" does not say \"%s\"", b->err.text, says);
}

static void what_is_wrong_is_refused(void **state)
{
    (void)state;
    bench b = begin(3), other = begin(0);
    float x[4] = {0};
    void *m;
    expect(&b, api->alloc(b.device, (1 << 20) + 1, &m, &b.err), SOTTO_E_MEMORY,
           "sim:3: a buffer of 1048577 bytes, at most 1048576");
    assert_null(m);
    expect(&b, api->write(b.device, b.x.handle, N * 4 - 15, x, 16, &b.err), SOTTO_E_DEVICE,
           "16 bytes at 2785 in a buffer of 2800");
    expect(&b, api->read(b.device, b.x.handle, SIZE_MAX, x, 16, &b.err), SOTTO_E_DEVICE, "read()");
    expect(&b, api->copy(b.device, b.x.handle, 0, other.x.handle, 0, 4, &b.err), SOTTO_E_UNSUPPORTED,
           "sim:3: copy() of memory of sim:0");
    st_gpu_launch l = scale(&b.x, &b.y, N, 1, 0);
    l.grid[1] = 0;
    expect(&b, api->launch(b.device, &l, 1, &b.err), SOTTO_E_DEVICE, "a grid of 3 x 0 x 1");
    l.grid[1] = 65536;
    expect(&b, api->launch(b.device, &l, 1, &b.err), SOTTO_E_DEVICE, "a grid of 3 x 65536 x 1");
    l = scale(&b.x, &other.y, N, 1, 0);
    expect(&b, api->launch(b.device, &l, 1, &b.err), SOTTO_E_UNSUPPORTED, "launch() of memory of sim:0");
    l = scale(&b.x, &b.y, N, 1, 0);
    l.n_args = 1;
    expect(&b, api->launch(b.device, &l, 1, &b.err), SOTTO_E_DEVICE, "1 buffers, expected");
    l = scale(&b.x, &b.y, N, 1, 0);
    l.n_param_bytes -= 4;
    expect(&b, api->launch(b.device, &l, 1, &b.err), SOTTO_E_DEVICE, "kernel unary:");
    l = scale(&b.x, &b.y, N, 1, 0);
    l.arg[1].buffer = NULL;
    expect(&b, api->launch(b.device, &l, 1, &b.err), SOTTO_E_DEVICE, "buffer 1 has no memory");
    l = scale(&b.x, &b.y, N, 1, 0);
    l.arg[1].offset = N * 4 + 1;
    expect(&b, api->launch(b.device, &l, 1, &b.err), SOTTO_E_DEVICE, "at 2801 in a buffer of 2800");
    expect(&b, api->ready(b.device, ST_GPU_gemm_mma_f16, &b.err), SOTTO_E_UNSUPPORTED, "needs matrix units");
    ok(api->ready(other.device, ST_GPU_gemm_mma_f16, &b.err), &b.err);
    end(&b);
    end(&other);
}

/* Found when the queue runs, told once; what stood behind it has not run; then all is well again. */
static void a_kernel_that_writes_too_far_is_found(void **state)
{
    (void)state;
    bench b = begin(0);
    float y[1];
    st_gpu_launch list[2] = {scale(&b.x, &b.y, N, 1, 0), scale(&b.w, &b.w, 1, 0, 5)};
    list[0].arg[1].offset = 4; /* the last number goes behind the end */
    if (!ST_SIM_ASAN) {        /* which would end the program */
        ok(api->launch(b.device, list, 2, &b.err), &b.err);
        expect(&b, api->sync(b.device, &b.err), SOTTO_E_DEVICE,
               "kernel unary wrote behind the end of buffer 1 of 2800 bytes");
        ok(api->read(b.device, b.w.handle, 0, y, sizeof y, &b.err), &b.err);
        assert_true(isnan(y[0]));
    }
    ok(api->fill_zero(b.device, b.w.handle, 0, 4, &b.err), &b.err);
    ok(api->launch(b.device, list + 1, 1, &b.err), &b.err);
    ok(api->read(b.device, b.w.handle, 0, y, sizeof y, &b.err), &b.err);
    assert_true(y[0] == 5);
    end(&b);
}

/* ---- failures ---- */

static sotto_status everything(sotto_error *err)
{
    void *device = NULL, *record = NULL, *event = NULL;
    st_buffer x = {0}, y = {0};
    float data[N] = {0};
    st_gpu_caps caps;
    sotto_status s = api->device_caps(2, &caps, err);
    if (s == SOTTO_OK)
        s = api->open(2, NULL, &device, err);
    if (s == SOTTO_OK)
        s = api->alloc(device, sizeof data, &x.handle, err);
    if (s == SOTTO_OK)
        s = api->alloc(device, sizeof data, &y.handle, err);
    if (s == SOTTO_OK)
        s = api->event_create(device, &event, err);
    if (s == SOTTO_OK)
        s = api->write(device, x.handle, 0, data, sizeof data, err);
    const st_gpu_launch l = scale(&x, &y, N, 1, 7);
    if (s == SOTTO_OK)
        s = api->ready(device, ST_GPU_unary, err);
    if (s == SOTTO_OK)
        s = api->launch(device, &l, 1, err);
    if (s == SOTTO_OK)
        s = api->event_record(device, event, err);
    if (s == SOTTO_OK)
        s = api->record(device, &l, 1, &record, err);
    if (s == SOTTO_OK)
        s = api->replay(device, record, err);
    if (s == SOTTO_OK)
        s = api->event_wait(device, event, err);
    if (s == SOTTO_OK)
        s = api->fill_zero(device, x.handle, 0, 4, err);
    if (s == SOTTO_OK)
        s = api->copy(device, x.handle, 0, y.handle, 0, 8, err);
    if (s == SOTTO_OK)
        s = api->sync(device, err);
    if (s == SOTTO_OK)
        s = api->read(device, x.handle, 0, data, sizeof data, err);
    if (s == SOTTO_OK)
        assert_true(data[0] == 7 && data[1] == 7 && data[2] == 0);
    if (event)
        api->event_free(device, event);
    if (record)
        api->forget(device, record);
    api->free(x.handle);
    api->free(y.handle);
    api->close(device);
    return s;
}

static void every_call_may_fail(void **state)
{
    (void)state;
    sim.device[2].call = count_call;
    sim.device[2].freed = count_freed;
    sotto_error err;
    ok(everything(&err), &err);
    const int n = sim.calls;
    assert_int_equal(n, 16);
    for (int with = 0; with < 2; with++)
        for (int i = 1; i <= n; i++) {
            sim.calls = 0;
            sim.fail_at = i;
            sim.with = with ? SOTTO_E_DEVICE : SOTTO_E_MEMORY;
            assert_int_equal(everything(&err), sim.with);
            assert_non_null(strstr(err.text, "sim:2: "));
            assert_int_equal(sim.allocated, 0);
            sim.fail_at = 0;
            ok(everything(&err), &err);
        }
}

/* ---- threads ---- */

static void work(void *arg)
{
    int *const wrong = arg;
    for (int round = 0; round < 20; round++) {
        bench b = begin(round % ST_SIM_DEVICES);
        float x[N], y[N];
        numbers(x, N);
        st_gpu_launch l = scale(&b.x, &b.y, N, 2, (float)round);
        *wrong += api->write(b.device, b.x.handle, 0, x, sizeof x, &b.err) != SOTTO_OK;
        *wrong += api->launch(b.device, &l, 1, &b.err) != SOTTO_OK;
        *wrong += api->read(b.device, b.y.handle, 0, y, sizeof y, &b.err) != SOTTO_OK;
        for (int i = 0; i < N; i++)
            *wrong += y[i] != 2 * x[i] + (float)round;
        end(&b);
    }
}

static void threads_have_queues_of_their_own(void **state)
{
    (void)state;
    st_thread thread[3];
    int wrong[3] = {0};
    for (int i = 0; i < 3; i++)
        assert_true(st_thread_create(&thread[i], work, &wrong[i]));
    for (int i = 0; i < 3; i++)
        st_thread_join(&thread[i]);
    for (int i = 0; i < 3; i++)
        assert_int_equal(wrong[i], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(kernels_compute_on_every_device, set_up),
        cmocka_unit_test_setup(nothing_begins_before_it_is_waited_for, set_up),
        cmocka_unit_test_setup(memory_lives_as_long_as_commands_need_it, set_up),
        cmocka_unit_test_setup(lists_are_replayed, set_up),
        cmocka_unit_test_setup(events_order_queues, set_up),
        cmocka_unit_test_setup(what_is_wrong_is_refused, set_up),
        cmocka_unit_test_setup(a_kernel_that_writes_too_far_is_found, set_up),
        cmocka_unit_test_setup(every_call_may_fail, set_up),
        cmocka_unit_test_setup(threads_have_queues_of_their_own, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
