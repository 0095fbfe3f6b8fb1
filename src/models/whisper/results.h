/* results.h: the segments of one recording. Pointers stay valid until the next reset. */
#ifndef SOTTO_SRC_MODELS_WHISPER_RESULTS_H
#define SOTTO_SRC_MODELS_WHISPER_RESULTS_H

#include "base/alloc.h"
#include "models/whisper/decode.h"
#include "models/whisper/segments.h"

typedef struct st_results {
    st_arena *arena;
    sotto_whisper_segment **segments;
    int64_t count, capacity;
    double last_stop; /* no segment starts before the one before it ended */
} st_results;

sotto_status st_results_reset(st_results *r, sotto_error *err);
void st_results_free(st_results *r);
/* Copies one slice. limit: seconds after which nothing is heard. *out is also the last of r->segments. */
sotto_status st_results_add(st_results *r, const st_slicer *slicer, const st_slice *slice,
                            const st_decode_result *window, int64_t seek, double limit, const char *language,
                            const sotto_whisper_segment **out, sotto_error *err);

#endif
