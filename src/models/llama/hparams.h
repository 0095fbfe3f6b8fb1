/* hparams.h: the architectures of the LLaMA family and the sizes of a model, read from a file's metadata and checked.
 * What tells one architecture from another is a row of one table; the graph asks the row, never the name. */
#ifndef SOTTO_SRC_MODELS_LLAMA_HPARAMS_H
#define SOTTO_SRC_MODELS_LLAMA_HPARAMS_H

#include "sotto/graph.h"
#include "sotto/model.h"

typedef struct st_llama_arch {
    const char *name; /* general.architecture */
    sotto_rope_pairs pairs;
    sotto_activation act;       /* of the gate */
    bool bias;                  /* q, k and v have biases */
    bool head_norm;             /* q and k are normalised, head by head */
    bool post_norm;             /* what attention and feed-forward add is normalised, too */
    bool scaled_embedding;      /* x sqrt(n_embd) */
    bool fused_qkv, fused_gate; /* in the file: attn_qkv; ffn_up holds gate and up */
    bool whole_rotation;        /* every element of a head is rotated */
    int window_pattern;         /* of so many layers the last one sees everything; 0: no windows */
    int full_scale_layers; /* models of so many layers scale scores by n_embd / n_head instead of d_head; 0: none */
} st_llama_arch;

typedef enum st_rope_scaling { ST_ROPE_NONE, ST_ROPE_LINEAR, ST_ROPE_YARN, ST_ROPE_LONGROPE } st_rope_scaling;

typedef struct st_llama_hparams {
    const st_llama_arch *arch;
    int32_t n_vocab, n_ctx_train, n_embd, n_layer, n_head, n_head_kv, d_head, n_ff;
    int32_t n_rot;
    int32_t window;         /* 0: none */
    int32_t window_pattern; /* as in the architecture */
    float eps;
    float attention_scale;
    float soft_cap; /* of logits: cap tanh(x / cap); 0: none */
    float rope_base, rope_base_window;
    st_rope_scaling scaling;
    float scaling_factor;
    float scaling_attention; /* magnitude */
    int32_t n_ctx_original;  /* before stretching */
} st_llama_hparams;

/* True when general.architecture is one of the table. */
bool st_llama_is_known(const sotto_model_file *file);
/* SOTTO_E_UNSUPPORTED for an architecture that is not in the table, SOTTO_E_FORMAT with key, value and range otherwise. */
sotto_status st_llama_hparams_read(const sotto_model_file *file, st_llama_hparams *out, sotto_error *err);

/* Positions that layer i sees; 0: all. */
static inline int st_llama_window(const st_llama_hparams *h, int i)
{
    const bool all = h->window == 0 || (h->window_pattern > 0 && i % h->window_pattern == h->window_pattern - 1);
    return all ? 0 : h->window;
}

/* How one kind of layer rotates. */
typedef struct st_llama_rope {
    float base, scale, magnitude;
    bool has_factors;
} st_llama_rope;

/* Rotation of layers with a window or without, when the file's own factors are file_factors [n_rot / 2] or NULL. factors gets n_rot / 2 numbers
 * when has_factors says so: angles are divided by them. */
st_llama_rope st_llama_rope_table(const st_llama_hparams *h, bool window, const float *file_factors, float *factors);

#endif
