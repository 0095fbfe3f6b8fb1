/* transfer.c: bytes from one space to another, and waiting for it. Copies are pulled: they are queued on the device that
 * reads. It waits for the other's work before, and the other waits for the copy after, by events where both have them. */
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "runtime/plan_impl.h"
#include "sotto/quant.h"

static bool has_events(const st_backend_impl *impl)
{
    return impl->event_create && impl->event_record && impl->event_wait && impl->event_free;
}

static sotto_status make_visitors(sotto_plan *plan, sotto_error *err)
{
    for (int d = 0; d <= plan->backend->n_device; d++) {
        st_visitors *v = &plan->visitors[d];
        if (v->size > 0 && v->buffer.size == 0)
            ST_TRY(st_buffer_allocate(&plan->backend->device[d], ST_BUFFER_WEIGHTS, v->size, &v->buffer, err));
    }
    if (plan->n_rows > 0 && !plan->rows) {
        plan->rows = st_alloc(2 * plan->n_rows, sizeof *plan->rows); /* as f32, and again as the type they have */
        if (!plan->rows)
            return st_fail_memory(err, 2 * (uint64_t)plan->n_rows * sizeof *plan->rows, "weights on their way");
    }
    return SOTTO_OK;
}

static void pin(sotto_plan *plan, bool pinned)
{
    const size_t bytes = 2 * plan->staging_bytes + plan->bounce_bytes;
    for (int d = 0; d < plan->backend->n_device; d++) {
        st_runner *r = &plan->backend->device[d];
        if (pinned && r->impl->pin_host)
            plan->pinned[d] = r->impl->pin_host(r->state, plan->host, bytes);
        else if (!pinned && plan->pinned[d] && r->impl->unpin_host)
            r->impl->unpin_host(r->state, plan->host, bytes);
    }
}

sotto_status st_plan_prepare_copies(sotto_plan *plan, sotto_error *err)
{
    const size_t bytes = 2 * plan->staging_bytes + plan->bounce_bytes;
    ST_TRY(make_visitors(plan, err));
    if (bytes > 0 && !plan->host) {
        plan->host = st_alloc_pages(bytes);
        if (!plan->host)
            return st_fail_memory(err, bytes, "bytes on their way between devices");
        pin(plan, true);
    }
    for (int d = 0; plan->n_copies > 0 && !plan->has_events && d < plan->backend->n_device; d++) {
        st_runner *r = &plan->backend->device[d];
        if (plan->events[d] || !has_events(r->impl) || !st_runner_traits(r).asynchronous)
            continue;
        const sotto_status status = r->impl->event_create(r->state, &plan->events[d], err);
        if (status == SOTTO_E_UNSUPPORTED) /* not this device of the backend's: the host waits */
            plan->events[d] = NULL;
        else
            ST_TRY(status);
    }
    plan->has_events = true;
    return SOTTO_OK;
}

void st_plan_release_copies(sotto_plan *plan)
{
    if (plan->host)
        pin(plan, false);
    for (int d = 0; plan->events && d < plan->backend->n_device; d++)
        if (plan->events[d])
            plan->backend->device[d].impl->event_free(plan->backend->device[d].state, plan->events[d]);
    for (int d = 0; plan->visitors && d <= plan->backend->n_device; d++)
        if (plan->visitors[d].buffer.size > 0)
            plan->visitors[d].buffer.impl->buffer_free(&plan->visitors[d].buffer);
    st_free_pages(plan->host, 2 * plan->staging_bytes + plan->bounce_bytes);
    st_free(plan->rows);
}

/* ---- order between queues ---- */

/* What `second` does from now on comes after all that `first` has in its queue. */
static sotto_status order(sotto_plan *plan, int first, int second, sotto_error *err)
{
    st_runner *a = &plan->backend->device[first], *b = &plan->backend->device[second];
    if (!a->busy)
        return SOTTO_OK;
    if (a->impl != b->impl || !plan->events[first] || !plan->events[second])
        return st_runner_sync(a, err);
    ST_TRY(a->impl->event_record(a->state, plan->events[first], err));
    return b->impl->event_wait(b->state, plan->events[first], err);
}

static void mark_busy(st_runner *r)
{
    r->busy = r->busy || st_runner_traits(r).asynchronous;
}

static sotto_status send(st_runner *r, st_buffer *to, size_t offset, const void *data, size_t bytes, sotto_error *err)
{
    if (!r->impl->set_async)
        return r->impl->set(r->state, to, offset, data, bytes, err);
    mark_busy(r);
    return r->impl->set_async(r->state, to, offset, data, bytes, err);
}

/* ---- copies ---- */

static sotto_status copy_peer(sotto_plan *plan, st_copy *c, sotto_error *err)
{
    st_runner *from = &plan->backend->device[c->from_device], *to = &plan->backend->device[c->to_device];
    ST_TRY(order(plan, c->from_device, c->to_device, err));
    mark_busy(to);
    const sotto_status status = to->impl->copy_peer(to->state, c->to->buffer, c->to->offset + c->to_offset, from->state,
                                                    c->from->buffer, c->from->offset + c->from_offset, c->bytes, err);
    if (status == SOTTO_E_UNSUPPORTED) {
        c->no_peer = true;
        return SOTTO_OK;
    }
    ST_TRY(status);
    return order(plan, c->to_device, c->from_device, err); /* which may write there again */
}

/* Rows as f32, packed again. */
typedef struct packing {
    sotto_dtype dtype;
    int64_t n; /* elements of a row */
    const float *rows;
    char *out;
    atomic_bool failed;
} packing;

static void pack_rows(void *arg, int64_t from, int64_t to)
{
    packing *p = arg;
    if (from < to &&
        !sotto_row_from_f32(p->dtype, p->rows + from * p->n,
                            p->out + (size_t)from * sotto_dtype_row_bytes(p->dtype, p->n), (to - from) * p->n))
        atomic_store(&p->failed, true);
}

static sotto_status copy_weights(sotto_plan *plan, const st_copy *c, sotto_error *err)
{
    st_runner *from = &plan->backend->device[c->from_device], *to = &plan->backend->device[c->to_device];
    const sotto_dtype dtype = c->to->dtype;
    const int64_t n = c->to->dim[0], n_rows = st_tensor_n_rows(c->to);
    ST_TRY(from->impl->download_f32(from->state, c->from, plan->rows, err));
    ST_TRY(st_runner_sync(to, err)); /* it may still read what was in this place */
    if (dtype == SOTTO_F32 || dtype == SOTTO_I8)
        return to->impl->upload(to->state, c->to, 0, n_rows, SOTTO_F32, plan->rows, err);
    packing p = {.dtype = dtype, .n = n, .rows = plan->rows, .out = (char *)(plan->rows + plan->n_rows)};
    if (from->impl->share_out)
        from->impl->share_out(from->state, n_rows, pack_rows, &p);
    else
        pack_rows(&p, 0, n_rows);
    if (atomic_load(&p.failed))
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%s: %s cannot be brought to %s", c->from->name,
                       sotto_dtype_name(dtype), to->id);
    return to->impl->upload(to->state, c->to, 0, n_rows, dtype, plan->rows + plan->n_rows, err);
}

sotto_status st_plan_copy(sotto_plan *plan, st_copy *c, sotto_error *err)
{
    if (c->kind == ST_COPY_WEIGHTS)
        return copy_weights(plan, c, err);
    if (c->bytes == 0)
        return SOTTO_OK;
    sotto_backend *b = plan->backend;
    st_runner *from = &b->device[c->from_device], *to = &b->device[c->to_device];
    const size_t from_at = c->from->offset + c->from_offset, to_at = c->to->offset + c->to_offset;
    const char *bytes = c->from->buffer->host ? (const char *)c->from->buffer->host + from_at : NULL;
    if (c->bounce == SIZE_MAX) /* to the host */
        return from->impl->get(from->state, c->from->buffer, from_at, (char *)c->to->buffer->host + to_at, c->bytes,
                               err);
    if (!bytes && from->impl == to->impl && to->impl->copy_peer && !c->no_peer) {
        ST_TRY(copy_peer(plan, c, err));
        if (!c->no_peer)
            return SOTTO_OK;
    }
    char *bounce = plan->host + 2 * plan->staging_bytes + c->bounce;
    if (bytes && !to->impl->set_async)
        return to->impl->set(to->state, c->to->buffer, to_at, bytes, c->bytes, err);
    if (bytes)
        memcpy(bounce, bytes, c->bytes); /* the host goes on and may write there again */
    else
        ST_TRY(from->impl->get(from->state, c->from->buffer, from_at, bounce, c->bytes, err));
    return send(to, c->to->buffer, to_at, bounce, c->bytes, err);
}

/* Neighbours in memory that were set as a whole go as one: steps of a decoder set many small lists. */
sotto_status st_plan_flush(sotto_plan *plan, sotto_error *err)
{
    char *set = plan->host, *going = plan->host + plan->staging_bytes;
    if (plan->staging_bytes == 0)
        return SOTTO_OK;
    for (int64_t i = 0; i < plan->n_inputs; i++) {
        st_input *in = &plan->inputs[i];
        if (in->staging == SIZE_MAX || in->low >= in->high)
            continue;
        const size_t from = in->staging + in->low;
        size_t to = in->staging + in->high;
        int64_t k = i;
        while (k + 1 < plan->n_inputs) {
            const st_input *a = &plan->inputs[k], *b = &plan->inputs[k + 1];
            if (b->space != a->space || b->t->buffer != a->t->buffer || b->low > 0 || b->high == 0 ||
                a->high < sotto_tensor_bytes(a->t) || b->staging < a->staging ||
                b->staging - a->staging != b->t->offset - a->t->offset)
                break;
            to = b->staging + b->high;
            k++;
        }
        memcpy(going + from, set + from, to - from);
        st_runner *r = &plan->backend->device[in->space];
        ST_TRY(send(r, in->t->buffer, in->t->offset + in->low, going + from, to - from, err));
        for (; i < k; i++)
            plan->inputs[i].low = plan->inputs[i].high = 0;
        plan->inputs[k].low = plan->inputs[k].high = 0;
    }
    return SOTTO_OK;
}

sotto_status st_plan_sync(sotto_plan *plan, sotto_error *err)
{
    sotto_status first = SOTTO_OK;
    for (int d = 0; d <= plan->backend->n_device; d++) {
        if (!plan->backend->device[d].impl)
            continue;
        const sotto_status status = st_runner_sync(&plan->backend->device[d], first == SOTTO_OK ? err : NULL);
        first = first == SOTTO_OK ? status : first;
    }
    return first;
}
