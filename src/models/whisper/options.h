/* options.h: sotto_whisper_options checked and brought into the form that the speech logic uses. */
#ifndef SOTTO_SRC_MODELS_WHISPER_OPTIONS_H
#define SOTTO_SRC_MODELS_WHISPER_OPTIONS_H

#include "models/whisper/ladder.h"

enum { ST_MAX_BATCH = 32 };

typedef struct st_settings {
    sotto_whisper_options given; /* pointers to text and ids are NULL: they were copied */
    int language;                /* -1: detect */
    int64_t first, end;          /* frames that are heard; end INT64_MAX: all */
    double limit;                /* seconds after which nothing is heard; INFINITY: none */
    int64_t window;              /* frames of a window */
    int max_context;             /* tokens of previous text */
    st_ladder ladder;
    st_decode_options decode;
    int32_t *suppress; /* decode.filters.suppress */
    int64_t n_suppress, suppress_capacity;
    int32_t *initial; /* tokens of the initial prompt, the last that have room */
    int64_t n_initial, initial_capacity;
    st_grammar_filter *grammar; /* decode.grammar */
} st_settings;

/* SOTTO_E_ARGUMENT with field, value and range. *s is zeroed or from an earlier call. n_audio_ctx: of the model. */
sotto_status st_settings_read(st_settings *s, const sotto_whisper_options *options, const st_vocab *vocab,
                              const st_engine *engine, int n_audio_ctx, sotto_error *err);
void st_settings_free(st_settings *s);

#endif
