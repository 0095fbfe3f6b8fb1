/* answer.c: from a prompt to a text. Contract: answer.h. */
#include "common/answer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/outfile.h"

const char *cli_end_name(cli_end end)
{
    static const char *const names[] = {"end", "stop", "length", "context", "grammar", "interrupted"};
    return names[end];
}

sotto_status cli_answer_prompt(sotto_llama_session *session, const int32_t *ids, int64_t n, int64_t *n_new,
                               sotto_error *err)
{
    const int32_t *have = sotto_llama_seq_tokens(session, 0);
    const int64_t length = sotto_llama_seq_length(session, 0);
    int64_t same = 0;
    while (same < n && same < length && ids[same] == have[same])
        same++;
    same = same == n ? n - 1 : same; /* logits come with a token only */
    sotto_status status = sotto_llama_seq_truncate(session, 0, same, err);
    *n_new = n - same;
    return status == SOTTO_OK ? sotto_llama_decode_tokens(session, 0, ids + same, n - same, err) : status;
}

static bool keep_id(cli_answer *a, int32_t id)
{
    if (a->n_ids == a->capacity) {
        const int64_t capacity = a->capacity ? 2 * a->capacity : 256;
        int32_t *grown = realloc(a->ids, (size_t)capacity * sizeof *grown);
        if (!grown)
            return false;
        a->ids = grown;
        if (a->n_top > 0) {
            sotto_token_logprob *top = realloc(a->top, (size_t)capacity * (size_t)a->n_top * sizeof *top);
            if (!top)
                return false;
            a->top = top;
        }
        a->capacity = capacity;
    }
    a->ids[a->n_ids++] = id;
    return true;
}

static sotto_status show(cli_answer *a, const char *text, size_t n, sotto_error *err)
{
    if (n == 0)
        return SOTTO_OK;
    cli_text_add(&a->text, text, n);
    if (a->text.failed) {
        cli_fail(err, SOTTO_E_MEMORY, "out of memory");
        return SOTTO_E_MEMORY;
    }
    if (a->show && !a->show(a->user, text, n)) {
        cli_fail(err, SOTTO_E_IO, "cannot write to standard output: %s", strerror(errno));
        return SOTTO_E_IO;
    }
    return SOTTO_OK;
}

/* A control token has no text unless it is asked for; it also ends the characters before it. */
static sotto_status show_control(cli_answer *a, sotto_llama_text *stream, int32_t token, sotto_error *err)
{
    size_t n, plain;
    const char *bytes = sotto_llama_token_bytes(a->model, token, true, &n);
    sotto_llama_token_bytes(a->model, token, false, &plain);
    if (!a->special || plain > 0 || n == 0)
        return SOTTO_OK;
    const char *rest;
    size_t n_rest;
    sotto_status status = sotto_llama_text_finish(stream, &rest, &n_rest, err);
    if (status == SOTTO_OK)
        status = show(a, rest, n_rest, err);
    return status == SOTTO_OK ? show(a, bytes, n, err) : status;
}

/* The likeliest tokens where the last one was chosen; what is missing is -1. */
static sotto_status note_top(cli_answer *a, const float *logits, sotto_error *err)
{
    sotto_token_logprob *at = a->top + (a->n_ids - 1) * a->n_top;
    int count = 0;
    const sotto_status status = sotto_sampler_top(a->sampler, logits, a->n_top, at, &count, err);
    for (int i = count; i < a->n_top; i++)
        at[i] = (sotto_token_logprob){.token = -1};
    return status;
}

/* Whether the choice failed because the grammar's text is complete and the model may not end it; logits that are no numbers
 * are another failure. */
static bool grammar_is_over(const cli_answer *a, sotto_status status, const float *logits)
{
    sotto_llama_model_info info;
    sotto_llama_model_get_info(a->model, &info);
    if (status != SOTTO_E_ARGUMENT || !a->grammar || !sotto_sampler_may_end(a->sampler))
        return false;
    for (int i = 0; i < info.n_vocab; i++)
        if (!(logits[i] < INFINITY))
            return false;
    return true;
}

/* Chooses and shows one token. *over: the text has ended. */
static sotto_status next_token(cli_answer *a, sotto_llama_text *stream, int32_t *token, bool *over, sotto_error *err)
{
    const float *logits = sotto_llama_logits(a->session, -1);
    if (!logits) {
        cli_fail(err, SOTTO_E_INTERNAL, "the session has no logits");
        return SOTTO_E_INTERNAL;
    }
    sotto_status status = sotto_sampler_sample(a->sampler, logits, token, err);
    if (grammar_is_over(a, status, logits)) {
        a->end = CLI_END_GRAMMAR;
        *over = true;
        return SOTTO_OK;
    }
    if (status == SOTTO_E_ARGUMENT)
        return SOTTO_E_FORMAT; /* what the network gave is no wrong argument of the command */
    if (status == SOTTO_OK)
        status = sotto_sampler_accept(a->sampler, *token, err);
    if (status != SOTTO_OK)
        return status;
    if (sotto_llama_token_ends(a->model, *token)) {
        a->end = CLI_END_TOKEN;
        *over = true;
        return show_control(a, stream, *token, err);
    }
    if (!keep_id(a, *token)) {
        cli_fail(err, SOTTO_E_MEMORY, "out of memory");
        return SOTTO_E_MEMORY;
    }
    a->undecoded = true;
    if (a->n_top > 0)
        status = note_top(a, logits, err);
    if (status == SOTTO_OK)
        status = show_control(a, stream, *token, err);
    const char *text;
    size_t n;
    bool stopped = false;
    if (status == SOTTO_OK)
        status = sotto_llama_text_push(stream, *token, &text, &n, &stopped, err);
    if (status == SOTTO_OK)
        status = show(a, text, n, err);
    if (stopped) {
        a->end = CLI_END_STOP;
        *over = true;
    }
    return status;
}

/* Decodes the token; a full context is shifted when that was asked for. */
static sotto_status decode(cli_answer *a, int32_t token, sotto_error *err)
{
    sotto_status status = sotto_llama_decode_tokens(a->session, 0, &token, 1, err);
    if (status == SOTTO_E_FULL && a->shift) {
        const int64_t length = sotto_llama_seq_length(a->session, 0);
        const int64_t keep = a->keep < length ? a->keep : length, drop = (length - keep) / 2;
        if (drop < 1)
            return status;
        status = sotto_llama_seq_shift(a->session, 0, keep, drop, err);
        a->lost = status != SOTTO_OK && status != SOTTO_E_FULL;
        if (status == SOTTO_OK)
            status = sotto_llama_decode_tokens(a->session, 0, &token, 1, err);
        a->n_shifts++;
    }
    a->undecoded = status != SOTTO_OK;
    return status;
}

sotto_status cli_answer_write(cli_answer *a, sotto_error *err)
{
    sotto_llama_text *stream = NULL;
    sotto_status status = sotto_llama_text_create(a->model, a->stop ? a->stop->item : NULL,
                                                  a->stop ? (int)a->stop->count : 0, &stream, err);
    bool over = status != SOTTO_OK;
    const double start = cli_now();
    a->end = CLI_END_LENGTH;
    for (int64_t n = 0; !over && n != a->limit; n++) {
        int32_t token = -1;
        if (n > 0) {
            status = decode(a, a->ids[a->n_ids - 1], err);
            a->n_steps += status == SOTTO_OK;
            if (status == SOTTO_E_FULL) {
                a->end = CLI_END_FULL;
                status = SOTTO_OK;
                break;
            }
        }
        if (cli_interrupted() || status == SOTTO_E_ABORTED) {
            a->end = CLI_END_INTERRUPTED;
            status = SOTTO_OK;
            break;
        }
        if (status == SOTTO_OK)
            status = next_token(a, stream, &token, &over, err);
        if (status != SOTTO_OK)
            break;
    }
    a->seconds = cli_now() - start;
    const char *rest = NULL;
    size_t n_rest = 0;
    if (stream && status == SOTTO_OK && a->end != CLI_END_STOP) {
        status = sotto_llama_text_finish(stream, &rest, &n_rest, err);
        if (status == SOTTO_OK)
            status = show(a, rest, n_rest, err);
    }
    sotto_llama_text_free(stream);
    return status;
}

void cli_answer_free(cli_answer *a)
{
    free(a->ids);
    free(a->top);
    cli_text_free(&a->text);
    a->ids = NULL;
    a->top = NULL;
    a->n_ids = a->capacity = 0;
}
