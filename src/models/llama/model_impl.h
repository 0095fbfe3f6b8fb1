/* model_impl.h: a loaded model of the LLaMA family: sizes, tokens and weights on devices. Immutable after loading. */
#ifndef SOTTO_SRC_MODELS_LLAMA_MODEL_IMPL_H
#define SOTTO_SRC_MODELS_LLAMA_MODEL_IMPL_H

#include "models/common/chat.h"
#include "models/common/grammar_filter.h"
#include "models/common/tokenizer.h"
#include "models/common/weights.h"
#include "models/llama/hparams.h"
#include "sotto/llama.h"

enum { ST_Q = 0, ST_K = 1, ST_V = 2, ST_GATE = 0, ST_UP = 1, ST_FUSED_PARTS = 3 };

/* Up to three matrices that meet the same rows. Those of one type are one product. */
typedef struct st_fused {
    int n;                           /* products */
    sotto_tensor *w[ST_FUSED_PARTS]; /* [rows, in] of each product */
    sotto_tensor *b[ST_FUSED_PARTS]; /* [rows] or NULL */
    int of[ST_FUSED_PARTS];          /* the product that has the part */
    int64_t start[ST_FUSED_PARTS];   /* its first column there */
    int64_t rows[ST_FUSED_PARTS];    /* columns of the part */
} st_fused;

/* E = n_embd */
typedef struct st_llama_layer {
    sotto_tensor *attn_norm, *ffn_norm;           /* [E] */
    sotto_tensor *attn_post_norm, *ffn_post_norm; /* [E] or NULL */
    sotto_tensor *q_norm, *k_norm;                /* [d_head] or NULL */
    sotto_tensor *rope_factors[2]; /* [n_rot / 2] or NULL; of contexts up to the original length, beyond it */
    st_fused qkv;                  /* [n_head d_head + 2 n_head_kv d_head, E] */
    sotto_tensor *out, *out_b;     /* [E, n_head d_head], [E] or NULL */
    st_fused gate_up;              /* [2 n_ff, E] */
    sotto_tensor *down, *down_b;   /* [E, n_ff], [E] or NULL */
} st_llama_layer;

struct sotto_llama_model {
    st_llama_hparams h;
    sotto_backend *backend; /* loads weights; sessions open their own on the same devices */
    sotto_logger logger;
    bool measure_only;
    sotto_dtype compute; /* of products: SOTTO_F32, SOTTO_F16 or SOTTO_I8 */
    sotto_store *store;
    sotto_model_file *file; /* NULL, or where weights are read at their place */
    st_weights weights;     /* what is where, and the names in the file */
    st_llama_layer *layer;
    st_llama_rope rope[2][2];        /* [all or window][short or long] */
    float *rope_factors;             /* [2, 2, n_rot / 2] in the same order */
    sotto_tensor *lookup;            /* [n_vocab, E]: tokens to rows */
    sotto_tensor *output_norm;       /* [E] */
    sotto_tensor *output, *output_b; /* [n_vocab, E], often the same as lookup; [n_vocab] or NULL */
    char *name;                      /* general.name */
    int64_t n_params;
    uint64_t fingerprint; /* of sizes and some weights: states of one model are not those of another */
    double load_seconds;
    st_tokenizer *tokenizer;
    st_shared_tree *texts;      /* of the tokens, for grammars */
    const st_chat_format *chat; /* NULL: none that is known, for which no_chat has the reason */
    sotto_error no_chat;
};

/* Takes over nothing: file may be freed after. */
sotto_status st_llama_model_load(const sotto_model_file *file, const sotto_llama_model_options *options,
                                 sotto_llama_model **out, sotto_error *err);

#endif
