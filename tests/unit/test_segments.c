/* Tokens of a window to segments: where to cut, how far to go on, whole characters, the caller's limit. Rows B26, B43, B45 and
 * B51 of the list of known faults. Expected values by hand, after transcribe() of openai-whisper. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "speech_support.h"
#include "models/whisper/results.h"
#include "models/whisper/segments.h"

enum { A = WORD_A, B, C, D, E, MAX = 200 };

static st_vocab *v;
static st_slicer slicer;
static sotto_error err;

static int setup(void **state)
{
    (void)state;
    v = fake_vocab(1, true);
    st_slicer_init(&slicer, v);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    st_slicer_free(&slicer);
    st_vocab_free(v);
    return 0;
}

/* Negative numbers are timestamps: -1 is 0.00 s, -101 is 1.00 s (hundredths, plus one). */
static int tokens_of(const int *list, int n, int32_t *out)
{
    for (int i = 0; i < n; i++)
        out[i] = list[i] < 0 ? stamp(v, -list[i] - 1) : list[i];
    return n;
}

static void slice(const int *list, int n, bool complete, int64_t seek, int64_t size, int max_tokens, bool whole)
{
    static int32_t tokens[MAX];
    const st_window w = {.tokens = tokens,
                         .n_tokens = tokens_of(list, n, tokens),
                         .complete = complete,
                         .seek = seek,
                         .size = size,
                         .max_tokens = max_tokens,
                         .whole = whole};
    assert_int_equal(st_slicer_run(&slicer, &w, &err), SOTTO_OK);
    assert_true(slicer.advance >= 1 && slicer.advance <= size);
}

#define SLICE(complete, seek, size, max_tokens, ...)                                                                 \
    slice((const int[]){__VA_ARGS__}, (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)), complete, seek, size, \
          max_tokens, false)

static void expect(int i, int first, int end, double start, double stop, const char *text)
{
    assert_true(i < slicer.n_slices);
    const st_slice *s = &slicer.slices[i];
    assert_int_equal(s->first, first);
    assert_int_equal(s->end, end);
    assert_true(fabs(s->start - start) < 1e-9);
    assert_true(fabs(s->stop - stop) < 1e-9);
    assert_int_equal(s->text_end - s->text_first, strlen(text));
    assert_memory_equal(slicer.bytes + s->text_first, text, strlen(text));
}

static void pairs_of_timestamps_cut(void **state)
{
    (void)state;
    /* <0.00> a b <1.00><1.50> c <2.00><2.00>: the third segment is not finished and heard again */
    SLICE(true, 1000, 3000, 0, -1, A, B, -101, -151, C, -201, -201);
    assert_int_equal(slicer.n_slices, 2);
    expect(0, 0, 4, 10.0, 11.0, " a b");
    expect(1, 4, 7, 11.5, 12.0, " c");
    assert_int_equal(slicer.advance, 200);
    /* with text begun behind the last pair */
    SLICE(true, 1000, 3000, 0, -1, A, B, -101, -151, C);
    assert_int_equal(slicer.n_slices, 1);
    expect(0, 0, 4, 10.0, 11.0, " a b");
    assert_int_equal(slicer.advance, 100);
}

static void one_timestamp_at_the_end_means_silence_after_it(void **state)
{
    (void)state;
    SLICE(true, 0, 2500, 0, -1, A, -101, -151, C, -201);
    assert_int_equal(slicer.n_slices, 2);
    expect(1, 3, 6, 1.5, 2.0, " c");
    assert_int_equal(slicer.advance, 2500);
}

static void without_pairs_the_window_is_one_segment(void **state)
{
    (void)state;
    SLICE(true, 500, 3000, 0, -1, A, B, -401);
    assert_int_equal(slicer.n_slices, 1);
    expect(0, 0, 4, 5.0, 9.0, " a b");
    assert_int_equal(slicer.advance, 3000);
    SLICE(true, 500, 1000, 0, -1, A, B);
    expect(0, 0, 3, 5.0, 15.0, " a b");
    SLICE(true, 500, 1000, 0, A, B, C);
    expect(0, 0, 3, 5.0, 15.0, " a b c");
}

/* B26: the token limit came before the end of text. */
static void a_limit_loses_no_speech(void **state)
{
    (void)state;
    /* the original would go on after the whole window */
    SLICE(false, 0, 3000, 0, -1, A, -101, -101, C, -201);
    assert_int_equal(slicer.n_slices, 2);
    assert_int_equal(slicer.advance, 200);
    assert_false(slicer.truncated);
    SLICE(false, 0, 3000, 0, -1, A, B, -401);
    assert_int_equal(slicer.advance, 400);
    assert_false(slicer.truncated);
    /* nothing says where the text ends */
    SLICE(false, 0, 3000, 0, -1, A, B, C);
    assert_int_equal(slicer.advance, 3000);
    assert_true(slicer.truncated);
}

/* B45: timestamps that lead nowhere. */
static void the_next_window_is_always_later(void **state)
{
    (void)state;
    SLICE(true, 0, 3000, 0, -1, -1, -1, A);
    assert_int_equal(slicer.advance, 3000);
    SLICE(true, 0, 100, 0, -1, A, -2801, -2801); /* past the end of the audio */
    assert_int_equal(slicer.advance, 100);
    slice(NULL, 0, true, 0, 100, 0, false);
    assert_int_equal(slicer.n_slices, 0);
    assert_int_equal(slicer.advance, 100);
}

static void segments_without_length_or_text_are_left_out(void **state)
{
    (void)state;
    SLICE(true, 0, 3000, 0, -1, A, -1, -1, B, -101, -101, ' ', ' ', -201, -201);
    assert_int_equal(slicer.n_slices, 1);
    expect(0, 3, 6, 0.0, 1.0, " b");
    assert_int_equal(slicer.advance, 200);
}

static void a_whole_window_is_one_segment(void **state)
{
    (void)state;
    const int list[] = {-1, A, -101, -151, B, -201, -201, C};
    slice(list, 8, true, 3000, 3000, 0, true);
    assert_int_equal(slicer.n_slices, 1);
    expect(0, 0, 6, 30.0, 32.0, " a b");
    assert_int_equal(slicer.advance, 200);
}

/* ---- B51: characters over borders ---- */

static void a_character_over_two_segments_goes_to_the_first(void **state)
{
    (void)state;
    /* U+20AC = E2 82 AC */
    SLICE(true, 0, 3000, 0, -1, A, 0xe2, -101, -101, 0x82, 0xac, B, -201, -201);
    assert_int_equal(slicer.n_slices, 2);
    expect(0, 0, 4, 0.0, 1.0, " a\xe2\x82\xac");
    expect(1, 4, 9, 1.0, 2.0, " b");
}

static void a_segment_that_only_ends_a_character_joins_the_one_before(void **state)
{
    (void)state;
    SLICE(true, 0, 3000, 0, -1, A, 0xe2, 0x82, -101, -101, 0xac, -201, -201, B, -301, -301);
    assert_int_equal(slicer.n_slices, 2);
    expect(0, 0, 8, 0.0, 2.0, " a\xe2\x82\xac");
    expect(1, 8, 11, 2.0, 3.0, " b");
}

/* Every way of cutting characters of two, three and four bytes into segments, and limits of one to four tokens: the joined
 * texts are the whole text, each is valid, no token is lost. */
static void joined_segments_are_the_text(void **state)
{
    (void)state;
    static const char text[] = "\xc3\xa9z\xe2\x82\xac\xf0\x9f\x98\x80 x";
    const int n = (int)sizeof text - 1;
    for (int cuts = 0; cuts < 1 << (n - 1); cuts++)
        for (int limit = 0; limit <= 4; limit++) {
            int list[MAX], count = 0, time = 0;
            list[count++] = -1;
            for (int i = 0; i < n; i++) {
                list[count++] = (uint8_t)text[i];
                if (i + 1 < n && (cuts >> i & 1)) {
                    time += 10;
                    list[count++] = -time - 1;
                    list[count++] = -time - 1;
                }
            }
            list[count++] = -time - 11;
            slice(list, count, true, 0, 3000, limit, false);
            /* a segment of the one space is left out, as in the original */
            const bool lone_space = (cuts >> (n - 3) & 1) && (cuts >> (n - 2) & 1);
            char joined[64] = "";
            int tokens = 0;
            double last = 0;
            for (int i = 0; i < slicer.n_slices; i++) {
                const st_slice *s = &slicer.slices[i];
                strncat(joined, slicer.bytes + s->text_first, s->text_end - s->text_first);
                assert_true(st_utf8_valid(slicer.bytes + s->text_first, s->text_end - s->text_first));
                assert_true(s->start >= last && s->stop >= s->start);
                last = s->stop;
                assert_true(s->first == tokens || lone_space);
                tokens = s->end;
            }
            if (!lone_space) {
                assert_int_equal(tokens, count);
                assert_string_equal(joined, text);
            }
        }
}

static void bytes_that_are_no_character_are_replaced(void **state)
{
    (void)state;
    SLICE(true, 0, 3000, 0, -1, A, 0xe2, 0x82, -101, -101, B, 0xff, -201, -201);
    st_results r = {0};
    assert_int_equal(st_results_reset(&r, &err), SOTTO_OK);
    const float logprobs[MAX] = {0};
    int32_t tokens[MAX];
    const int list[] = {-1, A, 0xe2, 0x82, -101, -101, B, 0xff, -201, -201};
    tokens_of(list, 10, tokens);
    const st_decode_result window = {.tokens = tokens, .logprobs = logprobs, .n_tokens = 10};
    const sotto_whisper_segment *s;
    for (int i = 0; i < 2; i++)
        assert_int_equal(st_results_add(&r, &slicer, &slicer.slices[i], &window, 0, 30, "en", &s, &err), SOTTO_OK);
    assert_string_equal(r.segments[0]->text, " a\xef\xbf\xbd");
    assert_string_equal(r.segments[1]->text, " b\xef\xbf\xbd");
    assert_int_equal(r.segments[1]->n_tokens, 4);
    assert_int_equal(r.segments[1]->tokens[2].n_bytes, 1);
    assert_string_equal(r.segments[1]->tokens[3].bytes, "<|2.00|>");
    st_results_free(&r);
}

/* ---- the caller's limit ---- */

static void long_segments_are_cut_and_share_their_time(void **state)
{
    (void)state;
    SLICE(true, 0, 3000, 2, -1, A, B, C, D, E, -501, -501, A, -601, -601);
    assert_int_equal(slicer.n_slices, 4);
    expect(0, 0, 3, 0.0, 2.0, " a b");
    expect(1, 3, 5, 2.0, 4.0, " c d");
    expect(2, 5, 7, 4.0, 5.0, " e");
    expect(3, 7, 10, 5.0, 6.0, " a");
    assert_int_equal(slicer.advance, 600);
    SLICE(true, 0, 3000, 1, -1, 0xe2, 0x82, 0xac, A, -401);
    assert_int_equal(slicer.n_slices, 2);
    expect(0, 0, 4, 0.0, 3.0, "\xe2\x82\xac");
    expect(1, 4, 6, 3.0, 4.0, " a");
}

static void no_piece_is_without_text(void **state)
{
    (void)state;
    /* the second segment's first two tokens finish the character of the first */
    SLICE(true, 0, 3000, 2, -1, A, 0xe2, -201, -201, 0x82, 0xac, B, -301);
    assert_int_equal(slicer.n_slices, 2);
    expect(0, 0, 4, 0.0, 2.0, " a\xe2\x82\xac");
    expect(1, 4, 9, 2.0, 3.0, " b");
}

/* ---- B43, B44: times ---- */

static void times_stay_inside_and_never_go_back(void **state)
{
    (void)state;
    static const double starts[] = {0.5, 0.2, 2.0, 3.5, 4.0}, stops[] = {1.0, 0.6, 3.0, 3.9, 5.0};
    const int32_t tokens[] = {A};
    const float logprobs[] = {-1.0f};
    const st_decode_result window = {.tokens = tokens, .logprobs = logprobs, .n_tokens = 1};
    const int list[] = {A};
    slice(list, 1, true, 0, 3000, 0, false);
    st_results r = {0};
    assert_int_equal(st_results_reset(&r, &err), SOTTO_OK);
    double last = 0;
    for (int i = 0; i < 5; i++) {
        st_slice s = slicer.slices[0];
        s.start = starts[i];
        s.stop = stops[i];
        const sotto_whisper_segment *out;
        assert_int_equal(st_results_add(&r, &slicer, &s, &window, 0, 3.2, "en", &out, &err), SOTTO_OK);
        assert_true(out->start >= last);
        assert_true(out->end >= out->start);
        assert_true(out->end <= 3.2);
        assert_true(out->tokens[0].start == out->start && out->tokens[0].end == out->end);
        assert_true(fabs((double)out->tokens[0].probability - exp(-1)) < 1e-6);
        last = out->end;
    }
    assert_true(r.segments[3]->start < r.segments[3]->end); /* placed in what is left before the end */
    st_results_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pairs_of_timestamps_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(one_timestamp_at_the_end_means_silence_after_it, setup, teardown),
        cmocka_unit_test_setup_teardown(without_pairs_the_window_is_one_segment, setup, teardown),
        cmocka_unit_test_setup_teardown(a_limit_loses_no_speech, setup, teardown),
        cmocka_unit_test_setup_teardown(the_next_window_is_always_later, setup, teardown),
        cmocka_unit_test_setup_teardown(segments_without_length_or_text_are_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(a_whole_window_is_one_segment, setup, teardown),
        cmocka_unit_test_setup_teardown(a_character_over_two_segments_goes_to_the_first, setup, teardown),
        cmocka_unit_test_setup_teardown(a_segment_that_only_ends_a_character_joins_the_one_before, setup, teardown),
        cmocka_unit_test_setup_teardown(joined_segments_are_the_text, setup, teardown),
        cmocka_unit_test_setup_teardown(bytes_that_are_no_character_are_replaced, setup, teardown),
        cmocka_unit_test_setup_teardown(long_segments_are_cut_and_share_their_time, setup, teardown),
        cmocka_unit_test_setup_teardown(no_piece_is_without_text, setup, teardown),
        cmocka_unit_test_setup_teardown(times_stay_inside_and_never_go_back, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
