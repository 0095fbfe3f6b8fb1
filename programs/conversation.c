/* conversation.c: the messages of a chat. Contract: conversation.h. */
#include "conversation.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/outfile.h"

static const char *const roles[] = {"system", "user", "assistant"};

static const char *known_role(const char *role)
{
    for (size_t i = 0; role && i < sizeof roles / sizeof *roles; i++)
        if (strcmp(roles[i], role) == 0)
            return roles[i];
    return NULL;
}

void cli_conversation_free(cli_conversation *c)
{
    for (int i = 0; i < c->n; i++)
        free((char *)c->message[i].content);
    free(c->message);
    *c = (cli_conversation){0};
}

bool cli_conversation_has_system(const cli_conversation *c)
{
    return c->n > 0 && strcmp(c->message[0].role, "system") == 0;
}

/* Message i out of the row. */
static void drop(cli_conversation *c, int i)
{
    free((char *)c->message[i].content);
    memmove(c->message + i, c->message + i + 1, (size_t)(c->n - i - 1) * sizeof *c->message);
    c->n--;
}

static char *clean(const char *content, size_t n)
{
    cli_text t = {0};
    for (size_t i = 0; i < n;) { /* a byte 0 would end the content */
        const char *zero = memchr(content + i, 0, n - i);
        const size_t length = zero ? (size_t)(zero - (content + i)) : n - i;
        cli_text_utf8(&t, content + i, length);
        i += length + (zero != NULL);
    }
    if (!t.failed && !t.data)
        cli_text_add(&t, "", 0);
    if (!t.failed)
        return t.data;
    cli_text_free(&t);
    return NULL;
}

bool cli_conversation_add(cli_conversation *c, const char *role, const char *content, size_t n)
{
    char *text = clean(content, n);
    if (!text)
        return false;
    if (c->n == c->capacity) {
        const int capacity = c->capacity ? 2 * c->capacity : 8;
        sotto_llama_message *grown = realloc(c->message, (size_t)capacity * sizeof *grown);
        if (!grown) {
            free(text);
            return false;
        }
        c->message = grown;
        c->capacity = capacity;
    }
    role = known_role(role);
    const sotto_llama_message m = {role, text};
    if (strcmp(role, "system") != 0) {
        c->message[c->n++] = m;
        return true;
    }
    if (cli_conversation_has_system(c))
        drop(c, 0);
    if (!*text) {
        free(text);
        return true;
    }
    memmove(c->message + 1, c->message, (size_t)c->n * sizeof *c->message);
    c->message[0] = m;
    c->n++;
    return true;
}

bool cli_conversation_drop_last(cli_conversation *c)
{
    if (c->n == cli_conversation_has_system(c))
        return false;
    drop(c, c->n - 1);
    return true;
}

bool cli_conversation_drop_oldest(cli_conversation *c)
{
    const int first = cli_conversation_has_system(c);
    if (c->n - first < 3)
        return false;
    drop(c, first);
    drop(c, first);
    return true;
}

void cli_conversation_clear(cli_conversation *c)
{
    while (cli_conversation_drop_last(c))
        ;
}

bool cli_conversation_save(const cli_conversation *c, const char *path, sotto_error *err)
{
    cli_text t = {0};
    cli_text_puts(&t, "[");
    for (int i = 0; i < c->n; i++) {
        cli_text_printf(&t, "%s\n  {\"role\": \"%s\", \"content\": ", i ? "," : "", c->message[i].role);
        cli_text_json(&t, c->message[i].content, strlen(c->message[i].content));
        cli_text_puts(&t, "}");
    }
    cli_text_puts(&t, "\n]\n");
    const bool ok =
        t.failed ? cli_fail(err, SOTTO_E_MEMORY, "out of memory") : cli_write_file(path, t.data, t.size, err);
    cli_text_free(&t);
    return ok;
}

/* Item i of the array, when it may stand there: a system message only first, then users and answers in turn. */
static bool take(cli_conversation *c, const json_t *item, size_t i, const char *path, sotto_error *err)
{
    const json_t *content = json_object_get(item, "content");
    const char *role = known_role(json_string_value(json_object_get(item, "role")));
    if (!role || !json_is_string(content))
        return cli_fail(err, SOTTO_E_FORMAT,
                        "%s: message %zu needs a \"role\" (system, user or assistant) and a \"content\"", path, i + 1);
    const bool is_system = strcmp(role, "system") == 0;
    const char *before = c->n > 0 ? c->message[c->n - 1].role : NULL;
    const char *wanted = before && strcmp(before, "user") == 0 ? "assistant" : "user";
    if (is_system ? i > 0 : strcmp(role, wanted) != 0)
        return cli_fail(err, SOTTO_E_FORMAT, "%s: message %zu is the %s's, expected the %s's", path, i + 1, role,
                        wanted);
    if (!cli_conversation_add(c, role, json_string_value(content), json_string_length(content)))
        return cli_fail(err, SOTTO_E_MEMORY, "out of memory");
    return true;
}

bool cli_conversation_load(cli_conversation *c, const char *path, sotto_error *err)
{
    cli_text text = {0};
    cli_conversation loaded = {0};
    json_error_t why;
    bool ok = cli_read_file(path, &text, err);
    json_t *root = ok ? json_loadb(text.data ? text.data : "", text.size, JSON_ALLOW_NUL, &why) : NULL;
    if (ok && !json_is_array(root))
        ok = root ? cli_fail(err, SOTTO_E_FORMAT, "%s: is no array of messages", path)
                  : cli_fail(err, SOTTO_E_FORMAT, "%s: line %d: %s", path, why.line, why.text);
    size_t i;
    json_t *item;
    json_array_foreach(root, i, item)
    {
        if (ok)
            ok = take(&loaded, item, i, path, err);
    }
    json_decref(root);
    cli_text_free(&text);
    if (ok) { /* a question without its answer would be asked again */
        if (loaded.n > 0 && strcmp(loaded.message[loaded.n - 1].role, "user") == 0)
            cli_conversation_drop_last(&loaded);
        cli_conversation_free(c);
        *c = loaded;
    } else {
        cli_conversation_free(&loaded);
    }
    return ok;
}
