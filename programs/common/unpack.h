/* unpack.h: wanted files out of a zip or tar archive. */
#ifndef SOTTO_PROGRAMS_UNPACK_H
#define SOTTO_PROGRAMS_UNPACK_H

#include "common/catalog.h"
#include "sotto/base.h"

/* Writes the members into folder as <path>.part, appending where the member says so, and checks each hash. The caller
 * renames. Members ending with '*' are written under their final names. Every member must be there. */
bool cli_unpack(const char *archive, const cli_member *members, const char *folder, sotto_error *err);

#endif
