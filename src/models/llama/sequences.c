/* sequences.c: lengths, copies and shifts: cells change hands; only keys that move to another position are computed anew. */
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "models/llama/session_impl.h"

sotto_status st_llama_check_seq(const sotto_llama_session *s, int32_t seq, const char *call, sotto_error *err)
{
    if (!s)
        return st_fail(err, SOTTO_E_ARGUMENT, "%s: session is NULL", call);
    if (seq < 0 || seq >= s->o.n_seq)
        return st_fail(err, SOTTO_E_ARGUMENT, "%s: sequence %d, expected 0 to %d", call, (int)seq, s->o.n_seq - 1);
    return SOTTO_OK;
}

int64_t sotto_llama_seq_length(const sotto_llama_session *session, int32_t seq)
{
    return session && seq >= 0 && seq < session->o.n_seq ? session->cells.length[seq] : 0;
}

const int32_t *sotto_llama_seq_tokens(const sotto_llama_session *session, int32_t seq)
{
    return session && seq >= 0 && seq < session->o.n_seq ? st_llama_tokens(session, seq) : NULL;
}

sotto_status sotto_llama_seq_truncate(sotto_llama_session *session, int32_t seq, int64_t length, sotto_error *err)
{
    ST_TRY(st_llama_check_seq(session, seq, "sotto_llama_seq_truncate", err));
    if (length < 0)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_seq_truncate: length is %lld", (long long)length);
    if (length < session->cells.length[seq])
        st_cells_truncate(&session->cells, seq, (int32_t)length);
    return SOTTO_OK;
}

sotto_status sotto_llama_seq_copy(sotto_llama_session *session, int32_t dst, int32_t src, int64_t length,
                                  sotto_error *err)
{
    ST_TRY(st_llama_check_seq(session, dst, "sotto_llama_seq_copy", err));
    ST_TRY(st_llama_check_seq(session, src, "sotto_llama_seq_copy", err));
    const int32_t have = session->cells.length[src];
    if (length < -1 || length > have)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_seq_copy: length %lld, expected -1 to %d", (long long)length,
                       (int)have);
    const int32_t n = length < 0 ? have : (int32_t)length;
    if (dst != src)
        memcpy(st_llama_tokens(session, dst), st_llama_tokens(session, src), (size_t)n * sizeof(int32_t));
    st_cells_reorder(&session->cells, &dst, &src, 1, n);
    return SOTTO_OK;
}

/* ---- shift ---- */

typedef struct shift_plan {
    sotto_plan *plan;
    st_llama_shift io;
    int n_rows;
} shift_plan;

static sotto_status make_plan(sotto_llama_session *s, int n_rows, bool values, shift_plan *out, sotto_error *err)
{
    *out = (shift_plan){.n_rows = n_rows};
    const sotto_status status = st_llama_graph_shift(s->model, &s->caches, n_rows, values, &out->io, err);
    if (status == SOTTO_OK)
        return sotto_plan_create_take(s->backend, s->arena, out->io.graph, &out->plan, err);
    sotto_graph_free(out->io.graph);
    return status;
}

/* Rows behind the end have cell -1 in both lists. */
static sotto_status move_piece(sotto_llama_session *s, const shift_plan *p, const int32_t *from, const int32_t *to,
                               int n, int32_t turn, sotto_error *err)
{
    int32_t *at[3];
    for (int i = 0; i < 3; i++)
        at[i] = s->rows + (size_t)i * (size_t)s->o.n_batch;
    for (int i = 0; i < p->n_rows; i++) {
        at[0][i] = i < n ? from[i] : -1;
        at[1][i] = i < n ? to[i] : -1;
        at[2][i] = turn;
    }
    sotto_tensor *const inputs[3] = {p->io.from, p->io.to, p->io.turn};
    for (int i = 0; i < 3; i++)
        ST_TRY(sotto_plan_set(p->plan, inputs[i], 0, at[i], (size_t)p->n_rows * sizeof(int32_t), err));
    return sotto_plan_run(p->plan, &s->run, err);
}

static sotto_status move_cells(sotto_llama_session *s, const int32_t *from, const int32_t *to, int32_t n, int32_t turn,
                               sotto_error *err)
{
    bool values = false;
    for (int32_t i = 0; i < n; i++)
        values = values || from[i] != to[i];
    const int rows = n < s->o.n_batch ? n : s->o.n_batch;
    shift_plan p;
    ST_TRY(make_plan(s, rows, values, &p, err));
    sotto_status status = SOTTO_OK;
    for (int32_t i = 0; i < n && status == SOTTO_OK; i += rows)
        status = move_piece(s, &p, from + i, to + i, n - i < rows ? n - i : rows, turn, err);
    sotto_plan_free(p.plan);
    return status;
}

sotto_status sotto_llama_seq_shift(sotto_llama_session *session, int32_t seq, int64_t keep, int64_t drop,
                                   sotto_error *err)
{
    ST_TRY(st_llama_check_seq(session, seq, "sotto_llama_seq_shift", err));
    const int32_t length = session->cells.length[seq];
    if (keep < 0 || drop < 0 || keep > length || drop > length - keep)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_seq_shift: keep %lld and drop %lld of %d tokens",
                       (long long)keep, (long long)drop, (int)length);
    const int32_t rest = length - (int32_t)keep - (int32_t)drop;
    if (drop == 0)
        return SOTTO_OK;
    int32_t *from = st_alloc(2 * (size_t)rest + 1, sizeof *from);
    if (!from)
        return st_fail_memory(err, 2 * (uint64_t)rest * sizeof *from, "a shift");
    int32_t *to = from + rest;
    if (!st_cells_shift(&session->cells, seq, (int32_t)keep, (int32_t)drop, from, to)) {
        st_free(from);
        return st_fail(err, SOTTO_E_FULL, "context full: %d positions are shared with other sequences and %d are free",
                       (int)rest, session->cells.n_unused);
    }
    int32_t *tokens = st_llama_tokens(session, seq);
    memmove(tokens + keep, tokens + keep + drop, (size_t)rest * sizeof *tokens);
    const sotto_status status = rest > 0 ? move_cells(session, from, to, rest, -(int32_t)drop, err) : SOTTO_OK;
    st_free(from);
    if (status != SOTTO_OK) /* some keys may have moved, and some not */
        st_cells_truncate(&session->cells, seq, (int32_t)keep);
    return status;
}
