/* llama_support.h: a model of the LLaMA family with one layer, made byte by byte, of which anything can be told wrong. */
#ifndef SOTTO_TESTS_UNIT_LLAMA_SUPPORT_H
#define SOTTO_TESTS_UNIT_LLAMA_SUPPORT_H

#include "formats_support.h"
#include "sotto/llama.h"

enum { TOY_VOCAB = 260, TOY_EMBD = 32, TOY_FF = 64, TOY_HEADS = 4, TOY_HEADS_KV = 2, TOY_CTX = 64 };

typedef struct toy_recipe {
    const char *arch;    /* NULL: "llama" */
    const char *without; /* a key (without the architecture) or a tensor that is left out */
    const char *key;     /* another value for a number, or one more */
    double value;
    const char *text_key, *text; /* one more, or in place of another */
    const char *tensor;          /* another shape */
    int64_t dim[2];
    const char *half; /* a tensor in f16 */
    int n_tokens;     /* 0: as many as there should be */
    bool tied;
} toy_recipe;

blob toy_file(const toy_recipe *r);
/* From such a file, on the CPU with one thread in f32. */
sotto_status toy_load(const toy_recipe *r, sotto_llama_model **out, sotto_error *err);
sotto_llama_model *toy_must_load(const toy_recipe *r);
/* A name of a tensor of the architecture's; NULL behind the last. */
const char *toy_tensor(const char *arch, int i);

#endif
