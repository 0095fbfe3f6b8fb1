/* folders_win32.c: folders.h over the Windows API. */
#ifdef _WIN32
#include <string.h>
#include <windows.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/folders.h"

enum { PATH_UNITS = 1024 };

char *st_user_cache_folder(void)
{
    wchar_t wide[PATH_UNITS];
    char folder[3 * PATH_UNITS];
    const DWORD n = GetEnvironmentVariableW(L"LOCALAPPDATA", wide, PATH_UNITS);
    if (n == 0 || n >= PATH_UNITS ||
        WideCharToMultiByte(CP_UTF8, 0, wide, -1, folder, (int)sizeof folder, NULL, NULL) <= 0)
        return NULL;
    return st_path_join(folder, "sotto");
}

static void make(const char *path)
{
    wchar_t wide[PATH_UNITS];
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, PATH_UNITS) > 0)
        CreateDirectoryW(wide, NULL);
}

bool st_make_folders(const char *path)
{
    char *copy = st_strdup(path);
    if (!copy)
        return false;
    for (char *at = copy; *at; at++) {
        const char separator = *at;
        if (at == copy || (separator != '/' && separator != '\\'))
            continue;
        *at = 0;
        make(copy);
        *at = separator;
    }
    st_free(copy);
    make(path);
    return st_path_kind_of(path) == ST_PATH_FOLDER;
}
#else
typedef int st_folders_win32_unused;
#endif
