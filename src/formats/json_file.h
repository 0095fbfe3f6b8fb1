/* json_file.h: the small JSON files beside weights. */
#ifndef SOTTO_SRC_FORMATS_JSON_FILE_H
#define SOTTO_SRC_FORMATS_JSON_FILE_H

#include <jansson.h>

#include "formats/model_file_impl.h"

/* The JSON document `name` in the model's folder; the caller calls json_decref. Errors name the file and the line. */
sotto_status st_json_sibling(sotto_model_file *file, const char *name, json_t **out, sotto_error *err);
sotto_status st_json_bytes(const char *name, const void *data, size_t size, json_t **out, sotto_error *err);
/* Puts "whisper.alignment_heads" when `array` is a list of [layer, head] pairs; anything else is left out. */
sotto_status st_put_alignment_heads(sotto_model_file *file, const json_t *array, sotto_error *err);

#endif
