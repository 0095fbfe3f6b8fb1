#include "formats/mel_filters.h"

#include <math.h>

static const double top_hz = 8000, break_hz = 1000, break_mel = 15, hz_per_mel = 200.0 / 3;

/* Linear to 1 kHz, then 27 steps to each factor of 6.4. */
static double to_mel(double hz)
{
    return hz < break_hz ? hz / hz_per_mel : break_mel + log(hz / break_hz) / (log(6.4) / 27);
}

static double to_hz(double mel)
{
    return mel < break_mel ? mel * hz_per_mel : break_hz * exp(log(6.4) / 27 * (mel - break_mel));
}

bool st_mel_filters(int n_mels, float *out)
{
    if (n_mels < 1 || n_mels > ST_MEL_MAX)
        return false;
    double edge[ST_MEL_MAX + 2];
    for (int i = 0; i < n_mels + 2; i++)
        edge[i] = to_hz(to_mel(top_hz) * i / (n_mels + 1));
    for (int m = 0; m < n_mels; m++)
        for (int k = 0; k < ST_MEL_BINS; k++) {
            const double hz = top_hz * k / (ST_MEL_BINS - 1);
            const double rising = (hz - edge[m]) / (edge[m + 1] - edge[m]);
            const double falling = (edge[m + 2] - hz) / (edge[m + 2] - edge[m + 1]);
            const double height = rising < falling ? rising : falling;
            out[m * ST_MEL_BINS + k] = (float)(height > 0 ? height * 2 / (edge[m + 2] - edge[m]) : 0);
        }
    return true;
}
