/* library_posix.c: library.h over dlopen. */
#ifndef _WIN32
#include <dlfcn.h>
#include <string.h>

#include "base/library.h"

void *st_library_open(const char *const *names)
{
    void *library = NULL;
    for (; *names && !library; names++)
        library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    return library;
}

bool st_library_function(void *library, const char *name, void *function)
{
    void *const symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol); /* ISO C has no cast from data to function pointers */
    return symbol != NULL;
}
#else
typedef int st_library_posix_unused;
#endif
