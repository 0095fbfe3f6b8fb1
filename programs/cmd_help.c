/* cmd_help.c: help, the man page and shell completions, all from the option tables. */
#include "commands.h"
#include "sotto/base.h"

typedef struct help_args {
    bool man;
    const char *completion;
} help_args;

static const cli_option options[] = {
    {"man", NULL, CLI_FLAG, offsetof(help_args, man), NULL, NULL, 0, 0, NULL, "print the manual page (troff)"},
    {"completion", NULL, CLI_CHOICE, offsetof(help_args, completion), "SHELL", NULL, 0, 0, "bash zsh fish",
     "print a completion script for the shell"},
    {0}};

static int run(void *args, const cli_list *inputs)
{
    const help_args *a = args;
    if (a->man) {
        cli_man(stdout);
    } else if (a->completion) {
        cli_completion(a->completion, stdout);
    } else if (inputs->count == 0) {
        cli_help_all(stdout);
    } else {
        const cli_command *command = cli_command_find(inputs->item[0]);
        if (!command)
            return cli_usage(&cmd_help, "unknown command \"%s\"", inputs->item[0]);
        cli_help(command, stdout);
    }
    return CLI_OK;
}

const cli_command cmd_help = {.name = "help",
                              .summary = "explain the commands",
                              .inputs = "[COMMAND]",
                              .max_inputs = 1,
                              .options = options,
                              .args_size = sizeof(help_args),
                              .run = run,
                              .examples =
                                  "sotto help transcribe\tall options of a command\n"
                                  "sotto help --completion bash > ~/.local/share/bash-completion/completions/sotto"
                                  "\tcomplete in bash\n"};

static const cli_option no_options[] = {{0}};

static int run_version(void *args, const cli_list *inputs)
{
    (void)args;
    (void)inputs;
    printf("sotto %s\n", sotto_version());
    return CLI_OK;
}

const cli_command cmd_version = {
    .name = "version", .summary = "print the version", .max_inputs = 0, .options = no_options, .run = run_version};
