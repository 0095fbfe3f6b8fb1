/* gbnf_sets.h: what the parser of grammars keeps once each: names of rules and sets of characters. */
#ifndef SOTTO_SRC_MODELS_COMMON_GBNF_SETS_H
#define SOTTO_SRC_MODELS_COMMON_GBNF_SETS_H

#include "models/common/gbnf.h"

/* The rule of that name, made when it is new; -1 without memory. */
int32_t st_gbnf_rule_index(st_gbnf *g, size_t name, size_t length);
/* Puts ranges in order, joins those that touch, and takes all other characters instead if negated. Returns how many there are;
 * ranges must have room for one more. */
int64_t st_char_ranges_normalise(st_char_range *ranges, int64_t n, bool negated);
/* The set of these normalised ranges; -1 without memory. */
int32_t st_gbnf_set_index(st_gbnf *g, const st_char_range *ranges, int64_t n);

#endif
