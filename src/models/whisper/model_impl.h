/* model_impl.h: a loaded Whisper model: sizes, vocabulary and weights on a device. Immutable after loading. */
#ifndef SOTTO_SRC_MODELS_WHISPER_MODEL_IMPL_H
#define SOTTO_SRC_MODELS_WHISPER_MODEL_IMPL_H

#include "models/whisper/hparams.h"
#include "models/whisper/vocab.h"
#include "sotto/whisper.h"

enum {
    ST_N_FFT = 400, /* samples of a frame */
    ST_HOP = 160,   /* samples from frame to frame: 10 ms */
    ST_N_BINS = ST_N_FFT / 2 + 1,
    ST_WINDOW_FRAMES = 3000, /* 30 s */
    ST_FRAMES_PER_SECOND = 100
};

/* One attention with the layer norm before it. D = state of the model. */
typedef struct st_attention_weights {
    sotto_tensor *ln_w, *ln_b;   /* [D] */
    sotto_tensor *qkv_w, *qkv_b; /* self: [3 D, D], rows of query, key, value (bias of the key: zeros) */
    sotto_tensor *q_w, *q_b;     /* cross: [D, D] */
    sotto_tensor *kv_w, *kv_b;   /* cross: [2 D, D], rows of key, value */
    sotto_tensor *out_w, *out_b; /* [D, D] */
} st_attention_weights;

typedef struct st_mlp_weights {
    sotto_tensor *ln_w, *ln_b;     /* [D] */
    sotto_tensor *up_w, *up_b;     /* [4 D, D] */
    sotto_tensor *down_w, *down_b; /* [D, 4 D] */
} st_mlp_weights;

typedef struct st_layer_weights {
    st_attention_weights self, cross; /* cross: decoder only */
    st_mlp_weights mlp;
} st_layer_weights;

struct sotto_whisper_model {
    st_hparams h;
    st_vocab *vocab;
    sotto_backend *backend; /* loads weights; sessions open their own on the same devices */
    char format[16];
    sotto_logger logger;
    bool measure_only;
    sotto_dtype compute; /* of large products: SOTTO_F32, SOTTO_F16, SOTTO_BF16 or SOTTO_I8 */
    bool words;          /* under the last two, products of many rows and 16 bits are of f16 in words */
    sotto_store *store;
    sotto_model_file *file; /* NULL, or where weights are read at their place */
    double load_seconds;
    /* front end */
    sotto_tensor *dft;         /* [2 * N_BINS, N_FFT]: window times cosine rows, then window times sine rows */
    sotto_tensor *mel_filters; /* [n_mels, N_BINS] */
    /* encoder */
    sotto_tensor *conv1_w, *conv1_b; /* [D, 3 n_mels], kernel position outer; [D] */
    sotto_tensor *conv2_w, *conv2_b; /* [D, 3 D] */
    sotto_tensor *audio_pos;         /* [n_audio_ctx, D] */
    st_layer_weights *encoder;
    sotto_tensor *encoder_ln_w, *encoder_ln_b;
    /* decoder */
    sotto_tensor *embedding; /* [n_vocab, D]: the output projection */
    sotto_tensor *lookup;   /* the same for looking tokens up, on the CPU when the projection is in pieces; else that */
    sotto_tensor *text_pos; /* [n_text_ctx, D] */
    st_layer_weights *decoder;
    sotto_tensor *decoder_ln_w, *decoder_ln_b;
};

/* Layers as backends count them: those of the encoder, then those of the decoder. */
static inline int st_whisper_layers(const sotto_whisper_model *m)
{
    return m->h.n_audio_layer + m->h.n_text_layer;
}

/* Of the weights that a step of the decoder multiplies by. */
uint64_t st_whisper_step_bytes(const sotto_whisper_model *m);

/* Takes over nothing: file may be freed after. */
sotto_status st_whisper_model_load(const sotto_model_file *file, const sotto_whisper_model_options *options,
                                   sotto_whisper_model **out, sotto_error *err);

#endif
