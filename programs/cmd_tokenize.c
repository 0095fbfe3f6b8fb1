/* cmd_tokenize.c: texts to token ids and back. No weight is read. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "common/llm.h"
#include "common/outfile.h"

typedef struct tokenize_args {
    cli_llm_args llm;
    const char *file, *prompt, *decode;
    bool ids, json, count, no_special, no_parse_special, special;
} tokenize_args;

#define AT(field) offsetof(tokenize_args, field)
static const cli_option options[] = {
    CLI_LLM_MODEL_OPTIONS(AT(llm)),
    {"prompt", "-p", CLI_TEXT, AT(prompt), "TEXT", NULL, 0, 0, NULL, "the text, as the argument"},
    {"file", "-f", CLI_TEXT, AT(file), "FILE", NULL, 0, 0, NULL, "every byte of a file; - = standard input"},
    {"ids", NULL, CLI_FLAG, AT(ids), NULL, NULL, 0, 0, NULL, "only the ids, as [1, 2, 3]"},
    {"json", NULL, CLI_FLAG, AT(json), NULL, NULL, 0, 0, NULL, "one JSON object: count, ids, tokens"},
    {"count", "--show-count", CLI_FLAG, AT(count), NULL, NULL, 0, 0, NULL, "only the number of tokens"},
    {"no-special", "--no-bos", CLI_FLAG, AT(no_special), NULL, NULL, 0, 0, NULL,
     "add no begin and end token, also where the model wants them"},
    {"parse-special", NULL, CLI_IGNORED, 0, NULL, NULL, 0, 0, NULL,
     "accepted: texts of control tokens are these tokens anyway"},
    {"no-parse-special", NULL, CLI_FLAG, AT(no_parse_special), NULL, NULL, 0, 0, NULL,
     "texts of control tokens are plain text"},
    {"decode", "-d", CLI_TEXT, AT(decode), "IDS", NULL, 0, 0, NULL,
     "the other way: the text of ids, as \"[1, 2, 3]\" or \"1 2 3\"; - reads them from standard input"},
    {"special", "-sp", CLI_FLAG, AT(special), NULL, NULL, 0, 0, NULL, "with --decode: show control tokens"},
    {0}};

/* Bytes for a person: characters as they are; what is none, or would break the line, as \n or \xE2. */
static void add_shown(cli_text *t, const char *s, size_t n)
{
    static const char escaped[] = "\n\r\t\\", letter[] = "nrt\\";
    for (size_t i = 0; i < n;) {
        size_t bad;
        const size_t length = cli_utf8_length(s + i, n - i, &bad);
        const char *e = s[i] ? strchr(escaped, s[i]) : NULL;
        if (e)
            cli_text_printf(t, "\\%c", letter[e - escaped]);
        else if (length == 0 || (unsigned char)s[i] < 0x20 || s[i] == 0x7F)
            cli_text_printf(t, "\\x%02X", (unsigned char)s[i]);
        else
            cli_text_add(t, s + i, length);
        i += length ? length : 1;
    }
}

static void add_ids(cli_text *t, const cli_ids *ids)
{
    cli_text_puts(t, "[");
    for (int64_t i = 0; i < ids->n; i++)
        cli_text_printf(t, "%s%d", i ? ", " : "", ids->id[i]);
    cli_text_puts(t, "]");
}

static bool is_utf8(const char *s, size_t n)
{
    size_t bad;
    for (size_t i = 0; i < n;) {
        const size_t length = cli_utf8_length(s + i, n - i, &bad);
        if (length == 0)
            return false;
        i += length;
    }
    return true;
}

static void describe(const tokenize_args *a, const sotto_llama_model *model, const cli_ids *ids, cli_text *t)
{
    size_t n;
    if (a->count) {
        cli_text_printf(t, a->json ? "{\"count\": %lld}\n" : "%lld\n", (long long)ids->n);
    } else if (a->ids && !a->json) {
        add_ids(t, ids);
        cli_text_puts(t, "\n");
    } else if (a->json) {
        cli_text_printf(t, "{\"count\": %lld, \"ids\": ", (long long)ids->n);
        add_ids(t, ids);
        cli_text_puts(t, ", \"tokens\": [");
        for (int64_t i = 0; i < ids->n; i++) {
            const char *s = sotto_llama_token_bytes(model, ids->id[i], true, &n);
            cli_text_printf(t, "%s\n  {\"id\": %d, \"text\": ", i ? "," : "", ids->id[i]);
            cli_text_json(t, s, n);
            if (!is_utf8(s, n)) { /* a part of a character */
                cli_text_puts(t, ", \"bytes\": [");
                for (size_t b = 0; b < n; b++)
                    cli_text_printf(t, "%s%u", b ? ", " : "", (unsigned)(unsigned char)s[b]);
                cli_text_puts(t, "]");
            }
            cli_text_puts(t, "}");
        }
        cli_text_puts(t, ids->n ? "\n]}\n" : "]}\n");
    } else {
        for (int64_t i = 0; i < ids->n; i++) {
            const char *s = sotto_llama_token_bytes(model, ids->id[i], true, &n);
            cli_text_printf(t, "%6d -> '", ids->id[i]);
            add_shown(t, s, n);
            cli_text_puts(t, "'\n");
        }
    }
}

/* What is wrong at a place of a list of ids. */
static bool bad_list(const char *text, size_t at, size_t n, const char *expected, sotto_error *err)
{
    if (at >= n)
        return cli_fail(err, SOTTO_E_ARGUMENT, "--decode: the list ends where %s is expected", expected);
    return cli_fail(err, SOTTO_E_ARGUMENT, "--decode: \"%.20s\" at character %zu, where %s is expected", text + at,
                    at + 1, expected);
}

/* One id. */
static bool parse_id(const char *text, size_t *at, size_t n, int64_t n_vocab, cli_ids *out, sotto_error *err)
{
    int64_t v = 0;
    const size_t start = *at;
    for (; *at < n && text[*at] >= '0' && text[*at] <= '9'; ++*at)
        v = v < n_vocab ? 10 * v + (text[*at] - '0') : v; /* what is too large stays so */
    if (*at == start)
        return bad_list(text, *at, n, "the id of a token", err);
    if (v >= n_vocab)
        return cli_fail(err, SOTTO_E_ARGUMENT, "--decode: token %.*s is not one of the model's %lld",
                        (int)(*at - start < 24 ? *at - start : 24), text + start, (long long)n_vocab);
    out->id[out->n++] = (int32_t)v;
    return true;
}

/* "[1, 2, 3]" or "[]"; without brackets "1 2 3" or "1, 2, 3", at least one. */
static bool parse_ids(const char *text, size_t n, int64_t n_vocab, cli_ids *out, sotto_error *err)
{
    static const char blank[] = " \t\r\n";
    out->id = malloc((n / 2 + 1) * sizeof *out->id);
    out->n = 0;
    if (!out->id)
        return cli_fail(err, SOTTO_E_MEMORY, "out of memory");
    size_t at = strspn(text, blank);
    const bool in_brackets = at < n && text[at] == '[';
    at += in_brackets;
    at += strspn(text + at, blank);
    bool over = in_brackets && text[at] == ']';
    while (!over) {
        if (!parse_id(text, &at, n, n_vocab, out, err))
            return false;
        const size_t gap = strspn(text + at, blank);
        at += gap;
        if (text[at] == ',')
            at += 1 + strspn(text + at + 1, blank);
        else if (in_brackets && text[at] != ']')
            return bad_list(text, at, n, ", or ]", err);
        else if (!in_brackets && gap == 0 && at < n)
            return bad_list(text, at, n, "a space or ,", err);
        else
            over = in_brackets || at >= n;
    }
    at += in_brackets;
    at += strspn(text + at, blank);
    return at >= n || bad_list(text, at, n, "the end", err);
}

static sotto_status decode(const tokenize_args *a, const sotto_llama_model *model, const cli_ids *ids, cli_text *out,
                           sotto_error *err)
{
    cli_text bytes = {0};
    for (int64_t i = 0; i < ids->n; i++) {
        size_t n;
        const char *s = sotto_llama_token_bytes(model, ids->id[i], a->special, &n);
        cli_text_add(&bytes, s, n);
    }
    cli_text text = {0};
    cli_text_utf8(&text, bytes.data ? bytes.data : "", bytes.size);
    if (a->json) {
        cli_text_puts(out, "{\"text\": ");
        cli_text_json(out, text.data ? text.data : "", text.size);
        cli_text_puts(out, "}\n");
    } else {
        cli_text_add(out, text.data ? text.data : "", text.size);
        cli_text_puts(out, "\n");
    }
    const bool failed = bytes.failed || text.failed || out->failed;
    cli_text_free(&bytes);
    cli_text_free(&text);
    if (failed)
        cli_fail(err, SOTTO_E_MEMORY, "out of memory");
    return failed ? SOTTO_E_MEMORY : SOTTO_OK;
}

static int check(const tokenize_args *a, const cli_list *inputs)
{
    const int sources = (inputs->count > 0) + (a->file != NULL) + (a->prompt != NULL) + (a->decode != NULL);
    if (sources > 1)
        return cli_usage(&cmd_tokenize, "TEXT, --prompt, --file and --decode exclude each other");
    if (a->file && !*a->file)
        return cli_usage(&cmd_tokenize, "--file: the name is empty");
    if (sources == 0 && isatty(STDIN_FILENO))
        return cli_usage(&cmd_tokenize, "TEXT is missing");
    if (a->special && !a->decode)
        return cli_usage(&cmd_tokenize, "--special goes with --decode: control tokens are shown anyway");
    if (a->decode && (a->ids || a->count))
        return cli_usage(&cmd_tokenize, "--decode and --%s exclude each other", a->ids ? "ids" : "count");
    return CLI_OK;
}

/* What is to be encoded or decoded. */
static bool read_source(const tokenize_args *a, const cli_list *inputs, cli_text *out, sotto_error *err)
{
    const char *text = a->decode ? a->decode : a->prompt ? a->prompt : inputs->count > 0 ? inputs->item[0] : NULL;
    if (a->file || !text || (a->decode && strcmp(text, "-") == 0))
        return cli_read_file(a->file ? a->file : "-", out, err);
    cli_text_puts(out, text);
    return !out->failed || cli_fail(err, SOTTO_E_MEMORY, "out of memory");
}

static int run(void *args, const cli_list *inputs)
{
    const tokenize_args *a = args;
    int code = check(a, inputs);
    if (code != CLI_OK)
        return code;
    sotto_error err = {0};
    cli_text source = {0}, out = {0};
    cli_ids ids = {0};
    cli_log log = {0};
    sotto_llama_model *model = NULL;
    sotto_status status = read_source(a, inputs, &source, &err) ? SOTTO_OK : err.code;
    if (status == SOTTO_OK)
        code = cli_llm_open(&a->llm, true, &log, &model);
    if (status == SOTTO_OK && code == CLI_OK) {
        const char *text = source.data ? source.data : "";
        sotto_llama_model_info info;
        sotto_llama_model_get_info(model, &info);
        if (a->decode) {
            status =
                parse_ids(text, source.size, info.n_vocab, &ids, &err) ? decode(a, model, &ids, &out, &err) : err.code;
        } else {
            const unsigned flags = (a->no_special ? 0u : SOTTO_TOKENIZE_ADD_SPECIAL) |
                                   (a->no_parse_special ? 0u : SOTTO_TOKENIZE_PARSE_SPECIAL);
            status = cli_llm_tokenize(model, text, source.size, flags, &ids, &err);
            if (status == SOTTO_OK)
                describe(a, model, &ids, &out);
            if (out.failed)
                cli_fail(&err, status = SOTTO_E_MEMORY, "out of memory");
        }
    }
    if (status != SOTTO_OK) {
        code = cli_llm_failed(status, &err);
    } else if (code == CLI_OK && out.data) {
        fwrite(out.data, 1, out.size, stdout);
    }
    free(ids.id);
    cli_text_free(&source);
    cli_text_free(&out);
    sotto_llama_model_free(model);
    return code;
}

const cli_command cmd_tokenize = {
    .name = "tokenize",
    .summary = "turn texts into token ids and back",
    .inputs = "[TEXT]",
    .max_inputs = 1,
    .options = options,
    .args_size = sizeof(tokenize_args),
    .run = run,
    .details =
        "Without TEXT, --file or --decode the text comes from standard input. Every byte counts, a line break at "
        "the end, too. Ids and defaults are those of llama-tokenize with --no-escape: begin and end tokens where "
        "the model wants them, texts of control tokens as these tokens.",
    .examples = "sotto tokenize -m smollm2-135m \"Hello, world\"\tids and texts\n"
                "sotto tokenize --ids -f story.txt\t[1, 2, 3]\n"
                "sotto tokenize --count < story.txt\thow many\n"
                "sotto tokenize --decode \"[19556, 28, 905]\"\tthe text of ids\n"};
