/* text.c: growing text, UTF-8 and JSON. Contract: text.h. */
#include "text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cli_text_free(cli_text *t)
{
    free(t->data);
    *t = (cli_text){0};
}

void cli_text_add(cli_text *t, const char *data, size_t n)
{
    if (t->failed)
        return;
    if (n >= SIZE_MAX / 2 - t->size) {
        t->failed = true;
        return;
    }
    if (t->size + n + 1 > t->capacity) {
        size_t capacity = t->capacity ? t->capacity : 256;
        while (capacity < t->size + n + 1)
            capacity *= 2;
        char *grown = realloc(t->data, capacity);
        if (!grown) {
            t->failed = true;
            return;
        }
        t->data = grown;
        t->capacity = capacity;
    }
    if (n)
        memcpy(t->data + t->size, data, n);
    t->size += n;
    t->data[t->size] = 0;
}

void cli_text_puts(cli_text *t, const char *text)
{
    cli_text_add(t, text, strlen(text));
}

void cli_text_printf(cli_text *t, const char *fmt, ...)
{
    char buffer[512];
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    const int n = vsnprintf(buffer, sizeof buffer, fmt, args);
    va_end(args);
    if (n < 0) {
        t->failed = true;
    } else if ((size_t)n < sizeof buffer) {
        cli_text_add(t, buffer, (size_t)n);
    } else {
        char *large = malloc((size_t)n + 1);
        if (large) {
            vsnprintf(large, (size_t)n + 1, fmt, again);
            cli_text_add(t, large, (size_t)n);
            free(large);
        } else {
            t->failed = true;
        }
    }
    va_end(again);
}

/* How many continuation bytes follow a first byte, and the range of the first of them (Unicode table 3-7); -1: none. */
static int lead(unsigned char c, unsigned char *low, unsigned char *high)
{
    *low = 0x80;
    *high = 0xBF;
    if (c < 0x80)
        return 0;
    if (c < 0xC2)
        return -1;
    if (c < 0xE0)
        return 1;
    if (c < 0xF0) {
        if (c == 0xE0)
            *low = 0xA0;
        if (c == 0xED)
            *high = 0x9F;
        return 2;
    }
    if (c < 0xF5) {
        if (c == 0xF0)
            *low = 0x90;
        if (c == 0xF4)
            *high = 0x8F;
        return 3;
    }
    return -1;
}

cli_counted cli_count(int64_t n, const char *one)
{
    cli_counted c;
    const size_t length = strlen(one);
    const bool is_matrix = strcmp(one, "matrix") == 0, hisses = length > 1 && strcmp(one + length - 2, "ss") == 0;
    const char *end = n == 1 ? "" : is_matrix ? "ces" : hisses ? "es" : "s";
    snprintf(c.text, sizeof c.text, "%lld %.*s%s", (long long)n, (int)length - (is_matrix && n != 1), one, end);
    return c;
}

size_t cli_utf8_length(const char *s, size_t n, size_t *bad)
{
    unsigned char low, high;
    *bad = 1;
    const int more = lead((unsigned char)s[0], &low, &high);
    if (more < 0)
        return 0;
    for (int i = 1; i <= more; i++) {
        *bad = (size_t)i;
        if ((size_t)i >= n || (unsigned char)s[i] < low || (unsigned char)s[i] > high)
            return 0;
        low = 0x80;
        high = 0xBF;
    }
    return (size_t)more + 1;
}

bool cli_utf8_is_start(const char *s, size_t n)
{
    unsigned char low, high;
    if (n == 0)
        return true;
    const int more = lead((unsigned char)s[0], &low, &high);
    if (more < 0 || n > (size_t)more)
        return false;
    for (size_t i = 1; i < n; i++) {
        if ((unsigned char)s[i] < low || (unsigned char)s[i] > high)
            return false;
        low = 0x80;
        high = 0xBF;
    }
    return true;
}

void cli_text_utf8(cli_text *t, const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t bad;
        const size_t length = cli_utf8_length(s + i, n - i, &bad);
        if (length)
            cli_text_add(t, s + i, length);
        else
            cli_text_puts(t, "\xEF\xBF\xBD");
        i += length ? length : bad;
    }
}

void cli_text_json(cli_text *t, const char *s, size_t n)
{
    static const char escaped[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    cli_text_puts(t, "\"");
    for (size_t i = 0; i < n;) {
        size_t bad;
        const size_t length = cli_utf8_length(s + i, n - i, &bad);
        const char *special = s[i] ? strchr(escaped, s[i]) : NULL;
        if (special)
            cli_text_printf(t, "\\%c", letter[special - escaped]);
        else if ((unsigned char)s[i] < 0x20 || s[i] == 0x7F)
            cli_text_printf(t, "\\u%04x", (unsigned)s[i]);
        else if (length == 3 && memcmp(s + i, "\xE2\x80\xA8", 3) == 0) /* line ends to JavaScript */
            cli_text_puts(t, "\\u2028");
        else if (length == 3 && memcmp(s + i, "\xE2\x80\xA9", 3) == 0)
            cli_text_puts(t, "\\u2029");
        else if (length)
            cli_text_add(t, s + i, length);
        else
            cli_text_puts(t, "\\ufffd");
        i += length ? length : bad;
    }
    cli_text_puts(t, "\"");
}

void cli_text_json_number(cli_text *t, double v, int digits)
{
    if (!isfinite(v)) {
        cli_text_puts(t, "null");
        return;
    }
    char buffer[400];
    int n = snprintf(buffer, sizeof buffer, "%.*f", digits, v);
    if (n < 0 || (size_t)n >= sizeof buffer) {
        cli_text_puts(t, "null");
        return;
    }
    if (strchr(buffer, '.')) { /* 7.940000 is 7.94, 3.000 is 3.0 */
        while (buffer[n - 1] == '0' && buffer[n - 2] != '.')
            n--;
    }
    cli_text_add(t, buffer, (size_t)n);
}

static bool is_blank(char c)
{
    return (unsigned char)c <= 0x20 || c == 0x7F;
}

void cli_text_line(cli_text *t, const char *s, size_t n)
{
    while (n && is_blank(s[0]))
        s++, n--;
    while (n && is_blank(s[n - 1]))
        n--;
    size_t from = 0;
    for (size_t i = 0; i < n; i++)
        if (s[i] != ' ' && is_blank(s[i])) {
            cli_text_utf8(t, s + from, i - from);
            cli_text_puts(t, " ");
            from = i + 1;
        }
    cli_text_utf8(t, s + from, n - from);
}
