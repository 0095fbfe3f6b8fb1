/* text_stream.h: tokens to text that can be shown at once: always whole, valid UTF-8 characters and never the beginning of a
 * stop string. What is not UTF-8 becomes U+FFFD as soon as it is certain (as st_utf8_repair has it). One thread at a time. */
#ifndef SOTTO_SRC_MODELS_COMMON_TEXT_STREAM_H
#define SOTTO_SRC_MODELS_COMMON_TEXT_STREAM_H

#include "models/common/tokenizer.h"

typedef struct st_text_stream st_text_stream;

typedef struct st_text_stream_options {
    const char *const *stop; /* copied; none may be empty */
    int n_stop;
    bool special; /* show the names of control tokens */
    /* The tokens are a text from its beginning: the space that encoding put before it is taken away again. */
    bool whole;
} st_text_stream_options;

/* The tokenizer must outlive the stream. options may be NULL. */
sotto_status st_text_stream_create(const st_tokenizer *t, const st_text_stream_options *options, st_text_stream **out,
                                   sotto_error *err);
void st_text_stream_free(st_text_stream *s);
/* What the token adds that can be shown now, *n bytes, terminated, valid until the next call. After a stop string nothing is
 * shown any more. */
sotto_status st_text_stream_push(st_text_stream *s, int32_t id, const char **text, size_t *n, sotto_error *err);
/* The rest; the stream is then ready for another text. */
sotto_status st_text_stream_finish(st_text_stream *s, const char **text, size_t *n, sotto_error *err);
/* Number of the stop string that has been met since the text began, -1: none. finish() leaves it until the next push. */
int st_text_stream_stopped(const st_text_stream *s);

#endif
