/* device.h: the options that say where and how several commands compute: rows of their tables, and their checks. */
#ifndef SOTTO_PROGRAMS_DEVICE_H
#define SOTTO_PROGRAMS_DEVICE_H

#include "common/options.h"
#include "common/terminal.h"
#include "sotto/whisper.h"

typedef struct cli_device_args {
    const char *device, *main_device, *split, *device_split, *kv_device;
    int64_t gpu_layers;
    bool no_offload, memory;
} cli_device_args;

#define CLI_THREADS_OPTION(at)                                                   \
    {                                                                            \
        "threads", "-t", CLI_INT, at, "N", "0", 0, 1024, NULL,                   \
            "threads; 0 = one for each core; at most two for each core are used" \
    }
/* Rows of a table of options; `at` is the offset of the cli_device_args. */
#define CLI_DEVICE_OPTIONS(at)                                                                                      \
    {"device", "-dev",                                                                                              \
     CLI_TEXT, (at) + offsetof(cli_device_args, device),                                                            \
     "LIST",   "auto",                                                                                              \
     0,        0,                                                                                                   \
     NULL,     "devices of `sotto devices` with commas between; auto = the fastest that works"},                    \
        {"gpu-layers",                                                                                              \
         "-ngl",                                                                                                    \
         CLI_INT,                                                                                                   \
         (at) + offsetof(cli_device_args, gpu_layers),                                                              \
         "N",                                                                                                       \
         "-1",                                                                                                      \
         -1,                                                                                                        \
         10000,                                                                                                     \
         NULL,                                                                                                      \
         "the first N layers, the encoder's before the decoder's, on accelerators, the rest on the CPU; -1 = all"}, \
        {"main-device",                                                                                             \
         NULL,                                                                                                      \
         CLI_TEXT,                                                                                                  \
         (at) + offsetof(cli_device_args, main_device),                                                             \
         "ID",                                                                                                      \
         NULL,                                                                                                      \
         0,                                                                                                         \
         0,                                                                                                         \
         NULL,                                                                                                      \
         "device for what belongs to no layer; else the first"},                                                    \
        {"device-split",                                                                                            \
         NULL,                                                                                                      \
         CLI_TEXT,                                                                                                  \
         (at) + offsetof(cli_device_args, device_split),                                                            \
         "LIST",                                                                                                    \
         NULL,                                                                                                      \
         0,                                                                                                         \
         0,                                                                                                         \
         NULL,                                                                                                      \
         "shares of several accelerators, as 3,1; else by their free memory"},                                      \
        {"split",     NULL,                                                                                         \
         CLI_CHOICE,  (at) + offsetof(cli_device_args, split),                                                      \
         "HOW",       "layer",                                                                                      \
         0,           0,                                                                                            \
         "layer row", "share out whole layers, or the rows of every matrix"},                                       \
        {"kv-device", NULL,                                                                                         \
         CLI_TEXT,    (at) + offsetof(cli_device_args, kv_device),                                                  \
         "ID",        NULL,                                                                                         \
         0,           0,                                                                                            \
         NULL,        "device for the caches of attention; else with their layers"},                                \
        {"no-offload",                                                                                              \
         NULL,                                                                                                      \
         CLI_FLAG,                                                                                                  \
         (at) + offsetof(cli_device_args, no_offload),                                                              \
         NULL,                                                                                                      \
         NULL,                                                                                                      \
         0,                                                                                                         \
         0,                                                                                                         \
         NULL,                                                                                                      \
         "compute large batches where their weights live"},                                                         \
    {                                                                                                               \
        "memory", NULL, CLI_FLAG, (at) + offsetof(cli_device_args, memory), NULL, NULL, 0, 0, NULL,                 \
            "print what memory each device would need, and stop"                                                    \
    }
#define CLI_CPU_OPTION(at)                                                                                            \
    {                                                                                                                 \
        "cpu", NULL, CLI_CHOICE, at, "LEVEL", "auto", 0, 0,                                                           \
            "auto portable v2 v3 avxvnni v4 avx512vnni vnni amx neon dotprod i8mm bf16mm", "force an instruction set" \
    }
#define CLI_COMPUTE_OPTION(at)                                                                           \
    {                                                                                                    \
        "compute", NULL, CLI_CHOICE, at, "TYPE", "auto", 0, 0, "auto f32 f16 bf16 int8",                 \
            "numbers that weights are kept and multiplied in; auto = what the device multiplies fastest" \
    }

/* Whether a list has only names that devices have in some build: else it is a wrong argument, wherever it is run. */
bool cli_device_known(const char *list, sotto_error *err);
/* What the arguments say; threads, level and logger are left alone. */
void cli_device_fill(const cli_device_args *args, sotto_backend_options *out);
/* The need of each device, as a table on stdout. */
sotto_status cli_print_memory(const sotto_whisper_session *session, sotto_error *err);

#endif
