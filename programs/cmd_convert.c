/* cmd_convert.c: any model file to ggml .bin or GGUF, in another type of numbers when asked. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "common/models.h"
#include "common/outfile.h"
#include "common/terminal.h"
#include "sotto/model.h"
#include "sotto/quant.h"

typedef struct convert_args {
    const char *type, *format, *output_type, *embedding_type, *imatrix;
    bool pure, dry_run, force, quiet;
    int64_t threads;
    sotto_imatrix *importance; /* what `imatrix` names, opened */
} convert_args;

#define MATRIX_TYPES "f32 f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0 iq4_nl q2_k q3_k q4_k q5_k q6_k"

#define AT(field) offsetof(convert_args, field)
static const cli_option options[] = {
    {"type", "-t", CLI_CHOICE, AT(type), "TYPE", NULL, 0, 0,
     MATRIX_TYPES " q3_k_s q3_k_m q3_k_l q4_k_s q4_k_m q5_k_s q5_k_m",
     "type of the matrices; without it they stay as they are"},
    {"imatrix", NULL, CLI_TEXT, AT(imatrix), "FILE", NULL, 0, 0, NULL,
     "importance matrix of `sotto imatrix` or llama-imatrix (GGUF): what matters gets the smaller errors"},
    {"output-type", "--output-tensor-type", CLI_CHOICE, AT(output_type), "TYPE", NULL, 0, 0, MATRIX_TYPES,
     "of the output matrix instead"},
    {"token-embedding-type", NULL, CLI_CHOICE, AT(embedding_type), "TYPE", NULL, 0, 0, MATRIX_TYPES,
     "of the token embedding instead"},
    {"pure", NULL, CLI_FLAG, AT(pure), NULL, NULL, 0, 0, NULL, "no mix: every matrix in the type's main one"},
    {"dry-run", NULL, CLI_FLAG, AT(dry_run), NULL, NULL, 0, 0, NULL,
     "print the type and size that every tensor would get, write nothing"},
    {"threads", NULL, CLI_INT, AT(threads), "N", "0", 0, 512, NULL, "0 = one a core"},
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
        if (sotto_model_tensor_get(f, i, &t) == SOTTO_OK && sotto_dtype_block(t.dtype) != 1)
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

typedef struct sizes {
    uint64_t before, after;
} sizes;

static void print_planned(void *user, const sotto_model_tensor *source, sotto_dtype to, size_t bytes)
{
    sizes *s = user;
    char shape[96] = "";
    for (int d = source->n_dims, n = 0; d-- > 0;)
        n += snprintf(shape + n, sizeof shape - (size_t)n, "%lld%s", (long long)source->dim[d], d ? ", " : "");
    printf("  %-52s %-7s -> %-7s [%s]\n", source->name, sotto_model_dtype_name(source->dtype),
           sotto_model_dtype_name(to), shape);
    s->before += source->bytes;
    s->after += bytes;
}

static bool ends_in(const char *text, const char *ending)
{
    const size_t n = strlen(text), n_ending = strlen(ending);
    return n >= n_ending && strcmp(text + n - n_ending, ending) == 0;
}

static bool is_language_model(const sotto_model_file *f)
{
    const char *arch;
    size_t n;
    return sotto_meta_string(f, "general.architecture", &arch, &n, NULL) == SOTTO_OK &&
           (n != 7 || memcmp(arch, "whisper", 7) != 0);
}

static int convert_file(const sotto_model_file *f, const char *out, const convert_args *a)
{
    if (cli_is_file(out) && !a->force && !a->dry_run) {
        cli_say(NULL, "%s exists; --force writes over it", out);
        return CLI_FAILED;
    }
    cli_progress progress = cli_progress_start(out, a->quiet, false);
    cli_log log = {.quiet = a->quiet, .progress = &progress};
    sizes planned = {0, 0};
    const sotto_convert_options o = {.format = a->format,
                                     .dtype = a->type,
                                     .output_dtype = a->output_type,
                                     .embedding_dtype = a->embedding_type,
                                     .pure = a->pure,
                                     .importance = a->importance,
                                     .requantize = a->force,
                                     .threads = (int)a->threads,
                                     .planned = a->dry_run ? print_planned : NULL,
                                     .planned_user = &planned,
                                     .dry_run = a->dry_run,
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
    else if (a->dry_run)
        printf("tensors of %.1f MB, now %.1f MB; nothing was written\n", (double)planned.after / 1e6,
               (double)planned.before / 1e6);
    else if (!a->quiet)
        cli_say(NULL, "wrote %s%s", out,
                is_language_model(f) && ends_in(out, ".bin")
                    ? ", which is GGUF all the same: models that write text are always"
                    : "");
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
                sprintf(name, "%s.%s", stem,
                        is_language_model(f) || (a->format && strcmp(a->format, "gguf") == 0) ? "gguf" : "bin");
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
    convert_args *a = args;
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
    if (!path || (a->imatrix && sotto_imatrix_load(a->imatrix, &a->importance, &err) != SOTTO_OK)) {
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
    sotto_imatrix_free(a->importance);
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
        "model in IN is converted. A GGUF model in parts is given by its first part, and written as one file. "
        "Convolutions and vectors keep f16 or f32; matrices whose width is no multiple of 256 get a type of blocks of "
        "32 "
        "instead of a K type, and f16 where that does not fit either.\n"
        "For models that write text (llama, qwen2, qwen3, gemma3, phi3; always GGUF) a type is the mix that "
        "llama-quantize "
        "calls so: q4_k_m has q4_k and, where it matters most, q6_k; q3_k, q4_k and q5_k mean q3_k_m, q4_k_m and "
        "q5_k_m.",
    .examples = "sotto convert base base-q5_0.bin --type q5_0\ta file for whisper.cpp\n"
                "sotto convert models/small small.gguf\ta GGUF file\n"
                "sotto convert model-f16.gguf model-q4_k_m.gguf --type q4_k_m --imatrix model.imatrix.gguf\t"
                "a language model, a third as large\n"};
