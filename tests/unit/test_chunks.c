/* test_chunks.c: chunks of speech, worked out by hand. A window is 3000 frames, the padding 20. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "models/whisper/chunks.h"

static const st_chunk_rules rules = {3000, 20};

static st_speech all_of(const st_chunk *spans, int64_t n)
{
    return (st_speech){.spans = spans, .n_spans = n, .open = -1, .final = true};
}

static void expect(const st_speech *speech, const st_chunk *want, int n)
{
    int64_t from = 0;
    st_chunk c;
    for (int i = 0; i < n; i++) {
        assert_true(st_chunk_next(speech, &rules, from, &c));
        assert_int_equal(c.first, want[i].first);
        assert_int_equal(c.end, want[i].end);
        from = c.end;
    }
    assert_false(st_chunk_next(speech, &rules, from, &c));
}

static void test_packing(void **state)
{
    (void)state;
    expect(&(st_speech){.open = -1, .final = true}, NULL, 0);
    /* the padding stops at the start of the recording */
    const st_chunk one[] = {{5, 100}};
    expect(&(st_speech){.spans = one, .n_spans = 1, .open = -1, .final = true}, (const st_chunk[]){{0, 120}}, 1);
    /* 80 + 3000 is 3080: the third span ends there exactly, the fourth behind it; its pause of 10 is shared out */
    const st_chunk four[] = {{100, 1000}, {1500, 2000}, {2500, 3080}, {3090, 3200}};
    st_speech s = all_of(four, 4);
    expect(&s, (const st_chunk[]){{80, 3080}, {3080, 3220}}, 2);
    /* a pause of 10 between chunks that have room for padding: 5 each, then what is left of it */
    const st_chunk near[] = {{100, 1000}, {1010, 4000}};
    s = all_of(near, 2);
    expect(&s, (const st_chunk[]){{80, 1005}, {1005, 4000 + 5}}, 2);
}

/* The last third of the window from 80 on begins at 2080. */
static void test_long_pauses(void **state)
{
    (void)state;
    st_chunk spans[] = {{100, 1000}, {1900, 2100}, {2200, 2400}, {2500, 2900}, {2950, 3200}};
    st_speech s = all_of(spans, 5);
    /* 2400 to 2500 is as long as 2100 to 2200 and later; the pause of 900 is too early */
    expect(&s, (const st_chunk[]){{80, 2420}, {2480, 3220}}, 2);
    spans[1].end = 2099;
    expect(&s, (const st_chunk[]){{80, 2119}, {2180, 3220}}, 2);
    spans[1].end = 1579; /* a pause of 621, but before the later half of the window */
    expect(&s, (const st_chunk[]){{80, 2420}, {2480, 3220}}, 2);
    /* a span behind the window leaves it as it is */
    spans[4].first = 3080;
    expect(&s, (const st_chunk[]){{80, 2920}, {3060, 3220}}, 2);
}

/* 10 s of speech at level 0.9 and one quiet place */
static void test_cutting(void **state)
{
    (void)state;
    enum { N = 2000 };
    float level[N];
    for (int i = 0; i < N; i++)
        level[i] = 0.9f;
    const st_chunk span[] = {{20, 5000}};
    st_speech s = all_of(span, 1);
    s.level = level;
    s.n_level = N;
    /* level 600 stands for samples 307,200 to 307,712: its middle is frame 1921. Level 100 is in the first half, 1000 too far. */
    level[600] = 0.1f;
    level[100] = level[1000] = 0.0f;
    /* the rest is 1921 to 5000, cut once more between 3421 and 4921: at level 1000, frame 3201, no; the last of equals is
     * level 1537, (1537 * 512 + 256) / 160 = 4920 */
    expect(&s, (const st_chunk[]){{0, 1921}, {1921, 4920}, {4920, 5020}}, 3);
    /* without levels at the window's end */
    s.n_level = 0;
    expect(&s, (const st_chunk[]){{0, 3000}, {3000, 5020}}, 2);
}

static void test_arriving(void **state)
{
    (void)state;
    const st_chunk spans[] = {{100, 1000}};
    st_speech s = {.spans = spans, .n_spans = 1, .open = -1, .heard = 3079};
    st_chunk c;
    assert_false(st_chunk_next(&s, &rules, 0, &c)); /* a span from 3079 to 3080 would belong to it */
    s.heard = 3080;
    assert_true(st_chunk_next(&s, &rules, 0, &c));
    assert_int_equal(c.end, 1020);
    assert_int_equal(st_chunk_earliest(&s, &rules, c.end), 3060);
    s = (st_speech){.spans = spans, .n_spans = 1, .open = 1010, .reaches = 3080};
    assert_false(st_chunk_next(&s, &rules, 0, &c));
    s.reaches = 3081;
    assert_true(st_chunk_next(&s, &rules, 0, &c));
    assert_int_equal(c.end, 1005);
    assert_true(!st_chunk_next(&s, &rules, c.end, &c)); /* 1005 + 3000 is not reached */
    s.reaches = 4006;
    assert_true(st_chunk_next(&s, &rules, 1005, &c));
    assert_int_equal(c.first, 1005);
    assert_int_equal(c.end, 4005);
    assert_int_equal(st_chunk_earliest(&s, &rules, 4005), 4005);
}

static void test_speech(void **state)
{
    (void)state;
    const st_chunk spans[] = {{100, 200}, {300, 400}};
    st_speech s = all_of(spans, 2);
    assert_int_equal(st_chunk_speech(&s, 0, 1000), 200);
    assert_int_equal(st_chunk_speech(&s, 150, 310), 60);
    assert_int_equal(st_chunk_speech(&s, 200, 300), 0);
    s.open = 900;
    assert_int_equal(st_chunk_speech(&s, 390, 1000), 110);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packing),  cmocka_unit_test(test_long_pauses), cmocka_unit_test(test_cutting),
        cmocka_unit_test(test_arriving), cmocka_unit_test(test_speech),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
