/* sampler_impl.h: samplers of one vocabulary that share what a grammar needs of it. */
#ifndef SOTTO_SRC_MODELS_COMMON_SAMPLER_IMPL_H
#define SOTTO_SRC_MODELS_COMMON_SAMPLER_IMPL_H

#include "models/common/grammar_filter.h"
#include "sotto/sampler.h"

/* As sotto_sampler_create. tree: of the texts that options' callbacks give; NULL: the sampler makes its own at need. */
sotto_status st_sampler_create(int32_t n_vocab, const sotto_sampler_options *options, st_shared_tree *tree,
                               sotto_sampler **out, sotto_error *err);

#endif
