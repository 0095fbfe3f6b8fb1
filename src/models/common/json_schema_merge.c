/* json_schema_merge.c: references, and several schemas that are to hold together as one. */
#include <string.h>

#include "base/status.h"
#include "models/common/json_schema_impl.h"

enum { MAX_MERGE_DEPTH = 32 };

bool st_schema_is_annotation(const char *key)
{
    static const char *const constraints[] = {"type",
                                              "enum",
                                              "const",
                                              "anyOf",
                                              "oneOf",
                                              "allOf",
                                              "$ref",
                                              "not",
                                              "if",
                                              "then",
                                              "else",
                                              "properties",
                                              "required",
                                              "additionalProperties",
                                              "minProperties",
                                              "maxProperties",
                                              "propertyNames",
                                              "patternProperties",
                                              "items",
                                              "prefixItems",
                                              "additionalItems",
                                              "minItems",
                                              "maxItems",
                                              "uniqueItems",
                                              "contains",
                                              "minContains",
                                              "maxContains",
                                              "pattern",
                                              "minLength",
                                              "maxLength",
                                              "format",
                                              "minimum",
                                              "maximum",
                                              "exclusiveMinimum",
                                              "exclusiveMaximum",
                                              "multipleOf",
                                              "dependentRequired",
                                              "dependentSchemas",
                                              "dependencies",
                                              "$dynamicRef",
                                              "$recursiveRef"};
    for (size_t i = 0; i < sizeof constraints / sizeof *constraints; i++)
        if (strcmp(key, constraints[i]) == 0)
            return false;
    return true;
}

/* ---- references ---- */

/* One step of a JSON pointer, "~1" and "~0" undone; false when it is too long. */
static bool next_step(const char **at, char *step, size_t size)
{
    size_t n = 0;
    for (; **at && **at != '/'; ++*at) {
        char c = **at;
        if (c == '~' && ((*at)[1] == '0' || (*at)[1] == '1'))
            c = *++*at == '0' ? '~' : '/';
        if (n + 1 >= size)
            return false;
        step[n++] = c;
    }
    step[n] = 0;
    return true;
}

sotto_status st_schema_resolve(st_schema *s, json_t *ref, json_t **out)
{
    const char *text = json_string_value(ref);
    *out = NULL;
    if (!text)
        return st_schema_fail(s, SOTTO_E_FORMAT, "$ref: expected a text");
    if (text[0] != '#')
        return st_schema_fail(s, SOTTO_E_UNSUPPORTED,
                              "$ref '%.100s': only references inside the schema (#/...) can be "
                              "followed",
                              text);
    json_t *at = s->root;
    for (const char *p = text + 1; *p && at;) {
        char step[256];
        if (*p++ != '/' || !next_step(&p, step, sizeof step)) {
            at = NULL;
        } else if (json_is_array(at)) {
            size_t index = 0;
            for (const char *d = step; *d; d++)
                index = *d >= '0' && *d <= '9' && index < 100000000 ? 10 * index + (size_t)(*d - '0') : SIZE_MAX / 2;
            at = json_array_get(at, index);
        } else {
            at = json_object_get(at, step);
        }
    }
    if (!at)
        return st_schema_fail(s, SOTTO_E_FORMAT, "$ref '%.100s': there is no such schema", text);
    *out = at;
    return SOTTO_OK;
}

/* ---- two demands with the same key ---- */

static bool contains(json_t *list, json_t *value)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), value))
            return true;
    return false;
}

static json_t *as_list(json_t *value)
{
    return json_is_array(value) ? json_incref(value) : json_pack("[O]", value);
}

static json_t *in_both(json_t *a, json_t *b)
{
    json_t *p = as_list(a), *q = as_list(b), *both = json_array();
    for (size_t i = 0; p && q && both && i < json_array_size(p); i++)
        if (contains(q, json_array_get(p, i)) && json_array_append(both, json_array_get(p, i)) != 0)
            break;
    json_decref(p);
    json_decref(q);
    return both;
}

static json_t *in_either(json_t *a, json_t *b)
{
    json_t *both = json_copy(a);
    for (size_t i = 0; both && i < json_array_size(b); i++)
        if (!contains(both, json_array_get(b, i)) && json_array_append(both, json_array_get(b, i)) != 0)
            break;
    return both;
}

static json_t *together(json_t *a, json_t *b)
{
    return json_pack("{s:[OO]}", "allOf", a, b);
}

static json_t *schemas_of_both(json_t *a, json_t *b)
{
    if (json_is_true(a) || json_is_false(b))
        return json_incref(b);
    if (json_is_true(b) || json_is_false(a))
        return json_incref(a);
    return together(a, b);
}

static json_t *properties_of_both(json_t *a, json_t *b)
{
    json_t *all = json_copy(a), *value;
    const char *key;
    json_object_foreach(b, key, value)
    {
        json_t *other = json_object_get(a, key);
        if (json_object_set_new(all, key, other ? schemas_of_both(other, value) : json_incref(value)) != 0)
            break;
    }
    return all;
}

static json_t *larger(json_t *a, json_t *b)
{
    if (!json_is_number(a) || !json_is_number(b))
        return NULL;
    return json_incref(json_number_value(a) > json_number_value(b) ? a : b);
}

static json_t *smaller(json_t *a, json_t *b)
{
    if (!json_is_number(a) || !json_is_number(b))
        return NULL;
    return json_incref(json_number_value(a) < json_number_value(b) ? a : b);
}

static const struct {
    const char *key;
    json_t *(*combine)(json_t *a, json_t *b);
} COMBINE[] = {
    {"type", in_both},
    {"enum", in_both},
    {"required", in_either},
    {"properties", properties_of_both},
    {"additionalProperties", schemas_of_both},
    {"items", schemas_of_both},
    {"minimum", larger},
    {"exclusiveMinimum", larger},
    {"minLength", larger},
    {"minItems", larger},
    {"minProperties", larger},
    {"maximum", smaller},
    {"exclusiveMaximum", smaller},
    {"maxLength", smaller},
    {"maxItems", smaller},
    {"maxProperties", smaller},
};

static sotto_status combine(st_schema *s, json_t *into, const char *key, json_t *value)
{
    json_t *have = json_object_get(into, key);
    if (!have)
        return json_object_set(into, key, value) == 0 ? SOTTO_OK : st_schema_memory(s);
    if (json_equal(have, value))
        return SOTTO_OK;
    for (size_t i = 0; i < sizeof COMBINE / sizeof *COMBINE; i++)
        if (strcmp(key, COMBINE[i].key) == 0) {
            json_t *made = COMBINE[i].combine(have, value);
            if (!made)
                break;
            return json_object_set_new(into, key, made) == 0 ? SOTTO_OK : st_schema_memory(s);
        }
    return st_schema_fail(s, SOTTO_E_UNSUPPORTED, "two different %.40s that are to hold together", key);
}

sotto_status st_schema_merge(st_schema *s, json_t *into, json_t *from, int depth)
{
    const char *key;
    json_t *value;
    if (json_is_true(from))
        return SOTTO_OK;
    if (json_is_false(from))
        return st_schema_fail(s, SOTTO_E_UNSUPPORTED, "false: no value is allowed");
    if (!json_is_object(from))
        return st_schema_fail(s, SOTTO_E_FORMAT, "expected a schema: an object, true or false");
    if (depth >= MAX_MERGE_DEPTH)
        return st_schema_fail(s, SOTTO_E_UNSUPPORTED, "$ref and allOf lead back here, or deeper than %d",
                              (int)MAX_MERGE_DEPTH);
    json_object_foreach(from, key, value)
    {
        if (strcmp(key, "$ref") == 0) {
            json_t *target;
            ST_TRY(st_schema_resolve(s, value, &target));
            ST_TRY(st_schema_merge(s, into, target, depth + 1));
        } else if (strcmp(key, "allOf") == 0) {
            if (!json_is_array(value))
                return st_schema_fail(s, SOTTO_E_FORMAT, "allOf: expected an array of schemas");
            for (size_t i = 0; i < json_array_size(value); i++) {
                if (++s->n_schemas > 100000)
                    return st_schema_fail(s, SOTTO_E_UNSUPPORTED, "too many schemas that are to hold together");
                ST_TRY(st_schema_merge(s, into, json_array_get(value, i), depth + 1));
            }
        } else if (!st_schema_is_annotation(key)) {
            ST_TRY(combine(s, into, key, value));
        }
    }
    return SOTTO_OK;
}
