/* model_error.h: which errors of opening a model are told with the file's name. */
#ifndef SOTTO_SRC_MODELS_COMMON_MODEL_ERROR_H
#define SOTTO_SRC_MODELS_COMMON_MODEL_ERROR_H

#include "base/status.h"

/* Puts the path before what may be the file's fault; options, devices and memory are not. */
static inline sotto_status st_fail_model(sotto_error *err, sotto_status status, const char *path)
{
    const bool of_file = status == SOTTO_E_FORMAT || status == SOTTO_E_UNSUPPORTED || status == SOTTO_E_IO;
    return of_file ? st_fail_context(err, status, "%s", path) : status;
}

#endif
