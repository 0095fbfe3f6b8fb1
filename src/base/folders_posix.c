/* folders_posix.c: folders.h by the XDG base directory specification. */
#ifndef _WIN32
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/folders.h"

char *st_user_cache_folder(void)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && cache[0] == '/') /* the specification has relative paths ignored */
        return st_path_join(cache, "sotto");
    return home && home[0] == '/' ? st_path_join(home, ".cache/sotto") : NULL;
}

bool st_make_folders(const char *path)
{
    char *copy = st_strdup(path);
    if (!copy)
        return false;
    for (char *at = copy + 1; copy[0] && (at = strchr(at, '/')); *at++ = '/') {
        *at = 0;
        mkdir(copy, 0700);
    }
    st_free(copy);
    mkdir(path, 0700);
    return st_path_kind_of(path) == ST_PATH_FOLDER;
}
#else
typedef int st_folders_posix_unused;
#endif
