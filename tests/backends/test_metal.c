/* The Metal interface from its table to the numbers, on the stand-in of metal_mock.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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
        const struct rows_p p = {
            .n = N, .dim1 = ROWS, .dim2 = 1, .x_stride = {1, N}, .y_stride = {1, N}, .y_type = SOTTO_F16, .a = 1e-5f};
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

/* Numbers that halves hold exactly, in a store of both. */
static void halves(uint16_t *h, float *f, int n, int seed)
{
    for (int i = 0; i < n; i++) {
        f[i] = (float)((i * 37 + i / 11 * 5 + seed) % 33 - 16) / 8;
        h[i] = st_f32_to_f16(f[i]);
    }
}

static void run_product(st_gpu_kernel kernel, int tile, int m, int n, int k)
{
    sotto_error err = {0};
    uint16_t *hx = calloc((size_t)(m * k), 2), *hw = calloc((size_t)(n * k), 2);
    float *x = calloc((size_t)(m * k), 4), *w = calloc((size_t)(n * k), 4), *y = calloc((size_t)(m * n), 4);
    halves(hx, x, m * k, 1);
    halves(hw, w, n * k, 2);
    void *device = open_metal(0);
    st_buffer bx = metal_buffer(device, (size_t)(m * k) * 2), bw = metal_buffer(device, (size_t)(n * k) * 2),
              by = metal_buffer(device, (size_t)(m * n) * 4), bias = metal_buffer(device, (size_t)n * 4);
    must(api->write(device, bx.handle, 0, hx, bx.size, &err), &err);
    must(api->write(device, bw.handle, 0, hw, bw.size, &err), &err);
    must(api->write(device, bias.handle, 0, w, bias.size, &err), &err);
    const struct product_p p = {.m = m,
                                .n = n,
                                .k = k,
                                .batch2 = 1,
                                .x_type = SOTTO_F16,
                                .x_len = m * k,
                                .x_row = k,
                                .x_wide = 1,
                                .w_wide = 1,
                                .w_row = k,
                                .y_type = SOTTO_F32,
                                .y_row = n,
                                .has_bias = 1};
    st_gpu_launch l = launch_of(kernel, (uint32_t)((n + tile - 1) / tile), &p, sizeof p);
    l.grid[1] = (uint32_t)((m + tile - 1) / tile);
    add_buffer(&l, &bx, 0);
    add_buffer(&l, &bw, 0);
    add_buffer(&l, &bw, 0);
    add_buffer(&l, &bias, 0);
    add_buffer(&l, &bx, 0);
    add_buffer(&l, &by, 0);
    must(api->launch(device, &l, 1, &err), &err);
    must(api->read(device, by.handle, 0, y, by.size, &err), &err);
    for (int r = 0; r < m; r++)
        for (int c = 0; c < n; c++) {
            double v = w[c], size = fabs(v);
            for (int i = 0; i < k; i++) {
                v += (double)x[r * k + i] * w[c * k + i];
                size += fabs((double)x[r * k + i] * w[c * k + i]);
            }
            if (fabs(y[r * n + c] - v) > 1e-6 * size)
                fail_msg("%s, %d x %d x %d: [%d, %d] is %g, expected %g", st_gpu_kernels[kernel].name, m, n, k, r, c,
                         (double)y[r * n + c], v);
        }
    api->free(bx.handle), api->free(bw.handle), api->free(by.handle), api->free(bias.handle);
    api->close(device);
    free(hx), free(hw), free(x), free(w), free(y);
    assert_clean();
}

/* The matrices of 8 x 8, with their lanes as Metal has them; tiles with ragged ends. */
static void test_products_on_tiles(void **state)
{
    (void)state;
    for (mock_state->order = 0; mock_state->order < 3; mock_state->order++) {
        run_product(ST_GPU_gemm_mma_f16, 128, 131, 130, 40);
        run_product(ST_GPU_gemm_mma_small_f16, 64, 70, 9, 24);
    }
    mock_state->order = 0;
    run_product(ST_GPU_gemm_mma_small_f16, 64, 1, 1, 8);
}

static void run_attention(st_gpu_kernel kernel, int d, int n_q, int n_k, int causal)
{
    enum { H = 2 };
    sotto_error err = {0};
    const int row = H * d;
    const size_t n_in = (size_t)((n_q + 2 * n_k) * row), n_out = (size_t)(n_q * row);
    uint16_t *half = calloc(n_in, 2);
    float *f = calloc(n_in, 4), *y = calloc(n_out, 4);
    double *weight = calloc((size_t)n_k, sizeof *weight);
    halves(half, f, (int)n_in, 3);
    void *device = open_metal(0);
    st_buffer in = metal_buffer(device, n_in * 2), out = metal_buffer(device, n_out * 4);
    must(api->write(device, in.handle, 0, half, in.size, &err), &err);
    const float scale = 0.125f;
    const struct attention_p p = {.n_q = n_q,
                                  .n_k = n_k,
                                  .h = H,
                                  .h_kv = H,
                                  .d = d,
                                  .q_type = SOTTO_F16,
                                  .q_row = row,
                                  .q_head = d,
                                  .k_type = SOTTO_F16,
                                  .k_row = row,
                                  .k_head = d,
                                  .v_type = SOTTO_F16,
                                  .v_row = row,
                                  .v_head = d,
                                  .y_type = SOTTO_F32,
                                  .y_row = row,
                                  .causal = causal,
                                  .scale = scale};
    st_gpu_launch l = launch_of(kernel, (uint32_t)(n_q + 63) / 64, &p, sizeof p);
    l.grid[1] = H;
    add_buffer(&l, &in, 0);
    add_buffer(&l, &in, (uint64_t)(n_q * row) * 2);
    add_buffer(&l, &in, (uint64_t)((n_q + n_k) * row) * 2);
    add_buffer(&l, &out, 0);
    must(api->launch(device, &l, 1, &err), &err);
    must(api->read(device, out.handle, 0, y, out.size, &err), &err);
    const float *k = f + n_q * row, *v = k + n_k * row;
    for (int q = 0; q < n_q; q++)
        for (int h = 0; h < H; h++) {
            const int seen = causal ? n_k - n_q + q + 1 : n_k;
            double most = -1e30, total = 0;
            for (int j = 0; j < seen; j++) {
                weight[j] = 0;
                for (int i = 0; i < d; i++)
                    weight[j] += (double)f[q * row + h * d + i] * k[j * row + h * d + i] * scale;
                most = fmax(most, weight[j]);
            }
            for (int j = 0; j < seen; j++)
                total += weight[j] = exp(weight[j] - most);
            for (int i = 0; i < d; i++) {
                double want = 0;
                for (int j = 0; j < seen; j++)
                    want += weight[j] / total * v[j * row + h * d + i];
                /* weights are rounded to halves */
                if (!(fabs(y[q * row + h * d + i] - want) <= 2e-3 * (1 + fabs(want))))
                    fail_msg("%s: query %d, head %d: [%d] is %g, expected %g", st_gpu_kernels[kernel].name, q, h, i,
                             (double)y[q * row + h * d + i], want);
            }
        }
    api->free(in.handle), api->free(out.handle);
    api->close(device);
    free(half), free(f), free(y), free(weight);
    assert_clean();
}

static void test_attention_on_tiles(void **state)
{
    (void)state;
    for (mock_state->order = 0; mock_state->order < 3; mock_state->order++) {
        run_attention(ST_GPU_attention_mma_64, 64, 70, 131, 0);
        run_attention(ST_GPU_attention_mma_128, 128, 5, 33, 0);
    }
    mock_state->order = 0;
    run_attention(ST_GPU_attention_mma_64, 64, 67, 67, 1);
    run_attention(ST_GPU_attention_mma_128, 128, 3, 65, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_layer_norm),
        cmocka_unit_test(test_products_on_tiles),
        cmocka_unit_test(test_attention_on_tiles),
    };
    return cmocka_run_group_tests(tests, load_mock, NULL);
}
