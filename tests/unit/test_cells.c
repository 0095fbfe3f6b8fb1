/* Cells of the self cache against a plain model of it: every sequence as a list of distinct marks, copied by value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "models/common/cells.h"

enum { SEQ = 4, CTX = 12, CELLS = CTX + SEQ * CTX };

static int32_t cell_at(const st_cells *c, int seq, int pos)
{
    return c->list[seq * CTX + pos];
}

static void puts_in_order_and_refuses_gaps(void **state)
{
    (void)state;
    st_cells c;
    assert_true(st_cells_init(&c, SEQ, CTX, 0, CELLS, SEQ));
    assert_int_equal(st_cells_put(&c, 0, 1), -1);
    assert_int_equal(st_cells_put(&c, SEQ, 0), -1);
    assert_int_equal(st_cells_put(&c, -1, 0), -1);
    assert_int_not_equal(st_cells_put(&c, 0, 0), -1);
    assert_int_not_equal(st_cells_put(&c, 0, 1), -1);
    assert_int_equal(st_cells_put(&c, 0, CTX), -1);
    assert_int_equal(c.length[0], 2);
    /* going back drops what came after */
    assert_int_not_equal(st_cells_put(&c, 0, 0), -1);
    assert_int_equal(c.length[0], 1);
    assert_int_equal(c.n_unused, CELLS - 1);
    st_cells_free(&c);
}

static void an_empty_pool_is_an_error_and_not_a_crash(void **state)
{
    (void)state;
    st_cells c;
    assert_true(st_cells_init(&c, 2, CTX, 0, 3, 2));
    for (int i = 0; i < 3; i++)
        assert_true(st_cells_put(&c, 0, i) >= 0);
    assert_int_equal(st_cells_put(&c, 0, 3), -1);
    assert_int_equal(st_cells_put(&c, 1, 0), -1);
    st_cells_reset(&c);
    assert_true(st_cells_put(&c, 1, 0) >= 0);
    st_cells_free(&c);
}

static void a_permutation_moves_lists_all_at_once(void **state)
{
    (void)state;
    st_cells c;
    assert_true(st_cells_init(&c, SEQ, CTX, 0, CELLS, SEQ));
    int32_t before[3];
    for (int s = 0; s < 3; s++)
        before[s] = st_cells_put(&c, s, 0);
    st_cells_reorder(&c, (const int32_t[]){0, 1, 2}, (const int32_t[]){1, 2, 0}, 3, 1);
    assert_int_equal(cell_at(&c, 0, 0), before[1]);
    assert_int_equal(cell_at(&c, 1, 0), before[2]);
    assert_int_equal(cell_at(&c, 2, 0), before[0]);
    st_cells_free(&c);
}

/* Beam search as it happens: a shared prompt, then steps with random parents. */
static void random_beams_match_a_model_by_value(void **state)
{
    (void)state;
    uint32_t seed = 12345;
    printf("seed %u\n", (unsigned)seed);
    st_cells c;
    assert_true(st_cells_init(&c, SEQ, CTX, 0, CELLS, SEQ));
    static int32_t marks[CELLS];
    int32_t model[SEQ][CTX], next = 1;
    for (int round = 0; round < 200; round++) {
        st_cells_reset(&c);
        const int prompt = 1 + round % 4;
        for (int p = 0; p < prompt; p++)
            marks[st_cells_put(&c, 0, p)] = model[0][p] = next++;
        int32_t dst[SEQ], src[SEQ];
        for (int s = 0; s < SEQ; s++) {
            dst[s] = s;
            src[s] = 0;
            memcpy(model[s], model[0], sizeof model[0]);
        }
        st_cells_reorder(&c, dst, src, SEQ, prompt);
        for (int p = prompt; p < CTX; p++) {
            for (int s = 0; s < SEQ; s++) {
                const int32_t cell = st_cells_put(&c, s, p);
                assert_true(cell >= 0);
                marks[cell] = model[s][p] = next++;
            }
            int32_t old[SEQ][CTX];
            memcpy(old, model, sizeof old);
            for (int s = 0; s < SEQ; s++) {
                seed = seed * 1664525u + 1013904223u;
                src[s] = (int32_t)((seed >> 16) % SEQ);
                memcpy(model[s], old[src[s]], sizeof old[0]);
            }
            st_cells_reorder(&c, dst, src, SEQ, p + 1);
            for (int s = 0; s < SEQ; s++) {
                assert_int_equal(c.length[s], p + 1);
                for (int k = 0; k <= p; k++)
                    assert_int_equal(marks[cell_at(&c, s, k)], model[s][k]);
            }
        }
        int used = 0;
        for (int i = 0; i < CELLS; i++)
            used += c.users[i] > 0;
        assert_int_equal(used + c.n_unused, CELLS);
    }
    st_cells_free(&c);
}

static void what_changed_is_told_once(void **state)
{
    (void)state;
    st_cells c;
    int32_t from, to;
    assert_true(st_cells_init(&c, SEQ, CTX, 0, CELLS, 1));
    for (int i = 0; i < 5; i++)
        (void)st_cells_put(&c, 1, i);
    st_cells_changed(&c, 1, &from, &to);
    assert_true(from == 0 && to == 5);
    st_cells_told(&c, 1);
    (void)st_cells_put(&c, 1, 5);
    st_cells_changed(&c, 1, &from, &to);
    assert_true(from == 5 && to == 6);
    st_cells_told(&c, 1);
    st_cells_truncate(&c, 1, 3);
    st_cells_changed(&c, 1, &from, &to);
    assert_true(from == 3 && to == 3);
    (void)st_cells_put(&c, 1, 3);
    st_cells_changed(&c, 1, &from, &to);
    assert_true(from == 3 && to == 4);
    const int32_t dst = 2, src = 1;
    st_cells_reorder(&c, &dst, &src, 1, 2);
    st_cells_changed(&c, 2, &from, &to);
    assert_true(from == 0 && to == 2);
    st_cells_told(&c, 1);
    st_cells_tell_all(&c);
    st_cells_changed(&c, 1, &from, &to);
    assert_true(from == 0 && to == 4);
    st_cells_truncate(&c, 1, 9); /* nothing is there */
    st_cells_truncate(&c, SEQ, 0);
    st_cells_truncate(&c, 1, -1);
    assert_int_equal(c.length[1], 4);
    st_cells_free(&c);
}

static void a_shift_moves_down_and_copies_what_is_shared(void **state)
{
    (void)state;
    st_cells c;
    int32_t from[CTX], to[CTX], was[CTX];
    assert_true(st_cells_init(&c, SEQ, CTX, 0, 12, 1));
    for (int i = 0; i < 8; i++)
        was[i] = st_cells_put(&c, 0, i);
    const int32_t one = 1, zero = 0;
    st_cells_reorder(&c, &one, &zero, 1, 6); /* 6 are shared, 2 are the first's own, 4 are free */
    st_cells_told(&c, 0);
    assert_false(st_cells_shift(&c, 0, 3, 6, from, to));
    assert_false(st_cells_shift(&c, 0, -1, 1, from, to));
    assert_false(st_cells_shift(&c, SEQ, 0, 0, from, to));
    assert_false(st_cells_shift(&c, 0, 0, 1, from, to)); /* 5 shared ones would move to 4 free ones */
    assert_int_equal(c.length[0], 8);
    assert_true(st_cells_shift(&c, 0, 1, 2, from, to));
    assert_int_equal(c.length[0], 6);
    assert_int_equal(cell_at(&c, 0, 0), was[0]);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(from[i], was[3 + i]);
        assert_int_equal(to[i], cell_at(&c, 0, 1 + i));
        assert_true((to[i] == from[i]) == (i >= 3)); /* 3, 4 and 5 are shared */
    }
    for (int i = 0; i < 6; i++)
        assert_int_equal(cell_at(&c, 1, i), was[i]);
    assert_int_equal(c.n_unused, 1);
    int32_t first, last;
    st_cells_changed(&c, 0, &first, &last);
    assert_true(first == 1 && last == 6);
    st_cells_truncate(&c, 0, 0);
    st_cells_truncate(&c, 1, 0);
    assert_int_equal(c.n_unused, 12);
    st_cells_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(puts_in_order_and_refuses_gaps),
        cmocka_unit_test(an_empty_pool_is_an_error_and_not_a_crash),
        cmocka_unit_test(a_permutation_moves_lists_all_at_once),
        cmocka_unit_test(random_beams_match_a_model_by_value),
        cmocka_unit_test(what_changed_is_told_once),
        cmocka_unit_test(a_shift_moves_down_and_copies_what_is_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
