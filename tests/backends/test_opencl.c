/* test_opencl.c: the table of the OpenCL interface on every device, with subgroups of every size that it can have or play:
 * memory, launches, replay, events, failures. With the argument `small` the shapes suit a checker that is slow. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/gpu/api/opencl/opencl.h"
#include "backends/gpu/kernels/params.h"
#include "backends/opencl_support.h"
#include "base/half.h"

static const st_gpu_api *const api = &st_gpu_opencl;
static bool small;

static float random_float(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / (1 << 23) - 1.0f;
}

/* ---- on each device ---- */

static void kernels_are_ready(void *device)
{
    for (int k = 0; k < ST_GPU_KERNEL_COUNT; k++) {
        const bool tiles = strstr(st_gpu_kernels[k].module, "_mma") != NULL;
        if (!tiles)
            OCL_OK(api->ready(device, (st_gpu_kernel)k, &ocl_error));
        else
            assert_int_equal(api->ready(device, (st_gpu_kernel)k, &ocl_error), SOTTO_E_UNSUPPORTED);
    }
}

static void memory_moves(void *device)
{
    enum { N = 300007 };
    uint8_t *in = malloc(N), *out = malloc(N);
    uint32_t state = 1;
    for (int i = 0; i < N; i++)
        in[i] = (uint8_t)(random_float(&state) * 127);
    st_buffer a = ocl_buffer(device, in, N), b = ocl_buffer(device, NULL, N);
    OCL_OK(api->fill_zero(device, b.handle, 0, N, &ocl_error));
    OCL_OK(api->copy(device, b.handle, 5, a.handle, 11, N - 20, &ocl_error));
    OCL_OK(api->fill_zero(device, b.handle, 101, 7, &ocl_error));
    ocl_read(device, &b, out, N);
    for (int i = 0; i < N; i++)
        assert_int_equal(out[i], i < 5 || i >= N - 15 || (i >= 101 && i < 108) ? 0 : in[i + 6]);
    /* many small writes in a row, whose memory is the caller's again at once */
    for (int at = 0; at < N; at += 997) {
        uint8_t part[997];
        const size_t n = N - at < 997 ? (size_t)(N - at) : 997;
        memcpy(part, in + at, n);
        OCL_OK(api->write(device, b.handle, (size_t)at, part, n, &ocl_error));
        memset(part, 0xee, sizeof part);
    }
    for (int round = 0; round < 40 && !small; round++) /* more than any staging memory holds */
        OCL_OK(api->write(device, a.handle, (size_t)round, in + round, 60000, &ocl_error));
    ocl_read(device, &b, out, N);
    assert_memory_equal(out, in, N);
    ocl_read(device, &a, out, N);
    assert_memory_equal(out, in, N);
    ocl_free(&a);
    ocl_free(&b);
    free(in);
    free(out);
}

static struct unary_p unary_of(int n, int op, int from, int to)
{
    return (struct unary_p){.n = n,
                            .dim = {n, 1, 1, 1},
                            .x_stride = {1, n, n, n},
                            .y_stride = {1, n, n, n},
                            .x_type = from,
                            .y_type = to,
                            .op = op,
                            .a = 1,
                            .b = 0};
}

static void run_unary(void *device, const struct unary_p *p, const st_buffer *x, const st_buffer *y)
{
    const st_buffer *const args[] = {x, y};
    const st_gpu_launch l = ocl_launch(ST_GPU_unary, (uint32_t)(p->n + 255) / 256, p, sizeof *p, args, 2);
    OCL_OK(api->launch(device, &l, 1, &ocl_error));
}

static bool same_or_nan(float a, float b)
{
    return (isnan(a) && isnan(b)) || st_f32_bits(a) == st_f32_bits(b);
}

/* Every f16 and bf16 to f32 and back, and floats at and around every place where rounding turns. */
static void halves_convert(void *device)
{
    const int n = small ? 1024 : 65536;
    uint16_t *half = malloc((size_t)n * 2), *back = malloc((size_t)n * 2);
    float *wide = malloc((size_t)n * 4);
    for (int i = 0; i < n; i++)
        half[i] = (uint16_t)(i * (65536 / n));
    for (int type = 0; type < 2; type++) {
        const int dtype = type ? SOTTO_BF16 : SOTTO_F16;
        float (*const widen)(uint16_t) = type ? st_bf16_to_f32 : st_f16_to_f32;
        uint16_t (*const narrow)(float) = type ? st_f32_to_bf16 : st_f32_to_f16;
        st_buffer x = ocl_buffer(device, half, (size_t)n * 2), y = ocl_buffer(device, NULL, (size_t)n * 4);
        const struct unary_p to = unary_of(n, 0, dtype, SOTTO_F32), from = unary_of(n, 0, SOTTO_F32, dtype);
        run_unary(device, &to, &x, &y);
        ocl_read(device, &y, wide, (size_t)n * 4);
        for (int i = 0; i < n; i++)
            if (!same_or_nan(wide[i], widen(half[i])))
                fail_msg("%s %04x is %g", type ? "bf16" : "f16", half[i], wide[i]);
        for (int step = -1; step <= 1; step++) {
            for (int i = 0; i < n; i++) { /* half way to the next, and one bit beside it */
                const float v = widen(half[i]);
                const float next = widen((uint16_t)(half[i] + 1));
                const float middle = 0.5f * v + 0.5f * next;
                wide[i] = isfinite(middle) ? st_bits_f32(st_f32_bits(middle) + (uint32_t)step) : v;
            }
            OCL_OK(api->write(device, y.handle, 0, wide, (size_t)n * 4, &ocl_error));
            run_unary(device, &from, &y, &x);
            ocl_read(device, &x, back, (size_t)n * 2);
            for (int i = 0; i < n; i++)
                if (!same_or_nan(widen(back[i]), widen(narrow(wide[i]))))
                    fail_msg("%a as %s is %04x, expected %04x", wide[i], type ? "bf16" : "f16", back[i],
                             narrow(wide[i]));
        }
        ocl_free(&x);
        ocl_free(&y);
    }
    free(half);
    free(back);
    free(wide);
}

/* Order of element.krn. */
static double function_of(int op, double x)
{
    switch (op) {
    case 1:
    case 0:
        return x;
    case 2:
        return 0.5 * x * (1 + erf(x * sqrt(0.5)));
    case 3:
        return x / (1 + exp(-x));
    case 4:
        return x > 0 ? x : 0;
    case 5:
        return 1 / (1 + exp(-x));
    case 6:
        return tanh(x);
    case 7:
        return sqrt(x);
    default:
        return log10(x > 1 ? x : 1);
    }
}

static void functions_agree(void *device)
{
    enum { N = 1000 };
    float x[N], y[N];
    uint32_t state = 2;
    for (int i = 0; i < N; i++)
        x[i] = random_float(&state) * 12;
    st_buffer a = ocl_buffer(device, x, sizeof x), b = ocl_buffer(device, NULL, sizeof y);
    for (int op = 0; op <= 8; op++) {
        const struct unary_p p = unary_of(small ? 300 : N, op, SOTTO_F32, SOTTO_F32);
        run_unary(device, &p, &a, &b);
        ocl_read(device, &b, y, sizeof y);
        for (int i = 0; i < p.n; i++) { /* gelu cancels near its zero */
            const double exact = function_of(op, x[i]), bound = 4e-6 * fabs(exact) + (op == 2 ? 1e-6 : 1e-7);
            if (!(fabs(y[i] - exact) <= bound) && !(isnan(exact) && isnan(y[i])))
                fail_msg("function %d of %g is %.9g, expected %.9g", op, x[i], y[i], exact);
        }
    }
    ocl_free(&a);
    ocl_free(&b);
}

static void pairs_broadcast(void *device)
{
    enum { N0 = 7, N1 = 5, N2 = 9, N = N0 * N1 * N2 };
    float a[N], b[N1], y[N];
    uint32_t state = 3;
    for (int i = 0; i < N; i++)
        a[i] = random_float(&state);
    for (int i = 0; i < N1; i++)
        b[i] = random_float(&state);
    st_buffer x[3] = {ocl_buffer(device, a, sizeof a), ocl_buffer(device, b, sizeof b),
                      ocl_buffer(device, NULL, sizeof y)};
    const st_buffer *const args[] = {&x[0], &x[1], &x[2]};
    for (int op = 0; op < 2; op++) {
        const struct binary_p p = {.n = N,
                                   .dim = {N0, N1, N2, 1},
                                   .a_stride = {1, N0, N0 * N1, N},
                                   .b_stride = {0, 1, 0, 0},
                                   .y_stride = {1, N0, N0 * N1, N},
                                   .op = op};
        const st_gpu_launch l = ocl_launch(ST_GPU_binary, (N + 255) / 256, &p, sizeof p, args, 3);
        OCL_OK(api->launch(device, &l, 1, &ocl_error));
        ocl_read(device, &x[2], y, sizeof y);
        for (int i = 0; i < N; i++)
            assert_float_equal(y[i], op ? a[i] * b[i / N0 % N1] : a[i] + b[i / N0 % N1], 0);
    }
    for (int i = 0; i < 3; i++)
        ocl_free(&x[i]);
}

static void norm_row(const float *x, int n, float eps, double *out)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++)
        sum += x[i];
    for (int i = 0; i < n; i++)
        squares += (x[i] - sum / n) * (x[i] - sum / n);
    for (int i = 0; i < n; i++)
        out[i] = (x[i] - sum / n) / sqrt(squares / n + eps);
}

/* Rows shorter and longer than a group, at an offset in their buffers, launched and replayed. */
static void rows_normalize(void *device)
{
    enum { ROWS = 3, MOST = 1003, SKIP = 4 };
    static const int lengths[] = {2, 7, 63, 257, MOST};
    float x[ROWS * MOST + SKIP], y[ROWS * MOST + SKIP], w[MOST], b[MOST];
    double exact[MOST];
    uint32_t state = 4;
    for (int i = 0; i < ROWS * MOST + SKIP; i++)
        x[i] = 3 + random_float(&state);
    for (int i = 0; i < MOST; i++) {
        w[i] = random_float(&state);
        b[i] = random_float(&state);
    }
    st_buffer m[4] = {ocl_buffer(device, x, sizeof x), ocl_buffer(device, w, sizeof w), ocl_buffer(device, b, sizeof b),
                      ocl_buffer(device, y, sizeof y)};
    const st_buffer *const args[] = {&m[0], &m[1], &m[2], &m[3]};
    for (int k = 0; k < (small ? 4 : 5); k++)
        for (int again = 0; again < 2; again++) {
            const int n = lengths[k];
            const struct rows_p p = {
                .n = n, .dim1 = ROWS, .dim2 = 1, .x_stride = {1, n, 0, 0}, .y_stride = {1, n, 0, 0}, .a = 1e-5f};
            st_gpu_launch l = ocl_launch(ST_GPU_layer_norm, ROWS, &p, sizeof p, args, 4);
            l.arg[0].offset = l.arg[3].offset = SKIP * sizeof(float);
            OCL_OK(api->fill_zero(device, m[3].handle, 0, sizeof y, &ocl_error));
            if (again) {
                void *record = NULL;
                OCL_OK(api->record(device, &l, 1, &record, &ocl_error));
                OCL_OK(api->replay(device, record, &ocl_error));
                OCL_OK(api->replay(device, record, &ocl_error));
                OCL_OK(api->sync(device, &ocl_error));
                api->forget(device, record);
            } else {
                OCL_OK(api->launch(device, &l, 1, &ocl_error));
            }
            ocl_read(device, &m[3], y, sizeof y);
            for (int i = 0; i < SKIP; i++)
                assert_true(y[i] == 0);
            for (int r = 0; r < ROWS; r++) {
                norm_row(x + SKIP + r * n, n, 1e-5f, exact);
                for (int i = 0; i < n; i++)
                    assert_float_equal(y[SKIP + r * n + i], exact[i] * w[i] + b[i], 2e-5);
            }
        }
    for (int i = 0; i < 4; i++)
        ocl_free(&m[i]);
}

static void failures_say_why(void *device)
{
    int zero[2] = {0, 0};
    const st_gpu_launch l = {.kernel = ST_GPU_unary, .grid = {1, 1, 1}, .n_param_bytes = 8, .n_args = 2};
    assert_int_equal(api->launch(device, &l, 1, &ocl_error), SOTTO_E_INTERNAL);
    assert_non_null(strstr(ocl_error.text, "unary"));
    void *memory = zero;
    assert_int_equal(api->alloc(device, SIZE_MAX / 4, &memory, &ocl_error), SOTTO_E_MEMORY);
    assert_null(memory);
    assert_non_null(strstr(ocl_error.text, "clCreateBuffer"));
    assert_non_null(strstr(ocl_error.text, "opencl:"));
    st_buffer b = ocl_buffer(device, NULL, 16);
    assert_int_equal(api->read(device, b.handle, 12, zero, 8, &ocl_error), SOTTO_E_DEVICE);
    assert_non_null(strstr(ocl_error.text, "clEnqueueReadBuffer: CL_INVALID_VALUE (-30)"));
    ocl_free(&b);
}

/* ---- two queues ---- */

static void queues_wait_for_events(int index)
{
    enum { N = 50000 };
    void *a = ocl_open(index), *b = ocl_open(index);
    float *x = malloc(N * sizeof *x);
    for (int i = 0; i < N; i++)
        x[i] = 1;
    st_buffer from = ocl_buffer(a, x, N * sizeof *x), to = ocl_buffer(b, NULL, N * sizeof *x);
    void *event[2] = {NULL, NULL};
    OCL_OK(api->event_create(a, &event[0], &ocl_error));
    OCL_OK(api->event_create(b, &event[1], &ocl_error));
    OCL_OK(api->event_wait(b, event[1], &ocl_error)); /* never recorded: nothing to wait for */
    double seconds;
    assert_int_equal(api->event_seconds(a, event[0], event[1], &seconds, &ocl_error), SOTTO_E_ARGUMENT);
    struct unary_p doubled = unary_of(N, 1, SOTTO_F32, SOTTO_F32);
    doubled.a = 2;
    const int rounds = small ? 2 : 10;
    for (int i = 0; i < rounds; i++) { /* doubled in one queue, then in the other */
        run_unary(a, &doubled, &from, &from);
        OCL_OK(api->event_record(a, event[0], &ocl_error));
        OCL_OK(api->event_wait(b, event[0], &ocl_error));
        run_unary(b, &doubled, &from, &to);
        OCL_OK(api->copy(b, from.handle, 0, to.handle, 0, N * sizeof *x, &ocl_error));
        OCL_OK(api->event_record(b, event[1], &ocl_error));
        OCL_OK(api->event_wait(a, event[1], &ocl_error));
    }
    ocl_read(a, &from, x, N * sizeof *x);
    for (int i = 0; i < N; i++)
        assert_true(x[i] == ldexpf(1, 2 * rounds));
    OCL_OK(api->event_seconds(a, event[0], event[1], &seconds, &ocl_error));
    assert_true(seconds >= 0 && seconds < 60);
    api->event_free(a, event[0]);
    api->event_free(b, event[1]);
    ocl_free(&from);
    api->close(a);
    api->close(b);
    ocl_free(&to); /* memory may outlive the queues */
    free(x);
}

/* ---- the list ---- */

static void devices_are_described(void **state)
{
    (void)state;
    const int n = api->device_count();
    bool processor = false;
    for (int i = 0; i < n; i++) {
        st_gpu_caps caps;
        char id[32];
        OCL_OK(api->device_caps(i, &caps, &ocl_error));
        snprintf(id, sizeof id, "opencl:%d", i);
        assert_string_equal(caps.id, id);
        assert_true(strlen(caps.name) > 0 && caps.memory_total > 0 && caps.max_buffer > 0 && caps.max_group >= 256);
        assert_true(caps.subgroup >= 8 && caps.subgroup <= 64 && !caps.has_mma);
        assert_false(processor && caps.is_gpu); /* GPUs come first */
        processor = processor || !caps.is_gpu;
        print_message("%s: %s, %s\n", caps.id, caps.name, caps.features);
    }
    st_gpu_caps caps;
    void *device;
    assert_int_equal(api->device_caps(n, &caps, &ocl_error), SOTTO_E_NOT_FOUND);
    assert_int_equal(api->open(-1, NULL, &device, &ocl_error), SOTTO_E_NOT_FOUND);
}

static void on_every_device(void **state)
{
    (void)state;
    for (int i = 0; i < api->device_count(); i++) {
        for (int real = 0; real < 2; real++)
            for (int size = 8; size <= 64; size *= small ? 8 : 2) {
                if ((size == 32 && !real) || !st_opencl_set_subgroup(i, size, real))
                    continue;
                print_message("opencl:%d, subgroups of %d%s\n", i, size, real ? ", the device's own" : "");
                void *device = ocl_open(i);
                rows_normalize(device);
                assert_int_equal(st_opencl_device_at(i, NULL)->real_subgroups, real);
                if (!real && size == 8) { /* what subgroups are nothing to */
                    memory_moves(device);
                    halves_convert(device);
                    functions_agree(device);
                    pairs_broadcast(device);
                    failures_say_why(device);
                }
                if (!small && (real || size == 16))
                    kernels_are_ready(device);
                api->close(device);
            }
        queues_wait_for_events(i);
        assert_int_equal(st_opencl_device_at(i, NULL)->users, 0);
    }
}

int main(int argc, char **argv)
{
    small = argc > 1 && strcmp(argv[1], "small") == 0;
    if (api->device_count() == 0) {
        printf("no OpenCL device here\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(devices_are_described), cmocka_unit_test(on_every_device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
