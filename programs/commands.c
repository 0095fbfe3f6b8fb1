/* commands.c: the table of subcommands. */
#include "commands.h"

const cli_command *const cli_commands[] = {&cmd_transcribe, &cmd_generate, &cmd_chat,    &cmd_tokenize, &cmd_perplexity,
                                           &cmd_imatrix,    &cmd_vad,      &cmd_convert, &cmd_inspect,  &cmd_get,
                                           &cmd_devices,    &cmd_bench,    &cmd_help,    &cmd_version,  NULL};
