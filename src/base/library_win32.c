/* library_win32.c: library.h over LoadLibrary. */
#ifdef _WIN32
#include <stdio.h>
#include <string.h>
#include <windows.h>

#include "base/library.h"

void *st_library_open(const char *const *names)
{
    HMODULE library = NULL;
    for (; *names && !library;
         names++) /* drivers install themselves there; a DLL in the current folder is none of theirs */
        library = LoadLibraryExA(*names, NULL, LOAD_LIBRARY_SEARCH_SYSTEM32 | LOAD_LIBRARY_SEARCH_APPLICATION_DIR);
    return (void *)library;
}

/* A DLL lies beside the program; the folder seen when it was built says nothing here. */
void *st_library_open_version(const char *stem, int version, const char *folder, char *name, size_t size)
{
    (void)folder;
    (void)snprintf(name, size, "%s-%d.dll", stem, version);
    return st_library_open((const char *const[]){name, NULL});
}

bool st_library_function(void *library, const char *name, void *function)
{
    const FARPROC symbol = GetProcAddress((HMODULE)library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}
#else
typedef int st_library_win32_unused;
#endif
