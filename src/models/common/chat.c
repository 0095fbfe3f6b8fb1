#include "models/common/chat.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "models/common/chat_formats.h"

/* ---- which format ---- */

static bool contains(const char *text, size_t n, const char *mark)
{
    const size_t length = strlen(mark);
    for (size_t i = 0; i + length <= n; i++) {
        const char *next = memchr(text + i, mark[0], n - length + 1 - i);
        if (!next)
            return false;
        i = (size_t)(next - text);
        if (memcmp(next, mark, length) == 0)
            return true;
    }
    return false;
}

static bool fits(const st_chat_mark *mark, const char *text, size_t n)
{
    for (int i = 0; i < ST_CHAT_MARKS && mark->all[i]; i++)
        if (!contains(text, n, mark->all[i]))
            return false;
    for (int i = 0; i < ST_CHAT_MARKS && mark->none[i]; i++)
        if (contains(text, n, mark->none[i]))
            return false;
    return true;
}

const st_chat_format *st_chat_find(const char *template_text, size_t n)
{
    for (int i = 0; i < st_chat_n_marks; i++)
        if (fits(&st_chat_marks[i], template_text, n))
            return st_chat_marks[i].format ? st_chat_by_name(st_chat_marks[i].format) : NULL;
    return NULL;
}

const st_chat_format *st_chat_by_name(const char *name)
{
    for (int i = 0; i < st_chat_n_formats; i++)
        if (strcmp(st_chat_formats[i].name, name) == 0)
            return &st_chat_formats[i];
    return NULL;
}

const char *st_chat_name(const st_chat_format *format)
{
    return format->name;
}

/* "chatml, llama2, ..." */
static void list_names(char *out, size_t size)
{
    size_t at = 0;
    out[0] = 0;
    for (int i = 0; i < st_chat_n_formats && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%s", i > 0 ? ", " : "", st_chat_formats[i].name);
}

/* Where a template leaves the end token to the model, the format with this model's. */
static const st_chat_format *with_end_token(const st_chat_format *format, const sotto_model_file *file)
{
    int64_t id;
    const char *text;
    size_t n;
    if (!format->end_token || sotto_meta_int(file, "tokenizer.ggml.eos_token_id", &id, NULL) != SOTTO_OK ||
        sotto_meta_string_at(file, "tokenizer.ggml.tokens", id, &text, &n, NULL) != SOTTO_OK)
        return format;
    for (int i = 0; i < st_chat_n_formats; i++) {
        const st_chat_format *other = &st_chat_formats[i];
        if (other->end_token && strcmp(other->user.before, format->user.before) == 0 && strlen(other->end_token) == n &&
            memcmp(other->end_token, text, n) == 0)
            return other;
    }
    return format;
}

/* By the tokens that the model has, NULL: none that tells. */
static const st_chat_format *by_tokens(const sotto_model_file *file)
{
    const char *text;
    size_t n;
    for (int64_t id = 0; sotto_meta_string_at(file, "tokenizer.ggml.tokens", id, &text, &n, NULL) == SOTTO_OK; id++)
        for (int i = 0; i < st_chat_n_tokens; i++)
            if (n == strlen(st_chat_tokens[i].token) && memcmp(text, st_chat_tokens[i].token, n) == 0)
                return st_chat_by_name(st_chat_tokens[i].format);
    return NULL;
}

sotto_status st_chat_choose(const sotto_model_file *file, const char *name, const st_chat_format **out, sotto_error *err)
{
    char names[300];
    const char *key = "tokenizer.chat_template", *text;
    size_t n;
    list_names(names, sizeof names);
    *out = name ? st_chat_by_name(name) : NULL;
    if (*out)
        return SOTTO_OK;
    if (name)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "chat format \"%.60s\" is unknown, expected one of %s", name, names);
    const sotto_status status = sotto_meta_string(file, key, &text, &n, err);
    if (status == SOTTO_E_NOT_FOUND) {
        *out = by_tokens(file);
        if (*out)
            return SOTTO_OK;
        return st_fail(err, SOTTO_E_NOT_FOUND, "the model has no %s; name its format, one of %s", key, names);
    }
    ST_TRY(status);
    *out = st_chat_find(text, n);
    if (!*out)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%s is of no known format; name one of %s", key, names);
    *out = with_end_token(*out, file);
    return SOTTO_OK;
}

/* ---- writing ---- */

void st_chat_text_free(st_chat_text *t)
{
    st_free(t->text);
    st_free(t->content);
    *t = (st_chat_text){0};
}

static bool put(st_chat_text *t, const char *text, size_t n)
{
    if (!st_grow(&t->text, &t->capacity, t->length + (int64_t)n + 1, 1))
        return false;
    memcpy(t->text + t->length, text, n);
    t->length += (int64_t)n;
    t->text[t->length] = 0;
    return true;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool put_content(st_chat_text *t, const char *text, bool trim)
{
    size_t n = strlen(text);
    while (trim && n > 0 && is_space(text[n - 1]))
        n--;
    for (; trim && n > 0 && is_space(text[0]); n--)
        text++;
    if (n == 0)
        return true;
    if (!st_grow(&t->content, &t->content_capacity, t->n_content + 1, sizeof *t->content))
        return false;
    t->content[t->n_content++] = (st_text_span){(size_t)t->length, (size_t)t->length + n};
    return put(t, text, n);
}

static bool put_turn(st_chat_text *t, const st_chat_turn *turn, const char *content, bool trim)
{
    return put(t, turn->before, strlen(turn->before)) && put_content(t, content, trim) &&
           put(t, turn->after, strlen(turn->after));
}

/* A user's message, with the system's in it where there is one. */
static bool put_user(const st_chat_format *f, st_chat_text *t, const char *system, const char *content)
{
    const bool again = f->again && t->length > 0;
    if ((again && !put(t, f->again, strlen(f->again))) || !put(t, f->user.before, strlen(f->user.before)))
        return false;
    if (system && !put_turn(t, &f->system, system, f->trim_system))
        return false;
    return put_content(t, content, f->trim_user) && put(t, f->user.after, strlen(f->user.after));
}

enum { SYSTEM, USER, ASSISTANT, N_ROLES };

static sotto_status check(const st_chat_format *f, const st_chat_message *messages, int n, int i, int *role,
                          sotto_error *err)
{
    static const char *const roles[] = {"system", "user", "assistant"};
    const st_chat_message *m = &messages[i];
    for (*role = 0; *role < N_ROLES; ++*role)
        if (m->role && strcmp(m->role, roles[*role]) == 0)
            break;
    if (*role == N_ROLES)
        return st_fail(err, SOTTO_E_ARGUMENT, "message %d is from \"%.40s\", expected system, user or assistant", i + 1,
                       m->role ? m->role : "");
    if (!m->content)
        return st_fail(err, SOTTO_E_ARGUMENT, "message %d has no content", i + 1);
    if (*role != SYSTEM || !f->system_in_user)
        return SOTTO_OK;
    if (i > 0)
        return st_fail(err, SOTTO_E_ARGUMENT, "message %d is from the system, which in format %s can only be the first",
                       i + 1, f->name);
    if (n < 2 || !messages[1].role || strcmp(messages[1].role, "user") != 0)
        return st_fail(err, SOTTO_E_ARGUMENT, "in format %s a message from the user must follow the system's", f->name);
    return SOTTO_OK;
}

sotto_status st_chat_apply(const st_chat_format *f, const st_chat_message *messages, int n, bool answer,
                           st_chat_text *out, sotto_error *err)
{
    const char *system = NULL; /* waits for the user's message */
    out->length = out->n_content = 0;
    bool ok = put(out, "", 0);
    for (int i = 0; i < n && ok; i++) {
        int role;
        ST_TRY(check(f, messages, n, i, &role, err));
        const char *content = messages[i].content;
        if (role == SYSTEM && f->system_in_user) {
            system = content;
        } else if (role == SYSTEM) {
            ok = put_turn(out, &f->system, content, f->trim_system);
        } else if (role == USER) {
            ok = put_user(f, out, system, content);
            system = NULL;
        } else {
            ok = put_turn(out, &f->assistant, content, f->trim_assistant);
        }
    }
    if (ok && answer)
        ok = put(out, f->answer, strlen(f->answer));
    return ok ? SOTTO_OK : st_fail_memory(err, (uint64_t)out->length, "a conversation");
}
