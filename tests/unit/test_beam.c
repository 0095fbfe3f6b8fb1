/* Beam search on a tree of probabilities worked out by hand.
 *
 *   A 0.6 --- C 0.4 --- end 0.95, E 0.05          A-end  0.21   A-C-end 0.228
 *         --- end 0.35                            B-end  0.36   A-D-end 0.015
 *         --- D 0.25 -- E 0.9, end 0.1
 *   B 0.4 --- end 0.9
 *         --- C 0.1
 * Two beams: after the second step B-end and A-end are finished and A-C, A-D live on. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "speech_support.h"

enum { A = WORD_A, B, C, D, E };

typedef struct branch {
    const char *path; /* letters so far */
    int32_t token;    /* -1 = end of text */
    double p;
} branch;

static const branch tree[] = {
    {"", A, 0.6},    {"", B, 0.4},     {"A", C, 0.4},    {"A", -1, 0.35}, {"A", D, 0.25},
    {"B", -1, 0.9},  {"B", C, 0.1},    {"AC", -1, 0.95}, {"AC", E, 0.05}, {"AD", E, 0.9},
    {"AD", -1, 0.1}, {"ADE", -1, 1.0}, {"ACE", -1, 1.0},
};

static st_vocab *vocab;
static fake_net net;
static st_decoder *decoder;

static void grow(fake_net *n, int window, const int32_t *history, int length, float *logits)
{
    (void)n;
    (void)window;
    if (history[length - 1] == vocab->sot)
        return;
    const int32_t *tokens = sampled(vocab, history, &length);
    char path[FAKE_CTX + 1] = "";
    for (int i = 0; i < length; i++)
        path[i] = (char)('A' + (tokens[i] - A));
    for (int32_t t = 0; t < vocab->n_vocab; t++)
        logits[t] = -INFINITY;
    for (size_t i = 0; i < sizeof tree / sizeof *tree; i++)
        if (strcmp(tree[i].path, path) == 0)
            logits[tree[i].token < 0 ? vocab->eot : tree[i].token] = (float)log(tree[i].p);
}

static int setup(void **state)
{
    (void)state;
    sotto_error err;
    vocab = fake_vocab(1, true);
    fake_init(&net, vocab, 4, grow, NULL);
    const st_engine engine = fake_engine(&net);
    if (st_decoder_create(vocab, &engine, &decoder, &err) != SOTTO_OK)
        return -1;
    st_decoder_begin(decoder, 0, NULL, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    st_decoder_free(decoder);
    st_vocab_free(vocab);
    return 0;
}

static st_decode_result search(int beams, float patience, float length_penalty, int sample_len)
{
    const st_decode_options o = {.group = beams,
                                 .patience = patience,
                                 .length_penalty = length_penalty,
                                 .sample_len = sample_len,
                                 .filters = {.vocab = vocab, .suppress_blank = true, .max_initial = -1}};
    st_decode_result r;
    sotto_error err;
    if (st_decode(decoder, &o, &r, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    return r;
}

static void check(const st_decode_result *r, const char *letters, double probability)
{
    assert_int_equal(r->n_tokens, strlen(letters));
    for (int i = 0; i < r->n_tokens; i++)
        assert_int_equal(r->tokens[i], A + (letters[i] - 'A'));
    assert_true(fabs(r->sum_logprob - log(probability)) < 1e-5);
    assert_true(fabs((double)r->avg_logprob - log(probability) / (r->n_tokens + 1)) < 1e-5);
}

static void two_finished_candidates_end_the_search(void **state)
{
    (void)state;
    const st_decode_result r = search(2, 1, -1, 32);
    check(&r, "B", 0.36);
    assert_true(r.complete);
    assert_int_equal(net.n_calls, 2); /* the prompt, and one step for A and B together */
    assert_int_equal(net.most_rows, 2);
}

/* log 0.228 / 2 = -0.739 beats log 0.36 / 1 = -1.022 */
static void patience_waits_for_a_better_one(void **state)
{
    (void)state;
    const st_decode_result r = search(2, 2, -1, 32);
    check(&r, "AC", 0.228);
    assert_int_equal(net.n_calls, 3);
}

static void length_penalty_changes_the_winner(void **state)
{
    (void)state;
    st_decode_result r = search(2, 2, 0, 32); /* the sum alone */
    check(&r, "B", 0.36);
    /* ((5 + n) / 6)^1: log 0.36 / 1 = -1.022; log 0.228 / (7 / 6) = -1.267 */
    r = search(2, 2, 1, 32);
    check(&r, "B", 0.36);
}

/* round(2 * 0.5) = 1: B-end stops the search, and as one finished candidate is fewer than two beams, the unfinished A-C of
 * log 0.24 / 2 = -0.714 counts beside it and wins. */
static void impatience_lets_an_unfinished_one_win(void **state)
{
    (void)state;
    const st_decode_result r = search(2, 0.5f, -1, 32);
    check(&r, "AC", 0.24);
    assert_false(r.complete);
}

/* After one token nothing is finished; the better of the two unfinished counts. */
static void unfinished_ones_fill_up(void **state)
{
    (void)state;
    const st_decode_result r = search(2, 1, -1, 1);
    check(&r, "A", 0.6);
    assert_false(r.complete);
}

/* Four beams though only two tokens are possible at first: the forbidden ones are no beams. */
static void there_may_be_fewer_beams_than_asked(void **state)
{
    (void)state;
    const st_decode_result r = search(4, 1, -1, 32);
    /* Second step: B-end, A-end; third: A-C-end 0.228, A-D-end 0.015, which makes four. B-C has no way on. */
    check(&r, "AC", 0.228);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_finished_candidates_end_the_search, setup, teardown),
        cmocka_unit_test_setup_teardown(patience_waits_for_a_better_one, setup, teardown),
        cmocka_unit_test_setup_teardown(length_penalty_changes_the_winner, setup, teardown),
        cmocka_unit_test_setup_teardown(impatience_lets_an_unfinished_one_win, setup, teardown),
        cmocka_unit_test_setup_teardown(unfinished_ones_fill_up, setup, teardown),
        cmocka_unit_test_setup_teardown(there_may_be_fewer_beams_than_asked, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
