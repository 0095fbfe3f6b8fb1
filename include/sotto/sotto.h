/* sotto.h: everything. */
#ifndef SOTTO_SOTTO_H
#define SOTTO_SOTTO_H

#include "backend.h"
#include "base.h"
#include "grammar.h"
#include "graph.h"
#include "model.h"
#include "quant.h"
#include "sampler.h"
#include "tensor.h"
#include "vad.h"
#include "whisper.h"

#endif
