/* graphs.h: the encoder's and the decoder's graphs. */
#ifndef SOTTO_SRC_MODELS_WHISPER_GRAPHS_H
#define SOTTO_SRC_MODELS_WHISPER_GRAPHS_H

#include "models/whisper/model_impl.h"

/* Keys and values of each decoder layer. D = state of the model. */
typedef struct st_caches {
    sotto_tensor **self_k, **self_v;   /* [n_window * n_cell, D] */
    sotto_tensor **cross_k, **cross_v; /* [n_head, n_window * n_audio_ctx, D / n_head]: a head's cells lie together */
} st_caches;

typedef struct st_encode_graph {
    sotto_graph *graph;
    sotto_tensor *input;  /* log-mel [2 n_ctx, n_mels], or with own_encoder false the encoder's output [n_ctx, D] */
    sotto_tensor *keep;   /* i32 [n_kept]: positions that are kept behind the convolutions; NULL when all are */
    sotto_tensor *spread; /* i32 [n_ctx]: which of these stands in the caches for each position; NULL with keep */
    sotto_tensor *output; /* [n_kept, D] */
} st_encode_graph;

typedef struct st_encode_shape {
    int window;        /* whose cross caches are filled */
    int n_ctx, n_kept; /* positions of the convolutions and the caches and, at most as many, of all between them */
    bool own_encoder;
} st_encode_shape;

/* From log-mel (or a given encoder output, of which all positions are kept) to the cross caches of a window. */
sotto_status st_graph_encode(const sotto_whisper_model *m, const st_caches *caches, const st_encode_shape *shape,
                             st_encode_graph *out, sotto_error *err);

/* What attention asks of each row, i32 [n]. */
typedef struct st_decode_rows {
    sotto_tensor *sequence, *n_kv;
    sotto_tensor *cross_base, *cross_n;
} st_decode_rows;

typedef struct st_decode_graph {
    sotto_graph *graph;
    sotto_tensor *token, *position; /* i32 [n_rows] */
    sotto_tensor *cell;             /* i32 [n_rows]: where the row's key and value go; -1 = a padding row */
    sotto_tensor *list;             /* i32 [n_seq, n_text_ctx]: cells of each sequence */
    st_decode_rows rows;            /* of n_rows */
    sotto_tensor *want;             /* i32 [n_want]: rows whose logits are wanted; NULL when all are */
    st_decode_rows wanted;          /* of these; NULL when all are */
    sotto_tensor *logits;           /* [n_want, n_vocab] */
    sotto_tensor *blocks;           /* [n_want, 2, blocks]: sotto_block_sums of these */
} st_decode_graph;

sotto_status st_graph_decode(const sotto_whisper_model *m, const st_caches *caches, int n_seq, int n_rows, int n_want,
                             st_decode_graph *out, sotto_error *err);

#endif
