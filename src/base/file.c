/* file.c: the part of files that is the same on every system. */
#include "base/file.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file_impl.h"
#include "base/status.h"

struct st_file_writer {
    st_temp_file file;
    uint64_t at;
    int failure; /* errno of the first write that failed, 0 while all is well */
};

char *st_path_join(const char *folder, const char *name)
{
    const size_t a = strlen(folder), b = strlen(name);
    const bool separate = a > 0 && folder[a - 1] != '/' && b > 0;
    char *const path = st_alloc(a + b + 2, 1);
    if (!path)
        return NULL;
    memcpy(path, folder, a);
    if (separate)
        path[a] = '/';
    memcpy(path + a + separate, name, b + 1);
    return path;
}

sotto_status st_file_writer_open(const char *path, st_file_writer **out, sotto_error *err)
{
    *out = NULL;
    st_file_writer *const w = st_calloc(1, sizeof *w);
    if (!w)
        return st_fail_memory(err, sizeof *w, "a file writer");
    const sotto_status status = st_os_temp_open(path, &w->file, err);
    if (status != SOTTO_OK) {
        st_free(w);
        return status;
    }
    *out = w;
    return SOTTO_OK;
}

static sotto_status fail_write(const st_file_writer *w, int code, sotto_error *err)
{
    char reason[128];
    return st_fail(err, SOTTO_E_IO, "%s: cannot write: %s", w->file.target,
                   st_os_errno_text(code, reason, sizeof reason));
}

sotto_status st_file_writer_write(st_file_writer *w, const void *data, size_t n, sotto_error *err)
{
    if (!w->failure && n > 0) {
        errno = 0;
        if (fwrite(data, 1, n, w->file.stream) != n)
            w->failure = errno ? errno : EIO;
        else
            w->at += n;
    }
    return w->failure ? fail_write(w, w->failure, err) : SOTTO_OK;
}

uint64_t st_file_writer_at(const st_file_writer *w)
{
    return w->at;
}

static void free_writer(st_file_writer *w)
{
    st_free(w->file.temporary);
    st_free(w->file.target);
    st_free(w);
}

sotto_status st_file_writer_commit(st_file_writer *w, sotto_error *err)
{
    errno = 0;
    if (!w->failure && (fflush(w->file.stream) != 0 || (w->file.temporary && !st_os_sync(w->file.stream))))
        w->failure = errno ? errno : EIO;
    errno = 0;
    if (fclose(w->file.stream) != 0 && !w->failure) /* network file systems may report a full disk only now */
        w->failure = errno ? errno : EIO;
    sotto_status status = SOTTO_OK;
    if (w->failure)
        status = fail_write(w, w->failure, err);
    else if (w->file.temporary)
        status = st_os_temp_rename(&w->file, err);
    if (status != SOTTO_OK && w->file.temporary)
        st_os_remove(w->file.temporary);
    free_writer(w);
    return status;
}

void st_file_writer_discard(st_file_writer *w)
{
    if (!w)
        return;
    fclose(w->file.stream);
    if (w->file.temporary)
        st_os_remove(w->file.temporary);
    free_writer(w);
}
