#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "planner_check.h"

static size_t place(st_plan_item *items, int n)
{
    size_t total;
    sotto_error err;
    if (st_plan_place(items, n, &total, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    const char *broken = planner_broken_rule(items, n, total);
    if (broken)
        fail_msg("%s", broken);
    return total;
}

static st_plan_item item(size_t size, int first, int last)
{
    return (st_plan_item){.size = size, .alignment = 16, .first = first, .last = last, .reuse = -1};
}

static void nothing_takes_nothing(void **state)
{
    (void)state;
    size_t total = 1;
    assert_int_equal(st_plan_place(NULL, 0, &total, NULL), SOTTO_OK);
    assert_int_equal(total, 0);
    st_plan_item empty[] = {item(0, 0, 3), item(0, 1, 1)};
    assert_int_equal(place(empty, 2), 0);
}

/* Each is read in the step that writes the next: two places are enough for a chain of any length. */
static void a_chain_takes_two_places(void **state)
{
    (void)state;
    st_plan_item items[10];
    for (int i = 0; i < 10; i++)
        items[i] = item(64, i, i + 1);
    assert_int_equal(place(items, 10), 128);
    /* and one, when each may take over the one before */
    for (int i = 0; i < 10; i++)
        items[i].reuse = i - 1;
    assert_int_equal(place(items, 10), 64);
}

static void reuse_needs_a_dying_parent_of_the_same_size(void **state)
{
    (void)state;
    st_plan_item later[] = {item(64, 0, 2), item(64, 1, 2)}; /* the parent is read once more afterwards */
    later[1].reuse = 0;
    assert_int_equal(place(later, 2), 128);
    st_plan_item smaller[] = {item(64, 0, 1), item(48, 1, 2)};
    smaller[1].reuse = 0;
    assert_int_equal(place(smaller, 2), 112);
    st_plan_item twice[] = {item(64, 0, 1), item(64, 1, 2), item(64, 1, 2)}; /* only one child gets it */
    twice[1].reuse = twice[2].reuse = 0;
    assert_int_equal(place(twice, 3), 128);
    st_plan_item pinned[] = {item(64, 0, 1), item(64, 1, 2)};
    pinned[1].reuse = 0;
    pinned[0].pinned = true;
    assert_int_equal(place(pinned, 2), 128);
    pinned[0].pinned = false;
    pinned[1].pinned = true;
    assert_int_equal(place(pinned, 2), 128);
}

static void pinned_items_never_share(void **state)
{
    (void)state;
    st_plan_item items[] = {item(32, 0, 0), item(32, 1, 1), item(32, 2, 2), item(32, 3, 3)};
    items[0].pinned = items[2].pinned = true;
    assert_int_equal(place(items, 4), 96);
    assert_int_equal(items[1].offset, items[3].offset);
}

/* Items of one step may run at the same time: what ends in it is not free for what begins in it. */
static void one_step_never_shares_with_itself(void **state)
{
    (void)state;
    st_plan_item items[] = {item(16, 0, 1), item(16, 1, 1), item(16, 1, 2), item(16, 2, 2)};
    assert_int_equal(place(items, 4), 48);
}

static void neighbours_merge_and_the_best_fit_is_taken(void **state)
{
    (void)state;
    st_plan_item merged[] = {item(32, 0, 0), item(32, 0, 0), item(16, 0, 5), item(64, 1, 1)};
    assert_int_equal(place(merged, 4), 80);
    assert_int_equal(merged[3].offset, 0);
    /* free: 64 at 0, 32 at 80; the second holds 32 exactly */
    st_plan_item best[] = {item(64, 0, 0), item(16, 0, 5), item(32, 0, 0),
                           item(16, 0, 5), item(32, 1, 1), item(64, 1, 1)};
    assert_int_equal(place(best, 6), 128);
    assert_int_equal(best[4].offset, best[2].offset);
    assert_int_equal(best[5].offset, best[0].offset);
    /* a free end grows instead of being skipped */
    st_plan_item grown[] = {item(16, 0, 5), item(32, 0, 0), item(80, 1, 1)};
    assert_int_equal(place(grown, 3), 96);
}

/* Three that die at different times leave one hole, whatever their order. */
static void holes_merge_in_any_order(void **state)
{
    (void)state;
    static const int orders[6][3] = {{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}};
    for (int o = 0; o < 6; o++) {
        st_plan_item items[] = {item(16, 0, orders[o][0]),
                                item(16, 0, orders[o][1]),
                                item(16, 0, orders[o][2]),
                                item(16, 0, 9),
                                item(0, 2, 2),
                                item(16, 3, 3),
                                item(48, 4, 9)};
        assert_int_equal(place(items, 7), 64);
        assert_int_equal(items[6].offset, 0);
    }
}

static void alignment_leaves_gaps_that_are_used(void **state)
{
    (void)state;
    st_plan_item gap[] = {item(16, 0, 9), item(100, 0, 9), item(16, 0, 9)};
    gap[1].alignment = 64;
    assert_int_equal(place(gap, 3), 164);
    assert_int_equal(gap[1].offset, 64);
    assert_int_equal(gap[2].offset, 16);
    /* the parent lies where the child may not */
    st_plan_item odd[] = {item(16, 0, 9), item(64, 0, 1), item(64, 1, 2)};
    odd[2].reuse = 1;
    odd[2].alignment = 64;
    assert_int_equal(place(odd, 3), 192);
    assert_int_equal(odd[2].offset, 128);
    st_plan_item end[] = {item(SIZE_MAX - 20, 0, 1), item(1, 0, 1)};
    end[1].alignment = 64;
    size_t total;
    assert_int_equal(st_plan_place(end, 2, &total, NULL), SOTTO_E_MEMORY);
}

static void misuse_is_refused(void **state)
{
    (void)state;
    size_t total;
    sotto_error err;
    st_plan_item order[] = {item(16, 1, 1), item(16, 0, 1)};
    assert_int_equal(st_plan_place(order, 2, &total, &err), SOTTO_E_ARGUMENT);
    st_plan_item ends[] = {item(16, 2, 1)};
    assert_int_equal(st_plan_place(ends, 1, &total, &err), SOTTO_E_ARGUMENT);
    st_plan_item odd[] = {item(16, 0, 1)};
    odd[0].alignment = 12;
    assert_int_equal(st_plan_place(odd, 1, &total, &err), SOTTO_E_ARGUMENT);
    st_plan_item future[] = {item(16, 0, 1)};
    future[0].reuse = 0;
    assert_int_equal(st_plan_place(future, 1, &total, &err), SOTTO_E_ARGUMENT);
    st_plan_item huge[] = {item(SIZE_MAX / 2, 0, 1), item(SIZE_MAX / 2, 0, 1), item(64, 0, 1)};
    assert_int_equal(st_plan_place(huge, 3, &total, &err), SOTTO_E_MEMORY);
    assert_non_null(strstr(err.text, "overflow"));
}

static void random_graphs_keep_the_rules(void **state)
{
    (void)state;
    const char *text = getenv("SOTTO_TEST_SEED");
    const unsigned seed = text ? (unsigned)strtoul(text, NULL, 10) : (unsigned)time(NULL);
    printf("seed %u (SOTTO_TEST_SEED)\n", seed);
    uint64_t x = seed;
    st_plan_item items[300];
    for (int round = 0; round < 300; round++) {
        int step = 0, n = 0;
        for (; n < 300; n++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            const uint32_t r = (uint32_t)(x >> 32);
            step += r % 8 < 5;
            items[n] = item((r >> 3) % 5000 * (r % 7 != 0), step, step + (int)((r >> 16) % (round % 2 ? 4 : 40)));
            items[n].alignment = (size_t)1 << (r >> 22) % 9;
            items[n].pinned = r % 31 == 0;
            items[n].reuse = n > 0 && r % 3 == 0 ? n - 1 - (int)((r >> 8) % (uint32_t)(n < 4 ? n : 4)) : -1;
            if (items[n].reuse >= 0 && r % 2) { /* often a pair that fits */
                items[n].size = items[items[n].reuse].size;
                items[items[n].reuse].last = step;
            }
        }
        for (int i = 0; i < n; i++)
            items[i].last = items[i].last < items[i].first ? items[i].first : items[i].last;
        place(items, n);
    }
}

/* The same in memory that is cut: nothing lies across a border, and nothing larger than a piece is taken. */
static void random_graphs_in_pieces(void **state)
{
    (void)state;
    uint64_t x = (uint64_t)time(NULL);
    printf("seed %llu\n", (unsigned long long)x);
    st_plan_item items[100];
    for (int round = 0; round < 300; round++) {
        const size_t chunk = 4096 * (size_t)(1 + round % 3);
        int step = 0;
        for (int n = 0; n < 100; n++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            const uint32_t r = (uint32_t)(x >> 32);
            step += r % 8 < 5;
            items[n] = item((r >> 3) % 4097, step, step + (int)((r >> 16) % 6));
            items[n].pinned = r % 31 == 0;
            items[n].reuse = n > 0 && r % 3 == 0 ? n - 1 : -1;
        }
        size_t total;
        assert_int_equal(st_plan_place_chunked(items, 100, chunk, &total, NULL), SOTTO_OK);
        for (int i = 0; i < 100; i++)
            for (int k = 0; k <= i; k++) {
                const st_plan_item *a = &items[i], *b = &items[k];
                if (a->size == 0 || b->size == 0)
                    continue;
                assert_true(a->offset / chunk == (a->offset + a->size - 1) / chunk && a->offset + a->size <= total);
                const bool apart = a->offset + a->size <= b->offset || b->offset + b->size <= a->offset;
                assert_true(i == k || apart || !planner_live_together(a, b) || planner_took_over(items, i, k));
            }
    }
    size_t total;
    sotto_error err;
    st_plan_item large[] = {item(64, 0, 1), item(4097, 1, 1)};
    assert_int_equal(st_plan_place_chunked(large, 2, 4096, &total, &err), SOTTO_E_MEMORY);
    assert_non_null(strstr(err.text, "item 1 of 4097 bytes"));
    st_plan_item full[] = {item(4096, 0, 1), item(4096, 0, 1), item(16, 0, 1)};
    assert_int_equal(st_plan_place_chunked(full, 3, 4096, &total, NULL), SOTTO_OK);
    assert_int_equal(total, 2 * 4096 + 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_takes_nothing),
        cmocka_unit_test(a_chain_takes_two_places),
        cmocka_unit_test(reuse_needs_a_dying_parent_of_the_same_size),
        cmocka_unit_test(pinned_items_never_share),
        cmocka_unit_test(one_step_never_shares_with_itself),
        cmocka_unit_test(neighbours_merge_and_the_best_fit_is_taken),
        cmocka_unit_test(holes_merge_in_any_order),
        cmocka_unit_test(alignment_leaves_gaps_that_are_used),
        cmocka_unit_test(misuse_is_refused),
        cmocka_unit_test(random_graphs_keep_the_rules),
        cmocka_unit_test(random_graphs_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
