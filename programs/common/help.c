/* help.c: help texts, man page and shell completions, from the option tables. Contract: options.h. */
#include "common/options.h"

#include <string.h>

static bool is_shown(const cli_option *o)
{
    return o->kind != CLI_LATER && o->kind != CLI_REPLACED;
}

/* "-m, --model NAME|PATH" */
static int spelling(const cli_option *o, char *out, size_t n)
{
    const char *word, *brief = "";
    size_t length, brief_length = 0;
    for (size_t i = 0; cli_word_at(o->also, i, &word, &length); i++)
        if (word[1] != '-' && !brief_length) {
            brief = word;
            brief_length = length;
        }
    const char *open = o->kind == CLI_MODE ? "[" : "", *close = o->kind == CLI_MODE ? "]" : "";
    const char *value = o->kind == CLI_MODE ? o->choices : o->value;
    return snprintf(out, n, "%.*s%s--%s%s%s%s%s", (int)brief_length, brief, brief_length ? ", " : "", o->name,
                    value ? " " : "", open, value ? value : "", close);
}

static void details_of(const cli_option *o, char *out, size_t n)
{
    snprintf(out, n, "%s%s%s%s%s%s%s", o->help, o->kind == CLI_CHOICE ? " (" : "",
             o->kind == CLI_CHOICE ? o->choices : "", o->kind == CLI_CHOICE ? ")" : "", o->preset ? " [" : "",
             o->preset ? o->preset : "", o->preset ? "]" : "");
}

/* Words wrapped to `width`, with later lines indented. */
static void wrapped(const char *text, int column, int indent, int width, FILE *out)
{
    int at = column;
    for (const char *p = text; *p;) {
        p += strspn(p, " ");
        const int n = (int)strcspn(p, " ");
        if (n == 0)
            break;
        if (at + 1 + n > width && at > indent) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
        } else if (at > column || (at == column && column == 0 && p != text)) {
            fputc(' ', out);
            at++;
        }
        fprintf(out, "%.*s", n, p);
        at += n;
        column = at > indent ? indent - 1 : column;
        p += n;
    }
    fputc('\n', out);
}

void cli_help(const cli_command *c, FILE *out)
{
    char left[160], right[600];
    cli_usage_line(c, out);
    fprintf(out, "%s: %s\n", c->name, c->summary);
    if (c->options[0].name)
        fprintf(out, "\noptions (the default in brackets; _ and - are the same inside a name):\n");
    for (const cli_option *o = c->options; o->name; o++) {
        if (!is_shown(o))
            continue;
        const int n = spelling(o, left, sizeof left);
        details_of(o, right, sizeof right);
        fprintf(out, "  %s", left);
        if (n + 2 > 34)
            fprintf(out, "\n%*s", 36, "");
        else
            fprintf(out, "%*s", 34 - n, "");
        wrapped(right, 36, 36, 120, out);
    }
    bool any = false;
    for (const cli_option *o = c->options; o->name; o++)
        any = any || o->kind == CLI_LATER;
    if (any) {
        fprintf(out, "\nknown but not available in this version:\n ");
        int at = 1;
        for (const cli_option *o = c->options; o->name; o++)
            if (o->kind == CLI_LATER) {
                at += fprintf(out, " --%s", o->name);
                if (at > 100) {
                    fprintf(out, "\n ");
                    at = 1;
                }
            }
        fprintf(out, "\n");
    }
    if (c->details) {
        fprintf(out, "\n");
        wrapped(c->details, 0, 0, 120, out);
    }
    if (c->examples) {
        fprintf(out, "\nexamples:\n");
        for (const char *p = c->examples; *p;) {
            const int n = (int)strcspn(p, "\t");
            const int m = p[n] ? (int)strcspn(p + n + 1, "\n") : 0;
            fprintf(out, "  %.*s\n      %.*s\n", n, p, m, p[n] ? p + n + 1 : "");
            p += n + (p[n] ? 1 + m : 0);
            p += *p == '\n';
        }
    }
}

void cli_help_all(FILE *out)
{
    fprintf(out, "usage: sotto COMMAND [options] ...\nSpeech to text and text generation on the machine in front of "
                 "you.\n\ncommands:\n");
    for (const cli_command *const *c = cli_commands; *c; c++)
        fprintf(out, "  %-12s %s\n", (*c)->name, (*c)->summary);
    fprintf(out, "\nsotto COMMAND --help explains one. Exit codes: 0 done, 1 something failed, 2 wrong arguments,\n"
                 "128 + the signal's number when interrupted.\n\n"
                 "first steps:\n  sotto get base\n  sotto transcribe talk.mp3\n"
                 "  sotto get smollm2-135m\n  sotto generate -p \"Once upon a time\"\n  sotto chat\n");
}

/* troff: '-' must be written as \-, a line must not begin with '.' or '\''. */
static void troff(const char *text, FILE *out)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", out);
    for (const char *p = text; *p; p++) {
        if (*p == '\\')
            fputs("\\e", out);
        else if (*p == '-')
            fputs("\\-", out);
        else
            fputc(*p, out);
    }
}

static void man_examples(const cli_command *c, FILE *out)
{
    for (const char *p = c->examples; p && *p;) {
        const size_t n = strcspn(p, "\t");
        const size_t m = p[n] ? strcspn(p + n + 1, "\n") : 0;
        char line[300];
        fputs(".TP\n.B ", out);
        snprintf(line, sizeof line, "%.*s", (int)n, p);
        troff(line, out);
        snprintf(line, sizeof line, "%.*s", (int)m, p[n] ? p + n + 1 : "");
        fputc('\n', out);
        troff(line, out);
        fputc('\n', out);
        p += n + (p[n] ? 1 + m : 0);
        p += *p == '\n';
    }
}

void cli_man(FILE *out)
{
    char left[160], right[600];
    fputs(".TH SOTTO 1 \"\" \"sotto\" \"User Commands\"\n.SH NAME\nsotto \\- speech to text and text generation on "
          "the machine in front of "
          "you\n"
          ".SH SYNOPSIS\n.B sotto\n.I COMMAND\n[options] ...\n.SH DESCRIPTION\n"
          "Inside the names of options _ and \\- are the same. Defaults stand in brackets.\n",
          out);
    for (const cli_command *const *c = cli_commands; *c; c++) {
        fprintf(out, ".SH \"SOTTO ");
        for (const char *p = (*c)->name; *p; p++)
            fputc(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p, out);
        fprintf(out, "\"\n.B sotto %s%s\n", (*c)->name, (*c)->options[0].name ? " [options]" : "");
        if ((*c)->inputs) {
            fputs(".I ", out);
            troff((*c)->inputs, out);
            fputc('\n', out);
        }
        fputs(".PP\n", out);
        troff((*c)->summary, out);
        fputs(".\n", out);
        if ((*c)->details) {
            troff((*c)->details, out);
            fputc('\n', out);
        }
        for (const cli_option *o = (*c)->options; o->name; o++) {
            spelling(o, left, sizeof left);
            details_of(o, right, sizeof right);
            fputs(".TP\n.B ", out);
            troff(left, out);
            fputc('\n', out);
            if (o->kind == CLI_LATER)
                fputs("Not available in this version: ", out);
            if (o->kind == CLI_REPLACED)
                fputs("Not used here: ", out);
            troff(right, out);
            fputc('\n', out);
        }
        if ((*c)->examples) {
            fputs(".PP\nExamples:\n", out);
            man_examples(*c, out);
        }
    }
    fputs(".SH EXIT STATUS\n0 when all was done, 1 when something failed (other inputs are still done), 2 for wrong "
          "arguments, "
          "128 plus the number of the signal when interrupted.\n"
          ".SH FILES\nModels are looked for by name in ./models, then in $XDG_CACHE_HOME/sotto or ~/.cache/sotto.\n",
          out);
}

static void bash(FILE *out)
{
    fputs("# bash completion for sotto; made by: sotto help --completion bash\n"
          "_sotto()\n{\n    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words=\"",
          out);
    for (const cli_command *const *c = cli_commands; *c; c++)
        fprintf(out, "%s%s", c == cli_commands ? "" : " ", (*c)->name);
    fputs("\"\n    else\n        case ${COMP_WORDS[1]}:$prev in\n", out);
    for (const cli_command *const *c = cli_commands; *c; c++)
        for (const cli_option *o = (*c)->options; o->name; o++)
            if (o->choices && is_shown(o) && o->kind != CLI_APPEND)
                fprintf(out, "        %s:--%s) words=\"%s\" ;;\n", (*c)->name, o->name, o->choices);
    fputs("        esac\n        if [ -z \"$words\" ] && [ \"${cur#-}\" != \"$cur\" ]; then\n            case "
          "${COMP_WORDS[1]} in\n",
          out);
    for (const cli_command *const *c = cli_commands; *c; c++) {
        fprintf(out, "            %s) words=\"--help", (*c)->name);
        for (const cli_option *o = (*c)->options; o->name; o++)
            if (is_shown(o))
                fprintf(out, " --%s", o->name);
        fputs("\" ;;\n", out);
    }
    fputs("            esac\n        fi\n    fi\n"
          "    if [ -n \"$words\" ]; then\n        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
          "    else\n        COMPREPLY=($(compgen -f -- \"$cur\"))\n    fi\n}\ncomplete -o filenames -F _sotto sotto\n",
          out);
}

/* Text inside '...' of a shell; brackets and colons are special to zsh's _arguments. */
static void quoted(const char *text, bool zsh, FILE *out)
{
    for (const char *p = text; *p; p++) {
        if (*p == '\'')
            fputs(zsh ? "'\\''" : "\\'", out);
        else if (zsh && (*p == '[' || *p == ']' || *p == ':'))
            fprintf(out, "\\%c", *p);
        else
            fputc(*p, out);
    }
}

static void zsh(FILE *out)
{
    fputs("#compdef sotto\n# zsh completion for sotto; made by: sotto help --completion zsh\n_sotto()\n{\n"
          "    if (( CURRENT == 2 )); then\n        local -a commands=(\n",
          out);
    for (const cli_command *const *c = cli_commands; *c; c++) {
        fprintf(out, "            '%s:", (*c)->name);
        quoted((*c)->summary, true, out);
        fputs("'\n", out);
    }
    fputs("        )\n        _describe command commands\n        return\n    fi\n"
          "    local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n    case $command in\n",
          out);
    for (const cli_command *const *c = cli_commands; *c; c++) {
        fprintf(out, "    %s)\n        _arguments \\\n", (*c)->name);
        for (const cli_option *o = (*c)->options; o->name; o++) {
            if (!is_shown(o))
                continue;
            fprintf(out, "            '--%s[", o->name);
            quoted(o->help, true, out);
            fputs("]", out);
            if (cli_kind_takes_value(o->kind) && o->choices)
                fprintf(out, ":value:(%s)", o->choices);
            else if (cli_kind_takes_value(o->kind))
                fputs(":value:_files", out);
            fputs("' \\\n", out);
        }
        fputs("            '--help[explain the options]' '*:file:_files'\n        ;;\n", out);
    }
    fputs("    esac\n}\n_sotto \"$@\"\n", out);
}

static void fish(FILE *out)
{
    fputs("# fish completion for sotto; made by: sotto help --completion fish\n", out);
    for (const cli_command *const *c = cli_commands; *c; c++) {
        fprintf(out, "complete -c sotto -n __fish_use_subcommand -f -a %s -d '", (*c)->name);
        quoted((*c)->summary, false, out);
        fputs("'\n", out);
        for (const cli_option *o = (*c)->options; o->name; o++) {
            if (!is_shown(o))
                continue;
            fprintf(out, "complete -c sotto -n '__fish_seen_subcommand_from %s' -l %s", (*c)->name, o->name);
            if (cli_kind_takes_value(o->kind))
                fputs(" -r", out);
            if (o->choices && o->kind != CLI_APPEND)
                fprintf(out, " -a '%s'", o->choices);
            fputs(" -d '", out);
            quoted(o->help, false, out);
            fputs("'\n", out);
        }
    }
}

bool cli_completion(const char *shell, FILE *out)
{
    static const struct {
        const char *name;
        void (*write)(FILE *out);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(shells[i].name, shell) == 0) {
            shells[i].write(out);
            return true;
        }
    return false;
}
