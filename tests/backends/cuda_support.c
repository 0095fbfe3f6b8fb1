#include "backends/cuda_support.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

cuda_mock *cuda_mock_open(void)
{
    /* The library opens libcuda.so.1 by this name, which is then loaded already. */
    void *const library = dlopen(SOTTO_BUILD_DIR "/cuda_mock/libcuda.so.1", RTLD_NOW);
    if (!library)
        print_message("%s\n", dlerror());
    return library ? dlsym(library, "cuda_mock_state") : NULL;
}
