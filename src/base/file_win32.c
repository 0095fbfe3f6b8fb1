/* file_win32.c: mapping and temporary files through the Windows API. Paths are UTF-8 outside and UTF-16 inside. */
#ifdef _WIN32
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <io.h>
#include <share.h>
#include <string.h>
#include <sys/stat.h>
#include <windows.h>

#include "base/alloc.h"
#include "base/file_impl.h"
#include "base/status.h"

enum { MAX_ATTEMPTS = 1000 };

/* Allocated with st_alloc; NULL when there is no memory or path is not UTF-8. */
static wchar_t *to_wide(const char *path)
{
    const int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0);
    wchar_t *const wide = n > 0 ? st_alloc((size_t)n, sizeof *wide) : NULL;
    if (wide)
        MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, n);
    return wide;
}

static sotto_status fail_path(sotto_error *err, const char *path)
{
    return st_fail(err, SOTTO_E_ARGUMENT, "%s: is no valid path", path);
}

static sotto_status fail_windows(sotto_error *err, const char *path, const char *what, DWORD code)
{
    wchar_t wide[256];
    char text[512];
    DWORD n = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL, code, 0, wide, 255, NULL);
    while (n > 0 && (wide[n - 1] == L'\n' || wide[n - 1] == L'\r' || wide[n - 1] == L'.'))
        n--;
    const int length = WideCharToMultiByte(CP_UTF8, 0, wide, (int)n, text, (int)sizeof text - 1, NULL, NULL);
    text[length > 0 ? length : 0] = 0;
    return st_fail(err, code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND ? SOTTO_E_NOT_FOUND : SOTTO_E_IO,
                   "%s: cannot %s: %s (Windows error %lu)", path, what, text, (unsigned long)code);
}

char *st_os_errno_text(int code, char *out, size_t size)
{
    if (strerror_s(out, size, code) != 0)
        snprintf(out, size, "error %d", code);
    return out;
}

static st_path_kind kind_of(const wchar_t *wide)
{
    const DWORD attributes = GetFileAttributesW(wide);
    if (attributes == INVALID_FILE_ATTRIBUTES)
        return ST_PATH_NONE;
    return attributes & FILE_ATTRIBUTE_DIRECTORY ? ST_PATH_FOLDER
           : attributes & FILE_ATTRIBUTE_DEVICE  ? ST_PATH_OTHER
                                                 : ST_PATH_FILE;
}

static sotto_status read_whole(HANDLE file, const char *path, size_t size, st_file_map *out, sotto_error *err)
{
    uint8_t *const data = st_alloc(size, 1);
    if (!data)
        return st_fail_memory(err, size, path);
    for (size_t at = 0; at < size;) {
        const DWORD want = size - at < (1u << 30) ? (DWORD)(size - at) : 1u << 30;
        DWORD got = 0;
        const bool done = ReadFile(file, data + at, want, &got, NULL);
        const DWORD code = GetLastError();
        if (!done || got == 0) {
            st_free(data);
            if (!done)
                return fail_windows(err, path, "read", code);
            return st_fail(err, SOTTO_E_IO, "%s: ended after %zu of %zu bytes", path, at, size);
        }
        at += got;
    }
    *out = (st_file_map){.data = data, .size = size, .impl = data};
    return SOTTO_OK;
}

static sotto_status map_handle(HANDLE file, const char *path, bool copy, st_file_map *out, sotto_error *err)
{
    LARGE_INTEGER size;
    if (GetFileType(file) != FILE_TYPE_DISK)
        return st_fail(err, SOTTO_E_IO, "%s: is a device or a pipe, expected a file", path);
    if (!GetFileSizeEx(file, &size))
        return fail_windows(err, path, "read", GetLastError());
    if ((uint64_t)size.QuadPart > SIZE_MAX / 2)
        return st_fail(err, SOTTO_E_MEMORY, "%s: %" PRIu64 " bytes do not fit into memory", path,
                       (uint64_t)size.QuadPart);
    if (size.QuadPart == 0)
        return SOTTO_OK;
    if (copy)
        return read_whole(file, path, (size_t)size.QuadPart, out, err);
    const HANDLE mapping = CreateFileMappingW(file, NULL, PAGE_READONLY, 0, 0, NULL);
    if (!mapping)
        return fail_windows(err, path, "map", GetLastError());
    const void *const data = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0);
    const DWORD code = GetLastError();
    CloseHandle(mapping); /* the view keeps it alive */
    if (!data)
        return fail_windows(err, path, "map", code);
    *out = (st_file_map){.data = data, .size = (size_t)size.QuadPart, .impl = NULL};
    return SOTTO_OK;
}

static sotto_status open_map(const char *path, bool copy, st_file_map *out, sotto_error *err)
{
    *out = (st_file_map){0};
    wchar_t *const wide = to_wide(path);
    if (!wide)
        return fail_path(err, path);
    sotto_status status;
    if (kind_of(wide) == ST_PATH_FOLDER) {
        status = st_fail(err, SOTTO_E_IO, "%s: is a folder, expected a file", path);
    } else {
        const HANDLE file = CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
                                        FILE_ATTRIBUTE_NORMAL | FILE_FLAG_SEQUENTIAL_SCAN, NULL);
        if (file == INVALID_HANDLE_VALUE) {
            status = fail_windows(err, path, "open", GetLastError());
        } else {
            status = map_handle(file, path, copy, out, err);
            CloseHandle(file);
        }
    }
    st_free(wide);
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
    SIZE_T least, most;
    if (!map->data)
        return SOTTO_OK;
    /* what may be locked is bounded by the working set, which has to grow first */
    if (GetProcessWorkingSetSize(GetCurrentProcess(), &least, &most))
        SetProcessWorkingSetSize(GetCurrentProcess(), least + map->size, most + map->size);
    if (VirtualLock((void *)(uintptr_t)map->data, map->size))
        return SOTTO_OK;
    return st_fail(err, SOTTO_E_MEMORY, "%s: cannot keep %zu bytes in memory (Windows error %lu)", path, map->size,
                   (unsigned long)GetLastError());
}

size_t st_file_map_pages(const st_file_map *map)
{
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    const size_t page = info.dwPageSize;
    return map->impl || !map->data ? 0 : (map->size + page - 1) / page * page;
}

void st_file_map_unlock(const st_file_map *map)
{
    if (map->data)
        VirtualUnlock((void *)(uintptr_t)map->data, map->size);
}

void st_file_map_keep(const st_file_map *map, size_t offset, size_t size, bool lock)
{
    if (lock && !map->impl && map->data && offset <= map->size)
        VirtualLock((void *)(uintptr_t)(map->data + offset), size < map->size - offset ? size : map->size - offset);
}

void st_file_map_close(st_file_map *map)
{
    if (map->impl)
        st_free(map->impl);
    else if (map->data)
        UnmapViewOfFile(map->data);
    *map = (st_file_map){0};
}

void st_file_map_release(const st_file_map *map, size_t offset, size_t size)
{
    if (map->impl || !map->data || offset > map->size)
        return;
    if (size > map->size - offset)
        size = map->size - offset;
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    const size_t page = info.dwPageSize;
    const size_t begin = (offset + page - 1) / page * page, end = (offset + size) / page * page;
    if (begin < end) /* unlocking pages that are not locked takes them out of the working set */
        VirtualUnlock((void *)(uintptr_t)(map->data + begin), end - begin);
}

st_path_kind st_path_kind_of(const char *path)
{
    wchar_t *const wide = to_wide(path);
    const st_path_kind kind = wide ? kind_of(wide) : ST_PATH_NONE;
    st_free(wide);
    return kind;
}

static bool identify(const char *path, BY_HANDLE_FILE_INFORMATION *out)
{
    wchar_t *const wide = to_wide(path);
    if (!wide)
        return false;
    const HANDLE file = CreateFileW(wide, 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                                    OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    st_free(wide);
    if (file == INVALID_HANDLE_VALUE)
        return false;
    const bool known = GetFileInformationByHandle(file, out);
    CloseHandle(file);
    return known;
}

bool st_same_file(const char *a, const char *b)
{
    BY_HANDLE_FILE_INFORMATION x, y;
    return identify(a, &x) && identify(b, &y) && x.dwVolumeSerialNumber == y.dwVolumeSerialNumber &&
           x.nFileIndexHigh == y.nFileIndexHigh && x.nFileIndexLow == y.nFileIndexLow;
}

static FILE *create_new(const wchar_t *wide)
{
    int fd;
    if (_wsopen_s(&fd, wide, _O_WRONLY | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT, _SH_DENYNO,
                  _S_IREAD | _S_IWRITE) != 0)
        return NULL;
    FILE *const stream = _fdopen(fd, "wb");
    if (!stream)
        _close(fd);
    return stream;
}

static FILE *create_temporary(const char *target, char **name)
{
    size_t folder = strlen(target);
    while (folder > 0 && !strchr("/\\:", target[folder - 1]))
        folder--;
    const size_t size = folder + 64;
    char *const path = st_alloc(size, 1);
    FILE *stream = NULL;
    for (int i = 0; path && i < MAX_ATTEMPTS && !stream; i++) {
        snprintf(path, size, "%.*s.sotto-%lu-%d.tmp", (int)folder, target, (unsigned long)GetCurrentProcessId(), i);
        wchar_t *const wide = to_wide(path);
        if (wide)
            stream = create_new(wide);
        const int code = errno;
        st_free(wide);
        errno = code;
        if (!stream && code != EEXIST)
            break;
    }
    if (!stream) {
        const int code = errno;
        st_free(path);
        errno = code;
        return NULL;
    }
    *name = path;
    return stream;
}

sotto_status st_os_temp_open(const char *path, st_temp_file *out, sotto_error *err)
{
    *out = (st_temp_file){0};
    wchar_t *const wide = to_wide(path);
    if (!wide)
        return fail_path(err, path);
    const st_path_kind kind = kind_of(wide);
    sotto_status status = SOTTO_OK;
    st_temp_file t = {.target = st_strdup(path)};
    if (kind == ST_PATH_FOLDER) {
        status = st_fail(err, SOTTO_E_IO, "%s: is a folder, expected the name of a file to write", path);
    } else if (!t.target) {
        status = st_fail_memory(err, strlen(path) + 1, "a path");
    } else {
        t.stream = kind == ST_PATH_OTHER ? _wfopen(wide, L"wb") : create_temporary(path, &t.temporary);
        if (!t.stream) {
            const int code = errno;
            char reason[128];
            status = st_fail(err, code == ENOENT ? SOTTO_E_NOT_FOUND : SOTTO_E_IO, "%s: cannot write: %s", path,
                             st_os_errno_text(code, reason, sizeof reason));
        }
    }
    st_free(wide);
    if (status != SOTTO_OK)
        st_free(t.target);
    else
        *out = t;
    return status;
}

bool st_os_sync(FILE *stream)
{
    return _commit(_fileno(stream)) == 0;
}

sotto_status st_os_temp_rename(const st_temp_file *t, sotto_error *err)
{
    wchar_t *const from = to_wide(t->temporary), *const to = to_wide(t->target);
    sotto_status status = SOTTO_OK;
    if (!from || !to)
        status = st_fail_memory(err, strlen(t->target) + 1, "a path");
    else if (!MoveFileExW(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH))
        status = fail_windows(err, t->target, "write", GetLastError());
    st_free(from);
    st_free(to);
    return status;
}

void st_os_remove(const char *path)
{
    wchar_t *const wide = to_wide(path);
    if (wide)
        DeleteFileW(wide);
    st_free(wide);
}
#else
typedef int st_file_win32_unused;
#endif
