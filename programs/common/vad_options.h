/* vad_options.h: the options of voice activity detection, which more than one subcommand has. Names are whisper-cli's. */
#ifndef SOTTO_PROGRAMS_VAD_OPTIONS_H
#define SOTTO_PROGRAMS_VAD_OPTIONS_H

#include "common/options.h"
#include "sotto/vad.h"

typedef struct cli_vad_args {
    const char *model;
    double threshold, neg_threshold, max_speech_s;
    int64_t min_speech_ms, min_silence_ms, pad_ms;
} cli_vad_args;

/* Rows of a table of options; `at` is the offset of the cli_vad_args. */
#define CLI_VAD_OPTIONS(at)                                                                                     \
    {"vad-model", "-vm",                                                                                        \
     CLI_TEXT,    (at) + offsetof(cli_vad_args, model),                                                         \
     "NAME|PATH", "silero-vad",                                                                                 \
     0,           0,                                                                                            \
     NULL,        "model that finds speech (sotto get silero-vad)"},                                            \
        {"vad-threshold",                                                                                       \
         "-vt",                                                                                                 \
         CLI_NUMBER,                                                                                            \
         (at) + offsetof(cli_vad_args, threshold),                                                              \
         "P",                                                                                                   \
         "0.5",                                                                                                 \
         0,                                                                                                     \
         1,                                                                                                     \
         NULL,                                                                                                  \
         "speech begins where it is as likely as this"},                                                        \
        {"vad-neg-threshold",                                                                                   \
         NULL,                                                                                                  \
         CLI_LIMIT,                                                                                             \
         (at) + offsetof(cli_vad_args, neg_threshold),                                                          \
         "P",                                                                                                   \
         "off",                                                                                                 \
         0,                                                                                                     \
         1,                                                                                                     \
         NULL,                                                                                                  \
         "and may end where it is less likely than this; off = 0.15 below the threshold"},                      \
        {"vad-min-speech-duration-ms",                                                                          \
         "-vspd",                                                                                               \
         CLI_INT,                                                                                               \
         (at) + offsetof(cli_vad_args, min_speech_ms),                                                          \
         "MS",                                                                                                  \
         "250",                                                                                                 \
         0,                                                                                                     \
         3.6e6,                                                                                                 \
         NULL,                                                                                                  \
         "speech that is not longer is left out"},                                                              \
        {"vad-min-silence-duration-ms",                                                                         \
         "-vsd",                                                                                                \
         CLI_INT,                                                                                               \
         (at) + offsetof(cli_vad_args, min_silence_ms),                                                         \
         "MS",                                                                                                  \
         "100",                                                                                                 \
         0,                                                                                                     \
         3.6e6,                                                                                                 \
         NULL,                                                                                                  \
         "a pause as long ends a span of speech"},                                                              \
        {"vad-max-speech-duration-s",                                                                           \
         "-vmsd",                                                                                               \
         CLI_LIMIT,                                                                                             \
         (at) + offsetof(cli_vad_args, max_speech_s),                                                           \
         "S",                                                                                                   \
         "off",                                                                                                 \
         0.1,                                                                                                   \
         3.5e38,                                                                                                \
         NULL,                                                                                                  \
         "longer spans are cut at their longest pause"},                                                        \
    {                                                                                                           \
        "vad-speech-pad-ms", "-vp", CLI_INT, (at) + offsetof(cli_vad_args, pad_ms), "MS", "30", 0, 3.6e6, NULL, \
            "added before and behind each span"                                                                 \
    }

/* The model by name or path. */
bool cli_vad_open(const cli_vad_args *args, const char *model_dir, const sotto_backend_options *backend,
                  sotto_vad_model **out, sotto_error *err);
void cli_vad_fill(const cli_vad_args *args, sotto_vad_options *out);

#endif
