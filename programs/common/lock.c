#include "common/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/outfile.h"
#include "common/terminal.h"

/* 1: held, or the file system has no locks; 0: another process has it; -1: interrupted or failed */
static int take(int fd)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR))
        return 1;
    return cli_interrupted() ? -1 : 0;
}

/* Whoever held it may have removed the folder, since it was empty: then the lock is on nothing. */
static bool is_still(const char *folder, int fd)
{
    struct stat named, held;
    return stat(folder, &named) == 0 && fstat(fd, &held) == 0 && named.st_dev == held.st_dev &&
           named.st_ino == held.st_ino;
}

int cli_lock_folder(const char *folder, bool quiet, sotto_error *err)
{
    bool said = quiet;
    for (;;) {
        if (!cli_make_folders(folder, err))
            return -1;
        const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
            continue;
        if (fd < 0) {
            cli_fail(err, SOTTO_E_IO, "cannot open the folder %s: %s", folder, strerror(errno));
            return -1;
        }
        const int got = take(fd);
        if (got > 0 && is_still(folder, fd))
            return fd;
        close(fd);
        if (got < 0) {
            cli_fail(err, SOTTO_E_ABORTED, "interrupted while waiting for another process to finish with %s", folder);
            return -1;
        }
        if (got == 0) {
            if (!said)
                cli_say(NULL, "waiting for another process that writes to %s", folder);
            said = true;
            const struct timespec step = {.tv_sec = 0, .tv_nsec = 100 * 1000 * 1000};
            nanosleep(&step, NULL);
        }
    }
}

void cli_unlock_folder(int lock)
{
    if (lock >= 0)
        close(lock);
}
