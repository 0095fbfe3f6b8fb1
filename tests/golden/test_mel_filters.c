/* The mel filters that files without any get, against the original's. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "formats/mel_filters.h"
#include "golden_support.h"

static void check(json_t *bank, int n_mels)
{
    static float filters[ST_MEL_MAX * ST_MEL_BINS];
    assert_true(st_mel_filters(n_mels, filters));
    for (int m = 0; m < n_mels; m++) {
        double sum = 0;
        for (int k = 0; k < ST_MEL_BINS; k++)
            sum += (double)filters[m * ST_MEL_BINS + k];
        assert_true(fabs(sum - json_number_value(json_array_get(golden_at(bank, "row_sums"), (size_t)m))) < 1e-7);
    }
    json_t *rows = golden_at(bank, "rows");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i), *taps = json_array_get(row, 1);
        const float *have = filters + json_integer_value(json_array_get(row, 0)) * ST_MEL_BINS;
        size_t at = 0;
        for (int k = 0; k < ST_MEL_BINS; k++) {
            const json_t *tap = json_array_get(taps, at);
            const bool there = tap && json_integer_value(json_array_get(tap, 0)) == k;
            const double want = there ? json_number_value(json_array_get(tap, 1)) : 0;
            at += there;
            if (fabs((double)have[k] - want) > 1e-8)
                fail_msg("%d bands, bin %d: %.9g, expected %.9g", n_mels, k, (double)have[k], want);
        }
        assert_int_equal(at, json_array_size(taps));
    }
}

static void test_filters(void **state)
{
    (void)state;
    json_t *root = json_load_file(SOTTO_SOURCE_DIR "/tests/golden/data/filters.json", 0, NULL);
    assert_non_null(root);
    check(golden_at(root, "80"), 80);
    check(golden_at(root, "128"), 128);
    json_decref(root);
    float none;
    assert_false(st_mel_filters(0, &none));
    assert_false(st_mel_filters(-1, &none));
    assert_false(st_mel_filters(ST_MEL_MAX + 1, &none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_filters)};
    return cmocka_run_group_tests_name("mel_filters", tests, NULL, NULL);
}
