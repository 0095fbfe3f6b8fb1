/* outfile.c: atomic writing and small questions about paths. Contract: outfile.h. */
#include "outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool cli_fail(sotto_error *err, sotto_status code, const char *fmt, ...)
{
    if (err) {
        va_list args;
        va_start(args, fmt);
        err->code = code;
        vsnprintf(err->text, sizeof err->text, fmt, args);
        va_end(args);
    }
    return false;
}

char *cli_path_join(const char *folder, const char *name)
{
    const size_t n = folder ? strlen(folder) : 0, m = strlen(name);
    char *path = malloc(n + m + 2);
    if (!path)
        return NULL;
    const bool slash = n && folder[n - 1] != '/';
    if (n)
        memcpy(path, folder, n);
    if (slash)
        path[n] = '/';
    memcpy(path + n + slash, name, m + 1);
    return path;
}

char *cli_path_stem(const char *path)
{
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    const char *dot = strrchr(name, '.');
    const size_t n = dot && dot != name ? (size_t)(dot - name) : strlen(name);
    char *stem = malloc(n + 1);
    if (stem) {
        memcpy(stem, name, n);
        stem[n] = 0;
    }
    return stem;
}

bool cli_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool cli_is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool cli_make_folders(const char *path, sotto_error *err)
{
    char *copy = cli_path_join(NULL, path);
    if (!copy)
        return cli_fail(err, SOTTO_E_MEMORY, "out of memory");
    bool ok = true;
    for (char *p = copy + 1; ok; p++) {
        if (*p != '/' && *p != 0)
            continue;
        const char end = *p;
        *p = 0;
        if (mkdir(copy, 0777) != 0 && !cli_is_folder(copy))
            ok = cli_fail(err, SOTTO_E_IO, "cannot make the folder %s: %s", copy,
                          strerror(errno == EEXIST ? ENOTDIR : errno));
        *p = end;
        if (!end)
            break;
    }
    free(copy);
    return ok;
}

/* Everything into an opened file; closes it. errno says why not. */
static bool fill(FILE *f, const void *data, size_t n)
{
    const bool written = fwrite(data, 1, n, f) == n && fflush(f) == 0;
    const int why = errno;
    const bool closed = fclose(f) == 0;
    if (!written)
        errno = why;
    return written && closed;
}

/* A device or a pipe is written to, not replaced. */
static bool is_special(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

/* "path.PID.part" beside what a link points to; NULL without memory; free() it. */
static char *temporary_name(const char *target)
{
    const size_t size = strlen(target) + 32;
    char *name = malloc(size);
    if (name)
        snprintf(name, size, "%s.%ld.part", target, (long)getpid());
    return name;
}

bool cli_can_write(const char *path, sotto_error *err)
{
    if (cli_is_folder(path))
        return cli_fail(err, SOTTO_E_IO, "%s: is a folder", path);
    char *behind = realpath(path, NULL);
    const char *target = behind ? behind : path;
    char *temporary = temporary_name(target);
    bool ok = false;
    if (!temporary)
        errno = ENOMEM;
    else if (is_special(target)) {
        ok = access(target, W_OK) == 0;
    } else {
        const int f = open(temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
        ok = f >= 0;
        if (ok) {
            close(f);
            remove(temporary);
        }
    }
    if (!ok)
        cli_fail(err, SOTTO_E_IO, "cannot write %s: %s", path, strerror(errno));
    free(temporary);
    free(behind);
    return ok;
}

bool cli_write_file(const char *path, const void *data, size_t n, sotto_error *err)
{
    if (cli_is_folder(path))
        return cli_fail(err, SOTTO_E_IO, "%s: is a folder", path);
    char *behind = realpath(path, NULL); /* a link stays, and what it points to is replaced */
    const char *target = behind ? behind : path;
    char *temporary = temporary_name(target);
    FILE *f = NULL;
    bool ok = false;
    if (!temporary)
        errno = ENOMEM;
    else if (is_special(target)) {
        f = fopen(target, "wb");
        ok = f && fill(f, data, n);
    } else {
        f = fopen(temporary, "wb");
        ok = f && fill(f, data, n) && rename(temporary, target) == 0;
        const int why = errno;
        if (f && !ok)
            remove(temporary);
        errno = why;
    }
    if (!ok)
        cli_fail(err, SOTTO_E_IO, "cannot write %s: %s", path, strerror(errno));
    free(temporary);
    free(behind);
    return ok;
}
