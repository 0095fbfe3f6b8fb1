/* llama_support.h: the small seeded models of the LLaMA family (tools/make_gguf.py), for tests. */
#ifndef SOTTO_TESTS_GOLDEN_LLAMA_SUPPORT_H
#define SOTTO_TESTS_GOLDEN_LLAMA_SUPPORT_H

#include "sotto/llama.h"

enum { LLAMA_VOCAB = 320, LLAMA_TOKENS = 48 };

/* The token at position i of the text that llama.cpp was asked about. */
int32_t llama_token(int i);
/* False when the models have not been made. */
bool llama_is_made(void);
const char *llama_path(const char *name);
/* A model on the CPU with one thread in f32 unless options say otherwise; fails the test when it cannot be opened. */
sotto_llama_model *llama_open(const char *name, const sotto_llama_model_options *options);
sotto_llama_model_options llama_options(const char *device, int gpu_layers, const char *compute);
/* A session with caches of f32. */
sotto_llama_session *llama_session(const sotto_llama_model *model, int n_ctx, int n_batch, int n_seq);
/* Appends tokens [from, to) of the text to a sequence. */
void llama_feed(sotto_llama_session *s, int32_t seq, int from, int to);
/* Largest difference, in parts of the largest number of `want`. */
double llama_difference(const float *got, const float *want, int n);

#endif
