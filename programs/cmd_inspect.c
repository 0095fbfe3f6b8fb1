/* cmd_inspect.c: what a model file holds. */
#include <string.h>

#include "commands.h"
#include "common/models.h"
#include "common/terminal.h"
#include "common/text.h"
#include "sotto/llama.h"
#include "sotto/model.h"

#include <stdlib.h>

enum { ITEMS_SHOWN = 6, BYTES_SHOWN = 100 };

typedef struct inspect_args {
    bool json, no_tensors;
} inspect_args;

static const cli_option options[] = {
    {"json", NULL, CLI_FLAG, offsetof(inspect_args, json), NULL, NULL, 0, 0, NULL, "as JSON (arrays in full)"},
    {"no-tensors", NULL, CLI_FLAG, offsetof(inspect_args, no_tensors), NULL, NULL, 0, 0, NULL, "metadata only"},
    {0}};

static void add_string(cli_text *t, const char *s, size_t n, bool all)
{
    const bool cut = !all && n > BYTES_SHOWN;
    cli_text_json(t, s, cut ? BYTES_SHOWN : n);
    if (cut)
        cli_text_printf(t, "... (%zu bytes)", n);
}

/* Item i of the value, as JSON. Kinds that disagree with the file's own table give null. */
static void add_item(cli_text *t, const sotto_model_file *f, const sotto_meta *m, int64_t i, bool all)
{
    int64_t whole = 0, count;
    double real = 0;
    const int64_t *whole_array;
    const float *real_array;
    const char *s;
    size_t n;
    sotto_status status = SOTTO_E_FORMAT;
    switch (m->kind) {
    case SOTTO_META_INT:
        status = sotto_meta_int(f, m->key, &whole, NULL);
        break;
    case SOTTO_META_FLOAT:
        status = sotto_meta_float(f, m->key, &real, NULL);
        break;
    case SOTTO_META_INTS:
        status = sotto_meta_ints(f, m->key, &whole_array, &count, NULL);
        whole = status == SOTTO_OK && i < count ? whole_array[i] : 0;
        break;
    case SOTTO_META_FLOATS:
        status = sotto_meta_floats(f, m->key, &real_array, &count, NULL);
        real = status == SOTTO_OK && i < count ? (double)real_array[i] : 0;
        break;
    case SOTTO_META_STRING:
        status = sotto_meta_string(f, m->key, &s, &n, NULL);
        break;
    case SOTTO_META_STRINGS:
        status = sotto_meta_string_at(f, m->key, i, &s, &n, NULL);
        break;
    case SOTTO_META_NESTED:
        break;
    }
    if (status != SOTTO_OK)
        cli_text_puts(t, "null");
    else if (m->kind == SOTTO_META_INT || m->kind == SOTTO_META_INTS)
        cli_text_printf(t, "%lld", (long long)whole);
    else if (m->kind == SOTTO_META_FLOAT || m->kind == SOTTO_META_FLOATS)
        cli_text_json_number(t, real, 9);
    else
        add_string(t, s, n, all);
}

static void add_value(cli_text *t, const sotto_model_file *f, const sotto_meta *m, bool all)
{
    if (m->kind == SOTTO_META_INT || m->kind == SOTTO_META_FLOAT || m->kind == SOTTO_META_STRING) {
        add_item(t, f, m, 0, all);
        return;
    }
    if (m->kind == SOTTO_META_NESTED) {
        if (all)
            cli_text_puts(t, "null");
        else
            cli_text_printf(t, "an array of %s", cli_count(m->count, "array").text);
        return;
    }
    cli_text_puts(t, "[");
    for (int64_t i = 0; i < m->count && (all || i < ITEMS_SHOWN); i++) {
        cli_text_puts(t, i ? ", " : "");
        add_item(t, f, m, i, all);
    }
    cli_text_puts(t, "]");
    if (!all && m->count > ITEMS_SHOWN)
        cli_text_printf(t, " (the first of %lld)", (long long)m->count);
}

/* "[51865, 512]", outermost first. */
static void add_shape(cli_text *t, const sotto_model_tensor *tensor)
{
    cli_text_puts(t, "[");
    for (int d = tensor->n_dims; d-- > 0;)
        cli_text_printf(t, "%lld%s", (long long)tensor->dim[d], d ? ", " : "");
    cli_text_puts(t, "]");
}

static const char *type_name(sotto_dtype dtype)
{
    const char *name = sotto_model_dtype_name(dtype);
    return name ? name : "?";
}

/* The chat format that a model's template is, "unknown" for another template; NULL: it has none. */
static const char *chat_format(const sotto_model_file *f)
{
    static const char *const formats[] = {"chatml", "llama2", "llama3", "gemma", "mistral", "phi3", "zephyr"};
    const char *text;
    size_t n;
    if (sotto_meta_string(f, "tokenizer.chat_template", &text, &n, NULL) != SOTTO_OK)
        return NULL;
    sotto_llama_model *model = NULL;
    sotto_llama_model_options o;
    sotto_llama_model_options_default(&o);
    o.backend.device = "reference"; /* nothing is computed */
    o.measure_only = true;
    sotto_llama_model_info info = {0};
    if (sotto_llama_model_load(f, &o, &model, NULL) == SOTTO_OK)
        sotto_llama_model_get_info(model, &info);
    const char *found = "unknown";
    for (size_t i = 0; info.chat_format && i < sizeof formats / sizeof *formats; i++)
        if (strcmp(info.chat_format, formats[i]) == 0)
            found = formats[i];
    sotto_llama_model_free(model);
    return found;
}

static void describe(cli_text *t, const sotto_model_file *f, const char *path, const inspect_args *a)
{
    uint64_t bytes = 0;
    int64_t parameters = 0;
    const int64_t n = sotto_model_tensor_count(f);
    sotto_model_tensor tensor;
    for (int64_t i = 0; i < n; i++)
        if (sotto_model_tensor_get(f, i, &tensor) == SOTTO_OK) {
            int64_t elements = 1;
            for (int d = 0; d < tensor.n_dims; d++)
                elements *= tensor.dim[d];
            bytes += tensor.bytes;
            parameters += elements;
        }
    const char *format = chat_format(f);
    if (a->json) {
        cli_text_puts(t, "{\n  \"path\": ");
        cli_text_json(t, path, strlen(path));
        cli_text_printf(
            t, ",\n  \"format\": \"%s\",\n  \"tensor_count\": %lld,\n  \"tensor_bytes\": %llu,\n  \"parameters\": %lld",
            sotto_model_file_format(f), (long long)n, (unsigned long long)bytes, (long long)parameters);
        if (format)
            cli_text_printf(t, ",\n  \"chat_format\": \"%s\"", format);
        cli_text_puts(t, ",\n  \"metadata\": {");
    } else {
        cli_text_puts(t, path);
        cli_text_printf(t, ": %s, %s, %.1f MB, %.1f M parameters%s%s\n", sotto_model_file_format(f),
                        cli_count(n, "tensor").text, (double)bytes / 1e6, (double)parameters / 1e6,
                        format ? ", chat format " : "", format ? format : "");
    }
    for (int64_t i = 0; i < sotto_meta_count(f); i++) {
        sotto_meta m;
        if (sotto_meta_get(f, i, &m) != SOTTO_OK)
            continue;
        if (a->json) {
            cli_text_puts(t, i ? ",\n    " : "\n    ");
            cli_text_json(t, m.key, strlen(m.key));
            cli_text_puts(t, ": ");
        } else {
            cli_text_printf(t, "  %s = ", m.key);
        }
        add_value(t, f, &m, a->json);
        cli_text_puts(t, a->json ? "" : "\n");
    }
    if (a->json)
        cli_text_puts(t, a->no_tensors ? "\n  }" : "\n  },\n  \"tensors\": [");
    for (int64_t i = 0; i < n && !a->no_tensors; i++) {
        if (sotto_model_tensor_get(f, i, &tensor) != SOTTO_OK)
            continue;
        if (a->json) {
            cli_text_puts(t, i ? ",\n    {\"name\": " : "\n    {\"name\": ");
            cli_text_json(t, tensor.name, strlen(tensor.name));
            cli_text_printf(t, ", \"type\": \"%s\", \"shape\": ", type_name(tensor.dtype));
            add_shape(t, &tensor);
            cli_text_printf(t, ", \"bytes\": %zu}", tensor.bytes);
        } else {
            cli_text_printf(t, "  %-52s %-5s ", tensor.name, type_name(tensor.dtype));
            add_shape(t, &tensor);
            cli_text_puts(t, "\n");
        }
    }
    if (a->json)
        cli_text_puts(t, a->no_tensors ? "\n}\n" : "\n  ]\n}\n");
}

static int run(void *args, const cli_list *inputs)
{
    int status = CLI_OK;
    for (size_t i = 0; i < inputs->count; i++) {
        sotto_error err = {0};
        sotto_model_file *f = NULL;
        cli_text t = {0};
        char *path = cli_model_path(inputs->item[i], NULL, &err);
        if (path && sotto_model_file_open(path, &f, &err) == SOTTO_OK) {
            describe(&t, f, path, args);
            if (t.data && !t.failed)
                fwrite(t.data, 1, t.size, stdout);
            else
                status = CLI_FAILED;
        } else {
            cli_say(NULL, "%s", err.text);
            status = CLI_FAILED;
        }
        cli_text_free(&t);
        sotto_model_file_free(f);
        free(path);
    }
    return status;
}

const cli_command cmd_inspect = {.name = "inspect",
                                 .summary = "print the metadata and tensors of a model file",
                                 .inputs = "MODEL...",
                                 .min_inputs = 1,
                                 .max_inputs = -1,
                                 .options = options,
                                 .args_size = sizeof(inspect_args),
                                 .run = run,
                                 .details = "MODEL is a name or a path, as for transcribe -m: ggml .bin, GGUF, a "
                                            "CTranslate2 folder, a Hugging Face folder.",
                                 .examples = "sotto inspect base\tmetadata and tensors\nsotto inspect --json "
                                             "ggml-small.bin | jq .metadata\tfor a program\n"};
