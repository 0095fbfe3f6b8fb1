/* json_schema_text.c: writing GBNF. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "models/common/json_schema_impl.h"

void st_text_bytes(st_text *t, const char *bytes, size_t n)
{
    if (t->failed || !st_grow(&t->p, &t->capacity, t->n + (int64_t)n + 1, 1)) {
        t->failed = true;
        return;
    }
    memcpy(t->p + t->n, bytes, n);
    t->n += (int64_t)n;
    t->p[t->n] = 0;
}

void st_text_add(st_text *t, const char *fmt, ...)
{
    char line[200];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    st_text_bytes(t, line, n < 0 ? 0 : n < (int)sizeof line ? (size_t)n : sizeof line - 1);
}

void st_text_gbnf(st_text *t, uint32_t code)
{
    char utf8[4];
    if (code < 0x20 || code == 0x7f)
        st_text_add(t, "\\x%02x", (unsigned)code);
    else if (code < 0x80 && strchr("\"\\[]^-", (int)code))
        st_text_add(t, "\\%c", (int)code);
    else if (code < 0x80)
        st_text_add(t, "%c", (int)code);
    else if (code >= 0xd800 && code <= 0xdfff)
        st_text_add(t, "\\U%08X", (unsigned)(code < 0xdc00 ? 0xd7ff : 0xe000)); /* ends of ranges only */
    else
        st_text_bytes(t, utf8, st_utf8_put(code, utf8));
}

void st_text_literal(st_text *t, const char *bytes, size_t n)
{
    st_text_add(t, "\"");
    for (size_t i = 0; i < n;) {
        uint32_t code;
        const int length = st_utf8_next((const uint8_t *)bytes + i, n - i, &code);
        st_text_gbnf(t, length > 0 ? code : 0xfffd);
        i += length > 0 ? (size_t)length : 1;
    }
    st_text_add(t, "\"");
}

void st_text_free(st_text *t)
{
    st_free(t->p);
    *t = (st_text){0};
}
