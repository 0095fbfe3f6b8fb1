/* outfile.h: files that appear under their name only when they are complete. */
#ifndef SOTTO_PROGRAMS_OUTFILE_H
#define SOTTO_PROGRAMS_OUTFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "sotto/base.h"

/* Write all of data to a temporary name beside path, then rename it to path; a device or a pipe is written in place, and a
 * link stays a link. On failure nothing is left behind and err names the file and the reason. */
bool cli_write_file(const char *path, const void *data, size_t n, sotto_error *err);
/* Whether a file could be written there later, asked before long work: the folder exists and takes a temporary file, which is
 * removed again; what is at path is not touched. false: err names the file and the reason. */
bool cli_can_write(const char *path, sotto_error *err);
/* The folder and those above it, when missing. */
bool cli_make_folders(const char *path, sotto_error *err);
/* folder/name, or a copy of name when folder is NULL or empty; NULL without memory; free() it. */
char *cli_path_join(const char *folder, const char *name);
bool cli_is_folder(const char *path);
bool cli_is_file(const char *path);
/* Name without folders and without its last extension: "a/talk.mp3" gives "talk". free() it. */
char *cli_path_stem(const char *path);
/* Fills err; returns false. */
bool cli_fail(sotto_error *err, sotto_status code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
