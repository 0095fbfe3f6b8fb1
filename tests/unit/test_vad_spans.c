/* Spans of speech from probabilities, worked out by hand. A chunk is 512 samples; 16 samples are a millisecond. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/silero/spans.h"

static st_vad_spans spans;
static sotto_vad_options options;
static sotto_error err;

static int setup(void **state)
{
    (void)state;
    sotto_vad_options_default(&options);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    st_vad_spans_free(&spans);
    return 0;
}

/* `text` has a chunk a character: '#' speech, '+' between the thresholds, '.' silence. */
static void hear(const char *text)
{
    for (const char *c = text; *c; c++)
        assert_int_equal(st_vad_spans_add(&spans, *c == '#' ? 0.9f : *c == '+' ? 0.4f : 0.1f, &err), SOTTO_OK);
}

static void begin(void)
{
    assert_int_equal(st_vad_spans_begin(&spans, &options, &err), SOTTO_OK);
}

static void expect(int n, const int64_t *want)
{
    assert_int_equal(spans.n_final, n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(spans.spans[i].first, want[2 * i]);
        assert_int_equal(spans.spans[i].end, want[2 * i + 1]);
    }
}

static void run(const char *text, int64_t n_samples, int n, const int64_t *want)
{
    begin();
    hear(text);
    assert_int_equal(st_vad_spans_finish(&spans, n_samples, &err), SOTTO_OK);
    expect(n, want);
    assert_int_equal(st_vad_spans_open(&spans), -1);
}

static void test_defaults(void **state)
{
    (void)state;
    run("", 0, 0, NULL);
    run("........", 8 * 512, 0, NULL);
    /* 8 chunks are 256 ms, longer than 250; 7 are not. A pause of 4 chunks after the first quiet one is 128 ms; the span ends
     * where the pause begins; padding 480 */
    run("..########.....", 15 * 512, 1, (const int64_t[]){2 * 512 - 480, 10 * 512 + 480});
    run("..#######......", 15 * 512, 0, NULL);
    /* the start of the recording bounds the padding, and its end */
    run("########", 7 * 512 + 100, 0, NULL);
    run("#########", 8 * 512 + 100, 1, (const int64_t[]){0, 8 * 512 + 100});
    /* a pause that is too short, and chunks between the thresholds, are part of the speech */
    run("####...++++....#", 16 * 512, 0, NULL);
    run("####...#++++++++..#.....", 24 * 512, 1, (const int64_t[]){0, 19 * 512 + 480});
    /* the second speech begins in the pause's fifth chunk: the pause between the spans has 4 * 512 samples */
    options.pad_ms = 100; /* 1600 samples, but half of the pause is 1280 */
    run("########.....########.....", 26 * 512, 2,
        (const int64_t[]){0, 8 * 512 + 1280, 13 * 512 - 1280, 21 * 512 + 1600});
}

static void test_long_speech(void **state)
{
    (void)state;
    options.pad_ms = 0;
    options.min_silence_ms = 1000;
    options.max_speech_s = 0.672; /* 10752 samples, less a chunk: 20 chunks */
    /* without a pause it is cut in front of the chunk that begins more than 20 chunks after the start */
    run("##############################", 30 * 512, 2, (const int64_t[]){0, 21 * 512, 22 * 512, 30 * 512});
    /* a pause of 4 chunks (128 ms) is longer than 98 ms: cut there, and the rest goes on behind it */
    run("#######....###################", 30 * 512, 2, (const int64_t[]){0, 7 * 512, 11 * 512, 30 * 512});
    /* one of 3 is not */
    run("#######...####################", 30 * 512, 2, (const int64_t[]){0, 21 * 512, 22 * 512, 30 * 512});
    /* of two the longer one, of equals the first */
    run("####....####.....#############", 30 * 512, 2, (const int64_t[]){0, 12 * 512, 17 * 512, 30 * 512});
    /* the second one is forgotten: what follows is too long again in chunk 29 */
    run("####....####....##############", 30 * 512, 2, (const int64_t[]){0, 4 * 512, 8 * 512, 29 * 512});
}

static void test_early(void **state)
{
    (void)state;
    begin();
    hear("##");
    assert_int_equal(st_vad_spans_open(&spans), -1);
    hear("######"); /* 8 chunks: certain */
    assert_int_equal(st_vad_spans_open(&spans), 0);
    assert_int_equal(st_vad_spans_reaches(&spans), 8 * 512);
    hear("....");
    expect(0, NULL);
    assert_int_equal(st_vad_spans_reaches(&spans), 8 * 512);
    hear("."); /* the pause is 4 chunks long, and wide enough for the padding on both sides */
    expect(1, (const int64_t[]){0, 8 * 512 + 480});
    assert_int_equal(st_vad_spans_heard(&spans), 13 * 512 - 480);
    hear("###"); /* not certain yet */
    assert_int_equal(st_vad_spans_open(&spans), -1);
    assert_int_equal(st_vad_spans_heard(&spans), 13 * 512 - 480);
    hear("......");
    assert_int_equal(st_vad_spans_heard(&spans), 22 * 512 - 480);
}

static void test_options(void **state)
{
    (void)state;
    const sotto_vad_options good = options;
#define BAD(field, value)                                                               \
    do {                                                                                \
        options = good;                                                                 \
        options.field = value;                                                          \
        assert_int_equal(st_vad_spans_begin(&spans, &options, &err), SOTTO_E_ARGUMENT); \
        assert_non_null(strstr(err.text, #field));                                      \
    } while (0)
    BAD(size, 3);
    BAD(threshold, 1.5f);
    BAD(threshold, NAN);
    BAD(neg_threshold, 2);
    BAD(min_speech_ms, -1);
    BAD(min_silence_ms, 10000000);
    BAD(max_speech_s, 0);
    BAD(max_speech_s, NAN);
    BAD(pad_ms, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_defaults, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_speech, setup, teardown),
        cmocka_unit_test_setup_teardown(test_early, setup, teardown),
        cmocka_unit_test_setup_teardown(test_options, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
