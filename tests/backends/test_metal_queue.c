/* Memory, command buffers, events, captures and failures of the Metal interface, on the stand-in of metal_mock.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/gpu/kernels/params.h"
#include "backends/metal_support.h"
#include "base/thread.h"

enum { SCALE = 1 };
static const st_gpu_api *const api = &st_gpu_metal;

static void fill(uint8_t *bytes, size_t n, int seed)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 251 + (size_t)seed);
}

/* Every write, copy and fill with odd ends, against the same on the host; idle queues and busy ones. */
static void check_odd_bytes(void *device, bool busy)
{
    enum { N = 64 };
    sotto_error err = {0};
    uint8_t want[N], other[N], got[N], data[N];
    st_buffer a = metal_buffer(device, N), b = metal_buffer(device, N), work = metal_buffer(device, 1024);
    for (size_t at = 0; at < 9; at++)
        for (size_t n = 1; n < 14; n++) {
            fill(want, N, 1);
            fill(other, N, 2);
            fill(data, N, 3);
            must(api->write(device, a.handle, 0, want, N, &err), &err);
            must(api->write(device, b.handle, 0, other, N, &err), &err);
            const st_gpu_launch l = unary_launch(&work, 0, &work, 512, 100, 0, 0, 0);
            if (busy)
                must(api->launch(device, &l, 1, &err), &err);
            must(api->write(device, a.handle, at, data, n, &err), &err);
            memcpy(want + at, data, n);
            must(api->copy(device, a.handle, 20 + at, b.handle, at / 2, n, &err), &err);
            memcpy(want + 20 + at, other + at / 2, n);
            must(api->fill_zero(device, a.handle, 40 + at, n, &err), &err);
            memset(want + 40 + at, 0, n);
            must(api->read(device, a.handle, 0, got, N, &err), &err);
            assert_memory_equal(got, want, N);
            must(api->read(device, a.handle, at, got, n, &err), &err);
            assert_memory_equal(got, want + at, n);
        }
    api->free(a.handle);
    api->free(b.handle);
    api->free(work.handle);
}

static void test_memory(void **state)
{
    (void)state;
    for (int index = 0; index < 2; index++)
        for (int private_memory = 0; private_memory < 2; private_memory++) {
            void *device = open_metal(index);
            st_metal_options options = st_metal_default_options();
            options.private_memory = private_memory;
            st_metal_set_options(device, &options);
            const long before = mock_state->private_bytes;
            st_buffer b = metal_buffer(device, 100);
            const bool own = index == 1 || private_memory;
            assert_int_equal(mock_state->private_bytes - before, own ? 112 : 0);
            assert_true((api->map(b.handle) == NULL) == own);
            api->free(b.handle);
            check_odd_bytes(device, false);
            check_odd_bytes(device, true);
            api->close(device);
            assert_clean();
        }
}

/* More than a temporary buffer holds, and more than may be on its way. */
static void test_large_writes(void **state)
{
    (void)state;
    enum { N = 90 << 20 };
    sotto_error err = {0};
    void *device = open_metal(1);
    st_buffer b = metal_buffer(device, N);
    uint8_t *data = malloc(N), *got = malloc(N);
    fill(data, N, 5);
    must(api->write(device, b.handle, 0, data, N, &err), &err);
    must(api->read(device, b.handle, 0, got, N, &err), &err);
    assert_memory_equal(got, data, N);
    free(data);
    free(got);
    api->free(b.handle);
    void *memory = &err;
    assert_int_equal(api->alloc(device, (size_t)1 << 31, &memory, &err), SOTTO_E_MEMORY);
    assert_null(memory);
    assert_string_equal(err.text, "metal:1: a buffer of 2147483648 bytes, and it takes at most 1073741824");
    api->close(device);
    assert_clean();
}

static void test_wrapped_pages(void **state)
{
    (void)state;
    sotto_error err = {0};
    float y[256];
    void *device = open_metal(0), *memory;
    float *pages = aligned_alloc(ST_METAL_PAGE, 2 * ST_METAL_PAGE);
    for (int i = 0; i < 256; i++)
        pages[i] = (float)i;
    assert_int_equal(st_metal_wrap(device, pages + 1, ST_METAL_PAGE, &memory, &err), SOTTO_E_UNSUPPORTED);
    assert_int_equal(st_metal_wrap(device, pages, ST_METAL_PAGE + 4, &memory, &err), SOTTO_E_UNSUPPORTED);
    const long before = mock_state->wrapped_bytes;
    must(st_metal_wrap(device, pages, 2 * ST_METAL_PAGE, &memory, &err), &err);
    assert_int_equal(mock_state->wrapped_bytes - before, 2 * ST_METAL_PAGE);
    assert_ptr_equal(api->map(memory), pages);
    st_buffer x = {.size = 2 * ST_METAL_PAGE, .handle = memory}, b = metal_buffer(device, sizeof y);
    const st_gpu_launch l = unary_launch(&x, 0, &b, 0, 256, SCALE, 2, 1);
    must(api->launch(device, &l, 1, &err), &err);
    must(api->read(device, b.handle, 0, y, sizeof y, &err), &err);
    for (int i = 0; i < 256; i++)
        assert_true(y[i] == 2 * (float)i + 1);
    api->free(memory);
    api->free(b.handle);
    api->close(device);
    free(pages);
    device = open_metal(1); /* with memory of its own */
    assert_int_equal(st_metal_wrap(device, NULL, ST_METAL_PAGE, &memory, &err), SOTTO_E_UNSUPPORTED);
    api->close(device);
    assert_clean();
}

static void test_two_gpus(void **state)
{
    (void)state;
    sotto_error err = {0};
    void *one = open_metal(0), *sibling = open_metal(0), *other = open_metal(1);
    st_buffer a = metal_buffer(one, 64), b = metal_buffer(sibling, 64), c = metal_buffer(other, 64);
    must(api->copy(one, b.handle, 0, a.handle, 0, 64, &err), &err);
    assert_int_equal(api->copy(one, c.handle, 0, a.handle, 0, 64, &err), SOTTO_E_UNSUPPORTED);
    assert_int_equal(api->copy(other, c.handle, 0, a.handle, 0, 64, &err), SOTTO_E_UNSUPPORTED);
    api->free(a.handle);
    api->free(b.handle);
    api->free(c.handle);
    api->close(one);
    api->close(sibling);
    api->close(other);
    assert_clean();
}

/* x doubles with every launch */
static int run_doubling(void *device, int n, sotto_status *status)
{
    sotto_error err = {0};
    float x = 1;
    st_buffer b = metal_buffer(device, sizeof x);
    st_gpu_launch *list = calloc((size_t)n, sizeof *list);
    for (int i = 0; i < n; i++)
        list[i] = unary_launch(&b, 0, &b, 0, 1, SCALE, 2, 0);
    must(api->write(device, b.handle, 0, &x, sizeof x, &err), &err);
    *status = api->launch(device, list, n, &err);
    free(list);
    must(api->read(device, b.handle, 0, &x, sizeof x, &err), &err);
    api->free(b.handle);
    int doubled = 0;
    while (x > 1)
        x /= 2, doubled++;
    return doubled;
}

static void test_groups(void **state)
{
    (void)state;
    void *device = open_metal(0);
    for (int groups = 1; groups <= 5; groups++) {
        st_metal_options options = st_metal_default_options();
        options.groups = groups;
        st_metal_set_options(device, &options);
        const int before = mock_state->n_commands;
        sotto_status status;
        assert_int_equal(run_doubling(device, 60, &status), 60);
        assert_int_equal(status, SOTTO_OK);
        assert_int_equal(mock_state->n_commands - before, groups);
    }
    api->close(device);
    assert_clean();
}

typedef struct abort_test {
    int asked, at;
    int most; /* command buffers on their way when asked */
} abort_test;

static bool abort_at(void *user)
{
    abort_test *t = user;
    const int on_their_way = mock_state->n_commands - mock_state->n_run;
    t->most = on_their_way > t->most ? on_their_way : t->most;
    return t->asked++ == t->at;
}

static void test_abort(void **state)
{
    (void)state;
    void *device = open_metal(0);
    for (int at = 0; at <= 10; at++) {
        abort_test t = {.at = at};
        st_metal_options options = {.groups = 10, .abort = abort_at, .abort_user = &t};
        st_metal_set_options(device, &options);
        sotto_status status;
        assert_int_equal(run_doubling(device, 50, &status), at * 5);
        assert_int_equal(status, at < 10 ? SOTTO_E_ABORTED : SOTTO_OK);
        assert_true(t.most <= 2);
    }
    api->close(device);
    assert_clean();
}

/* The queue of one device waits for the other's; the stand-in runs a queue only when somebody waits for it. */
static void test_events(void **state)
{
    (void)state;
    enum { N = 300 };
    sotto_error err = {0};
    float x[N], y[N];
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    void *one = open_metal(0), *two = open_metal(0), *done = NULL, *later = NULL;
    st_buffer a = metal_buffer(one, sizeof x), b = metal_buffer(one, sizeof x), c = metal_buffer(two, sizeof x);
    must(api->event_create(one, &done, &err), &err);
    must(api->event_create(two, &later, &err), &err);
    must(api->event_wait(two, done, &err), &err); /* not recorded yet: nothing to wait for */
    for (int round = 1; round <= 3; round++) {
        must(api->write(one, a.handle, 0, x, sizeof x, &err), &err);
        const st_gpu_launch first = unary_launch(&a, 0, &b, 0, N, SCALE, 3, (float)round);
        const st_gpu_launch second = unary_launch(&b, 0, &c, 0, N, SCALE, 2, 0);
        must(api->launch(one, &first, 1, &err), &err);
        must(api->event_record(one, done, &err), &err);
        must(api->event_wait(two, done, &err), &err);
        must(api->launch(two, &second, 1, &err), &err);
        must(api->event_record(two, later, &err), &err);
        must(api->read(two, c.handle, 0, y, sizeof y, &err), &err);
        for (int i = 0; i < N; i++)
            assert_true(y[i] == 2 * (3 * (float)i + (float)round));
        double seconds = 0;
        must(api->event_seconds(two, done, later, &seconds, &err), &err);
        assert_true(seconds > 0);
        must(api->sync(one, &err), &err);
    }
    api->event_free(one, done);
    api->event_free(two, later);
    api->event_free(two, NULL);
    api->free(a.handle);
    api->free(b.handle);
    api->close(one); /* memory may outlive the device it was made by */
    api->free(c.handle);
    api->close(two);
    assert_clean();
}

static void test_capture(void **state)
{
    (void)state;
    void *device = open_metal(0);
    st_metal_options options = st_metal_default_options();
    options.capture = "sotto.gputrace";
    st_metal_set_options(device, &options);
    const int before = mock_state->n_captures;
    sotto_status status;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(run_doubling(device, 3, &status), 3);
        assert_int_equal(status, SOTTO_OK);
        assert_int_equal(mock_state->n_captures - before, 1);
    }
    api->close(device);
    assert_clean();
}

/* A system before macOS 15 has another word for exact mathematics. */
static void test_old_system(void **state)
{
    (void)state;
    mock_state->old_system = 1;
    void *device = open_metal(0);
    sotto_status status;
    assert_int_equal(run_doubling(device, 2, &status), 2);
    api->close(device);
    assert_clean();
    mock_state->old_system = 0;
}

static void test_wrong_launches(void **state)
{
    (void)state;
    sotto_error err = {0};
    void *device = open_metal(0), *record = &err;
    st_buffer b = metal_buffer(device, 64);
    st_gpu_launch l = unary_launch(&b, 0, &b, 0, 1, SCALE, 1, 0);
    l.n_args = 1;
    assert_int_equal(api->launch(device, &l, 1, &err), SOTTO_E_INTERNAL);
    char want[200];
    const int bytes = (int)sizeof(struct unary_p);
    snprintf(want, sizeof want, "metal:0: unary with 1 buffers and %d bytes of parameters, it has 2 and %d", bytes,
             bytes);
    assert_string_equal(err.text, want);
    l.n_args = 2;
    l.arg[1].offset = 65;
    assert_int_equal(api->record(device, &l, 1, &record, &err), SOTTO_E_INTERNAL);
    assert_null(record);
    assert_string_equal(err.text, "metal:0: unary: buffer 1 is missing or ends before byte 65");
    char c = 0;
    assert_int_equal(api->write(device, b.handle, 64, &c, 1, &err), SOTTO_E_INTERNAL);
    api->free(b.handle);
    api->close(device);
    assert_clean();
}

/* ---- failures ---- */

/* The N-th call fails, for every N; afterwards the device works, or it could not be opened. */
static void test_failures(void **state)
{
    (void)state;
    for (int index = 0; index < 2; index++)
        for (int code = 4; code <= 8; code += 4)
            for (int n = 1;; n++) {
                sotto_error err = {0};
                void *device;
                int calls = 0;
                mock_state->fail_code = code;
                mock_state->n_calls = 0;
                mock_state->fail_at = n;
                sotto_status status = api->open(index, NULL, &device, &err);
                if (status == SOTTO_OK) {
                    status = metal_whole_run(device, &err);
                    calls = mock_state->n_calls;
                    mock_state->fail_at = 0;
                    sotto_error again = {0};
                    must(metal_whole_run(device, &again), &again);
                    api->close(device);
                }
                const bool reached = mock_state->fail_at != 0 || status != SOTTO_OK;
                mock_state->fail_at = 0;
                assert_clean();
                if (!reached) {
                    assert_int_equal(n, calls + 1); /* each of them was tried, and none fails unseen */
                    break;
                }
                if (status != SOTTO_E_DEVICE && status != SOTTO_E_MEMORY)
                    fail_msg("call %d: %s (%s)", n, err.text, sotto_status_name(status));
                assert_int_equal(err.code, status);
                assert_true(strncmp(err.text, "metal:", 6) == 0);
            }
    mock_state->fail_code = 4;
}

typedef struct session {
    st_thread thread;
    sotto_status status;
    sotto_error err;
} session;

static void run_session(void *arg)
{
    session *s = arg;
    for (int i = 0; i < 5 && s->status == SOTTO_OK; i++) {
        void *device;
        s->status = api->open(0, NULL, &device, &s->err);
        for (int r = 0; r < 5 && s->status == SOTTO_OK; r++)
            s->status = metal_whole_run(device, &s->err);
        if (device)
            api->close(device);
    }
}

static void test_two_threads(void **state)
{
    (void)state;
    session s[2] = {{.status = SOTTO_OK}};
    for (int i = 0; i < 2; i++)
        assert_true(st_thread_create(&s[i].thread, run_session, &s[i]));
    for (int i = 0; i < 2; i++)
        st_thread_join(&s[i].thread);
    for (int i = 0; i < 2; i++)
        must(s[i].status, &s[i].err);
    assert_clean();
}

#define NOTICED(statement, text)                        \
    do {                                                \
        statement;                                      \
        assert_string_equal(mock_state->problem, text); \
        mock_state->problem[0] = 0;                     \
    } while (0)

/* The stand-in finds what it is there to find. */
static void test_wrong_use(void **state)
{
    (void)state;
    const mtl_size one = {1, 1, 1};
    st_objc o;
    assert_true(st_objc_load(&o));
    void *const pool = o.pool_push();
    const mtl_id all = o.all_devices(), device = mtl_object_at(&o, all, 1), other = mtl_object_at(&o, all, 2);
    const mtl_id queue = mtl_new_queue(&o, device), commands = mtl_command_buffer(&o, queue);
    const mtl_id buffer = mtl_new_buffer(&o, device, 64, 32), foreign = mtl_new_buffer(&o, other, 64, 32);
    NOTICED(mtl_name(&o, NULL), "name is sent to nil");
    NOTICED(mtl_contents(&o, device), "MTLDevice does not know contents");
    NOTICED(mtl_contents(&o, buffer), "the contents of a private buffer");
    NOTICED(mtl_release(&o, mtl_new_buffer(&o, device, 0, 0)), "a buffer of 0 bytes");
    NOTICED(mtl_wait(&o, commands), "waiting for a command buffer that was not committed");
    NOTICED(o.class_named("NSNumber"), "no class NSNumber");
    mtl_id encoder = mtl_blit_encoder(&o, commands);
    NOTICED(mtl_fill(&o, encoder, buffer, (mtl_range){62, 4}, 0), "a blit of 4 bytes at 62 beyond its buffer");
    NOTICED(mtl_fill(&o, encoder, buffer, (mtl_range){0, 3}, 0), "a blit of 3 bytes at 0");
    NOTICED(mtl_fill(&o, encoder, foreign, (mtl_range){0, 4}, 0), "a buffer of another device");
    NOTICED(mtl_compute_encoder(&o, commands),
            "an encoder of a command buffer that is committed or has another one open");
    encoder = mtl_compute_encoder(&o, mtl_command_buffer(&o, queue));
    NOTICED(mtl_dispatch(&o, encoder, one, one), "a dispatch without a pipeline");
    NOTICED(mtl_set_buffer(&o, encoder, NULL, 0, 1), "buffer (nil) with offset 0 at index 1");
    mtl_end_encoding(&o, encoder);
    NOTICED(mtl_end_encoding(&o, encoder), "endEncoding twice");
    mtl_release(&o, buffer);
    mtl_release(&o, foreign);
    const mtl_id spare = mtl_new_shared_event(&o, device);
    mtl_release(&o, spare);
    NOTICED(mtl_release(&o, spare), "a release too many");
    mtl_release(&o, queue);
    NOTICED(o.pool_pop(pool), "MTLComputeCommandEncoder is released without endEncoding");
    assert_int_equal(mock_state->n_alive, 4); /* the array and its three devices */
    NOTICED(mtl_release(&o, mtl_name(&o, device)), "NSString is autoreleased without a pool");
    mtl_release(&o, all);
    assert_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),        cmocka_unit_test(test_large_writes),
        cmocka_unit_test(test_wrapped_pages), cmocka_unit_test(test_two_gpus),
        cmocka_unit_test(test_groups),        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_events),        cmocka_unit_test(test_capture),
        cmocka_unit_test(test_old_system),    cmocka_unit_test(test_wrong_launches),
        cmocka_unit_test(test_wrong_use),     cmocka_unit_test(test_failures),
        cmocka_unit_test(test_two_threads),
    };
    return cmocka_run_group_tests(tests, load_mock, NULL);
}
