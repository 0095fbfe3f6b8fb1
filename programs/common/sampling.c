/* sampling.c: options of sampling, made ready for a model. Contract: sampling.h. */
#include "common/sampling.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/outfile.h"

/* "15043+1", "15043-inf" */
static bool read_bias(const char *text, sotto_logit_bias *out)
{
    char *end, *last;
    errno = 0;
    const long id = strtol(text, &end, 10);
    if (end == text || text[0] < '0' || text[0] > '9' || errno || id > INT32_MAX || (*end != '+' && *end != '-'))
        return false;
    const char *number = end + 1;
    double v;
    if (strcmp(number, "inf") == 0) {
        v = INFINITY;
    } else {
        if (!*number || strspn(number, ".0123456789eE-") != strlen(number) || *number == '-')
            return false;
        v = strtod(number, &last);
        if (*last || !(v <= 1e6))
            return false;
    }
    v = *end == '-' ? -v : v;
    *out = (sotto_logit_bias){.token = (int32_t)id, .bias = (float)v};
    return v < INFINITY;
}

int cli_sampling_check(const cli_command *command, const cli_sampling_args *a)
{
    sotto_logit_bias bias;
    for (size_t i = 0; i < a->logit_bias.count; i++)
        if (!read_bias(a->logit_bias.item[i], &bias))
            return cli_usage(command,
                             "--logit-bias: \"%s\" is not a token's id with what is added, as 15043+1 or 15043-inf",
                             a->logit_bias.item[i]);
    for (size_t i = 0; i < a->stop.count; i++)
        if (!*a->stop.item[i])
            return cli_usage(command, "--stop: the text is empty");
    if ((a->grammar != NULL) + (a->grammar_file != NULL) + (a->json_schema != NULL) > 1)
        return cli_usage(command, "--grammar, --grammar-file and --json-schema exclude each other");
    return CLI_OK;
}

bool cli_is_grammar_text(const char *given)
{
    return strstr(given, "::=") || !given[strspn(given, " \t\r\n")];
}

static sotto_status read_grammar(const cli_sampling_args *a, sotto_grammar **out, sotto_error *err)
{
    const char *given = a->json_schema ? a->json_schema : a->grammar ? a->grammar : a->grammar_file;
    const char *blank = given + strspn(given, " \t\r\n");
    const bool is_text = a->json_schema ? *blank == '{' : a->grammar && cli_is_grammar_text(given);
    cli_text text = {0};
    if (is_text)
        cli_text_puts(&text, given);
    else if (!cli_read_file(given, &text, err)) {
        cli_text_free(&text);
        return err->code;
    }
    sotto_status status = SOTTO_E_MEMORY;
    if (text.failed)
        cli_fail(err, status, "out of memory");
    else if (a->json_schema)
        status = sotto_grammar_create_json_schema(text.data ? text.data : "", text.size, out, err);
    else
        status = sotto_grammar_create(text.data ? text.data : "", text.size, NULL, out, err);
    cli_text_free(&text);
    if (status != SOTTO_OK && !is_text) { /* the library does not know the file */
        char sentence[sizeof err->text];
        snprintf(sentence, sizeof sentence, "%s", err->text);
        cli_fail(err, status, "%.200s: %s", given, sentence);
    }
    /* what a file or a text says is no wrong argument of the command */
    return status == SOTTO_E_ARGUMENT ? SOTTO_E_FORMAT : status;
}

/* Another one each time. */
static uint64_t random_seed(void)
{
    uint64_t seed = 0;
    FILE *f = fopen("/dev/urandom", "rb");
    const bool read = f && fread(&seed, sizeof seed, 1, f) == 1;
    if (f)
        fclose(f);
    if (!read)
        seed = (uint64_t)time(NULL) * 1000003u + (uint64_t)getpid();
    return seed % 1000000000u; /* short enough to be typed again */
}

sotto_status cli_sampling_fill(const cli_sampling_args *a, const sotto_llama_model *model, cli_sampling *out,
                               sotto_error *err)
{
    *out = (cli_sampling){.seed = a->seed < 0 ? random_seed() : (uint64_t)a->seed};
    sotto_llama_model_info info;
    sotto_llama_model_get_info(model, &info);
    sotto_status status = SOTTO_OK;
    if (a->grammar || a->grammar_file || a->json_schema)
        status = read_grammar(a, &out->grammar, err);
    size_t n = 0, capacity = a->logit_bias.count;
    for (int32_t id = 0; a->ignore_eos && id < info.n_vocab; id++)
        capacity += sotto_llama_token_ends(model, id);
    out->bias = status == SOTTO_OK ? calloc(capacity + 1, sizeof *out->bias) : NULL;
    if (status == SOTTO_OK && !out->bias)
        cli_fail(err, status = SOTTO_E_MEMORY, "out of memory");
    if (status != SOTTO_OK)
        return status;
    for (; n < a->logit_bias.count; n++) {
        (void)read_bias(a->logit_bias.item[n], &out->bias[n]);
        if (out->bias[n].token >= info.n_vocab) {
            cli_fail(err, SOTTO_E_ARGUMENT, "--logit-bias: token %d is not one of the model's %d", out->bias[n].token,
                     info.n_vocab);
            return SOTTO_E_ARGUMENT;
        }
    }
    for (int32_t id = 0; a->ignore_eos && id < info.n_vocab; id++)
        if (sotto_llama_token_ends(model, id))
            out->bias[n++] = (sotto_logit_bias){.token = id, .bias = -INFINITY};
    sotto_sampler_options *o = &out->options;
    sotto_sampler_options_default(o);
    o->temperature = (float)a->temperature;
    o->top_k = (int)a->top_k;
    o->top_p = (float)a->top_p;
    o->min_p = (float)a->min_p;
    o->typical_p = (float)a->typical;
    o->penalty_last = (int)a->repeat_last;
    o->repeat_penalty = (float)a->repeat_penalty;
    o->frequency_penalty = (float)a->frequency_penalty;
    o->presence_penalty = (float)a->presence_penalty;
    o->mirostat = strcmp(a->mirostat, "2") == 0 ? 2 : 0;
    o->mirostat_tau = (float)a->mirostat_tau;
    o->mirostat_eta = (float)a->mirostat_eta;
    o->bias = out->bias;
    o->n_bias = (int)n;
    o->seed = out->seed;
    o->grammar = out->grammar;
    return SOTTO_OK;
}

void cli_sampling_free(cli_sampling *s)
{
    free(s->bias);
    sotto_grammar_free(s->grammar);
    *s = (cli_sampling){0};
}
