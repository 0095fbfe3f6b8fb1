/* Errors, log and checked arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "base/status.h"
#include "base/utf8.h"
#include "sotto/base.h"

static void version_and_names(void **state)
{
    (void)state;
    char want[40];
    snprintf(want, sizeof want, "%d.%d.%d", SOTTO_VERSION_MAJOR, SOTTO_VERSION_MINOR, SOTTO_VERSION_PATCH);
    assert_string_equal(sotto_version(), want);
    assert_string_equal(sotto_status_name(SOTTO_OK), "ok");
    assert_string_equal(sotto_status_name(SOTTO_E_ARGUMENT), "argument");
    assert_string_equal(sotto_status_name(SOTTO_E_MEMORY), "memory");
    assert_string_equal(sotto_status_name(SOTTO_E_NOT_FOUND), "not found");
    assert_string_equal(sotto_status_name(SOTTO_E_INTERNAL), "internal");
    assert_string_equal(sotto_status_name((sotto_status)1), "unknown");
    assert_string_equal(sotto_status_name(SOTTO_E_FULL), "full");
    assert_string_equal(sotto_status_name((sotto_status)-11), "unknown");
    assert_string_equal(sotto_status_name((sotto_status)INT32_MIN), "unknown");
}

static void failing_notes_code_and_sentence(void **state)
{
    (void)state;
    sotto_error err = {0};
    assert_int_equal(st_fail(&err, SOTTO_E_FORMAT, "%s: %d, expected %d", "n_vocab", 7, 8), SOTTO_E_FORMAT);
    assert_int_equal(err.code, SOTTO_E_FORMAT);
    assert_string_equal(err.text, "n_vocab: 7, expected 8");
    assert_int_equal(st_fail_context(&err, SOTTO_E_FORMAT, "%s", "model.bin"), SOTTO_E_FORMAT);
    assert_string_equal(err.text, "model.bin: n_vocab: 7, expected 8");
    assert_int_equal(st_fail_memory(&err, UINT64_C(123456789012), "weights"), SOTTO_E_MEMORY);
    assert_string_equal(err.text, "no memory: 123456789012 bytes for weights");
    assert_int_equal(st_fail(NULL, SOTTO_E_IO, "x"), SOTTO_E_IO);
    assert_int_equal(st_fail_context(NULL, SOTTO_E_IO, "x"), SOTTO_E_IO);
    assert_int_equal(st_fail_memory(NULL, 1, "x"), SOTTO_E_MEMORY);
}

/* A path of two-byte characters cut at every place, and one that is no UTF-8. */
static void sentences_are_cut_but_stay_valid(void **state)
{
    (void)state;
    char path[2000];
    for (size_t i = 0; i + 2 < sizeof path; i += 2)
        memcpy(path + i, "\xc3\xa9", 3);
    sotto_error err;
    st_fail(&err, SOTTO_E_IO, "%s", path);
    assert_int_equal(strlen(err.text), 498); /* 499 would end inside a character */
    assert_true(st_utf8_valid(err.text, strlen(err.text)));
    st_fail_context(&err, SOTTO_E_IO, "x");
    assert_int_equal(strlen(err.text), 499); /* "x: " makes it odd */
    assert_true(st_utf8_valid(err.text, strlen(err.text)));
    st_fail_context(&err, SOTTO_E_IO, "%s", path);
    assert_int_equal(strlen(err.text), 499); /* 498 and the colon */
    assert_true(st_utf8_valid(err.text, strlen(err.text)));

    st_fail(&err, SOTTO_E_IO, "a\xff_\xc3(b");
    assert_string_equal(err.text, "a?_?(b");
}

typedef struct seen {
    int count;
    sotto_log_level level;
    char text[2000];
} seen;

static void note(void *user, sotto_log_level level, const char *text)
{
    seen *const s = user;
    s->count++;
    s->level = level;
    snprintf(s->text, sizeof s->text, "%s", text);
}

static void messages_reach_the_logger(void **state)
{
    (void)state;
    seen s = {0};
    const sotto_logger logger = {note, &s}, silent = {0};
    st_log(&logger, SOTTO_LOG_WARNING, "%d threads", 3);
    assert_int_equal(s.count, 1);
    assert_int_equal(s.level, SOTTO_LOG_WARNING);
    assert_string_equal(s.text, "3 threads");
    st_log(&logger, SOTTO_LOG_INFO, "%1500d", 1);
    assert_int_equal(strlen(s.text), 999);
    st_log(&silent, SOTTO_LOG_INFO, "x");
    st_log(NULL, SOTTO_LOG_INFO, "x");
    assert_int_equal(s.count, 2);
}

static void overflow_is_found(void **state)
{
    (void)state;
    size_t n = 5;
    int64_t i = 5;
    assert_true(st_mul_size(0, SIZE_MAX, &n) && n == 0);
    assert_true(st_mul_size(SIZE_MAX, 1, &n) && n == SIZE_MAX);
    assert_true(st_mul_size(SIZE_MAX / 3, 3, &n) && n == SIZE_MAX);
    n = 5;
    assert_false(st_mul_size(SIZE_MAX / 2 + 1, 2, &n));
    assert_false(st_add_size(SIZE_MAX, 1, &n));
    assert_false(st_align_size(SIZE_MAX - 30, 32, &n));
    assert_int_equal(n, 5);
    assert_true(st_add_size(SIZE_MAX - 1, 1, &n) && n == SIZE_MAX);
    assert_true(st_align_size(SIZE_MAX - 31, 32, &n) && n == SIZE_MAX - 31);
    assert_true(st_align_size(33, 32, &n) && n == 64);
    assert_true(st_align_size(0, 32, &n) && n == 0);
    assert_false(st_mul_i64(-1, 1, &i));
    assert_false(st_mul_i64(1, -1, &i));
    assert_false(st_mul_i64(INT64_C(1) << 32, INT64_C(1) << 31, &i));
    assert_int_equal(i, 5);
    assert_true(st_mul_i64(INT64_MAX, 1, &i) && i == INT64_MAX);
    assert_true(st_mul_i64(0, INT64_MAX, &i) && i == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_and_names),
        cmocka_unit_test(failing_notes_code_and_sentence),
        cmocka_unit_test(sentences_are_cut_but_stay_valid),
        cmocka_unit_test(messages_reach_the_logger),
        cmocka_unit_test(overflow_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
