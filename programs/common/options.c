/* options.c: reading the command line by a table. Contract: options.h. */
#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/terminal.h"

bool cli_word_at(const char *words, size_t n, const char **start, size_t *length)
{
    const char *p = words ? words : "";
    for (;; n--) {
        p += strspn(p, " ");
        *length = strcspn(p, " ");
        *start = p;
        if (*length == 0)
            return false;
        if (n == 0)
            return true;
        p += *length;
    }
}

bool cli_kind_takes_value(cli_kind kind)
{
    switch (kind) {
    case CLI_BOOL:
    case CLI_INT:
    case CLI_NUMBER:
    case CLI_LIMIT:
    case CLI_TEXT:
    case CLI_CHOICE:
    case CLI_LIST:
    case CLI_INPUT:
        return true;
    default:
        return false;
    }
}

bool cli_list_add(cli_list *list, const char *text)
{
    const char **grown = realloc(list->item, (list->count + 1) * sizeof *grown);
    if (!grown)
        return false;
    list->item = grown;
    list->item[list->count++] = text;
    return true;
}

const cli_command *cli_command_find(const char *name)
{
    for (const cli_command *const *c = cli_commands; *c; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

static bool same_name(const char *a, size_t n_a, const char *b, size_t n_b)
{
    if (n_a != n_b)
        return false;
    for (size_t i = 0; i < n_a; i++)
        if (a[i] != b[i] && !((a[i] == '-' || a[i] == '_') && (b[i] == '-' || b[i] == '_')))
            return false;
    return true;
}

static bool matches(const cli_option *o, const char *typed, size_t n)
{
    if (n > 2 && typed[0] == '-' && typed[1] == '-' && same_name(o->name, strlen(o->name), typed + 2, n - 2))
        return true;
    const char *word;
    size_t length;
    for (size_t i = 0; cli_word_at(o->also, i, &word, &length); i++)
        if (same_name(word, length, typed, n))
            return true;
    return false;
}

bool cli_option_matches(const cli_option *option, const char *typed)
{
    return matches(option, typed, strlen(typed));
}

static const cli_option *find(const cli_command *command, const char *typed, size_t n)
{
    for (const cli_option *o = command->options; o->name; o++)
        if (matches(o, typed, n))
            return o;
    return NULL;
}

void cli_usage_line(const cli_command *command, FILE *out)
{
    fprintf(out, "usage: sotto %s%s%s%s\n", command->name, command->options[0].name ? " [options]" : "",
            command->inputs ? " " : "", command->inputs ? command->inputs : "");
}

static int usage_error(const cli_command *command, FILE *out, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int usage_error(const cli_command *command, FILE *out, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    cli_usage_line(command, out);
    fprintf(out, "sotto %s: ", command->name);
    cli_vmessage(out, fmt, args);
    fprintf(out, "\n");
    va_end(args);
    return CLI_USAGE;
}

int cli_usage(const cli_command *command, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    cli_usage_line(command, stderr);
    fprintf(stderr, "sotto %s: ", command->name);
    cli_vmessage(stderr, fmt, args);
    fprintf(stderr, "\n");
    va_end(args);
    return CLI_USAGE;
}

static bool read_int(const char *text, double min, double max, int64_t *out)
{
    char *end;
    if (text[0] != '-' && (text[0] < '0' || text[0] > '9'))
        return false;
    errno = 0;
    const long long v = strtoll(text, &end, 10);
    if (errno || *end || end == text || (double)v < min || (double)v > max)
        return false;
    *out = v;
    return true;
}

static bool read_number(const char *text, double min, double max, double *out)
{
    char *end;
    /* strtod also takes spaces, hexadecimal, "nan" and "inf"; an option does not. */
    if (!*text || strspn(text, "+-.0123456789eE") != strlen(text))
        return false;
    errno = 0;
    const double v = strtod(text, &end);
    if (*end || end == text || !isfinite(v) || v < min || v > max)
        return false;
    *out = v;
    return true;
}

static bool read_bool(const char *text, bool *out)
{
    static const char *const yes[] = {"true", "1", "yes", "on", "True"}, *const no[] = {"false", "0", "no", "off",
                                                                                        "False"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        if (strcmp(text, yes[i]) == 0)
            return *out = true, true;
        if (strcmp(text, no[i]) == 0)
            return *out = false, true;
    }
    return false;
}

static bool is_choice(const char *choices, const char *text)
{
    const char *word;
    size_t length;
    for (size_t i = 0; cli_word_at(choices, i, &word, &length); i++)
        if (strlen(text) == length && memcmp(text, word, length) == 0)
            return true;
    return false;
}

/* Store a value; NULL on success, else what was expected, in `buffer`. */
static const char *store(const cli_option *o, void *args, const char *text, char *buffer, size_t n)
{
    void *at = (char *)args + o->offset;
    switch (o->kind) {
    case CLI_INT:
        if (read_int(text, o->min, o->max, at))
            return NULL;
        snprintf(buffer, n, "a whole number from %.15g to %.15g", o->min, o->max);
        return buffer;
    case CLI_LIMIT:
        if (strcmp(text, "off") == 0 || strcmp(text, "none") == 0 || strcmp(text, "None") == 0) {
            *(double *)at = NAN;
            return NULL;
        }
        if (read_number(text, o->min, o->max, at))
            return NULL;
        snprintf(buffer, n, "a number from %g to %g, or off", o->min, o->max);
        return buffer;
    case CLI_NUMBER:
        if (read_number(text, o->min, o->max, at))
            return NULL;
        snprintf(buffer, n, "a number from %g to %g", o->min, o->max);
        return buffer;
    case CLI_BOOL:
        if (read_bool(text, at))
            return NULL;
        return "true or false";
    case CLI_CHOICE:
    case CLI_MODE:
        if (!is_choice(o->choices, text)) {
            snprintf(buffer, n, "one of: %s", o->choices);
            return buffer;
        }
        *(const char **)at = text;
        return NULL;
    case CLI_TEXT:
        *(const char **)at = text;
        return NULL;
    case CLI_LIST:
        return cli_list_add(at, text) ? NULL : "more memory than there is";
    case CLI_FLAG:
        *(bool *)at = true;
        return NULL;
    case CLI_APPEND:
        return cli_list_add(at, o->choices) ? NULL : "more memory than there is";
    default:
        return NULL;
    }
}

/* One argument that begins with '-' and the value after it. Advances *i past what it took. */
static int parse_option(const cli_command *command, int argc, char **argv, int *i, void *args, cli_list *inputs,
                        FILE *errors)
{
    const char *typed = argv[*i];
    const char *equals = typed[1] == '-' ? strchr(typed, '=') : NULL;
    const size_t n = equals ? (size_t)(equals - typed) : strlen(typed);
    const char *value = equals ? equals + 1 : NULL;
    const cli_option *o = find(command, typed, n);
    int shown = (int)n;
    if (!o && typed[1] != '-' && n > 2) { /* -t4 */
        o = find(command, typed, 2);
        if (o && cli_kind_takes_value(o->kind)) {
            value = typed + 2;
            shown = 2;
        } else {
            o = NULL;
        }
    }
    if (!o)
        return usage_error(command, errors, "unknown option %.*s (see sotto %s --help)", (int)n, typed, command->name);
    if (o->kind == CLI_LATER)
        return usage_error(command, errors, "%.*s is known but not available in this version: %s", shown, typed,
                           o->help);
    if (o->kind == CLI_REPLACED)
        return usage_error(command, errors, "%.*s is not used here: %s", shown, typed, o->help);
    if (cli_kind_takes_value(o->kind)) {
        if (!value) {
            if (*i + 1 >= argc)
                return usage_error(command, errors, "%.*s needs a value: %s", shown, typed, o->value);
            value = argv[++*i];
        }
    } else if (o->kind == CLI_MODE) {
        if (!value && *i + 1 < argc && is_choice(o->choices, argv[*i + 1]))
            value = argv[++*i];
        if (!value) { /* the preset of a mode is what it means without a value; not given at all is NULL */
            *(const char **)((char *)args + o->offset) = o->value;
            return CLI_OK;
        }
    } else if (value) {
        return usage_error(command, errors, "%.*s takes no value", shown, typed);
    }
    if (o->kind == CLI_INPUT)
        return cli_list_add(inputs, value) ? CLI_OK : usage_error(command, errors, "out of memory");
    char buffer[400];
    const char *expected = store(o, args, value, buffer, sizeof buffer);
    if (expected)
        return usage_error(command, errors, "%.*s: \"%s\" is not %s", shown, typed, value ? value : "", expected);
    return CLI_OK;
}

int cli_parse(const cli_command *command, int argc, char **argv, void *args, cli_list *inputs, bool *help, FILE *errors)
{
    memset(args, 0, command->args_size);
    *inputs = (cli_list){0};
    *help = false;
    char buffer[400];
    for (const cli_option *o = command->options; o->name; o++)
        if (o->preset && store(o, args, o->preset, buffer, sizeof buffer))
            return usage_error(command, errors, "the preset of --%s is bad", o->name);
    bool options_over = false;
    for (int i = 0; i < argc; i++) {
        const char *a = argv[i];
        if (options_over || a[0] != '-' || a[1] == 0) {
            if (!cli_list_add(inputs, a))
                return usage_error(command, errors, "out of memory");
        } else if (strcmp(a, "--") == 0) {
            options_over = true;
        } else if (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0) {
            *help = true;
            return CLI_OK;
        } else {
            const int status = parse_option(command, argc, argv, &i, args, inputs, errors);
            if (status != CLI_OK)
                return status;
        }
    }
    if (inputs->count < (size_t)command->min_inputs)
        return usage_error(command, errors, "%s is missing", command->inputs);
    if (command->max_inputs >= 0 && inputs->count > (size_t)command->max_inputs)
        return usage_error(command, errors, "unexpected argument \"%s\"", inputs->item[command->max_inputs]);
    return CLI_OK;
}

void cli_parse_free(const cli_command *command, void *args, cli_list *inputs)
{
    for (const cli_option *o = command->options; o->name; o++)
        if (o->kind == CLI_LIST || o->kind == CLI_APPEND) {
            cli_list *list = (cli_list *)(void *)((char *)args + o->offset);
            free(list->item);
            *list = (cli_list){0}; /* several options may share one list */
        }
    free(inputs->item);
    *inputs = (cli_list){0};
}
