/* JSON schemas as grammars: which texts each takes (tests/unit/data/json_schemas.json, where "narrow" are values that the schema
 * allows and the grammar does not), what is refused, and that whatever a walk through a grammar writes is JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "models/common/grammar_match.h"
#include "models/common/rng.h"
#include "sotto/grammar.h"

static void check_texts(const sotto_grammar *g, const char *schema, const json_t *texts, bool want)
{
    for (size_t i = 0; i < json_array_size(texts); i++) {
        const json_t *text = json_array_get(texts, i);
        size_t fits;
        bool whole;
        assert_int_equal(sotto_grammar_match(g, json_string_value(text), json_string_length(text), &fits, &whole, NULL),
                         SOTTO_OK);
        if (whole != want)
            fail_msg("%s: %s fits to %zu, expected %s", schema, json_string_value(text), fits, want ? "whole" : "less");
    }
}

/* Goes from the start by bytes that are allowed, chosen by chance and by preference such that they close what is open. */
static void walk(st_matcher *m, const char *schema, st_rng *rng)
{
    static char text[5000];
    size_t n = 0;
    st_grammar_place at = st_matcher_start(m);
    for (;;) {
        uint8_t allowed[256];
        int n_allowed = 0, chosen = -1;
        for (int b = 0; b < 256; b++) {
            st_grammar_place next = at;
            assert_int_equal(st_matcher_step(m, &next, (uint8_t)b, NULL), SOTTO_OK);
            if (next.state >= 0)
                allowed[n_allowed++] = (uint8_t)b;
        }
        const bool may_end = st_matcher_may_end(m, at);
        assert_true(may_end || n_allowed > 0);
        if (may_end && (n_allowed == 0 || n > 40 || st_rng_uniform(rng) < 0.3))
            break;
        for (const char *closing = n > 40 && st_rng_uniform(rng) < 0.5 ? "\"]}," : ""; *closing && chosen < 0; closing++)
            if (memchr(allowed, *closing, (size_t)n_allowed))
                chosen = (uint8_t)*closing;
        if (chosen < 0)
            chosen = allowed[(int)(st_rng_uniform(rng) * n_allowed)];
        assert_int_equal(st_matcher_step(m, &at, (uint8_t)chosen, NULL), SOTTO_OK);
        text[n++] = (char)chosen;
        if (n == sizeof text) /* chance rarely meets the ends of some patterns */
            return;
    }
    json_error_t why;
    json_t *value = json_loadb(text, n, JSON_DECODE_ANY, &why);
    /* jansson's numbers are those of the machine: the grammar's go further */
    if (!value && json_error_code(&why) != json_error_numeric_overflow)
        fail_msg("%s: %.*s: %s", schema, (int)n, text, why.text);
    json_decref(value);
}

static void check_case(const json_t *c, st_rng *rng)
{
    char *schema = json_dumps(json_object_get(c, "schema"), JSON_ENCODE_ANY);
    const char *error = json_string_value(json_object_get(c, "error"));
    const size_t n = strlen(schema);
    sotto_error err = {0};
    sotto_grammar *g;
    const sotto_status status = sotto_grammar_create_json_schema(schema, n, &g, &err);
    if (error) {
        const sotto_status want = strcmp(error, "format") == 0 ? SOTTO_E_FORMAT : SOTTO_E_UNSUPPORTED;
        if (status != want || g || !strstr(err.text, json_string_value(json_object_get(c, "text"))))
            fail_msg("%s: %d %s", schema, status, err.text);
        free(schema);
        return;
    }
    if (status != SOTTO_OK)
        fail_msg("%s: %s", schema, err.text);
    check_texts(g, schema, json_object_get(c, "yes"), true);
    check_texts(g, schema, json_object_get(c, "no"), false);
    check_texts(g, schema, json_object_get(c, "narrow"), false);
    st_matcher *m;
    assert_int_equal(st_matcher_create(g, &m, NULL), SOTTO_OK);
    for (int i = 0; i < 10; i++)
        walk(m, schema, rng);
    st_matcher_free(m);
    sotto_grammar_free(g);
    free(schema);
}

static void schemas_and_texts(void **state)
{
    (void)state;
    json_error_t why;
    json_t *cases = json_load_file(SOTTO_SOURCE_DIR "/tests/unit/data/json_schemas.json", 0, &why);
    assert_non_null(cases);
    st_rng rng;
    st_rng_seed(&rng, 4);
    for (size_t i = 0; i < json_array_size(cases); i++)
        check_case(json_array_get(cases, i), &rng);
    json_decref(cases);
}

static void text_goes_where_there_is_room(void **state)
{
    (void)state;
    const char *schema = "{\"type\": \"integer\", \"minimum\": 1}";
    size_t n, again;
    assert_int_equal(sotto_grammar_from_json_schema(schema, strlen(schema), NULL, 0, &n, NULL), SOTTO_OK);
    assert_true(n > 10);
    char *gbnf = malloc(n + 1), few[5] = "....";
    assert_non_null(gbnf);
    gbnf[n] = '!';
    assert_int_equal(sotto_grammar_from_json_schema(schema, strlen(schema), gbnf, n, &again, NULL), SOTTO_OK);
    assert_true(again == n && gbnf[n] == '!');
    assert_int_equal(sotto_grammar_from_json_schema(schema, strlen(schema), few, 3, &again, NULL), SOTTO_OK);
    assert_true(again == n && few[3] == '.' && memcmp(few, gbnf, 3) == 0);
    sotto_grammar *g;
    sotto_error err;
    assert_int_equal(sotto_grammar_create(gbnf, n, NULL, &g, &err), SOTTO_OK);
    sotto_grammar_free(g);
    free(gbnf);
}

static void refuses(const char *schema, sotto_status want, const char *text)
{
    sotto_grammar *g;
    sotto_error err = {0};
    size_t n = 1;
    assert_int_equal(sotto_grammar_create_json_schema(schema, strlen(schema), &g, &err), want);
    assert_null(g);
    if (!strstr(err.text, text))
        fail_msg("%s: %s", schema, err.text);
    assert_int_equal(sotto_grammar_from_json_schema(schema, strlen(schema), NULL, 0, &n, &err), want);
    assert_int_equal(n, 0);
}

static char *nested(const char *open, size_t n, const char *middle, const char *close)
{
    const size_t a = strlen(open), b = strlen(close), m = strlen(middle);
    char *text = malloc((a + b) * n + m + 1);
    if (!text)
        abort();
    for (size_t i = 0; i < n; i++) {
        memcpy(text + i * a, open, a);
        memcpy(text + n * a + m + i * b, close, b);
    }
    memcpy(text + n * a, middle, m);
    text[(a + b) * n + m] = 0;
    return text;
}

static void hostile_schemas(void **state)
{
    (void)state;
    refuses("", SOTTO_E_FORMAT, "line 1");
    refuses("{", SOTTO_E_FORMAT, "line 1");
    refuses("{\"type\": \"string\"} x", SOTTO_E_FORMAT, "line 1");
    refuses("{\"a\": 1, \"a\": 2}", SOTTO_E_FORMAT, "duplicate");
    refuses("\"\xff\"", SOTTO_E_FORMAT, "0xff");
    char *deep = nested("{\"items\": ", 200, "{}", "}");
    refuses(deep, SOTTO_E_UNSUPPORTED, "nested deeper than 64");
    free(deep);
    deep = nested("[", 100, "", "]");
    char *constant = nested("{\"const\": ", 1, deep, "}");
    refuses(constant, SOTTO_E_UNSUPPORTED, "nested deeper than 64");
    free(deep);
    free(constant);
    deep = nested("[", 100000, "", "]");
    refuses(deep, SOTTO_E_FORMAT, "line 1");
    free(deep);
    deep = nested("(", 100, "a", ")");
    constant = nested("{\"pattern\": \"", 1, deep, "\"}");
    refuses(constant, SOTTO_E_UNSUPPORTED, "nested too deep");
    free(deep);
    free(constant);
    /* doubles at every step */
    char *text = malloc(100000), *at = text;
    assert_non_null(text);
    at += sprintf(at, "{\"$ref\": \"#/$defs/a0\", \"$defs\": {");
    for (int i = 0; i < 30; i++)
        at += sprintf(at, "\"a%d\": {\"allOf\": [{\"$ref\": \"#/$defs/a%d\"}, {\"$ref\": \"#/$defs/a%d\"}]},", i, i + 1,
                      i + 1);
    sprintf(at, "\"a30\": {\"type\": \"integer\"}}}");
    refuses(text, SOTTO_E_UNSUPPORTED, "deeper than 32");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schemas_and_texts),
        cmocka_unit_test(text_goes_where_there_is_room),
        cmocka_unit_test(hostile_schemas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
