#include "runtime/sink.h"

#include <stdarg.h>
#include <stdio.h>

void st_put(const st_sink *s, const char *fmt, ...)
{
    char line[512];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (n > 0)
        s->write(s->user, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}
