#include "backends/metal_support.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backends/gpu/kernels/params.h"

metal_mock *mock_state;
static const st_gpu_api *const api = &st_gpu_metal;

void *open_metal(int index)
{
    sotto_error err = {0};
    void *device = NULL;
    if (api->open(index, NULL, &device, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    return device;
}

void assert_clean(void)
{
    if (mock_state->problem[0])
        fail_msg("%s", mock_state->problem);
    assert_int_equal(mock_state->n_alive, 0);
}

st_buffer metal_buffer(void *device, size_t bytes)
{
    sotto_error err = {0};
    st_buffer b = {.size = bytes};
    if (api->alloc(device, bytes, &b.handle, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    return b;
}

st_gpu_launch launch_of(st_gpu_kernel kernel, uint32_t x, const void *params, size_t bytes)
{
    st_gpu_launch l = {.kernel = kernel, .grid = {x, 1, 1}, .n_param_bytes = (uint32_t)bytes};
    memcpy(l.params, params, bytes);
    return l;
}

void add_buffer(st_gpu_launch *l, const st_buffer *b, uint64_t offset)
{
    l->arg[l->n_args].buffer = b;
    l->arg[l->n_args++].offset = offset;
}

st_gpu_launch unary_launch(const st_buffer *x, uint64_t x_at, const st_buffer *y, uint64_t y_at, int n, int op, float a,
                           float b)
{
    const struct unary_p p = {.n = n, .dim = {n, 1, 1, 1}, .x_stride = {1}, .y_stride = {1}, .op = op, .a = a, .b = b};
    st_gpu_launch l = launch_of(ST_GPU_unary, (uint32_t)(n + 255) / 256, &p, sizeof p);
    add_buffer(&l, x, x_at);
    add_buffer(&l, y, y_at);
    return l;
}

void must(sotto_status status, const sotto_error *err)
{
    if (status != SOTTO_OK)
        fail_msg("%s", err->text);
}

int load_mock(void **state)
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

sotto_status metal_whole_run(void *device, sotto_error *err)
{
    enum { N = 40 };
    float x[N], y[N];
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    st_buffer a = {.size = sizeof x}, b = {.size = sizeof x};
    void *event = NULL, *record = NULL;
    sotto_status status = api->alloc(device, sizeof x, &a.handle, err);
    if (status == SOTTO_OK)
        status = api->alloc(device, sizeof y, &b.handle, err);
    if (status == SOTTO_OK)
        status = api->write(device, a.handle, 0, x, sizeof x, err);
    st_gpu_launch list[20];
    for (int i = 0; i < 20 && b.handle; i++)
        list[i] = unary_launch(i % 2 ? &b : &a, 0, i % 2 ? &a : &b, 0, N, 1, 1, 1);
    if (status == SOTTO_OK)
        status = api->record(device, list, 20, &record, err);
    if (status == SOTTO_OK)
        status = api->replay(device, record, err);
    if (status == SOTTO_OK)
        status = api->event_create(device, &event, err);
    if (status == SOTTO_OK)
        status = api->event_record(device, event, err);
    if (status == SOTTO_OK)
        status = api->event_wait(device, event, err);
    if (status == SOTTO_OK)
        status = api->write(device, b.handle, 2, "ab", 2, err); /* odd and on a busy queue */
    if (status == SOTTO_OK)
        status = api->copy(device, b.handle, 4, a.handle, 4, 8, err);
    if (status == SOTTO_OK)
        status = api->fill_zero(device, b.handle, 16, 4, err);
    if (status == SOTTO_OK)
        status = api->read(device, a.handle, 0, y, sizeof y, err);
    if (status == SOTTO_OK)
        for (int i = 0; i < N; i++)
            assert_true(y[i] == (float)i + 20);
    if (status != SOTTO_OK) { /* what is on its way may fail as well */
        sotto_error ignored;
        (void)api->sync(device, &ignored);
    }
    api->event_free(device, event);
    if (record)
        api->forget(device, record);
    api->free(a.handle);
    api->free(b.handle);
    return status;
}
