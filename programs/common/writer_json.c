/* writer_json.c: JSON with the keys of the original's writer (text, segments, language) and some more; json-full adds
 * every token, the model, times and memory. Every key is always there; what is unknown is null. */
#include "common/writers.h"

#include <string.h>

static void key(cli_text *out, const char *indent, const char *name)
{
    cli_text_printf(out, "%s\"%s\": ", indent, name);
}

static void string_or_null(cli_text *out, const char *s)
{
    if (s)
        cli_text_json(out, s, strlen(s));
    else
        cli_text_puts(out, "null");
}

static void number(cli_text *out, const char *indent, const char *name, double v, int digits, const char *after)
{
    key(out, indent, name);
    cli_text_json_number(out, v, digits);
    cli_text_puts(out, after);
}

static void integer(cli_text *out, const char *indent, const char *name, long long v, const char *after)
{
    cli_text_printf(out, "%s\"%s\": %lld%s", indent, name, v, after);
}

/* A token's own bytes may be part of a character. The part waits in `pending` for the tokens that complete it, so that the
 * joined texts are valid and whole; what nothing completes becomes U+FFFD. */
static void token_text(cli_text *out, cli_text *pending, const sotto_whisper_token *token, bool last)
{
    cli_text_add(pending, token->bytes ? token->bytes : "", token->n_bytes);
    size_t ready = pending->size;
    if (!last)
        for (size_t back = 1; back <= 3 && back <= pending->size; back++)
            if (cli_utf8_is_start(pending->data + pending->size - back, back))
                ready = pending->size - back;
    cli_text_json(out, pending->data ? pending->data : "", ready);
    if (ready < pending->size)
        memmove(pending->data, pending->data + ready, pending->size - ready);
    pending->size -= ready;
}

static void token_details(cli_text *out, const sotto_whisper_segment *s)
{
    cli_text pending = {0};
    cli_text_puts(out, ",\n      \"token_details\": [");
    for (int64_t i = 0; i < s->n_tokens; i++) {
        const sotto_whisper_token *token = &s->tokens[i];
        cli_text_printf(out, "%s\n        {\"id\": %d, \"text\": ", i ? "," : "", (int)token->id);
        token_text(out, &pending, token, i + 1 == s->n_tokens);
        number(out, ", ", "p", (double)token->probability, 6, "");
        number(out, ", ", "logprob", (double)token->logprob, 6, "");
        number(out, ", ", "start", token->start, 3, "");
        number(out, ", ", "end", token->end, 3, "}");
    }
    cli_text_puts(out, s->n_tokens ? "\n      ]" : "]");
    out->failed = out->failed || pending.failed;
    cli_text_free(&pending);
}

static void segment(cli_text *out, const sotto_whisper_segment *s, bool full)
{
    static const char in[] = "      ";
    cli_text_puts(out, "    {\n");
    integer(out, in, "id", s->id, ",\n");
    /* Hundredths of a second, as the original's frames. */
    integer(out, in, "seek", (long long)(s->seek * 100 + 0.5), ",\n");
    number(out, in, "start", s->start, 3, ",\n");
    number(out, in, "end", s->end, 3, ",\n");
    key(out, in, "text");
    cli_text_json(out, s->text, s->n_text);
    cli_text_puts(out, ",\n      \"tokens\": [");
    for (int64_t i = 0; i < s->n_tokens; i++)
        cli_text_printf(out, "%s%d", i ? ", " : "", (int)s->tokens[i].id);
    cli_text_puts(out, "],\n");
    number(out, in, "temperature", (double)s->temperature, 3, ",\n");
    number(out, in, "avg_logprob", (double)s->avg_logprob, 6, ",\n");
    number(out, in, "compression_ratio", (double)s->compression_ratio, 6, ",\n");
    number(out, in, "no_speech_prob", (double)s->no_speech_probability, 9, ",\n");
    key(out, in, "language");
    string_or_null(out, s->language);
    if (full)
        token_details(out, s);
    cli_text_puts(out, "\n    }");
}

static double megabytes(uint64_t bytes)
{
    return (double)bytes / 1e6;
}

static void about_run(cli_text *out, const cli_transcript *t)
{
    cli_text_puts(out, ",\n  \"model\": {\"name\": ");
    string_or_null(out, t->model);
    cli_text_puts(out, ", \"size\": ");
    string_or_null(out, t->model_size);
    cli_text_puts(out, ", \"format\": ");
    string_or_null(out, t->model_format);
    cli_text_puts(out, "}");
    const sotto_whisper_timings *m = t->timings;
    if (!m) {
        cli_text_puts(out, ",\n  \"timings\": null,\n  \"memory_mb\": null");
        return;
    }
    cli_text_puts(out, ",\n  \"timings\": {");
    number(out, "", "load_s", m->load_s, 4, ", ");
    number(out, "", "mel_s", m->mel_s, 4, ", ");
    number(out, "", "encode_s", m->encode_s, 4, ", ");
    number(out, "", "prompt_s", m->prompt_s, 4, ", ");
    number(out, "", "decode_s", m->decode_s, 4, ", ");
    number(out, "", "total_s", m->total_s, 4, ", ");
    integer(out, "", "windows", m->n_encode, ", ");
    integer(out, "", "prompts", m->n_prompt, ", ");
    integer(out, "", "steps", m->n_decode, ", ");
    integer(out, "", "fallbacks", m->n_fallback, "},\n  \"memory_mb\": {");
    number(out, "", "weights", megabytes(m->weight_bytes), 3, ", ");
    number(out, "", "self_cache", megabytes(m->self_cache_bytes), 3, ", ");
    number(out, "", "cross_cache", megabytes(m->cross_cache_bytes), 3, ", ");
    number(out, "", "compute_mel", megabytes(m->mel_bytes), 3, ", ");
    number(out, "", "compute_encode", megabytes(m->encode_bytes), 3, ", ");
    number(out, "", "compute_decode", megabytes(m->decode_bytes), 3, "}");
}

static void document(cli_text *out, const cli_transcript *t, bool full)
{
    cli_text joined = {0};
    for (size_t i = 0; i < t->n_segments; i++)
        cli_text_add(&joined, t->segments[i]->text, t->segments[i]->n_text);
    cli_text_puts(out, "{\n  \"text\": ");
    cli_text_json(out, joined.data ? joined.data : "", joined.size);
    out->failed = out->failed || joined.failed;
    cli_text_free(&joined);
    cli_text_puts(out, ",\n  \"segments\": [");
    for (size_t i = 0; i < t->n_segments; i++) {
        cli_text_puts(out, i ? ",\n" : "\n");
        segment(out, t->segments[i], full);
    }
    cli_text_puts(out, t->n_segments ? "\n  ],\n  \"language\": " : "],\n  \"language\": ");
    string_or_null(out, t->language);
    cli_text_puts(out, ",\n");
    number(out, "  ", "language_probability", t->language_probability, 6, ",\n");
    number(out, "  ", "duration", t->duration, 3, ",\n");
    key(out, "  ", "task");
    string_or_null(out, t->task);
    cli_text_puts(out, ",\n  \"audio\": ");
    string_or_null(out, t->audio);
    if (full)
        about_run(out, t);
    cli_text_puts(out, "\n}\n");
}

static void write_json(cli_text *out, const cli_transcript *t)
{
    document(out, t, false);
}

static void write_json_full(cli_text *out, const cli_transcript *t)
{
    document(out, t, true);
}

const cli_writer cli_writer_json = {"json", "json", "text, segments and language", write_json};
const cli_writer cli_writer_json_full = {"json-full", "json", "the same with tokens, model, times and memory",
                                         write_json_full};
