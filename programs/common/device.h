/* device.h: the options that say where and how several commands compute: rows of their tables, and their checks. */
#ifndef SOTTO_PROGRAMS_DEVICE_H
#define SOTTO_PROGRAMS_DEVICE_H

#include "common/options.h"

#define CLI_THREADS_OPTION(at)                                                   \
    {                                                                            \
        "threads", "-t", CLI_INT, at, "N", "0", 0, 1024, NULL,                   \
            "threads; 0 = one for each core; at most two for each core are used" \
    }
#define CLI_DEVICE_OPTION(at)                                                                   \
    {                                                                                           \
        "device", "-dev", CLI_TEXT, at, "ID", "auto", 0, 0, NULL, "a device of `sotto devices`" \
    }
#define CLI_CPU_OPTION(at)                                                                                  \
    {                                                                                                       \
        "cpu", NULL, CLI_CHOICE, at, "LEVEL", "auto", 0, 0, "auto portable v2 v3 v4 vnni amx neon dotprod", \
            "force an instruction set"                                                                      \
    }
#define CLI_COMPUTE_OPTION(at)                                                                              \
    {                                                                                                       \
        "compute", NULL, CLI_CHOICE, at, "TYPE", "auto", 0, 0, "auto f32 f16 bf16 int8",                    \
            "numbers that weights are kept and multiplied in; auto = what the device multiplies fastest" \
    }

/* CLI_OK for "auto" and the ids of `sotto devices`; else CLI_USAGE after a message that lists them. */
int cli_check_device(const cli_command *command, const char *id);

#endif
