/* cmd_convert.c: any model file to ggml .bin or GGUF, in another type of numbers when asked. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "common/models.h"
#include "common/outfile.h"
#include "common/terminal.h"
#include "sotto/model.h"
#include "sotto/quant.h"

typedef struct convert_args {
    const char *type, *format;
    bool force, quiet;
} convert_args;

#define AT(field) offsetof(convert_args, field)
static const cli_option options[] = {
    {"type", "-t", CLI_CHOICE, AT(type), "TYPE", NULL, 0, 0, "f32 f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0",
     "type of the matrices; without it they stay as they are"},
    {"format", "-f", CLI_CHOICE, AT(format), "FORMAT", NULL, 0, 0, "ggml gguf",
     "instead of by OUT's ending (.gguf, else ggml)"},
    {"force", NULL, CLI_FLAG, AT(force), NULL, NULL, 0, 0, NULL,
     "write over an existing file, and convert what is quantised already"},
    {"quiet", "-q", CLI_FLAG, AT(quiet), NULL, NULL, 0, 0, NULL, "nothing on stderr but errors"},
    {0}};

static bool is_quantised(const sotto_model_file *f)
{
    sotto_model_tensor t;
    for (int64_t i = 0; i < sotto_model_tensor_count(f); i++)
        if (sotto_model_tensor_get(f, i, &t) == SOTTO_OK && sotto_dtype_block(t.dtype) > 1)
            return true;
    return false;
}

static void on_progress(void *user, int64_t done, int64_t total)
{
    cli_progress_update(user, (double)done, (double)total, "tensors");
}

static bool on_abort(void *user)
{
    (void)user;
    return cli_interrupted();
}

static int convert_file(const sotto_model_file *f, const char *out, const convert_args *a)
{
    if (cli_is_file(out) && !a->force) {
        cli_say(NULL, "%s exists; --force writes over it", out);
        return CLI_FAILED;
    }
    cli_progress progress = cli_progress_start(out, a->quiet, false);
    cli_log log = {.quiet = a->quiet, .progress = &progress};
    const sotto_convert_options o = {.format = a->format,
                                     .dtype = a->type,
                                     .requantize = a->force,
                                     .progress = on_progress,
                                     .progress_user = &progress,
                                     .abort = on_abort,
                                     .logger = cli_logger(&log)};
    sotto_error err = {0};
    const sotto_status status = sotto_model_convert(f, out, &o, &err);
    cli_progress_clear(&progress);
    if (status == SOTTO_E_ABORTED)
        cli_say(NULL, "interrupted: %s was not written", out);
    else if (status != SOTTO_OK)
        cli_say(NULL, "%s", err.text);
    else if (!a->quiet)
        cli_say(NULL, "wrote %s", out);
    return status == SOTTO_OK ? CLI_OK : CLI_FAILED;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names in a folder, sorted, without hidden ones. */
static char **list_folder(const char *folder, size_t *n)
{
    DIR *d = opendir(folder);
    char **names = NULL;
    *n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        char **grown = realloc(names, (*n + 1) * sizeof *names);
        char *copy = cli_path_join(NULL, e->d_name);
        if (grown)
            names = grown;
        if (!grown || !copy) {
            free(copy);
            break;
        }
        names[(*n)++] = copy;
    }
    if (d)
        closedir(d);
    if (*n)
        qsort(names, *n, sizeof *names, by_name);
    return names;
}

/* Every model in the folder to OUT/<name>.<ending>; what is no model or is quantised already is passed over. */
static int convert_folder(const char *in, const char *out, const convert_args *a)
{
    sotto_error err = {0};
    if (!cli_make_folders(out, &err)) {
        cli_say(NULL, "%s", err.text);
        return CLI_FAILED;
    }
    size_t n, done = 0;
    int status = CLI_OK;
    char **names = list_folder(in, &n);
    for (size_t i = 0; i < n; i++) {
        sotto_model_file *f = NULL;
        char *path = cli_interrupted() ? NULL : cli_path_join(in, names[i]);
        if (path && sotto_model_file_open(path, &f, &err) != SOTTO_OK) {
            if (!a->quiet)
                cli_say(NULL, "passed over %s", err.text);
        } else if (path && is_quantised(f) && !a->force) {
            if (!a->quiet)
                cli_say(NULL, "passed over %s: quantised already", path);
        } else if (path) {
            /* "base.en" is a name, ".bin" an ending. */
            const bool ends = strstr(names[i], ".bin") || strstr(names[i], ".gguf") || strstr(names[i], ".safetensors");
            char *stem = ends ? cli_path_stem(names[i]) : cli_path_join(NULL, names[i]);
            char *name = stem ? malloc(strlen(stem) + 16) : NULL;
            if (name)
                sprintf(name, "%s.%s", stem, a->format && strcmp(a->format, "gguf") == 0 ? "gguf" : "bin");
            char *target = name ? cli_path_join(out, name) : NULL;
            if (!target || convert_file(f, target, a) != CLI_OK)
                status = CLI_FAILED;
            else
                done++;
            free(stem);
            free(name);
            free(target);
        }
        sotto_model_file_free(f);
        free(path);
        free(names[i]);
    }
    free(names);
    if (done == 0 && status == CLI_OK && !cli_interrupted()) {
        cli_say(NULL, "%s: no model to convert", in);
        return CLI_FAILED;
    }
    return status;
}

static int run(void *args, const cli_list *inputs)
{
    const convert_args *a = args;
    sotto_error err = {0};
    sotto_model_file *f = NULL;
    char *path = cli_model_path(inputs->item[0], NULL, &err);
    int status = CLI_FAILED;
    cli_signals_install();
    if (strcmp(inputs->item[1], "-") == 0 || !*inputs->item[1]) {
        free(path);
        return cli_usage(&cmd_convert, "OUT is \"%s\", but a model goes to a file: name one (./- for a file called -)",
                         inputs->item[1]);
    }
    if (!path) {
        cli_say(NULL, "%s", err.text);
    } else if (sotto_model_file_open(path, &f, &err) == SOTTO_OK) {
        if (is_quantised(f) && a->type && !a->force)
            cli_say(NULL, "%s: is quantised already; --force converts it again, from its rounded numbers", path);
        else
            status = convert_file(f, inputs->item[1], a);
    } else if (cli_is_folder(path) && err.code == SOTTO_E_NOT_FOUND) {
        status = convert_folder(path, inputs->item[1], a);
    } else {
        cli_say(NULL, "%s", err.text);
    }
    sotto_model_file_free(f);
    free(path);
    return cli_interrupted() ? cli_interrupted_exit() : status;
}

const cli_command cmd_convert = {
    .name = "convert",
    .summary = "convert or quantise models",
    .inputs = "IN OUT",
    .min_inputs = 2,
    .max_inputs = 2,
    .options = options,
    .args_size = sizeof(convert_args),
    .run = run,
    .details =
        "IN is a model (a name or a path; any format that sotto reads) and OUT a file; or both are folders, and every "
        "model "
        "in IN is converted. Matrices whose width does not fit the type, convolutions and vectors keep f16 or f32.",
    .examples = "sotto convert base base-q5_0.bin --type q5_0\ta file for whisper.cpp\n"
                "sotto convert models/small small.gguf\ta GGUF file\n"};
