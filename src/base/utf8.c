/* utf8.c: one scanner (Unicode 15, table 3-7: well-formed byte sequences) that everything here uses. */
#include "base/utf8.h"

#include <string.h>

/* Looks at one character. *used gets the bytes that belong together: all of a valid one, else the longest beginning of a
 * valid one, at least 1 if n > 0. The result is st_utf8_next's. */
static int scan(const uint8_t *s, size_t n, uint32_t *code, size_t *used)
{
    *used = n > 0;
    if (n == 0)
        return -1;
    const uint8_t lead = s[0];
    if (lead < 0x80) {
        *code = lead;
        return 1;
    }
    if (lead < 0xc2 || lead > 0xf4)
        return 0;
    const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    /* the second byte's range excludes overlong forms, surrogates and values above U+10FFFF */
    const uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    uint32_t value = lead & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (i == n)
            return -1;
        if (s[i] < (i == 1 ? low : 0x80) || s[i] > (i == 1 ? high : 0xbf))
            return 0;
        value = value << 6 | (s[i] & 0x3fu);
        *used = i + 1;
    }
    *code = value;
    return (int)length;
}

int st_utf8_next(const uint8_t *s, size_t n, uint32_t *code)
{
    uint32_t value = 0;
    size_t used;
    const int length = scan(s, n, &value, &used);
    if (code)
        *code = value;
    return length;
}

bool st_utf8_valid(const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        const int length = st_utf8_next((const uint8_t *)s + i, n - i, NULL);
        if (length <= 0)
            return false;
        i += (size_t)length;
    }
    return true;
}

size_t st_utf8_incomplete_tail(const char *s, size_t n)
{
    for (size_t back = n < 3 ? n : 3; back > 0; back--)
        if (st_utf8_next((const uint8_t *)s + n - back, back, NULL) < 0)
            return back;
    return 0;
}

size_t st_utf8_repair(const char *s, size_t n, char *out)
{
    size_t at = 0;
    for (size_t i = 0; i < n;) {
        uint32_t code;
        size_t used;
        if (scan((const uint8_t *)s + i, n - i, &code, &used) > 0) {
            memcpy(out + at, s + i, used);
            at += used;
        } else {
            at += st_utf8_put(0xfffd, out + at);
        }
        i += used;
    }
    out[at] = 0;
    return at;
}

size_t st_utf8_put(uint32_t code, char *out)
{
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        code = 0xfffd;
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    const size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(uint8_t)((0xf00u >> length) | code);
    return length;
}
