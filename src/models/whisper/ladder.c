#include "models/whisper/ladder.h"

/* A comparison with a threshold that is off (NaN) is false. */
bool st_ladder_failed(const st_ladder *l, const st_decode_result *r)
{
    const bool unlikely = r->avg_logprob < l->logprob_threshold;
    if (unlikely && r->no_speech_prob > l->no_speech_threshold)
        return false; /* silence, not a failure */
    return unlikely || r->compression_ratio > l->compression_ratio_threshold;
}

bool st_ladder_is_silence(const st_ladder *l, const st_decode_result *r)
{
    return r->no_speech_prob > l->no_speech_threshold && !(r->avg_logprob > l->logprob_threshold);
}

bool st_ladder_has_zero(const st_ladder *l)
{
    return l->temperature == 0.0f;
}

/* The original's steps: numpy.arange(temperature, 1.0 + 1e-6, inc). */
static double attempt(const st_ladder *l, int i)
{
    return (double)l->temperature + (double)i * (double)l->temperature_inc;
}

bool st_ladder_has_sampling(const st_ladder *l)
{
    return l->temperature > 0.0f || (l->temperature_inc > 0.0f && attempt(l, 1) < 1.0 + 1e-6);
}

sotto_status st_ladder_decode(st_decoder *d, const st_ladder *l, const st_decode_options *options,
                              st_decode_result *out, sotto_error *err)
{
    st_decode_options o = *options;
    for (int i = 0;; i++) {
        o.temperature = (float)attempt(l, i);
        o.group = o.temperature > 0.0f ? l->best_of : l->beam_size;
        o.again = i > 0;
        const sotto_status status = st_decode(d, &o, out, err);
        if (status != SOTTO_OK)
            return status;
        const bool last = !(l->temperature_inc > 0.0f) || attempt(l, i + 1) >= 1.0 + 1e-6;
        if (last || !st_ladder_failed(l, out))
            return SOTTO_OK;
        st_decoder_counters(d)->n_fallback++;
    }
}
