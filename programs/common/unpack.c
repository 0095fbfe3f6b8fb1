/* unpack.c: reading archives with libarchive. Contract: unpack.h. */
#include "common/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/outfile.h"
#include "common/sha256.h"
#include "common/terminal.h"

/* The member that an archive's entry is, and its path below the folder in `target`; NULL = not wanted. */
static const cli_member *match(const cli_member *members, const char *entry, char *target, size_t n)
{
    for (const cli_member *m = members; m->path; m++) {
        const size_t length = strlen(m->member);
        if (length && m->member[length - 1] == '*') {
            const char *rest = entry + length - 1;
            if (strncmp(entry, m->member, length - 1) == 0 && *rest && !strstr(rest, "..") && *rest != '/' &&
                snprintf(target, n, "%s/%s", m->path, rest) < (int)n)
                return m;
        } else if (strcmp(entry, m->member) == 0 && snprintf(target, n, "%s.part", m->path) < (int)n) {
            return m;
        }
    }
    return NULL;
}

static bool copy_entry(struct archive *a, FILE *f, char hex[65], sotto_error *err)
{
    const void *data;
    size_t n;
    la_int64_t offset;
    cli_sha256 sha;
    cli_sha256_start(&sha);
    for (;;) {
        const int code = archive_read_data_block(a, &data, &n, &offset);
        if (code == ARCHIVE_EOF)
            break;
        if (code < ARCHIVE_WARN)
            return cli_fail(err, SOTTO_E_FORMAT, "%s", archive_error_string(a));
        if (cli_interrupted())
            return cli_fail(err, SOTTO_E_ABORTED, "interrupted");
        cli_sha256_add(&sha, data, n);
        if (fwrite(data, 1, n, f) != n)
            return cli_fail(err, SOTTO_E_IO, "cannot write: %s", strerror(errno));
    }
    cli_sha256_finish(&sha, hex);
    return true;
}

static bool write_entry(struct archive *a, const cli_member *m, const char *folder, const char *target, sotto_error *err)
{
    char *path = cli_path_join(folder, target), hex[65];
    if (!path)
        return cli_fail(err, SOTTO_E_MEMORY, "out of memory");
    char *slash = strrchr(path, '/');
    *slash = 0;
    bool ok = cli_make_folders(path, err);
    *slash = '/';
    FILE *f = ok ? fopen(path, m->append ? "ab" : "wb") : NULL;
    if (ok && !f)
        ok = cli_fail(err, SOTTO_E_IO, "cannot write %s: %s", path, strerror(errno));
    ok = ok && copy_entry(a, f, hex, err);
    if (f && fclose(f) != 0 && ok)
        ok = cli_fail(err, SOTTO_E_IO, "cannot write %s: %s", path, strerror(errno));
    if (ok && m->sha256 && !cli_sha256_same(hex, m->sha256))
        ok = cli_fail(err, SOTTO_E_FORMAT, "%s: wrong sha256: %s, expected %s", m->member, hex, m->sha256);
    if (!ok && f)
        remove(path);
    free(path);
    return ok;
}

bool cli_unpack(const char *archive, const cli_member *members, const char *folder, sotto_error *err)
{
    struct archive *a = archive_read_new();
    struct archive_entry *entry;
    bool ok = a && archive_read_support_filter_all(a) >= ARCHIVE_WARN &&
              archive_read_support_format_zip(a) >= ARCHIVE_WARN && archive_read_support_format_tar(a) >= ARCHIVE_WARN;
    if (!ok)
        cli_fail(err, SOTTO_E_MEMORY, "out of memory");
    else if (archive_read_open_filename(a, archive, 1 << 16) != ARCHIVE_OK)
        ok = cli_fail(err, SOTTO_E_FORMAT, "%s: %s", archive, archive_error_string(a));
    size_t wanted = 0, found = 0;
    for (const cli_member *m = members; m->path; m++)
        wanted++;
    int code = ARCHIVE_OK;
    while (ok && (code = archive_read_next_header(a, &entry)) != ARCHIVE_EOF) {
        char target[512];
        if (code < ARCHIVE_WARN) {
            ok = cli_fail(err, SOTTO_E_FORMAT, "%s: %s", archive, archive_error_string(a));
            break;
        }
        const char *name = archive_entry_pathname(entry);
        const cli_member *m =
            name && archive_entry_filetype(entry) == AE_IFREG ? match(members, name, target, sizeof target) : NULL;
        if (m) {
            found++;
            ok = write_entry(a, m, folder, target, err);
        }
    }
    if (ok && found < wanted)
        ok = cli_fail(err, SOTTO_E_FORMAT, "%s: %zu of %zu wanted files are in it", archive, found, wanted);
    archive_read_free(a);
    return ok;
}
