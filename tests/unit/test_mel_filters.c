/* The mel filters against librosa.filters.mel(sr=16000, n_fft=400, n_mels=80 or 128), as the original's assets have them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "formats/mel_filters.h"

/* Single heights, and of the whole bank the number of heights above zero and their sum. */
static const struct {
    int n_mels, band, bin;
    double height;
} heights[] = {
    {80, 0, 1, 0.0248625949},   {80, 1, 2, 0.0228717718},   {80, 39, 42, 0.0100897448}, {80, 79, 193, 0.00314131333},
    {128, 0, 1, 0.0123739867},  {128, 1, 1, 0.0303925648},  {128, 39, 23, 0.014764173}, {128, 79, 61, 0.0127567155},
};
static const struct {
    int n_mels, above_zero;
    double sum;
} banks[] = {{80, 391, 1.999024092387117}, {128, 394, 3.1909855409403463}};

static void as_librosa_has_them(void **state)
{
    (void)state;
    float *filters = malloc(sizeof *filters * ST_MEL_MAX * ST_MEL_BINS);
    for (int b = 0; b < 2; b++) {
        assert_true(st_mel_filters(banks[b].n_mels, filters));
        int above_zero = 0;
        double sum = 0;
        for (int i = 0; i < banks[b].n_mels * ST_MEL_BINS; i++) {
            assert_true(filters[i] >= 0);
            above_zero += filters[i] > 0;
            sum += (double)filters[i];
        }
        assert_int_equal(above_zero, banks[b].above_zero);
        assert_true(fabs(sum - banks[b].sum) < 1e-6);
        for (size_t i = 0; i < sizeof heights / sizeof *heights; i++)
            if (heights[i].n_mels == banks[b].n_mels)
                assert_true(fabs((double)filters[heights[i].band * ST_MEL_BINS + heights[i].bin] - heights[i].height) < 1e-8);
    }
    free(filters);
}

static void numbers_of_bands(void **state)
{
    (void)state;
    float *filters = malloc(sizeof *filters * ST_MEL_MAX * ST_MEL_BINS);
    assert_false(st_mel_filters(0, filters));
    assert_false(st_mel_filters(-1, filters));
    assert_false(st_mel_filters(ST_MEL_MAX + 1, filters));
    assert_true(st_mel_filters(1, filters));
    assert_true(st_mel_filters(ST_MEL_MAX, filters));
    free(filters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_librosa_has_them), cmocka_unit_test(numbers_of_bands)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
