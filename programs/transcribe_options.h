/* transcribe_options.h: what `sotto transcribe` can be asked for. */
#ifndef SOTTO_PROGRAMS_TRANSCRIBE_OPTIONS_H
#define SOTTO_PROGRAMS_TRANSCRIBE_OPTIONS_H

#include "common/device.h"
#include "common/options.h"
#include "common/vad_options.h"
#include "sotto/whisper.h"

typedef struct transcribe_args {
    const char *model, *model_dir, *cpu, *compute, *cache_k, *cache_v;
    cli_device_args devices;
    bool no_gpu, no_mmap, mlock;
    int64_t threads;
    const char *raw, *language, *task, *padding;
    bool translate, detect_language;
    cli_list formats;
    const char *output_dir, *output_file;
    bool no_timestamps, without_timestamps;
    int64_t offset_ms, duration_ms, audio_ctx;
    int64_t beam_size, best_of, max_tokens, max_context, seed;
    double patience, length_penalty, temperature, temperature_inc, max_initial_timestamp;
    bool no_fallback;
    double compression_ratio, logprob, no_speech;
    const char *prompt, *suppress_tokens;
    bool carry_initial_prompt, condition_on_previous_text, recover_missed, suppress_nst, suppress_blank;
    bool print_progress, quiet, timings, debug;
    const char *trace;
    const char *grammar, *grammar_rule;
    double grammar_penalty;
    int64_t batch;
    bool vad, no_vad;
    cli_vad_args vad_args;
} transcribe_args;

extern const cli_option transcribe_options[];

/* What the arguments say about decoding; `suppress` gets the ids that out->suppress_tokens points to (free it).
 * CLI_OK, or CLI_USAGE after a message. Callbacks are left alone. */
int transcribe_fill(const cli_command *command, const transcribe_args *args, sotto_whisper_options *out,
                    int32_t **suppress);

#endif
