/* words.c: words of the dialect that check addresses, and copies that take their time. */
#include <string.h>

#include "backends/gpu/api/sim/group.h"

static const char *end_of_buffer(const st_sim_work *work, const char *p)
{
    for (int i = 0; i < work->kernel->n_args; i++)
        if (work->arg[i] && p >= (const char *)work->arg[i] && p < work->arg_end[i])
            return work->arg_end[i];
    return NULL;
}

const void *st_sim_checked(st_sim_item *me, const void *p, size_t size, const char *file, int line)
{
    if ((uintptr_t)p % size != 0)
        st_sim_stop(me, file, line, "%zu bytes at an address that is %zu above a multiple of them", size,
                    (size_t)((uintptr_t)p % size));
    const char *end = end_of_buffer(me->group->work, p);
    if (!end || (size_t)(end - (const char *)p) < size)
        st_sim_stop(me, file, line, "%zu bytes outside of every buffer of the launch", size);
    return p;
}

/* The destination is poisoned until the wait, so that reading it too early shows. */
void st_sim_copy16(st_sim_item *me, void *to, const void *from, const char *file, int line)
{
    const st_sim_group *const g = me->group;
    st_sim_checked(me, from, 16, file, line);
    const char *const end = g->local + st_sim_local_size(me);
    if ((uintptr_t)to % 16 != 0 || (const char *)to < g->local || (const char *)to + 16 > end)
        st_sim_stop(me, file, line, "an asynchronous copy to where no aligned 16 bytes of local memory are");
    if (me->n_copies == ST_SIM_MAX_COPIES)
        st_sim_stop(me, file, line, "more than %d asynchronous copies of an item at once", ST_SIM_MAX_COPIES);
    memset(to, 0xff, 16);
    me->copy[me->n_copies].to = to;
    me->copy[me->n_copies].from = from;
    me->copy[me->n_copies++].batch = me->batch;
}

void st_sim_copy_wait(st_sim_item *me, int n)
{
    int left = 0;
    for (int i = 0; i < me->n_copies; i++) {
        if (me->copy[i].batch < me->batch - n)
            memcpy(me->copy[i].to, me->copy[i].from, 16);
        else
            me->copy[left++] = me->copy[i];
    }
    me->n_copies = left;
}
