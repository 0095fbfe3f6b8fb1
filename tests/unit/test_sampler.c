/* The sampling chain: against tokens that a plain restatement in Python draws (tools/make_sampler_cases.py), distributions
 * worked out by hand, and the cases where nothing or nearly nothing is left. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "models/common/rng.h"
#include "models/common/sample_math.h"
#include "sotto/sampler.h"

enum { N_VOCAB = 300, MANY = 262144 };

static sotto_sampler *make(int32_t n_vocab, const sotto_sampler_options *o)
{
    sotto_error err = {0};
    sotto_sampler *s;
    const sotto_status status = sotto_sampler_create(n_vocab, o, &s, &err);
    if (status != SOTTO_OK)
        fail_msg("%s", err.text);
    return s;
}

static sotto_sampler_options options_of(float temperature, int top_k, float top_p, float min_p)
{
    sotto_sampler_options o;
    sotto_sampler_options_default(&o);
    o.temperature = temperature;
    o.top_k = top_k;
    o.top_p = top_p;
    o.min_p = min_p;
    return o;
}

static int32_t sample(sotto_sampler *s, const float *logits)
{
    sotto_error err = {0};
    int32_t token;
    if (sotto_sampler_sample(s, logits, &token, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    return token;
}

static void accept(sotto_sampler *s, int32_t token)
{
    sotto_error err = {0};
    if (sotto_sampler_accept(s, token, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
}

/* ---- against the restatement ---- */

static void number(const json_t *c, const char *key, float *out)
{
    const json_t *v = json_object_get(c, key);
    if (v)
        *out = (float)json_number_value(v);
}

static void integer(const json_t *c, const char *key, int *out)
{
    const json_t *v = json_object_get(c, key);
    if (v)
        *out = (int)json_integer_value(v);
}

static void run_case(const json_t *c)
{
    sotto_sampler_options o;
    sotto_sampler_options_default(&o);
    float scale = 1.0f;
    int seed = 0, row_seed = 0;
    sotto_logit_bias bias[8];
    number(c, "temperature", &o.temperature);
    number(c, "top_p", &o.top_p);
    number(c, "min_p", &o.min_p);
    number(c, "typical_p", &o.typical_p);
    number(c, "repeat_penalty", &o.repeat_penalty);
    number(c, "frequency_penalty", &o.frequency_penalty);
    number(c, "presence_penalty", &o.presence_penalty);
    number(c, "mirostat_tau", &o.mirostat_tau);
    number(c, "mirostat_eta", &o.mirostat_eta);
    number(c, "scale", &scale);
    integer(c, "top_k", &o.top_k);
    integer(c, "penalty_last", &o.penalty_last);
    integer(c, "mirostat", &o.mirostat);
    integer(c, "seed", &seed);
    integer(c, "row_seed", &row_seed);
    o.seed = (uint64_t)seed;
    const json_t *biases = json_object_get(c, "bias");
    o.n_bias = (int)json_array_size(biases);
    o.bias = bias;
    for (int i = 0; i < o.n_bias; i++) {
        const json_t *pair = json_array_get(biases, (size_t)i), *value = json_array_get(pair, 1);
        bias[i].token = (int32_t)json_integer_value(json_array_get(pair, 0));
        bias[i].bias = json_is_null(value) ? -INFINITY : (float)json_number_value(value);
    }
    sotto_sampler *s = make(N_VOCAB, &o);
    memset(bias, 0x55, sizeof bias); /* they were copied */
    st_rng rows;
    st_rng_seed(&rows, (uint64_t)row_seed);
    const json_t *tokens = json_object_get(c, "tokens");
    for (size_t i = 0; i < json_array_size(tokens); i++) {
        float x[N_VOCAB];
        for (int t = 0; t < N_VOCAB; t++)
            x[t] = (float)(24.0 * st_rng_uniform(&rows) - 12.0) * scale;
        const int32_t want = (int32_t)json_integer_value(json_array_get(tokens, i)), got = sample(s, x);
        if (got != want)
            fail_msg("%s: step %d: token %d, expected %d", json_string_value(json_object_get(c, "name")), (int)i,
                     (int)got, (int)want);
        accept(s, got);
    }
    sotto_sampler_free(s);
}

static void draws_what_the_restatement_draws(void **state)
{
    (void)state;
    json_error_t why;
    json_t *cases = json_load_file(SOTTO_SOURCE_DIR "/tests/unit/data/sampler.json", 0, &why);
    assert_non_null(cases);
    assert_true(json_array_size(cases) > 15);
    for (size_t i = 0; i < json_array_size(cases); i++)
        run_case(json_array_get(cases, i));
    json_decref(cases);
}

/* ---- distributions ---- */

/* Pearson's statistic of n draws against probabilities; entries of probability 0 must never be drawn. */
static void check_draws(const sotto_sampler_options *o, const float *logits, const double *p, int n_vocab)
{
    enum { DRAWS = 20000 };
    int counts[16] = {0};
    sotto_sampler *s = make(n_vocab, o);
    for (int i = 0; i < DRAWS; i++)
        counts[sample(s, logits)]++;
    double statistic = 0;
    for (int t = 0; t < n_vocab; t++) {
        if (p[t] == 0)
            assert_int_equal(counts[t], 0);
        else
            statistic += pow(counts[t] - DRAWS * p[t], 2) / (DRAWS * p[t]);
    }
    assert_true(statistic < 28); /* 0.1 % for 9 degrees of freedom; the seed is fixed */
    sotto_sampler_free(s);
}

static void draws_follow_the_distribution(void **state)
{
    (void)state;
    /* probabilities 0.4 0.3 0.2 0.1 at temperature 1 */
    const float x[] = {logf(0.1f), logf(0.4f), logf(0.2f), logf(0.3f), -INFINITY};
    sotto_sampler_options o = options_of(1, 0, 1, 0);
    check_draws(&o, x, (const double[]){0.1, 0.4, 0.2, 0.3, 0}, 5);
    o = options_of(0.5f, 0, 1, 0); /* squares */
    check_draws(&o, x, (const double[]){1 / 30.0, 16 / 30.0, 4 / 30.0, 9 / 30.0, 0}, 5);
    o = options_of(1, 3, 1, 0);
    check_draws(&o, x, (const double[]){0, 4 / 9.0, 2 / 9.0, 3 / 9.0, 0}, 5);
    o = options_of(1, 0, 0.65f, 0); /* 0.4 + 0.3 reach it */
    check_draws(&o, x, (const double[]){0, 4 / 7.0, 0, 3 / 7.0, 0}, 5);
    o = options_of(1, 0, 1, 0.45f); /* at least 0.18 */
    check_draws(&o, x, (const double[]){0, 4 / 9.0, 2 / 9.0, 3 / 9.0, 0}, 5);
    o = options_of(1, 3, 0.7f, 0); /* of the three left 4/9 + 3/9 = 0.777 */
    check_draws(&o, x, (const double[]){0, 4 / 7.0, 0, 3 / 7.0, 0}, 5);
    /* information in nats 2.30 0.92 1.61 1.20, expected 1.28: nearest 0.3 (0.08), then 0.2 (0.33), then 0.4 (0.36) */
    o = options_of(1, 0, 1, 0);
    o.typical_p = 0.45f;
    check_draws(&o, x, (const double[]){0, 0, 0.4, 0.6, 0}, 5);
    o = options_of(1, 0, 0, 0); /* the likeliest always stays */
    check_draws(&o, x, (const double[]){0, 1, 0, 0, 0}, 5);
    o = options_of(1, 4, 1, 1);
    check_draws(&o, x, (const double[]){0, 1, 0, 0, 0}, 5);
    o = options_of(1, 0, 1, 0);
    o.mirostat = 2;
    o.mirostat_tau = 1; /* information of at most 2 bits: 1.32, 1.74 and not 2.32 */
    check_draws(&o, x, (const double[]){0, 4 / 7.0, 0, 3 / 7.0, 0}, 5);
}

static void penalties_by_hand(void **state)
{
    (void)state;
    const float x[] = {4.0f, 3.0f, -1.0f, 2.9f};
    sotto_sampler_options o = options_of(0, 40, 1, 0);
    o.repeat_penalty = 2.0f;
    sotto_sampler *s = make(4, &o);
    assert_int_equal(sample(s, x), 0);
    accept(s, 0); /* 2.0 */
    assert_int_equal(sample(s, x), 1);
    accept(s, 1); /* 1.5 */
    assert_int_equal(sample(s, x), 3);
    accept(s, 3); /* 1.45 */
    assert_int_equal(sample(s, x), 0);
    sotto_sampler_reset(s);
    assert_int_equal(sample(s, x), 0);
    const int32_t prompt[] = {0, 1};
    assert_int_equal(sotto_sampler_accept_prompt(s, prompt, 2, NULL), SOTTO_OK);
    assert_int_equal(sample(s, x), 3);
    sotto_sampler_free(s);

    const float y[] = {1.0f, 0.9f};
    o.repeat_penalty = 1.0f;
    o.frequency_penalty = 0.04f;
    o.penalty_last = 2;
    s = make(2, &o);
    const int want[] = {0, 0, 0, 0, 0};
    for (int i = 0; i < 5; i++) { /* only two count: 1 - 0.08 is still more than 0.9 */
        assert_int_equal(sample(s, y), want[i]);
        accept(s, 0);
    }
    sotto_sampler_free(s);
    o.penalty_last = -1;
    s = make(2, &o);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sample(s, y), 0);
        accept(s, 0);
    }
    assert_int_equal(sample(s, y), 1); /* 1 - 0.12 */
    sotto_sampler_free(s);
}

static void greedy_takes_the_first_of_equals(void **state)
{
    (void)state;
    float *x = malloc(MANY * sizeof *x);
    assert_non_null(x);
    for (int i = 0; i < MANY; i++)
        x[i] = -FLT_MAX;
    const sotto_sampler_options o = options_of(0, 0, 1, 0), negative = options_of(-1, 3, 0, 1);
    sotto_sampler *s = make(MANY, &o), *t = make(MANY, &negative);
    assert_int_equal(sample(s, x), 0);
    x[MANY - 1] = x[70000] = x[70001] = 3.0f;
    assert_int_equal(sample(s, x), 70000);
    assert_int_equal(sample(t, x), 70000);
    x[MANY - 1] = 4.0f;
    assert_int_equal(sample(s, x), MANY - 1);
    sotto_sampler_free(s);
    sotto_sampler_free(t);

    /* top_k of equals: the lower ids */
    for (int i = 0; i < MANY; i++)
        x[i] = 1.0f;
    const sotto_sampler_options few = options_of(1, 5, 1, 0);
    s = make(MANY, &few);
    for (int i = 0; i < 200; i++)
        assert_in_range(sample(s, x), 0, 4);
    sotto_sampler_free(s);
    free(x);
}

/* Sorted completely and by chance: the same k are kept, whatever k is. */
static int by_logit(const void *a, const void *b)
{
    const sotto_token_logprob *p = a, *q = b;
    return p->logprob != q->logprob ? (p->logprob < q->logprob) - (p->logprob > q->logprob)
                                    : (p->token > q->token) - (p->token < q->token);
}

static void top_is_a_sort_cut_short(void **state)
{
    (void)state;
    enum { N = 5000 };
    static float x[N];
    static sotto_token_logprob all[N], top[N];
    st_rng rng;
    st_rng_seed(&rng, 11);
    sotto_sampler *s = make(N, NULL);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < N; i++) {
            x[i] = round % 2 ? (float)(int)(20.0 * st_rng_uniform(&rng)) : (float)(20.0 * st_rng_uniform(&rng));
            if (round % 3 == 0 && i % 5)
                x[i] = -INFINITY;
            all[i] = (sotto_token_logprob){i, x[i]};
        }
        double sum = 0;
        qsort(all, N, sizeof *all, by_logit);
        for (int i = 0; i < N; i++)
            sum += exp((double)all[i].logprob - (double)all[0].logprob);
        const double log_sum = (double)all[0].logprob + log(sum);
        const int ks[] = {1, 2, 40, 64, 1000, 4999, 5000, 1000000};
        for (size_t i = 0; i < sizeof ks / sizeof *ks; i++) {
            int count;
            assert_int_equal(sotto_sampler_top(s, x, ks[i], top, &count, NULL), SOTTO_OK);
            const int possible = round % 3 == 0 ? N / 5 : N;
            assert_int_equal(count, ks[i] < possible ? ks[i] : possible);
            for (int j = 0; j < count; j++) {
                assert_int_equal(top[j].token, all[j].token);
                assert_true(fabs((double)top[j].logprob - ((double)all[j].logprob - log_sum)) < 2e-5);
            }
        }
        float logprob;
        assert_int_equal(sotto_sampler_logprob(s, x, 0, &logprob, NULL), SOTTO_OK);
        assert_true(fabs((double)logprob - ((double)x[0] - log_sum)) < 2e-5);
    }
    sotto_sampler_free(s);
}

static void a_clone_goes_on_alike(void **state)
{
    (void)state;
    sotto_sampler_options o = options_of(1, 0, 0.9f, 0.01f);
    o.repeat_penalty = 1.2f;
    o.penalty_last = 7;
    o.seed = 5;
    float x[N_VOCAB];
    for (int mirostat = 0; mirostat <= 2; mirostat += 2) {
        o.mirostat = mirostat;
        st_rng rng;
        st_rng_seed(&rng, 3);
        sotto_sampler *a = make(N_VOCAB, &o), *b, *again = make(N_VOCAB, &o);
        for (int i = 0; i < 40; i++) {
            for (int t = 0; t < N_VOCAB; t++)
                x[t] = (float)(6.0 * st_rng_uniform(&rng));
            const int32_t token = sample(a, x);
            assert_int_equal(sample(again, x), token);
            accept(a, token);
            accept(again, token);
        }
        assert_int_equal(sotto_sampler_clone(a, &b, NULL), SOTTO_OK);
        for (int i = 0; i < 40; i++) {
            for (int t = 0; t < N_VOCAB; t++)
                x[t] = (float)(6.0 * st_rng_uniform(&rng));
            const int32_t token = sample(a, x);
            assert_int_equal(sample(b, x), token);
            accept(a, token);
            accept(b, token);
        }
        sotto_sampler_reset(a);
        sotto_sampler_reset(again);
        for (int i = 0; i < 10; i++)
            assert_int_equal(sample(a, x), sample(again, x));
        sotto_sampler_free(a);
        sotto_sampler_free(b);
        sotto_sampler_free(again);
    }
}

/* ---- refused ---- */

static void bad_rows_are_refused(void **state)
{
    (void)state;
    const float temperatures[] = {0, 1};
    for (int i = 0; i < 2; i++) {
        sotto_sampler_options o = options_of(temperatures[i], 40, 1, 0);
        sotto_sampler *s = make(100, &o);
        sotto_error err = {0};
        int32_t token;
        float x[100] = {0};
        const float wrong[] = {NAN, INFINITY};
        for (int w = 0; w < 2; w++) {
            x[77] = wrong[w];
            assert_int_equal(sotto_sampler_sample(s, x, &token, &err), SOTTO_E_ARGUMENT);
            assert_non_null(strstr(err.text, "logits[77]"));
        }
        for (int t = 0; t < 100; t++)
            x[t] = -INFINITY;
        assert_int_equal(sotto_sampler_sample(s, x, &token, &err), SOTTO_E_ARGUMENT);
        assert_non_null(strstr(err.text, "no token is left"));
        x[42] = -FLT_MAX;
        assert_int_equal(sample(s, x), 42);
        assert_int_equal(sotto_sampler_accept(s, 100, &err), SOTTO_E_ARGUMENT);
        assert_int_equal(sotto_sampler_accept(s, -1, &err), SOTTO_E_ARGUMENT);
        const int32_t prompt[] = {1, 100};
        assert_int_equal(sotto_sampler_accept_prompt(s, prompt, 2, &err), SOTTO_E_ARGUMENT);
        sotto_sampler_free(s);

        const sotto_logit_bias ban[] = {{0, -INFINITY}, {1, -INFINITY}, {1, 5}};
        o.bias = ban;
        o.n_bias = 3;
        s = make(2, &o);
        assert_int_equal(sotto_sampler_sample(s, (const float[]){1, 2}, &token, &err), SOTTO_E_ARGUMENT);
        assert_non_null(strstr(err.text, "banned by a bias"));
        sotto_sampler_free(s);
        o.n_bias = 1;
        s = make(2, &o);
        assert_int_equal(sample(s, (const float[]){9, -50}), 1);
        sotto_sampler_free(s);
    }
}

static void options_out_of_range_are_named(void **state)
{
    (void)state;
    const sotto_logit_bias outside = {300, 1}, infinite = {0, INFINITY}, none = {0, NAN};
    sotto_sampler_options o[14];
    const char *const fields[14] = {"temperature",   "top_k",          "top_p",        "min_p",        "typical_p",
                                    "penalty_last",  "repeat_penalty", "mirostat",     "mirostat_tau", "mirostat_eta",
                                    "bias[0].token", "bias[0].bias",   "bias[0].bias", "n_bias"};
    for (int i = 0; i < 14; i++)
        sotto_sampler_options_default(&o[i]);
    o[0].temperature = NAN;
    o[1].top_k = -1;
    o[2].top_p = 1.5f;
    o[3].min_p = -0.1f;
    o[4].typical_p = INFINITY;
    o[5].penalty_last = -2;
    o[6].repeat_penalty = 0;
    o[7].mirostat = 1;
    o[8].mirostat_tau = -1;
    o[9].mirostat_eta = NAN;
    for (int i = 10; i < 13; i++)
        o[i].n_bias = 1;
    o[10].bias = &outside;
    o[11].bias = &infinite;
    o[12].bias = &none;
    o[13].n_bias = -1;
    for (int i = 0; i < 14; i++) {
        sotto_error err = {0};
        sotto_sampler *s = (sotto_sampler *)&err;
        assert_int_equal(sotto_sampler_create(N_VOCAB, &o[i], &s, &err), SOTTO_E_ARGUMENT);
        assert_null(s);
        if (strncmp(err.text, fields[i], strlen(fields[i])) != 0)
            fail_msg("%s: %s", fields[i], err.text);
    }
    sotto_sampler *s;
    assert_int_equal(sotto_sampler_create(0, NULL, &s, NULL), SOTTO_E_ARGUMENT);
    s = make(1, NULL); /* one token, more candidates asked than there are */
    assert_int_equal(sample(s, (const float[]){-5}), 0);
    assert_true(sotto_sampler_may_end(s));
    sotto_sampler_free(s);
}

static void exponential_and_logarithm(void **state)
{
    (void)state;
    st_rng rng;
    st_rng_seed(&rng, 1);
    for (int i = 0; i < 100000; i++) {
        const double u = st_rng_uniform(&rng), x = -50.0 * u, y = exp2(100.0 * u - 50.0);
        assert_true(fabs(st_exp_negative(x) - exp(x)) <= 1e-14 * exp(x));
        assert_true(fabs(st_ln(y) - log(y)) <= 1e-14 * (fabs(log(y)) + 1e-2));
    }
    assert_true(st_exp_negative(0) == 1.0 && st_exp_negative(-INFINITY) == 0.0 && st_ln(1.0) == 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_what_the_restatement_draws),
        cmocka_unit_test(draws_follow_the_distribution),
        cmocka_unit_test(penalties_by_hand),
        cmocka_unit_test(greedy_takes_the_first_of_equals),
        cmocka_unit_test(top_is_a_sort_cut_short),
        cmocka_unit_test(a_clone_goes_on_alike),
        cmocka_unit_test(bad_rows_are_refused),
        cmocka_unit_test(options_out_of_range_are_named),
        cmocka_unit_test(exponential_and_logarithm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
