#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sotto/tensor.h"
#include "tensor/tensor_impl.h"

/* The numbers and sizes of GGUF's specification. */
static void types_are_those_of_gguf(void **state)
{
    (void)state;
    static const struct {
        int number;
        const char *name;
        int64_t block;
        size_t bytes;
    } rows[] = {
        {0, "f32", 1, 4},       {1, "f16", 1, 2},       {2, "q4_0", 32, 18},    {3, "q4_1", 32, 20},
        {6, "q5_0", 32, 22},    {7, "q5_1", 32, 24},    {8, "q8_0", 32, 34},    {10, "q2_k", 256, 84},
        {11, "q3_k", 256, 110}, {12, "q4_k", 256, 144}, {13, "q5_k", 256, 176}, {14, "q6_k", 256, 210},
        {20, "iq4_nl", 32, 18}, {24, "i8", 1, 1},       {26, "i32", 1, 4},      {30, "bf16", 1, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const sotto_dtype t = (sotto_dtype)rows[i].number;
        assert_string_equal(sotto_dtype_name(t), rows[i].name);
        assert_int_equal(sotto_dtype_block(t), rows[i].block);
        assert_int_equal(sotto_dtype_bytes(t), rows[i].bytes);
        sotto_dtype found;
        assert_int_equal(sotto_dtype_find(rows[i].name, &found), SOTTO_OK);
        assert_int_equal(found, t);
    }
}

static void unknown_types_have_no_facts(void **state)
{
    (void)state;
    static const int numbers[] = {4, 5, 9, 15, 25, 31, 255, -1, 1 << 30};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_null(sotto_dtype_name((sotto_dtype)numbers[i]));
        assert_int_equal(sotto_dtype_block((sotto_dtype)numbers[i]), 0);
        assert_int_equal(sotto_dtype_bytes((sotto_dtype)numbers[i]), 0);
        assert_int_equal(sotto_dtype_row_bytes((sotto_dtype)numbers[i], 32), 0);
    }
    sotto_dtype t;
    assert_int_equal(sotto_dtype_find("Q5_1", &t), SOTTO_OK);
    assert_int_equal(t, SOTTO_Q5_1);
    assert_int_equal(sotto_dtype_find("q5_", &t), SOTTO_E_NOT_FOUND);
    assert_int_equal(sotto_dtype_find("q5_11", &t), SOTTO_E_NOT_FOUND);
    assert_int_equal(sotto_dtype_find("", &t), SOTTO_E_NOT_FOUND);
    assert_int_equal(sotto_dtype_find(NULL, &t), SOTTO_E_NOT_FOUND);
}

static void rows_are_whole_blocks(void **state)
{
    (void)state;
    assert_int_equal(sotto_dtype_row_bytes(SOTTO_F32, 5), 20);
    assert_int_equal(sotto_dtype_row_bytes(SOTTO_Q4_0, 64), 36);
    assert_int_equal(sotto_dtype_row_bytes(SOTTO_Q4_0, 33), 0);
    assert_int_equal(sotto_dtype_row_bytes(SOTTO_Q6_K, 384), 0);
    assert_int_equal(sotto_dtype_row_bytes(SOTTO_F32, -1), 0);
    assert_int_equal(sotto_dtype_row_bytes(SOTTO_F32, INT64_MAX), 0);
}

static void shapes_from_outside_are_checked(void **state)
{
    (void)state;
    sotto_tensor t;
    const int64_t dim[4] = {64, 3, 2, 5};
    assert_true(st_tensor_init(&t, SOTTO_Q8_0, 4, dim));
    assert_int_equal(sotto_tensor_count(&t), 1920);
    assert_int_equal(sotto_tensor_bytes(&t), 30 * 68);
    assert_int_equal(t.stride[0], 34);
    assert_int_equal(t.stride[1], 68);
    assert_int_equal(t.stride[3], 6 * 68);
    assert_true(st_tensor_is_contiguous(&t));
    char text[96];
    assert_string_equal(st_tensor_shape_text(&t, text, sizeof text), "[5, 2, 3, 64]");
    assert_false(st_tensor_init(&t, SOTTO_Q8_0, 0, dim));
    assert_false(st_tensor_init(&t, SOTTO_Q8_0, 5, dim));
    assert_false(st_tensor_init(&t, (sotto_dtype)4, 1, dim));
    const int64_t bad[][2] = {{-1, 3}, {33, 1}, {INT64_MAX / 32 * 32, 32}, {32, INT64_MAX}, {1ll << 40, 1ll << 40}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(st_tensor_init(&t, SOTTO_Q8_0, 2, bad[i]));
    const int64_t none[2] = {0, 7};
    assert_true(st_tensor_init(&t, SOTTO_F32, 2, none));
    assert_int_equal(sotto_tensor_count(&t), 0);
    assert_int_equal(sotto_tensor_bytes(&t), 0);
    assert_int_equal(sotto_tensor_dim(&t, 1), 7);
    assert_int_equal(sotto_tensor_dim(&t, 4), 0);
    assert_int_equal(sotto_tensor_count(NULL), 0);
    assert_string_equal(sotto_tensor_name(NULL), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_those_of_gguf),
        cmocka_unit_test(unknown_types_have_no_facts),
        cmocka_unit_test(rows_are_whole_blocks),
        cmocka_unit_test(shapes_from_outside_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
