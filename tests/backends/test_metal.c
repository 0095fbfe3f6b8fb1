/* The Metal interface from its table to the numbers, on the stand-in of metal_mock.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backends/gpu/kernels/params.h"
#include "backends/metal_support.h"
#include "base/half.h"

static const st_gpu_api *const api = &st_gpu_metal;

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
        void *device = open_metal(index);
        st_buffer a = metal_buffer(device, sizeof x + 256), b = metal_buffer(device, sizeof y);
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
        void *device = open_metal(0);
        st_buffer bx = metal_buffer(device, sizeof x), bw = metal_buffer(device, sizeof w),
                  bb = metal_buffer(device, sizeof b), by = metal_buffer(device, sizeof y);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_layer_norm),
    };
    return cmocka_run_group_tests(tests, load_mock, NULL);
}
