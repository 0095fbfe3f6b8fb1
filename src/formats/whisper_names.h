/* whisper_names.h: the tensors that every Whisper model has. */
#ifndef SOTTO_SRC_FORMATS_WHISPER_NAMES_H
#define SOTTO_SRC_FORMATS_WHISPER_NAMES_H

#include "formats/model_file_impl.h"

/* Fails with the first tensor that is missing, for as many layers as the metadata tells. Shapes are the loader's business. */
sotto_status st_whisper_complete(const sotto_model_file *file, sotto_error *err);

#endif
