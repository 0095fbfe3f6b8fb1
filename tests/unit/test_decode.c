/* One window: prompts, greedy, sampling, the ladder of temperatures, failures. Expected values are worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/whisper/ladder.h"
#include "speech_support.h"

enum { A = WORD_A, B, C, D };

static st_vocab *vocab;
static fake_net net;
static st_decoder *decoder;
static sotto_error err;

static int setup(void **state)
{
    (void)state;
    vocab = fake_vocab(3, true);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    st_decoder_free(decoder);
    decoder = NULL;
    st_vocab_free(vocab);
    return 0;
}

static void start(fake_script script, void *user)
{
    st_decoder_free(decoder);
    fake_init(&net, vocab, 5, script, user);
    const st_engine engine = fake_engine(&net);
    assert_int_equal(st_decoder_create(vocab, &engine, &decoder, &err), SOTTO_OK);
    st_decoder_begin(decoder, 0, NULL, NULL);
}

static st_decode_options plain(void)
{
    return (st_decode_options){.group = 1,
                               .patience = 1,
                               .length_penalty = -1,
                               .sample_len = FAKE_CTX / 2,
                               .filters = {.vocab = vocab, .max_initial = -1}};
}

static st_decode_result decode(const st_decode_options *o)
{
    st_decode_result r;
    if (st_decode(decoder, o, &r, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    return r;
}

/* " a", " b", " c", end. Each step: the wanted token has probability 1/2 beside one rival; no speech 1/4 at the start. */
static void spell(fake_net *n, int window, const int32_t *history, int length, float *logits)
{
    (void)window;
    if (history[length - 1] == vocab->sot) {
        for (int32_t t = 0; t < vocab->n_vocab; t++)
            logits[t] = -1000.0f;
        logits[vocab->no_speech] = logf(0.25f);
        logits[vocab->language + 1] = logf(0.5f);
        logits[vocab->language] = logf(0.125f);
        logits[A] = logf(0.125f);
        return;
    }
    int so_far = length;
    sampled(vocab, history, &so_far);
    for (int32_t t = 0; t < vocab->n_vocab; t++)
        logits[t] = -1000.0f;
    logits[so_far < 3 ? A + so_far : vocab->eot] = 0.0f;
    logits[D] = -1e-3f;
    n->user = NULL;
}

static void greedy_takes_the_likeliest_and_sums_log_probabilities(void **state)
{
    (void)state;
    start(spell, NULL);
    const st_decode_options o = plain();
    const st_decode_result r = decode(&o);
    assert_int_equal(r.n_tokens, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(r.tokens[i], A + i);
    assert_true(r.complete);
    /* log of 1 / (1 + e^-0.001), four times */
    const double each = -log1p(exp(-1e-3));
    assert_true(fabs(r.sum_logprob - 4 * each) < 1e-5);
    assert_true(fabs((double)r.avg_logprob - each) < 1e-6);
    assert_true(fabs((double)r.logprobs[1] - each) < 1e-6);
    assert_true(fabs((double)r.no_speech_prob - 0.25) < 1e-6);
    /* "a b c": 5 bytes, deflated to 13 (checked with Python) */
    assert_true(fabs((double)r.compression_ratio - 5.0 / 13.0) < 1e-6);
}

static void the_prompt_is_fed_once_for_all_sequences(void **state)
{
    (void)state;
    start(spell, NULL);
    int32_t prompt[50];
    for (int i = 0; i < 50; i++)
        prompt[i] = A + i % 26;
    st_decode_options o = plain();
    o.group = 5;
    o.temperature = 0.5f;
    o.prompt = prompt;
    o.n_prompt = 50;
    o.language = 2;
    o.translate = true;
    decode(&o);
    assert_int_equal(net.n_prompts, 1);
    /* start of previous text, the last 31 tokens, start of transcript, language, task, no timestamps */
    assert_int_equal(net.prompt_length[0], 36);
    const int32_t *fed = net.prompts[0];
    assert_int_equal(fed[0], vocab->sot_prev);
    assert_memory_equal(fed + 1, prompt + 19, 31 * sizeof *prompt);
    assert_int_equal(fed[32], vocab->sot);
    assert_int_equal(fed[33], vocab->language + 2);
    assert_int_equal(fed[34], vocab->translate);
    assert_int_equal(fed[35], vocab->no_timestamps);
    assert_int_equal(net.n_reorder[0], 1);
    assert_true(net.most_rows <= 5);
    assert_int_equal(st_decoder_counters(decoder)->n_prompt, 1);
    assert_int_equal(st_decoder_counters(decoder)->n_decode, net.n_calls - 1);
}

static void english_only_prompts_have_no_language(void **state)
{
    (void)state;
    st_vocab_free(vocab);
    vocab = fake_vocab(3, false);
    start(spell, NULL);
    st_decode_options o = plain();
    o.timestamps = o.filters.timestamps = true;
    st_decode_result r;
    /* spell() gives everything at the start of transcript, which is the last token here */
    assert_int_equal(st_decode(decoder, &o, &r, &err), SOTTO_OK);
    assert_int_equal(net.prompt_length[0], 1);
    assert_int_equal(net.prompts[0][0], vocab->sot);
    assert_true(fabs((double)r.no_speech_prob - 0.25) < 1e-6);
    float p[3];
    int best;
    assert_int_equal(st_decode_language(decoder, p, &best, NULL, &err), SOTTO_E_UNSUPPORTED);
}

static void languages_share_the_probability_of_languages(void **state)
{
    (void)state;
    start(spell, NULL);
    float p[3], no_speech;
    int best;
    assert_int_equal(st_decode_language(decoder, p, &best, &no_speech, &err), SOTTO_OK);
    assert_int_equal(best, 1);
    assert_true(fabs((double)p[0] - 0.2) < 1e-6 && fabs((double)p[1] - 0.8) < 1e-6 && p[2] < 1e-6f);
    assert_true(fabs((double)no_speech - 0.25) < 1e-6);
    assert_int_equal(net.prompt_length[0], 1);
}

/* Never ends by itself. */
static void endless(fake_net *n, int window, const int32_t *history, int length, float *logits)
{
    (void)n;
    (void)window;
    (void)history;
    want(logits, A + length % 7);
}

static void limits_end_a_text(void **state)
{
    (void)state;
    start(endless, NULL);
    st_decode_options o = plain();
    st_decode_result r = decode(&o);
    assert_int_equal(r.n_tokens, FAKE_CTX / 2);
    assert_false(r.complete);
    o.sample_len = 1;
    r = decode(&o);
    assert_int_equal(r.n_tokens, 1);
    assert_int_equal(net.n_calls, 32 + 1);
    /* positions end at the context: 36 of the prompt, so the last of 64 gives the 29th token */
    int32_t prompt[40] = {0};
    o.prompt = prompt;
    o.n_prompt = 40;
    o.sample_len = FAKE_CTX / 2;
    r = decode(&o);
    assert_int_equal(r.n_tokens, 29);
    o.group = 5;
    r = decode(&o);
    assert_int_equal(r.n_tokens, 29);
}

static void a_prefix_begins_the_text(void **state)
{
    (void)state;
    start(spell, NULL);
    const int32_t prefix[] = {A, B};
    st_decode_options o = plain();
    o.prefix = prefix;
    o.n_prefix = 2;
    const st_decode_result r = decode(&o);
    assert_int_equal(r.n_tokens, 1);
    assert_int_equal(r.tokens[0], C);
    o.n_prefix = FAKE_CTX;
    st_decode_result bad;
    assert_int_equal(st_decode(decoder, &o, &bad, &err), SOTTO_E_ARGUMENT);
}

static void nan_is_a_device_error(void **state)
{
    (void)state;
    start(spell, NULL);
    net.give_nan = true;
    st_decode_options o = plain();
    st_decode_result r;
    assert_int_equal(st_decode(decoder, &o, &r, &err), SOTTO_E_DEVICE);
    assert_non_null(strstr(err.text, "NaN"));
    o.group = 5;
    assert_int_equal(st_decode(decoder, &o, &r, &err), SOTTO_E_DEVICE);
    float p[3];
    int best;
    assert_int_equal(st_decode_language(decoder, p, &best, NULL, &err), SOTTO_E_DEVICE);
}

static bool after_three(void *user)
{
    return ++*(int *)user > 3;
}

static void abort_is_asked_before_every_step(void **state)
{
    (void)state;
    start(endless, NULL);
    int calls = 0;
    st_decoder_begin(decoder, 0, after_three, &calls);
    st_decode_options o = plain();
    st_decode_result r;
    assert_int_equal(st_decode(decoder, &o, &r, &err), SOTTO_E_ABORTED);
    assert_int_equal(calls, 4);
    assert_int_equal(net.n_calls, 3);
}

static void everything_suppressed_ends_the_text(void **state)
{
    (void)state;
    start(spell, NULL);
    int32_t *all = malloc((size_t)vocab->n_vocab * sizeof *all);
    for (int32_t i = 0; i < vocab->n_vocab; i++)
        all[i] = i;
    st_decode_options o = plain();
    o.filters.suppress = all;
    o.filters.n_suppress = vocab->n_vocab;
    for (int group = 1; group <= 5; group += 4)
        for (int t = 0; t < 2; t++) {
            o.group = group;
            o.temperature = (float)t;
            const st_decode_result r = decode(&o);
            assert_int_equal(r.n_tokens, 0);
            assert_true(r.complete);
            assert_true(r.avg_logprob == 0.0f);
        }
    free(all);
}

/* ---- sampling ---- */

/* 26 words of nearly the same probability, and the end after 12. */
static void babble(fake_net *n, int window, const int32_t *history, int length, float *logits)
{
    (void)n;
    (void)window;
    int so_far = length;
    sampled(vocab, history, &so_far);
    for (int i = 0; i < 26; i++)
        logits[A + i] = i == 0 ? 0.1f : 0.0f;
    if (so_far >= 12)
        want(logits, vocab->eot), logits[vocab->eot] = 30.0f;
}

/* What comes depends on all that came before. */
static void wander(fake_net *n, int window, const int32_t *history, int length, float *logits)
{
    (void)n;
    (void)window;
    unsigned h = 7;
    for (int i = 0; i < length; i++)
        h = (h ^ (unsigned)history[i]) * 2654435761u, h ^= h >> 15;
    int so_far = length;
    sampled(vocab, history, &so_far);
    for (int i = 0; i < 26; i++)
        logits[A + i] = (float)(h >> i % 16 & 63) / 32.0f;
    logits[vocab->no_speech] = 1.5f;
    if (so_far >= 12)
        logits[vocab->eot] = 30.0f;
}

/* Later attempts at a window take the network's answer to the prompt from the first, and end as if they had asked again. */
static void attempts_share_the_prompt(void **state)
{
    (void)state;
    static const struct {
        float temperature;
        int group;
    } attempts[] = {{0, 1}, {0, 5}, {0.4f, 3}, {0, 1}, {1, 5}, {0, 4}};
    enum { N = sizeof attempts / sizeof *attempts };
    int32_t tokens[N][12];
    double sums[N];
    for (int share = 0; share < 2; share++) {
        start(wander, NULL);
        st_decode_options o = plain();
        for (int i = 0; i < N; i++) {
            o.temperature = attempts[i].temperature;
            o.group = attempts[i].group;
            o.again = share && i > 0;
            const st_decode_result r = decode(&o);
            assert_int_equal(r.n_tokens, 12);
            assert_true(r.no_speech_prob > 0.01f);
            if (share) {
                assert_memory_equal(r.tokens, tokens[i], sizeof tokens[i]);
                assert_true(r.sum_logprob == sums[i]);
            }
            memcpy(tokens[i], r.tokens, sizeof tokens[i]);
            sums[i] = r.sum_logprob;
        }
        assert_memory_not_equal(tokens[0], tokens[1], sizeof tokens[0]); /* the beams found something else */
        assert_int_equal(net.n_prompts, share ? 1 : N);
    }
}

static void copy(int32_t *out, const st_decode_result *r)
{
    assert_int_equal(r->n_tokens, 12);
    memcpy(out, r->tokens, 12 * sizeof *out);
}

static void the_same_seed_gives_the_same_text(void **state)
{
    (void)state;
    int32_t first[12], again[12], other[12];
    st_decode_options o = plain();
    o.temperature = 0.8f;
    o.group = 3;
    start(babble, NULL);
    st_decode_result r = decode(&o);
    copy(first, &r);
    st_decoder_begin(decoder, 0, NULL, NULL);
    r = decode(&o);
    copy(again, &r);
    assert_memory_equal(first, again, sizeof first);
    st_decoder_begin(decoder, 1, NULL, NULL);
    r = decode(&o);
    copy(other, &r);
    assert_memory_not_equal(first, other, sizeof first);
}

/* The best of five by average log probability is at least as good as the first alone with the same random numbers. */
static void best_of_keeps_the_best_candidate(void **state)
{
    (void)state;
    start(babble, NULL);
    st_decode_options o = plain();
    o.temperature = 1.0f;
    double one = 0, five = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        st_decoder_begin(decoder, seed, NULL, NULL);
        o.group = 1;
        one += decode(&o).sum_logprob;
        st_decoder_begin(decoder, seed, NULL, NULL);
        o.group = 5;
        five += decode(&o).sum_logprob;
    }
    assert_true(five > one);
}

/* ---- ladder ---- */

static const st_ladder usual = {.temperature_inc = 0.2f,
                                .beam_size = 1,
                                .best_of = 2,
                                .compression_ratio_threshold = 2.4f,
                                .logprob_threshold = -1.0f,
                                .no_speech_threshold = 0.6f};

static st_decode_result climb(const st_ladder *ladder)
{
    const st_decode_options o = plain();
    st_decode_result r;
    if (st_ladder_decode(decoder, ladder, &o, &r, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    return r;
}

static void a_good_result_is_taken_at_once(void **state)
{
    (void)state;
    start(spell, NULL);
    const st_decode_result r = climb(&usual);
    assert_true(r.temperature == 0.0f);
    assert_int_equal(st_decoder_counters(decoder)->n_fallback, 0);
}

static void an_unlikely_text_climbs_to_the_top(void **state)
{
    (void)state;
    start(babble, NULL); /* about log 26 = 3.3 for each token */
    st_decode_result r = climb(&usual);
    assert_true(fabs((double)r.temperature - 1.0) < 1e-6);
    assert_int_equal(st_decoder_counters(decoder)->n_fallback, 5);
    assert_int_equal(net.n_prompts, 1); /* for all six attempts */
    st_ladder l = usual;
    l.temperature = 0.5f;
    l.temperature_inc = 0.3f; /* 0.5, 0.8 */
    r = climb(&l);
    assert_true(fabs((double)r.temperature - 0.8) < 1e-6);
    assert_int_equal(net.n_prompts, 2);
    l.temperature_inc = 0;
    r = climb(&l);
    assert_true(r.temperature == 0.5f);
    l = usual;
    l.logprob_threshold = NAN;
    r = climb(&l);
    assert_true(r.temperature == 0.0f);
}

static void a_repetitive_text_falls_back_until_it_is_not(void **state)
{
    (void)state;
    start(endless, NULL);
    st_ladder l = usual;
    l.logprob_threshold = NAN;
    l.compression_ratio_threshold = 0.5f;
    st_decode_result r = climb(&l);
    assert_true(r.compression_ratio > 0.5f);
    assert_true(r.temperature > 0.99f);
    l.compression_ratio_threshold = NAN;
    r = climb(&l);
    assert_true(r.temperature == 0.0f);
}

/* Babble with a sure no-speech token. */
static void quiet(fake_net *n, int window, const int32_t *history, int length, float *logits)
{
    babble(n, window, history, length, logits);
    if (history[length - 1] == vocab->sot)
        logits[vocab->no_speech] = 30.0f;
}

static void silence_is_not_a_failure(void **state)
{
    (void)state;
    start(quiet, NULL);
    st_decode_result r = climb(&usual);
    assert_true(r.temperature == 0.0f);
    assert_true(st_ladder_is_silence(&usual, &r));
    st_ladder l = usual;
    l.no_speech_threshold = NAN;
    r = climb(&l);
    assert_true(r.temperature > 0.9f);
    assert_false(st_ladder_is_silence(&l, &r));
    l = usual;
    l.logprob_threshold = -10.0f; /* likely enough: spoken, whatever the token says */
    r = climb(&l);
    assert_false(st_ladder_is_silence(&l, &r));
    l.logprob_threshold = NAN;
    assert_true(st_ladder_is_silence(&l, &r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(greedy_takes_the_likeliest_and_sums_log_probabilities, setup, teardown),
        cmocka_unit_test_setup_teardown(the_prompt_is_fed_once_for_all_sequences, setup, teardown),
        cmocka_unit_test_setup_teardown(english_only_prompts_have_no_language, setup, teardown),
        cmocka_unit_test_setup_teardown(languages_share_the_probability_of_languages, setup, teardown),
        cmocka_unit_test_setup_teardown(limits_end_a_text, setup, teardown),
        cmocka_unit_test_setup_teardown(a_prefix_begins_the_text, setup, teardown),
        cmocka_unit_test_setup_teardown(nan_is_a_device_error, setup, teardown),
        cmocka_unit_test_setup_teardown(abort_is_asked_before_every_step, setup, teardown),
        cmocka_unit_test_setup_teardown(everything_suppressed_ends_the_text, setup, teardown),
        cmocka_unit_test_setup_teardown(attempts_share_the_prompt, setup, teardown),
        cmocka_unit_test_setup_teardown(the_same_seed_gives_the_same_text, setup, teardown),
        cmocka_unit_test_setup_teardown(best_of_keeps_the_best_candidate, setup, teardown),
        cmocka_unit_test_setup_teardown(a_good_result_is_taken_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(an_unlikely_text_climbs_to_the_top, setup, teardown),
        cmocka_unit_test_setup_teardown(a_repetitive_text_falls_back_until_it_is_not, setup, teardown),
        cmocka_unit_test_setup_teardown(silence_is_not_a_failure, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
