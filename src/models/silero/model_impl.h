/* model_impl.h: a loaded Silero VAD model: weights on a device. Immutable after loading. */
#ifndef SOTTO_SRC_MODELS_SILERO_MODEL_IMPL_H
#define SOTTO_SRC_MODELS_SILERO_MODEL_IMPL_H

#include "sotto/model.h"
#include "sotto/vad.h"

enum {
    ST_VAD_CONTEXT = 64, /* samples heard before a chunk, and mirrored behind it */
    ST_VAD_HOP = 128,    /* samples from frame to frame of the spectrum */
    ST_VAD_FFT = 2 * ST_VAD_HOP,
    ST_VAD_FRAMES = 4, /* of a chunk */
    ST_VAD_BINS = ST_VAD_FFT / 2 + 1,
    ST_VAD_CONVS = 4
};

struct sotto_vad_model {
    sotto_backend *backend; /* loads weights; streams open their own on the same device */
    sotto_backend_options backend_options;
    char device[32], cpu_level[16];
    sotto_store *store;
    sotto_tensor *stft;                                        /* [2 BINS, FFT]: real parts, then imaginary parts */
    sotto_tensor *conv_w[ST_VAD_CONVS], *conv_b[ST_VAD_CONVS]; /* [c_out, 3 c_in], kernel position outer; [c_out] */
    int c_out[ST_VAD_CONVS];
    int n_state;
    /* LSTM; rows of the gates: input, forget, output, cell */
    sotto_tensor *input_w, *gate_b; /* [4 n_state, c_out of the last], [4 n_state]: both biases of the file */
    sotto_tensor *state_w;          /* [4 n_state, n_state] */
    sotto_tensor *out_w, *out_b;    /* [1, n_state], [1] */
};

/* Takes over nothing: file may be freed after. */
sotto_status st_vad_model_load(const sotto_model_file *file, const sotto_backend_options *backend,
                               sotto_vad_model **out, sotto_error *err);

#endif
