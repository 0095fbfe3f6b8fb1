/* Windows whose text is to follow a grammar: greedy, beams and candidates, with and without timestamps, and what is told when
 * the text does not follow. The network's wishes are fixed, so that each choice can be worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/whisper/follow.h"
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

/* " d" before the end, before " c", before " b", before " a", before "a" as a byte. */
static void wishes(fake_net *n, int window, const int32_t *history, int length, float *logits)
{
    (void)n;
    (void)window;
    (void)history;
    (void)length;
    logits[D] = 0.0f;
    logits[vocab->eot] = -1.0f;
    logits[C] = -2.0f;
    logits[B] = -3.0f;
    logits[A] = -4.0f;
    logits['a'] = -5.0f;
}

/* The same, with a timestamp wanted at the start and after three words. */
static void stamped_wishes(fake_net *n, int window, const int32_t *history, int length, float *logits)
{
    int so_far = length;
    const int32_t *tokens = sampled(vocab, history, &so_far);
    wishes(n, window, history, length, logits);
    if (so_far == 0)
        logits[stamp(vocab, 0)] = 5.0f;
    else if (so_far == 4)
        logits[stamp(vocab, 100)] = 5.0f;
    else if (so_far > 4 && tokens[so_far - 1] >= vocab->timestamp)
        logits[vocab->eot] = 6.0f;
}

static void start(fake_script script)
{
    st_decoder_free(decoder);
    fake_init(&net, vocab, 5, script, NULL);
    const st_engine engine = fake_engine(&net);
    assert_int_equal(st_decoder_create(vocab, &engine, &decoder, &err), SOTTO_OK);
    st_decoder_begin(decoder, 0, NULL, NULL);
}

/* A timestamp wherever one may come, 0.2 s after the one before, and its pair. */
static void hasty_wishes(fake_net *n, int window, const int32_t *history, int length, float *logits)
{
    int so_far = length, stamps = 0;
    const int32_t *tokens = sampled(vocab, history, &so_far);
    wishes(n, window, history, length, logits);
    for (int i = 0; i < so_far; i++)
        stamps += tokens[i] >= vocab->timestamp;
    const bool second = so_far > 1 && tokens[so_far - 1] >= vocab->timestamp;
    logits[second ? tokens[so_far - 1] : stamp(vocab, 20 * (stamps / 2 + (so_far > 0)))] = 5.0f;
}

typedef struct outcome {
    char text[200];
    bool off_grammar, complete;
    float grammar_logprob;
    int32_t tokens[64];
    int n_tokens;
} outcome;

static int32_t n_steps; /* of the window; 0: no limit */

static outcome decode(const char *gbnf, float penalty, int group, float temperature, bool timestamps)
{
    sotto_grammar *g;
    st_grammar_filter *f;
    st_decode_result r;
    outcome out = {0};
    const char *text;
    size_t n;
    assert_int_equal(sotto_grammar_create(gbnf, strlen(gbnf), NULL, &g, &err), SOTTO_OK);
    assert_int_equal(st_follow_create(g, vocab, &f, &err), SOTTO_OK);
    const st_decode_options o = {.group = group,
                                 .patience = 1,
                                 .length_penalty = -1,
                                 .temperature = temperature,
                                 .timestamps = timestamps,
                                 .sample_len = 12,
                                 .filters = {.vocab = vocab, .timestamps = timestamps, .max_initial = -1},
                                 .grammar = f,
                                 .grammar_penalty = penalty,
                                 .n_steps = n_steps};
    if (st_decode(decoder, &o, &r, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    assert_int_equal(st_decode_text(decoder, r.tokens, r.n_tokens, vocab->timestamp, &text, &n, &err), SOTTO_OK);
    memcpy(out.text, text, n < sizeof out.text ? n : sizeof out.text - 1);
    out.off_grammar = r.off_grammar;
    out.complete = r.complete;
    out.grammar_logprob = r.grammar_logprob;
    out.n_tokens = r.n_tokens;
    assert_true(r.n_tokens <= 64);
    memcpy(out.tokens, r.tokens, (size_t)r.n_tokens * sizeof *out.tokens);
    st_grammar_filter_free(f);
    sotto_grammar_free(g);
    return out;
}

static void check(outcome o, const char *text, bool off_grammar)
{
    assert_string_equal(o.text, text);
    assert_int_equal(o.off_grammar, off_grammar);
}

static void texts_follow(void **state)
{
    (void)state;
    static const struct {
        const char *gbnf, *text;
    } cases[] = {
        {"root ::= (\" a\" | \" b\") \" c\"", " b c"},   /* the liklier one, then the only one, then the end */
        {"root ::= \" a\" \" \" [bc] \" a\"", " a c a"}, /* wherever tokens are cut */
        {"root ::= \" aa\"", " aa"},                     /* " a" and "a" */
        {"root ::= \" \" [a-c]{3}", " caa"},             /* letters are bytes here */
        {"root ::= (\" b\" | \" c\")*", ""},             /* it may end at once, which is liked best */
        {"root ::= (\" b\" | \" c\")+", " c"},
        {"root ::= (\" b\" | \" c\"){3,5}", " c c c"},
    };
    start(wishes);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check(decode(cases[i].gbnf, 100, 1, 0, false), cases[i].text, false);
        check(decode(cases[i].gbnf, 100, 3, 0, false), cases[i].text, false);
        for (int k = 0; k < 5; k++) {
            const outcome o = decode(cases[i].gbnf, 1000, 4, 1, false);
            assert_false(o.off_grammar);
        }
    }
}

static void timestamps_are_no_text(void **state)
{
    (void)state;
    start(stamped_wishes);
    check(decode("root ::= \" a\" \" b\" \" c\"", 100, 1, 0, true), " a b c", false);
    check(decode("root ::= \" a\" \" b\" \" c\"", 100, 4, 0, true), " a b c", false);
}

static void check_tokens(const outcome *o, const int32_t *tokens, int n)
{
    assert_int_equal(o->n_tokens, n);
    for (int i = 0; i < n; i++)
        assert_int_equal(o->tokens[i], tokens[i]);
    assert_false(o->off_grammar);
}

/* Between words only, and behind a word that may be the last one only before a space or the end. */
static void timestamps_leave_words_whole(void **state)
{
    (void)state;
    const int32_t s0 = stamp(vocab, 0), s20 = stamp(vocab, 20), s40 = stamp(vocab, 40);
    const int32_t two[] = {s0, A, 'b', s20, s20, C, 'd', s40, s40}, one[] = {s0, D, s20, s20},
                  letters[] = {s0, D, s20, s20, D, s40, s40};
    start(hasty_wishes);
    for (int group = 1; group <= 4; group += 3) {
        outcome o = decode("root ::= \" ab\" \" cd\"", 100, group, 0, true);
        check_tokens(&o, two, 9);
        o = decode("root ::= \" \" [a-d]", 100, group, 0, true);
        check_tokens(&o, one, 4);
        o = decode("root ::= \" \" [a-d] [ a-d] \"d\"? ", 100, group, 0, true);
        check_tokens(&o, letters, 7);
    }
    /* no limits of words without a penalty */
    outcome o = decode("root ::= \" ab\" \" cd\"", 0, 1, 0, true);
    assert_true(o.off_grammar);
}

/* In a window of 0.2 s nothing may begin there or later; the last segment may end there. */
static void timestamps_stay_in_the_window(void **state)
{
    (void)state;
    const int32_t s0 = stamp(vocab, 0), s20 = stamp(vocab, 20);
    const int32_t two[] = {s0, A, B, s20};
    start(hasty_wishes);
    n_steps = 10;
    const outcome o = decode("root ::= \" a\" \" b\"", 100, 1, 0, true);
    n_steps = 0;
    check_tokens(&o, two, 4);
}

/* The log of what was left, worked out by hand: of the network's wishes at two steps, and at the end. */
static void what_it_cost(void **state)
{
    (void)state;
    start(wishes);
    const double rest = (vocab->n_vocab - 6) * exp(-30),
                 all = exp(0) + exp(-1) + exp(-2) + exp(-3) + exp(-4) + exp(-5) + rest;
    const outcome o = decode("root ::= \" c\" \" b\"", 1e6f, 1, 0, false);
    check(o, " c b", false);
    assert_float_equal(o.grammar_logprob, (-2 - log(all) - 3 - log(all) - 1 - log(all)) / 3, 1e-4);
}

static void leaving_is_told(void **state)
{
    (void)state;
    start(wishes);
    /* without a penalty the first wish: " d" to the limit */
    outcome o = decode("root ::= \" c\"", 0, 1, 0, false);
    assert_true(o.off_grammar && !o.complete);
    assert_int_equal(strncmp(o.text, " d d", 4), 0);
    /* " c" wins by a penalty of more than 2, and then the end, which is allowed */
    check(decode("root ::= \" c\"", 2.5f, 1, 0, false), " c", false);
    o = decode("root ::= \" c\"", 1.5f, 1, 0, false);
    assert_true(o.off_grammar);
    /* a text that the limit cuts off */
    o = decode("root ::= \" c\"{20}", 100, 1, 0, false);
    assert_true(o.off_grammar && !o.complete);
    /* nothing that can be said */
    o = decode("root ::= \"\xe2\x82\xac\"", INFINITY, 1, 0, false);
    assert_true(o.off_grammar || o.text[0] != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(texts_follow, setup, teardown),
        cmocka_unit_test_setup_teardown(timestamps_are_no_text, setup, teardown),
        cmocka_unit_test_setup_teardown(timestamps_leave_words_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(timestamps_stay_in_the_window, setup, teardown),
        cmocka_unit_test_setup_teardown(what_it_cost, setup, teardown),
        cmocka_unit_test_setup_teardown(leaving_is_told, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
