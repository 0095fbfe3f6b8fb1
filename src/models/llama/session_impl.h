/* session_impl.h: what the files of a session share. */
#ifndef SOTTO_SRC_MODELS_LLAMA_SESSION_IMPL_H
#define SOTTO_SRC_MODELS_LLAMA_SESSION_IMPL_H

#include "models/common/cells.h"
#include "models/llama/graph.h"

enum {
    ST_LLAMA_PLANS = 48,
    ST_LLAMA_LISTS = 6 /* inputs with a number for each row, and the rows wanted */
};

typedef struct st_llama_plan {
    int n_rows, n_want;
    uint64_t last_use;
    sotto_plan *plan;
    st_llama_graph io;
} st_llama_plan;

struct sotto_llama_session {
    const sotto_llama_model *model;
    sotto_llama_session_options o; /* all sizes filled in */
    sotto_backend *backend;
    sotto_arena *arena;
    sotto_store *store; /* caches and lists */
    st_llama_caches caches;
    sotto_tensor **tensors; /* the arrays of caches in one block */
    sotto_tensor **lists;   /* [n_lists]: one for each device with caches */
    int n_lists;
    st_cells cells;
    int32_t *tokens;  /* [n_seq, n_ctx] */
    int32_t *lengths; /* [n_seq]: before a call that may fail */
    st_llama_plan plans[ST_LLAMA_PLANS];
    int n_plans;
    uint64_t use;
    int32_t *rows; /* scratch of inputs: ST_LLAMA_LISTS lists of n_batch */
    float *logits; /* [n_logits, n_vocab] */
    int64_t logits_cap;
    int n_logits;
    sotto_run_options run;
    sotto_llama_observer observer;
    void *observer_user;
    float *seen; /* scratch of the observer */
    int64_t seen_cap;
};

static inline int32_t *st_llama_tokens(const sotto_llama_session *s, int32_t seq)
{
    return s->tokens + (size_t)seq * (size_t)s->o.n_ctx;
}

sotto_status st_llama_check_seq(const sotto_llama_session *s, int32_t seq, const char *call, sotto_error *err);
/* A plan of n_rows rows, n_want of which give logits; exactly these numbers. Valid until the next call. */
sotto_status st_llama_plan_for(sotto_llama_session *s, int n_rows, int n_want, st_llama_plan **out, sotto_error *err);
/* Brings the devices' lists of cells up to date. Any plan of the session will do. */
sotto_status st_llama_send_lists(sotto_llama_session *s, sotto_plan *plan, sotto_error *err);
/* A state into a sequence that is empty; after a failure something may be in it. */
sotto_status st_llama_state_take(sotto_llama_session *s, int32_t seq, const void *data, size_t size, sotto_error *err);

#endif
