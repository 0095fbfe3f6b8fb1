/* Libraries by their major version: the name that is tried is told, and what is missing is NULL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/library.h"

static void missing_library_is_named(void **state)
{
    (void)state;
    char name[64];
    assert_null(st_library_open_version("sotto-missing", 7, "/nonexistent", name, sizeof name));
#ifdef __linux__
    assert_string_equal(name, "libsotto-missing.so.7");
#endif
}

static void zlib_has_its_functions(void **state)
{
    (void)state;
    char name[64];
    void *const zlib = st_library_open_version("z", 1, "", name, sizeof name);
    if (!zlib) /* linked in statically */
        skip();
    const char *(*version)(void);
    assert_true(st_library_function(zlib, "zlibVersion", &version));
    assert_int_equal(version()[0], '1');
    assert_false(st_library_function(zlib, "av_malloc", &version));
    assert_null(version);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_library_is_named),
        cmocka_unit_test(zlib_has_its_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
