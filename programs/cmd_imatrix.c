/* cmd_imatrix.c: how much each column of a model's matrices matters, from a text that is run through the model. The text is
 * cut into chunks as for the perplexity, each with the begin token where the model has one; for every matrix of the layers
 * the squares of what it is multiplied with are summed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "common/llm.h"
#include "common/outfile.h"
#include "sotto/model.h"

typedef struct imatrix_args {
    cli_llm_args llm;
    const char *file, *output, *in;
    int64_t chunks;
    bool force, quiet;
} imatrix_args;

#define AT(field) offsetof(imatrix_args, field)
static const cli_option options[] = {
    CLI_LLM_MODEL_OPTIONS(AT(llm)),
    {"file", "-f", CLI_TEXT, AT(file), "FILE", NULL, 0, 0, NULL,
     "the text, without the line break at its end; - = standard input"},
    {"output", "-o --output-file", CLI_TEXT, AT(output), "FILE", "imatrix.gguf", 0, 0, NULL, "what is written"},
    {"in", "--in-file", CLI_TEXT, AT(in), "FILE", NULL, 0, 0, NULL, "begin with the sums of this one"},
    CLI_LLM_SESSION_OPTIONS(AT(llm), "512"),
    {"chunks", NULL, CLI_INT, AT(chunks), "N", "-1", -1, 1e9, NULL, "only the first N chunks; -1 = all"},
    CLI_LLM_COMPUTE_OPTIONS(AT(llm)),
    CLI_LLM_MAPPING_OPTIONS(AT(llm)),
    {"force", NULL, CLI_FLAG, AT(force), NULL, NULL, 0, 0, NULL, "write over an existing file"},
    {"quiet", "-q", CLI_FLAG, AT(quiet), NULL, NULL, 0, 0, NULL, "nothing on stderr but errors"},
    {0}};

typedef struct sums {
    sotto_imatrix *matrix;
    float *squares;
    int64_t width; /* floats of `squares` */
    sotto_status status;
    sotto_error err;
} sums;

static bool on_abort(void *user)
{
    (void)user;
    return cli_interrupted();
}

/* Rows [n, width] that met a matrix. */
static void observe(void *user, const char *weight, const float *rows, int64_t n, int64_t width)
{
    sums *s = user;
    if (s->status != SOTTO_OK || strncmp(weight, "blk.", 4) != 0)
        return;
    if (s->width < width) {
        float *grown = realloc(s->squares, (size_t)width * sizeof *grown);
        if (!grown) {
            cli_fail(&s->err, s->status = SOTTO_E_MEMORY, "out of memory");
            return;
        }
        s->squares = grown;
        s->width = width;
    }
    for (int64_t i = 0; i < width; i++)
        s->squares[i] = 0;
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0; i < width; i++)
            s->squares[i] += rows[r * width + i] * rows[r * width + i];
    s->status = sotto_imatrix_add(s->matrix, weight, width, s->squares, n, &s->err);
}

static sotto_status run_chunks(const imatrix_args *a, const sotto_llama_model *model, sotto_llama_session *session,
                               const cli_ids *ids, int64_t n_chunks, sums *s, sotto_error *err)
{
    const int64_t n_ctx = a->llm.ctx;
    const int32_t begin = cli_llm_begins(model) ? sotto_llama_token_find(model, SOTTO_LLAMA_TOKEN_BEGIN) : -1;
    sotto_status status = sotto_llama_observe(session, observe, s, err);
    const double start = cli_now();
    for (int64_t i = 0; status == SOTTO_OK && i < n_chunks; i++) {
        int32_t *chunk = ids->id + i * n_ctx; /* what stands before it is over */
        if (begin >= 0)
            chunk[0] = begin;
        status = sotto_llama_seq_truncate(session, 0, 0, err);
        if (status == SOTTO_OK)
            status = sotto_llama_decode_tokens(session, 0, chunk, n_ctx, err);
        if (status == SOTTO_OK && s->status != SOTTO_OK) {
            *err = s->err;
            status = s->status;
        }
        if (status == SOTTO_OK && !a->quiet)
            fprintf(stderr, "chunk %lld of %lld, %.1f s\n", (long long)i + 1, (long long)n_chunks, cli_now() - start);
    }
    return status;
}

static sotto_status collect(const imatrix_args *a, const sotto_llama_model *model, const cli_text *text, sums *s,
                            sotto_error *err)
{
    sotto_llama_session *session = NULL;
    cli_ids ids = {0};
    const size_t n = text->size > 0 && text->data[text->size - 1] == '\n' ? text->size - 1 : text->size;
    sotto_status status = cli_llm_session(&a->llm, model, 0, 1, &session, err);
    if (status == SOTTO_OK && a->llm.devices.memory) {
        status = cli_llm_print_memory(model, session, err);
        sotto_llama_session_free(session);
        return status;
    }
    const sotto_run_options ro = {.abort = on_abort};
    if (status == SOTTO_OK) {
        sotto_llama_set_run_options(session, &ro);
        status = cli_llm_tokenize(model, text->data ? text->data : "", n, SOTTO_TOKENIZE_ADD_SPECIAL, &ids, err);
    }
    int64_t n_chunks = ids.n / a->llm.ctx;
    if (status == SOTTO_OK && n_chunks < 1) {
        cli_fail(err, SOTTO_E_FORMAT, "the text has %s, but with a context of %lld at least as many are needed",
                 cli_count(ids.n, "token").text, (long long)a->llm.ctx);
        status = SOTTO_E_FORMAT;
    }
    if (a->chunks >= 0 && n_chunks > a->chunks)
        n_chunks = a->chunks;
    if (status == SOTTO_OK)
        status = a->in ? sotto_imatrix_load(a->in, &s->matrix, err) : sotto_imatrix_create(&s->matrix, err);
    if (status == SOTTO_OK)
        status = run_chunks(a, model, session, &ids, n_chunks, s, err);
    if (status == SOTTO_OK)
        status = sotto_imatrix_describe(s->matrix, a->file, n_chunks, a->llm.ctx, err);
    if (status == SOTTO_OK)
        status = sotto_imatrix_save(s->matrix, a->output, err);
    free(ids.id);
    sotto_llama_session_free(session);
    return status;
}

static int check(const imatrix_args *a)
{
    if ((!a->file || !*a->file) && !a->llm.devices.memory)
        return cli_usage(&cmd_imatrix, "--file FILE is missing");
    if (!*a->output || strcmp(a->output, "-") == 0)
        return cli_usage(&cmd_imatrix, "--output: \"%s\" is not the name of a file", a->output);
    if (a->llm.ctx < 4)
        return cli_usage(&cmd_imatrix, "--ctx: a chunk has at least 4 tokens");
    if (a->chunks == 0)
        return cli_usage(&cmd_imatrix, "--chunks 0: there is nothing to collect");
    if (cli_is_file(a->output) && !a->force && !a->llm.devices.memory) {
        cli_say(NULL, "%s exists; --force writes over it", a->output);
        return CLI_FAILED;
    }
    sotto_error err = {0};
    if (!a->llm.devices.memory && !cli_can_write(a->output, &err))
        return cli_llm_failed(err.code, &err);
    return CLI_OK;
}

static int run(void *args, const cli_list *inputs)
{
    const imatrix_args *a = args;
    (void)inputs;
    int code = check(a);
    if (code != CLI_OK)
        return code;
    sotto_error err = {0};
    cli_text text = {0};
    cli_log log = {.quiet = a->quiet};
    sotto_llama_model *model = NULL;
    sums s = {0};
    cli_signals_end_at_once(true);
    cli_signals_install();
    sotto_status status = a->llm.devices.memory || cli_read_file(a->file, &text, &err) ? SOTTO_OK : err.code;
    if (status == SOTTO_OK)
        code = cli_llm_open(&a->llm, false, &log, &model);
    cli_signals_end_at_once(false);
    if (status == SOTTO_OK && code == CLI_OK)
        status = collect(a, model, &text, &s, &err);
    if (cli_interrupted()) {
        cli_say(NULL, "interrupted: %s was not written", a->output);
        code = cli_interrupted_exit();
    } else if (status != SOTTO_OK) {
        code = cli_llm_failed(status, &err);
    } else if (code == CLI_OK && !a->quiet && !a->llm.devices.memory) {
        cli_say(NULL, "wrote %s: %s", a->output, cli_count(sotto_imatrix_count(s.matrix), "matrix").text);
    }
    sotto_imatrix_free(s.matrix);
    free(s.squares);
    cli_text_free(&text);
    sotto_llama_model_free(model);
    return code;
}

const cli_command cmd_imatrix = {
    .name = "imatrix",
    .summary = "find out from a text which columns of a model's matrices matter",
    .max_inputs = 0,
    .options = options,
    .args_size = sizeof(imatrix_args),
    .run = run,
    .details =
        "The file is what sotto convert and llama-quantize take to quantise with less loss. A text of 50,000 tokens "
        "and more, of the kind the model is meant for, serves well.",
    .examples = "sotto imatrix -m model-f16.gguf -f text.txt -o imatrix.gguf\tcollect\n"
                "sotto imatrix -m model-f16.gguf -f more.txt --in imatrix.gguf -o both.gguf\tadd another text\n"};
