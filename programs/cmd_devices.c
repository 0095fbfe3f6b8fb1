/* cmd_devices.c: where computations may run. */
#include "commands.h"
#include "common/terminal.h"
#include "common/text.h"
#include "sotto/backend.h"

#include <string.h>

typedef struct devices_args {
    bool json, ops, trial;
} devices_args;

static const cli_option options[] = {
    {"ops", NULL, CLI_FLAG, offsetof(devices_args, ops), NULL, NULL, 0, 0, NULL,
     "operations and types of number that each device has; what it lacks is computed elsewhere"},
    {"try", NULL, CLI_FLAG, offsetof(devices_args, trial), NULL, NULL, 0, 0, NULL,
     "try each accelerator with every operation and type of number that it has; the first time kernels are compiled"},
    {"json", NULL, CLI_FLAG, offsetof(devices_args, json), NULL, NULL, 0, 0, NULL, "as JSON"},
    {0}};

static const char *kind_name(sotto_device_kind kind)
{
    static const char *const names[] = {"cpu", "gpu", "reference", "simulator"};
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

/* One operation of all devices: collected type by type, told when the next one begins. */
typedef struct ops_table {
    cli_text *out;
    bool json;
    const char *op; /* of the line that is being written */
    bool any;
} ops_table;

static void add_op(void *user, const char *op, sotto_dtype dtype, bool has)
{
    ops_table *t = user;
    const bool next = !t->op || strcmp(t->op, op) != 0;
    if (next && t->json)
        cli_text_printf(t->out, "%s\"%s\": [", t->op ? "], " : "", op);
    else if (next)
        cli_text_printf(t->out, "%s  %-16s", t->op ? "\n" : "", op);
    t->any = !next && t->any;
    t->op = op;
    if (has && t->json)
        cli_text_printf(t->out, "%s\"%s\"", t->any ? ", " : "", sotto_dtype_name(dtype));
    else if (!t->json)
        cli_text_printf(t->out, " %-5s", has ? sotto_dtype_name(dtype) : "-");
    t->any = t->any || has;
}

static bool add_ops(cli_text *out, int device, bool json)
{
    ops_table t = {.out = out, .json = json};
    sotto_error err;
    if (json)
        cli_text_puts(out, ", \"ops\": {");
    if (sotto_device_ops(device, add_op, &t, &err) != SOTTO_OK) {
        cli_say(NULL, "%s", err.text);
        cli_text_puts(out, !json ? "" : t.op ? "]}" : "}"); /* what there is stays JSON */
        return false;
    }
    cli_text_puts(out, json ? "]}" : "\n");
    return true;
}

/* Opening tries all that there is. False: the device does not work. */
static bool try_device(cli_text *out, const sotto_device_info *d, bool json)
{
    cli_log log = {0};
    sotto_error err = {0};
    sotto_backend *backend = NULL;
    const sotto_backend_options o = {.device = d->id, .logger = cli_logger(&log)};
    if (d->kind != SOTTO_DEVICE_GPU && d->kind != SOTTO_DEVICE_SIMULATOR)
        return true;
    const bool works = sotto_backend_open(&o, &backend, &err) == SOTTO_OK;
    sotto_backend_free(backend);
    if (json && works)
        cli_text_puts(out, ", \"works\": true");
    else if (json) {
        cli_text_puts(out, ", \"works\": false, \"failure\": ");
        cli_text_json(out, err.text, strlen(err.text));
    } else
        cli_text_printf(out, "  %s\n", works ? "works" : err.text);
    return works;
}

static void add_flag(cli_text *t, const char *name, bool value)
{
    cli_text_printf(t, ", \"%s\": %s", name, value ? "true" : "false");
}

static void add_bytes(cli_text *t, const char *name, uint64_t bytes)
{
    if (bytes)
        cli_text_printf(t, ", \"%s\": %llu", name, (unsigned long long)bytes);
    else
        cli_text_printf(t, ", \"%s\": null", name);
}

static void add_json(cli_text *t, const sotto_device_info *d, bool first)
{
    cli_text_puts(t, first ? "\n  {\"id\": " : ",\n  {\"id\": ");
    cli_text_json(t, d->id, strlen(d->id));
    cli_text_puts(t, ", \"name\": ");
    cli_text_json(t, d->name, strlen(d->name));
    cli_text_printf(t, ", \"kind\": \"%s\", \"features\": ", kind_name(d->kind));
    cli_text_json(t, d->features, strlen(d->features));
    add_bytes(t, "memory_total", d->memory_total);
    add_bytes(t, "memory_free", d->memory_free);
    add_bytes(t, "max_buffer", d->max_buffer);
    cli_text_printf(t, ", \"api_version\": %u", (unsigned)d->api_version);
    add_flag(t, "asynchronous", d->asynchronous);
    add_flag(t, "events", d->events);
    add_flag(t, "unified", d->unified);
    add_flag(t, "reads_in_place", d->wraps_host_memory);
    add_flag(t, "f16", d->f16);
    add_flag(t, "matrix_units", d->matrix_units);
}

static void show(cli_text *t)
{
    cli_signals_end_at_once(false);
    if (t->data)
        fputs(t->data, stdout);
    fflush(stdout);
    cli_signals_end_at_once(true);
    cli_text_free(t);
    *t = (cli_text){0};
}

static int run(void *args, const cli_list *inputs)
{
    const devices_args *a = args;
    (void)inputs;
    cli_text t = {0};
    cli_signals_end_at_once(true); /* a driver at work asks nobody; what is printed below is whole */
    cli_signals_install();
    if (a->json)
        cli_text_puts(&t, "[");
    bool good = true;
    for (int i = 0; i < sotto_device_count(); i++) { /* one that fails hides no other */
        sotto_device_info d;
        sotto_error err;
        if (sotto_device_get(i, &d, &err) != SOTTO_OK) {
            cli_say(NULL, "%s", err.text);
            cli_text_free(&t);
            return CLI_FAILED;
        }
        if (a->json) {
            add_json(&t, &d, i == 0);
            good = (!a->trial || try_device(&t, &d, true)) && good;
            good = (!a->ops || add_ops(&t, i, true)) && good;
            cli_text_puts(&t, "}");
        } else {
            cli_text_printf(&t, "%-12s %-10s %s", d.id, kind_name(d.kind), d.name);
            if (d.memory_total)
                cli_text_printf(&t, ", %.1f GB", (double)d.memory_total / 1e9);
            if (d.memory_free)
                cli_text_printf(&t, ", %.1f GB free", (double)d.memory_free / 1e9);
            if (d.max_buffer)
                cli_text_printf(&t, ", buffers up to %.*f GB", d.max_buffer < 100000000 ? 3 : 1,
                                (double)d.max_buffer / 1e9);
            cli_text_printf(&t, "%s%s%s\n", d.features[0] ? " (" : "", d.features, d.features[0] ? ")" : "");
            good = (!a->trial || try_device(&t, &d, false)) && good;
            good = (!a->ops || add_ops(&t, i, false)) && good;
            show(&t);
        }
    }
    if (a->json)
        cli_text_puts(&t, "\n]\n");
    show(&t);
    return cli_interrupted() ? cli_interrupted_exit() : good ? CLI_OK : CLI_FAILED;
}

const cli_command cmd_devices = {.name = "devices",
                                 .summary = "list what can compute",
                                 .max_inputs = 0,
                                 .options = options,
                                 .args_size = sizeof(devices_args),
                                 .run = run,
                                 .examples = "sotto devices\tids for --device\n"
                                             "sotto devices --ops\twhat each of them computes by itself\n"
                                             "sotto devices --try\twhether it does\n"};
