/* engine.h: what speech logic needs of a network. The real one is net.c; tests give a scripted one.
 *
 * Windows are numbered 0 .. n_window - 1. Sequences [w * n_seq, (w + 1) * n_seq) belong to window w; each has a self-attention
 * cache of tokens at positions 0, 1, 2, ... A row attends to what was encoded last in the window of its sequence. */
#ifndef SOTTO_SRC_MODELS_WHISPER_ENGINE_H
#define SOTTO_SRC_MODELS_WHISPER_ENGINE_H

#include "sotto/whisper.h"

typedef struct st_row {
    int32_t token;
    int32_t pos; /* the row's cell is written, then cells 0 .. pos of its sequence are attended to */
    int32_t seq;
    /* Room for the row's logits [n_vocab], or NULL: they are not wanted. decode() may leave another place here, of its own:
     * that may be written to, until encode or decode is called again. */
    float *logits;
    /* decode() may leave a place of its own here, too: of every 64 of those logits the largest, and behind these the sums of
     * exp(logit - largest), [2, ceil(n_vocab / 64)]. */
    float *blocks;
} st_row;

typedef struct st_engine {
    void *ctx;
    int n_vocab, n_text_ctx, n_seq, n_window; /* n_seq: of one window */
    /* Encode a window: log-mel [3000, n_mels] (time outermost) in the original's scaling, zero from n_frames on. Fills the
     * window's cross caches. */
    sotto_status (*encode)(void *ctx, int window, const float *log_mel, int n_frames, sotto_error *err);
    /* Any number of rows of any windows. Rows of one sequence come in order of position. */
    sotto_status (*decode)(void *ctx, st_row *rows, int n_rows, sotto_error *err);
    /* Make sequence dst[i] see the cells of src[i] at positions below `length`, all at once (a permutation with repeats);
     * no data is copied. All are of one window, and nothing else is read or written. */
    void (*reorder)(void *ctx, const int32_t *dst, const int32_t *src, int n, int length);
    /* Forget the cells of a window's sequences; nothing else is read or written. */
    void (*reset)(void *ctx, int window);
} st_engine;

#endif
