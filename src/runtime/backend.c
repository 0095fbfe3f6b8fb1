/* backend.c: opening devices, and what is where among them. */
#include "base/alloc.h"
#include "base/status.h"
#include "base/thread.h"
#include "runtime/runtime_impl.h"
#include "runtime/self_test.h"

#include <stdio.h>
#include <string.h>

enum { MAX_THREADS = 1024 };

st_device_traits st_runner_traits(const st_runner *r)
{
    return r->impl->traits ? r->impl->traits(r->state) : (st_device_traits){0};
}

bool st_runner_supports(const st_runner *r, const sotto_tensor *node)
{
    return r->impl->can_run ? r->impl->can_run(r->state, node) : r->impl->supports(node);
}

sotto_status st_runner_sync(st_runner *r, sotto_error *err)
{
    if (!r->busy)
        return SOTTO_OK;
    r->busy = false;
    return r->impl->sync ? r->impl->sync(r->state, err) : SOTTO_OK;
}

int st_backend_space(const sotto_backend *b, int device)
{
    return b->host >= 0 && st_runner_traits(&b->device[device]).host_memory ? b->host : device;
}

int st_backend_device_of(const sotto_backend *b, const st_buffer *buffer)
{
    for (int i = 0; i <= b->n_device; i++)
        if (b->device[i].impl == buffer->impl && b->device[i].index == buffer->device)
            return i;
    return -1;
}

int st_backend_space_of(const sotto_backend *b, const st_buffer *buffer)
{
    const int device = st_backend_device_of(b, buffer);
    if (device >= 0)
        return st_backend_space(b, device);
    return buffer->host ? b->host : -1;
}

/* ---- opening ---- */

static bool is_accelerator_kind(sotto_device_kind kind)
{
    return kind == SOTTO_DEVICE_GPU || kind == SOTTO_DEVICE_SIMULATOR;
}

/* The device itself, tested when it is one that may be broken. */
static sotto_status open_runner(st_runner *r, const st_device_pick *pick, const sotto_backend_options *o,
                                sotto_error *err)
{
    sotto_device_info info = {0};
    ST_TRY(pick->impl->device_info(pick->index, &info, err));
    memset(r, 0, sizeof *r);
    r->index = pick->index;
    snprintf(r->id, sizeof r->id, "%s", info.id);
    ST_TRY(pick->impl->open(pick->index, o, &r->state, err));
    r->impl = pick->impl;
    if (!is_accelerator_kind(pick->impl->kind))
        return SOTTO_OK;
    const sotto_status status = pick->impl->self_test ? pick->impl->self_test(r->state, err) : st_self_test(r, o, err);
    if (status == SOTTO_OK)
        return SOTTO_OK;
    r->impl->close(r->state);
    r->impl = NULL;
    return status == SOTTO_E_ABORTED ? status : st_fail_context(err, status, "%s", info.id);
}

static void describe(sotto_backend *b)
{
    size_t at = 0;
    for (int i = 0; i < b->n_device && at + 1 < sizeof b->description; i++) {
        if (i > 0)
            at += (size_t)snprintf(b->description + at, sizeof b->description - at, "; ");
        b->device[i].impl->describe(b->device[i].state, b->description + at, sizeof b->description - at);
        at += strlen(b->description + at);
    }
}

static sotto_backend *new_backend(int n, const sotto_backend_options *o)
{
    sotto_backend *b = st_calloc(1, sizeof *b);
    if (b)
        b->device = st_calloc((size_t)n + 1, sizeof *b->device);
    if (!b || !b->device) {
        st_free(b);
        return NULL;
    }
    b->logger = o->logger;
    b->abort = o->abort;
    b->abort_user = o->abort_user;
    b->n_threads = o->n_threads;
    b->kv = b->host = -1;
    snprintf(b->cpu_level, sizeof b->cpu_level, "%s", o->cpu_level ? o->cpu_level : "auto");
    return b;
}

/* What is known once all devices are open. */
static void settle(sotto_backend *b)
{
    for (int i = b->n_device - 1; i >= 0 && b->host < 0; i--)
        if (st_runner_traits(&b->device[i]).host_memory)
            b->host = i;
    describe(b);
}

sotto_status st_backend_open_picks(const st_device_pick *picks, int n, const sotto_backend_options *options,
                                   sotto_backend **out, sotto_error *err)
{
    *out = NULL;
    sotto_backend *b = new_backend(n, options);
    if (!b)
        return st_fail_memory(err, sizeof *b, "a backend");
    sotto_status status = SOTTO_OK;
    for (int i = 0; i < n && status == SOTTO_OK; i++) {
        status = open_runner(&b->device[i], &picks[i], options, err);
        b->n_device += status == SOTTO_OK;
    }
    if (status == SOTTO_OK) {
        settle(b);
        status = st_backend_set_placement(b, options, err);
    }
    if (status != SOTTO_OK) {
        sotto_backend_free(b);
        return status;
    }
    *out = b;
    return SOTTO_OK;
}

static sotto_status open_like(const sotto_backend *base, sotto_backend *b, const sotto_backend_options *o,
                              sotto_error *err)
{
    for (int i = 0; i < base->n_device; i++) {
        const st_runner *from = &base->device[i];
        st_runner *r = &b->device[i];
        *r = (st_runner){.index = from->index, .share = from->share};
        memcpy(r->id, from->id, sizeof r->id);
        if (from->impl->open_sibling)
            ST_TRY(from->impl->open_sibling(from->state, o, &r->state, err));
        else
            ST_TRY(from->impl->open(from->index, o, &r->state, err));
        r->impl = from->impl;
        b->n_device++;
    }
    b->main = base->main;
    b->kv = base->kv;
    b->gpu_layers = base->gpu_layers;
    b->split = base->split;
    b->no_offload = base->no_offload;
    b->is_auto = base->is_auto;
    settle(b);
    return SOTTO_OK;
}

static sotto_status check_threads(int n, sotto_error *err)
{
    if (n < 0 || n > MAX_THREADS)
        return st_fail(err, SOTTO_E_ARGUMENT, "n_threads: %d, expected 0 (all cores) to %d", n, (int)MAX_THREADS);
    return SOTTO_OK;
}

sotto_status sotto_backend_open_like(const sotto_backend *base, int n_threads, const char *cpu_level,
                                     sotto_backend **out, sotto_error *err)
{
    if (!base || !out)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_backend_open_like: base or out is NULL");
    *out = NULL;
    ST_TRY(check_threads(n_threads, err));
    const sotto_backend_options o = {.n_threads = n_threads ? n_threads : base->n_threads,
                                     .cpu_level = cpu_level ? cpu_level : base->cpu_level,
                                     .logger = base->logger,
                                     .abort = base->abort,
                                     .abort_user = base->abort_user};
    sotto_backend *b = new_backend(base->n_device, &o);
    if (!b)
        return st_fail_memory(err, sizeof *b, "a backend");
    const sotto_status status = open_like(base, b, &o, err);
    if (status != SOTTO_OK) {
        sotto_backend_free(b);
        return status;
    }
    *out = b;
    return SOTTO_OK;
}

sotto_status sotto_backend_open(const sotto_backend_options *options, sotto_backend **out, sotto_error *err)
{
    static const sotto_backend_options defaults = {0};
    if (!out)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_backend_open: out is NULL");
    *out = NULL;
    const sotto_backend_options *o = options ? options : &defaults;
    ST_TRY(check_threads(o->n_threads, err));
    st_device_pick *picks = NULL;
    int n = 0;
    if (!o->device || !*o->device || strcmp(o->device, "auto") == 0)
        return st_backend_open_auto(o, out, err);
    ST_TRY(st_registry_pick(o->device, &picks, &n, err));
    const sotto_status status = st_backend_open_picks(picks, n, o, out, err);
    st_free(picks);
    return status;
}

sotto_status st_backend_fallback(sotto_backend *b, sotto_error *err)
{
    st_runner *r = &b->device[b->n_device];
    if (r->impl)
        return SOTTO_OK;
    const sotto_backend_options o = {.logger = b->logger};
    const st_device_pick pick = {st_registry_last(), 0}; /* the reference has every operation */
    return open_runner(r, &pick, &o, err);
}

void sotto_backend_free(sotto_backend *backend)
{
    if (!backend)
        return;
    for (int i = backend->n_device; i >= 0; i--)
        if (backend->device[i].impl)
            backend->device[i].impl->close(backend->device[i].state);
    st_free(backend->device);
    st_free(backend);
}

/* ---- asking ---- */

bool sotto_backend_aborted(const sotto_backend *backend)
{
    return backend && backend->abort && backend->abort(backend->abort_user);
}

const char *sotto_backend_description(const sotto_backend *backend)
{
    return backend ? backend->description : "";
}

int sotto_backend_threads(const sotto_backend *backend)
{
    return backend ? st_thread_useful(backend->n_threads) : 1;
}

int sotto_backend_device_count(const sotto_backend *backend)
{
    return backend ? backend->n_device : 0;
}

sotto_status sotto_backend_device(const sotto_backend *backend, int device, sotto_device_info *out, sotto_error *err)
{
    if (!backend || !out || device < 0 || device >= backend->n_device)
        return st_fail(err, SOTTO_E_ARGUMENT, "device %d of a backend: expected 0 to %d", device,
                       backend ? backend->n_device - 1 : 0);
    const st_runner *r = &backend->device[device];
    memset(out, 0, sizeof *out);
    ST_TRY(r->impl->device_info(r->index, out, err));
    out->api_version = r->impl->api_version;
    return SOTTO_OK;
}

sotto_dtype sotto_backend_preferred_weights(const sotto_backend *backend)
{
    const st_runner *r = backend ? &backend->device[backend->main] : NULL;
    return r && r->impl->preferred_weights ? r->impl->preferred_weights(r->state) : SOTTO_F32;
}

sotto_dtype sotto_backend_preferred_caches(const sotto_backend *backend)
{
    const st_runner *r = backend ? &backend->device[backend->main] : NULL;
    return r && r->impl->preferred_caches ? r->impl->preferred_caches(r->state) : SOTTO_BF16;
}

bool sotto_backend_prefers_words(const sotto_backend *backend)
{
    const st_runner *r = backend ? &backend->device[backend->main] : NULL;
    return r && r->impl->prefers_words && r->impl->prefers_words(r->state);
}
