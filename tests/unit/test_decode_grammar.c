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

typedef struct outcome {
    char text[200];
    bool off_grammar, complete;
} outcome;

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
                                 .grammar_penalty = penalty};
    if (st_decode(decoder, &o, &r, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    assert_int_equal(st_decode_text(decoder, r.tokens, r.n_tokens, vocab->timestamp, &text, &n, &err), SOTTO_OK);
    memcpy(out.text, text, n < sizeof out.text ? n : sizeof out.text - 1);
    out.off_grammar = r.off_grammar;
    out.complete = r.complete;
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
        cmocka_unit_test_setup_teardown(leaving_is_told, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
