#include "models/common/gbnf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/utf8.h"
#include "models/common/gbnf_sets.h"

typedef struct parser {
    st_gbnf *g;
    size_t at;
    int depth; /* of parentheses */
    st_char_range *class;
    int64_t class_capacity;
    sotto_error *err;
} parser;

/* ---- errors ---- */

static void position(const st_gbnf *g, size_t at, size_t *line, size_t *column)
{
    *line = *column = 1;
    for (size_t i = 0; i < at && i < g->n; i++) {
        const unsigned char c = (unsigned char)g->text[i];
        if (c == '\n') {
            ++*line;
            *column = 1;
        } else if ((c & 0xc0) != 0x80) {
            ++*column;
        }
    }
}

sotto_status st_gbnf_fail(const st_gbnf *g, size_t at, sotto_error *err, const char *fmt, ...)
{
    size_t line, column;
    va_list args;
    position(g, at, &line, &column);
    va_start(args, fmt);
    st_vfail(err, SOTTO_E_FORMAT, fmt, args);
    va_end(args);
    return st_fail_context(err, SOTTO_E_FORMAT, "grammar: line %zu, column %zu", line, column);
}

static sotto_status expected(const parser *p, const char *what)
{
    const st_gbnf *g = p->g;
    char found[16];
    if (p->at >= g->n)
        return st_gbnf_fail(g, p->at, p->err, "expected %s, found the end of the grammar", what);
    const unsigned char c = (unsigned char)g->text[p->at];
    if (c == '\n' || c == '\r')
        return st_gbnf_fail(g, p->at, p->err, "expected %s, found the end of the line", what);
    if (c < 0x20 || c == 0x7f) {
        snprintf(found, sizeof found, "byte 0x%02x", c);
    } else {
        const int length = st_utf8_next((const uint8_t *)g->text + p->at, g->n - p->at, NULL);
        snprintf(found, sizeof found, "'%.*s'", length > 0 ? length : 1, g->text + p->at);
    }
    return st_gbnf_fail(g, p->at, p->err, "expected %s, found %s", what, found);
}

static sotto_status no_memory(const parser *p)
{
    return st_fail_memory(p->err, p->g->n, "a grammar");
}

/* ---- characters ---- */

static int peek(const parser *p)
{
    return p->at < p->g->n ? (unsigned char)p->g->text[p->at] : -1;
}

static bool is_name(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static void skip_space(parser *p, bool newlines)
{
    for (int c = peek(p); c == ' ' || c == '\t' || c == '#' || (newlines && (c == '\n' || c == '\r')); c = peek(p)) {
        if (c == '#')
            while (peek(p) != -1 && peek(p) != '\n' && peek(p) != '\r')
                p->at++;
        else
            p->at++;
    }
}

static sotto_status hex(parser *p, int digits, uint32_t *code)
{
    *code = 0;
    for (int i = 0; i < digits; i++, p->at++) {
        const int c = peek(p);
        const int v = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
        if (v < 0)
            return expected(p, digits == 2   ? "2 hexadecimal digits after \\x"
                               : digits == 4 ? "4 hexadecimal digits after \\u"
                                             : "8 hexadecimal digits after \\U");
        *code = *code << 4 | (uint32_t)v;
    }
    return SOTTO_OK;
}

static sotto_status character(parser *p, uint32_t *code)
{
    static const struct {
        char escape;
        uint8_t code;
    } escapes[] = {{'n', '\n'}, {'r', '\r'}, {'t', '\t'}, {'\\', '\\'}, {'"', '"'},
                   {'[', '['},  {']', ']'},  {'-', '-'},  {'^', '^'}};
    if (peek(p) != '\\') { /* the text was checked to be UTF-8 */
        p->at += (size_t)st_utf8_next((const uint8_t *)p->g->text + p->at, p->g->n - p->at, code);
        return SOTTO_OK;
    }
    p->at++;
    const int c = peek(p);
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
        if (c == escapes[i].escape) {
            *code = escapes[i].code;
            p->at++;
            return SOTTO_OK;
        }
    if (c != 'x' && c != 'u' && c != 'U')
        return expected(p, "one of n r t x u U \\ \" [ ] - ^ after \\");
    const size_t from = p->at - 1;
    p->at++;
    ST_TRY(hex(p, c == 'x' ? 2 : c == 'u' ? 4 : 8, code));
    if (*code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff))
        return st_gbnf_fail(p->g, from, p->err, "U+%04X is no character", (unsigned)*code);
    return SOTTO_OK;
}

/* ---- tree ---- */

static sotto_status add_node(parser *p, st_gbnf_kind kind, int32_t a, int32_t *out)
{
    st_gbnf *g = p->g;
    if (!st_grow(&g->nodes, &g->nodes_capacity, g->n_nodes + 1, sizeof *g->nodes))
        return no_memory(p);
    g->nodes[g->n_nodes] = (st_gbnf_node){kind, a, -1, 0, 0};
    *out = (int32_t)g->n_nodes++;
    return SOTTO_OK;
}

static void append(st_gbnf *g, int32_t *first, int32_t *last, int32_t node)
{
    if (*first < 0)
        *first = node;
    else
        g->nodes[*last].next = node;
    *last = node;
}

static sotto_status add_set(parser *p, const st_char_range *ranges, int64_t n, int32_t *out)
{
    const int32_t set = st_gbnf_set_index(p->g, ranges, n);
    return set < 0 ? no_memory(p) : add_node(p, ST_GBNF_SET, set, out);
}

static sotto_status literal(parser *p, int32_t *out)
{
    int32_t first = -1, last = -1;
    p->at++;
    while (peek(p) != '"') {
        if (peek(p) == -1 || peek(p) == '\n' || peek(p) == '\r')
            return expected(p, "'\"' at the end of the text");
        st_char_range c;
        int32_t node;
        ST_TRY(character(p, &c.lo));
        c.hi = c.lo;
        ST_TRY(add_set(p, &c, 1, &node));
        append(p->g, &first, &last, node);
    }
    p->at++;
    return add_node(p, ST_GBNF_SEQUENCE, first, out);
}

static sotto_status character_class(parser *p, int32_t *out)
{
    const size_t from = p->at++;
    const bool negated = peek(p) == '^';
    int64_t n = 0;
    p->at += negated;
    do {
        if (peek(p) == -1 || peek(p) == '\n' || peek(p) == '\r')
            return expected(p, "']' at the end of the class");
        if (peek(p) == ']')
            return expected(p, "a character of the class");
        st_char_range r;
        const size_t begin = p->at;
        ST_TRY(character(p, &r.lo));
        r.hi = r.lo;
        if (peek(p) == '-' && p->at + 1 < p->g->n && p->g->text[p->at + 1] != ']') {
            p->at++;
            if (peek(p) == '\n' || peek(p) == '\r')
                return expected(p, "the last character of the range");
            ST_TRY(character(p, &r.hi));
        }
        if (r.hi < r.lo)
            return st_gbnf_fail(p->g, begin, p->err, "a range from U+%04X down to U+%04X, expected the lower one first",
                                (unsigned)r.lo, (unsigned)r.hi);
        if (!st_grow(&p->class, &p->class_capacity, n + 2, sizeof *p->class))
            return no_memory(p);
        p->class[n++] = r;
    } while (peek(p) != ']');
    p->at++;
    n = st_char_ranges_normalise(p->class, n, negated);
    if (n == 0)
        return st_gbnf_fail(p->g, from, p->err, "a class that no character is in");
    return add_set(p, p->class, n, out);
}

static sotto_status count(parser *p, int32_t *out)
{
    int64_t n = 0;
    const size_t from = p->at;
    if (peek(p) < '0' || peek(p) > '9')
        return expected(p, "a number of repetitions");
    for (; peek(p) >= '0' && peek(p) <= '9'; p->at++) {
        n = 10 * n + (peek(p) - '0');
        if (n > ST_GBNF_MAX_REPEAT)
            return st_gbnf_fail(p->g, from, p->err, "more than %d repetitions", (int)ST_GBNF_MAX_REPEAT);
    }
    *out = (int32_t)n;
    return SOTTO_OK;
}

/* "*", "+", "?", "{m}", "{m,}" or "{m,n}". */
static sotto_status repetition(parser *p, int32_t *min, int32_t *max)
{
    const int c = peek(p);
    const size_t from = p->at++;
    *min = c == '+';
    *max = c == '?' ? 1 : ST_GBNF_INFINITY;
    if (c != '{')
        return SOTTO_OK;
    skip_space(p, false);
    ST_TRY(count(p, min));
    *max = *min;
    skip_space(p, false);
    if (peek(p) == ',') {
        p->at++;
        skip_space(p, false);
        *max = ST_GBNF_INFINITY;
        if (peek(p) != '}')
            ST_TRY(count(p, max));
        skip_space(p, false);
    }
    if (peek(p) != '}')
        return expected(p, "'}'");
    p->at++;
    if (*max != ST_GBNF_INFINITY && *max < *min)
        return st_gbnf_fail(p->g, from, p->err, "%d to %d repetitions, expected the lower number first", (int)*min,
                            (int)*max);
    return SOTTO_OK;
}

static sotto_status choice(parser *p, bool nested, int32_t *out);

static sotto_status name(parser *p, int32_t *out)
{
    const size_t from = p->at;
    while (is_name(peek(p)))
        p->at++;
    const int32_t rule = st_gbnf_rule_index(p->g, from, p->at - from);
    return rule < 0 ? no_memory(p) : add_node(p, ST_GBNF_RULE, rule, out);
}

static sotto_status group(parser *p, int32_t *out)
{
    const size_t from = p->at++;
    if (++p->depth > ST_GBNF_MAX_DEPTH)
        return st_gbnf_fail(p->g, from, p->err, "parentheses nested deeper than %d", (int)ST_GBNF_MAX_DEPTH);
    ST_TRY(choice(p, true, out));
    if (peek(p) != ')')
        return expected(p, "'|' or ')'");
    p->at++;
    p->depth--;
    return SOTTO_OK;
}

static sotto_status any_character(parser *p, int32_t *out)
{
    const st_char_range all = {0, 0x10ffff};
    p->at++;
    return add_set(p, &all, 1, out);
}

/* A name with "::=" behind it begins the next rule. */
static bool begins_rule(const parser *p)
{
    parser ahead = *p;
    while (is_name(peek(&ahead)))
        ahead.at++;
    if (ahead.at == p->at)
        return false;
    skip_space(&ahead, false);
    return p->g->n - ahead.at >= 3 && memcmp(p->g->text + ahead.at, "::=", 3) == 0;
}

/* Makes the last part of the sequence a repetition of what it was. */
static sotto_status repeat_last(parser *p, int32_t last)
{
    st_gbnf *g = p->g;
    if (last < 0)
        return expected(p, "something to repeat before");
    int32_t min, max, moved;
    ST_TRY(repetition(p, &min, &max));
    ST_TRY(add_node(p, g->nodes[last].kind, g->nodes[last].a, &moved));
    g->nodes[moved].min = g->nodes[last].min;
    g->nodes[moved].max = g->nodes[last].max;
    g->nodes[last] = (st_gbnf_node){ST_GBNF_REPEAT, moved, -1, min, max};
    return SOTTO_OK;
}

static sotto_status sequence(parser *p, bool nested, int32_t *out)
{
    int32_t first = -1, last = -1, depth = 0;
    for (;;) {
        int32_t node = -1;
        const int c = peek(p);
        if (c == '"')
            ST_TRY(literal(p, &node));
        else if (c == '[')
            ST_TRY(character_class(p, &node));
        else if (c == '(')
            ST_TRY(group(p, &node));
        else if (c == '.')
            ST_TRY(any_character(p, &node));
        else if (c == '<')
            return st_gbnf_fail(p->g, p->at, p->err, "tokens (<...>) are not supported, only characters are");
        else if (is_name(c) && !begins_rule(p))
            ST_TRY(name(p, &node));
        else if (c != '*' && c != '+' && c != '?' && c != '{')
            break;
        if (node >= 0) {
            append(p->g, &first, &last, node);
            depth = 0;
        } else if (++depth > ST_GBNF_MAX_STACKED) {
            return st_gbnf_fail(p->g, p->at, p->err, "repetitions of repetitions deeper than %d",
                                (int)ST_GBNF_MAX_STACKED);
        } else {
            ST_TRY(repeat_last(p, last));
        }
        skip_space(p, nested);
    }
    return add_node(p, ST_GBNF_SEQUENCE, first, out);
}

/* The next line may go on with '|', with which no rule begins. */
static bool more_alternatives(parser *p)
{
    const size_t here = p->at;
    skip_space(p, true);
    if (peek(p) == '|') {
        p->at++;
        skip_space(p, true);
        return true;
    }
    p->at = here;
    return false;
}

static sotto_status choice(parser *p, bool nested, int32_t *out)
{
    int32_t first = -1, last = -1, node;
    skip_space(p, true);
    do {
        ST_TRY(sequence(p, nested, &node));
        append(p->g, &first, &last, node);
    } while (more_alternatives(p));
    if (first == last) {
        *out = first;
        return SOTTO_OK;
    }
    return add_node(p, ST_GBNF_CHOICE, first, out);
}

static bool begins_line(const parser *p)
{
    size_t at = p->at;
    while (at > 0 && (p->g->text[at - 1] == ' ' || p->g->text[at - 1] == '\t'))
        at--;
    return at == 0 || p->g->text[at - 1] == '\n' || p->g->text[at - 1] == '\r';
}

static sotto_status rule(parser *p)
{
    st_gbnf *g = p->g;
    const size_t from = p->at;
    while (is_name(peek(p)))
        p->at++;
    if (p->at == from)
        return expected(p, "the name of a rule");
    const size_t length = p->at - from;
    skip_space(p, false);
    if (g->n - p->at < 3 || memcmp(g->text + p->at, "::=", 3) != 0)
        return expected(p, "'::=' after the name of a rule");
    p->at += 3;
    const int32_t index = st_gbnf_rule_index(g, from, length);
    if (index < 0)
        return no_memory(p);
    if (g->rules[index].body >= 0)
        return st_gbnf_fail(g, from, p->err, "rule '%.*s' is defined twice", (int)(length < 100 ? length : 100),
                            g->text + from);
    int32_t body;
    ST_TRY(choice(p, false, &body));
    g->rules[index].body = body;
    skip_space(p, false);
    if (peek(p) != -1 && peek(p) != '\n' && peek(p) != '\r' && !begins_line(p))
        return expected(p, "a text, a class, a rule, '(', '|' or the end of the line");
    return SOTTO_OK;
}

static sotto_status check_text(const st_gbnf *g, sotto_error *err)
{
    if (g->n > ST_GBNF_MAX_TEXT)
        return st_fail(err, SOTTO_E_FORMAT, "grammar: %zu bytes, expected at most %d", g->n, (int)ST_GBNF_MAX_TEXT);
    for (size_t i = 0; i < g->n;) {
        const int length = st_utf8_next((const uint8_t *)g->text + i, g->n - i, NULL);
        if (length <= 0 || g->text[i] == 0)
            return st_gbnf_fail(g, i, err, "byte 0x%02x is no UTF-8 text", (unsigned char)g->text[i]);
        i += (size_t)length;
    }
    return SOTTO_OK;
}

static sotto_status parse(parser *p)
{
    st_gbnf *g = p->g;
    ST_TRY(check_text(g, p->err));
    if (g->n >= 3 && memcmp(g->text, "\xef\xbb\xbf", 3) == 0)
        p->at = 3;
    for (skip_space(p, true); p->at < g->n; skip_space(p, true))
        ST_TRY(rule(p));
    if (g->n_rules == 0)
        return st_gbnf_fail(g, g->n, p->err, "expected at least one rule");
    for (int64_t i = 0; i < g->n_rules; i++) {
        const st_gbnf_rule *r = &g->rules[i];
        if (r->body < 0)
            return st_gbnf_fail(g, r->name, p->err, "rule '%.*s' is not defined",
                                (int)(r->length < 100 ? r->length : 100), g->text + r->name);
    }
    return SOTTO_OK;
}

sotto_status st_gbnf_parse(const char *text, size_t n, st_gbnf *out, sotto_error *err)
{
    *out = (st_gbnf){.text = text, .n = n};
    parser p = {.g = out, .err = err};
    const sotto_status status = parse(&p);
    st_free(p.class);
    return status;
}

void st_gbnf_free(st_gbnf *g)
{
    void *const blocks[] = {g->nodes, g->rules, g->rule_slots, g->ranges, g->sets, g->set_slots};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        st_free(blocks[i]);
    *g = (st_gbnf){0};
}
