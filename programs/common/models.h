/* models.h: where models lie: a path, ./models, the user's cache. */
#ifndef SOTTO_PROGRAMS_MODELS_H
#define SOTTO_PROGRAMS_MODELS_H

#include "sotto/base.h"

/* The path that NAME means: itself when such a path exists or NAME holds a '/'; else NAME, NAME.bin or NAME.gguf in
 * `folder` (may be NULL), in ./models, then in the user's cache; of a folder of GGUF files the first. free() it; NULL with
 * err saying where it was looked for and how to get it. */
char *cli_model_path(const char *name, const char *folder, sotto_error *err);
/* Where `sotto get` puts models: ./models inside a checkout of sotto, else $XDG_CACHE_HOME/sotto or ~/.cache/sotto. */
char *cli_models_folder(void);

#endif
