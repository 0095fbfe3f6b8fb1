/* hf_names.h: tensors of Hugging Face's Whisper by the names of the original. */
#ifndef SOTTO_SRC_FORMATS_HF_NAMES_H
#define SOTTO_SRC_FORMATS_HF_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the original's name of `name` to out. False when Whisper has no such tensor: out is then `name` itself, cut to
 * size. */
bool st_hf_name(const char *name, char *out, size_t size);

#endif
