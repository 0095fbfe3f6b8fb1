/* mel_filters.h: the mel filter bank of Whisper's front end. */
#ifndef SOTTO_SRC_FORMATS_MEL_FILTERS_H
#define SOTTO_SRC_FORMATS_MEL_FILTERS_H

#include <stdbool.h>

enum { ST_MEL_BINS = 201, ST_MEL_MAX = 256 };

/* Slaney's triangles for 16 kHz and a 400-point transform, each of unit area, as librosa.filters.mel(sr=16000, n_fft=400)
 * makes them. False when n_mels is not 1 to 256. */
bool st_mel_filters(int n_mels, float *out /* [n_mels, 201] */);

#endif
