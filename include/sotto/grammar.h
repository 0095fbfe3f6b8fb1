/* grammar.h: which texts may be written: grammars in GBNF, and JSON schemas made into such.
 *
 * A sotto_grammar never changes after creation: share it between threads. Samplers (sampler.h) and sessions of Whisper take
 * one and let only tokens through whose bytes it allows. The notation is described in docs/grammars.md. Neither a grammar's
 * text nor a schema need be trusted: depth, size and repetitions are bounded. */
#ifndef SOTTO_GRAMMAR_H
#define SOTTO_GRAMMAR_H

#include <stdbool.h>

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sotto_grammar sotto_grammar;

/* A grammar from n bytes of GBNF, which are not needed after the call. root is the rule a text must follow; NULL means
 * "root". Returns SOTTO_E_FORMAT with line, column and what was expected there (also for rules that are not defined or that
 * begin with themselves), SOTTO_E_NOT_FOUND when there is no rule root, SOTTO_E_MEMORY. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_grammar_create(const char *gbnf, size_t n, const char *root,
                                                            sotto_grammar **out, sotto_error *err);
SOTTO_API void sotto_grammar_free(sotto_grammar *grammar);

/* How far n bytes of text follow the grammar: *fits bytes can begin a text of it, and *whole says that all n bytes are one.
 * Either may be NULL. Returns SOTTO_E_MEMORY, SOTTO_E_UNSUPPORTED when the grammar is too ambiguous for this text. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_grammar_match(const sotto_grammar *grammar, const char *text, size_t n,
                                                           size_t *fits, bool *whole, sotto_error *err);

/* GBNF whose texts are the JSON values that a JSON schema (n bytes) describes. *length gets the number of bytes, also when
 * it exceeds cap, in which case the first cap are written; cap 0 counts. No byte 0 is added. Returns SOTTO_E_FORMAT when
 * the schema is no JSON or no schema, SOTTO_E_UNSUPPORTED with the path of a keyword that cannot be followed (see
 * docs/grammars.md), SOTTO_E_MEMORY. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_grammar_from_json_schema(const char *schema, size_t n, char *gbnf,
                                                                      size_t cap, size_t *length, sotto_error *err);
/* The same at once: a grammar from a schema. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_grammar_create_json_schema(const char *schema, size_t n,
                                                                        sotto_grammar **out, sotto_error *err);

#ifdef __cplusplus
}
#endif
#endif
