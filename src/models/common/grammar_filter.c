#include "models/common/grammar_filter.h"

#include "base/status.h"

sotto_status st_grammar_filter_create(const sotto_grammar *grammar, const st_token_texts *texts,
                                      st_grammar_filter **out, sotto_error *err)
{
    (void)grammar;
    (void)texts;
    *out = NULL;
    return st_fail(err, SOTTO_E_UNSUPPORTED, "grammar: not available in this version");
}

sotto_status st_grammar_filter_clone(const st_grammar_filter *f, st_grammar_place *place, st_grammar_filter **out,
                                     sotto_error *err)
{
    (void)f;
    (void)place;
    *out = NULL;
    return st_fail(err, SOTTO_E_UNSUPPORTED, "grammar: not available in this version");
}

void st_grammar_filter_free(st_grammar_filter *f)
{
    (void)f;
}

st_grammar_place st_grammar_filter_start(const st_grammar_filter *f)
{
    (void)f;
    return (st_grammar_place){0};
}

bool st_grammar_filter_may_end(const st_grammar_filter *f, st_grammar_place at)
{
    (void)f;
    (void)at;
    return true;
}

sotto_status st_grammar_filter_allows(st_grammar_filter *f, st_grammar_place at, int32_t token, bool *allowed,
                                      sotto_error *err)
{
    (void)f;
    (void)at;
    (void)token;
    *allowed = false;
    return st_fail(err, SOTTO_E_UNSUPPORTED, "grammar: not available in this version");
}

sotto_status st_grammar_filter_mask(st_grammar_filter *f, st_grammar_place at, const uint32_t **mask, sotto_error *err)
{
    (void)f;
    (void)at;
    *mask = NULL;
    return st_fail(err, SOTTO_E_UNSUPPORTED, "grammar: not available in this version");
}

sotto_status st_grammar_filter_accept(st_grammar_filter *f, st_grammar_place *at, int32_t token, sotto_error *err)
{
    (void)f;
    (void)at;
    (void)token;
    return st_fail(err, SOTTO_E_UNSUPPORTED, "grammar: not available in this version");
}

sotto_status st_grammar_filter_tidy(st_grammar_filter *f, st_grammar_place *const *places, int n, sotto_error *err)
{
    (void)f;
    (void)places;
    (void)n;
    (void)err;
    return SOTTO_OK;
}
