/* folders.h: folders of the user. Paths are UTF-8. */
#ifndef SOTTO_SRC_BASE_FOLDERS_H
#define SOTTO_SRC_BASE_FOLDERS_H

#include <stdbool.h>

/* Where files go that can be made again: $XDG_CACHE_HOME/sotto or ~/.cache/sotto, on Windows %LOCALAPPDATA%\sotto. It need
 * not exist. Allocated with st_alloc; NULL when the user has no such place or there is no memory. */
char *st_user_cache_folder(void);
/* The folder and those above it that do not exist yet, for this user only. True when it is there afterwards. */
bool st_make_folders(const char *path);

#endif
