/* sotto.c: the one command. It finds the subcommand in the table, parses by its options and runs it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "common/terminal.h"

/* What could not be written was not done: asked once, here, for every command. */
static int check_output(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    cli_say(NULL, "cannot write to standard output: %s", strerror(errno));
    return status == CLI_OK ? CLI_FAILED : status;
}

static int run(const cli_command *command, int argc, char **argv)
{
    void *args = calloc(1, command->args_size + 1);
    if (!args) {
        fprintf(stderr, "sotto: out of memory\n");
        return CLI_FAILED;
    }
    cli_list inputs;
    bool help;
    int status = cli_parse(command, argc, argv, args, &inputs, &help, stderr);
    if (status == CLI_OK && help)
        cli_help(command, stdout);
    else if (status == CLI_OK)
        status = command->run(args, &inputs);
    cli_parse_free(command, args, &inputs);
    free(args);
    return check_output(status);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        cli_help_all(stderr);
        return CLI_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0)
        name = "version";
    const cli_command *command = cli_command_find(name);
    if (!command) {
        fprintf(stderr, "usage: sotto COMMAND [options] ...\n");
        cli_say(NULL, "unknown command \"%s\" (see sotto --help)", argv[1]);
        return CLI_USAGE;
    }
    return run(command, argc - 2, argv + 2);
}
