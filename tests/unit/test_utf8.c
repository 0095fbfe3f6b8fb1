/* UTF-8 against the Unicode definition computed another way, and repairs that Python's errors="replace" gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"

/* Encodes by the definition's bit table; 0 for what is no character. */
static int encode(uint32_t c, uint8_t *out)
{
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    if (c < 0x80)
        return out[0] = (uint8_t)c, 1;
    if (c < 0x800)
        return out[0] = (uint8_t)(0xc0 + c / 64), out[1] = (uint8_t)(0x80 + c % 64), 2;
    if (c < 0x10000)
        return out[0] = (uint8_t)(0xe0 + c / 4096), out[1] = (uint8_t)(0x80 + c / 64 % 64),
               out[2] = (uint8_t)(0x80 + c % 64), 3;
    out[0] = (uint8_t)(0xf0 + c / 262144);
    out[1] = (uint8_t)(0x80 + c / 4096 % 64);
    out[2] = (uint8_t)(0x80 + c / 64 % 64);
    out[3] = (uint8_t)(0x80 + c % 64);
    return 4;
}

static void every_character(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 0x110010; c++) {
        uint8_t want[4];
        char got[4];
        uint32_t code = 0;
        const int n = encode(c, want);
        if (n == 0) {
            assert_int_equal(st_utf8_put(c, got), 3);
            assert_memory_equal(got, "\xef\xbf\xbd", 3);
            continue;
        }
        assert_int_equal(st_utf8_put(c, got), n);
        assert_memory_equal(got, want, (size_t)n);
        assert_int_equal(st_utf8_next(want, 4 > n ? (size_t)n : 4, &code), n);
        assert_int_equal(code, c);
        assert_int_equal(st_utf8_next(want, (size_t)n, NULL), n);
        for (int cut = 1; cut < n; cut++) {
            assert_int_equal(st_utf8_next(want, (size_t)cut, NULL), -1);
            assert_int_equal(st_utf8_incomplete_tail((const char *)want, (size_t)cut), cut);
        }
        assert_int_equal(st_utf8_incomplete_tail((const char *)want, (size_t)n), 0);
    }
}

/* All pairs of bytes: valid exactly if they are what encoding some characters gives. */
static void every_pair_of_bytes(void **state)
{
    (void)state;
    static bool starts[65536]; /* pairs that begin a character of 3 or 4 bytes */
    uint8_t e[4];
    for (uint32_t c = 0x800; c < 0x110000; c++)
        if (encode(c, e) > 2)
            starts[e[0] << 8 | e[1]] = true;
    for (uint32_t pair = 0; pair < 65536; pair++) {
        const uint8_t s[2] = {(uint8_t)(pair >> 8), (uint8_t)pair};
        const int got = st_utf8_next(s, 2, NULL);
        if (s[0] < 0x80)
            assert_int_equal(got, 1);
        else if (s[0] >= 0xc2 && s[0] < 0xe0 && s[1] >= 0x80 && s[1] < 0xc0)
            assert_int_equal(got, 2);
        else
            assert_int_equal(got, starts[pair] ? -1 : 0);
    }
}

static void whole_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool valid;
        const char *repaired; /* python3 -c "print(text.decode('utf-8', 'replace').encode())" */
    } cases[] = {
        {"", true, ""},
        {"plain", true, "plain"},
        {"h\xc3\xa9llo \xe2\x82\xac \xf0\x9f\x98\x80", true, "h\xc3\xa9llo \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\xff", false, "\xef\xbf\xbd"},
        {"a\x80z", false, "a\xef\xbf\xbdz"},
        {"\xc0\xaf", false, "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xe0\x80\xaf", false, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xed\xa0\x80", false, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xf4\x90\x80\x80", false, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xe2\x82", false, "\xef\xbf\xbd"},
        {"\xe2\x82z", false, "\xef\xbf\xbdz"},
        {"\xf0\x9f\x98", false, "\xef\xbf\xbd"},
        {"\xf0\x9f\xe2\x82\xac", false, "\xef\xbf\xbd\xe2\x82\xac"},
        {"\xe2\xe2\x82\xac", false, "\xef\xbf\xbd\xe2\x82\xac"},
        {"\xf8\x88\x80\x80\x80", false, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t n = strlen(cases[i].text);
        char out[64];
        assert_int_equal(st_utf8_valid(cases[i].text, n), cases[i].valid);
        const size_t length = st_utf8_repair(cases[i].text, n, out);
        assert_string_equal(out, cases[i].repaired);
        assert_int_equal(length, strlen(cases[i].repaired));
    }
    char out[8];
    assert_int_equal(st_utf8_repair("a\0b", 3, out), 3);
    assert_memory_equal(out, "a\0b", 4);
}

static void incomplete_tails(void **state)
{
    (void)state;
    assert_int_equal(st_utf8_incomplete_tail("", 0), 0);
    assert_int_equal(st_utf8_incomplete_tail("ab\xe2", 3), 1);
    assert_int_equal(st_utf8_incomplete_tail("ab\xe2\x82", 4), 2);
    assert_int_equal(st_utf8_incomplete_tail("\xf0\x9f\x98", 3), 3);
    assert_int_equal(st_utf8_incomplete_tail("a\xf0\x9f\x98\x80", 5), 0);
    assert_int_equal(st_utf8_incomplete_tail("ab\x82", 3), 0);   /* begins nothing */
    assert_int_equal(st_utf8_incomplete_tail("\xe0\x80", 2), 0); /* never to become valid */
    assert_int_equal(st_utf8_incomplete_tail("\xc3\xa9\xc3", 3), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_character),
        cmocka_unit_test(every_pair_of_bytes),
        cmocka_unit_test(whole_texts),
        cmocka_unit_test(incomplete_tails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
