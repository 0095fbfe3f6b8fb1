/* How much voice a window's text leaves out, by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "models/whisper/missed.h"

enum { N_MELS = 4, STAMP = 1000 };

static st_voice voice;
static float mel[ST_MISSED_FRAMES * N_MELS];

/* Frames [first, end) get this mean, unevenly over the bands, and two of every ten `swing` less. */
static void fill(int first, int end, float value, float swing)
{
    for (int i = first; i < end; i++)
        for (int m = 0; m < N_MELS; m++)
            mel[i * N_MELS + m] = value - (i % 10 < 2 ? swing : 0.0f) + 0.3f * (float)(2 * m - 3);
}

static void voice_is_what_is_nearly_as_loud_as_the_loudest(void **state)
{
    (void)state;
    fill(0, 1000, 1.0f, 1.0f);
    fill(1000, 1500, 0.65f, 1.0f); /* 14 dB below */
    fill(1500, 2000, 0.55f, 1.0f); /* 18 dB below */
    fill(2000, 3000, -0.5f, 0.0f);
    st_voice_from_mel(&voice, mel, N_MELS, 3000);
    assert_int_equal(voice.before[1000], 800);
    assert_int_equal(voice.before[1500], 1200);
    assert_int_equal(voice.before[3000], 1200);
    st_voice_from_mel(&voice, mel, N_MELS, 1150); /* what is behind the recording is none of it */
    assert_int_equal(voice.before[3000], 800 + 120);
}

static void in_noise_the_middle_is_the_border(void **state)
{
    (void)state;
    fill(0, 1000, 1.0f, 0.3f); /* quiet is 0.68, loud 1: the border is at 0.84 */
    fill(1000, 2000, 0.82f, 0.3f);
    fill(2000, 3000, 0.68f, 0.0f);
    st_voice_from_mel(&voice, mel, N_MELS, 3000);
    assert_int_equal(voice.before[3000], 800);
}

static void what_does_not_rise_and_fall_is_no_voice(void **state)
{
    (void)state;
    fill(0, 1000, 1.0f, 0.5f);
    fill(1000, 2000, 1.0f, 0.19f); /* noise as loud as the speech before it */
    fill(2000, 3000, 0.0f, 0.0f);
    st_voice_from_mel(&voice, mel, N_MELS, 3000);
    assert_int_equal(voice.before[3000], 800);
    fill(0, 3000, 0.4f, 0.0f);
    st_voice_from_mel(&voice, mel, N_MELS, 3000);
    assert_int_equal(voice.before[3000], 0);
    st_voice_from_mel(&voice, mel, N_MELS, 0);
    assert_int_equal(voice.before[3000], 0);
}

static void spans_of_speech_are_voice(void **state)
{
    (void)state;
    const st_chunk spans[] = {{10, 150}, {200, 300}, {3050, 9000}};
    st_speech speech = {.spans = spans, .n_spans = 3, .open = -1};
    st_voice_from_speech(&voice, &speech, 100, 3000);
    assert_int_equal(voice.before[50], 50);
    assert_int_equal(voice.before[100], 50);
    assert_int_equal(voice.before[200], 150);
    assert_int_equal(voice.before[2950], 150);
    assert_int_equal(voice.before[3000], 200);
    speech.n_spans = 2;
    speech.open = 3000;
    st_voice_from_speech(&voice, &speech, 100, 2950);
    assert_int_equal(voice.before[3000], 150 + 50);
    speech.open = 50; /* it began before the window */
    st_voice_from_speech(&voice, &speech, 100, 1000);
    assert_int_equal(voice.before[3000], 1000);
}

static void all_voiced(void)
{
    voice.per_token = ST_MISSED_PER_TOKEN;
    for (int i = 0; i <= ST_MISSED_FRAMES; i++)
        voice.before[i] = i;
}

static void expect(const int32_t *tokens, int n, int64_t size, int64_t inside, int64_t rest, int64_t last)
{
    const st_missed m = st_missed_count(&voice, tokens, n, STAMP, size);
    assert_int_equal(m.inside, inside);
    assert_int_equal(m.rest, rest);
    assert_int_equal(m.last, last);
}

static void tokens_stand_for_voice(void **state)
{
    (void)state;
    all_voiced();
    /* five tokens in 10 s: 1000 - 5 * 60; 20 s follow */
    expect((const int32_t[]){STAMP, 1, 2, 3, 4, 5, STAMP + 500}, 7, 3000, 700, 2000, 1000);
    /* the same in a window of 12 s */
    expect((const int32_t[]){STAMP, 1, 2, 3, 4, 5, STAMP + 500}, 7, 1200, 700, 200, 1000);
    /* 1 s before the first word, then 4 tokens in 1 s, 2 s of nothing, 1 token in 1 s */
    expect((const int32_t[]){STAMP + 50, 1, 2, 3, 4, STAMP + 100, STAMP + 200, 5, STAMP + 250}, 9, 500, 100 + 200 + 40,
           0, 500);
    /* the last text has no end: it reaches to the end of the window */
    expect((const int32_t[]){STAMP, 1, STAMP + 30, STAMP + 30, 2}, 5, 1000, 940 - 60, 0, -1);
    /* no timestamps, no text, nothing at all */
    expect((const int32_t[]){1, 2}, 2, 3000, 3000 - 120, 0, -1);
    expect(NULL, 0, 3000, 3000, 0, -1);
    /* spans of speech have pauses in them: 1000 - 5 * 100 */
    voice.per_token = ST_MISSED_PER_TOKEN_OF_SPEECH;
    expect((const int32_t[]){STAMP, 1, 2, 3, 4, 5, STAMP + 500}, 7, 3000, 500, 2000, 1000);
    voice.per_token = ST_MISSED_PER_TOKEN;
    /* a timestamp behind the window */
    expect((const int32_t[]){STAMP, 1, STAMP + 1500}, 3, 500, 440, 0, 500);
}

static void voice_in(const st_chunk *spans, int n)
{
    const st_speech speech = {.spans = spans, .n_spans = n, .open = -1};
    st_voice_from_speech(&voice, &speech, 0, 3000);
}

static void a_window_begins_in_the_pause_before_its_first_word(void **state)
{
    (void)state;
    /* words of 2 s, pauses of 0.4 s, a consonant of 0.1 s in the second word */
    const st_chunk words[] = {{0, 200}, {240, 280}, {290, 440}, {480, 700}};
    voice_in(words, 4);
    const int64_t begin = 240 - ST_VOICE_PAUSE / 2;
    assert_int_equal(st_voice_begin(&voice, 241, 3000), begin);
    assert_int_equal(st_voice_begin(&voice, 275, 3000), begin);
    assert_int_equal(st_voice_begin(&voice, 310, 3000), begin); /* across the consonant */
    assert_int_equal(st_voice_begin(&voice, 240 + ST_VOICE_REACH, 3000), begin);
    assert_int_equal(st_voice_begin(&voice, 241 + ST_VOICE_REACH, 3000), 241 + ST_VOICE_REACH); /* words before it */
    /* in a pause, or where the last word is nearly over */
    assert_int_equal(st_voice_begin(&voice, 220, 3000), 220);
    assert_int_equal(st_voice_begin(&voice, 240, 3000), begin);
    const st_chunk shorter[] = {{0, 200}, {240, 270}, {310, 700}};
    voice_in(shorter, 3);
    assert_int_equal(st_voice_begin(&voice, 271 - ST_VOICE_TAIL, 3000), 271 - ST_VOICE_TAIL);
    assert_int_equal(st_voice_begin(&voice, 269 - ST_VOICE_TAIL, 3000), begin);
}

static void a_window_begins_where_told_without_a_pause(void **state)
{
    (void)state;
    all_voiced();
    assert_int_equal(st_voice_begin(&voice, 50, 3000), 50); /* the window before began in the midst of it */
    assert_int_equal(st_voice_begin(&voice, 500, 3000), 500);
    assert_int_equal(st_voice_begin(&voice, 0, 3000), 0);
    assert_int_equal(st_voice_begin(&voice, 3000, 3000), 3000);
    assert_int_equal(st_voice_begin(&voice, 9000, 9000), 9000);
    const st_chunk close[] = {{0, 200}, {200 + ST_VOICE_PAUSE - 1, 700}};
    voice_in(close, 2);
    assert_int_equal(st_voice_begin(&voice, 240, 3000), 240); /* too short for a pause */
    voice_in(NULL, 0);
    assert_int_equal(st_voice_begin(&voice, 240, 3000), 240);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(voice_is_what_is_nearly_as_loud_as_the_loudest),
        cmocka_unit_test(in_noise_the_middle_is_the_border),
        cmocka_unit_test(what_does_not_rise_and_fall_is_no_voice),
        cmocka_unit_test(spans_of_speech_are_voice),
        cmocka_unit_test(tokens_stand_for_voice),
        cmocka_unit_test(a_window_begins_in_the_pause_before_its_first_word),
        cmocka_unit_test(a_window_begins_where_told_without_a_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
