/* json_schema_impl.h: what the parts of the translation of JSON schemas into GBNF share. */
#ifndef SOTTO_SRC_MODELS_COMMON_JSON_SCHEMA_IMPL_H
#define SOTTO_SRC_MODELS_COMMON_JSON_SCHEMA_IMPL_H

#include <jansson.h>
#include <stdbool.h>

#include "sotto/grammar.h"

/* Text that grows; once memory failed it stays failed and every addition is without effect. */
typedef struct st_text {
    char *p;
    int64_t n, capacity;
    bool failed;
} st_text;

void st_text_add(st_text *t, const char *fmt, ...) SOTTO_PRINTF(2, 3);
void st_text_bytes(st_text *t, const char *bytes, size_t n);
/* Inside the quotes of a GBNF text, or inside a class. */
void st_text_gbnf(st_text *t, uint32_t code);
/* A GBNF text, with its quotes, of n bytes of UTF-8. */
void st_text_literal(st_text *t, const char *bytes, size_t n);
void st_text_free(st_text *t);

/* Rules that many schemas need have negative numbers. */
typedef enum st_schema_basic {
    ST_SCHEMA_VALUE = -1,
    ST_SCHEMA_OBJECT = -2,
    ST_SCHEMA_ARRAY = -3,
    ST_SCHEMA_STRING = -4,
    ST_SCHEMA_NUMBER = -5,
    ST_SCHEMA_INTEGER = -6,
    ST_SCHEMA_BOOLEAN = -7,
    ST_SCHEMA_NULL = -8,
    ST_SCHEMA_CHAR = -9,      /* one character of a string, maybe escaped */
    ST_SCHEMA_KEY_CHAR = -10, /* not escaped */
    ST_SCHEMA_SPACE = -11,
    ST_SCHEMA_N_BASICS = 11
} st_schema_basic;

typedef struct st_schema {
    json_t *root;
    sotto_error *err;
    st_text out, path; /* the grammar; where in the schema: "#/properties/a" */
    int depth;
    int32_t n_rules;
    int64_t n_schemas; /* translated so far */
    unsigned basics;   /* bit -b: rule b is needed */
    json_t *rules;     /* of targets of $ref: address to number */
    json_t *made;      /* schemas made by merging */
} st_schema;

/* Fails with the path. */
sotto_status st_schema_fail(st_schema *s, sotto_status code, const char *fmt, ...) SOTTO_PRINTF(3, 4);
sotto_status st_schema_memory(st_schema *s);
/* Goes down by "/key" or "/index"; the path is cut to what this returns on the way back. */
int64_t st_schema_enter(st_schema *s, const char *key);
int64_t st_schema_enter_index(st_schema *s, size_t index);
void st_schema_leave(st_schema *s, int64_t length);

/* The rule of a schema, which is written to s->out. */
sotto_status st_schema_rule(st_schema *s, json_t *schema, int32_t *rule);
/* Makes a rule of an expression, which is freed; its number may be taken before with st_schema_new_rule. */
int32_t st_schema_new_rule(st_schema *s);
void st_schema_put_rule(st_schema *s, int32_t rule, st_text *body);
/* Writes the name of a rule. */
void st_schema_name(st_schema *s, st_text *t, int32_t rule);

/* Expressions for one type. */
sotto_status st_schema_object(st_schema *s, json_t *schema, st_text *t);
sotto_status st_schema_array(st_schema *s, json_t *schema, st_text *t);
sotto_status st_schema_string(st_schema *s, json_t *schema, st_text *t);
sotto_status st_schema_integer(st_schema *s, json_t *schema, st_text *t);
sotto_status st_schema_number(st_schema *s, json_t *schema, st_text *t);
/* Of one value and no other. */
sotto_status st_schema_constant(st_schema *s, json_t *value, st_text *t);
/* What a regular expression allows as the inside of a JSON string. */
sotto_status st_schema_pattern(st_schema *s, const char *pattern, size_t n, st_text *t);

/* A count such as minItems: `otherwise` when the schema has none. */
sotto_status st_schema_count(st_schema *s, json_t *schema, const char *key, int64_t otherwise, int64_t *out);

/* Adds what `from` demands to `into`, an object; $ref and allOf are replaced by what they say. */
sotto_status st_schema_merge(st_schema *s, json_t *into, json_t *from, int depth);
/* The schema that "#/..." names. */
sotto_status st_schema_resolve(st_schema *s, json_t *ref, json_t **out);
/* Whether a key says nothing about which values are allowed. */
bool st_schema_is_annotation(const char *key);

#endif
