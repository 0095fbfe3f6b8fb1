#include "models/common/text_stream.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/utf8.h"

typedef struct stop_text {
    char *text;
    size_t n;
} stop_text;

struct st_text_stream {
    const st_tokenizer *tokenizer;
    stop_text *stop;
    int n_stop, stopped;
    bool special, whole, begun, finished;
    char raw[4]; /* the beginning of a character */
    size_t n_raw;
    char *bytes; /* of a token, behind what was in raw */
    int64_t bytes_capacity;
    char *held; /* text that has been shown by now, and what follows it */
    int64_t held_capacity, n_shown, n_held;
};

sotto_status st_text_stream_create(const st_tokenizer *t, const st_text_stream_options *options, st_text_stream **out,
                                   sotto_error *err)
{
    static const st_text_stream_options none;
    if (!options)
        options = &none;
    *out = NULL;
    st_text_stream *s = st_calloc(1, sizeof *s);
    if (!s)
        return st_fail_memory(err, sizeof *s, "a stream of text");
    s->tokenizer = t;
    s->stopped = -1;
    s->special = options->special;
    s->whole = options->whole && st_tokenizer_ids(t).add_space_prefix;
    const int n = options->n_stop > 0 ? options->n_stop : 0;
    sotto_status status = SOTTO_OK;
    s->stop = st_calloc((size_t)n + 1, sizeof *s->stop);
    if (!s->stop)
        status = st_fail_memory(err, ((size_t)n + 1) * sizeof *s->stop, "stop strings");
    for (int i = 0; i < n && status == SOTTO_OK; i++) {
        const char *text = options->stop[i];
        if (!text || !text[0] || !st_utf8_valid(text, strlen(text))) {
            status = st_fail(err, SOTTO_E_ARGUMENT, "stop string %d is %s, expected a text in UTF-8", i + 1,
                             text && text[0] ? "not UTF-8" : "empty");
            break;
        }
        s->stop[i].text = st_strdup(text);
        if (!s->stop[i].text) {
            status = st_fail_memory(err, strlen(text) + 1, "a stop string");
            break;
        }
        s->stop[i].n = strlen(text);
        s->n_stop++;
    }
    if (status != SOTTO_OK) {
        st_text_stream_free(s);
        return status;
    }
    *out = s;
    return SOTTO_OK;
}

void st_text_stream_free(st_text_stream *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n_stop; i++)
        st_free(s->stop[i].text);
    st_free(s->stop);
    st_free(s->bytes);
    st_free(s->held);
    st_free(s);
}

int st_text_stream_stopped(const st_text_stream *s)
{
    return s->stopped;
}

/* Bytes from before and n new ones become characters behind what is held. With `last` nothing is waited for. */
static bool take(st_text_stream *s, const char *bytes, size_t n, bool last)
{
    const size_t total = s->n_raw + n;
    if (!st_grow(&s->bytes, &s->bytes_capacity, (int64_t)total + 1, 1) ||
        !st_grow(&s->held, &s->held_capacity, s->n_held + 3 * (int64_t)total + 1, 1))
        return false;
    memcpy(s->bytes, s->raw, s->n_raw);
    if (n > 0)
        memcpy(s->bytes + s->n_raw, bytes, n);
    const size_t tail = last ? 0 : st_utf8_incomplete_tail(s->bytes, total);
    s->n_held += (int64_t)st_utf8_repair(s->bytes, total - tail, s->held + s->n_held);
    memcpy(s->raw, s->bytes + total - tail, tail);
    s->n_raw = tail;
    return true;
}

/* Where the first stop string begins in what is held; n_held when there is none. */
static int64_t find_stop(st_text_stream *s)
{
    for (int64_t at = 0; at < s->n_held; at++)
        for (int i = 0; i < s->n_stop; i++)
            if ((int64_t)s->stop[i].n <= s->n_held - at && memcmp(s->held + at, s->stop[i].text, s->stop[i].n) == 0) {
                s->stopped = i;
                return at;
            }
    return s->n_held;
}

/* Where the first text begins that may become a stop string. */
static int64_t find_beginning(const st_text_stream *s)
{
    for (int64_t at = 0; at < s->n_held; at++)
        for (int i = 0; i < s->n_stop; i++) {
            const int64_t left = s->n_held - at;
            if (left < (int64_t)s->stop[i].n && memcmp(s->held + at, s->stop[i].text, (size_t)left) == 0)
                return at;
        }
    return s->n_held;
}

/* Drops what was shown by the last call. */
static void settle(st_text_stream *s)
{
    if (s->n_shown > 0)
        memmove(s->held, s->held + s->n_shown, (size_t)(s->n_held - s->n_shown));
    s->n_held -= s->n_shown;
    s->n_shown = 0;
    if (s->finished) {
        s->finished = s->begun = false;
        s->stopped = -1;
    }
}

static sotto_status show(st_text_stream *s, bool last, const char **text, size_t *n, sotto_error *err)
{
    const int64_t stop = find_stop(s);
    if (s->stopped >= 0) {
        s->n_held = stop;
        s->n_raw = 0;
    }
    s->n_shown = s->stopped >= 0 || last ? s->n_held : find_beginning(s);
    /* the text is given with a zero behind it, so what is held back moves one byte along */
    if (!st_grow(&s->bytes, &s->bytes_capacity, s->n_shown + 1, 1)) {
        s->n_shown = 0;
        return st_fail_memory(err, (uint64_t)s->n_held, "a text");
    }
    if (s->n_shown > 0)
        memcpy(s->bytes, s->held, (size_t)s->n_shown);
    s->bytes[s->n_shown] = 0;
    *text = s->bytes;
    *n = (size_t)s->n_shown;
    return SOTTO_OK;
}

sotto_status st_text_stream_push(st_text_stream *s, int32_t id, const char **text, size_t *n, sotto_error *err)
{
    size_t length;
    const char *bytes = st_tokenizer_bytes(s->tokenizer, id, s->special, &length);
    *text = "";
    *n = 0;
    settle(s);
    if (s->stopped >= 0)
        return SOTTO_OK;
    if (!s->begun && length > 0) {
        s->begun = true;
        if (s->whole && bytes[0] == ' ') {
            bytes++;
            length--;
        }
    }
    if (!take(s, bytes, length, false))
        return st_fail_memory(err, length, "a text");
    return show(s, false, text, n, err);
}

sotto_status st_text_stream_finish(st_text_stream *s, const char **text, size_t *n, sotto_error *err)
{
    *text = "";
    *n = 0;
    settle(s);
    if (s->stopped < 0) {
        if (!take(s, "", 0, true))
            return st_fail_memory(err, s->n_raw, "a text");
        ST_TRY(show(s, true, text, n, err));
    }
    s->finished = true;
    s->n_shown = s->n_held;
    s->n_raw = 0;
    return SOTTO_OK;
}
