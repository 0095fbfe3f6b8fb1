/* cmd_perplexity.c: how well a model foretells a text. The text's tokens are cut into chunks as long as the context; each
 * begins with the begin token where the model has one, and the second half of its tokens is scored, so that every scored
 * token has at least half a context before it. This is llama-perplexity's measure, to compare with its figures. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "common/llm.h"
#include "common/outfile.h"

enum { LOGIT_BYTES = 64 << 20 };

typedef struct perplexity_args {
    cli_llm_args llm;
    const char *file;
    int64_t chunks, stride;
    bool json, quiet;
} perplexity_args;

#define AT(field) offsetof(perplexity_args, field)
static const cli_option options[] = {
    CLI_LLM_MODEL_OPTIONS(AT(llm)),
    {"file", "-f", CLI_TEXT, AT(file), "FILE", NULL, 0, 0, NULL,
     "the text, without the line break at its end; - = standard input"},
    CLI_LLM_SESSION_OPTIONS(AT(llm), "512"),
    {"chunks", NULL, CLI_INT, AT(chunks), "N", "-1", -1, 1e9, NULL, "only the first N chunks; -1 = all"},
    {"stride", "--ppl-stride", CLI_INT, AT(stride), "N", "0", 0, 1 << 24, NULL,
     "chunks begin every N tokens, and the last N of each are scored; 0 = chunks side by side"},
    CLI_LLM_COMPUTE_OPTIONS(AT(llm)),
    CLI_LLM_MAPPING_OPTIONS(AT(llm)),
    {"json", NULL, CLI_FLAG, AT(json), NULL, NULL, 0, 0, NULL, "as JSON"},
    {"quiet", "-q", CLI_FLAG, AT(quiet), NULL, NULL, 0, 0, NULL, "nothing on stderr but errors"},
    {0}};

typedef struct measure {
    const perplexity_args *args;
    sotto_llama_model *model;
    sotto_llama_session *session;
    int n_vocab;
    int32_t begin; /* -1 = chunks have none */
    cli_ids ids;
    int64_t n_ctx, n_chunks, step, first; /* of each chunk, tokens after `first` are scored */
    sotto_llama_row *rows;
    double sum, squares; /* of -log p */
    int64_t count;
} measure;

static bool on_abort(void *user)
{
    (void)user;
    return cli_interrupted();
}

/* -log of the probability that these logits give the token. */
static double surprise(const float *logits, int n, int32_t token)
{
    float most = logits[0];
    for (int i = 1; i < n; i++)
        most = logits[i] > most ? logits[i] : most;
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)expf(logits[i] - most);
    return log(sum) - (double)(logits[token] - most);
}

static sotto_status chunk(measure *m, int64_t i, sotto_error *err)
{
    const int32_t *ids = m->ids.id + i * m->step;
    int64_t most = LOGIT_BYTES / ((int64_t)m->n_vocab * (int64_t)sizeof(float));
    most = most < 16 ? 16 : most; /* rows whose logits are in memory at once */
    sotto_status status = sotto_llama_seq_truncate(m->session, 0, 0, err);
    for (int64_t at = 0; status == SOTTO_OK && at < m->n_ctx;) {
        int64_t n = m->n_ctx - at;
        if (at < m->first)
            n = m->first - at;
        else if (n > most)
            n = most;
        for (int64_t r = 0; r < n; r++)
            m->rows[r] = (sotto_llama_row){.token = at + r == 0 && m->begin >= 0 ? m->begin : ids[at + r],
                                           .logits = at >= m->first && at + r + 1 < m->n_ctx};
        status = sotto_llama_decode(m->session, m->rows, (int)n, err);
        for (int64_t r = 0; status == SOTTO_OK && r < n; r++) {
            if (!m->rows[r].logits)
                continue;
            const double s = surprise(sotto_llama_logits(m->session, (int)r), m->n_vocab, ids[at + r + 1]);
            m->sum += s;
            m->squares += s * s;
            m->count++;
        }
        at += n;
        if (status == SOTTO_OK && cli_interrupted()) {
            cli_fail(err, SOTTO_E_ABORTED, "interrupted");
            return SOTTO_E_ABORTED;
        }
    }
    return status;
}

static sotto_status cut(measure *m, sotto_error *err)
{
    const perplexity_args *a = m->args;
    const int64_t n = m->ids.n;
    m->n_ctx = a->llm.ctx;
    if (a->stride > 0) {
        m->step = a->stride;
        m->first = m->n_ctx - a->stride - 1;
        m->n_chunks = n > m->n_ctx ? (n - m->n_ctx + m->step - 1) / m->step : 0;
    } else {
        m->step = m->n_ctx;
        m->first = m->n_ctx / 2;
        m->n_chunks = n / m->n_ctx;
    }
    if (a->stride > 0 ? m->n_chunks < 1 : n < 2 * m->n_ctx) {
        cli_fail(err, SOTTO_E_FORMAT, "the text has %s, but with a context of %lld at least %lld are needed",
                 cli_count(n, "token").text, (long long)m->n_ctx,
                 (long long)(a->stride > 0 ? m->n_ctx + 1 : 2 * m->n_ctx));
        return SOTTO_E_FORMAT;
    }
    if (a->chunks >= 0 && m->n_chunks > a->chunks)
        m->n_chunks = a->chunks;
    m->rows = calloc((size_t)m->n_ctx, sizeof *m->rows);
    if (m->rows)
        return SOTTO_OK;
    cli_fail(err, SOTTO_E_MEMORY, "out of memory");
    return SOTTO_E_MEMORY;
}

static double value_of(const measure *m)
{
    return exp(m->sum / (double)m->count);
}

/* Standard error of the perplexity; NAN with less than two tokens. */
static double error_of(const measure *m)
{
    const double mean = m->sum / (double)m->count, variance = m->squares / (double)m->count - mean * mean;
    return m->count > 1 && variance > 0 ? sqrt(variance / (double)(m->count - 1)) * exp(mean) : NAN;
}

static void report(const measure *m, double seconds)
{
    const perplexity_args *a = m->args;
    if (!a->json) {
        printf("perplexity %.4f +/- %.5f over %s in %s of %lld\n", value_of(m), error_of(m),
               cli_count(m->count, "token").text, cli_count(m->n_chunks, "chunk").text, (long long)m->n_ctx);
        return;
    }
    cli_text t = {0};
    cli_text_puts(&t, "{\"model\": ");
    cli_text_json(&t, a->llm.model, strlen(a->llm.model));
    cli_text_puts(&t, ", \"perplexity\": ");
    cli_text_json_number(&t, value_of(m), 6);
    cli_text_puts(&t, ", \"standard_error\": ");
    cli_text_json_number(&t, error_of(m), 6);
    cli_text_printf(
        &t,
        ", \"tokens\": %lld, \"scored\": %lld, \"chunks\": %lld, \"ctx\": %lld, \"stride\": %lld, \"seconds\": %.3f}\n",
        (long long)m->ids.n, (long long)m->count, (long long)m->n_chunks, (long long)m->n_ctx, (long long)a->stride,
        seconds);
    if (t.data && !t.failed)
        fwrite(t.data, 1, t.size, stdout);
    cli_text_free(&t);
}

static sotto_status run_chunks(measure *m, sotto_error *err)
{
    const double start = cli_now();
    sotto_status status = SOTTO_OK;
    for (int64_t i = 0; i < m->n_chunks && status == SOTTO_OK; i++) {
        status = chunk(m, i, err);
        if (status == SOTTO_OK && !m->args->quiet)
            fprintf(stderr, "chunk %lld of %lld: perplexity %.4f, %.1f s\n", (long long)i + 1, (long long)m->n_chunks,
                    value_of(m), cli_now() - start);
    }
    if (status == SOTTO_OK)
        report(m, cli_now() - start);
    return status;
}

static int check(const perplexity_args *a)
{
    if ((!a->file || !*a->file) && !a->llm.devices.memory)
        return cli_usage(&cmd_perplexity, "--file FILE is missing");
    if (a->llm.ctx < 4)
        return cli_usage(&cmd_perplexity, "--ctx: a chunk has at least 4 tokens");
    if (a->stride >= a->llm.ctx)
        return cli_usage(&cmd_perplexity, "--stride: %lld is not less than the context, %lld", (long long)a->stride,
                         (long long)a->llm.ctx);
    if (a->chunks == 0)
        return cli_usage(&cmd_perplexity, "--chunks 0: there is nothing to measure");
    return CLI_OK;
}

static int run(void *args, const cli_list *inputs)
{
    measure m = {.args = args};
    const perplexity_args *a = args;
    (void)inputs;
    int code = check(a);
    if (code != CLI_OK)
        return code;
    sotto_error err = {0};
    cli_text text = {0};
    cli_log log = {.quiet = a->quiet};
    cli_signals_end_at_once(true);
    cli_signals_install();
    sotto_status status = a->llm.devices.memory || cli_read_file(a->file, &text, &err) ? SOTTO_OK : err.code;
    if (status == SOTTO_OK)
        code = cli_llm_open(&a->llm, false, &log, &m.model);
    cli_signals_end_at_once(false);
    if (status == SOTTO_OK && code == CLI_OK)
        status = cli_llm_session(&a->llm, m.model, 0, 1, &m.session, &err);
    if (status == SOTTO_OK && code == CLI_OK && a->llm.devices.memory) {
        status = cli_llm_print_memory(m.model, m.session, &err);
    } else if (status == SOTTO_OK && code == CLI_OK) {
        const sotto_run_options ro = {.abort = on_abort};
        sotto_llama_set_run_options(m.session, &ro);
        sotto_llama_model_info info;
        sotto_llama_model_get_info(m.model, &info);
        m.n_vocab = info.n_vocab;
        m.begin = cli_llm_begins(m.model) ? sotto_llama_token_find(m.model, SOTTO_LLAMA_TOKEN_BEGIN) : -1;
        const size_t n = text.size > 0 && text.data[text.size - 1] == '\n' ? text.size - 1 : text.size;
        status = cli_llm_tokenize(m.model, text.data ? text.data : "", n, SOTTO_TOKENIZE_ADD_SPECIAL, &m.ids, &err);
        if (status == SOTTO_OK)
            status = cut(&m, &err);
        if (status == SOTTO_OK)
            status = run_chunks(&m, &err);
    }
    if (cli_interrupted()) {
        code = cli_interrupted_exit();
    } else if (status != SOTTO_OK) {
        code = cli_llm_failed(status, &err);
    }
    free(m.rows);
    free(m.ids.id);
    cli_text_free(&text);
    sotto_llama_session_free(m.session);
    sotto_llama_model_free(m.model);
    return code;
}

const cli_command cmd_perplexity = {
    .name = "perplexity",
    .summary = "measure how well a model foretells a text",
    .max_inputs = 0,
    .options = options,
    .args_size = sizeof(perplexity_args),
    .run = run,
    .details =
        "The text's tokens are cut into chunks of --ctx; each begins with the begin token if the model wants one, "
        "and the second half of each is scored: the method of llama-perplexity. Lower is better; values of "
        "different tokenizers cannot be compared.",
    .examples = "sotto perplexity -m smollm2-135m -f story.txt\tthe value and its standard error\n"
                "sotto perplexity -m model.gguf -f story.txt --compute f32 --json\tfor a program\n"};
