/* sampling.h: how the next token is chosen: options of `generate` and `chat`. */
#ifndef SOTTO_PROGRAMS_SAMPLING_H
#define SOTTO_PROGRAMS_SAMPLING_H

#include "common/llm.h"

typedef struct cli_sampling_args {
    int64_t seed, top_k, repeat_last;
    double temperature, top_p, min_p, typical, repeat_penalty, frequency_penalty, presence_penalty;
    double mirostat_tau, mirostat_eta;
    const char *mirostat, *grammar, *grammar_file, *json_schema;
    cli_list logit_bias, stop;
    bool ignore_eos;
} cli_sampling_args;

#define CLI_SAMPLING_ROW(name, also, kind, at, field, value, preset, min, max, choices, help)               \
    {                                                                                                       \
        name, also, kind, (at) + offsetof(cli_sampling_args, field), value, preset, min, max, choices, help \
    }
/* Rows of a table of options; `at` is the offset of the cli_sampling_args. */
#define CLI_SAMPLING_OPTIONS(at)                                                                                      \
    CLI_SAMPLING_ROW("seed", "-s", CLI_INT, at, seed, "N", "-1", -1, 9e18, NULL,                                      \
                     "same seed, same text; -1 = another one each time, which is told"),                              \
        CLI_SAMPLING_ROW("temperature", "--temp", CLI_NUMBER, at, temperature, "X", "0.8", 0, 100, NULL,              \
                         "0 = always the likeliest token"),                                                           \
        CLI_SAMPLING_ROW("top-k", NULL, CLI_INT, at, top_k, "N", "40", 0, 1e9, NULL,                                  \
                         "only the N likeliest tokens; 0 = all"),                                                     \
        CLI_SAMPLING_ROW("top-p", NULL, CLI_NUMBER, at, top_p, "X", "0.95", 0, 1, NULL,                               \
                         "only the likeliest that together are so probable; 1 = all"),                                \
        CLI_SAMPLING_ROW("min-p", NULL, CLI_NUMBER, at, min_p, "X", "0.05", 0, 1, NULL,                               \
                         "only those at least X times as probable as the likeliest; 0 = all"),                        \
        CLI_SAMPLING_ROW("typical", "--typical-p", CLI_NUMBER, at, typical, "X", "1", 0, 1, NULL,                     \
                         "only those of about the expected information, together so probable; 1 = all"),              \
        CLI_SAMPLING_ROW("repeat-penalty", NULL, CLI_NUMBER, at, repeat_penalty, "X", "1", 0.01, 100, NULL,           \
                         "logits of recent tokens are divided by it; 1 = off"),                                       \
        CLI_SAMPLING_ROW("repeat-last", "--repeat-last-n", CLI_INT, at, repeat_last, "N", "64", -1, 1e9, NULL,        \
                         "tokens that penalties look back; 0 = none, -1 = all"),                                      \
        CLI_SAMPLING_ROW("frequency-penalty", NULL, CLI_NUMBER, at, frequency_penalty, "X", "0", -100, 100, NULL,     \
                         "subtracted for each time that a token was used"),                                           \
        CLI_SAMPLING_ROW("presence-penalty", NULL, CLI_NUMBER, at, presence_penalty, "X", "0", -100, 100, NULL,       \
                         "subtracted once from tokens that were used"),                                               \
        CLI_SAMPLING_ROW("mirostat", NULL, CLI_CHOICE, at, mirostat, "N", "0", 0, 0, "0 2",                           \
                         "version; it replaces top-k, top-p, min-p and typical"),                                     \
        CLI_SAMPLING_ROW("mirostat-tau", "--mirostat-ent", CLI_NUMBER, at, mirostat_tau, "X", "5", 0, 100, NULL,      \
                         "information that it aims at, in bits"),                                                     \
        CLI_SAMPLING_ROW("mirostat-eta", "--mirostat-lr", CLI_NUMBER, at, mirostat_eta, "X", "0.1", 0, 1, NULL,       \
                         "how fast it learns"),                                                                       \
        CLI_SAMPLING_ROW("logit-bias", "-l", CLI_LIST, at, logit_bias, "ID+X", NULL, 0, 0, NULL,                      \
                         "added to a token's logit, as 15043+1 or 15043-inf; may be repeated"),                       \
        CLI_SAMPLING_ROW("grammar", NULL, CLI_TEXT, at, grammar, "GBNF|FILE", NULL, 0, 0, NULL,                       \
                         "only texts of this grammar; what has no ::= is the name of a file"),                        \
        CLI_SAMPLING_ROW("grammar-file", NULL, CLI_TEXT, at, grammar_file, "FILE", NULL, 0, 0, NULL,                  \
                         "the same from a file"),                                                                     \
        CLI_SAMPLING_ROW("json-schema", "-j -jf --json-schema-file", CLI_TEXT, at, json_schema, "FILE|JSON", NULL, 0, \
                         0, NULL, "only JSON of this schema"),                                                        \
        CLI_SAMPLING_ROW("stop", "-r --reverse-prompt", CLI_LIST, at, stop, "TEXT", NULL, 0, 0, NULL,                 \
                         "end before this text; may be repeated"),                                                    \
        CLI_SAMPLING_ROW("ignore-eos", NULL, CLI_FLAG, at, ignore_eos, NULL, NULL, 0, 0, NULL,                        \
                         "never choose a token that ends the text")

/* What the arguments mean for a model; owns what the sampler borrows. */
typedef struct cli_sampling {
    sotto_sampler_options options;
    sotto_logit_bias *bias;
    sotto_grammar *grammar;
    uint64_t seed; /* in use */
} cli_sampling;

/* --grammar takes a grammar or the name of a file: every grammar has "::=", what has not is a name. */
bool cli_is_grammar_text(const char *given);
/* Usage errors before a model is opened: CLI_OK or CLI_USAGE after a message. */
int cli_sampling_check(const cli_command *command, const cli_sampling_args *args);
sotto_status cli_sampling_fill(const cli_sampling_args *args, const sotto_llama_model *model, cli_sampling *out,
                               sotto_error *err);
void cli_sampling_free(cli_sampling *s);

#endif
