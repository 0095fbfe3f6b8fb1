/* status.h: making and passing errors inside the library. */
#ifndef SOTTO_SRC_BASE_STATUS_H
#define SOTTO_SRC_BASE_STATUS_H

#include <stdarg.h>

#include "sotto/base.h"

/* Notes code and sentence in err (may be NULL) and returns code. */
sotto_status st_fail(sotto_error *err, sotto_status code, const char *fmt, ...) SOTTO_PRINTF(3, 4);
sotto_status st_vfail(sotto_error *err, sotto_status code, const char *fmt, va_list args) SOTTO_PRINTF(3, 0);
/* Puts "prefix: " before the sentence in err, for a caller that knows the file or the tensor. Returns err's code. */
sotto_status st_fail_context(sotto_error *err, sotto_status code, const char *fmt, ...) SOTTO_PRINTF(3, 4);
/* SOTTO_E_MEMORY with the number of bytes and what they were for. */
sotto_status st_fail_memory(sotto_error *err, uint64_t bytes, const char *what);

#define ST_TRY(expr)                         \
    do {                                     \
        const sotto_status st_try_ = (expr); \
        if (st_try_ != SOTTO_OK)             \
            return st_try_;                  \
    } while (0)

void st_log(const sotto_logger *logger, sotto_log_level level, const char *fmt, ...) SOTTO_PRINTF(3, 4);

#endif
