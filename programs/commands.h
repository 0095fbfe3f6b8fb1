/* commands.h: every subcommand; a new one is a file and a row in sotto.c. */
#ifndef SOTTO_PROGRAMS_COMMANDS_H
#define SOTTO_PROGRAMS_COMMANDS_H

#include "common/options.h"

extern const cli_command cmd_generate, cmd_chat, cmd_tokenize, cmd_perplexity, cmd_imatrix;
extern const cli_command cmd_transcribe, cmd_convert, cmd_inspect, cmd_get, cmd_vad, cmd_devices, cmd_bench, cmd_help,
    cmd_version;

#endif
