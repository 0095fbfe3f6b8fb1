/* json_schema_object.c: objects, arrays and constants. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/utf8.h"
#include "models/common/gbnf.h"
#include "models/common/json_schema_impl.h"

sotto_status st_schema_count(st_schema *s, json_t *schema, const char *key, int64_t otherwise, int64_t *out)
{
    json_t *v = json_object_get(schema, key);
    *out = otherwise;
    if (!v)
        return SOTTO_OK;
    const double d = json_number_value(v);
    if (!json_is_number(v) || !(d >= 0) || d != (double)(int64_t)(d < 1e15 ? d : 1e15))
        return st_schema_fail(s, SOTTO_E_FORMAT, "%s: expected a whole number of at least 0", key);
    if (d > ST_GBNF_MAX_REPEAT)
        return st_schema_fail(s, SOTTO_E_UNSUPPORTED, "%s: %.0f, expected at most %d", key, d, (int)ST_GBNF_MAX_REPEAT);
    *out = (int64_t)d;
    return SOTTO_OK;
}

/* ---- constants ---- */

static sotto_status literal_of(st_schema *s, json_t *value, st_text *t)
{
    char number[40];
    if (json_is_real(value)) {
        const double d = json_real_value(value);
        snprintf(number, sizeof number, "%.15g", d);
        if (strtod(number, NULL) != d)
            snprintf(number, sizeof number, "%.17g", d);
        st_text_literal(t, number, strlen(number));
        return SOTTO_OK;
    }
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    if (!text)
        return st_schema_memory(s);
    st_text_literal(t, text, strlen(text));
    free(text);
    return SOTTO_OK;
}

static void literal_of_key(st_text *t, const char *key)
{
    json_t *text = json_string(key);
    char *dump = text ? json_dumps(text, JSON_ENCODE_ANY) : NULL;
    if (dump)
        st_text_literal(t, dump, strlen(dump));
    else
        t->failed = true;
    free(dump);
    json_decref(text);
}

static void space(st_schema *s, st_text *t)
{
    st_text_add(t, " ");
    st_schema_name(s, t, ST_SCHEMA_SPACE);
    st_text_add(t, " ");
}

sotto_status st_schema_constant(st_schema *s, json_t *value, st_text *t)
{
    if (!json_is_object(value) && !json_is_array(value))
        return literal_of(s, value, t);
    if (s->depth >= 64)
        return st_schema_fail(s, SOTTO_E_UNSUPPORTED, "nested deeper than 64");
    s->depth++;
    const char *key;
    json_t *member;
    bool first = true;
    st_text_add(t, json_is_object(value) ? "\"{\"" : "\"[\"");
    space(s, t);
    json_object_foreach(value, key, member)
    {
        if (!first) {
            st_text_add(t, " \",\"");
            space(s, t);
        }
        first = false;
        literal_of_key(t, key);
        st_text_add(t, " \":\"");
        space(s, t);
        ST_TRY(st_schema_constant(s, member, t));
    }
    for (size_t i = 0; json_is_array(value) && i < json_array_size(value); i++) {
        if (i > 0) {
            st_text_add(t, " \",\"");
            space(s, t);
        }
        ST_TRY(st_schema_constant(s, json_array_get(value, i), t));
    }
    if (json_object_size(value) + json_array_size(value) > 0)
        space(s, t);
    st_text_add(t, json_is_object(value) ? " \"}\"" : " \"]\"");
    s->depth--;
    return SOTTO_OK;
}

/* ---- keys that are not among the named ones ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* What may follow the first `shared` bytes of keys[lo] .. keys[hi - 1], sorted and all beginning alike, so that none of them
 * comes about: the end, unless one ends here; another character; or the next one of theirs and so on. */
static int32_t other_key_rest(st_schema *s, const char **keys, size_t lo, size_t hi, size_t shared)
{
    st_text t = {0};
    size_t i = lo;
    const int32_t rule = st_schema_new_rule(s);
    st_text_add(&t, keys[lo][shared] == 0 ? "" : "\"\" | ");
    while (i < hi && keys[i][shared] == 0)
        i++;
    st_text_add(&t, "[^\\\"\\\\\\x00-\\x1f");
    for (size_t k = i; k < hi; k++) {
        uint32_t code;
        if (st_utf8_next((const uint8_t *)keys[k] + shared, strlen(keys[k] + shared), &code) > 0)
            st_text_gbnf(&t, code);
    }
    st_text_add(&t, "] ");
    st_schema_name(s, &t, ST_SCHEMA_KEY_CHAR);
    st_text_add(&t, "*");
    while (i < hi) {
        uint32_t code;
        const int length = st_utf8_next((const uint8_t *)keys[i] + shared, strlen(keys[i] + shared), &code);
        if (length <= 0)
            break;
        size_t end = i + 1;
        while (end < hi && strncmp(keys[end] + shared, keys[i] + shared, (size_t)length) == 0)
            end++;
        if (code >= 0x20 && code != '"' && code != '\\') { /* others cannot come without a backslash */
            st_text_add(&t, " | ");
            st_text_literal(&t, keys[i] + shared, (size_t)length);
            st_text_add(&t, " ");
            st_schema_name(s, &t, other_key_rest(s, keys, i, end, shared + (size_t)length));
        }
        i = end;
    }
    st_schema_put_rule(s, rule, &t);
    return rule;
}

/* A whole key with its quotes that is none of those of `properties`. */
static sotto_status other_key(st_schema *s, json_t *properties, st_text *t)
{
    const size_t n = json_object_size(properties);
    if (n == 0) {
        st_schema_name(s, t, ST_SCHEMA_STRING);
        return SOTTO_OK;
    }
    const char **keys = st_alloc(n, sizeof *keys), *key;
    json_t *value;
    size_t i = 0;
    if (!keys)
        return st_schema_memory(s);
    json_object_foreach(properties, key, value)
    {
        keys[i++] = key;
        if (strlen(key) > 1000) { /* as deep as this is the recursion */
            st_free(keys);
            return st_schema_fail(s, SOTTO_E_UNSUPPORTED, "additionalProperties beside a name of more than 1000 bytes");
        }
    }
    qsort(keys, n, sizeof *keys, by_text);
    st_text_add(t, "\"\\\"\" ");
    st_schema_name(s, t, other_key_rest(s, keys, 0, n, 0));
    st_text_add(t, " \"\\\"\"");
    st_free(keys);
    return SOTTO_OK;
}

/* ---- objects ---- */

static void member(st_schema *s, st_text *t, const char *key, int32_t value)
{
    literal_of_key(t, key);
    st_text_add(t, " \":\"");
    space(s, t);
    st_schema_name(s, t, value);
}

static void comma(st_schema *s, st_text *t)
{
    st_text_add(t, "\",\"");
    space(s, t);
}

typedef struct object {
    json_t *properties; /* in this order: all that are named */
    json_t *required;
    bool open; /* others may come, with values of rule `rest` and keys of rule `key` */
    int32_t rest, key;
    int64_t min, max; /* of the others; max -1: any number */
} object;

static bool is_required(const object *o, const char *key)
{
    for (size_t i = 0; i < json_array_size(o->required); i++) {
        const char *name = json_string_value(json_array_get(o->required, i));
        if (name && strcmp(name, key) == 0)
            return true;
    }
    return false;
}

/* Names that are required and not described are members like the others. */
static sotto_status read_object(st_schema *s, json_t *schema, object *o)
{
    json_t *additional = json_object_get(schema, "additionalProperties"),
           *properties = json_object_get(schema, "properties");
    *o = (object){.required = json_object_get(schema, "required"), .properties = json_object()};
    if (!o->properties || json_array_append_new(s->made, o->properties) != 0)
        return st_schema_memory(s);
    if (properties && !json_is_object(properties))
        return st_schema_fail(s, SOTTO_E_FORMAT, "properties: expected an object");
    if (o->required && !json_is_array(o->required))
        return st_schema_fail(s, SOTTO_E_FORMAT, "required: expected an array of names");
    if (properties && json_object_update(o->properties, properties) != 0)
        return st_schema_memory(s);
    o->open = additional ? !json_is_false(additional) : json_object_size(properties) == 0;
    for (size_t i = 0; i < json_array_size(o->required); i++) {
        const char *name = json_string_value(json_array_get(o->required, i));
        if (!name)
            return st_schema_fail(s, SOTTO_E_FORMAT, "required: expected an array of names");
        if (json_object_get(o->properties, name))
            continue;
        if (additional && json_is_false(additional))
            return st_schema_fail(s, SOTTO_E_UNSUPPORTED,
                                  "required '%.100s' is not among the properties, and no others are "
                                  "allowed",
                                  name);
        if (json_object_set_new(o->properties, name, additional ? json_incref(additional) : json_true()) != 0)
            return st_schema_memory(s);
    }
    ST_TRY(st_schema_count(s, schema, "minProperties", 0, &o->min));
    ST_TRY(st_schema_count(s, schema, "maxProperties", -1, &o->max));
    if ((o->min > (int64_t)json_array_size(o->required) || o->max >= 0) && json_object_size(o->properties) > 0)
        return st_schema_fail(s, SOTTO_E_UNSUPPORTED, "minProperties or maxProperties beside named properties");
    if (json_object_size(o->properties) > 0)
        o->min = 0;
    if (o->max >= 0 && o->max < o->min)
        return st_schema_fail(s, SOTTO_E_UNSUPPORTED, "maxProperties is less than minProperties: no value is allowed");
    o->open = o->open && o->max != 0;
    if (!o->open)
        return SOTTO_OK;
    const int64_t outer = st_schema_enter(s, "additionalProperties");
    ST_TRY(st_schema_rule(s, additional && !json_is_true(additional) ? additional : json_true(), &o->rest));
    st_schema_leave(s, outer);
    st_text key = {0};
    const sotto_status status = other_key(s, o->properties, &key);
    if (status != SOTTO_OK) {
        st_text_free(&key);
        return status;
    }
    o->key = st_schema_new_rule(s);
    st_schema_put_rule(s, o->key, &key);
    return SOTTO_OK;
}

static void other_member(st_schema *s, const object *o, st_text *t)
{
    st_schema_name(s, t, o->key);
    st_text_add(t, " \":\"");
    space(s, t);
    st_schema_name(s, t, o->rest);
}

/* The others, n of which are there already: 0 or 1. */
static void others(st_schema *s, const object *o, int n, st_text *t)
{
    if (!o->open) {
        st_text_add(t, "\"\"");
        return;
    }
    if (n == 0) {
        st_text_add(t, "(");
        other_member(s, o, t);
        st_text_add(t, " ");
    }
    st_text_add(t, "(");
    comma(s, t);
    other_member(s, o, t);
    st_text_add(t, ")");
    const int64_t min = n == 0 && o->min > 0 ? o->min - 1 : 0;
    if (o->max >= 0)
        st_text_add(t, "{%" PRId64 ",%" PRId64 "}", min, n == 0 ? o->max - 1 : o->max);
    else
        st_text_add(t, "{%" PRId64 ",}", min);
    if (n == 0)
        st_text_add(t, o->min > 0 ? ")" : ")?");
}

/* Rules from the last property to the first: what comes when something is there already, and when nothing is. Properties that
 * need not be are left out in any way, and commas stand between those that are. */
static sotto_status object_rules(st_schema *s, const object *o, int32_t *start)
{
    const size_t n = json_object_size(o->properties);
    const char **keys = st_alloc(n, sizeof *keys);
    int32_t *values = st_alloc(n, sizeof *values);
    sotto_status status = keys && values ? SOTTO_OK : st_schema_memory(s);
    const char *key;
    json_t *value;
    size_t i = 0;
    const int64_t outer = st_schema_enter(s, "properties");
    if (status == SOTTO_OK)
        json_object_foreach(o->properties, key, value)
        {
            const int64_t here = st_schema_enter(s, key);
            keys[i] = key;
            if (status == SOTTO_OK)
                status = st_schema_rule(s, value, &values[i++]);
            if (status == SOTTO_OK)
                st_schema_leave(s, here);
        }
    if (status == SOTTO_OK) {
        st_schema_leave(s, outer);
        int32_t tail = st_schema_new_rule(s), head = st_schema_new_rule(s);
        st_text t = {0};
        others(s, o, 1, &t);
        st_schema_put_rule(s, tail, &t);
        others(s, o, 0, &t);
        st_schema_put_rule(s, head, &t);
        while (i-- > 0) {
            const bool required = is_required(o, keys[i]);
            const int32_t next_tail = st_schema_new_rule(s), next_head = st_schema_new_rule(s);
            st_text_add(&t, required ? "" : "(");
            comma(s, &t);
            member(s, &t, keys[i], values[i]);
            st_text_add(&t, required ? " " : ")? ");
            st_schema_name(s, &t, tail);
            st_schema_put_rule(s, next_tail, &t);
            member(s, &t, keys[i], values[i]);
            st_text_add(&t, " ");
            st_schema_name(s, &t, tail);
            st_text_add(&t, required ? "" : " | ");
            if (!required)
                st_schema_name(s, &t, head);
            st_schema_put_rule(s, next_head, &t);
            tail = next_tail;
            head = next_head;
        }
        *start = head;
    }
    st_free(keys);
    st_free(values);
    return status;
}

sotto_status st_schema_object(st_schema *s, json_t *schema, st_text *t)
{
    object o;
    int32_t start;
    ST_TRY(read_object(s, schema, &o));
    ST_TRY(object_rules(s, &o, &start));
    st_text_add(t, "\"{\"");
    space(s, t);
    st_schema_name(s, t, start);
    space(s, t);
    st_text_add(t, "\"}\"");
    return SOTTO_OK;
}

/* ---- arrays ---- */

typedef struct array {
    json_t *first; /* schemas of the first elements */
    json_t *items; /* of the others, NULL or true: any */
    int64_t min, max;
} array;

static sotto_status read_array(st_schema *s, json_t *schema, array *a)
{
    json_t *items = json_object_get(schema, "items");
    *a = (array){.first = json_object_get(schema, "prefixItems"), .items = items};
    if (json_is_array(items) && !a->first) { /* as it was before 2020 */
        a->first = items;
        a->items = json_object_get(schema, "additionalItems");
    }
    if (a->first && !json_is_array(a->first))
        return st_schema_fail(s, SOTTO_E_FORMAT, "prefixItems: expected an array of schemas");
    if (json_is_true(json_object_get(schema, "uniqueItems")))
        return st_schema_fail(s, SOTTO_E_UNSUPPORTED, "uniqueItems cannot be followed");
    ST_TRY(st_schema_count(s, schema, "minItems", 0, &a->min));
    ST_TRY(st_schema_count(s, schema, "maxItems", -1, &a->max));
    const int64_t n = (int64_t)json_array_size(a->first);
    if (json_is_false(a->items) && (a->max < 0 || a->max > n))
        a->max = n;
    if (a->max >= 0 && a->max < a->min)
        return st_schema_fail(s, SOTTO_E_UNSUPPORTED,
                              "at least %" PRId64 " and at most %" PRId64 " elements: no value is "
                              "allowed",
                              a->min, a->max);
    return SOTTO_OK;
}

/* From the end: element i, with a comma unless it is the first, and what follows it; all of it may be missing from the least
 * number on. *tail is freed by the caller after a failure. */
static sotto_status array_rules(st_schema *s, const array *a, st_text *tail, int32_t *start)
{
    const int64_t n_first = (int64_t)json_array_size(a->first);
    int32_t rule;
    if (a->max < 0 || a->max > n_first) {
        const int64_t outer = st_schema_enter(s, "items");
        ST_TRY(st_schema_rule(s, a->items ? a->items : json_true(), &rule));
        st_schema_leave(s, outer);
        const int64_t least = a->min > n_first ? a->min - n_first : 0, one = n_first == 0;
        if (one) {
            st_text_add(tail, least > 0 ? "" : "(");
            st_schema_name(s, tail, rule);
            st_text_add(tail, " ");
        }
        st_text_add(tail, "(");
        comma(s, tail);
        st_schema_name(s, tail, rule);
        st_text_add(tail, "){%" PRId64 ",", least > one ? least - one : 0);
        if (a->max >= 0)
            st_text_add(tail, "%" PRId64, a->max - n_first - one);
        st_text_add(tail, one && least == 0 ? "})?" : "}");
    } else {
        st_text_add(tail, "\"\"");
    }
    for (int64_t i = a->max >= 0 && a->max < n_first ? a->max : n_first; i-- > 0;) {
        const int32_t rest = st_schema_new_rule(s);
        st_schema_put_rule(s, rest, tail);
        const int64_t outer = st_schema_enter(s, "prefixItems");
        st_schema_enter_index(s, (size_t)i);
        ST_TRY(st_schema_rule(s, json_array_get(a->first, (size_t)i), &rule));
        st_schema_leave(s, outer);
        st_text_add(tail, i < a->min ? "" : "(");
        if (i > 0)
            comma(s, tail);
        st_schema_name(s, tail, rule);
        st_text_add(tail, " ");
        st_schema_name(s, tail, rest);
        st_text_add(tail, i < a->min ? "" : ")?");
    }
    *start = st_schema_new_rule(s);
    st_schema_put_rule(s, *start, tail);
    return SOTTO_OK;
}

sotto_status st_schema_array(st_schema *s, json_t *schema, st_text *t)
{
    array a;
    int32_t start;
    st_text tail = {0};
    ST_TRY(read_array(s, schema, &a));
    const sotto_status status = array_rules(s, &a, &tail, &start);
    st_text_free(&tail);
    ST_TRY(status);
    st_text_add(t, "\"[\"");
    space(s, t);
    st_schema_name(s, t, start);
    space(s, t);
    st_text_add(t, "\"]\"");
    return SOTTO_OK;
}
