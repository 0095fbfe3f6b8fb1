/* text.h: growing text with a sticky error, strict UTF-8, and the escapers of the output formats. */
#ifndef SOTTO_PROGRAMS_TEXT_H
#define SOTTO_PROGRAMS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cli_text {
    char *data; /* always ends with a zero byte once anything was added; NULL when empty */
    size_t size, capacity;
    bool failed; /* no memory; everything added after is dropped */
} cli_text;

void cli_text_free(cli_text *t);
void cli_text_add(cli_text *t, const char *data, size_t n);
void cli_text_puts(cli_text *t, const char *text);
void cli_text_printf(cli_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A number of things, as "1 token", "2 tokens"; for use within one expression. */
typedef struct cli_counted {
    char text[48];
} cli_counted;
cli_counted cli_count(int64_t n, const char *one);

/* Length in bytes of the well-formed character at s (1..4), or 0: malformed or cut, when *bad gets how many bytes to
 * replace by one U+FFFD (as the Unicode standard recommends: the longest start of a well-formed sequence). */
size_t cli_utf8_length(const char *s, size_t n, size_t *bad);
/* True when the n bytes at s may be the beginning of a longer well-formed character. */
bool cli_utf8_is_start(const char *s, size_t n);

/* The bytes as valid UTF-8: what is malformed becomes U+FFFD. */
void cli_text_utf8(cli_text *t, const char *s, size_t n);
/* A JSON string with its quotes, from any bytes; the one escaper of all strings. */
void cli_text_json(cli_text *t, const char *s, size_t n);
/* A JSON number with at most `digits` decimals; null for what is not finite. */
void cli_text_json_number(cli_text *t, double v, int digits);
/* One line: surrounding spaces removed, line breaks, tabs and other control characters made spaces. */
void cli_text_line(cli_text *t, const char *s, size_t n);

#endif
