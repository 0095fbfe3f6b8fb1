/* The CUDA interface by itself, on a real device: kernels against values computed here, copies, replay, events. Skipped
 * without a driver. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/gpu/gpu_api.h"
#include "backends/gpu/kernels/params.h"

extern const st_gpu_api st_gpu_cuda;
static const st_gpu_api *const api = &st_gpu_cuda;

#define OK(call)                            \
    do {                                    \
        sotto_error err_ = {0};             \
        const sotto_status got_ = (call);   \
        if (got_ != SOTTO_OK) {             \
            print_error("%s\n", err_.text); \
            fail();                         \
        }                                   \
    } while (0)
#define ERR (&err_)

typedef struct scene {
    void *device;
    st_buffer buffer[4];
} scene;

static int setup(void **state)
{
    scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    OK(api->open(0, NULL, &s->device, ERR));
    for (int i = 0; i < 4; i++) {
        s->buffer[i].size = 4 << 20;
        OK(api->alloc(s->device, s->buffer[i].size, &s->buffer[i].handle, ERR));
    }
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    scene *s = *state;
    if (!s)
        return 0;
    for (int i = 0; i < 4; i++)
        api->free(s->buffer[i].handle);
    api->close(s->device);
    free(s);
    return 0;
}

static scene *need(void **state)
{
    if (!*state)
        skip();
    return *state;
}

static void put(scene *s, int buffer, const void *data, size_t bytes)
{
    OK(api->write(s->device, s->buffer[buffer].handle, 0, data, bytes, ERR));
}

static void take(scene *s, int buffer, void *out, size_t bytes)
{
    OK(api->read(s->device, s->buffer[buffer].handle, 0, out, bytes, ERR));
}

static st_gpu_launch launch_of(const scene *s, st_gpu_kernel kernel, uint32_t groups, const void *params, size_t bytes,
                               int n_args)
{
    st_gpu_launch l = {.kernel = kernel, .grid = {groups, 1, 1}, .n_param_bytes = (uint32_t)bytes, .n_args = n_args};
    memcpy(l.params, params, bytes);
    for (int i = 0; i < n_args; i++)
        l.arg[i].buffer = &s->buffer[i];
    return l;
}

static struct unary_p scale_params(int n, float a, float b)
{
    return (struct unary_p){.n = n, .dim = {n, 1, 1, 1}, .x_stride = {1}, .y_stride = {1}, .op = 1, .a = a, .b = b};
}

static void test_caps(void **state)
{
    need(state);
    st_gpu_caps caps;
    OK(api->device_caps(0, &caps, ERR));
    print_message("%s: %s, %s, %d units, %llu of %llu bytes free\n", caps.id, caps.name, caps.features, caps.n_units,
                  (unsigned long long)caps.memory_free, (unsigned long long)caps.memory_total);
    assert_string_equal(caps.id, "cuda:0");
    assert_true(caps.memory_free <= caps.memory_total);
    assert_int_equal(caps.subgroup, 32);
}

/* Copies of every size class: smaller and larger than the areas that they go through. */
static void test_copies(void **state)
{
    scene *s = need(state);
    static const size_t sizes[] = {1, 7, 4096, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (4 << 20) - 5};
    unsigned char *from = malloc(4 << 20), *to = malloc(4 << 20);
    assert_true(from && to);
    for (size_t i = 0; i < 4 << 20; i++)
        from[i] = (unsigned char)(i * 2654435761u >> 13);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        OK(api->fill_zero(s->device, s->buffer[0].handle, 0, 4 << 20, ERR));
        OK(api->write(s->device, s->buffer[0].handle, 3, from, sizes[i], ERR));
        OK(api->copy(s->device, s->buffer[1].handle, 5, s->buffer[0].handle, 3, sizes[i], ERR));
        memset(to, 1, 4 << 20);
        OK(api->read(s->device, s->buffer[1].handle, 5, to, sizes[i], ERR));
        assert_memory_equal(from, to, sizes[i]);
    }
    /* many small ones in a row: each has its place until it is copied */
    for (size_t i = 0; i < 40000; i++)
        OK(api->write(s->device, s->buffer[2].handle, i * 4, from + i, 4, ERR));
    take(s, 2, to, 40000 * 4);
    for (size_t i = 0; i < 40000; i++)
        assert_memory_equal(to + i * 4, from + i, 4);
    OK(api->pin(s->device, from, 4 << 20, ERR));
    OK(api->write(s->device, s->buffer[3].handle, 0, from, 4 << 20, ERR));
    api->unpin(s->device, from);
    take(s, 3, to, 4 << 20);
    assert_memory_equal(from, to, 4 << 20);
    free(from);
    free(to);
}

static void test_unary(void **state)
{
    scene *s = need(state);
    enum { N = 1000 };
    float x[N], y[N];
    for (int i = 0; i < N; i++)
        x[i] = (float)(i - 500) * 0.02f;
    put(s, 0, x, sizeof x);
    static const struct {
        int op;
        const char *name;
    } ops[] = {{1, "scale"}, {2, "gelu"}, {3, "silu"}, {4, "relu"}, {5, "sigmoid"}, {6, "tanh"}, {7, "sqrt"}};
    for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++) {
        struct unary_p p = scale_params(N, 1.5f, -0.25f);
        p.op = ops[k].op;
        const st_gpu_launch l = launch_of(s, ST_GPU_unary, (N + 255) / 256, &p, sizeof p, 2);
        OK(api->launch(s->device, &l, 1, ERR));
        take(s, 1, y, sizeof y);
        for (int i = 0; i < N; i++) {
            const double v = x[i];
            const double want[] = {0,
                                   1.5 * v - 0.25,
                                   0.5 * v * (1 + erf(v / sqrt(2))),
                                   v / (1 + exp(-v)),
                                   fmax(v, 0),
                                   1 / (1 + exp(-v)),
                                   tanh(v),
                                   v < 0 ? NAN : sqrt(v)};
            if (isnan(want[ops[k].op]) ? !isnan(y[i])
                                       : !(fabs(y[i] - want[ops[k].op]) <= 2e-6 * fmax(1, fabs(want[ops[k].op])))) {
                print_error("%s(%g) = %g, not %g\n", ops[k].name, v, y[i], want[ops[k].op]);
                fail();
            }
        }
    }
}

static void test_binary(void **state)
{
    scene *s = need(state);
    enum { N = 777 };
    float a[N], b[N], y[N];
    for (int i = 0; i < N; i++)
        a[i] = (float)i * 0.5f, b[i] = 3.0f - (float)i;
    put(s, 0, a, sizeof a);
    put(s, 1, b, sizeof b);
    const struct binary_p p = {.n = N, .dim = {N, 1, 1, 1}, .a_stride = {1}, .b_stride = {1}, .y_stride = {1}, .op = 1};
    const st_gpu_launch l = launch_of(s, ST_GPU_binary, (N + 255) / 256, &p, sizeof p, 3);
    OK(api->launch(s->device, &l, 1, ERR));
    take(s, 2, y, sizeof y);
    for (int i = 0; i < N; i++)
        assert_true(y[i] == a[i] * b[i]);
}

static void test_layer_norm(void **state)
{
    scene *s = need(state);
    enum { ROWS = 5, N = 1280 };
    static float x[ROWS * N], y[ROWS * N], w[N], b[N];
    for (int i = 0; i < ROWS * N; i++)
        x[i] = (float)(i * 7919 % 1009) * 0.01f - 3.0f;
    for (int i = 0; i < N; i++)
        w[i] = 1.0f + (float)i * 0.001f, b[i] = (float)(i % 13);
    put(s, 0, x, sizeof x);
    put(s, 1, w, sizeof w);
    put(s, 2, b, sizeof b);
    const struct rows_p p = {.n = N, .dim1 = ROWS, .dim2 = 1, .x_stride = {1, N}, .y_stride = {1, N}, .a = 1e-5f};
    const st_gpu_launch l = launch_of(s, ST_GPU_layer_norm, ROWS, &p, sizeof p, 4);
    OK(api->launch(s->device, &l, 1, ERR));
    take(s, 3, y, sizeof y);
    for (int r = 0; r < ROWS; r++) {
        double mean = 0, square = 0;
        for (int i = 0; i < N; i++)
            mean += x[r * N + i] / (double)N;
        for (int i = 0; i < N; i++)
            square += (x[r * N + i] - mean) * (x[r * N + i] - mean) / (double)N;
        for (int i = 0; i < N; i++) {
            const double want = (x[r * N + i] - mean) / sqrt(square + 1e-5) * w[i] + b[i];
            assert_true(fabs(y[r * N + i] - want) < 1e-5 * fmax(1, fabs(want)));
        }
    }
}

/* A recorded list is launched again and again and sees what was written in between. */
static void test_replay(void **state)
{
    scene *s = need(state);
    enum { N = 300 };
    float x[N], y[N];
    const struct unary_p p = scale_params(N, 2.0f, 1.0f);
    st_gpu_launch list[3]; /* 0 -> 1 -> 2 -> 3 */
    for (int i = 0; i < 3; i++) {
        list[i] = launch_of(s, ST_GPU_unary, 2, &p, sizeof p, 2);
        list[i].arg[0].buffer = &s->buffer[i];
        list[i].arg[1].buffer = &s->buffer[i + 1];
    }
    void *record = NULL, *event[2];
    OK(api->record(s->device, list, 3, &record, ERR));
    for (int i = 0; i < 2; i++)
        OK(api->event_create(s->device, &event[i], ERR));
    for (int k = 0; k < 5; k++) {
        for (int i = 0; i < N; i++)
            x[i] = (float)(i + k);
        put(s, 0, x, sizeof x);
        OK(api->event_record(s->device, event[0], ERR));
        OK(api->replay(s->device, record, ERR));
        OK(api->event_record(s->device, event[1], ERR));
        take(s, 3, y, sizeof y);
        for (int i = 0; i < N; i++)
            assert_true(y[i] == 8.0f * x[i] + 7.0f);
        double seconds = -1;
        OK(api->event_seconds(s->device, event[0], event[1], &seconds, ERR));
        assert_true(seconds >= 0 && seconds < 1);
    }
    for (int i = 0; i < 2; i++)
        api->event_free(s->device, event[i]);
    api->forget(s->device, record);
    OK(api->sync(s->device, ERR));
}

/* Memory of one opened device is another's as well, and outlives both. */
static void test_two_queues(void **state)
{
    scene *s = need(state);
    void *other = NULL, *memory = NULL, *event = NULL;
    const float x[4] = {1, 2, 3, 4};
    float y[4] = {0};
    OK(api->open(0, NULL, &other, ERR));
    OK(api->alloc(other, sizeof x, &memory, ERR));
    OK(api->write(other, memory, 0, x, sizeof x, ERR));
    OK(api->event_create(other, &event, ERR));
    OK(api->event_record(other, event, ERR));
    OK(api->event_wait(s->device, event, ERR));
    OK(api->read(s->device, memory, 0, y, sizeof y, ERR));
    assert_memory_equal(x, y, sizeof x);
    api->event_free(other, event);
    api->close(other);
    api->free(memory);
}

/* Every kernel that this device can have is in the library and loads. */
static void test_ready(void **state)
{
    scene *s = need(state);
    st_gpu_caps caps;
    OK(api->device_caps(0, &caps, ERR));
    for (int i = 0; i < ST_GPU_KERNEL_COUNT; i++)
        if (caps.has_mma || !strstr(st_gpu_kernels[i].module, "_mma"))
            OK(api->ready(s->device, (st_gpu_kernel)i, ERR));
}

static void test_wrong_calls(void **state)
{
    scene *s = need(state);
    sotto_error err;
    const struct unary_p p = scale_params(4, 1, 0);
    st_gpu_launch l = launch_of(s, ST_GPU_unary, 1, &p, sizeof p, 2);
    l.n_args = 1;
    assert_int_equal(api->launch(s->device, &l, 1, &err), SOTTO_E_INTERNAL);
    assert_non_null(strstr(err.text, "kernel unary: "));
    assert_non_null(strstr(err.text, "bytes and 1 buffers given"));
    void *memory = &err;
    assert_int_equal(api->alloc(s->device, (size_t)1 << 50, &memory, &err), SOTTO_E_MEMORY);
    assert_null(memory);
    void *device = &err;
    assert_int_equal(api->open(99, NULL, &device, &err), SOTTO_E_NOT_FOUND);
    assert_null(device);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_caps),       cmocka_unit_test(test_copies),     cmocka_unit_test(test_unary),
        cmocka_unit_test(test_binary),     cmocka_unit_test(test_layer_norm), cmocka_unit_test(test_replay),
        cmocka_unit_test(test_two_queues), cmocka_unit_test(test_ready),      cmocka_unit_test(test_wrong_calls),
    };
    if (api->device_count() == 0) {
        print_message("there is no CUDA device\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, setup, teardown);
}
