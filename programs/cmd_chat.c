/* cmd_chat.c: a conversation with a model that was trained for it. Every answer begins with the tokens of the whole
 * conversation; what the session has of them already is not computed again. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <unistd.h>

#include "commands.h"
#include "common/answer.h"
#include "common/llm.h"
#include "common/outfile.h"
#include "common/sampling.h"
#include "conversation.h"

enum { ROOM_FOR_ANSWER = 256 }; /* in a context that is proposed */

typedef struct chat_args {
    cli_llm_args llm;
    cli_sampling_args sampling;
    const char *system, *template, *load;
    int64_t tokens;
    bool context_shift, special, quiet, timings;
} chat_args;

#define AT(field) offsetof(chat_args, field)
static const cli_option options[] = {
    CLI_LLM_MODEL_OPTIONS(AT(llm)),
    {"system", "-sys --system-prompt", CLI_TEXT, AT(system), "TEXT", NULL, 0, 0, NULL, "the system message"},
    {"template", "--chat-template", CLI_CHOICE, AT(template), "NAME", NULL, 0, 0, CLI_CHAT_FORMATS,
     "the format of the conversation, when the model's own is not known"},
    {"load", NULL, CLI_TEXT, AT(load), "FILE", NULL, 0, 0, NULL, "go on with a conversation that /save wrote"},
    {"tokens", "-n --n-predict", CLI_INT, AT(tokens), "N", "-1", -1, 1e9, NULL,
     "so many tokens an answer at most; -1 = until the model ends it or the context is full"},
    CLI_LLM_SESSION_OPTIONS(AT(llm), "0"),
    {"context-shift", NULL, CLI_FLAG, AT(context_shift), NULL, NULL, 0, 0, NULL,
     "when the context is full, forget the oldest questions and answers instead of stopping"},
    CLI_SAMPLING_OPTIONS(AT(sampling)),
    {"special", "-sp", CLI_FLAG, AT(special), NULL, NULL, 0, 0, NULL, "show control tokens"},
    CLI_LLM_COMPUTE_OPTIONS(AT(llm)),
    CLI_LLM_MAPPING_OPTIONS(AT(llm)),
    {"timings", NULL, CLI_FLAG, AT(timings), NULL, NULL, 0, 0, NULL, "speed on stderr after each answer"},
    {"quiet", "-q", CLI_FLAG, AT(quiet), NULL, NULL, 0, 0, NULL, "nothing on stderr but errors"},
    {0}};

typedef struct chat {
    const chat_args *args;
    sotto_llama_model *model;
    sotto_llama_session *session;
    sotto_llama_model_info info;
    cli_sampling sampling;
    cli_conversation talk;
    cli_log log;
    int64_t n_ctx;
    uint64_t n_answers;
    bool terminal; /* questions are typed */
    bool over;
    bool broken; /* standard output */
} chat;

static bool to_stdout(void *user, const char *text, size_t n)
{
    chat *c = user;
    c->broken = !cli_write_out(text, n);
    return !c->broken;
}

static bool on_abort(void *user)
{
    (void)user;
    return cli_interrupted();
}

static void tell(const chat *c, const char *text)
{
    if (!c->args->quiet)
        cli_say(NULL, "%s", text);
}

/* Tokens of the first n messages. */
static sotto_status tokens_of(const chat *c, int n, bool answer, cli_ids *out, sotto_error *err)
{
    int64_t count = 0;
    *out = (cli_ids){0};
    sotto_status status =
        sotto_llama_chat_tokenize(c->model, c->args->template, c->talk.message, n, answer, NULL, 0, &count, err);
    if (status != SOTTO_OK)
        return status;
    out->id = malloc(((size_t)count + 1) * sizeof *out->id);
    if (!out->id) {
        cli_fail(err, SOTTO_E_MEMORY, "out of memory");
        return SOTTO_E_MEMORY;
    }
    status =
        sotto_llama_chat_tokenize(c->model, c->args->template, c->talk.message, n, answer, out->id, count, &count, err);
    out->n = status == SOTTO_OK ? count : 0;
    return status;
}

/* The conversation's tokens, when the context has room for them and an answer. With --context-shift the oldest go until a
 * quarter is free; else SOTTO_E_FULL. */
static sotto_status fit(chat *c, cli_ids *out, sotto_error *err)
{
    sotto_status status = tokens_of(c, c->talk.n, true, out, err);
    int forgotten = 0;
    if (status == SOTTO_OK && out->n >= c->n_ctx && c->args->context_shift)
        while (status == SOTTO_OK && out->n > c->n_ctx - c->n_ctx / 4 && cli_conversation_drop_oldest(&c->talk)) {
            free(out->id);
            status = tokens_of(c, c->talk.n, true, out, err);
            forgotten++;
        }
    if (forgotten > 0)
        tell(c, "the context is full: the oldest questions and answers were forgotten");
    if (status == SOTTO_OK && out->n >= c->n_ctx) {
        const bool alone = c->talk.n - cli_conversation_has_system(&c->talk) == 1;
        char larger[160];
        cli_fail(
            err, SOTTO_E_FULL,
            "context full: with this question the conversation has %s, and the context holds %lld; what helps: %s%s%s",
            cli_count(out->n, "token").text, (long long)c->n_ctx, alone ? "a shorter question or " : "/undo, /clear, ",
            cli_llm_larger_context(c->model, out->n + ROOM_FOR_ANSWER, larger, sizeof larger),
            alone || c->args->context_shift ? "" : " or --context-shift");
        return SOTTO_E_FULL;
    }
    return status;
}

/* Tokens that a shift within an answer keeps: the system message, where the format has it alone. */
static int64_t tokens_to_keep(const chat *c)
{
    cli_ids ids;
    int64_t n = cli_llm_begins(c->model);
    if (cli_conversation_has_system(&c->talk) && tokens_of(c, 1, false, &ids, NULL) == SOTTO_OK) {
        n = ids.n;
        free(ids.id);
    }
    return n < c->n_ctx / 2 ? n : c->n_ctx / 2;
}

static void print_timings(const cli_answer *a, int64_t n_new, double prompt_s)
{
    fprintf(stderr, "prompt %s, %.1f a second; answer %s, %.1f a second; ended by: %s\n", cli_count(n_new, "token").text,
            prompt_s > 0 ? (double)n_new / prompt_s : 0, cli_count(a->n_ids, "token").text,
            a->seconds > 0 ? (double)a->n_steps / a->seconds : 0, cli_end_name(a->end));
}

/* The answer to the last message, which is the user's; it is shown and becomes part of the conversation. */
static sotto_status answer(chat *c, sotto_error *err)
{
    cli_ids ids;
    cli_answer a = {.model = c->model,
                    .session = c->session,
                    .stop = &c->args->sampling.stop,
                    .limit = c->args->tokens,
                    .special = c->args->special,
                    .shift = c->args->context_shift,
                    .keep = tokens_to_keep(c),
                    .show = to_stdout,
                    .user = c};
    sotto_sampler_options so = c->sampling.options;
    so.seed = c->sampling.seed + c->n_answers++; /* so that an answer that is asked for again is another one */
    int64_t n_new = 0;
    double prompt_s = 0;
    sotto_status status = fit(c, &ids, err);
    if (status == SOTTO_OK)
        status = sotto_llama_sampler_create(c->model, &so, &a.sampler, err);
    if (status == SOTTO_OK) {
        const double start = cli_now();
        status = cli_answer_prompt(c->session, ids.id, ids.n, &n_new, err);
        prompt_s = cli_now() - start;
    }
    if (status == SOTTO_OK)
        status = sotto_sampler_accept_prompt(a.sampler, ids.id, ids.n, err);
    if (status == SOTTO_OK)
        status = cli_answer_write(&a, err);
    if (a.text.size > 0 && !c->broken)
        to_stdout(c, c->terminal ? "\n\n" : "\n", c->terminal ? 2 : 1);
    if (status == SOTTO_OK && !cli_conversation_add(&c->talk, "assistant", a.text.data ? a.text.data : "", a.text.size)) {
        cli_fail(err, SOTTO_E_MEMORY, "out of memory");
        status = SOTTO_E_MEMORY;
    }
    if (status == SOTTO_OK && c->args->timings)
        print_timings(&a, n_new, prompt_s);
    if (status == SOTTO_OK && a.end == CLI_END_FULL) {
        cli_fail(err, SOTTO_E_FULL,
                 "context full: it holds %s, and the answer was cut; what helps: /undo, /clear, a larger --ctx%s",
                 cli_count(c->n_ctx, "token").text, c->args->context_shift ? "" : " or --context-shift");
        status = SOTTO_E_FULL;
    }
    sotto_sampler_free(a.sampler);
    cli_answer_free(&a);
    free(ids.id);
    return status;
}

/* A question that was not answered is taken back, but for one whose answer was cut. */
static sotto_status ask(chat *c, const char *question, size_t n, sotto_error *err)
{
    if (!cli_conversation_add(&c->talk, "user", question, n)) {
        cli_fail(err, SOTTO_E_MEMORY, "out of memory");
        return SOTTO_E_MEMORY;
    }
    const sotto_status status = answer(c, err);
    if (strcmp(c->talk.message[c->talk.n - 1].role, "user") == 0)
        cli_conversation_drop_last(&c->talk);
    return status;
}

/* ---- what begins with a slash ---- */

static sotto_status do_help(chat *c, const char *rest, sotto_error *err);

static sotto_status do_clear(chat *c, const char *rest, sotto_error *err)
{
    (void)rest;
    (void)err;
    cli_conversation_clear(&c->talk);
    tell(c, "the conversation begins anew");
    return SOTTO_OK;
}

static sotto_status do_system(chat *c, const char *rest, sotto_error *err)
{
    if (!cli_conversation_add(&c->talk, "system", rest, strlen(rest))) {
        cli_fail(err, SOTTO_E_MEMORY, "out of memory");
        return SOTTO_E_MEMORY;
    }
    tell(c, *rest ? "the system message is set" : "there is no system message");
    return SOTTO_OK;
}

static sotto_status do_regen(chat *c, const char *rest, sotto_error *err)
{
    (void)rest;
    const int n = c->talk.n;
    if (n == 0 || strcmp(c->talk.message[n - 1].role, "assistant") != 0) {
        cli_fail(err, SOTTO_E_ARGUMENT, "there is no answer to give again");
        return SOTTO_E_ARGUMENT;
    }
    char *before = strdup(c->talk.message[n - 1].content);
    cli_conversation_drop_last(&c->talk);
    const sotto_status status = before ? answer(c, err) : SOTTO_E_MEMORY;
    if (before && c->talk.n > 0 && strcmp(c->talk.message[c->talk.n - 1].role, "user") == 0)
        cli_conversation_add(&c->talk, "assistant", before, strlen(before)); /* the old answer stays */
    free(before);
    return status;
}

static sotto_status do_undo(chat *c, const char *rest, sotto_error *err)
{
    (void)rest;
    if (!cli_conversation_drop_last(&c->talk)) {
        cli_fail(err, SOTTO_E_ARGUMENT, "there is nothing to undo");
        return SOTTO_E_ARGUMENT;
    }
    cli_conversation_drop_last(&c->talk);
    tell(c, "the last question and its answer are forgotten");
    return SOTTO_OK;
}

static sotto_status do_save(chat *c, const char *rest, sotto_error *err)
{
    if (!cli_conversation_save(&c->talk, rest, err))
        return err->code;
    tell(c, "the conversation is saved");
    return SOTTO_OK;
}

static sotto_status do_load(chat *c, const char *rest, sotto_error *err)
{
    if (!cli_conversation_load(&c->talk, rest, err))
        return err->code;
    tell(c, "the conversation is loaded");
    return SOTTO_OK;
}

static sotto_status do_tokens(chat *c, const char *rest, sotto_error *err)
{
    (void)rest;
    cli_ids ids = {0};
    const sotto_status status = c->talk.n > 0 ? tokens_of(c, c->talk.n, false, &ids, err) : SOTTO_OK;
    if (status == SOTTO_OK)
        printf("%lld of %s, %s\n", (long long)ids.n, cli_count(c->n_ctx, "token").text,
               cli_count(c->talk.n, "message").text);
    free(ids.id);
    return status;
}

static sotto_status do_quit(chat *c, const char *rest, sotto_error *err)
{
    (void)rest;
    (void)err;
    c->over = true;
    return SOTTO_OK;
}

static const struct {
    const char *name, *value; /* value: what must follow, "[...]" = may follow */
    sotto_status (*run)(chat *c, const char *rest, sotto_error *err);
    const char *help;
} commands[] = {{"/help", NULL, do_help, "this list"},
                {"/clear", NULL, do_clear, "forget questions and answers; the system message stays"},
                {"/system", "[TEXT]", do_system, "another system message, or none"},
                {"/regen", NULL, do_regen, "answer the last question again"},
                {"/undo", NULL, do_undo, "forget the last question and its answer"},
                {"/save", "FILE", do_save, "write the conversation, as JSON"},
                {"/load", "FILE", do_load, "go on with a saved one"},
                {"/tokens", NULL, do_tokens, "how much of the context is in use"},
                {"/quit", NULL, do_quit, "the end; so does the end of input"}};

static sotto_status do_help(chat *c, const char *rest, sotto_error *err)
{
    (void)c;
    (void)rest;
    (void)err;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        printf("%-8s %-7s %s\n", commands[i].name, commands[i].value ? commands[i].value : "", commands[i].help);
    printf("A \\ at the end of a line goes on in the next; // begins a question with /.\n");
    return SOTTO_OK;
}

static sotto_status do_command(chat *c, char *line, sotto_error *err)
{
    const size_t n = strcspn(line, " \t");
    char *rest = line + n + strspn(line + n, " \t");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strlen(commands[i].name) != n || memcmp(commands[i].name, line, n) != 0)
            continue;
        const char *value = commands[i].value;
        if (!value && *rest)
            cli_fail(err, SOTTO_E_ARGUMENT, "%s takes no value", commands[i].name);
        else if (value && value[0] != '[' && !*rest)
            cli_fail(err, SOTTO_E_ARGUMENT, "%s needs a value: %s", commands[i].name, value);
        else
            return commands[i].run(c, rest, err);
        return SOTTO_E_ARGUMENT;
    }
    cli_fail(err, SOTTO_E_ARGUMENT, "unknown command %.*s (see /help)", (int)n, line);
    return SOTTO_E_ARGUMENT;
}

/* ---- lines ---- */

/* Until there is a line on the terminal; false after Ctrl-C, also when it came just before the waiting began, which a
 * blocking read would not notice. */
static bool wait_for_line(void)
{
    sigset_t interrupt, before;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigaddset(&interrupt, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &interrupt, &before) != 0)
        return !cli_interrupted();
    int ready = -1;
    errno = EINTR;
    while (!cli_interrupted() && ready < 0 && errno == EINTR) {
        fd_set input;
        FD_ZERO(&input);
        FD_SET(STDIN_FILENO, &input);
        ready = pselect(STDIN_FILENO + 1, &input, NULL, NULL, NULL, &before);
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return !cli_interrupted();
}

/* One question, which may have several lines; false at the end of input, or when it was interrupted. */
static bool read_question(const chat *c, cli_text *out, bool *failed)
{
    char *line = NULL;
    size_t capacity = 0;
    bool more = true, any = false;
    *failed = false;
    out->size = 0;
    while (more) {
        if (c->terminal) {
            fputs(any ? ". " : "> ", isatty(STDOUT_FILENO) ? stdout : stderr);
            fflush(stdout);
            if (!wait_for_line())
                break;
        }
        errno = 0;
        ssize_t n = getline(&line, &capacity, stdin);
        if (n < 0) {
            if (ferror(stdin) && !cli_interrupted()) {
                cli_say(NULL, "cannot read standard input: %s", strerror(errno));
                *failed = true;
            }
            break;
        }
        any = true;
        if (n > 0 && line[n - 1] == '\n')
            n--;
        if (n > 0 && line[n - 1] == '\r')
            n--;
        more = n > 0 && line[n - 1] == '\\';
        cli_text_add(out, line, (size_t)(more ? n - 1 : n));
        if (more)
            cli_text_puts(out, "\n");
    }
    free(line);
    if (out->failed) {
        cli_say(NULL, "out of memory");
        *failed = true;
    }
    return any && !*failed && !cli_interrupted();
}

static bool is_blank(const cli_text *t)
{
    return !t->data || t->size == 0 || strspn(t->data, " \t\n") >= t->size;
}

/* Returns an exit code. */
static int converse(chat *c)
{
    cli_text line = {0};
    int code = CLI_OK;
    bool failed = false;
    while (!c->over && code == CLI_OK && read_question(c, &line, &failed)) {
        sotto_error err = {0};
        sotto_status status = SOTTO_OK;
        if (is_blank(&line))
            continue;
        const bool is_command = line.data[0] == '/' && line.data[1] != '/';
        const size_t skip = line.data[0] == '/' && !is_command;
        status = is_command ? do_command(c, line.data, &err) : ask(c, line.data + skip, line.size - skip, &err);
        if (fflush(stdout) != 0 || ferror(stdout))
            code = CLI_FAILED; /* told by main() */
        else if (status != SOTTO_OK && !cli_interrupted()) {
            cli_say(NULL, "%s", err.text[0] ? err.text : sotto_status_name(status));
            code = c->terminal && !c->broken ? CLI_OK : CLI_FAILED;
        }
        if (cli_interrupted() && (!c->terminal || !cli_signals_forget()))
            break;
        if (c->terminal)
            clearerr(stdin);
    }
    if (c->terminal && !c->over && !c->args->quiet)
        fputs("\n", stderr);
    cli_text_free(&line);
    return cli_interrupted() ? cli_interrupted_exit() : failed ? CLI_FAILED : code;
}

static int check(const chat_args *a)
{
    if (a->load && !*a->load)
        return cli_usage(&cmd_chat, "--load: the name is empty");
    return cli_sampling_check(&cmd_chat, &a->sampling);
}

/* What can be known to be wrong before the first question is. */
static sotto_status prepare(chat *c, sotto_error *err)
{
    const sotto_run_options ro = {.abort = on_abort};
    sotto_llama_set_run_options(c->session, &ro);
    sotto_status status = cli_sampling_fill(&c->args->sampling, c->model, &c->sampling, err);
    if (status == SOTTO_OK && c->args->load && !cli_conversation_load(&c->talk, c->args->load, err))
        status = err->code;
    if (status == SOTTO_OK && c->args->system &&
        !cli_conversation_add(&c->talk, "system", c->args->system, strlen(c->args->system)))
        cli_fail(err, status = SOTTO_E_MEMORY, "out of memory");
    sotto_sampler *sampler = NULL;
    if (status == SOTTO_OK)
        status = sotto_llama_sampler_create(c->model, &c->sampling.options, &sampler, err);
    sotto_sampler_free(sampler);
    if (status != SOTTO_OK)
        return status;
    const sotto_llama_message hello = {"user", "?"};
    int64_t count;
    return sotto_llama_chat_tokenize(c->model, c->args->template, &hello, 1, true, NULL, 0, &count, err);
}

static int run(void *args, const cli_list *inputs)
{
    chat c = {.args = args};
    sotto_error err = {0};
    (void)inputs;
    int code = check(c.args);
    if (code != CLI_OK)
        return code;
    c.log = (cli_log){.quiet = c.args->quiet};
    cli_signals_end_at_once(true);
    cli_signals_install();
    code = cli_llm_open(&c.args->llm, false, &c.log, &c.model);
    cli_signals_end_at_once(false);
    if (code == CLI_OK) {
        sotto_llama_model_get_info(c.model, &c.info);
        c.n_ctx = cli_llm_context(&c.args->llm, c.model);
        c.terminal = isatty(STDIN_FILENO);
        sotto_status status = cli_llm_session(&c.args->llm, c.model, 0, 1, &c.session, &err);
        if (status == SOTTO_OK)
            status = c.args->llm.devices.memory ? cli_llm_print_memory(c.model, c.session, &err) : prepare(&c, &err);
        if (status != SOTTO_OK) {
            code = cli_llm_failed(status, &err);
        } else if (!c.args->llm.devices.memory) {
            if (c.terminal && !c.args->quiet)
                cli_say(NULL, "%s, a context of %s, seed %llu; /help lists commands, Ctrl-C stops an answer",
                        c.info.name[0] ? c.info.name : c.args->llm.model, cli_count(c.n_ctx, "token").text,
                        (unsigned long long)c.sampling.seed);
            code = converse(&c);
        }
    }
    cli_conversation_free(&c.talk);
    cli_sampling_free(&c.sampling);
    sotto_llama_session_free(c.session);
    sotto_llama_model_free(c.model);
    return code;
}

const cli_command cmd_chat = {
    .name = "chat",
    .summary = "talk with a model",
    .max_inputs = 0,
    .options = options,
    .args_size = sizeof(chat_args),
    .run = run,
    .details =
        "A question is a line; a \\ at its end goes on in the next. Ctrl-C stops an answer; a second one, or one "
        "where a question is awaited, ends the program. Lines that begin with / are commands: /help, /clear, "
        "/system TEXT, /regen, /undo, /save FILE, /load FILE, /tokens, /quit. When standard input is no terminal, "
        "each line is answered, and the first error ends the program with exit code 1. The model's chat format "
        "is found by its template; --template names one for templates that are not known.",
    .examples = "sotto chat -m smollm2-135m --system \"Answer in one sentence.\"\ttalk\n"
                "echo \"What is 2 + 3?\" | sotto chat -q --temperature 0\tone question from a script\n"};
