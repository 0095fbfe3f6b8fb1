/* Recordings of several windows with a scripted network. Rows B03, B23 to B27, B30, B31, B33 to B35 and B43 to B45 of the list of
 * known faults; every option's range. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "speech_support.h"

enum { A = WORD_A };

static st_vocab *vocab;
static fake_net net;
static fake_audio audio;
static st_longform *lf;
static sotto_whisper_options options;
static sotto_error err;

typedef struct heard {
    int n_segments, n_progress, n_full;
    double done, total;
    char log[600];
    int abort_after; /* 0 = never */
    int n_abort;
} heard;
static heard ears;

static void on_segment(void *user, const sotto_whisper_segment *segment)
{
    heard *h = user;
    assert_int_equal(segment->id, h->n_segments);
    h->n_segments++;
}

static void on_progress(void *user, double done, double total)
{
    heard *h = user;
    assert_true(done >= h->done || h->n_progress == 0);
    h->n_progress++;
    h->done = done;
    h->total = total;
    if (done >= total && (total > 0 || done == 0))
        h->n_full++;
}

static bool on_abort(void *user)
{
    heard *h = user;
    h->n_abort++;
    return h->abort_after > 0 && h->n_abort >= h->abort_after;
}

static void on_log(void *user, sotto_log_level level, const char *text)
{
    heard *h = user;
    (void)level;
    snprintf(h->log, sizeof h->log, "%s", text);
}

static int setup(void **state)
{
    (void)state;
    vocab = fake_vocab(3, true);
    ears = (heard){0};
    sotto_whisper_options_default(&options);
    options.language = "en";
    options.beam_size = 1;
    options.temperature_inc = 0;
    options.on_segment = on_segment;
    options.on_progress = on_progress;
    options.abort = on_abort;
    options.logger = (sotto_logger){on_log, &ears};
    options.user = &ears;
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

static void start(fake_script script)
{
    st_longform_free(lf);
    fake_init(&net, vocab, 5, script, NULL);
    const st_engine engine = fake_engine(&net);
    const st_window_source source = fake_source(&audio);
    assert_int_equal(st_longform_create(vocab, &engine, &source, &lf, &err), SOTTO_OK);
}

static void transcribe(int64_t frames)
{
    ears = (heard){0};
    audio.n = net.n_encode = net.n_prompts = 0;
    if (st_longform_begin(lf, &options, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    if (st_longform_run(lf, frames, true, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
}

/* Window w says one word: the letter w, from 0.00 to 2.00 s and silence after it. Languages: window w speaks number w % 3. */
static void one_word(fake_net *n, int window, const int32_t *history, int length, float *logits)
{
    (void)n;
    if (history[length - 1] == vocab->sot) {
        logits[vocab->language + window % 3] = 0;
        return;
    }
    int so_far = length;
    const int32_t *mine = sampled(vocab, history, &so_far);
    const bool text_only = mine[-1] == vocab->no_timestamps;
    const int32_t all[] = {stamp(vocab, 0), A + window % 26, stamp(vocab, 200), vocab->eot};
    want(logits, text_only ? (so_far == 0 ? all[1] : vocab->eot) : all[so_far < 3 ? so_far : 3]);
}

/* Speech without a pause: words of half a second each, up to the window's end; the words before a pair of timestamps are a
 * segment of three. Text-only windows hold as many words as there is audio. Word i of the recording is the letter i % 26. */
static void running_speech(fake_net *n, int window, const int32_t *history, int length, float *logits)
{
    const int first = ((int)n->first_mel[window] + 49) / 50; /* words that begin inside the window */
    const int offset = first * 50 - (int)n->first_mel[window];
    const int window_frames = (int)(audio.end[audio.n - 1] - audio.first[audio.n - 1]);
    const int words = (window_frames - offset) / 50; /* whole ones */
    if (history[length - 1] == vocab->sot)
        return;
    int so_far = length;
    const int32_t *mine = sampled(vocab, history, &so_far);
    if (mine[-1] == vocab->no_timestamps) {
        want(logits, so_far < words ? A + (first + so_far) % 26 : vocab->eot);
        return;
    }
    /* stamp w w w stamp | stamp w w w stamp | ... */
    const int group = so_far / 5, in_group = so_far % 5, word = group * 3 + in_group - 1;
    if (group * 3 >= words)
        want(logits, vocab->eot);
    else if (in_group == 0)
        want(logits, stamp(vocab, offset + group * 150));
    else if (in_group == 4 || word >= words)
        want(logits, so_far > 0 && mine[so_far - 1] >= vocab->timestamp
                         ? vocab->eot
                         : stamp(vocab, offset + (group * 3 + 3 < words ? group * 3 + 3 : words) * 50));
    else
        want(logits, A + (first + word) % 26);
}

static int count_words(void)
{
    int n = 0;
    for (int64_t i = 0; i < st_longform_count(lf); i++)
        for (const char *p = st_longform_segment(lf, i)->text; *p; p++)
            n += *p != ' ';
    return n;
}

/* ---- windows ---- */

static void windows_follow_each_other(void **state)
{
    (void)state;
    start(one_word);
    transcribe(7500);
    assert_int_equal(st_longform_count(lf), 3);
    assert_int_equal(audio.n, 3);
    const int64_t firsts[] = {0, 3000, 6000}, ends[] = {3000, 6000, 7500};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(audio.first[i], firsts[i]);
        assert_int_equal(audio.end[i], ends[i]);
        assert_int_equal(net.n_frames[i], ends[i] - firsts[i]);
        const sotto_whisper_segment *s = st_longform_segment(lf, i);
        assert_true(s->start == 30.0 * i && s->end == 30.0 * i + 2.0 && s->seek == 30.0 * i);
        assert_int_equal(s->text[1], 'a' + i);
        assert_string_equal(s->language, "en");
    }
    assert_int_equal(ears.n_segments, 3);
    assert_null(st_longform_segment(lf, 3));
    assert_null(st_longform_segment(lf, -1));
    assert_int_equal(st_longform_counters(lf)->n_encode, 3);
    assert_int_equal(st_longform_counters(lf)->n_prompt, 3);
    assert_int_equal(st_longform_counters(lf)->n_decode, 9);
}

/* B03 */
static void progress_ends_at_the_whole_once(void **state)
{
    (void)state;
    static const int64_t lengths[] = {0, 1, 99, 2999, 3000, 3001, 7500};
    start(one_word);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        transcribe(lengths[i]);
        assert_int_equal(ears.n_full, 1);
        assert_true(ears.done == ears.total && ears.total == (double)lengths[i] / 100);
        assert_int_equal(st_longform_run(lf, lengths[i], true, &err), SOTTO_OK);
        assert_int_equal(ears.n_full, 1);
    }
    audio.n = 0;
    ears = (heard){0};
    assert_int_equal(st_longform_begin(lf, &options, &err), SOTTO_OK);
    st_longform_set_total(lf, 9000);
    assert_int_equal(st_longform_run(lf, 4000, false, &err), SOTTO_OK);
    assert_int_equal(ears.n_progress, 1);
    assert_true(ears.done == 30.0 && ears.total == 90.0);
}

static void empty_audio_gives_no_segments(void **state)
{
    (void)state;
    start(one_word);
    transcribe(0);
    assert_int_equal(st_longform_count(lf), 0);
    assert_int_equal(audio.n, 0);
    /* B04: a tenth of a second is decoded */
    transcribe(10);
    assert_int_equal(st_longform_count(lf), 1);
    assert_true(st_longform_segment(lf, 0)->end == 0.1);
    /* B44: the length in samples is a part of a frame more */
    assert_int_equal(st_longform_begin(lf, &options, &err), SOTTO_OK);
    ears = (heard){0};
    audio.n = 0;
    st_longform_set_duration(lf, 0.106);
    assert_int_equal(st_longform_run(lf, 10, true, &err), SOTTO_OK);
    assert_true(st_longform_segment(lf, 0)->end == 0.106);
}

/* A window is decoded when it, one frame more and the lookahead are there. */
static void pieces_wait_for_whole_windows(void **state)
{
    (void)state;
    start(one_word);
    assert_int_equal(st_longform_begin(lf, &options, &err), SOTTO_OK);
    assert_int_equal(st_longform_run(lf, 3000, false, &err), SOTTO_OK);
    assert_int_equal(audio.n, 0);
    assert_int_equal(st_longform_run(lf, 3001, false, &err), SOTTO_OK);
    assert_int_equal(audio.n, 1);
    assert_int_equal(st_longform_seek(lf), 3000);
    st_longform_set_lookahead(lf, 500);
    assert_int_equal(st_longform_run(lf, 6500, false, &err), SOTTO_OK);
    assert_int_equal(audio.n, 1);
    assert_int_equal(st_longform_run(lf, 6501, false, &err), SOTTO_OK);
    assert_int_equal(audio.n, 2);
    assert_int_equal(st_longform_run(lf, 6501, true, &err), SOTTO_OK);
    assert_int_equal(audio.n, 3);
    assert_int_equal(st_longform_count(lf), 3);
}

/* B23, B24 */
static void nothing_outside_offset_and_duration_is_heard(void **state)
{
    (void)state;
    static const struct {
        double offset, duration;
        int64_t first, end; /* of the only window; first -1: none */
    } cases[] = {
        {35, 0, 3500, 4000},
        {40, 0, -1, 0},
        {41, 0, -1, 0},
        {5, 1, 500, 600},
        {5, 0.001, -1, 0},
        {35, 100, 3500, 4000},
        {35, 2147483647.0, 3500, 4000},
        {39.99, 0, 3999, 4000},
        {1e12, 1e12, -1, 0},
        {12.34, 5.678, 1234, 1802},
    };
    start(one_word);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        options.offset = cases[i].offset;
        options.duration = cases[i].duration;
        transcribe(4000);
        assert_int_equal(audio.n, cases[i].first < 0 ? 0 : 1);
        assert_int_equal(ears.n_full, 1);
        if (audio.n == 0)
            continue;
        assert_int_equal(audio.first[0], cases[i].first);
        assert_int_equal(audio.end[0], cases[i].end);
        const sotto_whisper_segment *s = st_longform_segment(lf, 0);
        assert_true(s->start >= cases[i].offset - 1e-9);
        assert_true(cases[i].duration == 0 || s->end <= cases[i].offset + cases[i].duration);
        assert_true(s->end <= 40.0);
    }
}

/* Says one word after a time stamp far behind the window's end. */
static void late_word(fake_net *n, int window, const int32_t *history, int length, float *logits)
{
    (void)n;
    (void)window;
    if (history[length - 1] == vocab->sot)
        return;
    int so_far = length;
    sampled(vocab, history, &so_far);
    const int32_t all[] = {stamp(vocab, 400), A, stamp(vocab, 700), vocab->eot};
    want(logits, all[so_far < 3 ? so_far : 3]);
}

/* B24, B45: a time that is brought back into the window is not brought back to before its start. */
static void times_behind_the_window_are_brought_into_it(void **state)
{
    (void)state;
    options.offset = 5;
    options.duration = 1;
    options.max_initial_timestamp = -1;
    start(late_word);
    transcribe(4000);
    assert_int_equal(st_longform_count(lf), 1);
    const sotto_whisper_segment *s = st_longform_segment(lf, 0);
    assert_true(s->start == 5.0 && s->end == 6.0);
}

/* B25: 77 s of speech are the same words with and without timestamps. */
static void hiding_timestamps_loses_nothing(void **state)
{
    (void)state;
    for (int t = 0; t < 2; t++) {
        options.timestamps = t == 0;
        options.condition_on_previous_text = false;
        start(running_speech);
        net.n_ctx = 256;
        const st_engine engine = fake_engine(&net);
        const st_window_source source = fake_source(&audio);
        st_longform_free(lf);
        assert_int_equal(st_longform_create(vocab, &engine, &source, &lf, &err), SOTTO_OK);
        transcribe(7700);
        assert_int_equal(count_words(), 154);
        int word = 0;
        for (int64_t i = 0; i < st_longform_count(lf); i++)
            for (const char *p = st_longform_segment(lf, i)->text; *p; p++)
                if (*p != ' ')
                    assert_int_equal(*p, 'a' + word++ % 26);
        if (t == 1)
            assert_int_equal(st_longform_count(lf), 3);
    }
}

/* B26 */
static void max_tokens_splits_and_loses_nothing(void **state)
{
    (void)state;
    static const int limits[] = {0, 1, 2, 8, 32};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        options.max_tokens = limits[i];
        start(running_speech); /* also: half of the context, 32 tokens, is less than a window's speech */
        transcribe(2000);
        assert_int_equal(count_words(), 40);
        double last = 0;
        for (int64_t k = 0; k < st_longform_count(lf); k++) {
            const sotto_whisper_segment *s = st_longform_segment(lf, k);
            int n = 0;
            for (int64_t t = 0; t < s->n_tokens; t++)
                n += s->tokens[t].id < vocab->eot;
            assert_true(limits[i] == 0 || n <= limits[i]);
            assert_true(s->start >= last && s->end >= s->start);
            last = s->end;
        }
    }
}

/* ---- silence and language ---- */

/* Windows 0 and 1 are silent: no speech for certain, and unlikely text. */
static void late_speech(fake_net *n, int window, const int32_t *history, int length, float *logits)
{
    if (window < 2) {
        for (int32_t t = 0; t < vocab->n_vocab; t++)
            logits[t] = 0;
        if (history[length - 1] == vocab->sot) {
            logits[vocab->no_speech] = 30;
            logits[vocab->language + 2] = 5;
        }
        return;
    }
    one_word(n, window + 2, history, length, logits); /* window 2 speaks language 1 */
}

/* B27, B33 */
static void silence_is_skipped_and_does_not_choose_the_language(void **state)
{
    (void)state;
    options.language = NULL;
    start(late_speech);
    transcribe(9000);
    assert_int_equal(st_longform_count(lf), 1);
    assert_true(st_longform_segment(lf, 0)->start == 60.0);
    float p;
    assert_string_equal(st_longform_language(lf, &p), sotto_language_code(1));
    assert_true(p > 0.99f);
    assert_string_equal(st_longform_segment(lf, 0)->language, sotto_language_code(1));
    /* silence only: no segments, no language, no failure */
    transcribe(0);
    transcribe(6000);
    assert_int_equal(st_longform_count(lf), 0);
    assert_null(st_longform_language(lf, &p));
    assert_true(p == 0);
}

/* B34 */
static void languages_follow_one_rule(void **state)
{
    (void)state;
    static const struct {
        const char *given;
        const char *multilingual, *english; /* NULL: refused; "?": detected */
    } cases[] = {
        {NULL, "?", "en"},       {"", "?", "en"},    {"auto", "?", "en"}, {"en", "en", "en"},       {"EN", "en", "en"},
        {"english", "en", "en"}, {"xx", NULL, NULL}, {"de", "de", NULL},  {"Mandarin", "zh", NULL}, {"yue", NULL, NULL},
    };
    for (int multilingual = 0; multilingual < 2; multilingual++) {
        st_vocab_free(vocab);
        vocab = fake_vocab(3, multilingual);
        start(one_word);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const char *expected = multilingual ? cases[i].multilingual : cases[i].english;
            options.language = cases[i].given;
            const sotto_status status = st_longform_begin(lf, &options, &err);
            assert_int_equal(status, expected ? SOTTO_OK : SOTTO_E_ARGUMENT);
            if (!expected)
                assert_non_null(strstr(err.text, "language"));
            else if (*expected == '?')
                assert_null(st_longform_language(lf, NULL));
            else
                assert_string_equal(st_longform_language(lf, NULL), expected);
        }
        teardown(NULL);
        vocab = fake_vocab(3, true);
    }
}

static void the_language_is_detected_once(void **state)
{
    (void)state;
    options.language = "auto";
    start(one_word);
    transcribe(7500);
    assert_string_equal(st_longform_language(lf, NULL), "en"); /* window 0 */
    assert_int_equal(st_longform_counters(lf)->n_prompt, 4);   /* one of them to detect */
    for (int i = 1; i < net.n_prompts; i++)
        for (int k = 0; k < net.prompt_length[i]; k++)
            if (net.prompts[i][k] == vocab->sot)
                assert_int_equal(net.prompts[i][k + 1], vocab->language);
}

/* ---- prompts ---- */

static void expect_prompt(int i, const int32_t *tokens, int n)
{
    assert_true(net.prompt_length[i] >= n);
    for (int k = 0; k < n; k++)
        assert_int_equal(net.prompts[i][k], tokens[k]);
}

static void previous_text_is_the_prompt(void **state)
{
    (void)state;
    start(one_word);
    options.initial_prompt = "  x y\n";
    transcribe(9000);
    const int32_t prev = vocab->sot_prev, t0 = stamp(vocab, 0), t2 = stamp(vocab, 200), x = A + 23, y = A + 24,
                  sot = vocab->sot;
    const int32_t first[] = {prev, x, y, sot}, second[] = {prev, x, y, t0, A, t2, sot};
    const int32_t third[] = {prev, x, y, t0, A, t2, t0, A + 1, t2, sot};
    expect_prompt(0, first, 4);
    expect_prompt(1, second, 7);
    expect_prompt(2, third, 10);

    options.condition_on_previous_text = false;
    start(one_word);
    transcribe(9000);
    const int32_t none[] = {sot};
    expect_prompt(0, first, 4);
    expect_prompt(1, none, 1);
    expect_prompt(2, none, 1);

    options.carry_initial_prompt = true;
    start(one_word);
    transcribe(9000);
    for (int i = 0; i < 3; i++)
        expect_prompt(i, first, 4);

    options.condition_on_previous_text = true;
    options.max_context = 2;
    start(one_word);
    transcribe(9000);
    const int32_t carried[] = {prev, x, y, A + 1, t2, sot};
    expect_prompt(2, carried, 6);

    options.carry_initial_prompt = false;
    options.max_context = 0;
    start(one_word);
    transcribe(9000);
    expect_prompt(0, first, 4);
    expect_prompt(1, none, 1);

    options.max_context = -1;
    options.initial_prompt = NULL;
    options.temperature = 0.6f; /* above 0.5: not used as a prompt */
    start(one_word);
    transcribe(6000);
    expect_prompt(1, none, 1);
}

/* B31: half of the context less one is 31 tokens. */
static void long_prompts_keep_their_end(void **state)
{
    (void)state;
    static const int lengths[] = {0, 30, 31, 32, 64, 1025, 100000};
    char *text = malloc(200001);
    start(one_word);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (int k = 0; k < lengths[i]; k++) {
            text[2 * k] = ' ';
            text[2 * k + 1] = (char)('a' + k % 26);
        }
        text[2 * lengths[i]] = '\0';
        options.initial_prompt = text;
        transcribe(100);
        const int used = lengths[i] < 31 ? lengths[i] : 31;
        /* an empty prompt is the token of its one space, as in the original */
        assert_int_equal(net.prompt_length[0], lengths[i] == 0 ? 2 + 3 : used + 1 + 3);
        if (used > 0)
            assert_int_equal(net.prompts[0][used], A + (lengths[i] - 1) % 26);
        assert_int_equal(strstr(ears.log, "the last 31") != NULL, lengths[i] > 31);
    }
    free(text);
    static const char *const odd[] = {"   ", "\xff\xfe a", "\xe2\x82", "<|endoftext|>"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        options.initial_prompt = odd[i];
        transcribe(100);
        for (int k = 1; net.prompts[0][k] != vocab->sot; k++)
            assert_true(net.prompts[0][k] < vocab->eot);
    }
}

/* ---- the same session again ---- */

/* Says the letter of the first frame's number, so that it does not depend on how many windows came before. */
static void by_place(fake_net *n, int window, const int32_t *history, int length, float *logits)
{
    one_word(n, (int)n->first_mel[window] / 1000, history, length, logits);
    logits[A + 20] = logits[A + 19] = -1.5f; /* for sampling */
    if (n->user && history[length - 1] == vocab->sot)
        logits[vocab->no_speech] = 30;
}

/* B35 */
static void a_second_recording_is_as_in_a_new_session(void **state)
{
    (void)state;
    char first[200] = "", again[200] = "";
    options.temperature = 1.0f;
    options.logprob_threshold = NAN;
    options.seed = 7;
    start(by_place);
    transcribe(9000);
    for (int64_t i = 0; i < st_longform_count(lf); i++)
        strcat(first, st_longform_segment(lf, i)->text);
    int silent = 1;
    net.user = &silent; /* and silence between */
    transcribe(9000);
    assert_int_equal(st_longform_count(lf), 0);
    net.user = NULL;
    transcribe(9000);
    for (int64_t i = 0; i < st_longform_count(lf); i++)
        strcat(again, st_longform_segment(lf, i)->text);
    assert_string_equal(first, again);
    assert_true(strlen(first) > 0);
}

static void an_error_ends_the_recording_and_begin_starts_anew(void **state)
{
    (void)state;
    start(one_word);
    assert_int_equal(st_longform_run(lf, 100, true, &err), SOTTO_E_ARGUMENT);
    ears.abort_after = 3;
    assert_int_equal(st_longform_begin(lf, &options, &err), SOTTO_OK);
    assert_int_equal(st_longform_run(lf, 9000, true, &err), SOTTO_E_ABORTED);
    assert_int_equal(st_longform_run(lf, 9000, true, &err), SOTTO_E_ARGUMENT);
    transcribe(9000);
    assert_int_equal(st_longform_count(lf), 3);
    net.give_nan = true;
    net.n_encode = audio.n = 0;
    assert_int_equal(st_longform_begin(lf, &options, &err), SOTTO_OK);
    assert_int_equal(st_longform_run(lf, 9000, true, &err), SOTTO_E_DEVICE);
    assert_int_equal(st_longform_count(lf), 0);
}

/* ---- options ---- */

/* B30 and the rest: field, offset in the struct, kind, good and bad values. */
static void every_option_has_a_range(void **state)
{
    (void)state;
    static const struct {
        const char *field;
        size_t at;
        char kind; /* i int, f float, d double */
        double good[3], bad[3];
    } cases[] = {
#define FIELD(name) #name, offsetof(sotto_whisper_options, name)
        {FIELD(task), 'i', {0, 1, 1}, {-1, 2, 99}},
        {FIELD(offset), 'd', {0, 0.5, 1e9}, {-0.001, NAN, INFINITY}},
        {FIELD(duration), 'd', {0, 0.001, 2147483647.0}, {-1, NAN, INFINITY}},
        {FIELD(audio_ctx), 'i', {0, 1, 1500}, {-1, 1501, 100000}},
        {FIELD(padding), 'i', {0, 1, 2}, {-1, 3, 100000}},
        {FIELD(beam_size), 'i', {0, 1, 5}, {-1, 6, 17}},
        {FIELD(best_of), 'i', {1, 2, 5}, {0, 6, 17}},
        {FIELD(patience), 'f', {1, 2, 100}, {0, -1, NAN}},
        {FIELD(length_penalty), 'f', {-1, 0, 1}, {1.1, NAN, INFINITY}},
        {FIELD(temperature), 'f', {0, 0.5, 1}, {-0.1, NAN, INFINITY}},
        {FIELD(temperature_inc), 'f', {0, 0.01, 1}, {-0.1, 0.001, NAN}},
        {FIELD(max_tokens), 'i', {0, 1, 32}, {-1, 33, 1000}},
        {FIELD(max_initial_timestamp), 'f', {-1, 0, 30}, {31, NAN, INFINITY}},
        {FIELD(n_suppress_tokens), 'i', {0, 0, 0}, {-1, 5, 2000000}},
        {FIELD(size),
         'i',
         {sizeof(sotto_whisper_options), sizeof(sotto_whisper_options), sizeof(sotto_whisper_options)},
         {0, 8, sizeof(sotto_whisper_options) + 8}},
#undef FIELD
    };
    options.temperature_inc = 0.2f;
    start(one_word);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < 6; k++) {
            sotto_whisper_options o = options;
            const double value = k < 3 ? cases[i].good[k] : cases[i].bad[k - 3];
            char *at = (char *)&o + cases[i].at;
            if (cases[i].kind == 'i')
                *(int *)at = (int)value;
            else if (cases[i].kind == 'f')
                *(float *)at = (float)value;
            else
                *(double *)at = value;
            const sotto_status status = st_longform_begin(lf, &o, &err);
            if (status != (k < 3 ? SOTTO_OK : SOTTO_E_ARGUMENT))
                fail_msg("%s = %g: %s", cases[i].field, value, sotto_status_name(status));
            if (k >= 3 && !strstr(err.text, cases[i].field))
                fail_msg("%s = %g: %s", cases[i].field, value, err.text);
        }
    assert_int_equal(st_longform_begin(lf, NULL, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(net.n_encode, 0); /* refused before any audio is heard */
    const int32_t ids[] = {5, -1};
    options.suppress_tokens = ids;
    options.n_suppress_tokens = 2;
    assert_int_equal(st_longform_begin(lf, &options, &err), SOTTO_E_ARGUMENT);
    assert_non_null(strstr(err.text, "suppress_tokens[1]"));
    options.n_suppress_tokens = 1;
    assert_int_equal(st_longform_begin(lf, &options, &err), SOTTO_OK);
}

static void a_session_of_one_sequence_takes_what_it_can_do(void **state)
{
    (void)state;
    fake_init(&net, vocab, 1, one_word, NULL);
    const st_engine engine = fake_engine(&net);
    const st_window_source source = fake_source(&audio);
    assert_int_equal(st_longform_create(vocab, &engine, &source, &lf, &err), SOTTO_OK);
    transcribe(100); /* greedy without fallback: best_of 5 is never reached */
    options.beam_size = 2;
    assert_int_equal(st_longform_begin(lf, &options, &err), SOTTO_E_ARGUMENT);
    options.beam_size = 1;
    options.temperature_inc = 0.2f;
    assert_int_equal(st_longform_begin(lf, &options, &err), SOTTO_E_ARGUMENT);
    options.best_of = 1;
    assert_int_equal(st_longform_begin(lf, &options, &err), SOTTO_OK);
}

/* B32: a shorter encoder context means shorter windows, so that nothing is passed over. */
static void a_short_audio_context_shortens_the_windows(void **state)
{
    (void)state;
    options.audio_ctx = 100;
    start(one_word);
    transcribe(500);
    assert_int_equal(audio.n, 3);
    assert_int_equal(audio.first[1], 200);
    assert_int_equal(audio.end[1], 400);
    assert_int_equal(audio.end[2], 500);
    assert_int_equal(net.n_frames[2], 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(windows_follow_each_other, setup, teardown),
        cmocka_unit_test_setup_teardown(progress_ends_at_the_whole_once, setup, teardown),
        cmocka_unit_test_setup_teardown(empty_audio_gives_no_segments, setup, teardown),
        cmocka_unit_test_setup_teardown(pieces_wait_for_whole_windows, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_outside_offset_and_duration_is_heard, setup, teardown),
        cmocka_unit_test_setup_teardown(times_behind_the_window_are_brought_into_it, setup, teardown),
        cmocka_unit_test_setup_teardown(hiding_timestamps_loses_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(max_tokens_splits_and_loses_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(silence_is_skipped_and_does_not_choose_the_language, setup, teardown),
        cmocka_unit_test_setup_teardown(languages_follow_one_rule, setup, teardown),
        cmocka_unit_test_setup_teardown(the_language_is_detected_once, setup, teardown),
        cmocka_unit_test_setup_teardown(previous_text_is_the_prompt, setup, teardown),
        cmocka_unit_test_setup_teardown(long_prompts_keep_their_end, setup, teardown),
        cmocka_unit_test_setup_teardown(a_second_recording_is_as_in_a_new_session, setup, teardown),
        cmocka_unit_test_setup_teardown(an_error_ends_the_recording_and_begin_starts_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(every_option_has_a_range, setup, teardown),
        cmocka_unit_test_setup_teardown(a_session_of_one_sequence_takes_what_it_can_do, setup, teardown),
        cmocka_unit_test_setup_teardown(a_short_audio_context_shortens_the_windows, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
