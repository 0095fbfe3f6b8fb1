/* file_impl.h: what file.c needs of the system: file_posix.c or file_win32.c. */
#ifndef SOTTO_SRC_BASE_FILE_IMPL_H
#define SOTTO_SRC_BASE_FILE_IMPL_H

#include <stdio.h>

#include "base/file.h"

typedef struct st_temp_file {
    FILE *stream;
    char *target;    /* where it goes: the path, or what the link at the path points to */
    char *temporary; /* NULL when writing goes straight to target, which is a device or a pipe */
} st_temp_file;

/* A new file beside `path`, with the permissions that any new file gets. On failure nothing is left behind. */
sotto_status st_os_temp_open(const char *path, st_temp_file *out, sotto_error *err);
/* Everything written so far to the disk; false with the reason in errno. */
bool st_os_sync(FILE *stream);
/* Puts the closed file in the target's place. */
sotto_status st_os_temp_rename(const st_temp_file *t, sotto_error *err);
void st_os_remove(const char *path);
/* The system's sentence for an errno value. Returns out. */
char *st_os_errno_text(int code, char *out, size_t size);

#endif
