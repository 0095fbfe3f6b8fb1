#include "backends/gpu/api/sim/queue.h"

#include <stdatomic.h>
#include <string.h>

#include "backends/gpu/api/sim/sanitizers.h"
#include "base/alloc.h"
#include "base/status.h"

/* ---- memory ---- */

/* Bytes behind a block that nothing may change; AddressSanitizer watches better alone. */
enum { GUARD = ST_SIM_ASAN ? 0 : 64, GUARD_BYTE = 0xa5 };

struct st_sim_memory {
    char *bytes; /* size + GUARD */
    size_t size;
    int device;
    bool wrapped; /* bytes are somebody else's, without a guard */
    atomic_int owners;
};

st_sim_memory *st_sim_memory_create(int device, size_t size)
{
    st_sim_memory *m = st_calloc(1, sizeof *m);
    char *bytes = size <= SIZE_MAX - GUARD ? st_alloc(size + GUARD, 1) : NULL;
    if (!m || !bytes) {
        st_free(m);
        st_free(bytes);
        return NULL;
    }
    memset(bytes, 0xff, size);
    memset(bytes + size, GUARD_BYTE, GUARD);
    m->bytes = bytes;
    m->size = size;
    m->device = device;
    atomic_init(&m->owners, 1);
    return m;
}

st_sim_memory *st_sim_memory_over(int device, void *host, size_t size)
{
    st_sim_memory *m = st_calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->bytes = host;
    m->size = size;
    m->device = device;
    m->wrapped = true;
    atomic_init(&m->owners, 1);
    return m;
}

bool st_sim_memory_is_wrapped(const st_sim_memory *m)
{
    return m->wrapped;
}

void st_sim_memory_release(st_sim_memory *m)
{
    if (!m || atomic_fetch_sub(&m->owners, 1) != 1)
        return;
    if (!m->wrapped)
        st_free(m->bytes);
    st_free(m);
}

int st_sim_memory_device(const st_sim_memory *m)
{
    return m->device;
}

size_t st_sim_memory_size(const st_sim_memory *m)
{
    return m->size;
}

char *st_sim_memory_bytes(st_sim_memory *m)
{
    return m->bytes;
}

static bool guard_is_whole(const st_sim_memory *m)
{
    for (int i = 0; i < GUARD && !m->wrapped; i++)
        if (m->bytes[m->size + (size_t)i] != (char)GUARD_BYTE)
            return false;
    return true;
}

/* ---- commands ---- */

struct st_sim_queue {
    int device;
    st_sim_group group;
    st_mutex lock; /* others' event_reach runs this queue from their threads */
    atomic_int owners;
    st_sim_command *first, **last;
    uint64_t n_put, n_done;
    sotto_error lost; /* a failure that nobody has been told yet */
};

sotto_status st_sim_queue_create(int device, st_sim_queue **out, sotto_error *err)
{
    *out = NULL;
    st_sim_queue *q = st_calloc(1, sizeof *q);
    if (!q)
        return st_fail_memory(err, sizeof *q, "a simulated device");
    sotto_status status = st_sim_group_init(&q->group, st_sim_settings_of(device)->local_bytes, err);
    if (status == SOTTO_OK && !st_mutex_init(&q->lock)) {
        st_sim_group_free(&q->group);
        status = st_fail(err, SOTTO_E_MEMORY, "no room for a lock of a simulated device");
    }
    if (status != SOTTO_OK) {
        st_free(q);
        return status;
    }
    q->device = device;
    q->last = &q->first;
    atomic_init(&q->owners, 1);
    *out = q;
    return SOTTO_OK;
}

int st_sim_queue_device(const st_sim_queue *q)
{
    return q->device;
}

static void drop_event(st_sim_event *e)
{
    if (e && --e->owners == 0)
        st_free(e);
}

static void free_command(st_sim_command *c)
{
    for (int i = 0; i < ST_SIM_COMMAND_MEMORY; i++)
        st_sim_memory_release(c->memory[i]);
    drop_event(c->event);
    st_free(c->data);
    st_free(c);
}

void st_sim_queue_release(st_sim_queue *q)
{
    if (!q || atomic_fetch_sub(&q->owners, 1) != 1)
        return;
    for (st_sim_command *c = q->first, *next; c; c = next) {
        next = c->next;
        free_command(c);
    }
    st_sim_group_free(&q->group);
    st_mutex_destroy(&q->lock);
    st_free(q);
}

sotto_status st_sim_queue_put(st_sim_queue *q, const st_sim_command *command, sotto_error *err)
{
    st_sim_command *c = st_alloc(1, sizeof *c);
    if (!c) {
        st_free(command->data);
        return st_fail_memory(err, sizeof *c, "a command of a simulated device");
    }
    *c = *command;
    c->next = NULL;
    for (int i = 0; i < ST_SIM_COMMAND_MEMORY; i++)
        if (c->memory[i])
            atomic_fetch_add(&c->memory[i]->owners, 1);
    st_mutex_lock(&q->lock);
    if (c->event) {
        c->event->owners++;
        c->event->ticket = q->n_put + 1;
    }
    *q->last = c;
    q->last = &c->next;
    q->n_put++;
    st_mutex_unlock(&q->lock);
    return SOTTO_OK;
}

static sotto_status launch(st_sim_queue *q, const st_sim_command *c, sotto_error *err)
{
    const st_sim_settings *s = st_sim_settings_of(q->device);
    q->group.subgroup = s->subgroup;
    q->group.order = s->order;
    ST_TRY(st_sim_group_run(&q->group, &c->work, err));
    for (int i = 0; i < c->work.kernel->n_args; i++)
        if (c->memory[i] && !guard_is_whole(c->memory[i]))
            return st_fail(err, SOTTO_E_DEVICE, "kernel %s wrote behind the end of buffer %d of %zu bytes",
                           c->work.kernel->name, i, c->memory[i]->size);
    return SOTTO_OK;
}

static sotto_status run_command(st_sim_queue *q, const st_sim_command *c, sotto_error *err)
{
    switch (c->kind) {
    case ST_SIM_WRITE:
        memcpy(c->memory[0]->bytes + c->offset[0], c->data, c->bytes);
        return SOTTO_OK;
    case ST_SIM_COPY:
        memmove(c->memory[0]->bytes + c->offset[0], c->memory[1]->bytes + c->offset[1], c->bytes);
        return SOTTO_OK;
    case ST_SIM_ZERO:
        memset(c->memory[0]->bytes + c->offset[0], 0, c->bytes);
        return SOTTO_OK;
    case ST_SIM_EVENT:
        c->event->seconds = st_time_now();
        return SOTTO_OK;
    default:
        return launch(q, c, err);
    }
}

/* Behind the lock. */
static void run_until(st_sim_queue *q, uint64_t ticket)
{
    while (q->first && q->n_done < ticket) {
        st_sim_command *c = q->first;
        const bool dead = q->lost.code != SOTTO_OK;
        if (!dead || c->kind == ST_SIM_EVENT)
            (void)run_command(q, c, &q->lost);
        q->first = c->next;
        if (!q->first)
            q->last = &q->first;
        q->n_done++;
        free_command(c);
        if (!dead && q->lost.code != SOTTO_OK)
            ticket = q->n_put; /* nothing after a failure runs */
    }
}

static sotto_status tell(st_sim_queue *q, sotto_error *err)
{
    const sotto_error lost = q->lost;
    q->lost = (sotto_error){0};
    return lost.code == SOTTO_OK ? SOTTO_OK : st_fail(err, lost.code, "%s", lost.text);
}

sotto_status st_sim_queue_run(st_sim_queue *q, sotto_error *err)
{
    st_mutex_lock(&q->lock);
    run_until(q, q->n_put);
    const sotto_status status = tell(q, err);
    st_mutex_unlock(&q->lock);
    return status;
}

sotto_status st_sim_queue_read(st_sim_queue *q, st_sim_memory *m, size_t offset, void *out, size_t bytes,
                               sotto_error *err)
{
    ST_TRY(st_sim_queue_run(q, err));
    memcpy(out, m->bytes + offset, bytes);
    return SOTTO_OK;
}

/* ---- events ---- */

st_sim_event *st_sim_event_create(void)
{
    st_sim_event *e = st_calloc(1, sizeof *e);
    if (e)
        e->owners = 1;
    return e;
}

static void leave_queue(st_sim_event *e)
{
    st_sim_queue *q = e->queue;
    e->queue = NULL;
    st_sim_queue_release(q);
}

void st_sim_event_free(st_sim_event *e)
{
    if (!e)
        return;
    st_sim_queue *q = e->queue;
    if (q)
        st_mutex_lock(&q->lock);
    e->queue = NULL;
    drop_event(e);
    if (q)
        st_mutex_unlock(&q->lock);
    st_sim_queue_release(q);
}

sotto_status st_sim_event_record(st_sim_queue *q, st_sim_event *e, sotto_error *err)
{
    if (e->queue != q) {
        sotto_error ignored;
        if (e->queue)
            (void)st_sim_event_reach(e, &ignored); /* so that its owners are counted behind one lock */
        leave_queue(e);
        atomic_fetch_add(&q->owners, 1);
        e->queue = q;
    }
    return st_sim_queue_put(q, &(st_sim_command){.kind = ST_SIM_EVENT, .event = e}, err);
}

sotto_status st_sim_event_reach(st_sim_event *e, sotto_error *err)
{
    st_sim_queue *q = e->queue;
    if (!q)
        return SOTTO_OK;
    st_mutex_lock(&q->lock);
    run_until(q, e->ticket);
    const bool lost = q->lost.code != SOTTO_OK;
    if (lost)
        (void)st_fail(err, q->lost.code, "%s", q->lost.text); /* its own thread is told as well */
    const sotto_status status = q->lost.code;
    st_mutex_unlock(&q->lock);
    return status;
}

double st_sim_event_seconds(st_sim_event *e)
{
    st_sim_queue *q = e->queue;
    if (q)
        st_mutex_lock(&q->lock);
    const double seconds = e->seconds;
    if (q)
        st_mutex_unlock(&q->lock);
    return seconds;
}
