/* hparams.h: the sizes of a Whisper model, read from a model file's metadata and checked. */
#ifndef SOTTO_SRC_MODELS_WHISPER_HPARAMS_H
#define SOTTO_SRC_MODELS_WHISPER_HPARAMS_H

#include "sotto/model.h"

typedef struct st_hparams {
    int32_t n_vocab;
    int32_t n_audio_ctx, n_audio_state, n_audio_head, n_audio_layer;
    int32_t n_text_ctx, n_text_state, n_text_head, n_text_layer;
    int32_t n_mels;
} st_hparams;

/* SOTTO_E_UNSUPPORTED when the file is no Whisper model, SOTTO_E_FORMAT with key, value and allowed range otherwise. */
sotto_status st_hparams_read(const sotto_model_file *file, st_hparams *out, sotto_error *err);

/* "tiny", "base.en", "large-v3-turbo", ... or "custom". */
const char *st_hparams_size_name(const st_hparams *h);

#endif
