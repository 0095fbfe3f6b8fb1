/* engine.h: what speech logic needs of a network. The real one is net.c; tests give a scripted one.
 *
 * Sequences are numbered 0 .. n_seq - 1; each has a self-attention cache of tokens at positions 0, 1, 2, ...
 * All rows of one decode() call attend to the window of the last encode(). */
#ifndef SOTTO_SRC_MODELS_WHISPER_ENGINE_H
#define SOTTO_SRC_MODELS_WHISPER_ENGINE_H

#include "sotto/whisper.h"

typedef struct st_row {
    int32_t token;
    int32_t pos; /* the row's cell is written, then cells 0 .. pos of its sequence are attended to */
    int32_t seq;
    bool want_logits;
} st_row;

typedef struct st_engine {
    void *ctx;
    int n_vocab, n_text_ctx, n_seq;
    /* Encode a window: log-mel [3000, n_mels] (time outermost) in the original's scaling, zero-padded. Fills the cross caches. */
    sotto_status (*encode)(void *ctx, const float *log_mel, sotto_error *err);
    /* Logits of the rows that want them, in row order, [n_want, n_vocab]. Rows of one sequence come in order of position. */
    sotto_status (*decode)(void *ctx, const st_row *rows, int n_rows, float *logits, sotto_error *err);
    /* Make sequence dst[i] see the cells of src[i] at positions below `length`, all at once (a permutation with repeats);
     * no data is copied. */
    void (*reorder)(void *ctx, const int32_t *dst, const int32_t *src, int n, int length);
    /* Forget the sequences' cells. */
    void (*reset)(void *ctx);
} st_engine;

#endif
