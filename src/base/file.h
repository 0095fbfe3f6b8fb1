/* file.h: whole files in memory, mapped where the system can, and atomic writing. Paths are UTF-8. */
#ifndef SOTTO_SRC_BASE_FILE_H
#define SOTTO_SRC_BASE_FILE_H

#include <stdio.h>

#include "sotto/base.h"
#include <stdbool.h>

typedef struct st_file_map {
    const uint8_t *data; /* NULL for an empty file */
    size_t size;
    void *impl;
} st_file_map;

/* Read-only view of a regular file. Errors name the path and the reason (missing, a directory, no permission). */
sotto_status st_file_map_open(const char *path, st_file_map *out, sotto_error *err);
/* The same with the whole file read into memory: no later change or loss of the file is seen. */
sotto_status st_file_map_read(const char *path, st_file_map *out, sotto_error *err);
/* Keep its pages in memory until it is closed. Where the system's limit forbids that, nothing changes and err says so. */
sotto_status st_file_map_lock(const st_file_map *map, const char *path, sotto_error *err);
/* No longer all of it: what is locked after this stays so. */
void st_file_map_unlock(const st_file_map *map);
/* [offset, offset + size) will be read again and again; with `lock` its pages stay in memory, where the system allows it. */
void st_file_map_keep(const st_file_map *map, size_t offset, size_t size, bool lock);
/* Bytes from `data` on that may be read: of a mapped file whole pages, of one that was read into memory none. */
size_t st_file_map_pages(const st_file_map *map);
void st_file_map_close(st_file_map *map);
/* Tell the system that [offset, offset + size) is not needed for now; reading it again works and costs a page fault. */
void st_file_map_release(const st_file_map *map, size_t offset, size_t size);

typedef enum st_path_kind { ST_PATH_NONE = 0, ST_PATH_FILE, ST_PATH_FOLDER, ST_PATH_OTHER } st_path_kind;
st_path_kind st_path_kind_of(const char *path);
/* True when both exist and are one file, also through links. */
bool st_same_file(const char *a, const char *b);
/* folder + "/" + name, allocated with st_alloc; NULL without memory. */
char *st_path_join(const char *folder, const char *name);

/* A file that appears under its name only when complete: written beside it under a temporary name, then renamed. */
typedef struct st_file_writer st_file_writer;
sotto_status st_file_writer_open(const char *path, st_file_writer **out, sotto_error *err);
sotto_status st_file_writer_write(st_file_writer *w, const void *data, size_t n, sotto_error *err);
uint64_t st_file_writer_at(const st_file_writer *w);
/* Flushes, renames and frees; on failure (a full disk) the temporary file is removed and err says why. */
sotto_status st_file_writer_commit(st_file_writer *w, sotto_error *err);
/* Removes the temporary file and frees. NULL allowed. */
void st_file_writer_discard(st_file_writer *w);

#endif
