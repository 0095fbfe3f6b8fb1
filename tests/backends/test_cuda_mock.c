/* The CUDA interface on the stand-in of cuda_mock.c: what a real driver cannot be asked for. Failures at every call, lost
 * devices, several devices, machine code that the driver refuses; every handle given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cuda_support.h"
#include "backends/gpu/gpu_api.h"
#include "backends/gpu/kernels/params.h"

extern const st_gpu_api st_gpu_cuda;
static const st_gpu_api *const api = &st_gpu_cuda;
static cuda_mock *mock;

enum { N = 300, BYTES = N * sizeof(float), LARGE = 5 << 20 };
enum { NO_MEMORY = 2, LAUNCH_FAILED = 719 };

static void assert_clean(void)
{
    assert_string_equal(mock->problem, "");
    assert_int_equal(mock->n_alive, 0);
}

static st_gpu_launch scale_launch(const st_buffer *x, const st_buffer *y, float a, float b)
{
    const struct unary_p p = {.n = N, .dim = {N, 1, 1, 1}, .x_stride = {1}, .y_stride = {1}, .op = 1, .a = a, .b = b};
    st_gpu_launch l = {
        .kernel = ST_GPU_unary, .grid = {2, 1, 1}, .n_param_bytes = sizeof p, .n_args = 2, .arg = {{x, 0}, {y, 0}}};
    memcpy(l.params, &p, sizeof p);
    return l;
}

/* Everything that the interface can do, once: SOTTO_OK, or the first failure. What is made is given back in any case. */
static sotto_status everything(int index, sotto_error *err)
{
    void *device = NULL, *other = NULL, *record = NULL, *event[2] = {NULL, NULL};
    st_buffer a = {.size = LARGE}, b = {.size = LARGE}, far = {.size = BYTES};
    float x[N], y[N] = {0};
    unsigned char *large = calloc(1, LARGE);
    bool pinned = false;
    double seconds = 0;
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    sotto_status s = api->open(index, NULL, &device, err);
#define STEP(call) s = s == SOTTO_OK ? (call) : s
    STEP(api->open((index + 1) % CUDA_MOCK_DEVICES, NULL, &other, err));
    STEP(api->alloc(device, a.size, &a.handle, err));
    STEP(api->alloc(device, b.size, &b.handle, err));
    STEP(api->alloc(other, far.size, &far.handle, err));
    const st_gpu_launch list[2] = {scale_launch(&a, &b, 2, 1), scale_launch(&b, &a, 1, 5)};
    STEP(api->ready(device, ST_GPU_unary, err));
    STEP(api->event_create(device, &event[0], err));
    STEP(api->event_create(device, &event[1], err));
    STEP(api->write(device, b.handle, 0, large, LARGE, err));
    STEP(api->write(device, a.handle, 0, x, BYTES, err));
    STEP(api->event_record(device, event[0], err));
    STEP(api->launch(device, list, 2, err));
    STEP(api->record(device, list, 2, &record, err));
    STEP(api->replay(device, record, err));
    STEP(api->event_record(device, event[1], err));
    STEP(api->event_wait(other, event[1], err));
    STEP(api->copy(other, far.handle, 0, a.handle, 0, BYTES, err));
    STEP(api->read(other, far.handle, 0, y, BYTES, err));
    STEP(api->event_seconds(device, event[0], event[1], &seconds, err));
    if (s == SOTTO_OK)
        for (int i = 0; i < N; i++)
            assert_true(y[i] == 4 * x[i] + 18);
    STEP(api->pin(device, large, LARGE, err));
    pinned = s == SOTTO_OK;
    STEP(api->fill_zero(device, b.handle, 0, LARGE, err));
    STEP(api->read(device, b.handle, 0, large, LARGE, err));
    STEP(api->copy(device, b.handle, 1, a.handle, 0, BYTES, err));
    STEP(api->sync(device, err));
#undef STEP
    if (pinned)
        api->unpin(device, large);
    if (device) {
        api->forget(device, record);
        api->event_free(device, event[0]);
        api->event_free(device, event[1]);
    }
    api->free(a.handle);
    api->free(b.handle);
    api->close(device);
    api->close(other);
    api->free(far.handle); /* memory may outlive its device */
    free(large);
    return s;
}

static void test_everything(void **state)
{
    (void)state;
    sotto_error err = {0};
    for (int order = 0; order < 3; order++) {
        mock->order = order;
        for (int device = 0; device < CUDA_MOCK_DEVICES; device++) {
            mock->n_graph_launches = mock->n_peer_copies = 0;
            if (everything(device, &err) != SOTTO_OK)
                fail_msg("%s", err.text);
            assert_int_equal(mock->n_graph_launches, 1);
            assert_int_equal(mock->n_peer_copies, 1);
            assert_clean();
        }
    }
    mock->order = 0;
    mock->n_early = 0;
    mock->new_driver = 1; /* takes machine code, whose kernels wait by themselves */
    assert_int_equal(everything(2, &err), SOTTO_OK);
    assert_int_equal(mock->n_early, 1);
    mock->new_driver = 0;
    assert_clean();
    mock->no_pinning = 1; /* slower, but right */
    assert_int_equal(everything(0, &err), SOTTO_OK);
    mock->no_pinning = 0;
    assert_clean();
}

/* No memory, a call that is refused, a lost device: at every call there is. Nothing leaks and the next run works. */
static void test_failures(void **state)
{
    (void)state;
    static const struct {
        int code;
        sotto_status status;
        const char *name;
    } failures[] = {{NO_MEMORY, SOTTO_E_MEMORY, NULL},
                    {1, SOTTO_E_DEVICE, "error 1, CUDA_ERROR_INVALID_VALUE: as ordered"},
                    {LAUNCH_FAILED, SOTTO_E_DEVICE, "error 719, CUDA_ERROR_LAUNCH_FAILED: as ordered"}};
    sotto_error err = {0};
    mock->n_calls = 0;
    assert_int_equal(everything(0, &err), SOTTO_OK);
    const int n_calls = mock->n_calls;
    assert_true(n_calls > 80);
    for (size_t f = 0; f < sizeof failures / sizeof failures[0]; f++) {
        int n_failed = 0;
        mock->fail_code = failures[f].code;
        for (int at = 1; at <= n_calls; at++) {
            err = (sotto_error){0};
            mock->n_calls = 0;
            mock->fail_at = at;
            const sotto_status status = everything(0, &err);
            mock->fail_at = 0;
            assert_clean();
            if (status == SOTTO_OK) /* memory that could not be pinned, a number that is only told, the giving back */
                continue;
            n_failed++;
            if (strstr(err.text, "needs") &&
                failures[f].code != LAUNCH_FAILED) /* cuFuncSetAttribute: another device could */
                continue;
            if (status != failures[f].status || (failures[f].name && !strstr(err.text, failures[f].name)))
                fail_msg("call %d gave %s: %s", at, sotto_status_name(status), err.text);
        }
        assert_true(n_failed > 60);
        assert_int_equal(everything(0, &err), SOTTO_OK);
        assert_clean();
    }
}

/* After a failed launch nothing more is tried; what was the matter is said again. Others of the device are as lost. */
static void test_lost(void **state)
{
    (void)state;
    sotto_error err = {0};
    void *device = NULL;
    st_buffer a = {.size = BYTES};
    const float x[N] = {0};
    assert_int_equal(api->open(1, NULL, &device, &err), SOTTO_OK);
    assert_int_equal(api->alloc(device, a.size, &a.handle, &err), SOTTO_OK);
    st_gpu_launch l = scale_launch(&a, &a, 1, 0);
    assert_int_equal(api->launch(device, &l, 1, &err), SOTTO_OK);
    mock->n_calls = 0;
    mock->fail_at = 2; /* after making the context current */
    mock->fail_code = LAUNCH_FAILED;
    assert_int_equal(api->sync(device, &err), SOTTO_E_DEVICE);
    assert_string_equal(err.text, "cuda:1: cuStreamSynchronize gave error 719, CUDA_ERROR_LAUNCH_FAILED: as ordered");
    mock->fail_at = 0;
    const int n_calls = mock->n_calls;
    assert_int_equal(api->write(device, a.handle, 0, x, BYTES, &err), SOTTO_E_DEVICE);
    assert_string_equal(err.text,
                        "cuda:1 is lost: cuda:1: cuStreamSynchronize gave error 719, CUDA_ERROR_LAUNCH_FAILED: "
                        "as ordered");
    assert_int_equal(api->launch(device, &l, 1, &err), SOTTO_E_DEVICE);
    assert_int_equal(mock->n_calls, n_calls);
    api->free(a.handle);
    api->close(device);
    assert_clean();
    assert_int_equal(everything(1, &err), SOTTO_OK);
    assert_clean();
}

static void test_caps(void **state)
{
    (void)state;
    sotto_error err = {0};
    st_gpu_caps caps;
    assert_int_equal(api->device_count(), 3);
    static const struct {
        const char *name, *features;
        bool has_mma;
    } expected[] = {{"Mock sm_86", "sm_86 driver-12.4 dot4 mma graphs", true},
                    {"Mock sm_75", "sm_75 driver-12.4 dot4 graphs", false},
                    {"Mock sm_90", "sm_90 driver-12.4 dot4 mma graphs", true}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(api->device_caps(i, &caps, &err), SOTTO_OK);
        assert_string_equal(caps.name, expected[i].name);
        assert_string_equal(caps.features, expected[i].features);
        assert_int_equal(caps.has_mma, expected[i].has_mma);
        assert_int_equal(caps.memory_total, (uint64_t)(i + 1) << 30);
        assert_int_equal(caps.memory_free, caps.memory_total);
        assert_int_equal(caps.n_units, 4);
    }
    assert_int_equal(api->device_caps(3, &caps, &err), SOTTO_E_NOT_FOUND);
    assert_string_equal(err.text, "cuda:3: there are 3 CUDA devices");
    assert_clean();
}

/* Every kernel's image is in the library with the parameters of kernels.inc, those of matrix units where there are some. */
static void every_kernel_has_an_image_or_a_sentence(void **state)
{
    (void)state;
    sotto_error err = {0};
    for (int n = 0; n < CUDA_MOCK_DEVICES + 1; n++) {
        const int i = n < CUDA_MOCK_DEVICES ? n : 2; /* the last one again, with a driver that takes machine code */
        void *device = NULL;
        st_gpu_caps caps;
        mock->new_driver = n == CUDA_MOCK_DEVICES;
        assert_int_equal(api->device_caps(i, &caps, &err), SOTTO_OK);
        assert_int_equal(api->open(i, NULL, &device, &err), SOTTO_OK);
        for (int k = 0; k < ST_GPU_KERNEL_COUNT; k++) {
            const bool possible = caps.has_mma || !strstr(st_gpu_kernels[k].module, "_mma");
            const sotto_status status = api->ready(device, (st_gpu_kernel)k, &err);
            if (status != (possible ? SOTTO_OK : SOTTO_E_UNSUPPORTED))
                fail_msg("%s on %s: %s", st_gpu_kernels[k].name, caps.name, err.text);
            if (!possible)
                assert_non_null(strstr(err.text, "cuda:1: the library has no kernels of module "));
        }
        api->close(device);
        mock->new_driver = 0;
        assert_clean();
    }
}

/* A step's inputs: they are copied when they are in order, whatever the caller does with his memory meanwhile. */
static void test_small_writes(void **state)
{
    (void)state;
    sotto_error err = {0};
    void *device = NULL;
    st_buffer a = {.size = 1 << 20};
    static float out[1000];
    assert_int_equal(api->open(0, NULL, &device, &err), SOTTO_OK);
    assert_int_equal(api->alloc(device, a.size, &a.handle, &err), SOTTO_OK);
    for (int i = 0; i < 1000; i++) {
        const float v = (float)i;
        assert_int_equal(api->write(device, a.handle, (size_t)i * sizeof v, &v, sizeof v, &err), SOTTO_OK);
    }
    assert_int_equal(api->read(device, a.handle, 0, out, sizeof out, &err), SOTTO_OK);
    for (int i = 0; i < 1000; i++)
        assert_true(out[i] == (float)i);
    api->free(a.handle);
    api->close(device);
    assert_clean();
}

/* Where host and device have one memory, the host's pages are read in place. */
static void test_wrapped(void **state)
{
    (void)state;
    sotto_error err = {0};
    st_gpu_caps caps;
    enum { PAGES = 3 * 4096 };
    assert_int_equal(api->device_caps(0, &caps, &err), SOTTO_OK);
    assert_true(caps.wrap_page == 0 && !caps.unified);
    mock->integrated = 1;
    assert_int_equal(api->device_caps(0, &caps, &err), SOTTO_OK);
    assert_true(caps.wrap_page == 4096 && caps.unified);
    unsigned char *const pages = aligned_alloc(4096, PAGES), *const back = malloc(PAGES);
    for (int i = 0; i < PAGES; i++)
        pages[i] = (unsigned char)(i * 7 % 251);
    int n = 1;
    for (int fail_at = 0; fail_at <= n; fail_at++) { /* none, then each call */
        void *device = NULL, *memory = NULL;
        st_buffer own = {.size = PAGES};
        assert_int_equal(api->open(0, NULL, &device, &err), SOTTO_OK);
        assert_int_equal(api->alloc(device, PAGES, &own.handle, &err), SOTTO_OK);
        mock->n_calls = 0;
        mock->fail_at = fail_at;
        mock->fail_code = 1;
        sotto_status status = api->wrap(device, pages, PAGES, &memory, &err);
        assert_true((status == SOTTO_OK) == (memory != NULL));
        if (status == SOTTO_OK)
            status = api->copy(device, own.handle, 0, memory, 0, PAGES, &err);
        if (status == SOTTO_OK)
            status = api->read(device, own.handle, 0, back, PAGES, &err);
        n = fail_at == 0 ? mock->n_calls : n;
        mock->fail_at = 0;
        assert_true(fail_at > 0 || status == SOTTO_OK);
        if (status == SOTTO_OK)
            assert_memory_equal(back, pages, PAGES);
        api->free(memory);
        api->free(own.handle);
        api->close(device);
        assert_clean();
    }
    assert_true(n > 4);
    mock->integrated = 0;
    free(pages);
    free(back);
}

int main(void)
{
    mock = cuda_mock_open();
    if (!mock)
        return 77;
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_caps),       cmocka_unit_test(every_kernel_has_an_image_or_a_sentence),
        cmocka_unit_test(test_everything), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_lost),       cmocka_unit_test(test_small_writes),
        cmocka_unit_test(test_wrapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
