/* grammar_tokens.h: the texts of a vocabulary as a tree of bytes, gone over once to know which tokens a grammar allows. */
#ifndef SOTTO_SRC_MODELS_COMMON_GRAMMAR_TOKENS_H
#define SOTTO_SRC_MODELS_COMMON_GRAMMAR_TOKENS_H

#include "models/common/grammar_match.h"

/* Callbacks as in sampler.h. */
typedef struct st_token_texts {
    const char *(*bytes)(void *user, int32_t id, size_t *n);
    bool (*ends)(void *user, int32_t id);
    void *user;
    int32_t n_vocab;
} st_token_texts;

/* Never changes after creation. Nodes are in the order of a walk: a node comes before what is below it. */
typedef struct st_token_tree {
    int32_t n_vocab;
    int32_t *tokens; /* in the order of their bytes */
    int64_t n_nodes;
    uint8_t *byte;  /* [n_nodes] */
    int32_t *depth; /* [n_nodes], from 1 */
    int64_t deepest;
    int32_t *skip;   /* [n_nodes], the next node that is not below this one */
    int32_t *first;  /* [n_nodes + 1], tokens[first[i]] .. tokens[first[i + 1] - 1] end at node i */
    int32_t *ending; /* tokens that end the text */
    int32_t n_ending;
} st_token_tree;

sotto_status st_token_tree_create(const st_token_texts *texts, st_token_tree **out, sotto_error *err);
void st_token_tree_free(st_token_tree *t);
/* Sets bit t % 32 of mask[t / 32] for each token t that may come at a place that is not dead; the other bits become 0. */
sotto_status st_token_tree_mask(const st_token_tree *t, st_matcher *m, st_grammar_place at, uint32_t *mask,
                                sotto_error *err);

#endif
