/* cmd_bench_text.c: tokens a second of a model that writes text, measured as llama-bench does: random tokens; a prompt is
 * computed as a whole with the logits of its last token, generated tokens one after the other; the depth that comes before is
 * not timed, and each test warms up. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_bench.h"
#include "commands.h"
#include "common/llm.h"
#include "common/outfile.h"

enum { MOST_NUMBERS = 16, MOST_TESTS = 2 * MOST_NUMBERS * MOST_NUMBERS, MOST_TOKENS = 1 << 20 };

typedef struct numbers {
    int n, value[MOST_NUMBERS];
} numbers;

typedef struct test {
    int prompt, generate, depth; /* one of the first two */
    double mean, deviation;
    double *samples; /* tokens a second of each run */
} test;

typedef struct bench {
    const cli_bench_text_args *args;
    const cli_llm_args *llm;
    const sotto_llama_model *model;
    sotto_llama_model_info info;
    bool begins;
    uint32_t random;
    test tests[MOST_TESTS];
    int n_tests;
} bench;

static bool read_numbers(const char *text, numbers *out)
{
    out->n = 0;
    for (const char *p = text;; p++) {
        char *end;
        if (*p < '0' || *p > '9' || out->n == MOST_NUMBERS)
            return false;
        const long v = strtol(p, &end, 10);
        if (v > MOST_TOKENS || (*end && *end != ','))
            return false;
        out->value[out->n++] = (int)v;
        p = end;
        if (!*p)
            return true;
    }
}

int cli_bench_text_check(const cli_bench_text_args *a)
{
    const struct {
        const char *name, *text;
    } lists[] = {{"prompt", a->prompt}, {"generate", a->generate}, {"depth", a->depth}};
    numbers n;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (!read_numbers(lists[i].text, &n))
            return cli_usage(&cmd_bench,
                             "--%s: \"%s\" is not a list of at most %d numbers from 0 to %d with commas between",
                             lists[i].name, lists[i].text, MOST_NUMBERS, MOST_TOKENS);
    return CLI_OK;
}

static int32_t any_token(bench *b)
{
    b->random = b->random * 1664525u + 1013904223u;
    return (int32_t)(((uint64_t)b->random * (uint64_t)b->info.n_vocab) >> 32);
}

static sotto_status tokens(bench *b, sotto_llama_session *s, int n, bool one_by_one, sotto_error *err)
{
    int32_t *ids = malloc(((size_t)n + 1) * sizeof *ids);
    if (!ids) {
        cli_fail(err, SOTTO_E_MEMORY, "out of memory");
        return SOTTO_E_MEMORY;
    }
    for (int i = 0; i < n; i++)
        ids[i] = any_token(b);
    if (n > 0 && b->begins && sotto_llama_seq_length(s, 0) == 0)
        ids[0] = sotto_llama_token_find(b->model, SOTTO_LLAMA_TOKEN_BEGIN);
    sotto_status status = SOTTO_OK;
    if (!one_by_one && n > 0)
        status = sotto_llama_decode_tokens(s, 0, ids, n, err);
    for (int i = 0; one_by_one && status == SOTTO_OK && i < n; i++)
        status = sotto_llama_decode_tokens(s, 0, ids + i, 1, err);
    free(ids);
    return status;
}

static bool on_abort(void *user)
{
    (void)user;
    return cli_interrupted();
}

static sotto_status measure(bench *b, test *t, sotto_error *err)
{
    const int n = t->prompt + t->generate, runs = (int)b->args->runs;
    sotto_llama_session *s = NULL;
    t->samples = calloc((size_t)runs, sizeof *t->samples);
    sotto_status status = t->samples ? cli_llm_session(b->llm, b->model, n + t->depth, 1, &s, err) : SOTTO_E_MEMORY;
    if (status == SOTTO_OK) {
        const sotto_run_options ro = {.abort = on_abort};
        sotto_llama_set_run_options(s, &ro);
        status = tokens(b, s, t->prompt ? t->prompt : 1, false, err); /* warms up */
    }
    if (status == SOTTO_OK)
        status = sotto_llama_seq_truncate(s, 0, 0, err);
    if (status == SOTTO_OK)
        status = tokens(b, s, t->depth, false, err);
    for (int r = 0; status == SOTTO_OK && r < runs; r++) {
        status = sotto_llama_seq_truncate(s, 0, t->depth, err);
        const double start = cli_now();
        if (status == SOTTO_OK)
            status = tokens(b, s, n, t->generate > 0, err);
        t->samples[r] = n / (cli_now() - start);
    }
    sotto_llama_session_free(s);
    double sum = 0, squares = 0;
    for (int r = 0; r < runs && t->samples; r++)
        sum += t->samples[r];
    t->mean = sum / runs;
    for (int r = 0; r < runs && t->samples; r++)
        squares += (t->samples[r] - t->mean) * (t->samples[r] - t->mean);
    t->deviation = runs > 1 ? sqrt(squares / (runs - 1)) : 0;
    return status;
}

/* "tg128 @ d512" */
static void name_of(const test *t, char *out, size_t n)
{
    const int length = snprintf(out, n, "%s%d", t->prompt ? "pp" : "tg", t->prompt + t->generate);
    if (t->depth)
        snprintf(out + length, n - (size_t)length, " @ d%d", t->depth);
}

static void plan(bench *b)
{
    numbers prompt, generate, depth;
    read_numbers(b->args->prompt, &prompt);
    read_numbers(b->args->generate, &generate);
    read_numbers(b->args->depth, &depth);
    for (int d = 0; d < depth.n; d++) {
        for (int i = 0; i < prompt.n; i++)
            if (prompt.value[i] > 0)
                b->tests[b->n_tests++] = (test){.prompt = prompt.value[i], .depth = depth.value[d]};
        for (int i = 0; i < generate.n; i++)
            if (generate.value[i] > 0)
                b->tests[b->n_tests++] = (test){.generate = generate.value[i], .depth = depth.value[d]};
    }
}

/* Bytes of weights that every token meets, as the file holds them: of embeddings that are not the output's it needs a row. */
static uint64_t weights_of_a_token(const char *path)
{
    sotto_model_file *f = NULL;
    sotto_model_tensor t;
    uint64_t bytes = 0, embedding = 0;
    if (sotto_model_file_open(path, &f, NULL) != SOTTO_OK)
        return 0;
    for (int64_t i = 0; i < sotto_model_tensor_count(f); i++)
        if (sotto_model_tensor_get(f, i, &t) == SOTTO_OK) {
            bytes += t.bytes;
            if (strcmp(t.name, "token_embd.weight") == 0)
                embedding = t.bytes;
        }
    const bool tied = sotto_model_tensor_find(f, "output.weight", &t) != SOTTO_OK;
    sotto_model_file_free(f);
    return tied ? bytes : bytes - embedding;
}

static double element_bytes(const char *type)
{
    return strcmp(type, "f32") == 0 ? 4 : strcmp(type, "q8_0") == 0 ? 34.0 / 32 : 2;
}

/* Of the cache, half way through the test. */
static double cache_of_a_token(const bench *b, const test *t)
{
    const double positions = t->depth + t->generate / 2.0;
    return positions * b->info.n_layer * b->info.n_head_kv * b->info.d_head *
           (element_bytes(b->llm->cache_k) + element_bytes(b->llm->cache_v));
}

static const test *first(const bench *b, bool prompt)
{
    for (int i = 0; i < b->n_tests; i++)
        if ((b->tests[i].prompt > 0) == prompt)
            return &b->tests[i];
    return NULL;
}

typedef struct facts {
    double load_ms, peak_rss_mb, bytes_per_token;
    cli_bench_rates bandwidth;
} facts;

static void print_json(const bench *b, const facts *f, int threads)
{
    cli_text t = {0};
    char name[48];
    const test *pp = first(b, true), *tg = first(b, false);
    cli_text_puts(&t, "{\"model\": ");
    cli_text_json(&t, b->llm->model, strlen(b->llm->model));
    cli_text_printf(&t, ", \"architecture\": \"%s\", \"compute\": \"%s\", \"threads\": %d, \"runs\": %lld",
                    b->info.architecture, b->info.compute, threads, (long long)b->args->runs);
    const cli_bench_value values[] = {
        {"prompt_tps", pp ? pp->mean : NAN},
        {"generation_tps", tg ? tg->mean : NAN},
        {"load_ms", f->load_ms},
        {"peak_rss_mb", f->peak_rss_mb},
        {"weights_mb", (double)b->info.weight_bytes / 1e6},
        {"bytes_per_token", f->bytes_per_token},
        {"read_bandwidth", f->bandwidth.of_bytes},
        {"memory_bandwidth", f->bandwidth.of_much},
        {"bandwidth_used", tg ? f->bytes_per_token * tg->mean / f->bandwidth.of_bytes : NAN}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        cli_text_printf(&t, ", \"%s\": ", values[i].key);
        cli_text_json_number(&t, values[i].value, 3);
    }
    cli_text_puts(&t, ", \"tests\": [");
    for (int i = 0; i < b->n_tests; i++) {
        const test *x = &b->tests[i];
        name_of(x, name, sizeof name);
        cli_text_printf(
            &t, "%s\n  {\"test\": \"%s\", \"n_prompt\": %d, \"n_gen\": %d, \"n_depth\": %d, \"tps\": %.3f, \"sd\": %.3f, \"samples\": [",
            i ? "," : "", name, x->prompt, x->generate, x->depth, x->mean, x->deviation);
        for (int64_t r = 0; r < b->args->runs; r++)
            cli_text_printf(&t, "%s%.3f", r ? ", " : "", x->samples[r]);
        cli_text_puts(&t, "]}");
    }
    cli_text_puts(&t, "\n]}\n");
    if (t.data && !t.failed)
        fwrite(t.data, 1, t.size, stdout);
    cli_text_free(&t);
}

static void print_test(const test *t)
{
    char name[48];
    name_of(t, name, sizeof name);
    printf("  %-18s %10.2f +/- %.2f tokens/s\n", name, t->mean, t->deviation);
    fflush(stdout); /* as it comes: all of it takes a while */
}

static void print_facts(const bench *b, const facts *f)
{
    const test *tg = first(b, false);
    const cli_bench_value values[] = {{"load_ms", f->load_ms},
                                      {"peak_rss_mb", f->peak_rss_mb},
                                      {"read_a_token_mb", f->bytes_per_token / 1e6},
                                      {"memory_gb_s", f->bandwidth.of_much / 1e9},
                                      {"read_gb_s", f->bandwidth.of_bytes / 1e9}};
    cli_text t = {0};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        cli_bench_line(&t, &values[i]);
    fputs(t.data ? t.data : "", stdout);
    cli_text_free(&t);
    if (tg)
        printf("  generation uses %.0f %% of that\n", 100 * f->bytes_per_token * tg->mean / f->bandwidth.of_bytes);
}

static void warn_of_length(const bench *b)
{
    const test *longest = NULL;
    int most = b->info.n_ctx_train > 0 ? b->info.n_ctx_train : INT_MAX;
    for (int i = 0; i < b->n_tests; i++) {
        const test *t = &b->tests[i];
        if (t->prompt + t->generate + t->depth > most) {
            most = t->prompt + t->generate + t->depth;
            longest = t;
        }
    }
    if (!longest)
        return;
    char name[48];
    name_of(longest, name, sizeof name);
    cli_say(NULL, "warning: %s takes %d tokens, more than the %d that the model was trained for", name, most,
            b->info.n_ctx_train);
}

static sotto_status measure_all(bench *b, const char *path, int threads, sotto_error *err)
{
    const sotto_backend *backend = sotto_llama_model_backend(b->model);
    sotto_status status = SOTTO_OK;
    plan(b);
    warn_of_length(b);
    if (!b->args->json)
        printf("%s (%s, %s, %s), %s%s\n", b->llm->model, b->info.architecture, b->info.compute,
               sotto_backend_description(backend), b->args->runs > 1 ? "mean of " : "",
               cli_count(b->args->runs, "run").text);
    for (int i = 0; status == SOTTO_OK && i < b->n_tests; i++) {
        status = measure(b, &b->tests[i], err);
        if (status == SOTTO_OK && !b->args->json)
            print_test(&b->tests[i]);
    }
    facts f = {.load_ms = b->info.load_seconds * 1e3, .peak_rss_mb = cli_peak_rss_mb()};
    const test *tg = first(b, false);
    f.bytes_per_token = (double)weights_of_a_token(path) + (tg ? cache_of_a_token(b, tg) : 0);
    if (status == SOTTO_OK && cli_bench_bandwidth(threads, f.bytes_per_token, &f.bandwidth) != SOTTO_OK)
        f.bandwidth = (cli_bench_rates){NAN, NAN};
    if (status == SOTTO_OK && b->args->json)
        print_json(b, &f, threads);
    else if (status == SOTTO_OK)
        print_facts(b, &f);
    for (int i = 0; i < b->n_tests; i++)
        free(b->tests[i].samples);
    return status;
}

int cli_bench_text(const cli_bench_text_args *args, const cli_llm_args *llm, const char *path, int threads)
{
    sotto_error err = {0};
    sotto_llama_model *model = NULL;
    cli_log log = {.quiet = true};
    cli_signals_end_at_once(true);
    cli_signals_install();
    int code = cli_llm_open(llm, false, &log, &model);
    cli_signals_end_at_once(false);
    bench *b = code == CLI_OK ? calloc(1, sizeof *b) : NULL;
    sotto_status status = code != CLI_OK || b ? SOTTO_OK : SOTTO_E_MEMORY;
    if (b) {
        *b = (bench){.args = args, .llm = llm, .model = model, .random = 1};
        sotto_llama_model_get_info(model, &b->info);
        b->begins = cli_llm_begins(model);
        if (llm->devices.memory) {
            sotto_llama_session *s = NULL;
            status = cli_llm_session(llm, model, 0, 1, &s, &err);
            if (status == SOTTO_OK)
                status = cli_llm_print_memory(model, s, &err);
            sotto_llama_session_free(s);
        } else {
            status = measure_all(b, path, threads, &err);
        }
    }
    if (cli_interrupted()) {
        code = cli_interrupted_exit();
    } else if (status != SOTTO_OK) {
        code = cli_llm_failed(status, &err);
    }
    free(b);
    sotto_llama_model_free(model);
    return code;
}
