/* json_schema_value.c: strings and numbers. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "models/common/json_schema_impl.h"

/* ---- strings ---- */

#define DATE "[0-9]{4} \"-\" (\"0\" [1-9] | \"1\" [0-2]) \"-\" (\"0\" [1-9] | [12] [0-9] | \"3\" [01])"
#define TIME                                                                                                          \
    "([01] [0-9] | \"2\" [0-3]) \":\" [0-5] [0-9] \":\" [0-5] [0-9] (\".\" [0-9]{1,9})? (\"Z\" | [+\\-] ([01] [0-9] " \
    "| "                                                                                                              \
    "\"2\" [0-3]) \":\" [0-5] [0-9])"

static const struct {
    const char *name, *body;
} FORMATS[] = {
    {"date", DATE},
    {"time", TIME},
    {"date-time", DATE " \"T\" " TIME},
    {"uuid", "[0-9a-fA-F]{8} (\"-\" [0-9a-fA-F]{4}){3} \"-\" [0-9a-fA-F]{12}"},
};

sotto_status st_schema_string(st_schema *s, json_t *schema, st_text *t)
{
    json_t *pattern = json_object_get(schema, "pattern");
    const char *format = json_string_value(json_object_get(schema, "format")), *body = NULL;
    int64_t min, max;
    ST_TRY(st_schema_count(s, schema, "minLength", 0, &min));
    ST_TRY(st_schema_count(s, schema, "maxLength", -1, &max));
    for (size_t i = 0; format && i < sizeof FORMATS / sizeof *FORMATS; i++)
        body = strcmp(format, FORMATS[i].name) == 0 ? FORMATS[i].body : body;
    const bool counted = min > 0 || max >= 0;
    if ((pattern != NULL) + (body != NULL) + counted > 1)
        return st_schema_fail(s, SOTTO_E_UNSUPPORTED, "more than one of pattern, format and a length");
    if (max >= 0 && max < min)
        return st_schema_fail(s, SOTTO_E_UNSUPPORTED, "maxLength is less than minLength: no value is allowed");
    if (pattern && !json_is_string(pattern))
        return st_schema_fail(s, SOTTO_E_FORMAT, "pattern: expected a text");
    if (!pattern && !body && !counted) {
        st_schema_name(s, t, ST_SCHEMA_STRING);
        return SOTTO_OK;
    }
    st_text_add(t, "\"\\\"\" (");
    if (pattern) {
        ST_TRY(st_schema_pattern(s, json_string_value(pattern), json_string_length(pattern), t));
    } else if (body) {
        st_text_bytes(t, body, strlen(body));
    } else {
        st_schema_name(s, t, ST_SCHEMA_CHAR);
        st_text_add(t, "{%" PRId64 ",", min);
        if (max >= 0)
            st_text_add(t, "%" PRId64, max);
        st_text_add(t, "}");
    }
    st_text_add(t, ") \"\\\"\"");
    return SOTTO_OK;
}

/* ---- whole numbers from lo to hi ---- */

enum { MAX_DIGITS = 18 };
#define MOST INT64_C(999999999999999999)

static void repeat_digit(st_text *t, int n)
{
    if (n > 0)
        st_text_add(t, n > 1 ? " [0-9]{%d}" : " [0-9]", n);
}

static bool all_are(const int *digits, int n, int digit)
{
    for (int i = 0; i < n; i++)
        if (digits[i] != digit)
            return false;
    return true;
}

/* n digits from lo to hi, which has the same number of them. Recursion as deep as there are digits. */
static void digits_between(st_text *t, const int *lo, const int *hi, int n)
{
    static const int zeros[MAX_DIGITS] = {0},
                     nines[MAX_DIGITS] = {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9};
    if (n == 0)
        return;
    if (all_are(lo, n, 0) && all_are(hi, n, 9)) {
        repeat_digit(t, n);
        return;
    }
    if (lo[0] == hi[0]) {
        st_text_add(t, " \"%d\"", lo[0]);
        digits_between(t, lo + 1, hi + 1, n - 1);
        return;
    }
    int from = lo[0], to = hi[0];
    bool first = true;
    st_text_add(t, " (");
    if (!all_are(lo + 1, n - 1, 0)) {
        st_text_add(t, "\"%d\"", from++);
        digits_between(t, lo + 1, nines, n - 1);
        first = false;
    }
    const bool cut = !all_are(hi + 1, n - 1, 9);
    to -= cut;
    if (from <= to) {
        st_text_add(t, from < to ? "%s[%d-%d]" : "%s[%d]", first ? "" : " | ", from, to);
        repeat_digit(t, n - 1);
        first = false;
    }
    if (cut) {
        st_text_add(t, "%s\"%d\"", first ? "" : " | ", hi[0]);
        digits_between(t, zeros, hi + 1, n - 1);
    }
    st_text_add(t, ")");
}

static int split_digits(int64_t v, int *digits)
{
    int n = 0, reversed[MAX_DIGITS + 1];
    do {
        reversed[n++] = (int)(v % 10);
        v /= 10;
    } while (v > 0);
    for (int i = 0; i < n; i++)
        digits[i] = reversed[n - 1 - i];
    return n;
}

/* 0 <= lo <= hi. */
static void whole_between(st_text *t, int64_t lo, int64_t hi)
{
    int64_t power = 10;
    bool first = true;
    for (int n = 1; n <= MAX_DIGITS; n++, power = power < MOST ? power * 10 : power) {
        const int64_t least = n == 1 ? 0 : power / 10, most = n == MAX_DIGITS ? MOST : power - 1;
        const int64_t from = lo > least ? lo : least, to = hi < most ? hi : most;
        int a[MAX_DIGITS + 1], b[MAX_DIGITS + 1];
        if (from > to)
            continue;
        st_text_add(t, first ? "" : " | ");
        split_digits(from, a);
        digits_between(t, a, b, split_digits(to, b));
        first = false;
    }
}

/* The least or the largest whole number that a bound allows, within what has MAX_DIGITS digits. */
static int64_t whole(double bound, bool upper, bool exclusive)
{
    const double d = upper ? floor(bound) : ceil(bound);
    const int64_t v = d > 9e17 ? MOST : d < -9e17 ? -MOST : (int64_t)d;
    if (!exclusive || d != bound)
        return v;
    return upper ? v - 1 : v + 1;
}

/* Keyword `inclusive` or `exclusive`, which may be a number or, as it was before 2019, say so of the other one. */
static sotto_status bound(st_schema *s, json_t *schema, const char *inclusive, const char *exclusive, bool upper,
                          int64_t *out, bool *any)
{
    json_t *v[2] = {json_object_get(schema, inclusive), json_object_get(schema, exclusive)};
    const bool flag = json_is_true(v[1]);
    for (int i = 0; i < 2; i++) {
        if (!v[i] || json_is_boolean(v[i]))
            continue;
        if (!json_is_number(v[i]))
            return st_schema_fail(s, SOTTO_E_FORMAT, "%s: expected a number", i ? exclusive : inclusive);
        int64_t value = whole(json_number_value(v[i]), upper, i == 1 || flag);
        if (json_is_integer(v[i])) { /* beyond 2^53 too */
            const int64_t exact = (int64_t)json_integer_value(v[i]);
            value = exact > MOST ? MOST : exact < -MOST ? -MOST : exact;
            if ((i == 1 || flag) && exact >= -MOST && exact <= MOST)
                value += upper ? -1 : 1;
        }
        *out = upper == (value < *out) ? value : *out;
        *any = true;
    }
    return SOTTO_OK;
}

sotto_status st_schema_integer(st_schema *s, json_t *schema, st_text *t)
{
    int64_t lo = -MOST, hi = MOST;
    bool any = false;
    ST_TRY(bound(s, schema, "minimum", "exclusiveMinimum", false, &lo, &any));
    ST_TRY(bound(s, schema, "maximum", "exclusiveMaximum", true, &hi, &any));
    if (!any) {
        st_schema_name(s, t, ST_SCHEMA_INTEGER);
        return SOTTO_OK;
    }
    if (lo > hi)
        return st_schema_fail(s, SOTTO_E_UNSUPPORTED, "no whole number lies from %" PRId64 " to %" PRId64, lo, hi);
    if (lo < 0) {
        st_text_add(t, "\"-\" (");
        whole_between(t, hi < 0 ? -hi : 1, -lo);
        st_text_add(t, hi < 0 ? ")" : ") | ");
    }
    if (hi >= 0)
        whole_between(t, lo > 0 ? lo : 0, hi);
    return SOTTO_OK;
}

/* Of numbers with a fraction only "not negative" can be written as a grammar of reasonable size. */
sotto_status st_schema_number(st_schema *s, json_t *schema, st_text *t)
{
    static const char *const keys[] = {"maximum", "exclusiveMinimum", "exclusiveMaximum"};
    json_t *min = json_object_get(schema, "minimum");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_object_get(schema, keys[i]))
            return st_schema_fail(s, SOTTO_E_UNSUPPORTED, "%s of numbers that need not be whole cannot be followed",
                                  keys[i]);
    if (!min) {
        st_schema_name(s, t, ST_SCHEMA_NUMBER);
        return SOTTO_OK;
    }
    if (!json_is_number(min) || json_number_value(min) != 0)
        return st_schema_fail(s, SOTTO_E_UNSUPPORTED,
                              "minimum of numbers that need not be whole cannot be followed, unless it is 0");
    st_text_add(t, "(\"0\" | [1-9] [0-9]{0,17}) (\".\" [0-9]{1,17})? ([eE] [+\\-]? [0-9]{1,3})?");
    return SOTTO_OK;
}
