/* Rows of logits: maximum, sums, largest entries, sampling; and the rules of which token may come next. Expected values are
 * worked out by hand or by plain double arithmetic. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "speech_support.h"

enum { N = 1000 };

static void scan_finds_what_is_not_a_number(void **state)
{
    (void)state;
    static float x[N], block_max[N];
    const float wrong[] = {NAN, INFINITY, -NAN};
    for (int at = 0; at < N; at += 37)
        for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
            for (int i = 0; i < N; i++)
                x[i] = -1.0f;
            assert_true(st_logits_scan(x, N, block_max));
            x[at] = wrong[w];
            assert_false(st_logits_scan(x, N, block_max));
        }
    x[N - 1] = -INFINITY;
    x[0] = -INFINITY;
    for (int i = 0; i < N; i++)
        x[i] = i % 3 ? -INFINITY : -FLT_MAX;
    assert_true(st_logits_scan(x, N, block_max));
}

/* What sotto_block_sums gives of a row, in double arithmetic. */
static void count_blocks(const float *x, int n, float *block_max, float *block_sum)
{
    for (int b = 0; b * 64 < n; b++) {
        double max = -INFINITY, sum = 0;
        for (int i = b * 64; i < n && i < b * 64 + 64; i++)
            max = fmax(max, (double)x[i]);
        for (int i = b * 64; i < n && i < b * 64 + 64; i++)
            sum += x[i] == -INFINITY ? 0 : exp((double)x[i] - max);
        block_max[b] = (float)max;
        block_sum[b] = (float)sum;
    }
}

static void blocks_follow_what_is_forbidden(void **state)
{
    (void)state;
    static float x[N], block_max[N], block_sum[N], want_max[N], want_sum[N];
    srand(9);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < N; i++)
            x[i] = (float)(rand() % 100000) / 4000.0f - 12.0f;
        count_blocks(x, N, block_max, block_sum);
        for (int i = 0; i < 2 * N; i++) { /* some twice, whole blocks in the end */
            const int t = i < N ? rand() % N : 2 * N - 1 - i;
            st_logits_forbid(x, N, block_max, block_sum, t);
            assert_true(x[t] == -INFINITY);
            count_blocks(x, N, want_max, want_sum);
            for (int b = 0; b * 64 < N; b++) {
                assert_true(block_max[b] == want_max[b]);
                assert_true(fabs((double)block_sum[b] - (double)want_sum[b]) <= 1e-5 * (double)want_sum[b]);
            }
        }
    }
    block_sum[3] = NAN;
    assert_true(st_logits_are_numbers(block_sum, 3));
    assert_false(st_logits_are_numbers(block_sum, 4));
    block_sum[3] = INFINITY;
    assert_false(st_logits_are_numbers(block_sum, 4));
}

static void sums_and_maxima_match_double_arithmetic(void **state)
{
    (void)state;
    static float x[N], block_max[N], block_sum[N];
    srand(7);
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < N; i++)
            x[i] = (float)(rand() % 100000) / 1000.0f - 60.0f;
        const int lo = rand() % N;
        const st_range r = {lo, lo + rand() % (N - lo + 1)};
        assert_true(st_logits_scan(x, N, block_max));
        const float max = st_logits_max(x, block_max, r);
        float want_max = -INFINITY;
        double sum = 0;
        for (int i = r.lo; i < r.hi; i++)
            want_max = fmaxf(want_max, x[i]);
        for (int i = r.lo; i < r.hi; i++)
            sum += exp((double)x[i] - (double)want_max);
        assert_true(max == want_max);
        count_blocks(x, N, block_max, block_sum);
        for (int known = 0; known < 2 && r.lo < r.hi; known++) {
            const double got = st_logits_sum_exp(x, block_max, known ? block_sum : NULL, r, max);
            assert_true(fabs(got - sum) <= 1e-6 * sum);
        }
    }
}

static void top_is_ordered_and_prefers_lower_ids(void **state)
{
    (void)state;
    static float x[N], block_max[N];
    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 10);
    x[500] = -INFINITY;
    assert_true(st_logits_scan(x, N, block_max));
    st_scored top[17];
    const st_range ranges[2] = {{95, 120}, {300, 333}};
    assert_int_equal(st_logits_top(x, block_max, ranges, 2, 6, top), 6);
    const int32_t ids[] = {99, 109, 119, 309, 319, 329};
    for (int i = 0; i < 6; i++)
        assert_int_equal(top[i].id, ids[i]);
    assert_int_equal(st_logits_top(x, block_max, ranges, 2, 8, top), 8);
    assert_int_equal(top[6].id, 98);
    assert_int_equal(top[7].id, 108);
    const st_range one = {500, 503};
    assert_int_equal(st_logits_top(x, block_max, &one, 1, 17, top), 2);
    assert_int_equal(top[0].id, 502);
    assert_int_equal(top[1].id, 501);
}

static void samples_follow_the_distribution(void **state)
{
    (void)state;
    static float x[N];
    static double scratch[N];
    for (int i = 0; i < N; i++)
        x[i] = -INFINITY;
    /* 1 : 2 : 5 at temperature 2 is 1 : 4 : 25 at temperature 1 */
    x[3] = 0.0f;
    x[400] = 2.0f * logf(2.0f);
    x[999] = 2.0f * logf(5.0f);
    st_rng rng;
    st_rng_seed(&rng, 42);
    const st_range ranges[2] = {{0, 10}, {300, 1000}};
    int count[3] = {0};
    for (int i = 0; i < 80000; i++) {
        const int32_t t = st_logits_sample(x, ranges, 2, x[999], 2.0f, &rng, scratch);
        assert_true(t == 3 || t == 400 || t == 999);
        count[t == 3 ? 0 : t == 400 ? 1 : 2]++;
    }
    /* four standard deviations of a binomial are below 600 */
    assert_in_range(count[0], 10000 - 600, 10000 + 600);
    assert_in_range(count[1], 20000 - 600, 20000 + 600);
    assert_int_equal(st_logits_sample(x, ranges, 1, -INFINITY, 1.0f, &rng, scratch), -1);
}

static void random_numbers_are_those_of_the_published_generator(void **state)
{
    (void)state;
    /* splitmix64(0) begins e220a8397b1dcdaf 6e789e6aa1b965f4 06c45d188009454f f88bb8a8724c81ec */
    st_rng r;
    st_rng_seed(&r, 0);
    assert_true(r.s[0] == 0xe220a8397b1dcdafu && r.s[1] == 0x6e789e6aa1b965f4u);
    assert_true(r.s[2] == 0x06c45d188009454fu && r.s[3] == 0xf88bb8a8724c81ecu);
    /* xoshiro256** from 1, 2, 3, 4 gives 11520, 0, 1509978240, 1215971899390074240 */
    r = (st_rng){{1, 2, 3, 4}};
    assert_true(st_rng_next(&r) == 11520);
    assert_true(st_rng_next(&r) == 0);
    assert_true(st_rng_next(&r) == 1509978240);
    assert_true(st_rng_next(&r) == 1215971899390074240u);
}

/* ---- rules ---- */

typedef struct fixture {
    st_vocab *v;
    st_filters f;
    float *logits, *block_max;
} fixture;

static int setup(void **state)
{
    static fixture x;
    x.v = fake_vocab(2, true);
    x.f = (st_filters){.vocab = x.v, .suppress_blank = true, .timestamps = true, .max_initial = -1};
    x.logits = calloc((size_t)x.v->n_vocab, sizeof(float));
    x.block_max = calloc((size_t)x.v->n_vocab, sizeof(float));
    *state = &x;
    return 0;
}

static int teardown(void **state)
{
    fixture *x = *state;
    st_vocab_free(x->v);
    free(x->logits);
    free(x->block_max);
    return 0;
}

/* All logits 0 but one timestamp high above or all far below, so that the rule of sums decides as the test wants. */
static void level(fixture *x, float text, float stamps)
{
    for (int32_t i = 0; i < x->v->n_vocab; i++)
        x->logits[i] = i < x->v->timestamp ? text : stamps;
}

static bool allowed(const fixture *x, const st_allowed *a, int32_t id)
{
    for (int i = 0; i < a->n_ranges; i++)
        if (id >= a->ranges[i].lo && id < a->ranges[i].hi)
            return x->logits[id] != -INFINITY;
    return false;
}

/* With the sums of blocks known and without, which must come to the same. */
static st_allowed apply(fixture *x, const int32_t *tokens, int n)
{
    const int32_t n_vocab = x->v->n_vocab;
    float *copy = malloc((size_t)n_vocab * sizeof *copy), *blocks = malloc((size_t)n_vocab * 2 * sizeof *blocks);
    memcpy(copy, x->logits, (size_t)n_vocab * sizeof *copy);
    count_blocks(copy, n_vocab, blocks, blocks + n_vocab);
    st_allowed a, b;
    assert_true(st_filters_apply(&x->f, &(st_logits_row){copy, blocks, blocks + n_vocab}, tokens, n, &b));
    assert_true(st_filters_apply(&x->f, &(st_logits_row){x->logits, x->block_max, NULL}, tokens, n, &a));
    assert_memory_equal(copy, x->logits, (size_t)n_vocab * sizeof *copy);
    assert_int_equal(a.n_ranges, b.n_ranges);
    assert_true(a.max == b.max &&
                (a.log_sum == b.log_sum || fabs(a.log_sum - b.log_sum) <= 1e-6 * fabs(a.log_sum) + 1e-6));
    for (int i = 0; i < a.n_ranges; i++) {
        assert_true(a.ranges[i].lo == b.ranges[i].lo && a.ranges[i].hi == b.ranges[i].hi);
        assert_true(st_logits_max(copy, blocks, b.ranges[i]) == st_logits_max(copy, a.block_max, a.ranges[i]));
    }
    free(copy);
    free(blocks);
    return a;
}

static void first_token_is_a_timestamp_up_to_the_maximum(void **state)
{
    fixture *x = *state;
    x->f.max_initial = 50; /* 1.00 s */
    level(x, 50.0f, 0.0f); /* text could not be likelier */
    st_allowed a = apply(x, NULL, 0);
    assert_int_equal(a.n_ranges, 1);
    assert_int_equal(a.ranges[0].lo, x->v->timestamp);
    assert_int_equal(a.ranges[0].hi, x->v->timestamp + 51);
    assert_true(fabs(a.log_sum - log(51.0)) < 1e-6);
    x->f.max_initial = -1;
    level(x, 50.0f, 0.0f);
    a = apply(x, NULL, 0);
    assert_int_equal(a.ranges[0].hi, x->v->n_vocab);
    x->f.max_initial = 0;
    level(x, 50.0f, 0.0f);
    a = apply(x, NULL, 0);
    assert_int_equal(a.ranges[0].hi, x->v->timestamp + 1);
}

static void after_a_first_timestamp_comes_text(void **state)
{
    fixture *x = *state;
    level(x, 0.0f, 50.0f);
    const int32_t tokens[] = {stamp(x->v, 40)};
    const st_allowed a = apply(x, tokens, 1);
    assert_true(allowed(x, &a, WORD_A));
    assert_true(allowed(x, &a, x->v->eot));
    for (int32_t t = x->v->timestamp; t < x->v->n_vocab; t++)
        assert_false(allowed(x, &a, t));
    assert_false(allowed(x, &a, x->v->no_timestamps));
}

static void an_ending_timestamp_is_later_than_the_start(void **state)
{
    fixture *x = *state;
    level(x, 20.0f, 0.0f);
    const int32_t tokens[] = {stamp(x->v, 40), WORD_A};
    const st_allowed a = apply(x, tokens, 2);
    assert_true(allowed(x, &a, WORD_A));
    assert_false(allowed(x, &a, stamp(x->v, 38)));
    assert_false(allowed(x, &a, stamp(x->v, 40)));
    assert_true(allowed(x, &a, stamp(x->v, 42)));
}

static void after_an_ending_timestamp_comes_a_start_or_the_end(void **state)
{
    fixture *x = *state;
    level(x, 20.0f, 0.0f);
    const int32_t tokens[] = {stamp(x->v, 40), WORD_A, stamp(x->v, 80)};
    const st_allowed a = apply(x, tokens, 3);
    assert_false(allowed(x, &a, WORD_A));
    assert_false(allowed(x, &a, x->v->eot - 1));
    assert_true(allowed(x, &a, x->v->eot));
    assert_false(allowed(x, &a, stamp(x->v, 78)));
    assert_true(allowed(x, &a, stamp(x->v, 80))); /* the next segment may begin where this one ends */
    const int32_t pair[] = {stamp(x->v, 40), WORD_A, stamp(x->v, 80), stamp(x->v, 80)};
    level(x, 0.0f, 50.0f);
    const st_allowed b = apply(x, pair, 4);
    assert_true(allowed(x, &b, WORD_A));
    assert_false(allowed(x, &b, stamp(x->v, 82)));
}

/* 1501 - 21 timestamps of 0 have a log sum of log 1480 = 7.29977. */
static void timestamps_win_by_their_sum(void **state)
{
    fixture *x = *state;
    const int32_t tokens[] = {stamp(x->v, 40), WORD_A};
    level(x, -100.0f, 0.0f);
    x->logits[WORD_A] = 7.299f;
    st_allowed a = apply(x, tokens, 2);
    assert_false(allowed(x, &a, WORD_A));
    assert_true(fabs(a.log_sum - log(1480.0)) < 1e-6);
    assert_true(a.max == 0.0f);
    level(x, -100.0f, 0.0f);
    x->logits[WORD_A] = 7.3f;
    a = apply(x, tokens, 2);
    assert_true(allowed(x, &a, WORD_A));
    assert_true(fabs(a.log_sum - log(exp(7.3f) + 1480.0)) < 1e-6);
    assert_true(a.max == 7.3f);
}

static void blanks_and_listed_tokens_are_suppressed(void **state)
{
    fixture *x = *state;
    const int32_t listed[] = {WORD_A + 3, x->v->n_vocab - 1};
    x->f = (st_filters){.vocab = x->v, .suppress_blank = true, .suppress = listed, .n_suppress = 2};
    level(x, 0.0f, 0.0f);
    st_allowed a = apply(x, NULL, 0);
    assert_false(allowed(x, &a, ' '));
    assert_false(allowed(x, &a, x->v->eot));
    assert_false(allowed(x, &a, WORD_A + 3));
    assert_false(allowed(x, &a, x->v->n_vocab - 1));
    assert_true(allowed(x, &a, WORD_A));
    assert_true(fabs(a.log_sum - log(x->v->n_vocab - 4)) < 1e-6);
    const int32_t tokens[] = {WORD_A};
    level(x, 0.0f, 0.0f);
    a = apply(x, tokens, 1);
    assert_true(allowed(x, &a, ' '));
    assert_true(allowed(x, &a, x->v->eot));
    assert_false(allowed(x, &a, WORD_A + 3));
    x->f.suppress_blank = false;
    level(x, 0.0f, 0.0f);
    a = apply(x, NULL, 0);
    assert_true(allowed(x, &a, x->v->eot));
}

static void everything_suppressed_is_nothing_and_nan_is_refused(void **state)
{
    fixture *x = *state;
    level(x, -INFINITY, -INFINITY);
    const st_allowed a = apply(x, NULL, 0);
    assert_true(a.max == -INFINITY);
    level(x, 0.0f, 0.0f);
    x->logits[777] = NAN;
    st_allowed b;
    const st_logits_row unknown = {x->logits, x->block_max, NULL};
    assert_false(st_filters_apply(&x->f, &unknown, NULL, 0, &b));
    float *sums = calloc((size_t)x->v->n_vocab, sizeof *sums);
    sums[12] = NAN;
    const st_logits_row known = {x->logits, x->block_max, sums};
    assert_false(st_filters_apply(&x->f, &known, NULL, 0, &b));
    free(sums);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scan_finds_what_is_not_a_number),
        cmocka_unit_test(blocks_follow_what_is_forbidden),
        cmocka_unit_test(sums_and_maxima_match_double_arithmetic),
        cmocka_unit_test(top_is_ordered_and_prefers_lower_ids),
        cmocka_unit_test(samples_follow_the_distribution),
        cmocka_unit_test(random_numbers_are_those_of_the_published_generator),
        cmocka_unit_test_setup_teardown(first_token_is_a_timestamp_up_to_the_maximum, setup, teardown),
        cmocka_unit_test_setup_teardown(after_a_first_timestamp_comes_text, setup, teardown),
        cmocka_unit_test_setup_teardown(an_ending_timestamp_is_later_than_the_start, setup, teardown),
        cmocka_unit_test_setup_teardown(after_an_ending_timestamp_comes_a_start_or_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(timestamps_win_by_their_sum, setup, teardown),
        cmocka_unit_test_setup_teardown(blanks_and_listed_tokens_are_suppressed, setup, teardown),
        cmocka_unit_test_setup_teardown(everything_suppressed_is_nothing_and_nan_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
