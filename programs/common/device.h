/* device.h: the --device of several commands. */
#ifndef SOTTO_PROGRAMS_DEVICE_H
#define SOTTO_PROGRAMS_DEVICE_H

#include "common/options.h"

/* CLI_OK for "auto" and the ids of `sotto devices`; else CLI_USAGE after a message that lists them. */
int cli_check_device(const cli_command *command, const char *id);

#endif
