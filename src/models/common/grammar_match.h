/* grammar_match.h: following a text through a grammar, byte by byte.
 *
 * A place in a text is the set of positions in the rules where it may stand, each with what follows the rule. Such sets, and the
 * sets of what follows, are kept once each and named by numbers, so a place is a number, equal places are equal numbers, and
 * a step that was taken before is looked up. Callers of a rule at the same place of a text are one set: the number of positions
 * grows at worst with the length of the text, never exponentially.
 * The idea is that of graph-structured stacks (M. Tomita, "An efficient augmented-context-free parsing algorithm", 1987). */
#ifndef SOTTO_SRC_MODELS_COMMON_GRAMMAR_MATCH_H
#define SOTTO_SRC_MODELS_COMMON_GRAMMAR_MATCH_H

#include <stdbool.h>

#include "sotto/grammar.h"

typedef struct st_matcher st_matcher;

typedef struct st_grammar_place {
    int32_t state;    /* negative: dead, the text does not follow the grammar */
    uint32_t partial; /* bits so far of a character that is not complete */
    uint8_t missing;  /* its bytes to come, 0 between characters */
    uint8_t length;   /* its bytes in all */
} st_grammar_place;

/* The grammar must outlive the matcher. One thread at a time. */
sotto_status st_matcher_create(const sotto_grammar *grammar, st_matcher **out, sotto_error *err);
void st_matcher_free(st_matcher *m);
st_grammar_place st_matcher_start(const st_matcher *m);
/* Places stay valid until st_matcher_move() or the end of the matcher. SOTTO_E_UNSUPPORTED: the grammar is too ambiguous. */
sotto_status st_matcher_step(st_matcher *m, st_grammar_place *at, uint8_t byte, sotto_error *err);
sotto_status st_matcher_walk(st_matcher *m, st_grammar_place *at, const char *bytes, size_t n, sotto_error *err);
bool st_matcher_may_end(const st_matcher *m, st_grammar_place at);

/* Bytes of tables. */
size_t st_matcher_size(const st_matcher *m);
/* Makes *to, a new matcher of the same grammar, and the n places of `from` into places of it. */
sotto_status st_matcher_move(const st_matcher *from, st_grammar_place *const *places, int n, st_matcher **to,
                             sotto_error *err);

#endif
