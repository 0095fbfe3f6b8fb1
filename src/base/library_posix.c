/* library_posix.c: library.h over dlopen. */
#ifndef _WIN32
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/library.h"

#ifdef __APPLE__
#define VERSIONED "lib%s.%d.dylib"
#else
#define VERSIONED "lib%s.so.%d"
#endif

void *st_library_open(const char *const *names)
{
    void *library = NULL;
    for (; *names && !library; names++)
        library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    return library;
}

void *st_library_open_version(const char *stem, int version, const char *folder, char *name, size_t size)
{
    char path[1024];
    (void)snprintf(name, size, VERSIONED, stem, version);
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    const bool has_path = *folder && n > 0 && (size_t)n < sizeof path;
    return st_library_open((const char *const[]){name, has_path ? path : NULL, NULL});
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
