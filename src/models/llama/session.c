/* session.c: caches, plans and lists of a session; what it takes to run rows is in decode.c. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "models/llama/session_impl.h"

enum { MAX_SEQUENCES = 256, MAX_CONTEXT = 1 << 24, MAX_BATCH = 1 << 16, DEFAULT_CONTEXT = 4096, DEFAULT_BATCH = 512 };

void sotto_llama_session_options_default(sotto_llama_session_options *options)
{
    if (options)
        *options = (sotto_llama_session_options){
            .size = sizeof *options, .n_batch = DEFAULT_BATCH, .n_seq = 1, .cache_k = SOTTO_F16, .cache_v = SOTTO_F16};
}

/* ---- caches ---- */

static sotto_status declare_lists(sotto_llama_session *s, int n_layer, sotto_error *err)
{
    const int n_device = sotto_backend_device_count(s->backend);
    s->lists = st_calloc((size_t)n_device, sizeof *s->lists);
    sotto_tensor **of_device = st_calloc((size_t)n_device, sizeof *of_device);
    if (!s->lists || !of_device) {
        st_free(of_device);
        return st_fail_memory(err, (uint64_t)n_device * sizeof *s->lists, "lists of cells");
    }
    const int64_t dim[2] = {s->o.n_ctx, s->o.n_seq};
    for (int i = 0; i < n_layer; i++) {
        const int d = sotto_backend_cache_device(s->backend, i, n_layer);
        if (!of_device[d]) {
            char name[64];
            snprintf(name, sizeof name, "cells.%d", d);
            sotto_store_set_device(s->store, d);
            of_device[d] = sotto_store_add(s->store, name, SOTTO_I32, 2, dim, false);
            if (of_device[d])
                s->lists[s->n_lists++] = of_device[d];
        }
        s->caches.list[i] = of_device[d];
    }
    st_free(of_device);
    return SOTTO_OK;
}

static sotto_status declare_caches(sotto_llama_session *s, sotto_error *err)
{
    const st_llama_hparams *h = &s->model->h;
    const size_t n = (size_t)h->n_layer;
    ST_TRY(sotto_store_create(s->backend, SOTTO_USAGE_CACHE, &s->store, err));
    s->tensors = st_calloc(3 * n, sizeof *s->tensors);
    if (!s->tensors)
        return st_fail_memory(err, 3 * n * sizeof *s->tensors, "the list of caches");
    s->caches = (st_llama_caches){.k = s->tensors,
                                  .v = s->tensors + n,
                                  .list = s->tensors + 2 * n,
                                  .n_ctx = s->o.n_ctx,
                                  .stretched = s->o.n_ctx > h->n_ctx_original};
    ST_TRY(declare_lists(s, h->n_layer, err));
    const int64_t dim[2] = {(int64_t)h->n_head_kv * h->d_head, s->o.n_ctx};
    for (int i = 0; i < h->n_layer; i++) {
        char name[64];
        sotto_store_set_device(s->store, sotto_backend_cache_device(s->backend, i, h->n_layer));
        snprintf(name, sizeof name, "cache_k.%d", i);
        s->caches.k[i] = sotto_store_add(s->store, name, s->o.cache_k, 2, dim, false);
        snprintf(name, sizeof name, "cache_v.%d", i);
        s->caches.v[i] = sotto_store_add(s->store, name, s->o.cache_v, 2, dim, false);
    }
    return sotto_store_check(s->store, err);
}

sotto_status st_llama_send_lists(sotto_llama_session *s, sotto_plan *plan, sotto_error *err)
{
    const size_t row = (size_t)s->o.n_ctx;
    for (int32_t seq = 0; seq < s->o.n_seq; seq++) {
        int32_t from, to;
        st_cells_changed(&s->cells, seq, &from, &to);
        if (from == to)
            continue;
        const size_t at = (size_t)seq * row + (size_t)from;
        for (int i = 0; i < s->n_lists; i++)
            ST_TRY(sotto_plan_set(plan, s->lists[i], at * sizeof(int32_t), s->cells.list + at,
                                  (size_t)(to - from) * sizeof(int32_t), err));
        st_cells_told(&s->cells, seq);
    }
    return SOTTO_OK;
}

/* ---- plans ---- */

static void free_plan(st_llama_plan *p)
{
    sotto_plan_free(p->plan);
    st_free(p->io.seen);
    *p = (st_llama_plan){0};
}

static void free_plans(sotto_llama_session *s)
{
    for (int i = 0; i < s->n_plans; i++)
        free_plan(&s->plans[i]);
    s->n_plans = 0;
}

static sotto_status build(sotto_llama_session *s, int n_rows, int n_want, st_llama_plan *out, sotto_error *err)
{
    st_llama_plan p = {.n_rows = n_rows, .n_want = n_want};
    sotto_status status = st_llama_graph_decode(s->model, &s->caches, n_rows, n_want, s->observer != NULL, &p.io, err);
    if (status == SOTTO_OK)
        status = sotto_plan_create_take(s->backend, s->arena, p.io.graph, &p.plan, err);
    else
        sotto_graph_free(p.io.graph);
    if (status == SOTTO_OK)
        *out = p;
    else
        st_free(p.io.seen);
    return status;
}

sotto_status st_llama_plan_for(sotto_llama_session *s, int n_rows, int n_want, st_llama_plan **out, sotto_error *err)
{
    st_llama_plan *oldest = &s->plans[0];
    for (int i = 0; i < s->n_plans; i++) {
        st_llama_plan *p = &s->plans[i];
        if (p->n_rows == n_rows && p->n_want == n_want) {
            p->last_use = ++s->use;
            *out = p;
            return SOTTO_OK;
        }
        if (p->last_use < oldest->last_use)
            oldest = p;
    }
    st_llama_plan fresh = {0};
    ST_TRY(build(s, n_rows, n_want, &fresh, err));
    st_llama_plan *slot = s->n_plans < ST_LLAMA_PLANS ? &s->plans[s->n_plans++] : oldest;
    free_plan(slot);
    *slot = fresh;
    slot->last_use = ++s->use;
    *out = slot;
    return SOTTO_OK;
}

/* ---- making ---- */

static sotto_status check_options(const sotto_llama_model *m, sotto_llama_session_options *o, sotto_error *err)
{
    const st_llama_hparams *h = &m->h;
    if (o->n_ctx == 0)
        o->n_ctx = h->n_ctx_train < DEFAULT_CONTEXT ? h->n_ctx_train : DEFAULT_CONTEXT;
    if (o->n_batch == 0)
        o->n_batch = DEFAULT_BATCH;
    const struct {
        const char *name;
        int value, max;
    } sizes[] = {
        {"n_ctx", o->n_ctx, MAX_CONTEXT}, {"n_batch", o->n_batch, MAX_BATCH}, {"n_seq", o->n_seq, MAX_SEQUENCES}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value < 1 || sizes[i].value > sizes[i].max)
            return st_fail(err, SOTTO_E_ARGUMENT, "%s: %d, expected 1 to %d", sizes[i].name, sizes[i].value,
                           sizes[i].max);
    static const sotto_dtype types[] = {SOTTO_F32, SOTTO_F16, SOTTO_BF16, SOTTO_Q8_0};
    const sotto_dtype asked[2] = {o->cache_k, o->cache_v};
    for (int k = 0; k < 2; k++) {
        bool known = false;
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            known = known || types[i] == asked[k];
        if (!known)
            return st_fail(err, SOTTO_E_ARGUMENT, "cache_%s: type %d, expected f32, f16, bf16 or q8_0", k ? "v" : "k",
                           (int)asked[k]);
        if (asked[k] == SOTTO_Q8_0 && h->d_head % 32 != 0)
            return st_fail(err, SOTTO_E_UNSUPPORTED, "cache_%s: heads of %d elements are not whole blocks of q8_0",
                           k ? "v" : "k", (int)h->d_head);
    }
    o->n_batch = o->n_batch < o->n_ctx ? o->n_batch : o->n_ctx;
    if (o->n_ctx > h->n_ctx_train)
        st_log(&m->logger, SOTTO_LOG_WARNING, "a context of %d positions: the model was trained on %d", o->n_ctx,
               (int)h->n_ctx_train);
    return SOTTO_OK;
}

static void release_network(sotto_llama_session *s)
{
    free_plans(s);
    sotto_store_free(s->store);
    sotto_arena_free(s->arena);
    st_free(s->tensors);
    st_free(s->lists);
    s->store = NULL;
    s->arena = NULL;
    s->tensors = NULL;
    s->lists = NULL;
    s->n_lists = 0;
}

/* Plans of the largest and the usual graphs are made, and with them all sizes known, before memory is taken. */
static sotto_status create_network(sotto_llama_session *s, sotto_error *err)
{
    st_llama_plan *largest, *p;
    const int together = s->o.n_seq < s->o.n_batch ? s->o.n_seq : s->o.n_batch;
    ST_TRY(sotto_arena_create(s->backend, &s->arena, err));
    ST_TRY(declare_caches(s, err));
    ST_TRY(st_llama_plan_for(s, s->o.n_batch, 1, &largest, err));
    ST_TRY(st_llama_plan_for(s, together, together, &p, err));
    ST_TRY(st_llama_plan_for(s, 1, 1, &p, err));
    if (s->model->measure_only)
        return SOTTO_OK;
    ST_TRY(sotto_store_allocate(s->store, err));
    return sotto_plan_allocate(largest->plan, err);
}

static sotto_status create(sotto_llama_session *s, sotto_error *err)
{
    const sotto_llama_model *m = s->model;
    ST_TRY(check_options(m, &s->o, err));
    ST_TRY(sotto_backend_open_like(m->backend, s->o.n_threads, NULL, &s->backend, err));
    const int last = sotto_backend_device_count(s->backend) - 1;
    sotto_status status = create_network(s, err);
    if (status == SOTTO_E_MEMORY && last > 0 && sotto_backend_is_auto(s->backend)) {
        st_log(&m->logger, SOTTO_LOG_WARNING, "%s: the caches go to the CPU", err ? err->text : "no memory");
        release_network(s);
        sotto_backend_set_cache_device(s->backend, last);
        status = create_network(s, err);
    }
    ST_TRY(status);
    const size_t n_ctx = (size_t)s->o.n_ctx, n_seq = (size_t)s->o.n_seq;
    s->tokens = st_calloc(n_seq * n_ctx, sizeof *s->tokens);
    s->lengths = st_calloc(n_seq, sizeof *s->lengths);
    s->rows = st_calloc(ST_LLAMA_LISTS * (size_t)s->o.n_batch, sizeof *s->rows);
    if (!s->tokens || !s->lengths || !s->rows || !st_cells_init(&s->cells, s->o.n_seq, s->o.n_ctx, 0, s->o.n_ctx, 1))
        return st_fail_memory(err, 2 * n_seq * n_ctx * sizeof *s->tokens, "the tokens and cells of all sequences");
    return SOTTO_OK;
}

sotto_status sotto_llama_session_create(const sotto_llama_model *model, const sotto_llama_session_options *options,
                                        sotto_llama_session **out, sotto_error *err)
{
    if (!out)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_session_create: out is NULL");
    *out = NULL;
    if (!model)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_session_create: model is NULL");
    if (options && options->size != sizeof *options)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_session_create: options->size is %zu, expected %zu",
                       options->size, sizeof *options);
    sotto_llama_session *s = st_calloc(1, sizeof *s);
    if (!s)
        return st_fail_memory(err, sizeof *s, "a session");
    s->model = model;
    sotto_llama_session_options_default(&s->o);
    if (options)
        s->o = *options;
    const sotto_status status = create(s, err);
    if (status != SOTTO_OK) {
        sotto_llama_session_free(s);
        return status;
    }
    *out = s;
    return SOTTO_OK;
}

void sotto_llama_session_free(sotto_llama_session *session)
{
    if (!session)
        return;
    release_network(session);
    sotto_backend_free(session->backend);
    st_cells_free(&session->cells);
    st_free(session->tokens);
    st_free(session->lengths);
    st_free(session->rows);
    st_free(session->logits);
    st_free(session->seen);
    st_free(session);
}

void sotto_llama_get_memory(const sotto_llama_session *session, int device, sotto_llama_memory *out)
{
    if (!out)
        return;
    *out = (sotto_llama_memory){0};
    for (int d = 0; session && d < sotto_backend_device_count(session->backend); d++) {
        if (device >= 0 && device != d)
            continue;
        uint64_t most = 0;
        for (int i = 0; i < session->n_plans; i++) {
            const uint64_t n = sotto_plan_device_bytes(session->plans[i].plan, d);
            most = n > most ? n : most;
        }
        out->weights += sotto_store_device_bytes(session->model->store, d);
        out->in_place += sotto_store_in_place_bytes(session->model->store, d);
        out->cache += sotto_store_device_bytes(session->store, d);
        out->compute += most;
    }
}

void sotto_llama_set_run_options(sotto_llama_session *session, const sotto_run_options *run)
{
    if (session)
        session->run = run ? *run : (sotto_run_options){0};
}

sotto_status sotto_llama_observe(sotto_llama_session *session, sotto_llama_observer observer, void *user,
                                 sotto_error *err)
{
    if (!session)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_observe: session is NULL");
    if ((observer != NULL) != (session->observer != NULL))
        free_plans(session); /* other outputs, other graphs */
    session->observer = observer;
    session->observer_user = user;
    return SOTTO_OK;
}

sotto_status sotto_llama_write_dot(sotto_llama_session *session, int n_rows,
                                   void (*write)(void *user, const char *text, size_t n), void *user, sotto_error *err)
{
    if (!session || !write)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_write_dot: %s is NULL", session ? "write" : "session");
    if (n_rows < 1 || n_rows > session->o.n_batch)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_write_dot: n_rows is %d, expected 1 to %d", n_rows,
                       session->o.n_batch);
    st_llama_plan *p;
    ST_TRY(st_llama_plan_for(session, n_rows, 1, &p, err));
    return sotto_plan_dot(p->plan, write, user, err);
}
