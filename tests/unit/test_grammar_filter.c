/* A grammar over a vocabulary: masks against asking token by token, and samplers that follow a grammar against samplers of
 * rows in which what is forbidden was struck out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "models/common/grammar_filter.h"
#include "models/common/rng.h"
#include "sotto/sampler.h"

enum { N_VOCAB = 700, LONGEST = 12, END = 5, OTHER_END = 333 };

typedef struct vocabulary {
    char bytes[N_VOCAB][LONGEST];
    size_t n[N_VOCAB];
} vocabulary;

static const char *const grammars[] = {
    "root ::= [ab]*",
    "root ::= \"(\" root \")\" root | [a-c]*",
    "root ::= ([a-z\xc3\xa9] | \"\xe2\x82\xac\" | \"\xf0\x9f\x98\x80\"){2,7} \"!\"?",
    "root ::= [^a-b\xc3\xa9]+ \"a\"",
    "root ::= \"\\\"\" [^\"\\\\\\x00-\\x1f]* \"\\\"\" [0-9]{0,3}",
    "root ::= item (\",\" item)*\nitem ::= [0-9]+ | \"[\" root? \"]\"",
};

/* Tokens of pieces that such grammars know, every byte, some twice, some of no text. */
static vocabulary *make_vocabulary(st_rng *rng)
{
    static const char *const pieces[] = {"a",
                                         "b",
                                         "c",
                                         "(",
                                         ")",
                                         "\"",
                                         "0",
                                         "17",
                                         ",",
                                         "[",
                                         "]",
                                         "!",
                                         "\n",
                                         "\xc3\xa9",
                                         "\xe2\x82\xac",
                                         "\xf0\x9f\x98\x80",
                                         "é",
                                         "ab",
                                         "x",
                                         "\xc3",
                                         "\xa9",
                                         "\xe2",
                                         "\x82\xac",
                                         "\xf0\x9f",
                                         "\x98",
                                         "\xed\xa0",
                                         "\xc0"};
    vocabulary *v = calloc(1, sizeof *v);
    assert_non_null(v);
    for (int i = 0; i < N_VOCAB; i++) {
        if (i < 256) {
            v->bytes[i][0] = (char)i;
            v->n[i] = 1;
            continue;
        }
        const int n = i % 50 == 0 ? 0 : 1 + (int)(3 * st_rng_uniform(rng));
        for (int k = 0; k < n; k++) {
            const char *piece = pieces[(size_t)(st_rng_uniform(rng) * (sizeof pieces / sizeof *pieces))];
            memcpy(v->bytes[i] + v->n[i], piece, strlen(piece));
            v->n[i] += strlen(piece);
        }
    }
    return v;
}

static const char *bytes_of(void *user, int32_t id, size_t *n)
{
    const vocabulary *v = user;
    *n = v->n[id];
    return v->bytes[id];
}

static bool ends(void *user, int32_t id)
{
    (void)user;
    return id == END || id == OTHER_END;
}

static sotto_grammar *parse(const char *gbnf)
{
    sotto_error err = {0};
    sotto_grammar *g;
    if (sotto_grammar_create(gbnf, strlen(gbnf), NULL, &g, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    return g;
}

static int bit(const uint32_t *mask, int32_t token)
{
    return (int)(mask[token / 32] >> (token % 32) & 1);
}

static bool fits(const sotto_grammar *g, const char *text, size_t n, bool *whole)
{
    size_t far;
    assert_int_equal(sotto_grammar_match(g, text, n, &far, whole, NULL), SOTTO_OK);
    return far == n;
}

static void masks_say_what_asking_says(void **state)
{
    (void)state;
    st_rng rng;
    st_rng_seed(&rng, 8);
    vocabulary *v = make_vocabulary(&rng);
    const st_token_texts texts = {bytes_of, ends, v, N_VOCAB};
    for (size_t i = 0; i < sizeof grammars / sizeof *grammars; i++) {
        sotto_grammar *g = parse(grammars[i]);
        st_grammar_filter *f, *other;
        assert_int_equal(st_grammar_filter_create(g, &texts, NULL, &f, NULL), SOTTO_OK);
        for (int round = 0; round < 10; round++) {
            char text[16 * LONGEST];
            size_t n = 0;
            st_grammar_place at = st_grammar_filter_start(f);
            for (int step = 0; step < 12; step++) {
                const uint32_t *mask;
                int32_t allowed[N_VOCAB];
                int n_allowed = 0;
                assert_int_equal(st_grammar_filter_mask(f, at, &mask, NULL), SOTTO_OK);
                for (int32_t t = 0; t < N_VOCAB; t++) {
                    bool one, whole;
                    assert_int_equal(st_grammar_filter_allows(f, at, t, &one, NULL), SOTTO_OK);
                    assert_int_equal(one, bit(mask, t));
                    if (one)
                        allowed[n_allowed++] = t;
                    if (round > 0) /* slow */
                        continue;
                    memcpy(text + n, v->bytes[t], v->n[t]);
                    const bool fit = fits(g, text, n + v->n[t], &whole);
                    if (ends(NULL, t)) {
                        fits(g, text, n, &whole);
                        assert_int_equal(one, whole);
                    } else {
                        assert_int_equal(one, fit && v->n[t] > 0);
                    }
                }
                if (n_allowed == 0)
                    break;
                const int32_t token = allowed[(int)(st_rng_uniform(&rng) * n_allowed)];
                st_grammar_place cloned = at;
                assert_int_equal(st_grammar_filter_clone(f, &cloned, &other, NULL), SOTTO_OK);
                assert_int_equal(st_grammar_filter_accept(other, &cloned, token, NULL), SOTTO_OK);
                assert_int_equal(st_grammar_filter_accept(f, &at, token, NULL), SOTTO_OK);
                assert_true(at.state >= 0 && cloned.state >= 0);
                const uint32_t *copy;
                assert_int_equal(st_grammar_filter_mask(f, at, &mask, NULL), SOTTO_OK);
                assert_int_equal(st_grammar_filter_mask(other, cloned, &copy, NULL), SOTTO_OK);
                assert_memory_equal(mask, copy, (N_VOCAB + 31) / 32 * sizeof *mask);
                st_grammar_filter_free(other);
                if (ends(NULL, token))
                    break;
                memcpy(text + n, v->bytes[token], v->n[token]);
                n += v->n[token];
            }
        }
        st_grammar_filter_free(f);
        sotto_grammar_free(g);
    }
    free(v);
}

/* ---- samplers ---- */

static const sotto_sampler_options chains[] = {
    {.temperature = 0, .top_k = 40, .top_p = 1, .min_p = 0, .typical_p = 1},
    {.temperature = 1, .top_k = 3, .top_p = 1, .min_p = 0, .typical_p = 1},
    {.temperature = 1, .top_k = 40, .top_p = 0.9f, .min_p = 0.05f, .typical_p = 0.9f},
    {.temperature = 1.5f, .top_k = 0, .top_p = 0.9f, .min_p = 0, .typical_p = 1},
    {.temperature = 0.7f, .top_k = 0, .top_p = 1, .min_p = 0, .typical_p = 1},
    {.temperature = 0.9f, .top_k = 690, .top_p = 1, .min_p = 0.01f, .typical_p = 1},
    {.temperature = 0.9f,
     .top_k = 0,
     .top_p = 1,
     .min_p = 0,
     .typical_p = 1,
     .mirostat = 2,
     .mirostat_tau = 3,
     .mirostat_eta = 0.3f},
};

/* One with the grammar, one whose rows were struck out: they choose the same. */
static void check_chain(const sotto_grammar *g, const sotto_sampler_options *chain, vocabulary *v, st_rng *rng)
{
    sotto_sampler_options o = *chain, plain;
    sotto_sampler *s, *t, *forgotten;
    o.size = sizeof o;
    o.penalty_last = 20;
    o.repeat_penalty = 1.1f;
    o.seed = 42;
    plain = o;
    o.grammar = g;
    o.token_bytes = bytes_of;
    o.token_ends = ends;
    o.token_user = v;
    assert_int_equal(sotto_sampler_create(N_VOCAB, &o, &s, NULL), SOTTO_OK);
    assert_int_equal(sotto_sampler_create(N_VOCAB, &plain, &t, NULL), SOTTO_OK);
    const st_token_texts texts = {bytes_of, ends, v, N_VOCAB};
    st_grammar_filter *f;
    assert_int_equal(st_grammar_filter_create(g, &texts, NULL, &f, NULL), SOTTO_OK);
    st_grammar_place at = st_grammar_filter_start(f);
    char text[40 * LONGEST];
    size_t n = 0;
    for (int step = 0; step < 30; step++) {
        static float x[N_VOCAB], struck[N_VOCAB];
        const uint32_t *mask;
        int32_t got, want;
        sotto_error err = {0};
        assert_int_equal(st_grammar_filter_mask(f, at, &mask, NULL), SOTTO_OK);
        int n_allowed = 0;
        for (int32_t i = 0; i < N_VOCAB; i++) {
            x[i] = (float)(10.0 * st_rng_uniform(rng)) - (ends(NULL, i) ? 4.0f : 0.0f);
            struck[i] = bit(mask, i) ? x[i] : -INFINITY;
            n_allowed += bit(mask, i);
        }
        const sotto_status status = sotto_sampler_sample(s, x, &got, &err);
        if (n_allowed == 0) {
            assert_int_equal(status, SOTTO_E_ARGUMENT);
            assert_non_null(strstr(err.text, "grammar"));
            break;
        }
        assert_int_equal(status, SOTTO_OK);
        assert_int_equal(sotto_sampler_sample(t, struck, &want, NULL), SOTTO_OK);
        assert_int_equal(got, want);
        assert_true(bit(mask, got));
        for (int32_t i = 0; i < N_VOCAB; i += 97)
            if (!bit(mask, i))
                assert_int_equal(sotto_sampler_accept(s, i, &err), SOTTO_E_ARGUMENT);
        assert_int_equal(sotto_sampler_accept(s, got, NULL), SOTTO_OK);
        assert_int_equal(sotto_sampler_accept(t, got, NULL), SOTTO_OK);
        assert_int_equal(st_grammar_filter_accept(f, &at, got, NULL), SOTTO_OK);
        if (step % 5 == 4) { /* go on with a copy */
            assert_int_equal(sotto_sampler_clone(s, &forgotten, NULL), SOTTO_OK);
            sotto_sampler_free(s);
            s = forgotten;
        }
        if (ends(NULL, got)) {
            bool whole;
            assert_true(fits(g, text, n, &whole) && whole && sotto_sampler_may_end(s));
            break;
        }
        memcpy(text + n, v->bytes[got], v->n[got]);
        n += v->n[got];
        assert_true(fits(g, text, n, NULL));
    }
    sotto_sampler_reset(s);
    st_grammar_filter_free(f);
    sotto_sampler_free(s);
    sotto_sampler_free(t);
}

static void samplers_follow_grammars(void **state)
{
    (void)state;
    st_rng rng;
    st_rng_seed(&rng, 9);
    vocabulary *v = make_vocabulary(&rng);
    for (size_t i = 0; i < sizeof grammars / sizeof *grammars; i++) {
        sotto_grammar *g = parse(grammars[i]);
        for (size_t k = 0; k < sizeof chains / sizeof *chains; k++)
            check_chain(g, &chains[k], v, &rng);
        sotto_grammar_free(g);
    }
    free(v);
}

static void callbacks_are_needed(void **state)
{
    (void)state;
    sotto_grammar *g = parse("root ::= \"a\"");
    sotto_sampler_options o;
    sotto_sampler_options_default(&o);
    o.grammar = g;
    sotto_sampler *s;
    sotto_error err;
    assert_int_equal(sotto_sampler_create(N_VOCAB, &o, &s, &err), SOTTO_E_ARGUMENT);
    assert_non_null(strstr(err.text, "token_bytes"));
    o.token_bytes = bytes_of;
    assert_int_equal(sotto_sampler_create(N_VOCAB, &o, &s, &err), SOTTO_E_ARGUMENT);
    assert_non_null(strstr(err.text, "token_ends"));
    sotto_grammar_free(g);
}

/* Places mean the same in a matcher that was made of another one. */
static void moved_places_go_on(void **state)
{
    (void)state;
    sotto_grammar *g =
        parse("root ::= item (\",\" item)*\nitem ::= [0-9]+ | \"[\" root? \"]\" | \"(\" (root \";\")* \")\"");
    st_matcher *m, *moved;
    assert_int_equal(st_matcher_create(g, &m, NULL), SOTTO_OK);
    st_grammar_place a = st_matcher_start(m), b = a, dead = a;
    assert_int_equal(st_matcher_walk(m, &a, "[[1,(2;[", 8, NULL), SOTTO_OK);
    assert_int_equal(st_matcher_walk(m, &b, "((1;", 4, NULL), SOTTO_OK);
    assert_int_equal(st_matcher_walk(m, &dead, "]", 1, NULL), SOTTO_OK);
    assert_true(a.state >= 0 && b.state >= 0 && dead.state < 0);
    st_grammar_place *const places[] = {&a, &b, &dead};
    assert_int_equal(st_matcher_move(m, places, 3, &moved, NULL), SOTTO_OK);
    st_matcher_free(m);
    assert_true(dead.state < 0);
    assert_int_equal(st_matcher_walk(moved, &a, "3];)]", 5, NULL), SOTTO_OK);
    assert_true(a.state >= 0 && !st_matcher_may_end(moved, a));
    assert_int_equal(st_matcher_walk(moved, &a, "]", 1, NULL), SOTTO_OK);
    assert_true(st_matcher_may_end(moved, a));
    assert_int_equal(st_matcher_walk(moved, &b, ");)", 3, NULL), SOTTO_OK);
    assert_true(st_matcher_may_end(moved, b));
    assert_int_equal(st_matcher_walk(moved, &b, ")", 1, NULL), SOTTO_OK);
    assert_true(b.state < 0);
    st_matcher_free(moved);
    sotto_grammar_free(g);
}

typedef struct sharer {
    st_thread thread;
    const sotto_grammar *g;
    const st_token_texts *texts;
    st_shared_tree *tree;
    uint32_t mask[(N_VOCAB + 31) / 32];
    bool good;
} sharer;

static void share(void *arg)
{
    sharer *s = arg;
    st_grammar_filter *f;
    const uint32_t *mask;
    if (st_grammar_filter_create(s->g, s->texts, s->tree, &f, NULL) != SOTTO_OK)
        return;
    s->good = st_grammar_filter_mask(f, st_grammar_filter_start(f), &mask, NULL) == SOTTO_OK;
    if (s->good)
        memcpy(s->mask, mask, sizeof s->mask);
    st_grammar_filter_free(f);
}

/* Filters in several threads that want the tree at once, the last of which outlives who made it. */
static void filters_share_a_tree(void **state)
{
    (void)state;
    st_rng rng;
    st_rng_seed(&rng, 5);
    vocabulary *v = make_vocabulary(&rng);
    const st_token_texts texts = {bytes_of, ends, v, N_VOCAB};
    sotto_grammar *g = parse(grammars[0]);
    st_grammar_filter *own, *last;
    const uint32_t *want, *mask;
    st_shared_tree *tree;
    sharer sharers[4];
    assert_int_equal(st_shared_tree_create(&tree, NULL), SOTTO_OK);
    for (int i = 0; i < 4; i++)
        sharers[i] = (sharer){.g = g, .texts = &texts, .tree = tree};
    for (int i = 0; i < 4; i++)
        assert_true(st_thread_create(&sharers[i].thread, share, &sharers[i]));
    assert_int_equal(st_grammar_filter_create(g, &texts, tree, &last, NULL), SOTTO_OK);
    for (int i = 0; i < 4; i++)
        st_thread_join(&sharers[i].thread);
    st_shared_tree_release(tree);
    assert_int_equal(st_grammar_filter_create(g, &texts, NULL, &own, NULL), SOTTO_OK);
    assert_int_equal(st_grammar_filter_mask(own, st_grammar_filter_start(own), &want, NULL), SOTTO_OK);
    assert_int_equal(st_grammar_filter_mask(last, st_grammar_filter_start(last), &mask, NULL), SOTTO_OK);
    assert_memory_equal(mask, want, sizeof sharers[0].mask);
    for (int i = 0; i < 4; i++) {
        assert_true(sharers[i].good);
        assert_memory_equal(sharers[i].mask, want, sizeof sharers[i].mask);
    }
    st_grammar_filter_free(own);
    st_grammar_filter_free(last);
    sotto_grammar_free(g);
    free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_say_what_asking_says), cmocka_unit_test(samplers_follow_grammars),
        cmocka_unit_test(callbacks_are_needed),       cmocka_unit_test(moved_places_go_on),
        cmocka_unit_test(filters_share_a_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
