/* library.h: shared libraries opened at run time, such as a GPU's driver. */
#ifndef SOTTO_SRC_BASE_LIBRARY_H
#define SOTTO_SRC_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* The first of `names` (NULL ends the list) that can be opened, or NULL. Never closed: drivers leave threads behind. */
void *st_library_open(const char *const *names);
/* The library `stem` of that major version under the system's name for it, which `name` tells (libavutil.so.57): from where
 * the loader looks, else from `folder` (may be ""). NULL when neither has it. Never closed. */
void *st_library_open_version(const char *stem, int version, const char *folder, char *name, size_t size);
/* Sets the function pointer that `function` points to. False, and the pointer NULL, when the library has no such symbol. */
bool st_library_function(void *library, const char *name, void *function);

/* A function of a library and where in a struct of pointers it goes. */
typedef struct st_library_symbol {
    const char *name;
    size_t field;
    bool optional;
} st_library_symbol;

/* Fills `functions` by the table. The name of the first that is missing and not optional, or NULL: all are there. */
static inline const char *st_library_functions(void *library, const st_library_symbol *table, size_t n, void *functions)
{
    for (size_t i = 0; i < n; i++)
        if (!st_library_function(library, table[i].name, (char *)functions + table[i].field) && !table[i].optional)
            return table[i].name;
    return NULL;
}

#endif
