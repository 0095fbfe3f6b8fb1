/* sink.h: text that goes to a caller piece by piece. */
#ifndef SOTTO_SRC_RUNTIME_SINK_H
#define SOTTO_SRC_RUNTIME_SINK_H

#include <stddef.h>

#include "sotto/base.h"

typedef struct st_sink {
    void (*write)(void *user, const char *text, size_t n);
    void *user;
} st_sink;

/* At most 511 bytes; what is longer is cut. */
void st_put(const st_sink *s, const char *fmt, ...) SOTTO_PRINTF(2, 3);

#endif
