/* parts_support.h: a session taken apart, so that a test can look between its parts. */
#ifndef SOTTO_TESTS_PARTS_SUPPORT_H
#define SOTTO_TESTS_PARTS_SUPPORT_H

#include "golden_support.h"
#include "models/whisper/frontend.h"
#include "models/whisper/net.h"

typedef struct parts {
    sotto_backend *backend;
    sotto_arena *arena;
    st_frontend *frontend;
    st_net *net;
    st_engine engine;
} parts;

/* cpu_level NULL: the best. Fails the test when anything cannot be made. */
parts parts_open(const sotto_whisper_model *model, const char *cpu_level);
/* caches: the type of keys and values, NULL: what goes with the compute type. */
parts parts_open_with(const sotto_whisper_model *model, const char *cpu_level, const char *caches);
void parts_close(parts *p);
/* Logits of the last of the tokens, decoded as one prompt of sequence 0 after a reset. */
void parts_logits(const parts *p, const int32_t *tokens, int n, float *logits);
/* rms of the difference at the golden's rows, relative to the rms of the golden's; out is [n_ctx, d]. */
double parts_encoder_error(const golden *g, const float *out, int d);
/* Largest difference at the ids of a golden logits entry. */
double parts_logit_error(const golden *g, json_t *entry, const float *logits);
/* The ids of a JSON array. Returns how many were written. */
int parts_ids(json_t *array, int32_t *out, int cap);

#endif
