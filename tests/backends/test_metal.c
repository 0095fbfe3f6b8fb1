/* The Metal interface from its table to the numbers, on the stand-in of metal_mock.c. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backends/gpu/api/metal/metal.h"
#include "backends/gpu/kernels/params.h"
#include "backends/metal_mock.h"
#include "base/half.h"

static metal_mock *mock_state;
static const st_gpu_api *const api = &st_gpu_metal;

static void *open_device(int index)
{
    sotto_error err = {0};
    void *device = NULL;
    if (api->open(index, NULL, &device, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    return device;
}

/* Nothing wrong was done, and everything was given back. */
static void assert_clean(void)
{
    if (mock_state->problem[0])
        fail_msg("%s", mock_state->problem);
    assert_int_equal(mock_state->n_alive, 0);
}

static st_buffer buffer_of(void *device, size_t bytes)
{
    sotto_error err = {0};
    st_buffer b = {.size = bytes};
    if (api->alloc(device, bytes, &b.handle, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    return b;
}

static st_gpu_launch launch_of(st_gpu_kernel kernel, uint32_t x, const void *params, size_t bytes)
{
    st_gpu_launch l = {.kernel = kernel, .grid = {x, 1, 1}, .n_param_bytes = (uint32_t)bytes};
    memcpy(l.params, params, bytes);
    return l;
}

static void add_buffer(st_gpu_launch *l, const st_buffer *b, uint64_t offset)
{
    l->arg[l->n_args].buffer = b;
    l->arg[l->n_args++].offset = offset;
}

static st_gpu_launch unary_launch(const st_buffer *x, uint64_t x_at, const st_buffer *y, uint64_t y_at, int n, int op,
                                  float a, float b)
{
    const struct unary_p p = {.n = n, .dim = {n, 1, 1, 1}, .x_stride = {1}, .y_stride = {1}, .op = op, .a = a, .b = b};
    st_gpu_launch l = launch_of(ST_GPU_unary, (uint32_t)(n + 255) / 256, &p, sizeof p);
    add_buffer(&l, x, x_at);
    add_buffer(&l, y, y_at);
    return l;
}

static void must(sotto_status status, const sotto_error *err)
{
    if (status != SOTTO_OK)
        fail_msg("%s", err->text);
}

static void test_devices(void **state)
{
    (void)state;
    st_gpu_caps caps;
    sotto_error err = {0};
    assert_int_equal(api->device_count(), 2);
    must(api->device_caps(0, &caps, &err), &err);
    assert_string_equal(caps.id, "metal:0");
    assert_string_equal(caps.name, "Apple M3 (mock)");
    assert_string_equal(caps.features, "apple9 simdgroup-matrix unified-memory");
    assert_int_equal(caps.memory_total, 12ull << 30);
    assert_int_equal(caps.memory_free, 11ull << 30);
    assert_true(caps.unified && caps.has_mma && caps.is_gpu);
    assert_int_equal(caps.local_bytes, 32768);
    must(api->device_caps(1, &caps, &err), &err);
    assert_false(caps.unified);
    assert_string_equal(caps.features, "apple7 simdgroup-matrix");
    assert_int_equal(api->device_caps(2, &caps, &err), SOTTO_E_NOT_FOUND);
    assert_string_equal(err.text, "metal:2: there are 2 devices of the family Apple7 or later");
    void *device = &err;
    assert_int_equal(api->open(7, NULL, &device, &err), SOTTO_E_NOT_FOUND);
    assert_null(device);
    assert_clean();
}

/* gelu, then a + b, with offsets, in one list */
static void test_elements(void **state)
{
    (void)state;
    enum { N = 1000 };
    sotto_error err = {0};
    float x[N], y[N];
    for (int i = 0; i < N; i++)
        x[i] = (float)(i - 500) / 83;
    for (int index = 0; index < 2; index++) {
        void *device = open_device(index);
        st_buffer a = buffer_of(device, sizeof x + 256), b = buffer_of(device, sizeof y);
        must(api->write(device, a.handle, 256, x, sizeof x, &err), &err);
        st_gpu_launch list[2];
        list[0] = unary_launch(&a, 256, &b, 0, N, 2, 0, 0);
        const struct binary_p p = {.n = N, .dim = {N, 1, 1, 1}, .a_stride = {1}, .b_stride = {1}, .y_stride = {1}};
        list[1] = launch_of(ST_GPU_binary, (N + 255) / 256, &p, sizeof p);
        add_buffer(&list[1], &b, 0);
        add_buffer(&list[1], &a, 256);
        add_buffer(&list[1], &b, 0);
        must(api->launch(device, list, 2, &err), &err);
        must(api->read(device, b.handle, 0, y, sizeof y, &err), &err);
        for (int i = 0; i < N; i++) {
            const double v = 0.5 * x[i] * (1 + erf(x[i] * sqrt(0.5))) + x[i];
            assert_true(fabs(y[i] - v) <= 1e-6 * (1 + fabs(v)));
        }
        api->free(a.handle);
        api->free(b.handle);
        api->close(device);
        assert_clean();
    }
}

static void test_layer_norm(void **state)
{
    (void)state;
    enum { ROWS = 5, N = 333 };
    sotto_error err = {0};
    float x[ROWS * N], w[N], b[N];
    uint16_t y[ROWS * N];
    for (int i = 0; i < ROWS * N; i++)
        x[i] = (float)(i * 7919 % 1009) / 100 - 4;
    for (int i = 0; i < N; i++)
        w[i] = 1 + (float)i / N, b[i] = (float)(i % 5);
    for (mock_state->order = 0; mock_state->order < 3; mock_state->order++) {
        void *device = open_device(0);
        st_buffer bx = buffer_of(device, sizeof x), bw = buffer_of(device, sizeof w), bb = buffer_of(device, sizeof b),
                  by = buffer_of(device, sizeof y);
        must(api->write(device, bx.handle, 0, x, sizeof x, &err), &err);
        must(api->write(device, bw.handle, 0, w, sizeof w, &err), &err);
        must(api->write(device, bb.handle, 0, b, sizeof b, &err), &err);
        const struct rows_p p = {.n = N,
                                 .dim1 = ROWS,
                                 .dim2 = 1,
                                 .x_stride = {1, N},
                                 .y_stride = {1, N},
                                 .y_type = SOTTO_F16,
                                 .has_weight = 1,
                                 .has_bias = 1,
                                 .a = 1e-5f};
        st_gpu_launch l = launch_of(ST_GPU_layer_norm, ROWS, &p, sizeof p);
        add_buffer(&l, &bx, 0);
        add_buffer(&l, &bw, 0);
        add_buffer(&l, &bb, 0);
        add_buffer(&l, &by, 0);
        void *record;
        must(api->record(device, &l, 1, &record, &err), &err);
        must(api->replay(device, record, &err), &err);
        must(api->replay(device, record, &err), &err);
        must(api->read(device, by.handle, 0, y, sizeof y, &err), &err);
        api->forget(device, record);
        for (int r = 0; r < ROWS; r++) {
            double mean = 0, square = 0;
            for (int i = 0; i < N; i++)
                mean += (double)x[r * N + i] / N;
            for (int i = 0; i < N; i++)
                square += (x[r * N + i] - mean) * (x[r * N + i] - mean) / N;
            for (int i = 0; i < N; i++) {
                const double v = (x[r * N + i] - mean) / sqrt(square + 1e-5) * w[i] + b[i];
                assert_true(fabs(st_f16_to_f32(y[r * N + i]) - v) <= 6e-4 * (1 + fabs(v)));
            }
        }
        api->free(bx.handle);
        api->free(bw.handle);
        api->free(bb.handle);
        api->free(by.handle);
        api->close(device);
        assert_clean();
    }
    mock_state->order = 0;
}

static int load_mock(void **state)
{
    (void)state;
    void *const objc = dlopen(SOTTO_BUILD_DIR "/metal_mock/libobjc.A.dylib", RTLD_NOW);
    if (!objc || !dlopen(SOTTO_BUILD_DIR "/metal_mock/libMetal.dylib", RTLD_NOW)) {
        fprintf(stderr, "%s\n", dlerror());
        return -1;
    }
    mock_state = dlsym(objc, "metal_mock_state");
    return mock_state ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_layer_norm),
    };
    return cmocka_run_group_tests(tests, load_mock, NULL);
}
