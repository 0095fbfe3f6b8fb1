/* transcribe_options.c: the option table of `sotto transcribe`. Names are whisper-cli's; those of the original's program
 * are taken where they mean the same. */
#include "transcribe_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/device.h"

#define AT(field) offsetof(transcribe_args, field)
#define MS_MAX 3.2e10 /* a year */

const cli_option transcribe_options[] = {
    {"model", "-m", CLI_TEXT, AT(model), "NAME|PATH", "base", 0, 0, NULL,
     "model: a name in ./models or the cache, or a path"},
    {"model-dir", NULL, CLI_TEXT, AT(model_dir), "DIR", NULL, 0, 0, NULL, "look for the model's name here first"},
    {"file", NULL, CLI_INPUT, 0, "FILE", NULL, 0, 0, NULL, "one more input"},
    {"raw", NULL, CLI_TEXT, AT(raw), "ENC:RATE:CH", NULL, 0, 0, NULL,
     "inputs are headerless PCM, as s16le:16000:1 (u8 s8 s16le s24le s32le f32le f64le, ..be, alaw, mulaw)"},

    {"language", "-l", CLI_TEXT, AT(language), "CODE", "auto", 0, 0, NULL,
     "spoken language as en or english; auto detects it"},
    {"task", NULL, CLI_CHOICE, AT(task), "TASK", "transcribe", 0, 0, "transcribe translate",
     "translate gives English text"},
    {"translate", "-tr", CLI_FLAG, AT(translate), NULL, NULL, 0, 0, NULL, "same as --task translate"},
    {"detect-language", "-dl", CLI_FLAG, AT(detect_language), NULL, NULL, 0, 0, NULL,
     "print the language and its probability, then stop"},

    {"format", "-f --output-format", CLI_LIST, AT(formats), "LIST", NULL, 0, 0, NULL,
     "txt srt vtt lrc csv tsv json json-full, separated by commas; all = txt,vtt,srt,tsv,json"},
    {"output-dir", "-o", CLI_TEXT, AT(output_dir), "DIR", NULL, 0, 0, NULL,
     "write DIR/<input's name>.<format>; - is standard output"},
    {"output-file", "-of", CLI_TEXT, AT(output_file), "BASE", NULL, 0, 0, NULL,
     "write BASE.<format> (one input); - is standard output"},
    {"output-txt", "-otxt", CLI_APPEND, AT(formats), NULL, NULL, 0, 0, "txt", "same as -f txt"},
    {"output-srt", "-osrt", CLI_APPEND, AT(formats), NULL, NULL, 0, 0, "srt", "same as -f srt"},
    {"output-vtt", "-ovtt", CLI_APPEND, AT(formats), NULL, NULL, 0, 0, "vtt", "same as -f vtt"},
    {"output-lrc", "-olrc", CLI_APPEND, AT(formats), NULL, NULL, 0, 0, "lrc", "same as -f lrc"},
    {"output-csv", "-ocsv", CLI_APPEND, AT(formats), NULL, NULL, 0, 0, "csv", "same as -f csv"},
    {"output-json", "-oj", CLI_APPEND, AT(formats), NULL, NULL, 0, 0, "json", "same as -f json"},
    {"output-json-full", "-ojf", CLI_APPEND, AT(formats), NULL, NULL, 0, 0, "json-full", "same as -f json-full"},
    {"no-timestamps", "-nt", CLI_FLAG, AT(no_timestamps), NULL, NULL, 0, 0, NULL,
     "print plain text, one line a segment (decoding stays the same)"},
    {"without-timestamps", NULL, CLI_FLAG, AT(without_timestamps), NULL, NULL, 0, 0, NULL,
     "ask the model for text only; a segment is then a whole window"},

    CLI_THREADS_OPTION(AT(threads)),
    CLI_DEVICE_OPTIONS(AT(devices)),
    CLI_CPU_OPTION(AT(cpu)),
    CLI_COMPUTE_OPTION(AT(compute)),
    {"cache-type-k", "-ctk", CLI_CHOICE, AT(cache_k), "TYPE", "auto", 0, 0, "auto f16 f32 bf16 q8_0",
     "numbers of the caches of keys; auto = f16, in bf16 bf16, in int8 as is fastest"},
    {"cache-type-v", "-ctv", CLI_CHOICE, AT(cache_v), "TYPE", "auto", 0, 0, "auto f16 f32 bf16 q8_0",
     "numbers of the caches of values; as for keys"},
    {"no-gpu", "-ng", CLI_FLAG, AT(no_gpu), NULL, NULL, 0, 0, NULL, "same as --device cpu"},
    {"no-mmap", NULL, CLI_FLAG, AT(no_mmap), NULL, NULL, 0, 0, NULL, "read the model into memory instead of mapping it"},
    {"mlock", NULL, CLI_FLAG, AT(mlock), NULL, NULL, 0, 0, NULL, "keep the mapped model in memory while loading"},
    {"flash-attn", "-fa", CLI_IGNORED, 0, NULL, NULL, 0, 0, NULL, "accepted: attention is always fused"},

    {"offset-t", "-ot", CLI_INT, AT(offset_ms), "MS", "0", 0, MS_MAX, NULL, "start here, in milliseconds"},
    {"duration", "-d", CLI_INT, AT(duration_ms), "MS", "0", 0, MS_MAX, NULL,
     "stop after so many milliseconds; 0 = at the end"},
    {"audio-ctx", "-ac", CLI_INT, AT(audio_ctx), "N", "0", 0, 1500, NULL,
     "encoder positions of a window (50 a second); 0 = all"},
    {"padding", NULL, CLI_CHOICE, AT(padding), "KIND", "auto", 0, 0, "auto whole thin",
     "compute all of the silence that fills windows up, or a part; auto = a part with --batch"},

    {"beam-size", "-bs", CLI_INT, AT(beam_size), "N", "5", 0, 16, NULL, "beams at temperature 0; 0 or 1 is greedy"},
    {"best-of", "-bo", CLI_INT, AT(best_of), "N", "5", 1, 16, NULL, "candidates at higher temperatures"},
    {"patience", NULL, CLI_NUMBER, AT(patience), "X", "1", 0.01, 100, NULL,
     "beam search ends with beam-size * X finished beams"},
    {"length-penalty", NULL, CLI_NUMBER, AT(length_penalty), "X", "-1", -1, 10, NULL,
     "exponent of the length penalty; below 0 = divide by the length"},
    {"temperature", "-tp", CLI_NUMBER, AT(temperature), "X", "0", 0, 2, NULL, "first temperature, 0 to 2"},
    {"temperature-inc", "-tpi --temperature-increment-on-fallback", CLI_NUMBER, AT(temperature_inc), "X", "0.2", 0, 2,
     NULL, "step up to 1 when a window fails the thresholds; 0 or 0.01 to 2"},
    {"no-fallback", "-nf", CLI_FLAG, AT(no_fallback), NULL, NULL, 0, 0, NULL, "same as --temperature-inc 0"},
    {"compression-ratio-threshold", NULL, CLI_LIMIT, AT(compression_ratio), "X", "2.4", 0, 100, NULL,
     "a window fails above (repetition), or off"},
    {"entropy-thold", "-et", CLI_REPLACED, 0, "X", NULL, 0, 0, NULL,
     "repetition is measured as in the original: use --compression-ratio-threshold"},
    {"logprob-thold", "-lpt --logprob-threshold", CLI_LIMIT, AT(logprob), "X", "-1", -100, 0, NULL,
     "a window fails below this average log-probability, or off"},
    {"no-speech-thold", "-nth --no-speech-threshold", CLI_LIMIT, AT(no_speech), "X", "0.6", 0, 1, NULL,
     "a failed window above this probability of no speech is silence, or off"},
    {"max-tokens", NULL, CLI_INT, AT(max_tokens), "N", "0", 0, 224, NULL,
     "longer segments are split, nothing is lost; 0 = no limit; up to 224"},
    {"max-initial-timestamp", NULL, CLI_LIMIT, AT(max_initial_timestamp), "S", "1", 0, 30, NULL,
     "a window's first segment begins within so many seconds (0 to 30), or off"},
    {"seed", NULL, CLI_INT, AT(seed), "N", "0", 0, 9e18, NULL, "of sampling at temperatures above 0"},

    {"prompt", "--initial-prompt", CLI_TEXT, AT(prompt), "TEXT", NULL, 0, 0, NULL,
     "text that comes before the recording"},
    {"carry-initial-prompt", NULL, CLI_FLAG, AT(carry_initial_prompt), NULL, NULL, 0, 0, NULL,
     "the prompt before every window"},
    {"condition-on-previous-text", NULL, CLI_BOOL, AT(condition_on_previous_text), "BOOL", "true", 0, 0, NULL,
     "let a window know the text before it"},
    {"recover-missed", NULL, CLI_BOOL, AT(recover_missed), "BOOL", "true", 0, 0, NULL,
     "hear again what a window's text leaves out of the speech"},
    {"max-context", "-mc", CLI_INT, AT(max_context), "N", "-1", -1, 1e6, NULL,
     "tokens of previous text; -1 = the model's limit"},
    {"suppress-tokens", NULL, CLI_TEXT, AT(suppress_tokens), "IDS", "-1", 0, 0, NULL,
     "token ids never decoded, separated by commas; -1 stands for symbols that are no speech"},
    {"suppress-nst", "-sns", CLI_FLAG, AT(suppress_nst), NULL, NULL, 0, 0, NULL,
     "never decode symbols that are no speech (already so)"},
    {"suppress-blank", NULL, CLI_BOOL, AT(suppress_blank), "BOOL", "true", 0, 0, NULL, "no window begins with a blank"},

    {"grammar", NULL, CLI_TEXT, AT(grammar), "GBNF|FILE", NULL, 0, 0, NULL,
     "the text of each window follows this grammar (it begins with a space)"},
    {"grammar-rule", NULL, CLI_TEXT, AT(grammar_rule), "NAME", "root", 0, 0, NULL, "the rule to begin with"},
    {"grammar-penalty", NULL, CLI_NUMBER, AT(grammar_penalty), "X", "100", 0, 1e6, NULL,
     "what tokens that leave the grammar lose from their logits"},

    {"batch", NULL, CLI_INT, AT(batch), "N", "-1", -1, 32, NULL,
     "decode so many chunks of speech at once, which do not see each other's text; implies --vad; 0 = as many as suit "
     "the machine (1, 4 or 8, by the threads); -1 = with --vad 0, else 1"},
    {"vad", NULL, CLI_FLAG, AT(vad), NULL, NULL, 0, 0, NULL,
     "decode only where there is speech, in windows that end in pauses"},
    {"no-vad", NULL, CLI_FLAG, AT(no_vad), NULL, NULL, 0, 0, NULL,
     "with --batch: hear everything, cut where it is most silent"},
    CLI_VAD_OPTIONS(AT(vad_args)),

    {"print-progress", "-pp", CLI_FLAG, AT(print_progress), NULL, NULL, 0, 0, NULL,
     "progress as lines when stderr is no terminal"},
    {"quiet", "-q -np --no-prints", CLI_FLAG, AT(quiet), NULL, NULL, 0, 0, NULL, "nothing on stderr but errors"},
    {"timings", NULL, CLI_FLAG, AT(timings), NULL, NULL, 0, 0, NULL, "times and memory on stderr"},
    {"trace", NULL, CLI_MODE, AT(trace), "ops", NULL, 0, 0, "ops sched dot",
     "every operation with shape and time on stderr; sched = what runs on which device and what is copied; dot = the "
     "graphs for Graphviz on stdout, and nothing else"},
    {"debug-mode", "-debug", CLI_FLAG, AT(debug), NULL, NULL, 0, 0, NULL, "more messages on stderr"},

    {"vad-samples-overlap", "-vo", CLI_REPLACED, 0, "S", NULL, 0, 0, NULL,
     "windows keep 0.4 s of the pauses around speech"},
    {"suppress-regex", NULL, CLI_LATER, 0, "REGEX", NULL, 0, 0, NULL, "suppressing tokens by a pattern"},
    {"dtw", "-dtw", CLI_LATER, 0, "PRESET", NULL, 0, 0, NULL, "times of words"},
    {"word-timestamps", NULL, CLI_LATER, 0, "BOOL", NULL, 0, 0, NULL, "times of words"},
    {"word-thold", "-wt", CLI_LATER, 0, "X", NULL, 0, 0, NULL, "times of words"},
    {"highlight-words", NULL, CLI_LATER, 0, "BOOL", NULL, 0, 0, NULL, "times of words"},
    {"hallucination-silence-threshold", NULL, CLI_LATER, 0, "S", NULL, 0, 0, NULL, "times of words"},
    {"output-words", "-owts", CLI_LATER, 0, NULL, NULL, 0, 0, NULL, "times of words"},
    {"font-path", "-fp", CLI_LATER, 0, "PATH", NULL, 0, 0, NULL, "times of words"},
    {"max-len", "-ml", CLI_LATER, 0, "N", NULL, 0, 0, NULL, "wrapping of segments"},
    {"split-on-word", "-sow", CLI_LATER, 0, NULL, NULL, 0, 0, NULL, "wrapping of segments"},
    {"max-line-width", NULL, CLI_LATER, 0, "N", NULL, 0, 0, NULL, "wrapping of segments"},
    {"max-line-count", NULL, CLI_LATER, 0, "N", NULL, 0, 0, NULL, "wrapping of segments"},
    {"max-words-per-line", NULL, CLI_LATER, 0, "N", NULL, 0, 0, NULL, "wrapping of segments"},
    {"clip-timestamps", NULL, CLI_LATER, 0, "LIST", NULL, 0, 0, NULL, "several windows (one: --offset-t and --duration)"},
    {"offset-n", "-on", CLI_LATER, 0, "N", NULL, 0, 0, NULL, "numbering from N"},
    {"diarize", "-di", CLI_LATER, 0, NULL, NULL, 0, 0, NULL, "telling speakers apart"},
    {"tinydiarize", "-tdrz", CLI_LATER, 0, NULL, NULL, 0, 0, NULL, "telling speakers apart"},
    {"processors", "-p", CLI_LATER, 0, "N", NULL, 0, 0, NULL, "splitting one recording among sessions"},
    {"print-special", "-ps", CLI_LATER, 0, NULL, NULL, 0, 0, NULL, "printing special tokens (json-full has them)"},
    {"print-colors", "-pc", CLI_LATER, 0, NULL, NULL, 0, 0, NULL, "colours by probability (json-full has the numbers)"},
    {"print-confidence", NULL, CLI_LATER, 0, NULL, NULL, 0, 0, NULL, "style by probability (json-full has the numbers)"},
    {"log-score", "-ls", CLI_LATER, 0, NULL, NULL, 0, 0, NULL, "a file of scores (json-full has the numbers)"},
    {"no-flash-attn", "-nfa", CLI_LATER, 0, NULL, NULL, 0, 0, NULL, "attention that is not fused"},
    {"ov-e-device", "-oved", CLI_LATER, 0, "ID", NULL, 0, 0, NULL, "an OpenVINO encoder"},
    {"fp16", NULL, CLI_REPLACED, 0, "BOOL", NULL, 0, 0, NULL,
     "the model file decides the type of numbers (sotto convert)"},
    {0}};

/* "-1,50257" */
static bool parse_ids(const char *text, int32_t **ids, int *n, bool *non_speech)
{
    *n = 0;
    *non_speech = false;
    *ids = calloc(strlen(text) / 2 + 1, sizeof **ids);
    if (!*ids)
        return false;
    for (const char *p = text; *p;) {
        char *end;
        errno = 0;
        const long v = strtol(p, &end, 10);
        if (end == p || errno || v < -1 || v > 10000000 || (*end && *end != ','))
            return false;
        if (v == -1)
            *non_speech = true;
        else
            (*ids)[(*n)++] = (int32_t)v;
        if (*end == ',' && !end[1])
            return false;
        p = *end ? end + 1 : end;
    }
    return true;
}

int transcribe_fill(const cli_command *command, const transcribe_args *a, sotto_whisper_options *o, int32_t **suppress)
{
    sotto_whisper_options_default(o);
    bool non_speech;
    if (!parse_ids(a->suppress_tokens, suppress, &o->n_suppress_tokens, &non_speech))
        return cli_usage(command, "--suppress-tokens: \"%s\" is not a list of token ids separated by commas",
                         a->suppress_tokens);
    o->suppress_tokens = *suppress;
    o->suppress_non_speech = non_speech || a->suppress_nst;
    if (*a->language && strcmp(a->language, "auto") != 0 && sotto_language_find(a->language) < 0)
        return cli_usage(command, "--language: \"%s\" is not a language: use a code as en or a name as english, or auto",
                         a->language);
    o->language = a->language;
    o->task = a->translate || strcmp(a->task, "translate") == 0 ? SOTTO_TRANSLATE : SOTTO_TRANSCRIBE;
    o->timestamps = !a->without_timestamps;
    o->offset = (double)a->offset_ms / 1000;
    o->duration = (double)a->duration_ms / 1000;
    o->audio_ctx = (int)a->audio_ctx;
    o->padding = strcmp(a->padding, "thin") == 0    ? SOTTO_PADDING_THIN
                 : strcmp(a->padding, "whole") == 0 ? SOTTO_PADDING_WHOLE
                                                    : SOTTO_PADDING_AUTO;
    o->beam_size = (int)a->beam_size;
    o->best_of = (int)a->best_of;
    o->patience = (float)a->patience;
    o->length_penalty = (float)a->length_penalty;
    o->temperature = (float)a->temperature;
    o->temperature_inc = a->no_fallback ? 0 : (float)a->temperature_inc;
    o->seed = (uint64_t)a->seed;
    o->compression_ratio_threshold = (float)a->compression_ratio;
    o->logprob_threshold = (float)a->logprob;
    o->no_speech_threshold = (float)a->no_speech;
    o->max_tokens = (int)a->max_tokens;
    o->suppress_blank = a->suppress_blank;
    o->max_initial_timestamp = a->max_initial_timestamp >= 0 ? (float)a->max_initial_timestamp : -1.0f;
    o->initial_prompt = a->prompt;
    o->carry_initial_prompt = a->carry_initial_prompt;
    o->condition_on_previous_text = a->condition_on_previous_text;
    o->recover_missed = a->recover_missed;
    o->max_context = (int)a->max_context;
    if (a->vad && a->no_vad)
        return cli_usage(command, "--vad and --no-vad exclude each other");
    o->batch = a->batch >= 0 ? (int)a->batch : a->vad ? 0 : 1;
    o->grammar_penalty = (float)a->grammar_penalty;
    cli_vad_fill(&a->vad_args, &o->vad_options);
    return CLI_OK;
}
