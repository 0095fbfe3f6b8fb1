/* cmd_devices.c: where computations may run. */
#include "commands.h"
#include "common/terminal.h"
#include "common/text.h"
#include "sotto/backend.h"

#include <string.h>

typedef struct devices_args {
    bool json;
} devices_args;

static const cli_option options[] = {
    {"json", NULL, CLI_FLAG, offsetof(devices_args, json), NULL, NULL, 0, 0, NULL, "as JSON"}, {0}};

static const char *kind_name(sotto_device_kind kind)
{
    static const char *const names[] = {"cpu", "gpu", "reference"};
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

static void add_json(cli_text *t, const sotto_device_info *d, bool first)
{
    cli_text_puts(t, first ? "\n  {\"id\": " : ",\n  {\"id\": ");
    cli_text_json(t, d->id, strlen(d->id));
    cli_text_puts(t, ", \"name\": ");
    cli_text_json(t, d->name, strlen(d->name));
    cli_text_printf(t, ", \"kind\": \"%s\", \"features\": ", kind_name(d->kind));
    cli_text_json(t, d->features, strlen(d->features));
    cli_text_printf(t, ", \"memory_total\": %llu, \"memory_free\": %llu}", (unsigned long long)d->memory_total,
                    (unsigned long long)d->memory_free);
}

static int run(void *args, const cli_list *inputs)
{
    const devices_args *a = args;
    (void)inputs;
    cli_text t = {0};
    if (a->json)
        cli_text_puts(&t, "[");
    for (int i = 0; i < sotto_device_count(); i++) {
        sotto_device_info d;
        sotto_error err;
        if (sotto_device_get(i, &d, &err) != SOTTO_OK) {
            cli_say(NULL, "%s", err.text);
            cli_text_free(&t);
            return CLI_FAILED;
        }
        if (a->json) {
            add_json(&t, &d, i == 0);
        } else {
            cli_text_printf(&t, "%-12s %-10s %s", d.id, kind_name(d.kind), d.name);
            if (d.memory_total)
                cli_text_printf(&t, ", %.1f GB", (double)d.memory_total / 1e9);
            cli_text_printf(&t, "%s%s%s\n", d.features[0] ? " (" : "", d.features, d.features[0] ? ")" : "");
        }
    }
    if (a->json)
        cli_text_puts(&t, "\n]\n");
    if (t.data)
        fputs(t.data, stdout);
    cli_text_free(&t);
    return CLI_OK;
}

const cli_command cmd_devices = {.name = "devices",
                                 .summary = "list what can compute",
                                 .max_inputs = 0,
                                 .options = options,
                                 .args_size = sizeof(devices_args),
                                 .run = run,
                                 .examples = "sotto devices\tids for --device\n"};
