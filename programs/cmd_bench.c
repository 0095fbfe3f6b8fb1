/* cmd_bench.c: how fast a model runs here. A window of 30 s is heard with a fixed prompt, and the end of text is forbidden,
 * so that every run has the same shapes: one encoder pass, one prompt pass, a full window of steps. A step has one row when
 * greedy, five with as many beams, forty with eight windows of five beams each. */
#include "cmd_bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "common/device.h"
#include "common/models.h"
#include "common/terminal.h"
#include "common/text.h"
#include "sotto/whisper.h"

typedef struct bench_args {
    cli_llm_args llm; /* also of models that hear */
    cli_bench_text_args text;
    int64_t runs, rows, steps;
    bool json, matmul, memcpy;
} bench_args;

#define AT(field) offsetof(bench_args, field)
static const cli_option options[] = {
    {"model", "-m", CLI_TEXT, AT(llm.model), "NAME|PATH", "base", 0, 0, NULL,
     "model: a name in ./models or the cache, or a path"},
    CLI_THREADS_OPTION(AT(llm.threads)),
    {"runs", "-r --repetitions", CLI_INT, AT(runs), "N", NULL, 1, 1000, NULL,
     "speech: the median of 3 is printed, text: mean and deviation of 5; one more run warms up"},
    {"prompt", "-p --n-prompt", CLI_TEXT, AT(text.prompt), "LIST", "512", 0, 0, NULL,
     "text: prompts of so many tokens, as 128,512; 0 = none"},
    {"generate", "-n --n-gen", CLI_TEXT, AT(text.generate), "LIST", "128", 0, 0, NULL,
     "text: so many tokens generated, as 32,128; 0 = none"},
    {"depth", "-d --n-depth", CLI_TEXT, AT(text.depth), "LIST", "0", 0, 0, NULL,
     "text: after so many tokens that are in the context already"},
    CLI_LLM_CACHE_OPTIONS(AT(llm)),
    {"steps", NULL, CLI_INT, AT(steps), "N", "0", 0, 224, NULL,
     "speech: stop a run after so many steps; 0 = as many as a window can have"},
    {"rows", NULL, CLI_INT, AT(rows), "N", "40", 1, 40,
     NULL, "speech: decoder steps of 1, 5 and 40 rows, those up to N (5: beams; 40: eight windows of 5 beams, which takes memory)"},
    CLI_DEVICE_OPTIONS(AT(llm.devices)),
    CLI_CPU_OPTION(AT(llm.cpu)),
    CLI_COMPUTE_OPTION(AT(llm.compute)),
    CLI_LLM_MAPPING_OPTIONS(AT(llm)),
    {"matmul", NULL, CLI_FLAG, AT(matmul), NULL, NULL, 0, 0, NULL,
     "no model: products of every type of number with the shapes of every size of model"},
    {"memcpy", NULL, CLI_FLAG, AT(memcpy), NULL, NULL, 0, 0, NULL, "no model: reading and copying memory, by size"},
    {"json", NULL, CLI_FLAG, AT(json), NULL, NULL, 0, 0, NULL, "as JSON"},
    {0}};

/* Eight windows are cut in pauses that come every 29 s. */
enum {
    N_WINDOWS = 8,
    RATE = SOTTO_WHISPER_SAMPLE_RATE,
    N_WINDOW = 30 * RATE,
    PERIOD = 29 * RATE,
    PAUSE = RATE / 2,
    PROMPT_BYTES = 1200
};

typedef struct row {
    double mel, encoder, prompt, decoder, total; /* ms: a window, a window, a pass, a step, a run */
} row;

typedef struct more_steps {
    double decoder_5, decoder_40; /* ms a step; NAN: not measured */
} more_steps;

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double cli_bench_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, by_value);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

void cli_bench_line(cli_text *out, const cli_bench_value *v)
{
    static const struct {
        const char *ending, *unit;
    } units[] = {{"_ms", " ms"}, {"_mb", " MB"}, {"_gb_s", " GB/s"}, {"", ""}};
    const size_t n = strlen(v->key);
    size_t i = 0;
    while (n < strlen(units[i].ending) || strcmp(v->key + n - strlen(units[i].ending), units[i].ending) != 0)
        i++;
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)(n - strlen(units[i].ending)), v->key);
    for (char *p = name; *p; p++)
        *p = *p == '_' ? ' ' : *p;
    cli_text_printf(out, "  %-18s %10.3f%s\n", name, v->value, units[i].unit);
}

static double median(const row *rows, size_t n, size_t field, double *scratch)
{
    for (size_t i = 0; i < n; i++)
        memcpy(&scratch[i], (const char *)&rows[i] + field, sizeof *scratch);
    return cli_bench_median(scratch, n);
}

/* Something like a voice: harmonics that swell and fade, and noise. Speed does not depend on it. */
static void fill(float *pcm, int n, int pause)
{
    uint32_t state = 1;
    for (int i = 0; i < n; i++) {
        const double t = (double)i / RATE;
        double v = 0;
        for (int h = 1; h <= 8; h++)
            v += sin(6.283185307179586 * 140 * h * t) / h;
        state = state * 1664525u + 1013904223u;
        const double noise = (double)(state >> 8) / 8388608.0 - 1;
        const double loud = i % PERIOD < PERIOD - pause ? 1 : 0.001;
        pcm[i] = (float)(loud * (0.05 * v * (1 + sin(6.283185307179586 * 3 * t)) + 0.01 * noise));
    }
}

static double ms_each(double seconds, int64_t n)
{
    return n > 0 ? seconds * 1e3 / (double)n : 0;
}

/* Stops a run after some steps. */
typedef struct limit {
    const sotto_whisper_session *session;
    int64_t n_decode;
    bool reached;
} limit;

static bool enough(void *user)
{
    limit *l = user;
    sotto_whisper_timings t;
    sotto_whisper_get_timings(l->session, &t);
    l->reached = t.n_decode >= l->n_decode;
    return l->reached;
}

static sotto_status hear(sotto_whisper_session *s, const float *pcm, int n, int64_t steps,
                         const sotto_whisper_options *o, sotto_error *err)
{
    sotto_whisper_options mine = *o;
    limit l = {.session = s, .n_decode = steps};
    if (steps > 0) {
        mine.abort = enough;
        mine.user = &l;
    }
    const sotto_status status = sotto_whisper_transcribe(s, pcm, n, &mine, err);
    return l.reached && status == SOTTO_E_ABORTED ? SOTTO_OK : status;
}

/* The differences of the session's counters over one run. */
static sotto_status one_run(sotto_whisper_session *s, const float *pcm, int64_t steps, const sotto_whisper_options *o,
                            row *out, sotto_whisper_timings *t, sotto_error *err)
{
    const double start = cli_now();
    const sotto_status status = hear(s, pcm, N_WINDOW, steps, o, err);
    sotto_whisper_get_timings(s, t);
    *out = (row){.mel = ms_each(t->mel_s, t->n_encode),
                 .encoder = ms_each(t->encode_s, t->n_encode),
                 .prompt = ms_each(t->prompt_s, t->n_prompt),
                 .decoder = ms_each(t->decode_s, t->n_decode),
                 .total = (cli_now() - start) * 1e3};
    return status;
}

static sotto_status open_session(const bench_args *a, const sotto_whisper_model *model, int sequences,
                                 sotto_whisper_session **out, sotto_error *err)
{
    sotto_whisper_session_options o;
    sotto_whisper_session_options_default(&o);
    o.max_sequences = sequences;
    o.cache_k = a->llm.cache_k;
    o.cache_v = a->llm.cache_v;
    return sotto_whisper_session_create(model, &o, out, err);
}

/* One run of `windows` windows with five beams: ms a step of all of them. */
static sotto_status more_rows(const bench_args *a, const sotto_whisper_model *model, const sotto_whisper_options *base,
                              int windows, double *ms, sotto_error *err)
{
    const int n = windows == 1 ? N_WINDOW : windows * PERIOD;
    float *pcm = malloc((size_t)n * sizeof *pcm);
    sotto_whisper_session *session = NULL;
    sotto_whisper_options o = *base;
    o.beam_size = 5;
    o.batch = windows;
    sotto_status status = pcm ? open_session(a, model, 5, &session, err) : SOTTO_E_MEMORY;
    if (status == SOTTO_OK) {
        fill(pcm, n, windows == 1 ? 0 : PAUSE);
        status = hear(session, pcm, n, a->steps * windows, &o, err);
    }
    sotto_whisper_timings t = {0};
    if (status == SOTTO_OK)
        sotto_whisper_get_timings(session, &t);
    /* steps are counted for each window */
    *ms = status == SOTTO_OK ? ms_each(t.decode_s, t.n_decode) * windows : NAN;
    sotto_whisper_session_free(session);
    free(pcm);
    return status;
}

/* How many threads the options mean on this machine: "cpu v4, 2 threads". */
static int used_threads(const sotto_backend_options *asked)
{
    sotto_backend *backend = NULL;
    sotto_error err;
    int n = asked->n_threads;
    const bool reference = asked->device && strcmp(asked->device, "reference") == 0;
    const sotto_backend_options o = {.device = "cpu", .n_threads = n, .cpu_level = asked->cpu_level};
    if (!reference && sotto_backend_open(&o, &backend, &err) == SOTTO_OK)
        n = sotto_backend_threads(backend);
    sotto_backend_free(backend);
    return n;
}

/* What one step reads, and how fast that can be read. */
typedef struct reading {
    double bytes;              /* weights, keys and values; NAN: on other devices than the CPU */
    cli_bench_rates bandwidth; /* NAN: not measured */
} reading;

static void report(const bench_args *a, const sotto_whisper_model_info *info, const row *rows, double *scratch,
                   const more_steps *more, double load_ms, double peak_rss_mb, const sotto_whisper_timings *t,
                   int threads, const reading *step)
{
    const size_t n = (size_t)a->runs;
    const double step_ms = median(rows, n, offsetof(row, decoder), scratch);
    const cli_bench_value values[] = {{"load_ms", load_ms},
                                      {"mel_ms", median(rows, n, offsetof(row, mel), scratch)},
                                      {"encoder_ms", median(rows, n, offsetof(row, encoder), scratch)},
                                      {"prompt_ms", median(rows, n, offsetof(row, prompt), scratch)},
                                      {"decoder_ms", step_ms},
                                      {"decoder_5_ms", more->decoder_5},
                                      {"decoder_40_ms", more->decoder_40},
                                      {"total_ms", median(rows, n, offsetof(row, total), scratch)},
                                      {"step_mb", step->bytes / 1e6},
                                      {"step_gb_s", step->bytes / step_ms / 1e6},
                                      {"read_gb_s", step->bandwidth.of_bytes / 1e9},
                                      {"bandwidth_used", step->bytes / step_ms * 1e3 / step->bandwidth.of_bytes},
                                      {"peak_rss_mb", peak_rss_mb},
                                      {"weights_mb", (double)t->weight_bytes / 1e6},
                                      {"self_cache_mb", (double)t->self_cache_bytes / 1e6},
                                      {"cross_cache_mb", (double)t->cross_cache_bytes / 1e6},
                                      {"compute_mel_mb", (double)t->mel_bytes / 1e6},
                                      {"compute_encode_mb", (double)t->encode_bytes / 1e6},
                                      {"compute_decode_mb", (double)t->decode_bytes / 1e6}};
    cli_text out = {0};
    if (a->json) {
        cli_text_puts(&out, "{\"model\": ");
        cli_text_json(&out, a->llm.model, strlen(a->llm.model));
        cli_text_printf(
            &out, ", \"size\": \"%s\", \"format\": \"%s\", \"compute\": \"%s\", \"threads\": %lld, \"runs\": %lld, \"steps\": %lld",
            info->size, info->format, info->compute, (long long)threads, (long long)a->runs, (long long)t->n_decode);
    } else {
        cli_text_printf(&out, "%s (%s, %s, %s), %s%s of %s and %s\n", a->llm.model, info->size, info->format,
                        info->compute, a->runs > 1 ? "median of " : "", cli_count(a->runs, "run").text,
                        cli_count(t->n_encode, "window").text, cli_count(t->n_decode, "step").text);
    }
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (isnan(values[i].value))
            continue;
        if (a->json) {
            cli_text_printf(&out, ", \"%s\": ", values[i].key);
            cli_text_json_number(&out, values[i].value, 3);
        } else {
            cli_bench_line(&out, &values[i]);
        }
    }
    cli_text_puts(&out, a->json ? "}\n" : "");
    if (out.data)
        fputs(out.data, stdout);
    cli_text_free(&out);
}

/* The options of every run: one window with a full prompt, greedy; `text` is the prompt's place. */
static sotto_whisper_options same_shapes(const sotto_whisper_model_info *info, char *text, int32_t *end_of_text)
{
    static const char prompt[] =
        "And so the long evening went on, with talk of ships and of the sea, and of the people who had left. ";
    text[0] = '\0';
    for (int i = 0; i < PROMPT_BYTES / (int)sizeof prompt; i++)
        strcat(text, prompt);
    *end_of_text = info->multilingual ? 50257 : 50256;
    sotto_whisper_options o;
    sotto_whisper_options_default(&o);
    o.language = "en";
    o.timestamps = false;
    o.beam_size = 1;
    o.best_of = 1;
    o.temperature_inc = 0;
    o.no_speech_threshold = NAN;
    o.initial_prompt = text;
    o.suppress_tokens = end_of_text;
    o.n_suppress_tokens = 1;
    return o;
}

static reading read_by_step(const sotto_whisper_session *s, const sotto_whisper_model_info *info, int threads)
{
    reading r = {NAN, {NAN, NAN}};
    sotto_whisper_memory m;
    sotto_whisper_timings t;
    sotto_error err;
    sotto_whisper_get_timings(s, &t);
    if (sotto_whisper_get_memory(s, 0, &m, &err) != SOTTO_OK || strcmp(m.device, "cpu") != 0)
        return r;
    const double position = (double)t.cross_cache_bytes / info->n_audio_ctx; /* its key and value in all layers */
    r.bytes = (double)info->step_bytes + position * (info->n_audio_ctx + info->n_text_ctx / 2.0 +
                                                     (double)t.n_decode / 2); /* behind a full prompt */
    if (cli_bench_bandwidth(threads, r.bytes, &r.bandwidth) != SOTTO_OK)
        r.bandwidth = (cli_bench_rates){NAN, NAN};
    return r;
}

static sotto_status measure(const bench_args *a, const sotto_backend_options *backend, const sotto_whisper_model *model,
                            double load_ms, sotto_error *err)
{
    sotto_whisper_session *session = NULL;
    sotto_whisper_model_info info = {0};
    sotto_whisper_timings timings = {0};
    sotto_whisper_model_get_info(model, &info);
    float *pcm = malloc(N_WINDOW * sizeof *pcm);
    row *rows = calloc((size_t)a->runs, sizeof *rows), warm_up;
    double *scratch = calloc((size_t)a->runs, sizeof *scratch);
    sotto_status status = pcm && rows && scratch ? open_session(a, model, 1, &session, err) : SOTTO_E_MEMORY;
    char text[PROMPT_BYTES];
    int32_t end_of_text;
    const sotto_whisper_options o = same_shapes(&info, text, &end_of_text);
    if (status == SOTTO_OK) {
        fill(pcm, N_WINDOW, 0);
        status = one_run(session, pcm, a->steps, &o, &warm_up, &timings, err);
    }
    for (int64_t i = 0; status == SOTTO_OK && i < a->runs; i++)
        status = one_run(session, pcm, a->steps, &o, &rows[i], &timings, err);
    const double peak_rss_mb = cli_peak_rss_mb(); /* of the simplest run */
    const int threads = used_threads(backend);
    reading step = {NAN, {NAN, NAN}};
    if (status == SOTTO_OK)
        step = read_by_step(session, &info, threads);
    sotto_whisper_session_free(session);
    more_steps more = {NAN, NAN};
    if (status == SOTTO_OK && a->rows >= 5)
        status = more_rows(a, model, &o, 1, &more.decoder_5, err);
    if (status == SOTTO_OK && a->rows >= 40)
        status = more_rows(a, model, &o, N_WINDOWS, &more.decoder_40, err);
    if (status == SOTTO_OK)
        report(a, &info, rows, scratch, &more, load_ms, peak_rss_mb, &timings, threads, &step);
    free(pcm);
    free(rows);
    free(scratch);
    return status;
}

static sotto_status print_memory(const bench_args *a, const sotto_whisper_model *model, sotto_error *err)
{
    sotto_whisper_session *session = NULL;
    sotto_status status = open_session(a, model, 5, &session, err);
    if (status == SOTTO_OK)
        status = cli_print_memory(session, err);
    sotto_whisper_session_free(session);
    return status;
}

/* Whether the file is there and holds no model that hears. */
static bool writes_text(const char *path)
{
    sotto_model_file *f = NULL;
    const char *name = "whisper";
    size_t n = 7;
    const bool yes = sotto_model_file_open(path, &f, NULL) == SOTTO_OK &&
                     sotto_meta_string(f, "general.architecture", &name, &n, NULL) == SOTTO_OK &&
                     (n != 7 || memcmp(name, "whisper", 7) != 0);
    sotto_model_file_free(f);
    return yes;
}

static int run(void *args, const cli_list *inputs)
{
    bench_args *a = args;
    (void)inputs;
    if (a->matmul && a->memcpy)
        return cli_usage(&cmd_bench, "--matmul and --memcpy are two measurements: give one");
    const int checked = cli_bench_text_check(&a->text);
    if (checked != CLI_OK)
        return checked;
    sotto_error err = {0};
    if (!cli_device_known(a->llm.devices.device, &err))
        return cli_usage(&cmd_bench, "%s", err.text);
    sotto_whisper_model *model = NULL;
    sotto_whisper_model_options mo;
    sotto_whisper_model_options_default(&mo);
    cli_device_fill(&a->llm.devices, &mo.backend);
    mo.measure_only = a->llm.devices.memory;
    mo.no_mmap = a->llm.no_mmap;
    mo.mlock = a->llm.mlock;
    mo.backend.cpu_level = a->llm.cpu;
    mo.compute = a->llm.compute;
    mo.backend.n_threads = (int)a->llm.threads;
    cli_log log = {0};
    mo.backend.logger = cli_logger(&log);
    sotto_status status;
    if (a->matmul) {
        status = cli_bench_matmul(&mo.backend, a->json, &err);
    } else if (a->memcpy) {
        if (strcmp(a->llm.devices.device, "auto") != 0 && strcmp(a->llm.devices.device, "cpu") != 0)
            return cli_usage(&cmd_bench, "--memcpy measures the host's memory: --device has no place there");
        status = cli_bench_memory(used_threads(&mo.backend), a->json, &err);
    } else {
        char *path = cli_model_path(a->llm.model, NULL, &err);
        if (path && writes_text(path)) {
            a->text.runs = a->runs > 0 ? a->runs : 5;
            a->text.json = a->json;
            const int code = cli_bench_text(&a->text, &a->llm, path, used_threads(&mo.backend));
            free(path);
            return code;
        }
        a->runs = a->runs > 0 ? a->runs : 3;
        const double start = cli_now();
        status = path ? sotto_whisper_model_open(path, &mo, &model, &err) : err.code;
        if (status == SOTTO_OK && a->llm.devices.memory)
            status = print_memory(a, model, &err);
        else if (status == SOTTO_OK)
            status = measure(a, &mo.backend, model, (cli_now() - start) * 1e3, &err);
        free(path);
    }
    if (status != SOTTO_OK)
        cli_say_library(NULL, "", err.text[0] ? err.text : sotto_status_name(status));
    sotto_whisper_model_free(model);
    return status == SOTTO_OK ? CLI_OK : status == SOTTO_E_ARGUMENT ? CLI_USAGE : CLI_FAILED;
}

const cli_command cmd_bench = {
    .name = "bench",
    .summary = "measure a model on this machine",
    .max_inputs = 0,
    .options = options,
    .args_size = sizeof(bench_args),
    .run = run,
    .details = "Of a model that hears, encoder_ms is a window of 30 s, prompt_ms a full prompt, decoder_ms one token, "
               "decoder_5_ms a step of five beams, decoder_40_ms one of eight windows of five beams; "
               "step_mb is what one token reads, weights and keys and values, step_gb_s how fast it "
               "does, read_gb_s how fast so much can be read and bandwidth_used the part of it; "
               "peak_rss_mb is the peak before these. Of a model that writes text, pp512 is a prompt of 512 tokens and "
               "tg128 128 "
               "generated ones, in tokens a second as llama-bench measures them.",
    .examples = "sotto bench -m base -t 2\ttable\nsotto bench --json\tfor a program\n"
                "sotto bench -m smollm2-135m -p 512,2048 -n 128 -d 0,1024\ttext: prompts, generation, at depth\n"
                "sotto bench --matmul -t 1\tproducts alone\n"};
