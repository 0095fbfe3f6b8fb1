/* utf8.h: checking and repairing UTF-8. */
#ifndef SOTTO_SRC_BASE_UTF8_H
#define SOTTO_SRC_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the valid character at s (1..4), 0 when the bytes can never become one, -1 when n ends inside one that could.
 * Overlong forms, surrogates and values above U+10FFFF are invalid. *code gets the character (may be NULL). */
int st_utf8_next(const uint8_t *s, size_t n, uint32_t *code);
bool st_utf8_valid(const char *s, size_t n);
/* Bytes at the end of s that begin a character which is not complete yet: 0..3. */
size_t st_utf8_incomplete_tail(const char *s, size_t n);
/* Copy with U+FFFD in the place of what is invalid, one for each longest beginning of a valid character or else each byte, as
 * Python's errors="replace" has it. out must hold 3 * n + 1 bytes. Returns the length; terminates. */
size_t st_utf8_repair(const char *s, size_t n, char *out);
/* Writes code to out (at most 4 bytes, not terminated), returns the number of bytes. What is no character becomes U+FFFD. */
size_t st_utf8_put(uint32_t code, char *out);

#endif
