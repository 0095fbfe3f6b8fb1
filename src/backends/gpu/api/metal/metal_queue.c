/* metal_queue.c: command buffers of an opened device's queue. Metal runs them in the order of their commits and, as all
 * resources are tracked by it, makes the later see what the earlier wrote. */
#include <string.h>

#include "backends/gpu/api/metal/metal.h"
#include "base/status.h"

enum { STATUS_ERROR = 5, ERROR_OUT_OF_MEMORY = 8 };

sotto_status st_metal_fail(const st_metal *m, mtl_id error, const char *what, sotto_error *err)
{
    const st_objc *o = &m->gpu->objc;
    const mtl_id words = error ? mtl_description(o, error) : NULL;
    const char *text = words ? mtl_utf8(o, words) : NULL;
    const mtl_int code = error ? mtl_code(o, error) : 0;
    return st_fail(err, SOTTO_E_DEVICE, "%s: %s: %s (error %ld)", m->id, what, text ? text : "no reason given", code);
}

static sotto_status fail_commands(const st_metal *m, mtl_id commands, sotto_error *err)
{
    const st_objc *o = &m->gpu->objc;
    const mtl_id error = mtl_error(o, commands);
    const sotto_status status = st_metal_fail(m, error, "a command buffer failed", err);
    if (!error || mtl_code(o, error) != ERROR_OUT_OF_MEMORY)
        return status;
    if (err)
        err->code = SOTTO_E_MEMORY;
    return SOTTO_E_MEMORY;
}

/* Waits for the oldest ones until n_left are on their way. The first error is told, the rest is waited for all the same. */
sotto_status st_metal_wait_until(st_metal *m, int n_left, sotto_error *err)
{
    const st_objc *o = &m->gpu->objc;
    sotto_status status = SOTTO_OK;
    int done = 0;
    for (; m->n_sent - done > n_left; done++) {
        const mtl_id commands = m->sent[done];
        mtl_wait(o, commands);
        if (status == SOTTO_OK && mtl_status(o, commands) == STATUS_ERROR)
            status = fail_commands(m, commands, err);
        mtl_release(o, commands);
    }
    m->n_sent -= done;
    memmove(m->sent, m->sent + done, (size_t)m->n_sent * sizeof m->sent[0]);
    if (m->n_sent == 0)
        m->staged = 0;
    return status;
}

sotto_status st_metal_current(st_metal *m, sotto_error *err)
{
    const st_objc *o = &m->gpu->objc;
    if (m->current)
        return SOTTO_OK;
    if (m->n_sent == ST_METAL_MAX_SENT)
        ST_TRY(st_metal_wait_until(m, ST_METAL_MAX_SENT / 2, err));
    const mtl_id commands = mtl_command_buffer(o, m->queue);
    if (!commands)
        return st_metal_fail(m, NULL, "no command buffer", err);
    m->current = mtl_retain(o, commands);
    return SOTTO_OK;
}

sotto_status st_metal_encode(st_metal *m, st_metal_work work, sotto_error *err)
{
    const st_objc *o = &m->gpu->objc;
    if (m->work == work)
        return SOTTO_OK;
    st_metal_end(m);
    ST_TRY(st_metal_current(m, err));
    m->encoder = work == ST_METAL_COMPUTE ? mtl_compute_encoder(o, m->current) : mtl_blit_encoder(o, m->current);
    if (!m->encoder)
        return st_metal_fail(m, NULL, "no command encoder", err);
    m->work = work;
    return SOTTO_OK;
}

void st_metal_end(st_metal *m)
{
    if (m->work != ST_METAL_NOTHING)
        mtl_end_encoding(&m->gpu->objc, m->encoder);
    m->encoder = NULL;
    m->work = ST_METAL_NOTHING;
}

void st_metal_commit(st_metal *m)
{
    st_metal_end(m);
    if (!m->current)
        return;
    mtl_commit(&m->gpu->objc, m->current);
    m->sent[m->n_sent++] = m->current; /* there was room when it was made */
    m->current = NULL;
}

sotto_status st_metal_finish(st_metal *m, sotto_error *err)
{
    const st_objc *o = &m->gpu->objc;
    st_metal_commit(m);
    const sotto_status status = st_metal_wait_until(m, 0, err);
    if (m->capturing)
        mtl_stop_capture(o, mtl_shared_capture(o, o->class_named("MTLCaptureManager")));
    m->capturing = false;
    return status;
}
