#include "common/device.h"

#include <string.h>

#include "sotto/backend.h"

int cli_check_device(const cli_command *command, const char *id)
{
    if (!*id || strcmp(id, "auto") == 0)
        return CLI_OK;
    char known[512] = "auto";
    for (int i = 0; i < sotto_device_count(); i++) {
        sotto_device_info info;
        sotto_error err;
        if (sotto_device_get(i, &info, &err) != SOTTO_OK)
            continue;
        if (strcmp(id, info.id) == 0)
            return CLI_OK;
        const size_t at = strlen(known);
        snprintf(known + at, sizeof known - at, " %s", info.id);
    }
    return cli_usage(command, "--device: \"%s\" is not one of: %s", id, known);
}
