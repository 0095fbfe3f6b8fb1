/* Lists the devices and opens the first GPU: what metal.py links for macOS. */
#include <stdio.h>

#include "sotto/backend.h"

int main(void)
{
    const int n = sotto_device_count();
    for (int i = 0; i < n; i++) {
        sotto_device_info info;
        if (sotto_device_get(i, &info, NULL) == SOTTO_OK)
            printf("%s %s %s\n", info.id, info.name, info.features);
    }
    sotto_error err = {0};
    sotto_backend *backend = NULL;
    const sotto_backend_options options = {.device = "metal:0"};
    if (sotto_backend_open(&options, &backend, &err) != SOTTO_OK)
        printf("%s\n", err.text);
    sotto_backend_free(backend);
    return 0;
}
