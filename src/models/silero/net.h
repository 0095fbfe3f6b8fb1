/* net.h: the network of Silero VAD over chunks that follow each other. A run takes ST_VAD_BLOCK chunks: all but the
 * recurrence is computed for all of them at once. The last run may have fewer; those missing count as silence. */
#ifndef SOTTO_SRC_MODELS_SILERO_NET_H
#define SOTTO_SRC_MODELS_SILERO_NET_H

#include "models/silero/model_impl.h"

enum {
    ST_VAD_BLOCK = 32,
    ST_VAD_SPAN = SOTTO_VAD_CHUNK + 2 * ST_VAD_CONTEXT /* samples of a chunk with both its sides */
};

typedef struct st_vad_net st_vad_net;

sotto_status st_vad_net_create(const sotto_vad_model *model, st_vad_net **out, sotto_error *err);
void st_vad_net_free(st_vad_net *net);
/* Forget what was heard. */
void st_vad_net_reset(st_vad_net *net);
/* pcm [BLOCK * CHUNK] follows the samples of the run before; out [BLOCK] gets the probabilities of speech. */
sotto_status st_vad_net_run(st_vad_net *net, const float *pcm, float *out, sotto_error *err);

#endif
