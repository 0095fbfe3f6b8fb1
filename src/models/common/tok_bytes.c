/* tok_bytes.c: how tokens spell bytes. */
#include <string.h>

#include "base/utf8.h"
#include "models/common/tokenizer_impl.h"

/* Printable bytes of Latin-1 are themselves; the others, in order, are the characters from U+0100 on. */
uint32_t st_byte_to_code(uint8_t byte)
{
    if (byte <= 0x20)
        return 0x100u + byte;
    if (byte >= 0x7f && byte <= 0xa0)
        return 0x100u + 0x21u + (byte - 0x7fu);
    return byte == 0xad ? 0x143u : byte;
}

int st_code_to_byte(uint32_t code)
{
    if (code >= 0x144)
        return -1;
    if (code >= 0x100)
        return code <= 0x120 ? (int)(code - 0x100) : code <= 0x142 ? (int)(code - 0x121 + 0x7f) : 0xad;
    return st_byte_to_code((uint8_t)code) == code ? (int)code : -1;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

int st_byte_token(const char *spelling, size_t n)
{
    if (n != 6 || memcmp(spelling, "<0x", 3) != 0 || spelling[5] != '>')
        return -1;
    const int high = hex_digit(spelling[3]), low = hex_digit(spelling[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

size_t st_repair_bytes(const char *text, size_t n, char *out)
{
    size_t at = 0;
    for (size_t i = 0; i < n;) {
        const int length = st_utf8_next((const uint8_t *)text + i, n - i, NULL);
        if (length > 0) {
            memcpy(out + at, text + i, (size_t)length);
            at += (size_t)length;
            i += (size_t)length;
        } else {
            at += st_utf8_put(0xfffd, out + at);
            i++;
        }
    }
    return at;
}

size_t st_escape_spaces(const char *text, size_t n, char *out)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        if (text[i] == ' ')
            at += st_utf8_put(0x2581, out + at);
        else
            out[at++] = text[i];
    return at;
}

size_t st_unescape_spaces(const char *text, size_t n, char *out)
{
    size_t at = 0;
    if (!memchr(text, '\xe2', n)) {
        memcpy(out, text, n);
        return n;
    }
    for (size_t i = 0; i < n; i++)
        if (n - i >= 3 && memcmp(text + i, "\u2581", 3) == 0) {
            out[at++] = ' ';
            i += 2;
        } else {
            out[at++] = text[i];
        }
    return at;
}
