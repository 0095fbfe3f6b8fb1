/* file_posix.c: mapping and temporary files through POSIX calls.
 * A mapped file that another program cuts short faults when read: that is the price of mapping, as everywhere. */
#ifndef _WIN32
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file_impl.h"
#include "base/status.h"

enum { MAX_ATTEMPTS = 1000 };

char *st_os_errno_text(int code, char *out, size_t size)
{
    if (strerror_r(code, out, size) != 0)
        snprintf(out, size, "error %d", code);
    return out;
}

static sotto_status fail_errno(sotto_error *err, const char *path, const char *what, int code)
{
    char reason[128];
    return st_fail(err, code == ENOENT || code == ENOTDIR ? SOTTO_E_NOT_FOUND : SOTTO_E_IO, "%s: cannot %s: %s", path,
                   what, st_os_errno_text(code, reason, sizeof reason));
}

/* Also for file systems that cannot map. */
static sotto_status read_whole(int fd, const char *path, size_t size, st_file_map *out, sotto_error *err)
{
    uint8_t *const data = st_alloc(size, 1);
    if (!data)
        return st_fail_memory(err, size, path);
    for (size_t at = 0; at < size;) {
        const ssize_t got = read(fd, data + at, size - at < (1u << 30) ? size - at : 1u << 30);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            const int code = errno;
            st_free(data);
            if (got < 0)
                return fail_errno(err, path, "read", code);
            return st_fail(err, SOTTO_E_IO, "%s: ended after %zu of %zu bytes", path, at, size);
        }
        at += (size_t)got;
    }
    *out = (st_file_map){.data = data, .size = size, .impl = data};
    return SOTTO_OK;
}

static sotto_status map_fd(int fd, const char *path, bool copy, st_file_map *out, sotto_error *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return fail_errno(err, path, "read", errno);
    if (S_ISDIR(info.st_mode))
        return st_fail(err, SOTTO_E_IO, "%s: is a folder, expected a file", path);
    if (!S_ISREG(info.st_mode))
        return st_fail(err, SOTTO_E_IO, "%s: is a device or a pipe, expected a file", path);
    if ((uint64_t)info.st_size > SIZE_MAX / 2)
        return st_fail(err, SOTTO_E_MEMORY, "%s: %" PRIu64 " bytes do not fit into memory", path,
                       (uint64_t)info.st_size);
    const size_t size = (size_t)info.st_size;
    if (size == 0)
        return SOTTO_OK;
    if (copy)
        return read_whole(fd, path, size, out, err);
    void *const data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
        if (errno == ENOMEM)
            return st_fail_memory(err, size, path);
        return read_whole(fd, path, size, out, err);
    }
    madvise(data, size, MADV_SEQUENTIAL); /* weights are read once, mostly in the file's order */
    *out = (st_file_map){.data = data, .size = size, .impl = NULL};
    return SOTTO_OK;
}

static sotto_status open_map(const char *path, bool copy, st_file_map *out, sotto_error *err)
{
    *out = (st_file_map){0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a pipe without a writer must not block */
    if (fd < 0)
        return fail_errno(err, path, "open", errno);
    const sotto_status status = map_fd(fd, path, copy, out, err);
    close(fd);
    return status;
}

sotto_status st_file_map_open(const char *path, st_file_map *out, sotto_error *err)
{
    return open_map(path, false, out, err);
}

sotto_status st_file_map_read(const char *path, st_file_map *out, sotto_error *err)
{
    return open_map(path, true, out, err);
}

sotto_status st_file_map_lock(const st_file_map *map, const char *path, sotto_error *err)
{
    if (!map->data || mlock(map->data, map->size) == 0)
        return SOTTO_OK;
    char reason[128];
    return st_fail(err, SOTTO_E_MEMORY, "%s: cannot keep %zu bytes in memory: %s (see `ulimit -l`)", path, map->size,
                   st_os_errno_text(errno, reason, sizeof reason));
}

size_t st_file_map_pages(const st_file_map *map)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return map->impl || !map->data ? 0 : (map->size + page - 1) / page * page;
}

void st_file_map_unlock(const st_file_map *map)
{
    if (map->data)
        munlock(map->data, map->size);
}

void st_file_map_keep(const st_file_map *map, size_t offset, size_t size, bool lock)
{
    if (map->impl || !map->data || offset > map->size)
        return;
    if (size > map->size - offset)
        size = map->size - offset;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), begin = offset / page * page;
    void *const first = (void *)(uintptr_t)(map->data + begin);
    madvise(first, offset + size - begin, MADV_NORMAL);
    madvise(first, offset + size - begin, MADV_WILLNEED);
    if (lock)
        mlock(first, offset + size - begin);
}

void st_file_map_close(st_file_map *map)
{
    if (map->impl) {
        munlock(map->impl, map->size); /* memory that is freed may be given out again */
        st_free(map->impl);
    } else if (map->data)
        munmap((void *)(uintptr_t)map->data, map->size);
    *map = (st_file_map){0};
}

void st_file_map_release(const st_file_map *map, size_t offset, size_t size)
{
    if (map->impl || !map->data || offset > map->size)
        return;
    if (size > map->size - offset)
        size = map->size - offset;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t begin = (offset + page - 1) / page * page;
    const bool to_end = offset + size == map->size; /* the rest of the last page holds nothing of the file */
    const size_t end = to_end ? (map->size + page - 1) / page * page : (offset + size) / page * page;
    if (begin < end)
        madvise((void *)(uintptr_t)(map->data + begin), end - begin, MADV_DONTNEED);
}

st_path_kind st_path_kind_of(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return ST_PATH_NONE;
    return S_ISREG(info.st_mode) ? ST_PATH_FILE : S_ISDIR(info.st_mode) ? ST_PATH_FOLDER : ST_PATH_OTHER;
}

bool st_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The path behind links, so that a link stays and what it points to is replaced. Allocated with st_alloc. */
static char *resolve(const char *path)
{
    struct stat info;
    if (lstat(path, &info) != 0 || !S_ISLNK(info.st_mode))
        return st_strdup(path);
    char *const real = realpath(path, NULL);
    char *const copy = st_strdup(real ? real : path);
    free(real);
    return copy;
}

/* Makes target's folder + ".sotto-<process>-<number>.tmp", a name short enough wherever target's own is. */
static int create_temporary(const char *target, char **name)
{
    const char *const slash = strrchr(target, '/');
    const int folder = slash ? (int)(slash + 1 - target) : 0;
    const size_t size = (size_t)folder + 64;
    char *const path = st_alloc(size, 1);
    int fd = -1;
    if (!path) {
        errno = ENOMEM;
        return -1;
    }
    for (int i = 0; i < MAX_ATTEMPTS && fd < 0; i++) {
        snprintf(path, size, "%.*s.sotto-%ld-%d.tmp", folder, target, (long)getpid(), i);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    if (fd < 0) {
        const int code = errno;
        st_free(path);
        errno = code;
        return -1;
    }
    *name = path;
    return fd;
}

sotto_status st_os_temp_open(const char *path, st_temp_file *out, sotto_error *err)
{
    *out = (st_temp_file){0};
    const st_path_kind kind = st_path_kind_of(path);
    if (kind == ST_PATH_FOLDER)
        return st_fail(err, SOTTO_E_IO, "%s: is a folder, expected the name of a file to write", path);
    st_temp_file t = {.target = resolve(path)};
    if (!t.target)
        return st_fail_memory(err, strlen(path) + 1, "a path");
    const int fd =
        kind == ST_PATH_OTHER ? open(t.target, O_WRONLY | O_CLOEXEC) : create_temporary(t.target, &t.temporary);
    int code = errno;
    if (fd >= 0) {
        t.stream = fdopen(fd, "wb");
        code = errno;
    }
    if (!t.stream) {
        if (fd >= 0)
            close(fd);
        if (t.temporary)
            st_os_remove(t.temporary);
        st_free(t.temporary);
        st_free(t.target);
        return code == ENOMEM ? st_fail_memory(err, sizeof t, path) : fail_errno(err, path, "write", code);
    }
    *out = t;
    return SOTTO_OK;
}

bool st_os_sync(FILE *stream)
{
    /* EINVAL and ENOTSUP: a file system without such a thing */
    return fsync(fileno(stream)) == 0 || errno == EINVAL || errno == ENOTSUP;
}

/* The new name itself survives a power cut only once its folder is on the disk; a failure here loses nothing now. */
static void sync_folder(const char *target)
{
    const char *const slash = strrchr(target, '/');
    char *const folder = st_strdup(slash ? target : ".");
    if (!folder)
        return;
    if (slash)
        folder[slash == target ? 1 : slash - target] = 0;
    const int fd = open(folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    st_free(folder);
}

sotto_status st_os_temp_rename(const st_temp_file *t, sotto_error *err)
{
    if (rename(t->temporary, t->target) != 0)
        return fail_errno(err, t->target, "write", errno);
    sync_folder(t->target);
    return SOTTO_OK;
}

void st_os_remove(const char *path)
{
    unlink(path);
}
#else
typedef int st_file_posix_unused;
#endif
