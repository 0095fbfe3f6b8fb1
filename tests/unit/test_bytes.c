/* The bounded reader, on bytes written by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"

static void numbers_are_little_endian(void **state)
{
    (void)state;
    const uint8_t data[] = {0xfe, 0x34, 0x12, 0x78, 0x56, 0x34, 0x92, 8, 7, 6, 5, 4, 3, 2, 0x81, 0xff,
                            0xff, 0xff, 0xff, 0,    0,    0x80, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0xc0};
    st_bytes b = st_bytes_over(data, sizeof data);
    assert_int_equal(st_bytes_u8(&b), 0xfe);
    assert_int_equal(st_bytes_u16(&b), 0x1234);
    assert_int_equal(st_bytes_u32(&b), 0x92345678u);
    assert_true(st_bytes_u64(&b) == UINT64_C(0x8102030405060708));
    assert_int_equal(st_bytes_i32(&b), -1);
    assert_true(st_bytes_f32(&b) == 1.0f);
    assert_true(st_bytes_f64(&b) == -2.0);
    assert_int_equal(st_bytes_left(&b), 0);
    assert_false(b.failed);
}

/* The first read too far fails the reader for good, although smaller reads would still fit. */
static void running_out_is_for_good(void **state)
{
    (void)state;
    const uint8_t data[] = {1, 2, 3, 4, 5};
    st_bytes b = st_bytes_over(data, sizeof data);
    assert_int_equal(st_bytes_u16(&b), 0x201);
    assert_int_equal(st_bytes_u32(&b), 0);
    assert_true(b.failed);
    assert_int_equal(st_bytes_u8(&b), 0);
    assert_true(st_bytes_f32(&b) == 0);
    assert_true(st_bytes_f64(&b) == 0);
    assert_int_equal(st_bytes_left(&b), 0);
    assert_null(st_bytes_take(&b, 0));
    st_bytes_seek(&b, 0);
    st_bytes_align(&b, 8);
    assert_true(b.failed);
    assert_int_equal(st_bytes_u8(&b), 0);
}

static void take_is_bounded(void **state)
{
    (void)state;
    const uint8_t data[] = {1, 2, 3};
    st_bytes b = st_bytes_over(data, sizeof data);
    assert_ptr_equal(st_bytes_take(&b, 2), data);
    assert_ptr_equal(st_bytes_take(&b, 0), data + 2);
    assert_ptr_equal(st_bytes_take(&b, 1), data + 2);
    assert_non_null(st_bytes_take(&b, 0));
    assert_null(st_bytes_take(&b, SIZE_MAX)); /* at + n would wrap */
    assert_true(b.failed);

    b = st_bytes_over(NULL, 0);
    assert_non_null(st_bytes_take(&b, 0));
    assert_false(b.failed);
    assert_null(st_bytes_take(&b, 1));
}

static void align_and_seek(void **state)
{
    (void)state;
    const uint8_t data[40] = {0};
    st_bytes b = st_bytes_over(data, 33);
    st_bytes_align(&b, 32);
    assert_int_equal(b.at, 0);
    st_bytes_u8(&b);
    st_bytes_align(&b, 1);
    assert_int_equal(b.at, 1);
    st_bytes_align(&b, 32);
    assert_int_equal(b.at, 32);
    assert_int_equal(st_bytes_left(&b), 1);
    st_bytes_seek(&b, 33);
    assert_false(b.failed);
    st_bytes_align(&b, 4); /* three bytes of padding, none there */
    assert_true(b.failed);
    b = st_bytes_over(data, 33);
    st_bytes_seek(&b, 34);
    assert_true(b.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_little_endian),
        cmocka_unit_test(running_out_is_for_good),
        cmocka_unit_test(take_is_bounded),
        cmocka_unit_test(align_and_seek),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
