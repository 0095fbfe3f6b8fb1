/* decode.c: rows of any sequences through the network. */
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "models/llama/session_impl.h"

enum {
    /* More than a few rows are padded to a multiple, so that few plans serve all numbers. */
    EXACT_ROWS = 16,
    SMALL_ROWS = 128,
    SMALL_STEP = 16,
    LARGE_STEP = 32,
    EXACT_WANT = 4,
    WANT_STEP = 8,
    MOST_LOGITS = 1 << 25 /* numbers computed at once: 128 MiB */
};

static int at_most(int n, int most)
{
    return n < most ? n : most;
}

static int padded_rows(const sotto_llama_session *s, int n)
{
    if (n <= EXACT_ROWS)
        return n;
    const int step = n <= SMALL_ROWS ? SMALL_STEP : LARGE_STEP;
    return at_most((n + step - 1) / step * step, s->o.n_batch);
}

static int padded_want(int n, int n_rows, int padded)
{
    if (n == n_rows)
        return padded;
    if (n <= EXACT_WANT)
        return n;
    return at_most((n + WANT_STEP - 1) / WANT_STEP * WANT_STEP, padded);
}

typedef struct row_lists {
    int32_t *token, *position, *cell, *sequence, *n_kv, *want;
} row_lists;

static sotto_status fill_lists(sotto_llama_session *s, const sotto_llama_row *rows, int n, const row_lists *in,
                               int *n_want, sotto_error *err)
{
    *n_want = 0;
    for (int i = 0; i < n; i++) {
        const sotto_llama_row *r = &rows[i];
        const int32_t position = s->cells.length[r->seq];
        const int32_t cell = st_cells_put(&s->cells, r->seq, position);
        if (cell < 0)
            return st_fail(err, SOTTO_E_INTERNAL, "no cell for position %d of sequence %d, %d of %d are free",
                           (int)position, (int)r->seq, s->cells.n_unused, s->o.n_ctx);
        st_llama_tokens(s, r->seq)[position] = r->token;
        in->token[i] = r->token;
        in->position[i] = position;
        in->cell[i] = cell;
        in->sequence[i] = r->seq;
        in->n_kv[i] = position + 1;
        if (r->logits)
            in->want[(*n_want)++] = i;
    }
    return SOTTO_OK;
}

static void pad_lists(const row_lists *in, int from, int to)
{
    for (int i = from; i < to; i++) {
        in->token[i] = in->position[i] = in->sequence[i] = in->n_kv[i] = 0;
        in->cell[i] = -1;
    }
}

static sotto_status set_lists(sotto_llama_session *s, const st_llama_plan *p, const row_lists *in, sotto_error *err)
{
    const st_llama_graph *io = &p->io;
    const size_t bytes = (size_t)p->n_rows * sizeof(int32_t);
    const struct {
        sotto_tensor *t;
        const int32_t *data;
    } rows[] = {{io->token, in->token},
                {io->position, in->position},
                {io->cell, in->cell},
                {io->sequence, in->sequence},
                {io->n_kv, in->n_kv}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ST_TRY(sotto_plan_set(p->plan, rows[i].t, 0, rows[i].data, bytes, err));
    if (io->want)
        ST_TRY(sotto_plan_set(p->plan, io->want, 0, in->want, (size_t)p->n_want * sizeof(int32_t), err));
    return st_llama_send_lists(s, p->plan, err);
}

/* Inputs of products, under the names of the weights in the file. */
static sotto_status tell_observer(sotto_llama_session *s, const st_llama_plan *p, int n_rows, int n_want,
                                  sotto_error *err)
{
    for (int i = 0; i < p->io.n_seen; i++) {
        const st_llama_seen *seen = &p->io.seen[i];
        const int64_t n = seen->wanted_rows ? n_want : n_rows, width = sotto_tensor_dim(seen->x, 0);
        if (n == 0)
            continue;
        if (!st_grow(&s->seen, &s->seen_cap, n * width, sizeof *s->seen))
            return st_fail_memory(err, (uint64_t)(n * width) * sizeof *s->seen, "rows to observe");
        ST_TRY(sotto_plan_get(p->plan, seen->x, 0, s->seen, (size_t)(n * width) * sizeof *s->seen, err));
        const st_weights *list = &s->model->weights;
        for (int64_t w = 0; w < list->count; w++)
            for (int k = 0; k < list->list[w].n_parts; k++)
                if (list->list[w].out >= (sotto_tensor **)(uintptr_t)seen->w &&
                    list->list[w].out < (sotto_tensor **)(uintptr_t)seen->w + seen->n_w)
                    s->observer(s->observer_user, list->list[w].part[k], s->seen, n, width);
    }
    return SOTTO_OK;
}

static sotto_status decode_piece(sotto_llama_session *s, const sotto_llama_row *rows, int n, sotto_error *err)
{
    int32_t *at[ST_LLAMA_LISTS];
    for (int i = 0; i < ST_LLAMA_LISTS; i++)
        at[i] = s->rows + (size_t)i * (size_t)s->o.n_batch;
    const row_lists in = {at[0], at[1], at[2], at[3], at[4], at[5]};
    int n_want;
    ST_TRY(fill_lists(s, rows, n, &in, &n_want, err));
    const int padded = padded_rows(s, n), want = padded_want(n_want, n, padded);
    pad_lists(&in, n, padded);
    for (int i = n_want; i < want; i++)
        in.want[i] = i < n ? i : n - 1;
    st_llama_plan *p;
    ST_TRY(st_llama_plan_for(s, padded, want, &p, err));
    ST_TRY(set_lists(s, p, &in, err));
    ST_TRY(sotto_plan_run(p->plan, &s->run, err));
    if (n_want > 0) {
        const size_t row = (size_t)s->model->h.n_vocab;
        ST_TRY(sotto_plan_get(p->plan, p->io.logits, 0, s->logits + (size_t)s->n_logits * row,
                              (size_t)n_want * row * sizeof *s->logits, err));
        s->n_logits += n_want;
    }
    return s->observer ? tell_observer(s, p, n, n_want, err) : SOTTO_OK;
}

/* Rows of the next piece: no more than a batch, and no more logits than are computed at once. */
static int piece(const sotto_llama_session *s, const sotto_llama_row *rows, int n)
{
    const int most = MOST_LOGITS / s->model->h.n_vocab;
    int take = 0, want = 0;
    while (take < n && take < s->o.n_batch) {
        if (rows[take].logits && want == (most > 1 ? most : 1))
            break;
        want += rows[take++].logits;
    }
    return take;
}

static sotto_status check_rows(sotto_llama_session *s, const sotto_llama_row *rows, int n, int *n_want, sotto_error *err)
{
    *n_want = 0;
    for (int i = 0; i < n; i++) {
        if (rows[i].token < 0 || rows[i].token >= s->model->h.n_vocab)
            return st_fail(err, SOTTO_E_ARGUMENT, "row %d: token %d, expected 0 to %d", i, (int)rows[i].token,
                           (int)s->model->h.n_vocab - 1);
        if (rows[i].seq < 0 || rows[i].seq >= s->o.n_seq)
            return st_fail(err, SOTTO_E_ARGUMENT, "row %d: sequence %d, expected 0 to %d", i, (int)rows[i].seq,
                           s->o.n_seq - 1);
        *n_want += rows[i].logits;
    }
    if (n > s->cells.n_unused)
        return st_fail(err, SOTTO_E_FULL, "context full: %d tokens more, the context holds %d, of which %d are free", n,
                       s->o.n_ctx, s->cells.n_unused);
    return SOTTO_OK;
}

static sotto_status decode(sotto_llama_session *s, const sotto_llama_row *rows, int n, int n_want, sotto_error *err)
{
    const int64_t floats = (int64_t)n_want * s->model->h.n_vocab;
    s->n_logits = 0;
    if (!st_grow(&s->logits, &s->logits_cap, floats, sizeof *s->logits))
        return st_fail_memory(err, (uint64_t)floats * sizeof *s->logits, "logits");
    for (int i = 0; i < n;) {
        const int take = piece(s, rows + i, n - i);
        ST_TRY(decode_piece(s, rows + i, take, err));
        i += take;
    }
    return SOTTO_OK;
}

sotto_status sotto_llama_decode(sotto_llama_session *session, const sotto_llama_row *rows, int n, sotto_error *err)
{
    if (!session || !rows || n < 1)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_decode: %s",
                       n < 1 ? "n is less than 1" : "session or rows is NULL");
    if (session->model->measure_only)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_decode: the model was opened only to measure it");
    int n_want;
    ST_TRY(check_rows(session, rows, n, &n_want, err));
    memcpy(session->lengths, session->cells.length, (size_t)session->o.n_seq * sizeof *session->lengths);
    const sotto_status status = decode(session, rows, n, n_want, err);
    for (int32_t seq = 0; status != SOTTO_OK && seq < session->o.n_seq; seq++)
        st_cells_truncate(&session->cells, seq, session->lengths[seq]);
    session->n_logits = status == SOTTO_OK ? session->n_logits : 0;
    return status;
}

sotto_status sotto_llama_decode_tokens(sotto_llama_session *session, int32_t seq, const int32_t *tokens, int64_t n,
                                       sotto_error *err)
{
    if (!session || !tokens || n < 1)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_decode_tokens: %s",
                       n < 1 ? "n is less than 1" : "session or tokens is NULL");
    if (n > session->o.n_ctx)
        return st_fail(err, SOTTO_E_FULL, "context full: %lld tokens, the context holds %d", (long long)n,
                       session->o.n_ctx);
    sotto_llama_row *rows = st_alloc((size_t)n, sizeof *rows);
    if (!rows)
        return st_fail_memory(err, (uint64_t)n * sizeof *rows, "rows");
    for (int64_t i = 0; i < n; i++)
        rows[i] = (sotto_llama_row){.token = tokens[i], .seq = seq, .logits = i == n - 1};
    const sotto_status status = sotto_llama_decode(session, rows, (int)n, err);
    st_free(rows);
    return status;
}

const float *sotto_llama_logits(const sotto_llama_session *session, int i)
{
    if (!session)
        return NULL;
    const int at = i < 0 ? session->n_logits + i : i;
    return at >= 0 && at < session->n_logits ? session->logits + (size_t)at * (size_t)session->model->h.n_vocab : NULL;
}
