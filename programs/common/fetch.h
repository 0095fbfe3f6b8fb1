/* fetch.h: downloads that survive disconnects and are checked. */
#ifndef SOTTO_PROGRAMS_FETCH_H
#define SOTTO_PROGRAMS_FETCH_H

#include "common/terminal.h"
#include "common/text.h"

typedef struct cli_fetch {
    const char *url;
    const char *path;   /* written as path + ".part" until complete and checked */
    const char *sha256; /* NULL = what the server states, if it does */
    int64_t size;       /* expected bytes, 0 = unknown */
    int64_t max_size;   /* of a file whose size is unknown: more is refused; 0 = no limit */
    bool quiet;
    bool *checked; /* may be NULL; gets whether a hash was known */
} cli_fetch;

/* Resumes from an earlier .part, retries with growing pauses while the trouble may pass (at most 8 times without any
 * progress), and compares the hash. A wrong hash removes the file. Interrupted: SOTTO_E_ABORTED, the .part stays. */
bool cli_fetch_file(const cli_fetch *request, sotto_error *err);
/* A page into memory, at most 64 MB; *final_url (free() it) is where it came from after redirections. */
bool cli_fetch_page(const char *url, const char *accept, cli_text *out, char **final_url, sotto_error *err);
/* `reference` as seen from the page `base`; free() it, NULL when it is no URL. */
char *cli_url_resolve(const char *base, const char *reference);

/* Where the package index has this file of this package; free() it. The index is $PIP_INDEX_URL, the index-url of pip's
 * configuration, or https://pypi.org/simple. */
char *cli_index_find(const char *package, const char *file, sotto_error *err);

#endif
