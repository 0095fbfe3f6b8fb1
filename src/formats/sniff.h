/* sniff.h: which format the content of a file has. */
#ifndef SOTTO_SRC_FORMATS_SNIFF_H
#define SOTTO_SRC_FORMATS_SNIFF_H

#include "formats/model_file_impl.h"

/* Names of the weights in a folder, in the order they are looked for; ends with NULL. */
extern const char *const st_folder_weights[];

/* NULL when no reader knows the content. */
const st_reader *st_sniff(const uint8_t *data, size_t size);
/* Says what an unknown file looks like. */
sotto_status st_sniff_fail(const uint8_t *data, size_t size, sotto_error *err);
/* Says which files a folder lacks. */
sotto_status st_sniff_folder_fail(sotto_model_file *file, sotto_error *err);

#endif
