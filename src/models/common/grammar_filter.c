#include "models/common/grammar_filter.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/thread.h"

enum { N_MASKS = 16, TIDY_SIZE = 1 << 26 };

struct st_shared_tree {
    st_mutex making;
    st_token_tree *tree; /* NULL until the first mask */
    atomic_int users;
};

typedef struct cached_mask {
    st_grammar_place at;
    uint64_t used; /* when last, 0: never */
    uint32_t *bits;
} cached_mask;

struct st_grammar_filter {
    const sotto_grammar *grammar;
    st_token_texts texts;
    st_matcher *matcher;
    st_shared_tree *shared;    /* NULL: none yet */
    const st_token_tree *tree; /* of shared, NULL until needed: mostly a few likely tokens are asked about */
    cached_mask masks[N_MASKS];
    uint64_t clock;
};

sotto_status st_shared_tree_create(st_shared_tree **out, sotto_error *err)
{
    *out = NULL;
    st_shared_tree *made = st_calloc(1, sizeof *made);
    if (!made || !st_mutex_init(&made->making)) {
        st_free(made);
        return st_fail_memory(err, sizeof *made, "a grammar's filter");
    }
    atomic_init(&made->users, 1);
    *out = made;
    return SOTTO_OK;
}

static st_shared_tree *hold(st_shared_tree *tree)
{
    if (tree)
        atomic_fetch_add(&tree->users, 1);
    return tree;
}

void st_shared_tree_release(st_shared_tree *tree)
{
    if (!tree || atomic_fetch_sub(&tree->users, 1) != 1)
        return;
    st_token_tree_free(tree->tree);
    st_mutex_destroy(&tree->making);
    st_free(tree);
}

sotto_status st_grammar_filter_create(const sotto_grammar *grammar, const st_token_texts *texts, st_shared_tree *tree,
                                      st_grammar_filter **out, sotto_error *err)
{
    *out = NULL;
    st_grammar_filter *f = st_calloc(1, sizeof *f);
    if (!f)
        return st_fail_memory(err, sizeof *f, "a grammar's filter");
    f->grammar = grammar;
    f->texts = *texts;
    f->shared = hold(tree);
    const sotto_status status = st_matcher_create(grammar, &f->matcher, err);
    if (status != SOTTO_OK) {
        st_grammar_filter_free(f);
        return status;
    }
    *out = f;
    return SOTTO_OK;
}

sotto_status st_grammar_filter_clone(const st_grammar_filter *f, st_grammar_place *place, st_grammar_filter **out,
                                     sotto_error *err)
{
    *out = NULL;
    st_grammar_filter *made = st_calloc(1, sizeof *made);
    if (!made)
        return st_fail_memory(err, sizeof *made, "a grammar's filter");
    made->grammar = f->grammar;
    made->texts = f->texts;
    st_grammar_place *const places[] = {place};
    const sotto_status status = st_matcher_move(f->matcher, places, 1, &made->matcher, err);
    if (status != SOTTO_OK) {
        st_grammar_filter_free(made);
        return status;
    }
    made->shared = hold(f->shared);
    made->tree = f->tree;
    *out = made;
    return SOTTO_OK;
}

void st_grammar_filter_free(st_grammar_filter *f)
{
    if (!f)
        return;
    for (int i = 0; i < N_MASKS; i++)
        st_free(f->masks[i].bits);
    st_shared_tree_release(f->shared);
    st_matcher_free(f->matcher);
    st_free(f);
}

st_grammar_place st_grammar_filter_start(const st_grammar_filter *f)
{
    return st_matcher_start(f->matcher);
}

bool st_grammar_filter_may_end(const st_grammar_filter *f, st_grammar_place at)
{
    return st_matcher_may_end(f->matcher, at);
}

sotto_status st_grammar_filter_accept(st_grammar_filter *f, st_grammar_place *at, int32_t token, sotto_error *err)
{
    if (at->state < 0)
        return SOTTO_OK;
    if (f->texts.ends(f->texts.user, token)) {
        if (!st_matcher_may_end(f->matcher, *at))
            at->state = -1;
        return SOTTO_OK;
    }
    size_t n = 0;
    const char *bytes = f->texts.bytes(f->texts.user, token, &n);
    if (!bytes || n == 0)
        at->state = -1;
    return st_matcher_walk(f->matcher, at, bytes, n, err);
}

sotto_status st_grammar_filter_allows(st_grammar_filter *f, st_grammar_place at, int32_t token, bool *allowed,
                                      sotto_error *err)
{
    const sotto_status status = st_grammar_filter_accept(f, &at, token, err);
    *allowed = status == SOTTO_OK && at.state >= 0;
    return status;
}

sotto_status st_grammar_filter_goes_on(st_grammar_filter *f, st_grammar_place at, uint8_t byte, bool *goes_on,
                                       sotto_error *err)
{
    const sotto_status status = at.state < 0 ? SOTTO_OK : st_matcher_step(f->matcher, &at, byte, err);
    *goes_on = status == SOTTO_OK && at.state >= 0;
    return status;
}

static sotto_status need_tree(st_grammar_filter *f, sotto_error *err)
{
    if (f->tree)
        return SOTTO_OK;
    if (!f->shared)
        ST_TRY(st_shared_tree_create(&f->shared, err));
    sotto_status status = SOTTO_OK;
    st_mutex_lock(&f->shared->making);
    if (!f->shared->tree)
        status = st_token_tree_create(&f->texts, &f->shared->tree, err);
    f->tree = f->shared->tree;
    st_mutex_unlock(&f->shared->making);
    return status;
}

static bool same_place(st_grammar_place a, st_grammar_place b)
{
    return a.state == b.state && a.partial == b.partial && a.missing == b.missing && a.length == b.length;
}

sotto_status st_grammar_filter_mask(st_grammar_filter *f, st_grammar_place at, const uint32_t **mask, sotto_error *err)
{
    const size_t words = ((size_t)f->texts.n_vocab + 31) / 32;
    *mask = NULL;
    cached_mask *oldest = &f->masks[0];
    f->clock++;
    for (int i = 0; i < N_MASKS; i++) {
        cached_mask *c = &f->masks[i];
        if (c->used > 0 && same_place(c->at, at)) {
            c->used = f->clock;
            *mask = c->bits;
            return SOTTO_OK;
        }
        oldest = c->used < oldest->used ? c : oldest;
    }
    if (!oldest->bits)
        oldest->bits = st_alloc(words, sizeof *oldest->bits);
    if (!oldest->bits)
        return st_fail_memory(err, words * sizeof *oldest->bits, "a grammar's filter");
    oldest->used = 0;
    if (at.state < 0) {
        memset(oldest->bits, 0, words * sizeof *oldest->bits);
    } else {
        ST_TRY(need_tree(f, err));
        ST_TRY(st_token_tree_mask(f->tree, f->matcher, at, oldest->bits, err));
    }
    oldest->at = at;
    oldest->used = f->clock;
    *mask = oldest->bits;
    return SOTTO_OK;
}

sotto_status st_grammar_filter_tidy(st_grammar_filter *f, st_grammar_place *const *places, int n, sotto_error *err)
{
    if (st_matcher_size(f->matcher) < TIDY_SIZE)
        return SOTTO_OK;
    st_matcher *tidied;
    ST_TRY(st_matcher_move(f->matcher, places, n, &tidied, err));
    st_matcher_free(f->matcher);
    f->matcher = tidied;
    for (int i = 0; i < N_MASKS; i++)
        f->masks[i].used = 0;
    return SOTTO_OK;
}
