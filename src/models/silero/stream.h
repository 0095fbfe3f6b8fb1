/* stream.h: what a stream knows beyond include/sotto/vad.h, for those who cut recordings while they arrive. */
#ifndef SOTTO_SRC_MODELS_SILERO_STREAM_H
#define SOTTO_SRC_MODELS_SILERO_STREAM_H

#include "models/silero/spans.h"

const st_vad_spans *st_vad_stream_spans(const sotto_vad_stream *stream);

#endif
