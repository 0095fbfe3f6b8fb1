#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reference/ref_backend.h"
#include "runtime/runtime_impl.h"
#include "sotto/quant.h"

static sotto_backend *open_device(const char *id)
{
    sotto_backend *b;
    const sotto_backend_options o = {.device = id, .n_threads = 1};
    assert_int_equal(sotto_backend_open(&o, &b, NULL), SOTTO_OK);
    return b;
}

static void devices_are_listed_and_opened(void **state)
{
    (void)state;
    sotto_error err;
    sotto_device_info info;
    const int n = sotto_device_count();
    assert_true(n >= 1);
    for (int i = 0; i < n; i++) {
        assert_int_equal(sotto_device_get(i, &info, &err), SOTTO_OK);
        assert_true(info.id[0] && info.name[0]);
        assert_int_equal(info.api_version, ST_BACKEND_API_VERSION);
        sotto_backend *b = open_device(info.id);
        assert_true(strlen(sotto_backend_description(b)) > 0);
        sotto_backend_free(b);
    }
    assert_string_equal(info.id, "reference"); /* the last resort comes last */
    assert_int_equal(sotto_device_get(n, &info, &err), SOTTO_E_NOT_FOUND);
    assert_int_equal(sotto_device_get(-1, &info, &err), SOTTO_E_NOT_FOUND);
    assert_int_equal(sotto_device_get(0, NULL, &err), SOTTO_E_ARGUMENT);
    sotto_backend *b = (sotto_backend *)&info;
    sotto_backend_options o = {.device = "opencl:7"};
    assert_int_equal(sotto_backend_open(&o, &b, &err), SOTTO_E_NOT_FOUND);
    assert_null(b);
    assert_non_null(strstr(err.text, "opencl:7"));
    assert_non_null(strstr(err.text, "reference"));
    static const int threads[] = {-1, 1025, INT32_MAX};
    for (size_t i = 0; i < 3; i++) {
        o = (sotto_backend_options){.n_threads = threads[i]};
        assert_int_equal(sotto_backend_open(&o, &b, &err), SOTTO_E_ARGUMENT);
        assert_non_null(strstr(err.text, "n_threads"));
    }
    assert_int_equal(sotto_backend_open(NULL, NULL, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_backend_open(NULL, &b, &err), SOTTO_OK);
    sotto_backend_free(b);
    sotto_backend_free(NULL);
}

/* Rows of several sources and types make one tensor, and come back. */
static void rows_are_stored_in_pieces(void **state)
{
    (void)state;
    sotto_backend *b = open_device("reference");
    sotto_error err;
    sotto_store *s;
    assert_int_equal(sotto_store_create(b, SOTTO_USAGE_WEIGHTS, &s, &err), SOTTO_OK);
    const int64_t dim[2] = {32, 3}, f16_dim[3] = {4, 2, 2};
    sotto_tensor *t = sotto_store_add(s, "fused", SOTTO_F32, 2, dim, true),
                 *h = sotto_store_add(s, "half", SOTTO_F16, 3, f16_dim, false),
                 *i8 = sotto_store_add(s, "bytes", SOTTO_I8, 1, f16_dim, false),
                 *matrix = sotto_store_add(s, "scaled", SOTTO_I8, 1, f16_dim, true);
    assert_true(sotto_store_bytes(s) >= 3 * 128 + 32 && sotto_store_bytes(s) < 1024);
    float x[96], back[96];
    for (int i = 0; i < 96; i++)
        x[i] = (float)(i % 7) - 3;
    assert_int_equal(sotto_store_upload(s, t, 0, 1, SOTTO_F32, x, &err), SOTTO_E_ARGUMENT); /* not yet allocated */
    assert_int_equal(sotto_store_allocate(s, &err), SOTTO_OK);
    uint16_t half[32];
    char q8[34];
    assert_true(sotto_row_from_f32(SOTTO_F16, x + 32, half, 32) && sotto_row_from_f32(SOTTO_Q8_0, x + 64, q8, 32));
    assert_int_equal(sotto_store_upload(s, t, 0, 1, SOTTO_F32, x, &err), SOTTO_OK);
    assert_int_equal(sotto_store_upload(s, t, 1, 1, SOTTO_F16, half, &err), SOTTO_OK);
    assert_int_equal(sotto_store_upload(s, t, 2, 1, SOTTO_Q8_0, q8, &err), SOTTO_OK);
    assert_int_equal(sotto_store_download(s, t, back, &err), SOTTO_OK);
    assert_memory_equal(back, x, 64 * sizeof(float));
    for (int i = 64; i < 96; i++)
        assert_true(back[i] - x[i] < 0.02f && x[i] - back[i] < 0.02f);
    assert_int_equal(sotto_store_upload(s, h, 1, 3, SOTTO_F32, x, &err), SOTTO_OK); /* [2, 2, 4] has four rows */
    assert_int_equal(sotto_store_download(s, h, back, &err), SOTTO_OK);
    assert_memory_equal(back + 4, x, 12 * sizeof(float));
    /* 8-bit numbers that are no matrix have no scales: only such numbers go in */
    const int8_t q[4] = {1, -2, 127, -128};
    assert_int_equal(sotto_store_upload(s, i8, 0, 1, SOTTO_I8, q, &err), SOTTO_OK);
    assert_int_equal(sotto_store_upload(s, i8, 0, 1, SOTTO_F32, x, &err), SOTTO_E_UNSUPPORTED);
    assert_int_equal(sotto_store_upload(s, matrix, 0, 1, SOTTO_I8, q, &err), SOTTO_E_UNSUPPORTED);
    assert_int_equal(sotto_store_upload(s, matrix, 0, 1, SOTTO_F16, half, &err), SOTTO_OK);
    /* misuse */
    assert_int_equal(sotto_store_upload(s, t, 2, 2, SOTTO_F32, x, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_store_upload(s, t, -1, 1, SOTTO_F32, x, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_store_upload(s, t, INT64_MAX, 1, SOTTO_F32, x, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_store_upload(s, t, 1, INT64_MAX, SOTTO_F32, x, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_store_upload(s, t, 0, 1, SOTTO_F32, NULL, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_store_upload(s, h, 0, 1, SOTTO_Q8_0, q8, &err), SOTTO_E_UNSUPPORTED);
    assert_int_equal(sotto_store_upload(s, t, 0, 1, (sotto_dtype)99, x, &err), SOTTO_E_UNSUPPORTED);
    assert_int_equal(sotto_store_upload(s, NULL, 0, 1, SOTTO_F32, x, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_store_clear(s, &err), SOTTO_E_ARGUMENT);
    assert_null(sotto_store_add(s, "late", SOTTO_F32, 2, dim, false));
    sotto_store_free(s);
    sotto_store_free(NULL);
    sotto_backend_free(b);
}

static void bad_declarations_stick(void **state)
{
    (void)state;
    sotto_backend *b = open_device("reference");
    const int64_t bad[][2] = {{-1, 2}, {33, 2}, {INT64_MAX, 2}, {1ll << 62, 1ll << 62}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sotto_error err = {0};
        sotto_store *s;
        assert_int_equal(sotto_store_create(b, SOTTO_USAGE_WEIGHTS, &s, &err), SOTTO_OK);
        assert_null(sotto_store_add(s, "blk.7", SOTTO_Q4_0, 2, bad[i], true));
        const int64_t good[1] = {32};
        assert_non_null(sotto_store_add(s, "fine", SOTTO_Q4_0, 1, good, true));
        assert_int_equal(sotto_store_allocate(s, &err), SOTTO_E_ARGUMENT);
        assert_non_null(strstr(err.text, "blk.7"));
        sotto_store_free(s);
    }
    /* together they overflow */
    sotto_store *s;
    sotto_error err;
    assert_int_equal(sotto_store_create(b, SOTTO_USAGE_CACHE, &s, NULL), SOTTO_OK);
    const int64_t huge[1] = {1ll << 60};
    for (int i = 0; i < 5; i++)
        (void)sotto_store_add(s, "huge", SOTTO_F32, 1, huge, false);
    assert_int_equal(sotto_store_allocate(s, &err), SOTTO_E_MEMORY);
    sotto_store_free(s);
    sotto_backend_free(b);
}

static void caches_begin_as_zeros(void **state)
{
    (void)state;
    sotto_backend *b = open_device("reference");
    sotto_store *s;
    sotto_error err;
    assert_int_equal(sotto_store_create(b, SOTTO_USAGE_CACHE, &s, &err), SOTTO_OK);
    const int64_t dim[2] = {8, 4};
    sotto_tensor *t = sotto_store_add(s, "k", SOTTO_F16, 2, dim, false);
    assert_int_equal(sotto_store_allocate(s, &err), SOTTO_OK);
    float back[32], x[32];
    for (int round = 0; round < 2; round++) {
        assert_int_equal(sotto_store_download(s, t, back, &err), SOTTO_OK);
        for (int i = 0; i < 32; i++) {
            assert_true(back[i] == 0);
            x[i] = 5;
        }
        assert_int_equal(sotto_store_upload(s, t, 0, 4, SOTTO_F32, x, &err), SOTTO_OK);
        assert_int_equal(sotto_store_clear(s, &err), SOTTO_OK);
    }
    sotto_store_free(s);
    sotto_backend_free(b);
}

static void failures_of_the_device_come_up(void **state)
{
    (void)state;
    sotto_backend *b = open_device("reference");
    sotto_store *s;
    sotto_error err;
    assert_int_equal(sotto_store_create(b, SOTTO_USAGE_WEIGHTS, &s, &err), SOTTO_OK);
    const int64_t dim[1] = {4};
    sotto_tensor *t = sotto_store_add(s, "w", SOTTO_F32, 1, dim, false);
    st_ref_inject(b->device[0].state, ST_REF_ALLOC, 1);
    assert_int_equal(sotto_store_allocate(s, &err), SOTTO_E_MEMORY);
    assert_int_equal(sotto_store_allocate(s, &err), SOTTO_OK);
    const float x[4] = {1, 2, 3, 4};
    st_ref_inject(b->device[0].state, ST_REF_UPLOAD, 1);
    assert_int_equal(sotto_store_upload(s, t, 0, 1, SOTTO_F32, x, &err), SOTTO_E_MEMORY);
    assert_int_equal(sotto_store_upload(s, t, 0, 1, SOTTO_F32, x, &err), SOTTO_OK);
    sotto_store_free(s);
    sotto_backend_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_listed_and_opened),  cmocka_unit_test(rows_are_stored_in_pieces),
        cmocka_unit_test(bad_declarations_stick),         cmocka_unit_test(caches_begin_as_zeros),
        cmocka_unit_test(failures_of_the_device_come_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
