/* ladder.h: one window decoded at rising temperatures until the result is good enough.
 * Source: decode_with_fallback() of openai-whisper's transcribe.py. */
#ifndef SOTTO_SRC_MODELS_WHISPER_LADDER_H
#define SOTTO_SRC_MODELS_WHISPER_LADDER_H

#include "models/whisper/decode.h"

typedef struct st_ladder {
    float temperature, temperature_inc; /* inc 0: one attempt; else up to 1.0 */
    int beam_size, best_of;             /* sequences at temperature 0, and above */
    float compression_ratio_threshold, logprob_threshold, no_speech_threshold; /* NaN = off */
} st_ladder;

/* Whether some attempt of the ladder is at temperature 0, or above. */
bool st_ladder_has_zero(const st_ladder *ladder);
bool st_ladder_has_sampling(const st_ladder *ladder);
/* group and temperature of options are set by the ladder. */
sotto_status st_ladder_decode(st_decoder *d, const st_ladder *ladder, const st_decode_options *options,
                              st_decode_result *out, sotto_error *err);
/* Whether a result is too unlikely or too repetitive. */
bool st_ladder_failed(const st_ladder *ladder, const st_decode_result *result);
/* Whether a result is to be passed over as silence. */
bool st_ladder_is_silence(const st_ladder *ladder, const st_decode_result *result);

#endif
