/* model_support.h: what must hold of any model file that opens. */
#ifndef SOTTO_TESTS_FUZZ_MODEL_SUPPORT_H
#define SOTTO_TESTS_FUZZ_MODEL_SUPPORT_H

#include <stddef.h>
#include <stdint.h>

/* Opens the bytes; reads every tensor's first and last row and all metadata. `folder` as for st_model_open_bytes. */
void fuzz_model(const uint8_t *data, size_t size, const char *folder);
/* The same of a file or folder. */
void fuzz_model_path(const char *path);

#endif
