/* llm.c: opening models that write text. Contract: llm.h. */
#include "common/llm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/models.h"
#include "common/outfile.h"

enum { LONGEST_CONTEXT = 4096, BLOCK = 1 << 16 };

int cli_llm_failed(sotto_status status, const sotto_error *err)
{
    cli_say_library(NULL, "", err->text[0] ? err->text : sotto_status_name(status));
    return status == SOTTO_E_ARGUMENT ? CLI_USAGE : CLI_FAILED;
}

/* Who left the choice to the program is told when it is not the CPU alone. */
static void tell_device(const cli_llm_args *a, const cli_log *log, const sotto_llama_model *model)
{
    const sotto_backend *backend = sotto_llama_model_backend(model);
    sotto_device_info info;
    if (!log->quiet && !a->no_gpu && strcmp(a->devices.device, "auto") == 0 &&
        sotto_backend_device_count(backend) > 1 && sotto_backend_device(backend, 0, &info, NULL) == SOTTO_OK)
        cli_say(NULL, "computing on %s", info.id);
}

int cli_llm_open(const cli_llm_args *a, bool vocabulary, cli_log *log, sotto_llama_model **out)
{
    sotto_error err = {0};
    sotto_llama_model_options o;
    sotto_llama_model_options_default(&o);
    *out = NULL;
    if (a->no_gpu && strcmp(a->devices.device, "auto") != 0) {
        cli_say(NULL, "--no-gpu and --device exclude each other");
        return CLI_USAGE;
    }
    if (!vocabulary && !cli_device_known(a->devices.device, &err))
        return cli_llm_failed(err.code, &err);
    if (vocabulary) {
        o.backend.device = "reference"; /* nothing is computed */
    } else {
        cli_device_fill(&a->devices, &o.backend);
        if (a->no_gpu)
            o.backend.device = "cpu";
        o.backend.n_threads = (int)a->threads;
        o.backend.cpu_level = a->cpu;
        o.compute = a->compute;
        o.no_mmap = a->no_mmap;
        o.mlock = a->mlock;
    }
    o.measure_only = vocabulary || a->devices.memory;
    o.backend.logger = cli_logger(log);
    char *path = cli_model_path(a->model, a->model_dir, &err);
    const sotto_status status = path ? sotto_llama_model_open(path, &o, out, &err) : err.code;
    free(path);
    if (status != SOTTO_OK)
        return cli_llm_failed(status, &err);
    if (!vocabulary)
        tell_device(a, log, *out);
    return CLI_OK;
}

int64_t cli_llm_context(const cli_llm_args *a, const sotto_llama_model *model)
{
    sotto_llama_model_info info;
    sotto_llama_model_get_info(model, &info);
    return a->ctx > 0 ? a->ctx : info.n_ctx_train < LONGEST_CONTEXT ? info.n_ctx_train : LONGEST_CONTEXT;
}

const char *cli_llm_larger_context(const sotto_llama_model *model, int64_t wanted, char *out, size_t n)
{
    sotto_llama_model_info info;
    sotto_llama_model_get_info(model, &info);
    if (info.n_ctx_train > 0 && wanted > info.n_ctx_train)
        snprintf(out, n, "--ctx %lld (more than the %d that the model was trained for, so the text may lose its sense)",
                 (long long)wanted, info.n_ctx_train);
    else
        snprintf(out, n, "--ctx %lld", (long long)wanted);
    return out;
}

static sotto_dtype cache_type(const char *name)
{
    static const struct {
        const char *name;
        sotto_dtype dtype;
    } types[] = {{"f32", SOTTO_F32}, {"bf16", SOTTO_BF16}, {"q8_0", SOTTO_Q8_0}};
    for (size_t i = 0; name && i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0)
            return types[i].dtype;
    return SOTTO_F16;
}

sotto_status cli_llm_session(const cli_llm_args *a, const sotto_llama_model *model, int64_t n_ctx, int n_seq,
                             sotto_llama_session **out, sotto_error *err)
{
    sotto_llama_session_options o;
    sotto_llama_session_options_default(&o);
    o.n_ctx = (int)(n_ctx > 0 ? n_ctx : cli_llm_context(a, model));
    o.n_batch = a->batch > 0 ? (int)a->batch : o.n_batch;
    o.n_seq = n_seq;
    o.cache_k = cache_type(a->cache_k);
    o.cache_v = cache_type(a->cache_v);
    return sotto_llama_session_create(model, &o, out, err);
}

sotto_status cli_llm_print_memory(const sotto_llama_model *model, const sotto_llama_session *session, sotto_error *err)
{
    static const char line[] = "%-12s %10.1f %10.1f %10.1f %10.1f %10.1f\n";
    const sotto_backend *backend = sotto_llama_model_backend(model);
    printf("%-12s %10s %10s %10s %10s %10s\n", "MB", "weights", "caches", "compute", "total", "in file");
    const int n = sotto_backend_device_count(backend);
    for (int d = 0; d <= n; d++) {
        sotto_device_info info = {.id = "all"};
        sotto_llama_memory m;
        const sotto_status status = d < n ? sotto_backend_device(backend, d, &info, err) : SOTTO_OK;
        if (status != SOTTO_OK)
            return status;
        sotto_llama_get_memory(session, d < n ? d : -1, &m);
        printf(line, info.id, (double)m.weights / 1e6, (double)m.cache / 1e6, (double)m.compute / 1e6,
               (double)(m.weights + m.cache + m.compute) / 1e6, (double)m.in_place / 1e6);
    }
    return SOTTO_OK;
}

bool cli_read_file(const char *path, cli_text *out, sotto_error *err)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    FILE *f = is_stdin ? stdin : fopen(path, "rb");
    const char *name = is_stdin ? "standard input" : path;
    if (!f)
        return cli_fail(err, errno == ENOENT ? SOTTO_E_NOT_FOUND : SOTTO_E_IO, "cannot open %s: %s", name,
                        strerror(errno));
    char *block = malloc(BLOCK);
    size_t n = 0;
    errno = 0;
    while (block && (n = fread(block, 1, BLOCK, f)) > 0)
        cli_text_add(out, block, n);
    bool ok = block && !out->failed;
    if (!ok)
        cli_fail(err, SOTTO_E_MEMORY, "%s: out of memory", name);
    else if (ferror(f))
        ok = cli_interrupted() ? cli_fail(err, SOTTO_E_ABORTED, "interrupted")
                               : cli_fail(err, SOTTO_E_IO, "cannot read %s: %s", name, strerror(errno));
    free(block);
    if (!is_stdin)
        fclose(f);
    return ok;
}

sotto_status cli_llm_tokenize(const sotto_llama_model *model, const char *text, size_t n, unsigned flags, cli_ids *out,
                              sotto_error *err)
{
    *out = (cli_ids){0};
    int64_t count = (int64_t)n + 16, cap = 0; /* a token is at least a byte, nearly always: once is enough */
    sotto_status status = SOTTO_OK;
    while (status == SOTTO_OK && count > cap) {
        cap = count;
        free(out->id);
        out->id = malloc((size_t)cap * sizeof *out->id);
        if (out->id)
            status = sotto_llama_tokenize(model, text, n, flags, out->id, cap, &count, err);
        else
            cli_fail(err, status = SOTTO_E_MEMORY, "out of memory");
    }
    out->n = status == SOTTO_OK ? count : 0;
    return status;
}

bool cli_llm_begins(const sotto_llama_model *model)
{
    cli_ids ids;
    const int32_t begin = sotto_llama_token_find(model, SOTTO_LLAMA_TOKEN_BEGIN);
    const bool yes = cli_llm_tokenize(model, "", 0, SOTTO_TOKENIZE_ADD_SPECIAL, &ids, NULL) == SOTTO_OK && ids.n > 0 &&
                     begin >= 0 && ids.id[0] == begin;
    free(ids.id);
    return yes;
}
