/* status.c: the sentences of errors. Text is cut to what fits and is always valid UTF-8, whatever a path held. */
#include "base/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define TEXT_OF_(x) #x
#define TEXT_OF(x) TEXT_OF_(x)

const char *sotto_version(void)
{
    return TEXT_OF(SOTTO_VERSION_MAJOR) "." TEXT_OF(SOTTO_VERSION_MINOR) "." TEXT_OF(SOTTO_VERSION_PATCH);
}

const char *sotto_status_name(sotto_status status)
{
    static const char *const names[] = {"ok",     "argument", "io",        "format",   "memory", "unsupported",
                                        "device", "aborted",  "not found", "internal", "full"};
    const int count = (int)(sizeof names / sizeof names[0]), code = (int)status;
    return code <= 0 && code > -count ? names[-code] : "unknown";
}

/* Drops a character that the cut left incomplete, and puts '?' for bytes that are no UTF-8. */
static void make_valid(char *text)
{
    uint8_t *const s = (uint8_t *)text;
    size_t n = strlen(text);
    n -= st_utf8_incomplete_tail(text, n);
    text[n] = 0;
    for (size_t i = 0; i < n;) {
        const int length = st_utf8_next(s + i, n - i, NULL);
        if (length <= 0)
            s[i++] = '?';
        else
            i += (size_t)length;
    }
}

sotto_status st_vfail(sotto_error *err, sotto_status code, const char *fmt, va_list args)
{
    if (err) {
        err->code = code;
        vsnprintf(err->text, sizeof err->text, fmt, args);
        make_valid(err->text);
    }
    return code;
}

sotto_status st_fail(sotto_error *err, sotto_status code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    st_vfail(err, code, fmt, args);
    va_end(args);
    return code;
}

sotto_status st_fail_context(sotto_error *err, sotto_status code, const char *fmt, ...)
{
    if (!err)
        return code;
    char before[sizeof err->text];
    memcpy(before, err->text, sizeof before);
    before[sizeof before - 1] = 0;
    va_list args;
    va_start(args, fmt);
    st_vfail(err, code, fmt, args);
    va_end(args);
    const size_t n = strlen(err->text);
    snprintf(err->text + n, sizeof err->text - n, ": %s", before);
    make_valid(err->text);
    return code;
}

sotto_status st_fail_memory(sotto_error *err, uint64_t bytes, const char *what)
{
    return st_fail(err, SOTTO_E_MEMORY, "no memory: %" PRIu64 " bytes for %s", bytes, what);
}

void st_log(const sotto_logger *logger, sotto_log_level level, const char *fmt, ...)
{
    if (!logger || !logger->write)
        return;
    char text[1000];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    make_valid(text);
    logger->write(logger->user, level, text);
}
