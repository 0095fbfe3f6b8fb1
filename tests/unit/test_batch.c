/* Chunks decoded together: each gives what it gives alone, in the order of speech, whatever the number of slots, the pieces in
 * which audio came, the failures of the network and the moment of an abort. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/whisper/batch.h"
#include "speech_support.h"

enum { MOST_CHUNKS = 12 };

static st_vocab *vocab;
static fake_net net;
static sotto_whisper_options options;
static sotto_error err;

/* ---- the recording: mel[0] is the frame's number ---- */

typedef struct recording {
    st_chunk chunks[MOST_CHUNKS];
    int n, given;
    int64_t heard;
    int fail_window; /* windows until one fails; 0: none does */
} recording;
static recording audio;

static sotto_status window(void *ctx, int64_t first, int64_t end, float *log_mel, sotto_error *e)
{
    recording *a = ctx;
    if (a->fail_window > 0 && --a->fail_window == 0) {
        snprintf(e->text, sizeof e->text, "no window");
        return e->code = SOTTO_E_IO;
    }
    for (int64_t i = 0; i < 3000; i++)
        log_mel[2 * i] = log_mel[2 * i + 1] = first + i < end ? (float)(first + i) : 0.0f;
    return SOTTO_OK;
}

static sotto_status next(void *ctx, int64_t frames, bool final, st_chunk *out, bool *have, sotto_error *e)
{
    recording *a = ctx;
    (void)e;
    *have = a->given < a->n && (final || a->chunks[a->given].end <= frames);
    if (*have)
        *out = a->chunks[a->given++];
    return SOTTO_OK;
}

static void record(int n)
{
    audio = (recording){.n = n};
    for (int i = 0; i < n; i++) {
        const int64_t length = i % 3 == 0 ? 3000 : i % 3 == 1 ? 700 + 10 * i : 1900;
        audio.chunks[i].first = i == 0 ? 50 : audio.chunks[i - 1].end + 13;
        audio.chunks[i].end = audio.chunks[i].first + length;
    }
    audio.heard = n > 0 ? audio.chunks[n - 1].end : 0;
}

/* ---- the network: what it says depends on the frame at which the window begins ---- */

static unsigned hash(unsigned a, unsigned b)
{
    a = (a ^ b) * 2654435761u;
    return a ^ a >> 15;
}

/* Words that depend on all that came before, with a few rivals, as many as the window's first frame says. In some windows all
 * are equally likely, so that the ladder is climbed. */
static void babble(fake_net *n, int encode, const int32_t *history, int length, float *logits)
{
    const st_vocab *v = n->vocab;
    const int frame = (int)n->first_mel[encode];
    if (history[length - 1] == v->sot) {
        logits[v->language + frame % 3] = 0;
        return;
    }
    unsigned h = (unsigned)frame;
    for (int i = 0; i < length; i++)
        h = hash(h, (unsigned)history[i]);
    int so_far = length;
    const int32_t *mine = sampled(v, history, &so_far);
    const int words = 3 + frame / 10 % 9;
    if (mine[-1] != v->no_timestamps && so_far == 0) {
        want(logits, stamp(v, 0));
        return;
    }
    const bool goes_on = frame / 10 % 4 == 1; /* a pair of timestamps at the end: the next window begins there */
    if (mine[-1] != v->no_timestamps && (so_far == words || (so_far == words + 1 && goes_on))) {
        want(logits, stamp(v, goes_on ? 1500 : 200 + 10 * words));
        return;
    }
    if (so_far >= words) {
        want(logits, v->eot);
        return;
    }
    const bool unsure = frame / 10 % 5 == 0;
    for (unsigned i = 0; i < 26; i++)
        logits[WORD_A + (int)i] = unsure ? -2.0f : -8.0f;
    for (unsigned i = 0; i < 4 && !unsure; i++)
        logits[WORD_A + (int)(hash(h, i) % 26)] = -2.0f + (float)(hash(h, 100 + i) % 1000) * 0.003f;
}

/* ---- what is heard ---- */

typedef struct heard {
    int n_segments, n_progress, n_full, n_logs, n_abort, abort_after;
    double done, total, last_end;
} heard;
static heard ears;
static _Thread_local bool is_caller;

static void on_segment(void *user, const sotto_whisper_segment *s)
{
    heard *h = user;
    assert_true(is_caller);
    assert_int_equal(s->id, h->n_segments);
    assert_true(s->start >= h->last_end && s->end >= s->start);
    h->last_end = s->end;
    h->n_segments++;
}

static void on_progress(void *user, double done, double total)
{
    heard *h = user;
    assert_true(is_caller);
    assert_true(done >= h->done);
    h->done = done;
    h->total = total;
    h->n_progress++;
    h->n_full += total > 0 && done >= total;
}

static bool on_abort(void *user)
{
    heard *h = user;
    assert_true(is_caller);
    return ++h->n_abort == h->abort_after;
}

static void on_log(void *user, sotto_log_level level, const char *text)
{
    heard *h = user;
    (void)level;
    assert_true(is_caller && *text);
    h->n_logs++;
}

static int setup(void **state)
{
    (void)state;
    is_caller = true;
    vocab = fake_vocab(3, true);
    sotto_whisper_options_default(&options);
    options.language = "en";
    options.beam_size = 1;
    options.best_of = 3;
    options.seed = 5;
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
    st_vocab_free(vocab);
    return 0;
}

static st_batch *make(int n_slots)
{
    fake_init(&net, vocab, 5, babble, NULL);
    net.n_window = n_slots;
    const st_engine engine = fake_engine(&net);
    const st_batch_source source = {.audio = {.ctx = &audio, .window = window, .n_mels = 2}, .ctx = &audio, .next = next};
    st_batch *b;
    assert_int_equal(st_batch_create(vocab, &engine, &source, &b, &err), SOTTO_OK);
    return b;
}

static void begin(st_batch *b)
{
    ears = (heard){.abort_after = ears.abort_after};
    audio.given = 0;
    net.n_encode = net.n_touched = 0;
    if (st_batch_begin(b, &options, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
}

/* ---- what a chunk gives alone ---- */

static void assert_same_segment(const sotto_whisper_segment *a, const sotto_whisper_segment *b)
{
    assert_string_equal(a->text, b->text);
    assert_true(a->start == b->start && a->end == b->end && a->seek == b->seek);
    assert_true(a->temperature == b->temperature && a->avg_logprob == b->avg_logprob &&
                a->compression_ratio == b->compression_ratio && a->no_speech_probability == b->no_speech_probability);
    assert_string_equal(a->language, b->language);
    assert_int_equal(a->n_tokens, b->n_tokens);
    for (int64_t i = 0; i < a->n_tokens; i++)
        assert_true(a->tokens[i].id == b->tokens[i].id && a->tokens[i].logprob == b->tokens[i].logprob);
}

typedef struct tally {
    int64_t segments, windows, fallbacks, steps;
} tally;

/* The windows of a chunk were encoded in the batch with as much sound. */
static void assert_same_windows(const fake_net *one)
{
    for (int i = 0; i < one->n_encode; i++) {
        int k = 0;
        while (k < net.n_encode && net.first_mel[k] != one->first_mel[i])
            k++;
        assert_true(k < net.n_encode);
        assert_int_equal(net.n_frames[k], one->n_frames[i]);
    }
}

/* language: that of all chunks. */
static tally compare_with_each_alone(const st_batch *b, int language)
{
    static fake_net one;
    const st_decode_counters together = st_batch_counters(b);
    tally t = {0};
    sotto_whisper_options quiet = options;
    quiet.on_segment = NULL;
    quiet.on_progress = NULL;
    quiet.abort = NULL;
    quiet.logger.write = NULL;
    for (int i = 0; i < audio.n; i++) {
        fake_init(&one, vocab, 5, babble, NULL);
        const st_engine engine = fake_engine(&one);
        const st_window_source source = {.ctx = &audio, .window = window, .n_mels = 2};
        st_longform *lf;
        assert_int_equal(st_longform_create(vocab, &engine, &source, &lf, &err), SOTTO_OK);
        assert_int_equal(st_longform_begin(lf, &quiet, &err), SOTTO_OK);
        const st_part part = {
            audio.chunks[i].first, audio.chunks[i].end, st_batch_seed(options.seed, i), language, 1, NULL};
        assert_int_equal(st_longform_begin_part(lf, &part, &err), SOTTO_OK);
        assert_int_equal(st_longform_run(lf, audio.chunks[i].end, true, &err), SOTTO_OK);
        for (int64_t k = 0; k < st_longform_count(lf); k++) {
            const sotto_whisper_segment *s = st_batch_segment(b, t.segments++);
            assert_non_null(s);
            assert_same_segment(s, st_longform_segment(lf, k));
        }
        assert_same_windows(&one);
        t.windows += st_longform_counters(lf)->n_encode;
        t.fallbacks += st_longform_counters(lf)->n_fallback;
        t.steps += st_longform_counters(lf)->n_decode;
        st_longform_free(lf);
    }
    assert_int_equal(st_batch_count(b), t.segments);
    assert_int_equal(ears.n_segments, t.segments);
    assert_int_equal(together.n_encode, t.windows);
    assert_int_equal(together.n_fallback, t.fallbacks);
    assert_int_equal(together.n_decode, t.steps);
    return t;
}

static void each_chunk_gives_what_it_gives_alone(void **state)
{
    (void)state;
    static const struct {
        int beam;
        float inc;
        bool timestamps;
        const char *prompt;
    } ways[] = {{1, 0, true, NULL}, {5, 0, true, NULL}, {1, 0.5f, true, "a b c"}, {3, 0.25f, false, "the"}};
    static const int slots[] = {1, 2, 3, 8};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        options.beam_size = ways[w].beam;
        options.temperature_inc = ways[w].inc;
        options.timestamps = ways[w].timestamps;
        options.initial_prompt = ways[w].prompt;
        for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
            st_batch *b = make(slots[i]);
            for (int n = 0; n <= MOST_CHUNKS; n = n < 3 ? n + 1 : n + 3) {
                record(n);
                begin(b);
                if (st_batch_run(b, audio.heard, true, &err) != SOTTO_OK)
                    fail_msg("%s", err.text);
                const tally t = compare_with_each_alone(b, 0);
                assert_int_equal(ears.n_full, n > 0);
                assert_true(ears.n_progress > 0 && ears.done == ears.total);
                /* with timestamps some chunks have several windows */
                assert_true(ways[w].timestamps ? n < 3 || t.windows > n : t.windows == n);
                assert_true(n < 3 || ways[w].inc == 0 || t.fallbacks > 0);
                assert_true(n == 0 || t.segments >= n);
                assert_int_equal(st_batch_run(b, audio.heard, true, &err), SOTTO_OK);
            }
            st_batch_free(b);
        }
    }
}

/* Rows of several windows go through the network together. */
static void the_network_is_called_once_for_all(void **state)
{
    (void)state;
    options.temperature_inc = 0;
    int calls[2];
    for (int i = 0; i < 2; i++) {
        record(MOST_CHUNKS);
        st_batch *b = make(i == 0 ? 1 : 6);
        begin(b);
        assert_int_equal(st_batch_run(b, audio.heard, true, &err), SOTTO_OK);
        calls[i] = net.n_calls;
        st_batch_free(b);
    }
    assert_true(calls[1] * 3 < calls[0]);
}

/* The calls of the network, and so the result, are the same whatever the pieces in which audio came. */
static void pieces_do_not_matter(void **state)
{
    (void)state;
    int calls = 0, rows = 0;
    options.temperature_inc = 0;
    for (int64_t piece = 100000; piece > 100; piece /= 3) {
        record(MOST_CHUNKS);
        const int64_t all = audio.heard;
        st_batch *b = make(3);
        begin(b);
        for (audio.heard = 0; audio.heard < all; audio.heard += piece) {
            if (st_batch_run(b, audio.heard, false, &err) != SOTTO_OK)
                fail_msg("%s", err.text);
        }
        assert_true(piece > 3000 || ears.n_segments > 0);
        audio.heard = all;
        assert_int_equal(st_batch_run(b, all, true, &err), SOTTO_OK);
        (void)compare_with_each_alone(b, 0);
        assert_true(calls == 0 || (calls == net.n_calls && rows == net.n_rows));
        calls = net.n_calls;
        rows = net.n_rows;
        st_batch_free(b);
    }
}

/* In the first chunk, whose frame says which it is. */
static void the_language_is_detected_once(void **state)
{
    (void)state;
    options.language = NULL;
    for (int n = 0; n < 6; n++) {
        record(n);
        st_batch *b = make(4);
        begin(b);
        float p = -1;
        assert_null(st_batch_language(b, &p));
        assert_true(p == 0);
        assert_int_equal(st_batch_run(b, audio.heard, true, &err), SOTTO_OK);
        (void)compare_with_each_alone(b, 50 % 3);
        const char *code = st_batch_language(b, &p);
        if (n > 0)
            assert_string_equal(code, sotto_language_code(50 % 3));
        else
            assert_null(code);
        assert_true(n == 0 || p > 0.9f);
        st_batch_free(b);
    }
}

/* ---- failures ---- */

/* After each end a new recording is as good as the first. */
static void run_once_more(st_batch *b)
{
    ears.abort_after = net.fail_after = audio.fail_window = 0;
    begin(b);
    assert_int_equal(st_batch_run(b, audio.heard, true, &err), SOTTO_OK);
    (void)compare_with_each_alone(b, 0);
}

static void failures_of_the_network_stop_all(void **state)
{
    (void)state;
    options.temperature_inc = 0.5f;
    record(5);
    st_batch *b = make(3);
    int n = 0;
    for (sotto_status status = SOTTO_E_DEVICE; status != SOTTO_OK;) {
        begin(b);
        net.fail_after = ++n;
        status = st_batch_run(b, audio.heard, true, &err);
        if (status == SOTTO_OK)
            break;
        assert_int_equal(status, SOTTO_E_DEVICE);
        assert_string_equal(err.text, "the scripted failure");
        assert_int_equal(net.n_touched, n);
        assert_int_equal(st_batch_run(b, audio.heard, true, &err), SOTTO_E_ARGUMENT);
    }
    assert_true(n > 50);
    run_once_more(b);
    net.give_nan = true; /* a slot's own failure */
    begin(b);
    assert_int_equal(st_batch_run(b, audio.heard, true, &err), SOTTO_E_DEVICE);
    assert_non_null(strstr(err.text, "NaN"));
    net.give_nan = false;
    run_once_more(b);
    for (int i = 1; i <= 5; i++) {
        begin(b);
        audio.fail_window = i;
        assert_int_equal(st_batch_run(b, audio.heard, true, &err), SOTTO_E_IO);
        assert_string_equal(err.text, "no window");
    }
    run_once_more(b);
    st_batch_free(b);
}

static void aborts_stop_all(void **state)
{
    (void)state;
    options.temperature_inc = 0.5f;
    options.beam_size = 3;
    record(5);
    st_batch *b = make(4);
    int n = 0;
    for (sotto_status status = SOTTO_E_ABORTED; status != SOTTO_OK;) {
        ears.abort_after = ++n;
        begin(b);
        status = st_batch_run(b, audio.heard, true, &err);
        assert_true(status == SOTTO_OK || status == SOTTO_E_ABORTED);
        assert_true(status == SOTTO_OK || ears.n_abort == n);
    }
    assert_true(n > 30);
    run_once_more(b);
    st_batch_free(b);
}

/* Threads that wait for more audio are ended by a new recording and by free. */
static void a_recording_may_be_given_up(void **state)
{
    (void)state;
    record(7);
    const int64_t all = audio.heard;
    for (int i = 0; i < 8; i++) {
        st_batch *b = make(3);
        for (int k = 0; k < 3; k++) {
            begin(b);
            audio.heard = all / 8 * i;
            assert_int_equal(st_batch_run(b, audio.heard, false, &err), SOTTO_OK);
        }
        audio.heard = all;
        if (i % 2)
            run_once_more(b);
        st_batch_free(b);
    }
}

static void bad_options_and_chunks_are_refused(void **state)
{
    (void)state;
    record(2);
    st_batch *b = make(2);
    assert_int_equal(st_batch_begin(b, NULL, &err), SOTTO_E_ARGUMENT);
    options.beam_size = 9;
    assert_int_equal(st_batch_begin(b, &options, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(st_batch_run(b, audio.heard, true, &err), SOTTO_E_ARGUMENT);
    options.beam_size = 1;
    audio.chunks[1].end = audio.chunks[1].first + 3001;
    audio.heard += 3000;
    begin(b);
    assert_int_equal(st_batch_run(b, audio.heard, true, &err), SOTTO_E_INTERNAL);
    audio.chunks[1].end = audio.chunks[1].first;
    begin(b);
    assert_int_equal(st_batch_run(b, audio.heard, true, &err), SOTTO_E_INTERNAL);
    st_batch_free(b);
    st_batch_free(NULL);
}

static void babble_on(fake_net *n, int encode, const int32_t *history, int length, float *logits)
{
    (void)encode;
    if (history[length - 1] != n->vocab->sot)
        want(logits, WORD_A + length % 26);
}

/* Warnings of slots come from the caller's thread, that of the options once. */
static void warnings_are_told(void **state)
{
    (void)state;
    record(4);
    options.max_initial_timestamp = -1;
    options.timestamps = false;
    options.temperature_inc = 0;
    options.initial_prompt =
        "a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g h i j k l m n o p q r s t u v";
    for (int n = 1; n < 6; n++) {
        st_batch *b = make(n);
        net.script = babble_on;
        begin(b);
        assert_int_equal(ears.n_logs, 1);
        assert_int_equal(st_batch_run(b, audio.heard, true, &err), SOTTO_OK);
        assert_int_equal(ears.n_logs, 1 + 4);
        st_batch_free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_chunk_gives_what_it_gives_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(the_network_is_called_once_for_all, setup, teardown),
        cmocka_unit_test_setup_teardown(pieces_do_not_matter, setup, teardown),
        cmocka_unit_test_setup_teardown(the_language_is_detected_once, setup, teardown),
        cmocka_unit_test_setup_teardown(failures_of_the_network_stop_all, setup, teardown),
        cmocka_unit_test_setup_teardown(aborts_stop_all, setup, teardown),
        cmocka_unit_test_setup_teardown(a_recording_may_be_given_up, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_options_and_chunks_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(warnings_are_told, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
