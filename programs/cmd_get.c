#include "commands.h"
static const cli_option options[] = {{0}};
static int run(void *args, const cli_list *inputs) { (void)args; (void)inputs; return 1; }
const cli_command cmd_get = {.name = "get", .summary = "fetch a model", .inputs = "NAME", .options = options, .run = run};
