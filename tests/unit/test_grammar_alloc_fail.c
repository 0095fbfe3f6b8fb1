/* Memory that runs out at every place of grammars, JSON schemas, filters over a vocabulary and samplers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "sotto/sampler.h"

enum { N_VOCAB = 300, END = 256 };

static const char SCHEMA[] = "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", \"pattern\": "
                             "\"^[a-z]+$\"}, \"n\": {\"type\": \"integer\","
                             "\"minimum\": 3, \"maximum\": 900}, \"list\": {\"items\": {\"$ref\": \"#\"}, "
                             "\"maxItems\": 2}}, \"required\": [\"name\"],"
                             "\"additionalProperties\": {\"enum\": [1, [2]]}}";
static const char GRAMMAR[] =
    "root ::= \"{\" item{1,5} \"}\" | [^{]{3} root?\nitem ::= \"a\" (item | \"b\"* [c-e\xc3\xa9])? \",\"?\n";

static const char *bytes_of(void *user, int32_t id, size_t *n)
{
    static const char bytes[] = "{a,b}{aa,a,ce,aaaa}\xc3\xa9{\"name\": \"ab\"}";
    (void)user;
    *n = id < 256 ? 1 : 3;
    return bytes + (size_t)id % (sizeof bytes - 4);
}

static bool ends(void *user, int32_t id)
{
    (void)user;
    return id == END;
}

static sotto_status sample_some(const sotto_grammar *g, sotto_sampler_options *o, sotto_error *err)
{
    float x[N_VOCAB];
    sotto_sampler *s, *clone;
    o->grammar = g;
    sotto_status status = sotto_sampler_create(N_VOCAB, o, &s, err);
    if (status != SOTTO_OK)
        return status;
    for (int step = 0; step < 6 && status == SOTTO_OK; step++) {
        int32_t token;
        for (int i = 0; i < N_VOCAB; i++)
            x[i] = (float)((i * 37 + step * 11) % 101) - (i == END ? 50.0f : 0.0f);
        status = sotto_sampler_sample(s, x, &token, err);
        if (status == SOTTO_E_ARGUMENT) { /* no token may come: the end of this walk */
            status = SOTTO_OK;
            break;
        }
        if (status == SOTTO_OK)
            status = sotto_sampler_accept(s, token, err);
        if (status == SOTTO_OK && step == 2)
            status = sotto_sampler_clone(s, &clone, err);
        if (status == SOTTO_OK && step == 2) {
            sotto_sampler_free(s);
            s = clone;
        }
    }
    sotto_sampler_free(s);
    return status;
}

static sotto_status use(sotto_grammar *g, sotto_error *err)
{
    size_t fits;
    bool whole;
    sotto_sampler_options o;
    sotto_sampler_options_default(&o);
    o.token_bytes = bytes_of;
    o.token_ends = ends;
    o.repeat_penalty = 1.1f;
    sotto_status status = sotto_grammar_match(g, "{aab,aac\xc3\xa9}", 10, &fits, &whole, err);
    for (int kind = 0; kind < 3 && status == SOTTO_OK; kind++) {
        o.temperature = kind == 0 ? 0.0f : 1.0f;
        o.top_k = kind == 1 ? 5 : 0;
        status = sample_some(g, &o, err);
    }
    sotto_grammar_free(g);
    return status;
}

static sotto_status use_grammar(void *user)
{
    sotto_error err;
    sotto_grammar *g;
    (void)user;
    const sotto_status status = sotto_grammar_create(GRAMMAR, sizeof GRAMMAR - 1, NULL, &g, &err);
    return status == SOTTO_OK ? use(g, &err) : status;
}

static sotto_status use_schema(void *user)
{
    sotto_error err;
    sotto_grammar *g;
    (void)user;
    const sotto_status status = sotto_grammar_create_json_schema(SCHEMA, sizeof SCHEMA - 1, &g, &err);
    return status == SOTTO_OK ? use(g, &err) : status;
}

static void grammars(void **state)
{
    (void)state;
    assert_true(alloc_fail_sweep(use_grammar, NULL) > 50);
}

static void schemas(void **state)
{
    (void)state;
    assert_true(alloc_fail_sweep(use_schema, NULL) > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(grammars), cmocka_unit_test(schemas)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
