/* grammar_filter.h: a grammar laid over a vocabulary: which tokens may come where.
 * One thread at a time: it remembers what it has worked out. A place in a text is a small value that the caller copies freely;
 * any number of places, those of the beams of a search, share a filter. */
#ifndef SOTTO_SRC_MODELS_COMMON_GRAMMAR_FILTER_H
#define SOTTO_SRC_MODELS_COMMON_GRAMMAR_FILTER_H

#include "models/common/grammar_tokens.h"

typedef struct st_grammar_filter st_grammar_filter;

/* The tree of a vocabulary's texts, made by the first filter that needs it and shared by all, in any threads. Whoever holds one
 * releases it; it goes with the last. */
typedef struct st_shared_tree st_shared_tree;
sotto_status st_shared_tree_create(st_shared_tree **out, sotto_error *err);
void st_shared_tree_release(st_shared_tree *tree); /* NULL is none */

/* The grammar must outlive the filter. tree: of the same texts; NULL: the filter makes its own. */
sotto_status st_grammar_filter_create(const sotto_grammar *grammar, const st_token_texts *texts, st_shared_tree *tree,
                                      st_grammar_filter **out, sotto_error *err);
/* Another one for another thread, which shares what does not change. *place, of the old filter, becomes one of the new. */
sotto_status st_grammar_filter_clone(const st_grammar_filter *f, st_grammar_place *place, st_grammar_filter **out,
                                     sotto_error *err);
void st_grammar_filter_free(st_grammar_filter *f);

st_grammar_place st_grammar_filter_start(const st_grammar_filter *f);
bool st_grammar_filter_may_end(const st_grammar_filter *f, st_grammar_place at);
sotto_status st_grammar_filter_allows(st_grammar_filter *f, st_grammar_place at, int32_t token, bool *allowed,
                                      sotto_error *err);
/* Whether a text may go on with this byte. */
sotto_status st_grammar_filter_goes_on(st_grammar_filter *f, st_grammar_place at, uint8_t byte, bool *goes_on,
                                       sotto_error *err);
/* Bit t % 32 of word t / 32 says whether token t is allowed; valid until the next call. */
sotto_status st_grammar_filter_mask(st_grammar_filter *f, st_grammar_place at, const uint32_t **mask, sotto_error *err);
/* Goes over a token. *at is dead afterwards when the token is not allowed; a token that ends the text leaves it as it is. */
sotto_status st_grammar_filter_accept(st_grammar_filter *f, st_grammar_place *at, int32_t token, sotto_error *err);
/* Forgets what none of these places needs, when much has gathered; the places are changed to what they are then. Places that
 * are not listed are lost. */
sotto_status st_grammar_filter_tidy(st_grammar_filter *f, st_grammar_place *const *places, int n, sotto_error *err);

#endif
