/* Recordings of which only the speech is decoded, with a scripted network. Windows are 3000 frames, pauses keep 60. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/whisper/missed.h"
#include "speech_support.h"

enum { A = WORD_A, STEP = 50, LATE = 20 };

static st_vocab *vocab;
static fake_net net;
static fake_audio audio;
static st_longform *lf;
static sotto_whisper_options options;
static sotto_error err;
static int n_full;

static void on_progress(void *user, double done, double total)
{
    (void)user;
    n_full += done >= total;
}

static int setup(void **state)
{
    (void)state;
    vocab = fake_vocab(3, true);
    sotto_whisper_options_default(&options);
    options.language = "en";
    options.beam_size = 1;
    options.temperature_inc = 0;
    options.recover_missed = false;
    options.on_progress = on_progress;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    st_longform_free(lf);
    lf = NULL;
    st_vocab_free(vocab);
    return 0;
}

static void say(const int32_t *all, const int32_t *history, int length, float *logits)
{
    if (history[length - 1] == vocab->sot)
        return;
    int so_far = length;
    sampled(vocab, history, &so_far);
    want(logits, all[so_far < 4 ? so_far : 4]);
}

/* A word from 0.00 to 2.00 s, and nothing in the rest of the window. */
static void one_word(fake_net *n, int window, const int32_t *history, int length, float *logits)
{
    (void)n;
    say((const int32_t[]){stamp(vocab, 0), A + window % 26, stamp(vocab, 200), vocab->eot, vocab->eot}, history, length,
        logits);
}

/* The same, but the next window is to begin at 2.00 s. */
static void word_by_word(fake_net *n, int window, const int32_t *history, int length, float *logits)
{
    (void)n;
    say((const int32_t[]){stamp(vocab, 0), A + window % 26, stamp(vocab, 200), stamp(vocab, 200), vocab->eot}, history,
        length, logits);
}

static void start(fake_script script)
{
    st_longform_free(lf);
    fake_init(&net, vocab, 5, script, NULL);
    const st_engine engine = fake_engine(&net);
    const st_window_source source = fake_source(&audio);
    assert_int_equal(st_longform_create(vocab, &engine, &source, &lf, &err), SOTTO_OK);
    audio.n = n_full = 0;
    if (st_longform_begin(lf, &options, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
}

static void transcribe(fake_script script, const st_chunk *spans, int n, int64_t frames)
{
    const st_speech speech = {.spans = spans, .n_spans = n, .open = -1, .final = true};
    start(script);
    st_longform_set_speech(lf, &speech);
    if (st_longform_run(lf, frames, true, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    assert_int_equal(n_full, 1);
}

static void expect_windows(int n, const int64_t *want_windows)
{
    assert_int_equal(audio.n, n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(audio.first[i], want_windows[2 * i]);
        assert_int_equal(audio.end[i], want_windows[2 * i + 1]);
    }
}

static const st_chunk far[] = {{100, 540}, {5000, 5400}, {5500, 5600}};
static const int64_t far_windows[] = {40, 600, 4940, 5660};

static void times_are_those_of_the_recording(void **state)
{
    (void)state;
    transcribe(one_word, far, 3, 9000);
    expect_windows(2, far_windows);
    assert_int_equal(st_longform_count(lf), 2);
    const sotto_whisper_segment *s = st_longform_segment(lf, 0);
    assert_true(s->start == 0.4 && s->end == 2.4);
    s = st_longform_segment(lf, 1);
    assert_true(s->start == 49.4 && s->end == 51.4);
    /* only a part of the recording */
    options.offset = 2;
    options.duration = 50;
    transcribe(one_word, far, 3, 9000);
    expect_windows(2, (const int64_t[]){200, 600, 4940, 5200});
}

static void silence_is_not_decoded(void **state)
{
    (void)state;
    options.language = "auto";
    transcribe(one_word, NULL, 0, 9000);
    expect_windows(0, NULL);
    assert_int_equal(st_longform_count(lf), 0);
    assert_null(st_longform_language(lf, NULL));
    transcribe(one_word, NULL, 0, 0);
    expect_windows(0, NULL);
}

static void the_rest_of_a_chunk_is_decoded_while_there_is_speech(void **state)
{
    (void)state;
    const st_chunk little[] = {{100, 235}, {400, 415}}, more[] = {{100, 235}, {400, 425}};
    transcribe(word_by_word, little, 2, 1000);
    expect_windows(1, (const int64_t[]){40, 475});
    transcribe(word_by_word, more, 2, 1000);
    assert_int_equal(audio.n, 2);
    assert_int_equal(audio.first[1], 240);
    assert_int_equal(audio.end[1], 485);
}

/* Spans are known a little after they end; what is decoded is the same, and silence is let go of. */
static void audio_may_arrive_in_pieces(void **state)
{
    (void)state;
    st_speech speech = {.spans = far, .open = -1};
    start(one_word);
    st_longform_set_speech(lf, &speech);
    for (int64_t frames = 0; frames <= 9000; frames += STEP) {
        const int64_t heard = frames > LATE ? frames - LATE : 0;
        speech.n_spans = 0;
        while (speech.n_spans < 3 && far[speech.n_spans].end <= heard)
            speech.n_spans++;
        const bool open = speech.n_spans < 3 && far[speech.n_spans].first < heard;
        speech.open = open ? far[speech.n_spans].first : -1;
        speech.heard = speech.reaches = heard;
        assert_int_equal(st_longform_run(lf, frames, false, &err), SOTTO_OK);
        if (frames == 3000)
            assert_int_equal(audio.n, 0); /* a span could still join the first */
        if (frames == 4500)
            assert_int_equal(st_longform_seek(lf), 4500 - LATE - 60);
    }
    speech.final = true;
    assert_int_equal(st_longform_run(lf, 9000, true, &err), SOTTO_OK);
    expect_windows(2, far_windows);
}

/* One word in two seconds: what is spoken after it is heard in another window, unless that is as good as nothing. */
static void speech_behind_the_end_of_a_text_is_heard_again(void **state)
{
    (void)state;
    const st_chunk much[] = {{100, 440}}, little[] = {{100, 439}};
    options.recover_missed = true;
    transcribe(one_word, much, 1, 9000); /* the window begins at 40, its word ends at 240 */
    assert_int_equal(audio.n, 2);
    assert_int_equal(audio.first[1], 240);
    transcribe(one_word, little, 1, 9000);
    assert_int_equal(audio.n, 1);
    options.recover_missed = false;
    transcribe(one_word, much, 1, 9000);
    assert_int_equal(audio.n, 1);
}

static bool at_both_ends(int64_t frame)
{
    return frame % 10 < 8 && (frame % 3000 < 200 || frame % 3000 >= 2700);
}

static void voice_behind_the_end_of_a_text_is_heard_again(void **state)
{
    (void)state;
    options.recover_missed = true;
    start(one_word);
    audio.voiced = at_both_ends;
    assert_int_equal(st_longform_run(lf, 3000, true, &err), SOTTO_OK);
    assert_int_equal(audio.n, 2); /* the second ends early, too, and is believed */
    assert_int_equal(audio.first[1], 200);
    audio.voiced = NULL;
}

/* Five words where the window is heard by itself; after other text only the first and the last. */
static void skipping(fake_net *n, int window, const int32_t *history, int length, float *logits)
{
    (void)n;
    if (history[length - 1] == vocab->sot)
        return;
    int so_far = length;
    sampled(vocab, history, &so_far);
    const int32_t all[] = {stamp(vocab, 0), A, A + 1, A + 2, A + 3, A + 4, stamp(vocab, 3000), vocab->eot};
    const int32_t few[] = {stamp(vocab, 0), A,          A + 4,      stamp(vocab, 3000),
                           vocab->eot,      vocab->eot, vocab->eot, vocab->eot};
    want(logits, (window > 0 && history[0] == vocab->sot_prev ? few : all)[so_far < 7 ? so_far : 7]);
}

static bool in_a_quarter_of_each_second(int64_t frame)
{
    return frame % 3000 < 2000 && frame % 100 < 25;
}

static void a_window_that_skips_is_decoded_without_the_text_before(void **state)
{
    (void)state;
    for (int recover = 0; recover < 2; recover++) {
        options.recover_missed = recover;
        start(skipping);
        audio.voiced = in_a_quarter_of_each_second; /* 500 frames of voice a window: 380 more than two words */
        assert_int_equal(st_longform_run(lf, 6000, true, &err), SOTTO_OK);
        assert_int_equal(audio.n, 2);
        assert_int_equal(net.n_prompts, recover ? 3 : 2);
        assert_string_equal(st_longform_segment(lf, 0)->text, " a b c d e");
        assert_string_equal(st_longform_segment(lf, 1)->text, recover ? " a b c d e" : " a e");
    }
}

/* A word until 5.00 s and the start of another, which is heard again; nothing in the second window. */
static void an_unfinished_one(fake_net *n, int window, const int32_t *history, int length, float *logits)
{
    (void)n;
    const int32_t two[] = {stamp(vocab, 0), A, stamp(vocab, 500), stamp(vocab, 500), A + 1};
    const int32_t none[] = {stamp(vocab, 0), stamp(vocab, 2000), vocab->eot, vocab->eot, vocab->eot};
    if (history[length - 1] == vocab->sot)
        return;
    int so_far = length;
    sampled(vocab, history, &so_far);
    want(logits, so_far < 5 ? (window > 0 ? none : two)[so_far] : vocab->eot);
}

static bool but_for_a_pause(int64_t frame)
{
    return frame % 10 < 8 && (frame < 440 || frame >= 480);
}

static void a_window_begins_in_the_pause_beside_a_timestamp(void **state)
{
    (void)state;
    for (int recover = 0; recover < 2; recover++) {
        options.recover_missed = recover;
        start(an_unfinished_one);
        audio.voiced = but_for_a_pause;
        assert_int_equal(st_longform_run(lf, 3400, true, &err), SOTTO_OK);
        assert_int_equal(audio.first[1], recover ? 480 - ST_VOICE_PAUSE / 2 : 500);
        assert_float_equal(st_longform_segment(lf, 0)->end, audio.first[1] / 100.0, 1e-9);
        audio.voiced = NULL;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(times_are_those_of_the_recording, setup, teardown),
        cmocka_unit_test_setup_teardown(silence_is_not_decoded, setup, teardown),
        cmocka_unit_test_setup_teardown(the_rest_of_a_chunk_is_decoded_while_there_is_speech, setup, teardown),
        cmocka_unit_test_setup_teardown(audio_may_arrive_in_pieces, setup, teardown),
        cmocka_unit_test_setup_teardown(speech_behind_the_end_of_a_text_is_heard_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_window_begins_in_the_pause_beside_a_timestamp, setup, teardown),
        cmocka_unit_test_setup_teardown(voice_behind_the_end_of_a_text_is_heard_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_window_that_skips_is_decoded_without_the_text_before, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
