/* lock.h: one process at a time in a folder. */
#ifndef SOTTO_PROGRAMS_LOCK_H
#define SOTTO_PROGRAMS_LOCK_H

#include <stdbool.h>

#include "sotto/base.h"

/* Makes the folder when missing and waits until no other process holds it; says once that it waits, unless quiet. Returns
 * what cli_unlock_folder() takes, or -1 with err, also when interrupted. Nothing is left in the folder, and the lock ends
 * with the process. Where the file system has no locks there is none. */
int cli_lock_folder(const char *folder, bool quiet, sotto_error *err);
void cli_unlock_folder(int lock);

#endif
