/* json_schema_pattern.c: regular expressions as the inside of JSON strings. Characters that JSON escapes are written so. */
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/utf8.h"
#include "models/common/gbnf_sets.h"
#include "models/common/json_schema_impl.h"

enum { MAX_GROUPS = 40, ANY_NUMBER = -1 };

typedef struct regex {
    st_schema *s;
    const char *p;
    size_t n, at;
    int depth;
    st_text *t;
    st_char_range *ranges;
    int64_t n_ranges, capacity;
} regex;

static sotto_status unsupported(const regex *r, const char *what)
{
    return st_schema_fail(r->s, SOTTO_E_UNSUPPORTED, "pattern: character %zu: %s", r->at + 1, what);
}

static int peek(const regex *r)
{
    return r->at < r->n ? (unsigned char)r->p[r->at] : -1;
}

static bool add_range(regex *r, uint32_t lo, uint32_t hi)
{
    if (!st_grow(&r->ranges, &r->capacity, r->n_ranges + 2, sizeof *r->ranges))
        return false;
    r->ranges[r->n_ranges++] = (st_char_range){lo, hi};
    return true;
}

/* ---- writing a set of characters ---- */

static void write_class(st_text *t, const st_char_range *ranges, int64_t n)
{
    st_text_add(t, "[");
    for (int64_t i = 0; i < n; i++) {
        st_text_gbnf(t, ranges[i].lo);
        if (ranges[i].hi > ranges[i].lo) {
            st_text_add(t, "-");
            st_text_gbnf(t, ranges[i].hi);
        }
    }
    st_text_add(t, "]");
}

/* Splits off what must be escaped. */
static sotto_status write_ranges(regex *r, bool negated)
{
    static const char letters[] = "btn\0fr"; /* U+0008 to U+000D */
    const int64_t n = r->n_ranges = st_char_ranges_normalise(r->ranges, r->n_ranges, negated);
    bool first = true;
    int64_t n_plain = 0;
    if (n == 0)
        return unsupported(r, "a class that no character is in");
    st_text_add(r->t, "(");
    for (uint32_t c = 0; c <= '\\'; c += c == 0x1f ? '"' - 0x1f : c == '"' ? '\\' - '"' : 1) {
        bool within = false;
        for (int64_t i = 0; i < n; i++)
            within = within || (r->ranges[i].lo <= c && c <= r->ranges[i].hi);
        if (!within)
            continue;
        st_text_add(r->t, first ? "" : " | ");
        first = false;
        if (c >= 0x20)
            st_text_add(r->t, "\"\\\\\\%c\"", (int)c);
        else if (c >= 8 && c <= 13 && letters[c - 8])
            st_text_add(r->t, "\"\\\\%c\"", letters[c - 8]);
        else
            st_text_add(r->t, "\"\\\\u%04x\"", (unsigned)c);
    }
    st_char_range *kept = st_alloc((size_t)n + 2, sizeof *kept);
    if (!kept)
        return st_schema_memory(r->s);
    static const st_char_range allowed[] = {{0x20, '!'}, {'#', '['}, {']', 0x10ffff}};
    for (size_t a = 0; a < 3; a++)
        for (int64_t i = 0; i < n; i++) {
            const uint32_t lo = r->ranges[i].lo > allowed[a].lo ? r->ranges[i].lo : allowed[a].lo;
            const uint32_t hi = r->ranges[i].hi < allowed[a].hi ? r->ranges[i].hi : allowed[a].hi;
            if (lo <= hi && n_plain < n + 2)
                kept[n_plain++] = (st_char_range){lo, hi};
        }
    if (n_plain > 0) {
        st_text_add(r->t, first ? "" : " | ");
        write_class(r->t, kept, n_plain);
    }
    st_text_add(r->t, ")");
    st_free(kept);
    return SOTTO_OK;
}

/* ---- reading ---- */

static sotto_status hex(regex *r, int digits, uint32_t *code)
{
    *code = 0;
    for (int i = 0; i < digits; i++, r->at++) {
        const int c = peek(r), d = c >= '0' && c <= '9'                 ? c - '0'
                                   : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                                        : -1;
        if (d < 0)
            return unsupported(r, "expected a hexadecimal digit");
        *code = *code << 4 | (uint32_t)d;
    }
    if (*code >= 0xd800 && *code <= 0xdfff)
        return unsupported(r, "half a surrogate pair");
    return SOTTO_OK;
}

static const st_char_range DIGITS[] = {{'0', '9'}}, WORDS[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
                           SPACES[] = {{'\t', '\r'}, {' ', ' '}, {0xa0, 0xa0}, {0x2028, 0x2029}, {0xfeff, 0xfeff}};

static bool add_named(regex *r, const st_char_range *ranges, int64_t n, bool negated)
{
    uint32_t from = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!negated && !add_range(r, ranges[i].lo, ranges[i].hi))
            return false;
        if (negated && ranges[i].lo > from && !add_range(r, from, ranges[i].lo - 1))
            return false;
        from = ranges[i].hi + 1;
    }
    return !negated || add_range(r, from, 0x10ffff);
}

/* After a backslash: a character, *code, or a named set, which is added to the ranges: *named. */
static sotto_status escape(regex *r, uint32_t *code, bool *named)
{
    static const char from[] = "nrtfv0", to[] = "\n\r\t\f\v";
    const int c = peek(r);
    *named = false;
    r->at++;
    if (c == 'd' || c == 'D' || c == 'w' || c == 'W' || c == 's' || c == 'S') {
        *named = true;
        const bool negated = c < 'a';
        const bool ok = (c | 32) == 'd'   ? add_named(r, DIGITS, 1, negated)
                        : (c | 32) == 'w' ? add_named(r, WORDS, 4, negated)
                                          : add_named(r, SPACES, 5, negated);
        return ok ? SOTTO_OK : st_schema_memory(r->s);
    }
    if (c == 'x' || c == 'u')
        return hex(r, c == 'x' ? 2 : 4, code);
    const char *letter = c > 0 ? strchr(from, c) : NULL;
    if (letter && *letter) {
        *code = (unsigned char)to[letter - from];
        return SOTTO_OK;
    }
    r->at--;
    if (c < 0 || c >= 128 || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'))
        return unsupported(r, "this escape cannot be followed");
    r->at++;
    *code = (uint32_t)c;
    return SOTTO_OK;
}

static sotto_status one(regex *r, uint32_t *code, bool *named)
{
    *named = false;
    if (peek(r) == '\\') {
        r->at++;
        return escape(r, code, named);
    }
    const int length = st_utf8_next((const uint8_t *)r->p + r->at, r->n - r->at, code);
    if (length <= 0)
        return unsupported(r, "expected a character");
    r->at += (size_t)length;
    return SOTTO_OK;
}

static sotto_status class_of(regex *r)
{
    r->at++;
    const bool negated = peek(r) == '^';
    r->at += negated;
    r->n_ranges = 0;
    while (peek(r) != ']') {
        uint32_t lo = 0, hi;
        bool named, unused;
        if (peek(r) == -1)
            return unsupported(r, "expected ']'");
        ST_TRY(one(r, &lo, &named));
        if (named)
            continue;
        hi = lo;
        if (peek(r) == '-' && r->at + 1 < r->n && r->p[r->at + 1] != ']') {
            r->at++;
            ST_TRY(one(r, &hi, &unused));
            if (unused || hi < lo)
                return unsupported(r, "the end of a range is expected to be a character after its beginning");
        }
        if (!add_range(r, lo, hi))
            return st_schema_memory(r->s);
    }
    r->at++;
    return write_ranges(r, negated);
}

static sotto_status alternatives(regex *r);

static sotto_status group(regex *r)
{
    r->at++;
    if (peek(r) == '?') {
        if (r->at + 1 >= r->n || r->p[r->at + 1] != ':')
            return unsupported(r, "only (...) and (?:...) can be followed");
        r->at += 2;
    }
    if (++r->depth > MAX_GROUPS)
        return unsupported(r, "groups nested too deep");
    st_text_add(r->t, "(");
    ST_TRY(alternatives(r));
    if (peek(r) != ')')
        return unsupported(r, "expected ')'");
    r->at++;
    r->depth--;
    st_text_add(r->t, ")");
    return SOTTO_OK;
}

static sotto_status atom(regex *r)
{
    const int c = peek(r);
    if (c == '(')
        return group(r);
    if (c == '[')
        return class_of(r);
    if (c == '*' || c == '+' || c == '?' || c == '{')
        return unsupported(r, "expected something to repeat before");
    if (c == '^' || c == '$')
        return unsupported(r, "an anchor within the pattern");
    r->n_ranges = 0;
    if (c == '.') {
        r->at++;
        return add_range(r, '\n', '\n') && add_range(r, '\r', '\r') && add_range(r, 0x2028, 0x2029)
                   ? write_ranges(r, true)
                   : st_schema_memory(r->s);
    }
    uint32_t code = 0;
    bool named;
    ST_TRY(one(r, &code, &named));
    if (!named && !add_range(r, code, code))
        return st_schema_memory(r->s);
    return write_ranges(r, false);
}

static sotto_status number(regex *r, int *out)
{
    *out = 0;
    if (peek(r) < '0' || peek(r) > '9')
        return unsupported(r, "expected a number of repetitions");
    for (; peek(r) >= '0' && peek(r) <= '9'; r->at++) {
        *out = 10 * *out + (peek(r) - '0');
        if (*out > ST_GBNF_MAX_REPEAT)
            return unsupported(r, "too many repetitions");
    }
    return SOTTO_OK;
}

static sotto_status quantifier(regex *r)
{
    const int c = peek(r);
    if (c == '*' || c == '+' || c == '?') {
        st_text_add(r->t, "%c", c);
        r->at++;
    } else if (c == '{') {
        int min, max;
        r->at++;
        ST_TRY(number(r, &min));
        max = min;
        if (peek(r) == ',') {
            r->at++;
            max = ANY_NUMBER;
            if (peek(r) != '}')
                ST_TRY(number(r, &max));
        }
        if (peek(r) != '}' || (max != ANY_NUMBER && max < min))
            return unsupported(r, "expected {m}, {m,} or {m,n}");
        r->at++;
        st_text_add(r->t, max == ANY_NUMBER ? "{%d,}" : "{%d,%d}", min, max);
    } else {
        return SOTTO_OK;
    }
    if (peek(r) == '?') /* lazy: the same texts */
        r->at++;
    if (peek(r) == '*' || peek(r) == '+' || peek(r) == '?' || peek(r) == '{')
        return unsupported(r, "a repetition of a repetition");
    return SOTTO_OK;
}

/* On the outermost level a text may stand before and behind what is not held by an anchor. */
static sotto_status alternatives(regex *r)
{
    const bool outermost = r->depth == 0;
    for (;;) {
        const bool begins = outermost && peek(r) == '^';
        r->at += begins;
        if (outermost && !begins) {
            st_schema_name(r->s, r->t, ST_SCHEMA_CHAR);
            st_text_add(r->t, "* ");
        }
        bool ends = false, empty = true;
        while (peek(r) != -1 && peek(r) != '|' && peek(r) != ')') {
            if (outermost && peek(r) == '$' && (r->at + 1 == r->n || r->p[r->at + 1] == '|')) {
                ends = true;
                r->at++;
                break;
            }
            ST_TRY(atom(r));
            ST_TRY(quantifier(r));
            st_text_add(r->t, " ");
            empty = false;
        }
        if (outermost && !ends) {
            st_schema_name(r->s, r->t, ST_SCHEMA_CHAR);
            st_text_add(r->t, "*");
        } else if (empty) {
            st_text_add(r->t, "\"\"");
        }
        if (peek(r) != '|')
            break;
        r->at++;
        st_text_add(r->t, " | ");
    }
    if (outermost && r->at < r->n)
        return unsupported(r, "')' without '('");
    return SOTTO_OK;
}

sotto_status st_schema_pattern(st_schema *s, const char *pattern, size_t n, st_text *t)
{
    regex r = {.s = s, .p = pattern, .n = n, .t = t};
    const sotto_status status = alternatives(&r);
    st_free(r.ranges);
    return status;
}
