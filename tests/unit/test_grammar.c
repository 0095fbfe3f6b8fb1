/* Grammars: what their notation means, which texts they take, which errors are named, and that hard ones stay cheap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sotto/grammar.h"

static sotto_grammar *parse(const char *gbnf)
{
    sotto_error err = {0};
    sotto_grammar *g;
    if (sotto_grammar_create(gbnf, strlen(gbnf), NULL, &g, &err) != SOTTO_OK)
        fail_msg("%s\n%s", gbnf, err.text);
    return g;
}

static void match(const sotto_grammar *g, const char *text, size_t n, size_t *fits, bool *whole)
{
    sotto_error err = {0};
    if (sotto_grammar_match(g, text, n, fits, whole, &err) != SOTTO_OK)
        fail_msg("%s: %s", text, err.text);
}

typedef struct table {
    const char *gbnf;
    const char *yes[12]; /* whole texts */
    const char *no[14];  /* others; "|" is put where the text stops to fit, at the end when only more is wanted */
} table;

static const table tables[] = {
    {"root ::= \"abc\"", {"abc"}, {"|x", "a|", "ab|", "abc|c", "|ABC", "|"}},
    {"root ::= \"\"", {""}, {"|a"}},
    {"root ::=", {""}, {"|a"}},
    {"root ::= | \"a\"", {"", "a"}, {"a|a"}},
    {"root ::= \"a\" | \"b\" \"c\" | \"bd\"", {"a", "bc", "bd"}, {"b|", "a|b", "b|e"}},
    {"root ::= \"a\"\n | \"b\"\n  |\n\"c\"\n", {"a", "b", "c"}, {"|d"}},
    {"root ::= \"a\" # a comment \" ( [\r\n# more\n\n", {"a"}, {"a|a"}},
    {"root::=\"a\"", {"a"}, {"|b"}},
    {"root ::= (\"a\" # one\n | \"b\"\n\n) \"c\"", {"ac", "bc"}, {"a|", "|c"}},
    {"root ::= a-rule B_2\na-rule ::= \"x\" | B_2 \"z\"\nB_2 ::= \"y\"", {"xy", "yzy"}, {"x|", "y|y", "yz|"}},
    {"root ::= [a-c]", {"a", "b", "c"}, {"|d", "|A", "a|a"}},
    {"root ::= [^a-c]", {"d", "\n", "\xc3\xa9", "\xf0\x9f\x98\x80"}, {"|a", "|c", "\xc3|", "|\xff", "\xed|\xa0\x80"}},
    {"root ::= [a-]+", {"a-a", "-"}, {"|b"}},
    {"root ::= [\\]\\[\\\\\"\\n\\x41\\u00e9\\U0001F600-]*", {"", "][\\\"\nA\xc3\xa9\xf0\x9f\x98\x80-"}, {"|B"}},
    {"root ::= \"\\x41\\u00e9\\U0001F600\\t\\r\\n\\\\\\\"\\[\\]\"", {"A\xc3\xa9\xf0\x9f\x98\x80\t\r\n\\\"[]"}, {"|B"}},
    {"root ::= [a-zA-Z_\xc3\xa0-\xc3\xbf]", {"q", "Z", "_", "\xc3\xa9"}, {"\xc3|\x9f", "|\xc4\x80", "|1"}},
    {"root ::= . \"x\"",
     {"ax", "\nx", "\xe2\x82\xacx", "xx"},
     {"x|", "|\x80x", "|\xc0\x80", "\xe0|\x9f\x80", "\xf4|\x90\x80\x80"}},
    {"root ::= \"a\"*", {"", "a", "aaaaaaaa"}, {"|b", "a|b"}},
    {"root ::= \"ab\"+", {"ab", "abab"}, {"|", "a|", "ab|b", "aba|"}},
    {"root ::= \"a\"? \"b\"", {"b", "ab"}, {"a|", "a|a"}},
    {"root ::= \"a\"{3}", {"aaa"}, {"aa|", "aaa|a"}},
    {"root ::= \"ab\"{2,}", {"abab", "ababab"}, {"ab|", "aba|"}},
    {"root ::= \"a\"{1,3} \"b\"", {"ab", "aab", "aaab"}, {"|b", "aaa|a", "aaa|"}},
    {"root ::= \"a\"{0,2} [b]{ 0 } \"c\"{ 1 , }", {"c", "aac", "cc"}, {"|b", "aa|a"}},
    {"root ::= (\"a\" | \"bc\"){2,3}", {"aa", "abc", "bcabc"}, {"a|", "aaa|a", "bcb|"}},
    {"root ::= (\"a\"?){3} \"b\"", {"b", "ab", "aab", "aaab"}, {"aaa|a"}},
    {"root ::= (\"a\"? \"b\"?){0,4}", {"", "ab", "ba", "bbbb", "abababab", "aabb"}, {"bbbb|b", "aaaa|a"}},
    {"root ::= (\"a\"*)* \"b\"", {"b", "aaab"}, {"a|", "a|c"}},
    {"root ::= ((\"a\"?)+ \"b\"?)* \"c\"", {"c", "abac", "bbc"}, {"ab|", "|d"}},
    {"root ::= e* \"c\"\ne ::= \"a\"? f\nf ::= \"b\" | ", {"c", "abac", "bbaac"}, {"a|d"}},
    {"root ::= \"a\"+? \"b\"", {"b", "ab", "aab"}, {"|c"}},
    {"root ::= (\"(\" root \")\")*", {"", "()", "(())()", "((()()))"}, {"|)", "(|", "()|)", "(()|"}},
    /* both ways to go on stay open */
    {"root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"d\"", {"d", "adb", "adc", "aaadbcb"}, {"a|", "ad|d", "adb|b"}},
    {"root ::= s s\ns ::= \"a\" s s | \"a\"", {"aa", "aaaa", "aaaaaaaa"}, {"a|", "aaa|", "aa|b"}},
    {"root ::= x \"b\" | y \"c\"\nx ::= \"a\" x | \"\"\ny ::= \"a\" y | \"\"", {"b", "c", "aab", "aac"}, {"a|", "ab|b"}},
    {"root ::= list \"!\"\nlist ::= item (\",\" item)*\nitem ::= [0-9]+ | \"[\" list? \"]\"",
     {"1!", "12,3!", "[[],[1,2]],3!"},
     {"|,", "1,|!", "[1|", "[|,"}},
    {"root ::= opt opt opt \"x\"\nopt ::= \"a\"?", {"x", "ax", "aax", "aaax"}, {"aaa|a"}},
    {"root ::= a b\na ::= \"x\" a | \nb ::= \"x\"", {"x", "xx", "xxxx"}, {"|", "x|y"}},
};

static void texts_follow_or_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const table *t = &tables[i];
        sotto_grammar *g = parse(t->gbnf);
        size_t fits;
        bool whole;
        for (size_t k = 0; k < 12 && t->yes[k]; k++) {
            match(g, t->yes[k], strlen(t->yes[k]), &fits, &whole);
            if (!whole || fits != strlen(t->yes[k]))
                fail_msg("%s: '%s' fits to %zu", t->gbnf, t->yes[k], fits);
        }
        for (size_t k = 0; k < 14 && t->no[k]; k++) {
            char text[64];
            const size_t at = strcspn(t->no[k], "|");
            snprintf(text, sizeof text, "%.*s%s", (int)at, t->no[k], t->no[k] + at + 1);
            match(g, text, strlen(text), &fits, &whole);
            if (whole || fits != at)
                fail_msg("%s: '%s' fits to %zu, expected %zu%s", t->gbnf, text, fits, at, whole ? ", whole" : "");
        }
        sotto_grammar_free(g);
    }
}

static void another_root(void **state)
{
    (void)state;
    const char *gbnf = "root ::= \"a\"\nother ::= \"b\"";
    sotto_grammar *g;
    sotto_error err;
    bool whole;
    assert_int_equal(sotto_grammar_create(gbnf, strlen(gbnf), "other", &g, &err), SOTTO_OK);
    match(g, "b", 1, NULL, &whole);
    assert_true(whole);
    sotto_grammar_free(g);
    assert_int_equal(sotto_grammar_create(gbnf, strlen(gbnf), "oth", &g, &err), SOTTO_E_NOT_FOUND);
    assert_null(g);
    assert_non_null(strstr(err.text, "'oth'"));
}

static void errors_have_a_place(void **state)
{
    (void)state;
    static const struct {
        const char *gbnf, *place, *text;
    } cases[] = {
        {"", "line 1, column 1", "at least one rule"},
        {"# nothing\n\n", "line 3, column 1", "at least one rule"},
        {"root", "line 1, column 5", "expected '::='"},
        {"root = \"a\"", "line 1, column 6", "found '='"},
        {"\n\nroot ::= \"a", "line 3, column 12", "expected '\"'"},
        {"root ::= \"a\n\"", "line 1, column 12", "end of the line"},
        {"root ::= \"\\q\"", "line 1, column 12", "found 'q'"},
        {"root ::= \"\\x4\"", "line 1, column 14", "2 hexadecimal digits"},
        {"root ::= \"\\u12g4\"", "line 1, column 15", "4 hexadecimal digits"},
        {"root ::= \"\\ud800\"", "line 1, column 11", "U+D800"},
        {"root ::= \"\\U00110000\"", "line 1, column 11", "U+110000"},
        {"root ::= [a", "line 1, column 12", "']'"},
        {"root ::= []", "line 1, column 11", "a character"},
        {"root ::= [^]", "line 1, column 12", "a character"},
        {"root ::= [z-a]", "line 1, column 11", "lower one first"},
        {"root ::= [^\\x00-\\U0010ffff]", "line 1, column 10", "no character"},
        {"root ::= (\"a\"", "line 1, column 14", "')'"},
        {"root ::= \"a\")", "line 1, column 13", "found ')'"},
        {"root ::= \xc3\xa9", "line 1, column 10", "found '\xc3\xa9'"},
        {"root ::= \"\xc3\xa9\" %", "line 1, column 14", "found '%'"},
        {"root ::= *", "line 1, column 10", "to repeat"},
        {"root ::= \"a\" | +", "line 1, column 16", "to repeat"},
        {"root ::= \"a\"{", "line 1, column 14", "a number"},
        {"root ::= \"a\"{,3}", "line 1, column 14", "a number"},
        {"root ::= \"a\"{1,3", "line 1, column 17", "'}'"},
        {"root ::= \"a\"{3,1}", "line 1, column 13", "lower number"},
        {"root ::= \"a\"{999999999999999999999}", "line 1, column 14", "repetitions"},
        {"root ::= \"a\"?????", "line 1, column 17", "repetitions of repetitions"},
        {"root ::= a\nb ::= c", "line 1, column 10", "'a' is not defined"},
        {"root ::= b\nb ::= c", "line 2, column 7", "'c' is not defined"},
        {"root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1", "defined twice"},
        {"root ::= \"a\" \"b\"\n\"c\"", "line 2, column 1", "name of a rule"},
        {"root ::= \"a\" b ::= \"c\"", "line 1, column 14", "found 'b'"},
        {"root ::= (\"a\"\nb ::= \"c\")", "line 2, column 1", "')'"},
        {"root ::= \"a\" |\n ::= \"c\"", "line 2, column 2", "found ':'"},
        {"root ::= <think>", "line 1, column 10", "tokens"},
        {"root ::= root \"a\"", "line 1, column 1", "'root' can begin with itself"},
        {"root ::= x\nx ::= y \"a\"\ny ::= \"b\" | z\nz ::= x", "line 1, column 10", "'x' can begin with itself"},
        {"root ::= n root | \"a\"\nn ::= \"b\"?", "line 1, column 1", "'root' can begin with itself"},
        {"root ::= \"a\"\nunused ::= unused", "line 2, column 1", "'unused'"},
        {"root ::= \"\xff\"", "line 1, column 11", "0xff"},
        {"root ::= \"\xc3", "line 1, column 11", "0xc3"},
        {"root ::= (\"x\"{0,10000} \"y\"){0,10000} r{100000} s{100000} \nr ::= [a] s{100000}\ns ::= ([a] [b])", NULL,
         NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sotto_grammar *g = (sotto_grammar *)&i;
        sotto_error err = {0};
        const sotto_status status = sotto_grammar_create(cases[i].gbnf, strlen(cases[i].gbnf), NULL, &g, &err);
        if (!cases[i].text) {
            assert_int_equal(status, SOTTO_OK);
            sotto_grammar_free(g);
            continue;
        }
        assert_null(g);
        if (status != SOTTO_E_FORMAT || !strstr(err.text, cases[i].place) || !strstr(err.text, cases[i].text))
            fail_msg("%s\n%s\nexpected %s, %s", cases[i].gbnf, err.text, cases[i].place, cases[i].text);
    }
    sotto_grammar *g;
    sotto_error err;
    assert_int_equal(sotto_grammar_create("root ::= \"a\0b\"", 14, NULL, &g, &err), SOTTO_E_FORMAT);
    assert_non_null(strstr(err.text, "0x00"));
    assert_int_equal(sotto_grammar_create("other ::= \"a\"", 13, NULL, &g, &err), SOTTO_E_NOT_FOUND);
    assert_non_null(strstr(err.text, "'root'"));
}

/* ---- size ---- */

static char *repeated(const char *head, const char *part, int n, const char *tail)
{
    char *text = malloc(strlen(head) + (size_t)n * (strlen(part) + 10) + strlen(tail) + 1);
    assert_non_null(text);
    size_t at = (size_t)sprintf(text, "%s", head);
    for (int i = 0; i < n; i++)
        at += (size_t)sprintf(text + at, part, i, i + 1);
    strcpy(text + at, tail);
    return text;
}

static void ten_thousand_rules(void **state)
{
    (void)state;
    char *gbnf = repeated("root ::= r0\n", "r%d ::= \"(\" r%d \")\" | \"x\"\n", 10000, "r10000 ::= \"y\"\n");
    sotto_grammar *g = parse(gbnf);
    char *text = repeated("", "(", 10000, "y");
    size_t fits;
    bool whole;
    match(g, text, 10001, &fits, &whole);
    assert_true(fits == 10001 && !whole);
    sotto_grammar_free(g);
    free(gbnf);
    free(text);
    /* each begins with the next; from last to first it could be too: the last closes the ring */
    gbnf = repeated("root ::= r0\n", "r%d ::= r%d | \"x\"\n", 10000, "r10000 ::= \"y\"\n");
    g = parse(gbnf);
    match(g, "y", 1, NULL, &whole);
    assert_true(whole);
    sotto_grammar_free(g);
    free(gbnf);
    gbnf = repeated("root ::= r0\n", "r%d ::= r%d | \"x\"\n", 10000, "r10000 ::= r0\n");
    sotto_error err;
    assert_int_equal(sotto_grammar_create(gbnf, strlen(gbnf), NULL, &g, &err), SOTTO_E_FORMAT);
    assert_non_null(strstr(err.text, "begin with itself"));
    free(gbnf);
    /* empty through ten thousand rules */
    gbnf = repeated("root ::= r0 \"z\"\n", "r%d ::= r%d\n", 10000, "r10000 ::= \"y\"?\n");
    g = parse(gbnf);
    match(g, "z", 1, NULL, &whole);
    assert_true(whole);
    sotto_grammar_free(g);
    free(gbnf);
}

static void deep_parentheses(void **state)
{
    (void)state;
    sotto_grammar *g;
    sotto_error err;
    char *open = repeated("root ::= ", "(", 150, "\"a\""), *text = repeated(open, ")", 150, "");
    bool whole;
    g = parse(text);
    match(g, "a", 1, NULL, &whole);
    assert_true(whole);
    sotto_grammar_free(g);
    free(open);
    free(text);
    text = repeated("root ::= ", "(", 100000, "");
    assert_int_equal(sotto_grammar_create(text, strlen(text), NULL, &g, &err), SOTTO_E_FORMAT);
    assert_non_null(strstr(err.text, "nested deeper than 200"));
    free(text);
}

/* Grammars with exponentially many ways to read a text, or stacks to keep, in the ways that others have failed. */
static void ambiguity_stays_cheap(void **state)
{
    (void)state;
    static const char *const grammars[] = {
        "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"\"",
        "root ::= (\"a\" | \"a\" | \"aa\")*",
        "root ::= ((\"a\"*)*)*",
        "root ::= (\"a\"? \"a\"? \"a\"?)*",
        "root ::= (\"a\"*){0,10000}",
        "root ::= (\"a\" (\"a\" (\"a\")*)*)*",
        "root ::= [a-z]{0,10000}",
        "root ::= (\"a\" | [a-z]{1,20}){0,10000}",
    };
    enum { N = 2000 };
    static char text[N];
    memset(text, 'a', N);
    for (size_t i = 0; i < sizeof grammars / sizeof *grammars; i++) {
        sotto_grammar *g = parse(grammars[i]);
        size_t fits;
        match(g, text, N, &fits, NULL);
        assert_int_equal(fits, N);
        sotto_grammar_free(g);
    }
    /* Every beginning of an s is kept for each reading of this one. */
    sotto_grammar *g = parse("root ::= s s s\ns ::= \"a\" s s | \"a\" s | \"a\" |");
    size_t fits;
    match(g, text, 100, &fits, NULL);
    assert_int_equal(fits, 100);
    sotto_grammar_free(g);
    char *gbnf = repeated("r ::= \"a\"\nroot ::= r", " | r", 300000, "");
    sotto_error err = {0};
    g = parse(gbnf);
    assert_int_equal(sotto_grammar_match(g, text, N, &fits, NULL, &err), SOTTO_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "too ambiguous"));
    sotto_grammar_free(g);
    free(gbnf);
}

static void counted_exactly(void **state)
{
    (void)state;
    sotto_grammar *g = parse("root ::= x{9998,10000} \"!\"\nx ::= [ab] | \"cd\"");
    char *text = malloc(20010);
    assert_non_null(text);
    for (int n = 9996; n <= 10002; n++) {
        size_t at = 0;
        for (int i = 0; i < n; i++)
            at += (size_t)sprintf(text + at, i % 3 ? "a" : "cd");
        text[at++] = '!';
        size_t fits;
        bool whole;
        match(g, text, at, &fits, &whole);
        assert_true(whole == (n >= 9998 && n <= 10000));
        assert_true(n > 10000 ? fits < at - 1 : n < 9998 ? fits == at - 1 : fits == at);
    }
    free(text);
    sotto_grammar_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_follow_or_not), cmocka_unit_test(another_root),
        cmocka_unit_test(errors_have_a_place), cmocka_unit_test(ten_thousand_rules),
        cmocka_unit_test(deep_parentheses),    cmocka_unit_test(ambiguity_stays_cheap),
        cmocka_unit_test(counted_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
