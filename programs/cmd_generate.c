/* cmd_generate.c: a text that goes on from a prompt. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "common/answer.h"
#include "common/llm.h"
#include "common/outfile.h"
#include "common/sampling.h"
#include "common/trace.h"

enum { ROOM_FOR_TEXT = 256 }; /* what is proposed for a text whose length was not given */

typedef struct generate_args {
    cli_llm_args llm;
    cli_sampling_args sampling;
    const char *prompt, *prompt_file, *system, *template, *session, *trace;
    int64_t tokens, keep, logprobs;
    bool chat, context_shift, special, no_bos, echo, quiet, json, timings;
} generate_args;

#define AT(field) offsetof(generate_args, field)
static const cli_option options[] = {
    CLI_LLM_MODEL_OPTIONS(AT(llm)),
    {"prompt", "-p", CLI_TEXT, AT(prompt), "TEXT", NULL, 0, 0, NULL, "the beginning, taken as it is"},
    {"prompt-file", "-f --file", CLI_TEXT, AT(prompt_file), "FILE", NULL, 0, 0, NULL,
     "the beginning from a file, without the line break at its end; - = standard input"},
    {"tokens", "-n --n-predict", CLI_INT, AT(tokens), "N", "-1", -1, 1e9, NULL,
     "so many tokens at most; -1 = until the model ends the text or the context is full"},
    {"chat", "-cnv", CLI_FLAG, AT(chat), NULL, NULL, 0, 0, NULL,
     "the prompt is a user's message in the model's chat format (see sotto chat); else it is completed as it is"},
    {"system", "-sys --system-prompt", CLI_TEXT, AT(system), "TEXT", NULL, 0, 0, NULL, "with --chat: the system message"},
    {"template", "--chat-template", CLI_CHOICE, AT(template), "NAME", NULL, 0, 0, CLI_CHAT_FORMATS,
     "with --chat: the format of the conversation, when the model's own is not known"},
    CLI_LLM_SESSION_OPTIONS(AT(llm), "0"),
    {"context-shift", NULL, CLI_FLAG, AT(context_shift), NULL, NULL, 0, 0, NULL,
     "when the context is full, forget the older half of it and go on"},
    {"keep", NULL, CLI_INT, AT(keep), "N", "0", -1, 1e9, NULL,
     "tokens of the prompt that are never forgotten; -1 = all; the begin token always is kept"},
    CLI_SAMPLING_OPTIONS(AT(sampling)),
    {"special", "-sp", CLI_FLAG, AT(special), NULL, NULL, 0, 0, NULL, "show control tokens"},
    {"no-bos", NULL, CLI_FLAG, AT(no_bos), NULL, NULL, 0, 0, NULL, "no begin token before the prompt"},
    {"echo", NULL, CLI_FLAG, AT(echo), NULL, NULL, 0, 0, NULL, "print the prompt, too"},
    {"session", "--prompt-cache", CLI_TEXT, AT(session), "FILE", NULL, 0, 0, NULL,
     "keep the state there: what the prompt has in common with it is not computed again; without a prompt its text "
     "goes on"},
    CLI_LLM_COMPUTE_OPTIONS(AT(llm)),
    CLI_LLM_MAPPING_OPTIONS(AT(llm)),
    {"json", NULL, CLI_FLAG, AT(json), NULL, NULL, 0, 0, NULL, "one JSON object at the end instead of the text"},
    {"logprobs", "--n-probs", CLI_INT, AT(logprobs), "N", "0", 0, 1000, NULL,
     "with --json: the N likeliest tokens of each place, with the logarithms of their probabilities"},
    {"quiet", "-q", CLI_FLAG, AT(quiet), NULL, NULL, 0, 0, NULL, "nothing on stderr but errors"},
    {"trace", NULL, CLI_MODE, AT(trace), "ops", NULL, 0, 0, "ops sched dot",
     "every operation with shape and time on stderr; sched = what ran on which device and what was copied; dot = the "
     "graph "
     "of a step for Graphviz on standard output, and no text"},
    {0}};

typedef struct job {
    const generate_args *args;
    sotto_llama_model *model;
    sotto_llama_session *session;
    sotto_llama_model_info info;
    cli_sampling sampling;
    cli_ids prompt;
    cli_text prompt_text;
    cli_answer answer;
    cli_log log;
    cli_progress progress;
    bool resumed;    /* no prompt: a session's text goes on */
    bool begins;     /* with a token of its own, which is always kept */
    int64_t n_new;   /* tokens of the prompt that were computed */
    double prompt_s; /* in so many seconds */
} job;

static bool to_stdout(void *user, const char *text, size_t n)
{
    const job *j = user;
    if (j->args->json)
        return true;
    return cli_write_out(text, n);
}

static bool on_abort(void *user)
{
    (void)user;
    return cli_interrupted();
}

/* While the state is kept the signal that ended the text stops nothing more: abort is NULL. */
static void set_run_options(job *j, bool (*abort)(void *user))
{
    const char *trace = j->args->trace ? j->args->trace : "";
    const sotto_run_options ro = {.abort = abort,
                                  .trace = strcmp(trace, "ops") == 0 ? cli_trace_node : NULL,
                                  .trace_split = strcmp(trace, "sched") == 0 ? cli_trace_split : NULL,
                                  .trace_user = &j->progress};
    sotto_llama_set_run_options(j->session, &ro);
}

static bool draws(const generate_args *a)
{
    return a->trace && strcmp(a->trace, "dot") == 0;
}

static void put_text(void *user, const char *text, size_t n)
{
    fwrite(text, 1, n, user);
}

static int check(const generate_args *a)
{
    const cli_command *c = &cmd_generate;
    if (a->prompt && a->prompt_file)
        return cli_usage(c, "--prompt and --prompt-file exclude each other");
    if (!a->prompt && !a->prompt_file && !a->session && !a->llm.devices.memory && !draws(a))
        return cli_usage(c, "--prompt TEXT or --prompt-file FILE is missing");
    if ((a->system || a->template) && !a->chat)
        return cli_usage(c, "%s goes with --chat", a->system ? "--system" : "--template");
    if (a->chat && a->no_bos)
        return cli_usage(c, "--no-bos and --chat exclude each other: the chat format says how a text begins");
    if (a->prompt_file && !*a->prompt_file)
        return cli_usage(c, "--prompt-file: the name is empty");
    if (a->session && (!*a->session || strcmp(a->session, "-") == 0))
        return cli_usage(c, "--session: \"%s\" is not the name of a file", a->session);
    if (a->json && a->echo)
        return cli_usage(c, "--json and --echo exclude each other: the object has the prompt");
    if (a->logprobs > 0 && !a->json)
        return cli_usage(c, "--logprobs goes with --json");
    return cli_sampling_check(c, &a->sampling);
}

static sotto_status read_prompt(job *j, sotto_error *err)
{
    const generate_args *a = j->args;
    if (a->prompt) {
        cli_text_puts(&j->prompt_text, a->prompt);
    } else if (a->prompt_file) {
        if (!cli_read_file(a->prompt_file, &j->prompt_text, err))
            return err->code;
        if (j->prompt_text.size > 0 && j->prompt_text.data[j->prompt_text.size - 1] == '\n')
            j->prompt_text.data[--j->prompt_text.size] = 0;
    }
    if (!j->prompt_text.failed)
        return SOTTO_OK;
    cli_fail(err, SOTTO_E_MEMORY, "out of memory");
    return SOTTO_E_MEMORY;
}

static sotto_status chat_tokens(job *j, sotto_error *err)
{
    sotto_llama_message messages[2] = {{"system", j->args->system},
                                       {"user", j->prompt_text.data ? j->prompt_text.data : ""}};
    const sotto_llama_message *first = j->args->system ? messages : messages + 1;
    const int n = j->args->system ? 2 : 1;
    if (memchr(messages[1].content, 0, j->prompt_text.size)) {
        cli_fail(err, SOTTO_E_FORMAT, "the prompt has a byte 0, which a message cannot have");
        return SOTTO_E_FORMAT;
    }
    int64_t count = 0;
    sotto_status status = sotto_llama_chat_tokenize(j->model, j->args->template, first, n, true, NULL, 0, &count, err);
    if (status != SOTTO_OK)
        return status;
    j->prompt.id = malloc(((size_t)count + 1) * sizeof *j->prompt.id);
    if (!j->prompt.id) {
        cli_fail(err, SOTTO_E_MEMORY, "out of memory");
        return SOTTO_E_MEMORY;
    }
    status = sotto_llama_chat_tokenize(j->model, j->args->template, first, n, true, j->prompt.id, count, &count, err);
    j->prompt.n = count;
    return status;
}

static sotto_status tokenize(job *j, sotto_error *err)
{
    sotto_status status = SOTTO_OK;
    const generate_args *a = j->args;
    const bool given = a->prompt || a->prompt_file;
    if (given && a->chat)
        return chat_tokens(j, err);
    if (given) {
        const unsigned flags = SOTTO_TOKENIZE_PARSE_SPECIAL | (a->no_bos ? 0u : SOTTO_TOKENIZE_ADD_SPECIAL);
        status = cli_llm_tokenize(j->model, j->prompt_text.data ? j->prompt_text.data : "", j->prompt_text.size, flags,
                                  &j->prompt, err);
        /* a text that is to go on has no end */
        const int32_t end = sotto_llama_token_find(j->model, SOTTO_LLAMA_TOKEN_END);
        if (status == SOTTO_OK && j->prompt.n > 1 && j->prompt.id[j->prompt.n - 1] == end && !a->no_bos &&
            j->prompt_text.size > 0 && end >= 0) {
            cli_ids bare;
            status = cli_llm_tokenize(j->model, j->prompt_text.data, j->prompt_text.size, SOTTO_TOKENIZE_PARSE_SPECIAL,
                                      &bare, err);
            const bool was_added = status == SOTTO_OK && (bare.n == 0 || bare.id[bare.n - 1] != end);
            j->prompt.n -= was_added;
            free(bare.id);
        }
        return status;
    }
    const int64_t n = sotto_llama_seq_length(j->session, 0);
    j->resumed = true;
    j->prompt.id = malloc(((size_t)n + 1) * sizeof *j->prompt.id);
    if (!j->prompt.id) {
        cli_fail(err, SOTTO_E_MEMORY, "out of memory");
        return SOTTO_E_MEMORY;
    }
    if (n > 0)
        memcpy(j->prompt.id, sotto_llama_seq_tokens(j->session, 0), (size_t)n * sizeof *j->prompt.id);
    j->prompt.n = n;
    return SOTTO_OK;
}

static sotto_status no_prompt(const job *j, sotto_error *err)
{
    if (j->resumed)
        cli_fail(err, SOTTO_E_FORMAT, "%s: the session has no tokens, so a prompt is needed", j->args->session);
    else if (j->args->no_bos)
        cli_fail(err, SOTTO_E_ARGUMENT, "the prompt is empty, and with --no-bos no token is left to start from");
    else
        cli_fail(err, SOTTO_E_FORMAT, "the prompt is empty, and the model has no begin token to start from");
    return err->code;
}

/* The prompt and what is to be written after it, but not beyond what the model was trained for when the prompt alone is not. */
static int64_t wanted_context(const job *j)
{
    const int64_t more = j->args->tokens >= 0 ? j->args->tokens : ROOM_FOR_TEXT, n = j->prompt.n + more;
    const bool fits = j->args->tokens < 0 && j->prompt.n < j->info.n_ctx_train && n > j->info.n_ctx_train;
    return fits ? j->info.n_ctx_train : n;
}

static sotto_status load_session(job *j, sotto_error *err)
{
    const generate_args *a = j->args;
    if (a->session && cli_is_file(a->session)) {
        const sotto_status status = sotto_llama_state_load(j->session, 0, a->session, err);
        char sentence[sizeof err->text];
        snprintf(sentence, sizeof sentence, "%s", err->text);
        if (status == SOTTO_E_FULL)
            cli_fail(err, status, "%.300s; a larger --ctx is needed (the model was trained for %d)", sentence,
                     j->info.n_ctx_train);
        return status;
    }
    if (a->session && !a->prompt && !a->prompt_file) {
        cli_fail(err, SOTTO_E_NOT_FOUND, "%s: there is no such session yet, so a prompt is needed", a->session);
        return SOTTO_E_NOT_FOUND;
    }
    return SOTTO_OK;
}

static sotto_status prepare(job *j, sotto_error *err)
{
    const int64_t n_ctx = cli_llm_context(&j->args->llm, j->model);
    sotto_status status = load_session(j, err);
    if (status == SOTTO_OK)
        status = tokenize(j, err);
    if (status == SOTTO_OK && j->prompt.n == 0)
        return no_prompt(j, err);
    if (status == SOTTO_OK && j->prompt.n > n_ctx) {
        char larger[160];
        cli_fail(err, SOTTO_E_FULL, "context full: the prompt has %s, but the context holds %lld: give %s",
                 cli_count(j->prompt.n, "token").text, (long long)n_ctx,
                 cli_llm_larger_context(j->model, wanted_context(j), larger, sizeof larger));
        return SOTTO_E_FULL;
    }
    return status;
}

static sotto_status make_sampler(job *j, sotto_error *err)
{
    sotto_status status = cli_sampling_fill(&j->args->sampling, j->model, &j->sampling, err);
    if (status == SOTTO_OK)
        status = sotto_llama_sampler_create(j->model, &j->sampling.options, &j->answer.sampler, err);
    return status;
}

/* The state after the text, also after one that a signal ended. */
static sotto_status keep_session(job *j, sotto_error *err)
{
    const char *path = j->args->session;
    if (j->answer.lost) {
        cli_say(NULL, "%s was not written: the interruption came while the context was shifted", path);
        return SOTTO_OK;
    }
    sotto_status status = SOTTO_OK;
    set_run_options(j, NULL);
    if (j->answer.undecoded && j->answer.end != CLI_END_FULL)
        status = sotto_llama_decode_tokens(j->session, 0, &j->answer.ids[j->answer.n_ids - 1], 1, err);
    if (status == SOTTO_OK || status == SOTTO_E_FULL)
        status = sotto_llama_state_save(j->session, 0, path, err);
    return status;
}

/* A prompt as it is, and a model that was trained to answer: whoever does not know may wonder about the text. */
static void tell_of_chat(const job *j)
{
    const generate_args *a = j->args;
    bool marked = false; /* has turns of its own already */
    for (int64_t i = 1; i < j->prompt.n; i++) {
        size_t n;
        sotto_llama_token_bytes(j->model, j->prompt.id[i], false, &n);
        marked = marked || n == 0;
    }
    if (!a->quiet && !a->chat && !j->resumed && !marked && j->info.chat_format)
        cli_say(NULL, "the prompt is completed as it is; this model was trained to answer, too: --chat asks it");
}

static sotto_status write_text(job *j, sotto_error *err)
{
    const generate_args *a = j->args;
    const double start = cli_now();
    sotto_status status = cli_answer_prompt(j->session, j->prompt.id, j->prompt.n, &j->n_new, err);
    j->prompt_s = cli_now() - start;
    if (status == SOTTO_E_ABORTED && cli_interrupted()) {
        j->answer.end = CLI_END_INTERRUPTED;
        j->n_new = 0;
        if (a->session)
            cli_say(NULL, "%s was not written: the interruption came before the text", a->session);
        return SOTTO_OK;
    }
    if (status == SOTTO_OK)
        status = sotto_sampler_accept_prompt(j->answer.sampler, j->prompt.id, j->prompt.n, err);
    if (status != SOTTO_OK)
        return status;
    if (a->echo && !j->resumed) {
        cli_text shown = {0};
        cli_text_utf8(&shown, j->prompt_text.data ? j->prompt_text.data : "", j->prompt_text.size);
        if (shown.data)
            to_stdout(j, shown.data, shown.size);
        cli_text_free(&shown);
    }
    j->begins = cli_llm_begins(j->model) && !a->no_bos;
    j->answer.model = j->model;
    j->answer.session = j->session;
    j->answer.grammar = j->sampling.grammar != NULL;
    j->answer.stop = &a->sampling.stop;
    j->answer.limit = a->tokens;
    j->answer.special = a->special;
    j->answer.shift = a->context_shift;
    j->answer.keep = a->keep < 0 ? j->prompt.n : a->keep > j->begins ? a->keep : j->begins;
    j->answer.n_top = (int)a->logprobs;
    j->answer.show = to_stdout;
    j->answer.user = j;
    status = cli_answer_write(&j->answer, err);
    if (!a->json && j->answer.text.size > 0 && j->answer.text.data[j->answer.text.size - 1] != '\n')
        cli_write_out("\n", 1); /* a prompt of the shell begins a line of its own */
    return status == SOTTO_OK && a->session ? keep_session(j, err) : status;
}

static double each_second(int64_t n, double seconds)
{
    return n > 0 && seconds > 0 ? (double)n / seconds : 0;
}

static void summary(const job *j)
{
    const cli_answer *w = &j->answer;
    if (w->n_shifts > 0)
        cli_say(NULL, "the context was shifted %s: the text no longer knows its beginning",
                cli_count(w->n_shifts, "time").text);
    fprintf(stderr,
            "\nprompt %s (%lld computed), %.1f a second; text %s, %.1f a second; ended by: %s; "
            "seed %llu; load %.2f s, peak memory %.1f MB\n",
            cli_count(j->prompt.n, "token").text, (long long)j->n_new, each_second(j->n_new, j->prompt_s),
            cli_count(w->n_ids, "token").text, each_second(w->n_steps, w->seconds), cli_end_name(w->end),
            (unsigned long long)j->sampling.seed, j->info.load_seconds, cli_peak_rss_mb());
}

static void add_logprobs(cli_text *t, const cli_answer *w)
{
    cli_text_puts(t, ", \"logprobs\": [");
    for (int64_t i = 0; i < w->n_ids; i++) {
        cli_text_puts(t, i ? ",\n  [" : "\n  [");
        for (int k = 0; k < w->n_top; k++) {
            const sotto_token_logprob *p = w->top + i * w->n_top + k;
            if (p->token < 0)
                break;
            cli_text_printf(t, "%s{\"id\": %d, \"logprob\": ", k ? ", " : "", p->token);
            cli_text_json_number(t, (double)p->logprob, 6);
            cli_text_puts(t, "}");
        }
        cli_text_puts(t, "]");
    }
    cli_text_puts(t, "]");
}

static void print_json(const job *j)
{
    const cli_answer *w = &j->answer;
    cli_text t = {0};
    cli_text_puts(&t, "{\"model\": ");
    cli_text_json(&t, j->args->llm.model, strlen(j->args->llm.model));
    cli_text_puts(&t, ", \"prompt\": ");
    cli_text_json(&t, j->prompt_text.data ? j->prompt_text.data : "", j->prompt_text.size);
    cli_text_puts(&t, ", \"text\": ");
    cli_text_json(&t, w->text.data ? w->text.data : "", w->text.size);
    cli_text_puts(&t, ", \"tokens\": [");
    for (int64_t i = 0; i < w->n_ids; i++)
        cli_text_printf(&t, "%s%d", i ? ", " : "", w->ids[i]);
    cli_text_printf(&t, "], \"n_prompt\": %lld, \"n_tokens\": %lld, \"stop_reason\": \"%s\", \"seed\": %llu",
                    (long long)j->prompt.n, (long long)w->n_ids, cli_end_name(w->end),
                    (unsigned long long)j->sampling.seed);
    if (w->n_top > 0)
        add_logprobs(&t, w);
    const struct {
        const char *key;
        double value;
    } timings[] = {{"load_s", j->info.load_seconds},
                   {"prompt_s", j->prompt_s},
                   {"prompt_tps", each_second(j->n_new, j->prompt_s)},
                   {"generation_s", w->seconds},
                   {"generation_tps", each_second(w->n_steps, w->seconds)},
                   {"peak_rss_mb", cli_peak_rss_mb()}};
    cli_text_printf(&t, ", \"timings\": {\"n_prompt_computed\": %lld", (long long)j->n_new);
    for (size_t i = 0; i < sizeof timings / sizeof *timings; i++) {
        cli_text_printf(&t, ", \"%s\": ", timings[i].key);
        cli_text_json_number(&t, timings[i].value, 4);
    }
    cli_text_puts(&t, "}}\n");
    if (t.data && !t.failed)
        fwrite(t.data, 1, t.size, stdout);
    cli_text_free(&t);
}

/* What helps depends on what filled the context. */
static void tell_full(const job *j)
{
    const generate_args *a = j->args;
    const int64_t n_ctx = cli_llm_context(&a->llm, j->model);
    char larger[160], kept[120] = "", limit[48] = "";
    const bool less = j->answer.keep > (j->begins ? 1 : 0); /* could be kept */
    if (a->context_shift && less)
        snprintf(kept, sizeof kept, " or a smaller --keep: it keeps %s, and --context-shift can forget none",
                 cli_count(j->answer.keep < n_ctx ? j->answer.keep : n_ctx, "token").text);
    else if (!a->context_shift && (less || j->answer.keep < n_ctx - 1))
        snprintf(kept, sizeof kept, " or --context-shift%s",
                 j->answer.keep >= n_ctx - 1 ? " with a smaller --keep" : "");
    if (a->tokens >= 0)
        snprintf(limit, sizeof limit, " of %lld", (long long)a->tokens);
    cli_say(NULL, "context full: it holds %s, %lld of the prompt, so only %lld%s were written: give %s%s",
            cli_count(n_ctx, "token").text, (long long)j->prompt.n, (long long)j->answer.n_ids, limit,
            cli_llm_larger_context(j->model, wanted_context(j), larger, sizeof larger), kept);
}

/* What was asked for is there: all tokens, when their number was given. */
static int finish(const job *j, sotto_status status, const sotto_error *err)
{
    const generate_args *a = j->args;
    const bool interrupted = cli_interrupted() && (status == SOTTO_OK || status == SOTTO_E_ABORTED);
    if (status != SOTTO_OK && !interrupted)
        return cli_llm_failed(status, err);
    if (status == SOTTO_OK && !a->llm.devices.memory) {
        if (a->json)
            print_json(j);
        if (!a->quiet && j->answer.end == CLI_END_GRAMMAR)
            cli_say(NULL, "the grammar allows nothing more: its text is complete, and --ignore-eos is given");
        if (!a->quiet)
            summary(j);
    }
    if (interrupted)
        return cli_interrupted_exit();
    if (j->answer.end == CLI_END_FULL && (a->tokens >= 0 || a->context_shift)) {
        tell_full(j);
        return CLI_FAILED;
    }
    return CLI_OK;
}

static int run(void *args, const cli_list *inputs)
{
    const generate_args *a = args;
    (void)inputs;
    job j = {.args = a};
    sotto_error err = {0};
    int code = check(a);
    if (code != CLI_OK)
        return code;
    j.log = (cli_log){.quiet = a->quiet, .progress = &j.progress};
    cli_signals_end_at_once(true);
    cli_signals_install();
    /* before the model: files that cannot be read or written cost no loading */
    sotto_status status = read_prompt(&j, &err);
    if (status == SOTTO_OK && a->session && !a->llm.devices.memory && !cli_can_write(a->session, &err))
        status = err.code;
    code = status == SOTTO_OK ? cli_llm_open(&a->llm, false, &j.log, &j.model) : CLI_OK;
    cli_signals_end_at_once(false);
    if (status == SOTTO_OK && code == CLI_OK) {
        sotto_llama_model_get_info(j.model, &j.info);
        status = cli_llm_session(&a->llm, j.model, 0, 1, &j.session, &err);
        if (status == SOTTO_OK && a->llm.devices.memory)
            status = cli_llm_print_memory(j.model, j.session, &err);
        else if (status == SOTTO_OK && draws(a))
            status = sotto_llama_write_dot(j.session, 1, put_text, stdout, &err);
        else if (status == SOTTO_OK) {
            set_run_options(&j, on_abort);
            status = make_sampler(&j, &err);
            if (status == SOTTO_OK)
                status = prepare(&j, &err);
            if (status == SOTTO_OK) {
                tell_of_chat(&j);
                status = write_text(&j, &err);
            }
        }
    }
    if (code == CLI_OK)
        code = finish(&j, status, &err);
    cli_answer_free(&j.answer);
    sotto_sampler_free(j.answer.sampler);
    cli_sampling_free(&j.sampling);
    free(j.prompt.id);
    cli_text_free(&j.prompt_text);
    sotto_llama_session_free(j.session);
    sotto_llama_model_free(j.model);
    return code;
}

const cli_command cmd_generate = {
    .name = "generate",
    .summary = "write a text that goes on from a prompt",
    .max_inputs = 0,
    .options = options,
    .args_size = sizeof(generate_args),
    .run = run,
    .details = "The prompt is completed as it is, also with models that were trained to answer; --chat makes it a "
               "message to such a model. Texts of control tokens in a prompt (\"<|im_start|>\") are those tokens, in a "
               "message they are text. The text goes to standard output as it is written, always in whole characters, "
               "and a line about speed, the seed and why it ended to standard error. When the number of tokens was "
               "given and the context is full before, the exit code is 1.",
    .examples =
        "sotto generate -m smollm2-135m -p \"Once upon a time\" -n 100\tcomplete a text\n"
        "sotto generate --chat -p \"What is the capital of France?\"\task a question\n"
        "sotto generate -p \"A list:\" --temperature 0 --quiet > list.txt\tthe likeliest text, and only the text\n"
        "sotto generate -f story.txt --seed 7 --stop END -n 500\tgo on from a file, up to a word\n"
        "sotto generate -m model.gguf --memory -c 8192\twhat it would need\n"};
