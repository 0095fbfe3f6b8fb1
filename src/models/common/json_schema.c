#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "models/common/gbnf.h"
#include "models/common/json_schema_impl.h"

enum { MAX_DEPTH = 64, MAX_SCHEMAS = 100000, MAX_GRAMMAR = ST_GBNF_MAX_TEXT / 2 };

/* ---- errors and paths ---- */

sotto_status st_schema_fail(st_schema *s, sotto_status code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    st_vfail(s->err, code, fmt, args);
    va_end(args);
    return st_fail_context(s->err, code, "schema: %.200s", s->path.p ? s->path.p : "#");
}

sotto_status st_schema_memory(st_schema *s)
{
    return st_fail_memory(s->err, (uint64_t)s->out.n, "the grammar of a schema");
}

int64_t st_schema_enter(st_schema *s, const char *key)
{
    const int64_t length = s->path.n;
    st_text_add(&s->path, "/%.100s", key);
    return length;
}

int64_t st_schema_enter_index(st_schema *s, size_t index)
{
    char text[32];
    snprintf(text, sizeof text, "%zu", index);
    return st_schema_enter(s, text);
}

void st_schema_leave(st_schema *s, int64_t length)
{
    if (s->path.p && !s->path.failed) {
        s->path.n = length;
        s->path.p[length] = 0;
    }
}

/* ---- rules ---- */

static const struct {
    const char *name, *body;
    unsigned needs; /* bits of basics */
} BASICS[ST_SCHEMA_N_BASICS + 1] = {
    [-ST_SCHEMA_VALUE] = {"value", "object | array | string | number | boolean | null",
                          1u << 2 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << 7 | 1u << 8},
    [-ST_SCHEMA_OBJECT] =
        {"object", "\"{\" space (string \":\" space value (\",\" space string \":\" space value)* space)? \"}\"",
         1u << 1 | 1u << 4 | 1u << 11},
    [-ST_SCHEMA_ARRAY] = {"array", "\"[\" space (value (\",\" space value)* space)? \"]\"", 1u << 1 | 1u << 11},
    [-ST_SCHEMA_STRING] = {"string", "\"\\\"\" char* \"\\\"\"", 1u << 9},
    [-ST_SCHEMA_NUMBER] = {"number", "integer (\".\" [0-9]{1,17})? ([eE] [+\\-]? [0-9]{1,3})?", 1u << 6},
    [-ST_SCHEMA_INTEGER] = {"integer", "\"-\"? (\"0\" | [1-9] [0-9]{0,17})", 0},
    [-ST_SCHEMA_BOOLEAN] = {"boolean", "\"true\" | \"false\"", 0},
    [-ST_SCHEMA_NULL] = {"null", "\"null\"", 0},
    [-ST_SCHEMA_CHAR] = {"char",
                         "[^\"\\\\\\x00-\\x1f] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" ([0-9a-ce-fA-CE-F] [0-9a-fA-F]{3} | "
                         "[dD] ([0-7] [0-9a-fA-F]{2} | [89abAB] [0-9a-fA-F]{2} \"\\\\u\" [dD] [c-fC-F] "
                         "[0-9a-fA-F]{2})))",
                         0},
    [-ST_SCHEMA_KEY_CHAR] = {"key-char", "[^\"\\\\\\x00-\\x1f]", 0},
    [-ST_SCHEMA_SPACE] = {"space", "\" \"? | \"\\n\" [ \\t]{0,40}", 0},
};

void st_schema_name(st_schema *s, st_text *t, int32_t rule)
{
    if (rule >= 0) {
        st_text_add(t, "r%" PRId32, rule);
        return;
    }
    s->basics |= 1u << -rule;
    st_text_add(t, "%s", BASICS[-rule].name);
}

int32_t st_schema_new_rule(st_schema *s)
{
    return s->n_rules++;
}

void st_schema_put_rule(st_schema *s, int32_t rule, st_text *body)
{
    st_text_add(&s->out, "r%" PRId32 " ::= ", rule);
    if (body->failed)
        s->out.failed = true;
    else
        st_text_bytes(&s->out, body->p ? body->p : "", (size_t)body->n);
    st_text_add(&s->out, "\n");
    st_text_free(body);
}

static void put_basics(st_schema *s)
{
    for (unsigned before = 0; before != s->basics;) {
        before = s->basics;
        for (int b = 1; b <= ST_SCHEMA_N_BASICS; b++)
            if (s->basics >> b & 1)
                s->basics |= BASICS[b].needs;
    }
    for (int b = 1; b <= ST_SCHEMA_N_BASICS; b++)
        if (s->basics >> b & 1) {
            st_text_add(&s->out, "%s ::= ", BASICS[b].name);
            st_text_bytes(&s->out, BASICS[b].body, strlen(BASICS[b].body));
            st_text_add(&s->out, "\n");
        }
}

/* ---- schemas ---- */

static const struct {
    const char *name;
    int32_t basic;
    sotto_status (*write)(st_schema *s, json_t *schema, st_text *t);
    const char *keys[14]; /* that are about this type only: they tell it where "type" is missing */
} TYPES[] = {
    {"object",
     ST_SCHEMA_OBJECT,
     st_schema_object,
     {"properties", "required", "additionalProperties", "minProperties", "maxProperties", "patternProperties",
      "propertyNames"}},
    {"array",
     ST_SCHEMA_ARRAY,
     st_schema_array,
     {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"}},
    {"string", ST_SCHEMA_STRING, st_schema_string, {"pattern", "minLength", "maxLength", "format"}},
    {"integer", ST_SCHEMA_INTEGER, st_schema_integer, {NULL}},
    {"number",
     ST_SCHEMA_NUMBER,
     st_schema_number,
     {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
    {"boolean", ST_SCHEMA_BOOLEAN, NULL, {NULL}},
    {"null", ST_SCHEMA_NULL, NULL, {NULL}},
};
enum { N_TYPES = sizeof TYPES / sizeof *TYPES };

static int find_type(const char *name)
{
    for (int i = 0; i < N_TYPES; i++)
        if (name && strcmp(name, TYPES[i].name) == 0)
            return i;
    return -1;
}

/* Bits of TYPES; all when the schema does not say. */
static sotto_status types_of(st_schema *s, json_t *schema, unsigned *types)
{
    json_t *type = json_object_get(schema, "type");
    *types = 0;
    for (size_t i = 0; i < (json_is_array(type) ? json_array_size(type) : type ? 1 : 0); i++) {
        const int t = find_type(json_string_value(json_is_array(type) ? json_array_get(type, i) : type));
        if (t < 0)
            return st_schema_fail(s, SOTTO_E_FORMAT,
                                  "type: expected object, array, string, number, integer, boolean or "
                                  "null, or a list of them");
        *types |= 1u << t;
    }
    if (type && !*types)
        return st_schema_fail(s, SOTTO_E_FORMAT, "type: no value has one of these types");
    for (int t = 0; t < N_TYPES && !type; t++)
        for (int k = 0; k < 14 && TYPES[t].keys[k]; k++)
            if (json_object_get(schema, TYPES[t].keys[k]))
                *types |= 1u << t;
    return SOTTO_OK;
}

static bool has_type(json_t *value, unsigned types)
{
    const int t = json_is_object(value)    ? 0
                  : json_is_array(value)   ? 1
                  : json_is_string(value)  ? 2
                  : json_is_integer(value) ? 3
                  : json_is_real(value)    ? 4
                  : json_is_boolean(value) ? 5
                                           : 6;
    return types == 0 || (types >> t & 1) || (t == 3 && (types >> 4 & 1));
}

static sotto_status write_enum(st_schema *s, json_t *schema, st_text *t)
{
    json_t *constant = json_object_get(schema, "const"), *list = json_object_get(schema, "enum");
    unsigned types;
    ST_TRY(types_of(s, schema, &types));
    if (!constant && !json_is_array(list))
        return st_schema_fail(s, SOTTO_E_FORMAT, "enum: expected an array");
    int written = 0;
    for (size_t i = 0; i < (constant ? 1 : json_array_size(list)); i++) {
        json_t *value = constant ? constant : json_array_get(list, i);
        bool wanted = has_type(value, json_object_get(schema, "type") ? types : 0);
        if (constant && json_is_array(list)) {
            bool found = false;
            for (size_t k = 0; k < json_array_size(list); k++)
                found = found || json_equal(constant, json_array_get(list, k));
            wanted = wanted && found;
        }
        if (!wanted)
            continue;
        if (written++ > 0)
            st_text_add(t, " | ");
        ST_TRY(st_schema_constant(s, value, t));
    }
    if (written == 0)
        return st_schema_fail(s, SOTTO_E_UNSUPPORTED, "no value is allowed");
    return SOTTO_OK;
}

static sotto_status write_types(st_schema *s, json_t *schema, st_text *t)
{
    unsigned types;
    ST_TRY(types_of(s, schema, &types));
    if (types == 0) {
        st_schema_name(s, t, ST_SCHEMA_VALUE);
        return SOTTO_OK;
    }
    if (types >> 3 & types >> 4 & 1) /* a number may be an integer */
        types &= ~(1u << 3);
    int written = 0;
    for (int i = 0; i < N_TYPES; i++) {
        if (!(types >> i & 1))
            continue;
        if (written++ > 0)
            st_text_add(t, " | ");
        if (TYPES[i].write)
            ST_TRY(TYPES[i].write(s, schema, t));
        else
            st_schema_name(s, t, TYPES[i].basic);
    }
    return SOTTO_OK;
}

/* Alternatives, each together with what stands beside them. */
static sotto_status write_alternatives(st_schema *s, json_t *schema, const char *key, st_text *t)
{
    json_t *list = json_object_get(schema, key);
    if (!json_is_array(list) || json_array_size(list) == 0)
        return st_schema_fail(s, SOTTO_E_FORMAT, "%s: expected an array of schemas", key);
    json_t *beside = json_object();
    if (!beside || json_array_append_new(s->made, beside) != 0)
        return st_schema_memory(s);
    const char *k;
    json_t *v;
    json_object_foreach(schema, k, v)
    {
        if (strcmp(k, key) != 0 && !st_schema_is_annotation(k) && json_object_set(beside, k, v) != 0)
            return st_schema_memory(s);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *alternative = json_array_get(list, i);
        const int64_t outer = st_schema_enter(s, key);
        st_schema_enter_index(s, i);
        if (json_object_size(beside) > 0) {
            json_t *merged = json_object();
            if (!merged || json_array_append_new(s->made, merged) != 0)
                return st_schema_memory(s);
            ST_TRY(st_schema_merge(s, merged, beside, 0));
            ST_TRY(st_schema_merge(s, merged, alternative, 0));
            alternative = merged;
        }
        int32_t rule;
        ST_TRY(st_schema_rule(s, alternative, &rule));
        st_schema_leave(s, outer);
        st_text_add(t, i > 0 ? " | " : "");
        st_schema_name(s, t, rule);
    }
    return SOTTO_OK;
}

static sotto_status write_body(st_schema *s, json_t *schema, st_text *t)
{
    static const char *const unsupported[] = {"not",
                                              "if",
                                              "then",
                                              "else",
                                              "dependentRequired",
                                              "dependentSchemas",
                                              "dependencies",
                                              "contains",
                                              "minContains",
                                              "maxContains",
                                              "$dynamicRef",
                                              "$recursiveRef",
                                              "multipleOf",
                                              "propertyNames",
                                              "patternProperties"};
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++)
        if (json_object_get(schema, unsupported[i]))
            return st_schema_fail(s, SOTTO_E_UNSUPPORTED, "%s cannot be followed", unsupported[i]);
    if (json_object_get(schema, "$ref") || json_object_get(schema, "allOf")) {
        json_t *merged = json_object();
        if (!merged || json_array_append_new(s->made, merged) != 0)
            return st_schema_memory(s);
        ST_TRY(st_schema_merge(s, merged, schema, 0));
        return write_body(s, merged, t);
    }
    if (json_object_get(schema, "anyOf"))
        return write_alternatives(s, schema, "anyOf", t);
    if (json_object_get(schema, "oneOf"))
        return write_alternatives(s, schema, "oneOf", t);
    if (json_object_get(schema, "const") || json_object_get(schema, "enum"))
        return write_enum(s, schema, t);
    return write_types(s, schema, t);
}

/* A basic rule where a schema is no more than the name of a type; 0 otherwise. */
static int32_t basic_of(json_t *schema)
{
    const char *key;
    json_t *value;
    int32_t basic = ST_SCHEMA_VALUE;
    if (json_is_true(schema))
        return ST_SCHEMA_VALUE;
    json_object_foreach(schema, key, value)
    {
        const int t = strcmp(key, "type") == 0 ? find_type(json_string_value(value)) : -1;
        if (t >= 0)
            basic = TYPES[t].basic;
        else if (!st_schema_is_annotation(key))
            return 0;
    }
    return basic;
}

static bool is_plain_ref(json_t *schema)
{
    const char *key;
    json_t *value;
    json_object_foreach(schema, key, value)
    {
        if (strcmp(key, "$ref") != 0 && !st_schema_is_annotation(key))
            return false;
    }
    return json_object_get(schema, "$ref") != NULL;
}

static sotto_status write_rule(st_schema *s, json_t *schema, int32_t rule)
{
    st_text body = {0};
    const sotto_status status = write_body(s, schema, &body);
    if (status != SOTTO_OK) {
        st_text_free(&body);
        return status;
    }
    st_schema_put_rule(s, rule, &body);
    if (s->out.failed || s->path.failed)
        return st_schema_memory(s);
    if (s->out.n > MAX_GRAMMAR)
        return st_schema_fail(s, SOTTO_E_UNSUPPORTED, "the grammar has more than %d bytes", (int)MAX_GRAMMAR);
    return SOTTO_OK;
}

/* The target of a reference has one rule, wherever it is used: it may contain itself. */
static sotto_status ref_rule(st_schema *s, json_t *schema, int32_t *rule)
{
    json_t *target;
    char address[32];
    ST_TRY(st_schema_resolve(s, json_object_get(schema, "$ref"), &target));
    snprintf(address, sizeof address, "%p", (void *)target);
    json_t *known = json_object_get(s->rules, address);
    if (known) {
        *rule = (int32_t)json_integer_value(known);
        return SOTTO_OK;
    }
    *rule = st_schema_new_rule(s);
    if (json_object_set_new(s->rules, address, json_integer(*rule)) != 0)
        return st_schema_memory(s);
    int32_t inner;
    ST_TRY(st_schema_rule(s, target, &inner));
    st_text body = {0};
    st_schema_name(s, &body, inner);
    st_schema_put_rule(s, *rule, &body);
    return SOTTO_OK;
}

sotto_status st_schema_rule(st_schema *s, json_t *schema, int32_t *rule)
{
    *rule = ST_SCHEMA_VALUE;
    if (json_is_false(schema))
        return st_schema_fail(s, SOTTO_E_UNSUPPORTED, "false: no value is allowed");
    if (!json_is_object(schema) && !json_is_true(schema))
        return st_schema_fail(s, SOTTO_E_FORMAT, "expected a schema: an object, true or false");
    *rule = basic_of(schema);
    if (*rule < 0)
        return SOTTO_OK;
    if (++s->n_schemas > MAX_SCHEMAS)
        return st_schema_fail(s, SOTTO_E_UNSUPPORTED, "more than %d schemas, with those that are merged",
                              (int)MAX_SCHEMAS);
    if (s->depth >= MAX_DEPTH)
        return st_schema_fail(s, SOTTO_E_UNSUPPORTED, "nested deeper than %d", (int)MAX_DEPTH);
    s->depth++;
    sotto_status status;
    if (is_plain_ref(schema)) {
        status = ref_rule(s, schema, rule);
    } else {
        *rule = st_schema_new_rule(s);
        status = write_rule(s, schema, *rule);
    }
    s->depth--;
    return status;
}

/* ---- */

static sotto_status translate(st_schema *s)
{
    int32_t rule;
    st_text_add(&s->path, "#");
    s->rules = json_object();
    s->made = json_array();
    if (!s->rules || !s->made)
        return st_schema_memory(s);
    ST_TRY(st_schema_rule(s, s->root, &rule));
    st_text_add(&s->out, "root ::= ");
    st_schema_name(s, &s->out, rule);
    st_text_add(&s->out, "\n");
    put_basics(s);
    return s->out.failed ? st_schema_memory(s) : SOTTO_OK;
}

static void schema_free(st_schema *s)
{
    st_text_free(&s->out);
    st_text_free(&s->path);
    json_decref(s->rules);
    json_decref(s->made);
    json_decref(s->root);
}

/* The grammar's text stays in s, also when it is wrong. */
static sotto_status translate_bytes(const char *schema, size_t n, st_schema *s, sotto_grammar **grammar,
                                    sotto_error *err)
{
    json_error_t why;
    *grammar = NULL;
    *s = (st_schema){.err = err};
    s->root = json_loadb(n ? schema : "", n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (!s->root)
        return st_fail(err, json_error_code(&why) == json_error_out_of_memory ? SOTTO_E_MEMORY : SOTTO_E_FORMAT,
                       "schema: line %d: %s", why.line, why.text);
    ST_TRY(translate(s));
    /* What remains to be found out is that a schema can begin with itself, or counts too far. */
    const sotto_status status = sotto_grammar_create(s->out.p, (size_t)s->out.n, NULL, grammar, err);
    return status == SOTTO_OK || status == SOTTO_E_MEMORY
               ? status
               : st_fail_context(err, SOTTO_E_UNSUPPORTED, "schema: it has no grammar");
}

sotto_status sotto_grammar_from_json_schema(const char *schema, size_t n, char *gbnf, size_t cap, size_t *length,
                                            sotto_error *err)
{
    st_schema s;
    sotto_grammar *grammar;
    const sotto_status status = translate_bytes(schema, n, &s, &grammar, err);
    *length = status == SOTTO_OK ? (size_t)s.out.n : 0;
    if (status == SOTTO_OK && cap > 0)
        memcpy(gbnf, s.out.p, *length < cap ? *length : cap);
    sotto_grammar_free(grammar);
    schema_free(&s);
    return status;
}

sotto_status sotto_grammar_create_json_schema(const char *schema, size_t n, sotto_grammar **out, sotto_error *err)
{
    st_schema s;
    const sotto_status status = translate_bytes(schema, n, &s, out, err);
    schema_free(&s);
    return status;
}
