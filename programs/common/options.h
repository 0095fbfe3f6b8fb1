/* options.h: one table of options a subcommand; parsing, help, man page and completions are all made from it. */
#ifndef SOTTO_PROGRAMS_OPTIONS_H
#define SOTTO_PROGRAMS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit codes of the command. */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* What an option stores, at `offset` of the subcommand's struct. */
typedef enum cli_kind {
    CLI_FLAG,    /* bool: true when given */
    CLI_BOOL,    /* bool: true or false */
    CLI_INT,     /* int64_t in [min, max] */
    CLI_NUMBER,  /* double in [min, max] */
    CLI_LIMIT,   /* double in [min, max], or "off" (also "none") = NAN */
    CLI_TEXT,    /* const char * */
    CLI_CHOICE,  /* const char *: one of `choices` */
    CLI_MODE,    /* const char *: one of `choices`, or `value` when none follows; NULL when not given */
    CLI_LIST,    /* cli_list: may be repeated */
    CLI_APPEND,  /* cli_list: a flag that appends `choices` */
    CLI_INPUT,   /* one more positional argument */
    CLI_IGNORED, /* a flag that asks for what is the case anyway */
    CLI_LATER,   /* known, but the feature does not exist; help says what it is */
    CLI_REPLACED /* known, but done differently here; help says how */
} cli_kind;

typedef struct cli_list {
    const char **item; /* borrowed strings */
    size_t count;
} cli_list;

typedef struct cli_option {
    const char *name; /* long name without dashes, '-' between words */
    const char *also; /* other spellings as typed, separated by spaces: "-bs --beams"; NULL = none */
    cli_kind kind;
    size_t offset;
    const char *value;  /* what the value is called in help, "N"; NULL = no value */
    const char *preset; /* default as one would type it; NULL = zero, false, none */
    double min, max;
    const char *choices; /* words separated by spaces */
    const char *help;
} cli_option;

typedef struct cli_command {
    const char *name, *summary;
    const char *inputs;         /* positional arguments in the usage line; NULL = none */
    int min_inputs, max_inputs; /* max -1 = any number */
    const cli_option *options;  /* ends at name NULL */
    const char *details;        /* paragraphs after the options; may be NULL */
    const char *examples;       /* lines "command\texplanation"; may be NULL */
    size_t args_size;
    int (*run)(void *args, const cli_list *inputs); /* returns an exit code */
} cli_command;

/* All subcommands, ending with NULL. */
extern const cli_command *const cli_commands[];
const cli_command *cli_command_find(const char *name);

/* Fill args (args_size bytes) with the presets and what argv says; the inputs' strings are borrowed from argv.
 * Returns CLI_OK, or CLI_USAGE after a usage line and a message on `errors`. `*help` is set when --help was met. */
int cli_parse(const cli_command *command, int argc, char **argv, void *args, cli_list *inputs, bool *help, FILE *errors);
/* Frees the lists inside args and inputs. */
void cli_parse_free(const cli_command *command, void *args, cli_list *inputs);
/* Append a borrowed string; false without memory. */
bool cli_list_add(cli_list *list, const char *text);

/* True for "--beam_size" and "--beam-size": '_' and '-' are the same after the leading dashes. */
bool cli_option_matches(const cli_option *option, const char *typed);
bool cli_kind_takes_value(cli_kind kind);
/* The n-th word of a space-separated text; false past the end. */
bool cli_word_at(const char *words, size_t n, const char **start, size_t *length);

/* Usage line and "sotto NAME: message" on stderr; returns CLI_USAGE. */
int cli_usage(const cli_command *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cli_usage_line(const cli_command *command, FILE *out);

/* Made from the tables. */
void cli_help(const cli_command *command, FILE *out);
void cli_help_all(FILE *out);
void cli_man(FILE *out);
/* "bash", "zsh" or "fish"; false for another name. */
bool cli_completion(const char *shell, FILE *out);

#endif
