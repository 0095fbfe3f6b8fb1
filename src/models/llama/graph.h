/* graph.h: the graphs of a session: rows of any sequences through all layers, and keys that move to other positions. */
#ifndef SOTTO_SRC_MODELS_LLAMA_GRAPH_H
#define SOTTO_SRC_MODELS_LLAMA_GRAPH_H

#include "models/llama/model_impl.h"

/* Keys and values of each layer, [n_ctx, n_head_kv d_head], and the lists of cells of all sequences, i32 [n_seq, n_ctx]: of
 * each layer the one on its device. */
typedef struct st_llama_caches {
    sotto_tensor **k, **v, **list;
    int n_ctx;
    bool stretched; /* the context is longer than what the model was made for, where it has tables for that */
} st_llama_caches;

/* A product's input that somebody wants to see, and whose. */
typedef struct st_llama_seen {
    sotto_tensor *x;
    sotto_tensor *const *w; /* n_w matrices, as listed in the model's weights */
    int n_w;
    bool wanted_rows; /* only rows whose logits are wanted */
} st_llama_seen;

typedef struct st_llama_graph {
    sotto_graph *graph;
    sotto_tensor *token, *position; /* i32 [n_rows] */
    sotto_tensor *cell;             /* i32 [n_rows]: where the row's key and value go; -1 = a padding row */
    sotto_tensor *sequence, *n_kv;  /* i32 [n_rows] */
    sotto_tensor *want;             /* i32 [n_want]: rows whose logits are wanted; NULL when all are, or none */
    sotto_tensor *logits;           /* [n_want, n_vocab]; NULL when n_want is 0 */
    st_llama_seen *seen;            /* n_seen of them when observed; freed by who made the graph */
    int n_seen;
} st_llama_graph;

enum { ST_LLAMA_SEEN_OF_LAYER = 4 };

/* observed: inputs of products are outputs of the graph. */
sotto_status st_llama_graph_decode(const sotto_llama_model *m, const st_llama_caches *caches, int n_rows, int n_want,
                                   bool observed, st_llama_graph *out, sotto_error *err);

typedef struct st_llama_shift {
    sotto_graph *graph;
    sotto_tensor *from, *to; /* i32 [n_rows]: cells */
    sotto_tensor *turn;      /* i32 [n_rows]: positions to turn by */
} st_llama_shift;

/* Keys of cells `from`, turned, into cells `to`; with `values` also the values. Cells outside the cache are skipped. */
sotto_status st_llama_graph_shift(const sotto_llama_model *m, const st_llama_caches *caches, int n_rows, bool values,
                                  st_llama_shift *out, sotto_error *err);

#endif
