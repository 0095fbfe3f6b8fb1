/* llm.h: what the commands about text share: options of model and session, opening both, reading texts. */
#ifndef SOTTO_PROGRAMS_LLM_H
#define SOTTO_PROGRAMS_LLM_H

#include "common/device.h"
#include "common/options.h"
#include "common/terminal.h"
#include "common/text.h"
#include "sotto/llama.h"

typedef struct cli_llm_args {
    const char *model, *model_dir, *cpu, *compute, *cache_k, *cache_v;
    cli_device_args devices;
    int64_t threads, ctx, batch;
    bool no_gpu, no_mmap, mlock;
} cli_llm_args;

/* Formats of conversations that the library knows. */
#define CLI_CHAT_FORMATS                                                                                            \
    "chatml llama2 llama3 gemma mistral mistral-v1 mistral-v3 mistral-v3-tekken mistral-v7 mistral-v7-tekken phi3 " \
    "phi4 zephyr stablelm-zephyr vicuna deepseek-coder deepseek2 deepseek3 command-r"
/* Rows of a table of options; `at` is the offset of the cli_llm_args. */
#define CLI_LLM_MODEL_OPTIONS(at)                                                                                      \
    {"model",     "-m",                                                                                                \
     CLI_TEXT,    (at) + offsetof(cli_llm_args, model),                                                                \
     "NAME|PATH", "smollm2-135m",                                                                                      \
     0,           0,                                                                                                   \
     NULL,        "model: a name in ./models or the cache, or a path of a GGUF file (of a split one the first part)"}, \
    {                                                                                                                  \
        "model-dir", NULL, CLI_TEXT, (at) + offsetof(cli_llm_args, model_dir), "DIR", NULL, 0, 0, NULL,                \
            "look for the model's name here first"                                                                     \
    }
#define CLI_LLM_COMPUTE_OPTIONS(at)                                                                                     \
    CLI_THREADS_OPTION((at) + offsetof(cli_llm_args, threads)),                                                         \
        CLI_DEVICE_OPTIONS((at) + offsetof(cli_llm_args, devices)), CLI_CPU_OPTION((at) + offsetof(cli_llm_args, cpu)), \
        {"compute",                                                                                                     \
         NULL,                                                                                                          \
         CLI_CHOICE,                                                                                                    \
         (at) + offsetof(cli_llm_args, compute),                                                                        \
         "TYPE",                                                                                                        \
         "auto",                                                                                                        \
         0,                                                                                                             \
         0,                                                                                                             \
         "auto f32 f16 int8",                                                                                           \
         "numbers that products are computed in; f32 = weights expanded exactly; auto = what the device prefers"},      \
    {                                                                                                                   \
        "no-gpu", "-ng", CLI_FLAG, (at) + offsetof(cli_llm_args, no_gpu), NULL, NULL, 0, 0, NULL,                       \
            "same as --device cpu"                                                                                      \
    }
#define CLI_LLM_MAPPING_OPTIONS(at)                                                            \
    {"no-mmap", NULL, CLI_FLAG, (at) + offsetof(cli_llm_args, no_mmap),           NULL, NULL,  \
     0,         0,    NULL,     "read the file into memory instead of mapping it"},            \
    {                                                                                          \
        "mlock", NULL, CLI_FLAG, (at) + offsetof(cli_llm_args, mlock), NULL, NULL, 0, 0, NULL, \
            "keep the mapped file in memory while loading"                                     \
    }
#define CLI_LLM_CACHE_OPTIONS(at)                                                                         \
    {"batch", "-b -ub --batch-size --ubatch-size",                                                        \
     CLI_INT, (at) + offsetof(cli_llm_args, batch),                                                       \
     "N",     "512",                                                                                      \
     1,       1 << 20,                                                                                    \
     NULL,    "tokens of a prompt that are computed at once"},                                            \
        {"cache-type-k",                                                                                  \
         "-ctk",                                                                                          \
         CLI_CHOICE,                                                                                      \
         (at) + offsetof(cli_llm_args, cache_k),                                                          \
         "TYPE",                                                                                          \
         "auto",                                                                                          \
         0,                                                                                               \
         0,                                                                                               \
         "auto f16 f32 bf16 q8_0",                                                                        \
         "numbers of the cache of keys; auto = f16, for speech as in transcribe"},                        \
    {                                                                                                     \
        "cache-type-v", "-ctv", CLI_CHOICE, (at) + offsetof(cli_llm_args, cache_v), "TYPE", "auto", 0, 0, \
            "auto f16 f32 bf16 q8_0", "numbers of the cache of values; as for keys"                       \
    }
/* `ctx_preset` is that of --ctx. */
#define CLI_LLM_SESSION_OPTIONS(at, ctx_preset)                                             \
    {"ctx",   "-c --ctx-size",                                                              \
     CLI_INT, (at) + offsetof(cli_llm_args, ctx),                                           \
     "N",     ctx_preset,                                                                   \
     0,       1 << 24,                                                                      \
     NULL,    "tokens that the context holds; 0 = as the model was trained, at most 4096"}, \
        CLI_LLM_CACHE_OPTIONS(at)

/* A model by name or path; `vocabulary` opens it without its weights. Says what failed; CLI_OK, CLI_FAILED or CLI_USAGE. */
int cli_llm_open(const cli_llm_args *args, bool vocabulary, cli_log *log, sotto_llama_model **out);
/* A session for n_seq sequences, n_ctx positions (0: as the arguments say). */
sotto_status cli_llm_session(const cli_llm_args *args, const sotto_llama_model *model, int64_t n_ctx, int n_seq,
                             sotto_llama_session **out, sotto_error *err);
/* The need of each device, as a table on stdout. */
sotto_status cli_llm_print_memory(const sotto_llama_model *model, const sotto_llama_session *session, sotto_error *err);
/* Positions that a session of these arguments holds. */
int64_t cli_llm_context(const cli_llm_args *args, const sotto_llama_model *model);
/* What --ctx would hold so many tokens, as "--ctx 320", and that the model was not trained for it if it was not. */
const char *cli_llm_larger_context(const sotto_llama_model *model, int64_t wanted, char *out, size_t n);
/* Says what failed and gives the exit code. */
int cli_llm_failed(sotto_status status, const sotto_error *err);

/* A file's bytes, "-" = standard input. */
bool cli_read_file(const char *path, cli_text *out, sotto_error *err);

typedef struct cli_ids {
    int32_t *id;
    int64_t n;
} cli_ids; /* free(id) */
sotto_status cli_llm_tokenize(const sotto_llama_model *model, const char *text, size_t n, unsigned flags, cli_ids *out,
                              sotto_error *err);
/* Whether the model wants its begin token before a text. */
bool cli_llm_begins(const sotto_llama_model *model);

#endif
