#include "models/whisper/results.h"

#include <math.h>
#include <string.h>

#include "base/status.h"
#include "base/utf8.h"

void st_results_free(st_results *r)
{
    st_arena_free(r->arena);
    st_free(r->segments);
    *r = (st_results){0};
}

sotto_status st_results_reset(st_results *r, sotto_error *err)
{
    st_arena_free(r->arena);
    r->count = 0;
    r->last_stop = 0;
    r->arena = st_arena_create();
    return r->arena ? SOTTO_OK : st_fail_memory(err, sizeof *r, "the results");
}

/* Inside what is heard, after the segment before, and with a length where text and time allow. */
static void place(const st_results *r, const st_slice *slice, double limit, sotto_whisper_segment *s)
{
    const double first = fmax(r->last_stop, s->seek); /* the first window may begin at an offset */
    s->end = fmax(fmin(slice->stop, limit), first);
    s->start = fmax(slice->start, first);
    if (s->start > s->end || (s->start == s->end && slice->start < slice->stop))
        s->start = first < s->end ? fmax(first, s->end - (slice->stop - slice->start)) : s->end;
}

static sotto_status copy_tokens(st_results *r, const st_slicer *slicer, const st_slice *slice,
                                const st_decode_result *window, sotto_whisper_segment *s, sotto_error *err)
{
    const int n = slice->end - slice->first;
    sotto_whisper_token *tokens = st_arena_alloc(r->arena, (size_t)n * sizeof *tokens);
    if (!tokens)
        return st_fail_memory(err, (uint64_t)n * sizeof *tokens, "a segment");
    for (int i = 0; i < n; i++) {
        const int at = slice->first + i;
        sotto_whisper_token *t = &tokens[i];
        t->id = window->tokens[at];
        t->logprob = window->logprobs[at];
        t->probability = expf(t->logprob);
        t->start = s->start;
        t->end = s->end;
        t->bytes = st_vocab_bytes(slicer->vocab, t->id, &t->n_bytes);
    }
    s->tokens = tokens;
    s->n_tokens = n;
    return SOTTO_OK;
}

static sotto_status copy_text(st_results *r, const st_slicer *slicer, const st_slice *slice, sotto_whisper_segment *s,
                              sotto_error *err)
{
    const char *bytes = slicer->bytes + slice->text_first;
    const size_t n = slice->text_end - slice->text_first, size = st_utf8_valid(bytes, n) ? n + 1 : 3 * n + 1;
    char *text = st_arena_alloc(r->arena, size);
    if (!text)
        return st_fail_memory(err, size, "a segment");
    if (size == n + 1)
        memcpy(text, bytes, n);
    s->n_text = size == n + 1 ? n : st_utf8_repair(bytes, n, text);
    s->text = text;
    return SOTTO_OK;
}

sotto_status st_results_add(st_results *r, const st_slicer *slicer, const st_slice *slice,
                            const st_decode_result *window, int64_t seek, double limit, const char *language,
                            const sotto_whisper_segment **out, sotto_error *err)
{
    sotto_whisper_segment *s = st_arena_alloc(r->arena, sizeof *s);
    if (!s || !st_grow(&r->segments, &r->capacity, r->count + 1, sizeof *r->segments))
        return st_fail_memory(err, sizeof *s, "a segment");
    s->id = r->count;
    s->seek = (double)seek / 100;
    s->temperature = window->temperature;
    s->avg_logprob = window->avg_logprob;
    s->compression_ratio = window->compression_ratio;
    s->no_speech_probability = window->no_speech_prob;
    s->language = language;
    place(r, slice, limit, s);
    ST_TRY(copy_tokens(r, slicer, slice, window, s, err));
    ST_TRY(copy_text(r, slicer, slice, s, err));
    r->segments[r->count++] = s;
    r->last_stop = s->end;
    *out = s;
    return SOTTO_OK;
}
