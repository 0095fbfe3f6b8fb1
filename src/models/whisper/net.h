/* net.h: the network of one session: encoder, decoder, their caches and plans; the real st_engine.
 *
 * The self-attention cache is a pool of cells, one per token kept, [n_cell, D] for keys and for values in each layer. A
 * sequence is a list of cell numbers. Making a beam from another copies its list and counts the shared cells; no key or
 * value moves. With several windows each has its own cells, in one tensor, so that rows of all of them are one product. */
#ifndef SOTTO_SRC_MODELS_WHISPER_NET_H
#define SOTTO_SRC_MODELS_WHISPER_NET_H

#include "models/whisper/engine.h"
#include "models/whisper/model_impl.h"

typedef struct st_net st_net;

typedef sotto_status (*st_encode_outside)(void *user, const float *log_mel, int n_mels, int n_frames, float *out,
                                          sotto_error *err);

typedef struct st_net_shape {
    int n_seq;
    sotto_dtype keys, values; /* of both caches */
} st_net_shape;

/* Caches for one window of n_seq sequences. All sizes are known (st_net_bytes) before the first byte of cache is allocated. */
sotto_status st_net_create(const sotto_whisper_model *model, sotto_backend *backend, sotto_arena *arena,
                           const st_net_shape *shape, st_net **out, sotto_error *err);
/* The type that a name stands for: NULL or "auto" the one that goes with the model's compute type; heads must be whole blocks
 * of it. `field` is named when it does not. */
sotto_status st_net_cache_type(const sotto_whisper_model *model, const char *field, const char *name, sotto_dtype *out,
                               sotto_error *err);
void st_net_free(st_net *net);
/* The interface to speech logic; valid as long as the net. */
st_engine st_net_engine(st_net *net);
/* Used for every later run; copied. */
void st_net_set_run_options(st_net *net, const sotto_run_options *run);
/* Caches for n windows from now on, all empty; what there was stays when this fails. */
sotto_status st_net_set_windows(st_net *net, int n, sotto_error *err);
/* Encoder positions of the coming windows, 1 .. n_audio_ctx. */
sotto_status st_net_set_audio_ctx(st_net *net, int n_ctx, sotto_error *err);
/* true: of the padding behind the frames of the coming windows only some positions are computed (sotto_padding). */
void st_net_set_thin_padding(st_net *net, bool thin);
/* NULL: the own encoder. */
void st_net_set_encoder(st_net *net, st_encode_outside encode, void *user);

typedef struct st_net_bytes {
    uint64_t self_cache, cross_cache, encode, decode;
} st_net_bytes;
st_net_bytes st_net_get_bytes(const st_net *net);
/* The part of one device. */
void st_net_device_bytes(const st_net *net, int device, uint64_t *caches, uint64_t *compute);

/* "encode" or "decode" (a step of all sequences); NULL for another name. */
const sotto_plan *st_net_plan(const st_net *net, const char *name);

/* The last window's encoder output [n_ctx, D], for tests and tools; SOTTO_E_UNSUPPORTED after another plan has run, and of a
 * window whose padding is thin. */
sotto_status st_net_encoder_output(st_net *net, float *out, sotto_error *err);

#endif
